//! A layer 2 segment on a node.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    host::HostPort,
    vrf::{MirrorAcl, StaticRoute},
};
use crate::value::{HostCidr, IfName, MacAddress, Mtu, RouteTarget, VlanId, Vni};

/// A segment that is stretched over the fabric by a VXLAN: a VLAN of the trunk, or a pair of devices to the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Layer2 {
    /// The `L2VNI` that the segment was made from, as `namespace/name`. The node does nothing with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// VXLAN network identifier of the segment.
    pub vni: Vni,
    /// VLAN of the segment on the trunk; exactly one of `vlan` and `hostPort` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<VlanId>,
    /// Route target of the segment; absent means the one FRR derives from AS and VNI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_target: Option<RouteTarget>,
    /// MTU of all devices of the segment.
    pub mtu: Mtu,
    /// The gateway of the segment, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub irb: Option<Irb>,
    /// What to copy of the segment's traffic, and where to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mirror_acls: Vec<MirrorAcl>,
    /// Whether segmentation offloads are switched off on the access port.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disable_segmentation: bool,
    /// Whether the router answers neighbor requests for hosts behind the fabric instead of flooding them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub neigh_suppression: bool,
    /// Names of the segment's devices in the router's namespace.
    pub devices: Layer2Devices,
    /// UDP port of the VXLAN.
    #[serde(default = "vxlan_port")]
    pub vxlan_port: u16,
    /// Whether the VXLAN starts from the node's tunnel endpoint of the other address family.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_other_vtep: bool,
    /// The other end of the access port, where that is one of a pair of devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_port: Option<HostPort>,
    /// The segment's interface in the host's namespace, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_interface: Option<HostInterface>,
}

/// The port that IANA gave to VXLAN.
pub(super) fn vxlan_port() -> u16 {
    4789
}

/// Names of a segment's devices in the router's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Layer2Devices {
    /// The bridge that joins access port and VXLAN, and carries the gateway.
    pub bridge: IfName,
    /// The VXLAN.
    pub vxlan: IfName,
    /// The bridge's port towards the host: the VLAN on the trunk, or the router's end of the pair of devices.
    pub access_port: IfName,
}

/// The anycast gateway of a segment: the same on every node that has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Irb {
    /// VRF that routes the segment.
    pub vrf: String,
    /// MAC address of the gateway.
    pub mac_address: MacAddress,
    /// Addresses of the gateway; at least one.
    #[schemars(length(min = 1))]
    pub ip_addresses: Vec<HostCidr>,
}

/// A VLAN device in the host's namespace on a device that the host has of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostVlan {
    /// The host's device below, which is never touched.
    pub parent: IfName,
    /// VLAN id.
    pub vlan: VlanId,
    /// MTU of the device.
    pub mtu: Mtu,
    /// The node's own addresses in the segment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<HostCidr>,
    /// Routes of the host through the segment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<StaticRoute>,
}

/// A device in the host's namespace that carries addresses and nothing else, for programs that speak BGP with the router.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostLoopback {
    /// The addresses; at least one.
    #[schemars(length(min = 1))]
    pub addresses: Vec<HostCidr>,
}

/// A VLAN device in the host's namespace on the host's end of the trunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostInterface {
    /// Name of the device.
    pub name: IfName,
    /// The node's own addresses in the segment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<HostCidr>,
    /// Routes of the host through the segment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<StaticRoute>,
}
