//! BGP instances and their sessions.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::{IpAddr, Ipv4Addr},
    str::FromStr,
};

use api::value::{Asn, IfName, Prefix};

use super::{
    evpn::Evpn,
    filter::IpFamily,
    name::{Description, Name},
};
use crate::secret::Password;

/// A BGP instance: that of the default VRF, or of one VRF.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "settings of FRR that have nothing to do with one another"
)]
pub struct Bgp {
    /// AS number of the instance.
    pub asn: Asn,
    /// Router id.
    pub router_id: Option<Ipv4Addr>,
    /// Whether an external session without route maps exchanges nothing.
    pub ebgp_requires_policy: bool,
    /// Whether IPv4 unicast is active on every session unless switched off.
    pub default_ipv4_unicast: bool,
    /// Whether a network is announced only while the routing table has a route to it.
    pub network_import_check: bool,
    /// Graceful restart.
    pub graceful_restart: GracefulRestart,
    /// Whether paths through different ASes of equal length share the traffic.
    pub multipath_relax: bool,
    /// Sessions, and groups that sessions are made from.
    pub neighbors: BTreeMap<Peer, Neighbor>,
    /// How many sessions the members of all listen ranges may open together; absent means FRR's default of 100.
    pub listen_limit: Option<u16>,
    /// Networks whose members may open a session, and the group they join.
    pub listen_ranges: BTreeMap<Prefix, Name>,
    /// IPv4 unicast.
    pub ipv4: Unicast,
    /// IPv6 unicast.
    pub ipv6: Unicast,
    /// L2VPN EVPN.
    pub evpn: Evpn,
}

impl Bgp {
    /// An instance with FRR's defaults and an AS number only.
    pub fn new(asn: Asn) -> Self {
        Self {
            asn,
            router_id: None,
            ebgp_requires_policy: true,
            default_ipv4_unicast: true,
            network_import_check: true,
            graceful_restart: GracefulRestart::default(),
            multipath_relax: false,
            neighbors: BTreeMap::new(),
            listen_limit: None,
            listen_ranges: BTreeMap::new(),
            ipv4: Unicast::default(),
            ipv6: Unicast::default(),
            evpn: Evpn::default(),
        }
    }

    /// The unicast family of an Internet protocol.
    pub fn unicast(&self, family: IpFamily) -> &Unicast {
        match family {
            IpFamily::V4 => &self.ipv4,
            IpFamily::V6 => &self.ipv6,
        }
    }

    /// The same, to be changed.
    pub fn unicast_mut(&mut self, family: IpFamily) -> &mut Unicast {
        match family {
            IpFamily::V4 => &mut self.ipv4,
            IpFamily::V6 => &mut self.ipv6,
        }
    }
}

/// Graceful restart with its timers in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GracefulRestart {
    /// Whether all sessions restart gracefully; otherwise those that ask for it, and all help their peers.
    pub on_all_sessions: bool,
    /// How long peers keep our routes.
    pub restart_time: u16,
    /// How long we keep the routes of a restarting peer.
    pub stale_path_time: u16,
    /// Whether the restart capability reports that forwarding continues during a restart.
    pub preserve_fw_state: bool,
}

impl Default for GracefulRestart {
    fn default() -> Self {
        Self {
            on_all_sessions: false,
            restart_time: 120,
            stale_path_time: 360,
            preserve_fw_state: false,
        }
    }
}

/// Who a session is with. The order is FRR's: groups, devices, addresses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// A group that sessions are made from.
    Group(Name),
    /// The peer at the other end of a device.
    Interface(IfName),
    /// An address.
    Address(IpAddr),
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group(name) => name.fmt(f),
            Self::Interface(name) => name.fmt(f),
            Self::Address(address) => address.fmt(f),
        }
    }
}

/// A session, apart from its address families.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbor {
    /// AS that the peer must have; a group may leave it open.
    pub remote_as: Option<RemoteAs>,
    /// AS number that we have on this session instead of the instance's: the peer sees no other.
    pub local_as: Option<Asn>,
    /// What the session is for, for people who read the router's own output.
    pub description: Option<Description>,
    /// BFD on the session.
    pub bfd: Option<NeighborBfd>,
    /// TCP-MD5 password.
    pub password: Option<Password>,
    /// TCP port to dial.
    pub port: Option<u16>,
    /// How many hops away an external peer may be.
    pub ebgp_multihop: Option<u8>,
    /// Where the session starts from.
    pub update_source: Option<UpdateSource>,
    /// Keepalive and hold time.
    pub timers: Option<Timers>,
    /// Seconds between two attempts to connect.
    pub connect_time: Option<u16>,
    /// Whether IPv4 routes may have IPv6 next hops.
    pub extended_nexthop: bool,
    /// Whether the address of an external peer need not be in a network of the node.
    pub disable_connected_check: bool,
    /// Whether this session restarts gracefully.
    pub graceful_restart: bool,
    /// How many hops away the peer is exactly: what comes from further away is dropped.
    pub ttl_security: Option<u8>,
    /// Switches of the session.
    pub switches: BTreeSet<SessionSwitch>,
}

impl Neighbor {
    /// A session with FRR's defaults.
    pub fn new(remote_as: RemoteAs) -> Self {
        Self {
            remote_as: Some(remote_as),
            ..Self::group()
        }
    }

    /// A group that says nothing yet.
    pub(crate) fn group() -> Self {
        Self {
            remote_as: None,
            local_as: None,
            description: None,
            bfd: None,
            password: None,
            port: None,
            ebgp_multihop: None,
            update_source: None,
            timers: None,
            connect_time: None,
            extended_nexthop: false,
            disable_connected_check: false,
            graceful_restart: false,
            ttl_security: None,
            switches: BTreeSet::new(),
        }
    }
}

/// The AS that a peer must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteAs {
    /// Exactly this one.
    Number(Asn),
    /// Any but ours.
    External,
    /// Ours.
    Internal,
}

impl RemoteAs {
    /// Whether the peer is of another AS than this one, the instance's.
    pub fn is_external(self, asn: Asn) -> bool {
        match self {
            Self::Number(number) => number != asn,
            Self::External => true,
            Self::Internal => false,
        }
    }
}

impl fmt::Display for RemoteAs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(asn) => asn.fmt(f),
            Self::External => f.write_str("external"),
            Self::Internal => f.write_str("internal"),
        }
    }
}

/// BFD on a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NeighborBfd {
    /// The profile; absent means FRR's defaults.
    pub profile: Option<Name>,
    /// Whether a peer that restarts gracefully keeps its routes although BFD goes down with its control plane. Our own
    /// packets then say that BFD is independent of our control plane.
    pub check_control_plane: bool,
}

/// Where a session starts from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdateSource {
    /// The address of a device.
    Device(IfName),
    /// This address.
    Address(IpAddr),
}

impl fmt::Display for UpdateSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(name) => name.fmt(f),
            Self::Address(address) => address.fmt(f),
        }
    }
}

impl FromStr for UpdateSource {
    type Err = <IfName as FromStr>::Err;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(address) => Ok(Self::Address(address)),
            Err(_) => text.parse().map(Self::Device),
        }
    }
}

/// Keepalive and hold time in seconds, with a keepalive of at most a third of the hold time, as FRR clamps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    keepalive: u16,
    hold: u16,
}

impl Timers {
    /// Timers as FRR stores them; `None` for a hold time of 1 or 2, which BGP does not allow.
    pub fn new(keepalive: u16, hold: u16) -> Option<Self> {
        let keepalive = keepalive.min(hold / 3);
        (hold == 0 || hold >= 3).then_some(Self { keepalive, hold })
    }
}

impl fmt::Display for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.keepalive, self.hold)
    }
}

/// One address family of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NeighborFamily {
    /// Whether the family is spoken; FRR keeps the rest where it is not.
    pub activate: bool,
    /// Whether we are the next hop of every route that the peer gets, also of those that came from our own AS.
    pub next_hop_self: bool,
    /// How often our own AS may be in the path of a route that is taken; absent means never.
    pub allowas_in: Option<u8>,
    /// How many routes the peer may send before the session is closed.
    pub maximum_prefix: Option<MaximumPrefix>,
    /// Route map for what the peer sends.
    pub route_map_in: Option<Name>,
    /// Route map for what the peer gets.
    pub route_map_out: Option<Name>,
    /// Prefix list for what the peer sends.
    pub prefix_list_in: Option<Name>,
    /// Prefix list for what the peer gets.
    pub prefix_list_out: Option<Name>,
    /// Weight of routes of the peer.
    pub weight: Option<u16>,
    /// Switches of the family.
    pub switches: BTreeSet<FamilySwitch>,
}

words! {
    /// A setting of a session that is on or off.
    SessionSwitch {
        /// The peer opens the session.
        Passive = "passive",
        /// The session is kept closed.
        Shutdown = "shutdown",
    }
}

words! {
    /// A setting of a family of a session that is on or off.
    FamilySwitch {
        /// The peer gets a default route.
        DefaultOriginate = "default-originate",
        /// We are the next hop of what the peer gets from other ASes.
        NextHopSelf = "next-hop-self",
        /// Private AS numbers are taken out of paths.
        RemovePrivateAs = "remove-private-AS",
        /// The peer is a client of us as route reflector.
        RouteReflectorClient = "route-reflector-client",
        /// What the peer sends is kept as it came.
        SoftReconfiguration = "soft-reconfiguration inbound",
    }
}

/// A limit of routes that a peer may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaximumPrefix {
    /// The session is closed above this.
    pub limit: u32,
    /// Minutes after which the session is opened again; absent means never by itself.
    pub restart: Option<u16>,
}

impl fmt::Display for MaximumPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, restart } = self;
        match restart {
            None => write!(f, "{limit}"),
            Some(minutes) => write!(f, "{limit} restart {minutes}"),
        }
    }
}

/// A unicast address family of a BGP instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unicast {
    /// Networks that the instance announces by itself.
    pub networks: BTreeSet<Prefix>,
    /// Networks that are announced as a whole while there is a route to a part of them.
    pub aggregates: BTreeSet<Prefix>,
    /// Other routes that become BGP routes, with the route map they pass.
    pub redistribute: BTreeMap<RedistributeSource, Option<Name>>,
    /// Peers that exchange routes of the family.
    pub neighbors: BTreeMap<Peer, NeighborFamily>,
    /// Route map for what comes from other VRFs.
    pub import_route_map: Option<Name>,
    /// VRFs that routes are taken over from.
    pub import_vrfs: BTreeSet<IfName>,
    /// How many paths of external peers share the traffic.
    pub maximum_paths: Option<u16>,
}

/// Where redistributed routes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RedistributeSource {
    /// Networks of the VRF's devices.
    Connected,
    /// Routes that others put into the kernel.
    Kernel,
    /// Static routes.
    Static,
}

impl RedistributeSource {
    /// The word for it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Kernel => "kernel",
            Self::Static => "static",
        }
    }
}
