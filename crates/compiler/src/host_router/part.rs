//! What one `FRRConfiguration` contributes to the router of the host, and what several add up to. Both are the same type: a merge is the
//! union of parts.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{Ipv4Addr, Ipv6Addr},
};

use api::{
    frrk8s::{BfdProfile, FrrCommunity, UpdateSource, VniAdvertisement},
    meta::SecretReference,
    tcaas::node_network_config::AcceptedPrefix,
    value::{
        Asn, IfName, ImportRouteTarget, LocalPreference, Password, Peer, Prefix, RemoteAs,
        RouteDistinguisher, RouteTarget, Vni,
    },
};

/// Place of a value in the spec of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// In a router entry.
    Router(u32),
    /// In a neighbor of a router entry.
    Neighbor(u32, u32),
    /// In the EVPN settings of a router entry.
    Evpn(u32),
    /// In a layer 2 VNI of a router entry.
    L2Vni(u32, u32),
    /// In the layer 3 VNI of a router entry.
    L3Vni(u32),
    /// In a BFD profile.
    Profile(u32),
}

impl At {
    /// Path of a field at this place; without a name, of the place itself.
    pub(super) fn field(self, name: &str) -> String {
        let place = match self {
            Self::Router(router) => format!("spec.bgp.routers[{router}]"),
            Self::Neighbor(router, neighbor) => {
                format!("spec.bgp.routers[{router}].neighbors[{neighbor}]")
            }
            Self::Evpn(router) => format!("spec.bgp.routers[{router}].evpn"),
            Self::L2Vni(router, vni) => format!("spec.bgp.routers[{router}].evpn.l2vnis[{vni}]"),
            Self::L3Vni(router) => format!("spec.bgp.routers[{router}].evpn.l3vni"),
            Self::Profile(profile) => format!("spec.bgp.bfdProfiles[{profile}]"),
        };
        if name.is_empty() {
            place
        } else {
            format!("{place}.{name}")
        }
    }
}

/// A value that can have one author only: others may repeat it, and not contradict it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given<T> {
    pub(super) value: T,
    /// The first object that gives it, by its place among the objects of a merge.
    pub(super) by: u32,
    /// Where that object gives it.
    pub(super) at: At,
}

impl<T> Given<T> {
    /// A value of an object that is not merged with others yet.
    pub(super) fn new(value: T, at: At) -> Self {
        Self { value, by: 0, at }
    }
}

impl<T: Clone> Given<T> {
    /// The value as one of this object.
    pub(super) fn of(&self, by: u32) -> Self {
        Self { by, ..self.clone() }
    }
}

/// BGP routers by VRF, and BFD profiles by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub(super) routers: BTreeMap<IfName, Router>,
    pub(super) profiles: BTreeMap<String, Given<BfdProfile>>,
}

/// A BGP router in one VRF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Router {
    pub(super) asn: Given<Asn>,
    pub(super) id: Option<Given<Ipv4Addr>>,
    pub(super) prefixes: BTreeSet<Prefix>,
    pub(super) imports: BTreeSet<IfName>,
    pub(super) neighbors: BTreeMap<Peer, Neighbor>,
    pub(super) evpn: Evpn,
}

/// EVPN settings of a router.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Evpn {
    pub(super) advertise_vnis: Option<Given<VniAdvertisement>>,
    pub(super) advertise_svi: Option<Given<bool>>,
    pub(super) l2vnis: BTreeMap<Vni, VniValues>,
    pub(super) l3vni: Option<(Vni, VniValues)>,
}

impl Evpn {
    /// Whether all VNIs are advertised.
    pub(super) fn advertises_all(&self) -> bool {
        let given = self.advertise_vnis.as_ref();
        given.is_some_and(|given| given.value == VniAdvertisement::All)
    }

    /// Whether the devices of the host are advertised.
    pub(super) fn advertises_svi(&self) -> bool {
        self.advertise_svi.as_ref().is_some_and(|given| given.value)
    }
}

/// Route distinguisher and route targets of a VNI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VniValues {
    /// The VNI itself.
    pub(super) given: Given<()>,
    pub(super) rd: Option<Given<RouteDistinguisher>>,
    pub(super) imports: BTreeSet<ImportRouteTarget>,
    pub(super) exports: BTreeSet<RouteTarget>,
}

/// A BGP peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Neighbor {
    /// The neighbor itself.
    pub(super) given: Given<()>,
    pub(super) session: Session,
    /// Both unicast families, whatever the address of the peer is.
    pub(super) is_dual_stack: bool,
    pub(super) unicast: bool,
    pub(super) evpn: bool,
    pub(super) advertise: Advertise,
    pub(super) receive: Receive,
}

/// What objects may not contradict each other in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Session {
    pub(super) remote_as: Option<Given<RemoteAs>>,
    pub(super) local_as: Option<Given<Asn>>,
    pub(super) source: Option<Given<UpdateSource>>,
    pub(super) port: Option<Given<u16>>,
    pub(super) hold_time: Option<Given<u16>>,
    pub(super) keepalive_time: Option<Given<u16>>,
    pub(super) connect_time: Option<Given<u16>>,
    pub(super) ebgp_multi_hop: Option<Given<bool>>,
    pub(super) graceful_restart: Option<Given<bool>>,
    pub(super) bfd_profile: Option<Given<String>>,
    pub(super) password: Option<Given<PasswordSource>>,
}

/// Where the password of a session is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PasswordSource {
    /// In the object.
    Clear(Password),
    /// In a Secret.
    Secret(SecretReference),
}

impl PasswordSource {
    /// Whether two of them can be the same: of a hidden password nothing is known.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Clear(one), Self::Clear(other)) => {
                one == other || one.is_hidden() || other.is_hidden()
            }
            (one, other) => one == other,
        }
    }
}

/// Unicast routes that a peer gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Advertise {
    pub(super) prefixes: BTreeSet<Prefix>,
    pub(super) next_hop_ipv4: Option<Given<Ipv4Addr>>,
    pub(super) next_hop_ipv6: Option<Given<Ipv6Addr>>,
    pub(super) preferences: BTreeMap<Prefix, Given<LocalPreference>>,
    pub(super) communities: BTreeMap<FrrCommunity, BTreeSet<Prefix>>,
}

/// Unicast routes that are accepted from a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Receive {
    pub(super) all: bool,
    pub(super) prefixes: BTreeSet<AcceptedPrefix>,
}
