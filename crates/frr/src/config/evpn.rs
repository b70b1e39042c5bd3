//! The address family `l2vpn evpn` of a BGP instance.

use std::collections::{BTreeMap, BTreeSet};

use api::value::{Asn, ImportRouteTarget, RouteDistinguisher, RouteTarget, Vni};

use super::{
    bgp::{NeighborFamily, Peer},
    name::Name,
};

/// What a BGP instance does with EVPN.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evpn {
    /// Peers that exchange EVPN routes.
    pub neighbors: BTreeMap<Peer, NeighborFamily>,
    /// Whether this instance is the one that announces the node's VNIs.
    pub advertise_all_vni: bool,
    /// Whether the addresses of the node's own devices in its segments are announced.
    pub advertise_svi_ip: bool,
    /// Single VNIs, where their values are not those FRR derives.
    pub vnis: BTreeMap<Vni, VniTargets>,
    /// Whether the VRF's IPv4 routes go into the fabric.
    pub advertise_ipv4: Option<Advertise>,
    /// Whether the VRF's IPv6 routes go into the fabric.
    pub advertise_ipv6: Option<Advertise>,
    /// Route distinguisher of the VRF's routes.
    pub rd: Option<RouteDistinguisher>,
    /// Route targets whose routes the VRF takes in.
    pub import_targets: BTreeSet<ImportRouteTarget>,
    /// Route targets that the VRF's routes carry.
    pub export_targets: BTreeSet<RouteTarget>,
}

/// That routes go into the fabric, and which.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advertise {
    /// The route map they pass; absent means all go.
    pub route_map: Option<Name>,
}

/// Route distinguisher and route targets of a VNI.
///
/// A set with nothing but the target that FRR derives is the same as an empty one: FRR does not store it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VniTargets {
    /// Route distinguisher of its routes.
    pub rd: Option<RouteDistinguisher>,
    /// Whose routes are taken in.
    pub import: BTreeSet<ImportRouteTarget>,
    /// What its routes carry.
    pub export: BTreeSet<RouteTarget>,
}

impl VniTargets {
    /// Clears a set that says no more than what FRR derives.
    pub(crate) fn forget_derived(&mut self, asn: Asn, vni: Vni) {
        let Some(derived) = derived_target(asn, vni) else {
            return;
        };
        if self.export == BTreeSet::from([derived]) {
            self.export.clear();
        }
        if self.import == BTreeSet::from([derived.into()]) {
            self.import.clear();
        }
    }
}

/// The route target that FRR derives for a VNI: the low half of the AS number, and the VNI.
pub fn derived_target(asn: Asn, vni: Vni) -> Option<RouteTarget> {
    format!("{}:{vni}", asn.get() & 0xffff).parse().ok()
}
