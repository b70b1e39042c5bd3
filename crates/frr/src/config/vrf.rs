//! VRFs as zebra and staticd know them.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use api::value::{IfName, Prefix, Vni};

use super::name::Name;

/// A VRF's part outside of BGP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vrf {
    /// The VNI that carries the VRF through the fabric.
    pub vni: Option<Vni>,
    /// Static routes, with the BFD profile that watches the next hop.
    pub static_routes: BTreeMap<StaticRoute, Option<Name>>,
}

/// A static route; several next hops of one prefix are several routes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StaticRoute {
    /// Where to.
    pub prefix: Prefix,
    /// Through whom.
    pub via: Via,
}

/// The next hop of a static route.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Via {
    /// An address, of another VRF where one is named.
    Address(IpAddr, Option<IfName>),
    /// Another VRF, which looks the destination up once more.
    Vrf(IfName),
    /// No next hop: the packet is dropped.
    Blackhole,
}

impl Vrf {
    /// Prefixes that are both dropped and routed, which FRR refuses.
    pub(crate) fn contradictions(&self) -> BTreeSet<Prefix> {
        let dropped: BTreeSet<Prefix> = self
            .static_routes
            .keys()
            .filter(|route| route.via == Via::Blackhole)
            .map(|route| route.prefix)
            .collect();
        self.static_routes
            .keys()
            .filter(|route| route.via != Via::Blackhole && dropped.contains(&route.prefix))
            .map(|route| route.prefix)
            .collect()
    }
}
