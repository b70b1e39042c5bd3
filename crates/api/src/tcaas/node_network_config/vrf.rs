//! A VRF on a node.

use std::{collections::BTreeMap, net::IpAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    bgp::{BfdProfile, BgpPeer},
    filter::Filter,
    host::HostSession,
};
use crate::{
    tcaas::{MirrorDirection, TrafficMatch},
    value::{Asn, HostCidr, IfName, ImportRouteTarget, Mtu, Prefix, RouteTarget, Vni},
};

/// A routing table of its own, with its devices, routes and BGP instance.
///
/// One type for cluster, fabric and local VRFs; the EVPN fields are set only where the VRF has a VNI.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Vrf {
    /// The `L3VNI` that gives the VRF its numbers, as `namespace/name`. The node does nothing with it: the operator leaves what runs to its
    /// object by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// VXLAN network identifier of the VRF; absent for a VRF of this node alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vni: Option<Vni>,
    /// Route targets whose routes the VRF takes in from the fabric.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evpn_import_route_targets: Vec<ImportRouteTarget>,
    /// Route targets that the VRF's routes carry into the fabric.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evpn_export_route_targets: Vec<RouteTarget>,
    /// Which of the VRF's routes go into the fabric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evpn_export_filter: Option<Filter>,
    /// Devices that carry addresses of the VRF itself, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub loopbacks: BTreeMap<String, Loopback>,
    /// AS number of the VRF's BGP instance; absent means that of the Underlay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asn: Option<Asn>,
    /// Session with a BGP speaker on the host. The routes that it brings go into the fabric whatever `evpnExportFilter` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_session: Option<HostSession>,
    /// BGP sessions inside the VRF.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bgp_peers: Vec<BgpPeer>,
    /// Routes taken over from other VRFs of the node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vrf_imports: Vec<VrfImport>,
    /// Static routes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub static_routes: Vec<StaticRoute>,
    /// Networks that are announced as a whole while the VRF has a BGP route to a part of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aggregates: Vec<Prefix>,
    /// Traffic that is routed by another VRF.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policy_routes: Vec<PolicyRoute>,
    /// What to copy of the VRF's traffic, and where to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mirror_acls: Vec<MirrorAcl>,
    /// Which connected and static routes become BGP routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redistribute: Option<Redistribute>,
    /// GRE tunnels, by device name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gres: BTreeMap<String, Gre>,
    /// The kernel's routing table.
    pub table: u32,
    /// Names of the VRF's devices.
    pub devices: VrfDevices,
    /// MTU of bridge and VXLAN.
    pub mtu: Mtu,
    /// UDP port of the VXLAN.
    #[serde(default = "super::layer2::vxlan_port")]
    pub vxlan_port: u16,
    /// Whether the VXLAN starts from the node's tunnel endpoint of the other address family.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_other_vtep: bool,
}

/// Names of a VRF's devices in the router's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VrfDevices {
    /// The VRF device; FRR knows the VRF by this name.
    pub vrf: IfName,
    /// The bridge of the L3 VNI, where the VRF has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge: Option<IfName>,
    /// The VXLAN of the L3 VNI, where the VRF has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vxlan: Option<IfName>,
}

/// A device that carries addresses of the VRF itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Loopback {
    /// The addresses; at least one.
    #[schemars(length(min = 1))]
    pub ip_addresses: Vec<HostCidr>,
}

/// Routes taken over from another VRF of the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VrfImport {
    /// The VRF they come from.
    pub from_vrf: String,
    /// Which of them.
    pub filter: Filter,
}

/// A static route; one without a next hop drops what it matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StaticRoute {
    /// Where to.
    pub prefix: Prefix,
    /// Through whom; absent means nobody: the packet is dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_hop: Option<NextHop>,
    /// BFD towards the next hop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bfd_profile: Option<BfdProfile>,
}

/// Where a packet goes next: to an address, or into another VRF.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextHop {
    /// Address of the next hop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub address: Option<IpAddr>,
    /// VRF that routes the packet further.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vrf: Option<String>,
}

/// Traffic that another VRF routes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRoute {
    /// Which traffic.
    pub traffic_match: TrafficMatch,
    /// Which VRF.
    pub next_hop: NextHop,
    /// Priority of the kernel's rule.
    pub priority: u32,
    /// Devices in the VRF, beside the trunk, through which the traffic comes in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<IfName>,
}

/// Which connected and static routes become BGP routes; an absent part means none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Redistribute {
    /// Of the connected routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connected: Option<Filter>,
    /// Of the static routes.
    #[serde(default, rename = "static", skip_serializing_if = "Option::is_none")]
    pub statics: Option<Filter>,
}

/// A rule that copies traffic into a tunnel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MirrorAcl {
    /// Which traffic.
    pub traffic_match: TrafficMatch,
    /// Device the copies leave through.
    pub mirror_destination: IfName,
    /// Direction as the workload sees it.
    pub direction: MirrorDirection,
}

/// A GRE tunnel inside a VRF.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gre {
    /// The far end.
    #[schemars(with = "String")]
    pub destination_address: IpAddr,
    /// The near end: an address of one of the VRF's loopbacks.
    #[schemars(with = "String")]
    pub source_address: IpAddr,
    /// The loopback that carries the near end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_interface: Option<IfName>,
    /// What the tunnel carries.
    #[serde(default)]
    pub layer: GreLayer,
    /// Key of the tunnel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encapsulation_key: Option<u32>,
}

/// What a GRE tunnel carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GreLayer {
    /// Frames.
    Layer2,
    /// Packets.
    #[default]
    Layer3,
}
