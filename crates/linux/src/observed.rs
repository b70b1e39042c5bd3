//! The fact: what the kernel holds, foreign objects included and marked.

use std::collections::{BTreeMap, BTreeSet};

use api::value::MacAddress;
use ipnet::IpNet;

use crate::{
    filter::{FilterId, ObservedFilter},
    nic::NicMemory,
    object::{AddrGen, BridgePort, Domain, Kind, LinkId, Route, RouteId, Rule},
    owned::Owner,
    sysctl::SysctlId,
};

/// What both namespaces hold.
///
/// Links and rules of others are here too. Routes are ours alone: a router may hold a million of FRR's, and the kernel
/// filters them for us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// The router's namespace, if it exists.
    pub namespace: Option<ObservedNamespace>,
    /// All links of both namespaces.
    pub links: BTreeMap<LinkId, ObservedLink>,
    /// Our routes.
    pub routes: BTreeMap<RouteId, Route>,
    /// All rules that say no more than [`Rule`] can.
    pub rules: BTreeMap<Rule, Owner>,
    /// The settings that we care for. `None` where this kernel does not know the setting.
    pub sysctls: BTreeMap<SysctlId, Option<String>>,
    /// The router's links on which filters can be hung.
    pub hooks: BTreeSet<LinkId>,
    /// All filters of the router's links, by their places.
    pub filters: BTreeMap<FilterId, ObservedFilter>,
    /// What NICs had before they were moved, by name. The kernel does not know it: the agent does.
    pub nic_memory: BTreeMap<String, NicMemory>,
}

/// A namespace that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedNamespace {
    /// Its name below `/run/netns`.
    pub name: String,
    /// Who made it. One that Selvedge did not make is used but never removed.
    pub owner: Owner,
}

/// A link that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedLink {
    /// Whose it is.
    pub owner: Owner,
    /// What it is.
    pub kind: Kind,
    /// Note for people, and memory of a moved NIC.
    pub alias: Option<String>,
    /// Maximum transmission unit.
    pub mtu: u32,
    /// Hardware address.
    pub mac: Option<MacAddress>,
    /// Whether it is administratively up.
    pub up: bool,
    /// The bridge, VRF or bond it belongs to.
    pub master: Option<String>,
    /// How it gets its link-local address.
    pub addr_gen: AddrGen,
    /// What its bridge does on it, if it belongs to one.
    pub port: Option<BridgePort>,
    /// Its addresses.
    pub addresses: BTreeSet<IpNet>,
}

impl ObservedLink {
    /// A link as the kernel makes it: down, with defaults.
    pub fn fresh(owner: Owner, kind: Kind) -> Self {
        Self {
            owner,
            kind,
            alias: None,
            mtu: 1500,
            mac: None,
            up: false,
            master: None,
            addr_gen: AddrGen::Kernel,
            port: None,
            addresses: BTreeSet::new(),
        }
    }
}

impl Observed {
    /// The links of one domain.
    pub fn links_in(&self, domain: Domain) -> impl Iterator<Item = (&LinkId, &ObservedLink)> {
        self.links.iter().filter(move |(id, _)| id.domain == domain)
    }

    /// The links we made.
    pub fn ours(&self) -> impl Iterator<Item = (&LinkId, &ObservedLink)> {
        self.links
            .iter()
            .filter(|(_, link)| link.owner == Owner::Ours)
    }
}
