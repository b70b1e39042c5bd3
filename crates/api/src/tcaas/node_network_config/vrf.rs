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

/// A VRF on a node with its devices, routes and BGP instance.
///
/// One type for cluster, fabric and local VRFs; the EVPN fields are set only if the VRF has a VNI.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Vrf {
    /// `L3VNI` that defines VNI and route targets of the VRF, as `namespace/name`. The node ignores it; the operator uses it to keep
    /// the VRF with its object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// VXLAN network identifier (VNI) of the VRF, 1–16777215. Absent for a VRF that is local to the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vni: Option<Vni>,
    /// Route targets of EVPN routes that the VRF imports from the fabric.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evpn_import_route_targets: Vec<ImportRouteTarget>,
    /// Route targets of EVPN routes that the VRF exports to the fabric.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evpn_export_route_targets: Vec<RouteTarget>,
    /// Filter for routes that the VRF exports to the fabric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evpn_export_filter: Option<Filter>,
    /// Loopback devices of the VRF, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub loopbacks: BTreeMap<String, Loopback>,
    /// AS number of the BGP instance of the VRF. Default: the AS number of the Underlay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asn: Option<Asn>,
    /// BGP session with a BGP speaker on the host. Its routes are exported to the fabric regardless of `evpnExportFilter`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_session: Option<HostSession>,
    /// BGP sessions inside the VRF.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bgp_peers: Vec<BgpPeer>,
    /// Routes imported from other VRFs of the node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vrf_imports: Vec<VrfImport>,
    /// Static routes of the VRF.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub static_routes: Vec<StaticRoute>,
    /// Aggregates: announced while the VRF has a BGP route to a more specific prefix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aggregates: Vec<Prefix>,
    /// Policy rules that route traffic through another VRF.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policy_routes: Vec<PolicyRoute>,
    /// Mirror rules for traffic of the VRF.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mirror_acls: Vec<MirrorAcl>,
    /// Filters for connected and static routes that are redistributed into BGP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redistribute: Option<Redistribute>,
    /// GRE tunnels of the VRF, by device name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gres: BTreeMap<String, Gre>,
    /// Number of the kernel routing table.
    pub table: u32,
    /// Names of the devices of the VRF.
    pub devices: VrfDevices,
    /// MTU of bridge and VXLAN in bytes.
    pub mtu: Mtu,
    /// UDP port of the VXLAN device. Default: 4789.
    #[serde(default = "super::layer2::vxlan_port")]
    pub vxlan_port: u16,
    /// Uses `underlay.otherVtep` as the source of the VXLAN, instead of `underlay.vtep`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_other_vtep: bool,
}

/// Names of a VRF's devices in the router's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VrfDevices {
    /// VRF device. FRR uses the same name for the VRF.
    pub vrf: IfName,
    /// Bridge of the L3 VNI. Absent for a VRF without a VNI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge: Option<IfName>,
    /// VXLAN device of the L3 VNI. Absent for a VRF without a VNI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vxlan: Option<IfName>,
}

/// A loopback device of a VRF.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Loopback {
    /// Addresses with prefix length; at least one.
    #[schemars(length(min = 1))]
    pub ip_addresses: Vec<HostCidr>,
}

/// Routes imported from another VRF of the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VrfImport {
    /// Name of the VRF from which routes are imported.
    pub from_vrf: String,
    /// Filter for the imported routes.
    pub filter: Filter,
}

/// A static route. Without a next hop, matching packets are dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StaticRoute {
    /// Destination prefix of the route.
    pub prefix: Prefix,
    /// Next hop of the route. Absent: matching packets are dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_hop: Option<NextHop>,
    /// BFD session to the next hop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bfd_profile: Option<BfdProfile>,
}

/// Next hop of a route: an address, or another VRF.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextHop {
    /// IP address of the next hop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub address: Option<IpAddr>,
    /// Name of the VRF that routes the packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vrf: Option<String>,
}

/// A policy rule that routes traffic through another VRF.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRoute {
    /// Traffic to which the rule applies.
    pub traffic_match: TrafficMatch,
    /// VRF that routes the traffic.
    pub next_hop: NextHop,
    /// Priority of the kernel rule; the smallest is evaluated first.
    pub priority: u32,
    /// Additional incoming devices in the VRF to which the rule applies, besides the trunk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<IfName>,
}

/// Filters for routes that are redistributed into BGP. An absent filter redistributes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Redistribute {
    /// Filter for connected routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connected: Option<Filter>,
    /// Filter for static routes.
    #[serde(default, rename = "static", skip_serializing_if = "Option::is_none")]
    pub statics: Option<Filter>,
}

/// A mirror rule that copies traffic into a tunnel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MirrorAcl {
    /// Traffic to which the rule applies.
    pub traffic_match: TrafficMatch,
    /// Tunnel device that receives the copies.
    pub mirror_destination: IfName,
    /// Direction as seen by the workload: `ingress` (to the workload) or `egress` (from it).
    pub direction: MirrorDirection,
}

/// A GRE tunnel inside a VRF.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gre {
    /// Remote IP address of the tunnel.
    #[schemars(with = "String")]
    pub destination_address: IpAddr,
    /// Local IP address of the tunnel: an address of a loopback of the VRF.
    #[schemars(with = "String")]
    pub source_address: IpAddr,
    /// Loopback device that carries the local address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_interface: Option<IfName>,
    /// Payload of the tunnel: `layer2` (Ethernet frames) or `layer3` (IP packets). Default: `layer3`.
    #[serde(default)]
    pub layer: GreLayer,
    /// GRE key of the tunnel, 0–4294967295. Default: no key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encapsulation_key: Option<u32>,
}

/// Payload of a GRE tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GreLayer {
    /// Frames.
    Layer2,
    /// Packets.
    #[default]
    Layer3,
}
