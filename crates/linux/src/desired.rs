//! What a node's config asks of the kernel.
//!
//! A pure function of the contract. Names, tables, addresses and priorities are taken as given; whatever the config
//! asks for and this crate does not support is returned as [`Unsupported`], never ignored. Unsupported mirrors are returned in
//! [`Desired::unmirrored`]: they do not prevent anything else.

mod host_session;
mod host_vlan;
mod layer2;
mod mirror;
mod policy;
mod underlay;
mod vrf;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::IpAddr,
    sync::Arc,
};

use api::{
    tcaas::node_network_config::{CONTRACT_VERSION, NodeNetworkConfigSpec, Underlay, Vrf},
    value::{HostCidr, MacAddress},
};
use ipnet::IpNet;

use crate::{
    filter::Filter,
    object::{AddrGen, BridgePort, Kind, LinkId, Route, RouteId, Rule},
    owned,
    sysctl::SysctlId,
};

/// Everything the kernel should hold. The default is nothing: that is what a node that is given back should have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Desired {
    /// Name of the router's namespace; absent where there should be none.
    pub namespace: Option<String>,
    /// Host NICs that belong into the router's namespace.
    pub nics: BTreeSet<String>,
    /// Addresses of the router's loopback: the tunnel endpoint.
    pub loopback: BTreeSet<IpNet>,
    /// Links to be made.
    pub links: BTreeMap<LinkId, DesiredLink>,
    /// Routes.
    pub routes: BTreeMap<RouteId, Route>,
    /// Rules.
    pub rules: BTreeSet<Rule>,
    /// Kernel settings.
    pub sysctls: BTreeMap<SysctlId, String>,
    /// What is copied into which tunnel.
    pub filters: BTreeSet<Filter>,
    /// Mirrors that the config asks for and that cannot be had.
    pub unmirrored: Vec<Unsupported>,
    /// Ports of segments that cannot be put into the bridge that the config names.
    pub unattached: Vec<Unsupported>,
}

/// A link to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesiredLink {
    /// What it is.
    pub kind: Kind,
    /// Its alias, for people.
    pub alias: String,
    /// When it is made and set up.
    pub timing: Timing,
    /// Maximum transmission unit, where it matters.
    pub mtu: Option<u32>,
    /// Hardware address, where it matters.
    pub mac: Option<MacAddress>,
    /// The bridge or VRF it belongs to.
    pub master: Option<String>,
    /// How it gets its link-local address.
    pub addr_gen: AddrGen,
    /// What its bridge does on it, where that matters.
    pub port: Option<BridgePort>,
    /// Its addresses: these and, but for what the kernel makes itself, no others.
    pub addresses: BTreeSet<IpNet>,
    /// Whether it is made for other programs of the host: they may give it addresses, and a master where none is wished.
    pub shared: bool,
}

/// When a link is made and set up, seen from the change of FRR's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timing {
    /// Both before: FRR will refer to it.
    Before,
    /// Made before and set up after: FRR reads the router MAC from the bridge when it comes up, and must know by then
    /// that its VNI is one of a VRF, or it takes it for a segment.
    Split,
    /// Both after: FRR finds it by itself.
    After,
    /// Both after everything else, as part of a mirror, whose failure fails nothing else.
    Mirror,
}

impl DesiredLink {
    /// A link that is made to see whether it can be made.
    #[cfg(feature = "netlink")]
    pub(crate) fn probe(kind: Kind) -> Self {
        Self::new(kind, "probe", Timing::Before)
    }

    fn new(kind: Kind, what: &str, timing: Timing) -> Self {
        Self {
            kind,
            alias: owned::alias(what),
            timing,
            mtu: None,
            mac: None,
            master: None,
            addr_gen: AddrGen::None,
            port: None,
            addresses: BTreeSet::new(),
            shared: false,
        }
    }
}

/// Something the config asks for that cannot be done.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unsupported {
    /// Where in the config, such as `layer2s.100.irb`.
    pub path: String,
    /// Why not.
    pub why: String,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.why)
    }
}

/// What a node's config asks of the kernel, or everything in it that cannot be done.
///
/// Structures of the contract are taken apart without `..`: a new field does not compile until it is decided here what it means to the
/// kernel. Fields that are bound to `_` mean something to FRR alone.
pub fn desired(config: &NodeNetworkConfigSpec) -> Result<Desired, Vec<Unsupported>> {
    let NodeNetworkConfigSpec {
        contract_version,
        // It names the config and configures nothing.
        revision: _,
        underlay,
        layer2s,
        cluster_vrf,
        fabric_vrfs,
        local_vrfs,
        passthroughs,
        host_vlans,
        host_loopbacks,
        // Devices of the host's router are made by others.
        host_router: _,
        // The agent reads it when it measures health.
        health: _,
    } = config;
    let mut builder = Builder {
        config,
        desired: Desired::default(),
        unsupported: Vec::new(),
    };
    if *contract_version > CONTRACT_VERSION {
        let why = format!("is newer than {CONTRACT_VERSION}, the newest this version reads");
        builder.refuse("contractVersion", why);
    }
    let vrfs: Vec<(String, &Vrf)> = cluster_vrf
        .iter()
        .map(|vrf| ("clusterVRF".to_owned(), &**vrf))
        .chain(keyed("fabricVRFs", fabric_vrfs))
        .chain(keyed("localVRFs", local_vrfs))
        .collect();
    if let Some(underlay) = underlay {
        builder.underlay(underlay);
    }
    builder.vrfs(&vrfs);
    builder.passthroughs(passthroughs);
    builder.layer2s(layer2s);
    builder.host_vlans(host_vlans);
    builder.host_loopbacks(host_loopbacks);
    builder.mirrors(&vrfs, layer2s);
    if builder.unsupported.is_empty() {
        Ok(builder.desired)
    } else {
        Err(builder.unsupported)
    }
}

fn keyed<'a>(
    list: &'static str,
    vrfs: &'a BTreeMap<String, Arc<Vrf>>,
) -> impl Iterator<Item = (String, &'a Vrf)> {
    let path = move |(name, vrf): (&String, &'a Arc<Vrf>)| (format!("{list}.{name}"), &**vrf);
    vrfs.iter().map(path)
}

/// Builds it, part by part.
struct Builder<'a> {
    config: &'a NodeNetworkConfigSpec,
    desired: Desired,
    unsupported: Vec<Unsupported>,
}

impl<'a> Builder<'a> {
    fn refuse(&mut self, path: impl Into<String>, why: impl Into<String>) {
        self.unsupported.push(Unsupported {
            path: path.into(),
            why: why.into(),
        });
    }

    /// Takes in a link, unless its name is taken by another part of the config.
    fn link(&mut self, path: &str, id: LinkId, mut link: DesiredLink) {
        let too_small = link.mtu.is_some_and(|mtu| mtu < IPV6_MIN_MTU);
        if too_small {
            link.addr_gen = AddrGen::None;
        }
        let is_nic = self.desired.nics.contains(&id.name);
        if is_nic || id.name == "lo" || self.desired.links.contains_key(&id) {
            self.refuse(path, format!("the name {id} is used twice"));
        } else if too_small
            && link
                .addresses
                .iter()
                .any(|address| address.addr().is_ipv6())
        {
            let why = format!("{id} has an IPv6 address and an MTU below {IPV6_MIN_MTU}");
            self.refuse(path, why);
        } else {
            self.desired.links.insert(id, link);
        }
    }

    /// The VRF that the config calls `name`: by its key, or by its device where the key is not written anywhere.
    fn vrf_named(&self, name: &str) -> Option<&'a Vrf> {
        let config = self.config;
        config
            .fabric_vrfs
            .get(name)
            .or_else(|| config.local_vrfs.get(name))
            .map(|vrf| &**vrf)
            .or_else(|| config.vrfs().find(|vrf| vrf.devices.vrf.as_str() == name))
    }
}

/// The node's tunnel endpoint, or that of the other address family.
fn endpoint(underlay: &Underlay, other: bool) -> Option<IpAddr> {
    if other {
        underlay.other_vtep
    } else {
        underlay.vtep
    }
}

/// The field that a tunnel endpoint stands in.
fn endpoint_field(other: bool) -> &'static str {
    if other {
        "underlay.otherVtep"
    } else {
        "underlay.vtep"
    }
}

/// Below this MTU the kernel gives a link no IPv6 at all.
pub(crate) const IPV6_MIN_MTU: u32 = 1280;

fn nets(addresses: &[HostCidr]) -> BTreeSet<IpNet> {
    addresses.iter().map(|address| address.net()).collect()
}
