//! The address family `l2vpn evpn` of a BGP instance.

use std::collections::{BTreeMap, BTreeSet};

use api::value::{ImportRouteTarget, RouteTarget, Vni};

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
    /// Route targets of single VNIs, where they are not those FRR derives.
    pub vnis: BTreeMap<Vni, VniTargets>,
    /// Whether the VRF's IPv4 routes go into the fabric.
    pub advertise_ipv4: Option<Advertise>,
    /// Whether the VRF's IPv6 routes go into the fabric.
    pub advertise_ipv6: Option<Advertise>,
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

/// Route targets of a VNI.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VniTargets {
    /// Whose routes are taken in.
    pub import: BTreeSet<RouteTarget>,
    /// What its routes carry.
    pub export: BTreeSet<RouteTarget>,
}
