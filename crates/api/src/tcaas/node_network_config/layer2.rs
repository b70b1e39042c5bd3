//! A layer 2 segment on a node.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    host::HostPort,
    vrf::{MirrorAcl, StaticRoute},
};
use crate::value::{HostCidr, IfName, MacAddress, Mtu, RouteTarget, VlanId, Vni};

/// A layer 2 segment of the fabric, carried by a VXLAN: a VLAN on the trunk, or a veth pair to the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Layer2 {
    /// `L2VNI` from which the segment was generated, as `namespace/name`. The node ignores it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// VXLAN network identifier (VNI) of the segment, 1–16777215.
    pub vni: Vni,
    /// VLAN ID of the segment on the trunk, 1–4094. Exactly one of `vlan` and `hostPort` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<VlanId>,
    /// Route target of the segment. Default: derived by FRR from AS number and VNI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_target: Option<RouteTarget>,
    /// MTU of all devices of the segment in bytes.
    pub mtu: Mtu,
    /// Anycast gateway of the segment. Absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub irb: Option<Irb>,
    /// Mirror rules for traffic of the segment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mirror_acls: Vec<MirrorAcl>,
    /// Disables segmentation offloads on the access port.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disable_segmentation: bool,
    /// Answers ARP and IPv6 neighbor discovery for hosts behind the fabric instead of flooding them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub neigh_suppression: bool,
    /// Names of the devices of the segment in the namespace of the router.
    pub devices: Layer2Devices,
    /// UDP port of the VXLAN device. Default: 4789.
    #[serde(default = "vxlan_port")]
    pub vxlan_port: u16,
    /// Uses `underlay.otherVtep` as the source of the VXLAN, instead of `underlay.vtep`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_other_vtep: bool,
    /// Host end of the veth pair. Absent for a VLAN on the trunk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_port: Option<HostPort>,
    /// Interface of the segment in the namespace of the host. Absent if it has none.
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
    /// Bridge that connects access port and VXLAN, and carries the gateway.
    pub bridge: IfName,
    /// VXLAN device of the segment.
    pub vxlan: IfName,
    /// Bridge port towards the host: the VLAN on the trunk, or the router end of the veth pair.
    pub access_port: IfName,
}

/// The anycast gateway of a segment, the same on every node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Irb {
    /// Name of the VRF that routes the segment.
    pub vrf: String,
    /// MAC address of the gateway.
    pub mac_address: MacAddress,
    /// Addresses of the gateway with prefix length; at least one.
    #[schemars(length(min = 1))]
    pub ip_addresses: Vec<HostCidr>,
}

/// A VLAN device in the namespace of the host on an existing device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostVlan {
    /// Existing parent device of the host. It is never modified.
    pub parent: IfName,
    /// VLAN ID of the device, 1–4094.
    pub vlan: VlanId,
    /// MTU of the device in bytes.
    pub mtu: Mtu,
    /// Addresses of the node in the segment, with prefix length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<HostCidr>,
    /// Static routes of the host through the segment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<StaticRoute>,
}

/// A loopback device in the namespace of the host, for programs with a BGP session to the router.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostLoopback {
    /// Addresses with prefix length; at least one.
    #[schemars(length(min = 1))]
    pub addresses: Vec<HostCidr>,
}

/// A VLAN device in the namespace of the host on the host end of the trunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostInterface {
    /// Name of the device.
    pub name: IfName,
    /// Addresses of the node in the segment, with prefix length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<HostCidr>,
    /// Static routes of the host through the segment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<StaticRoute>,
}
