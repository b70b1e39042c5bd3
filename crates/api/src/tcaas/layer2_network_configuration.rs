//! `Layer2NetworkConfiguration`: one layer 2 segment on nodes, with all its numbers.

use std::{collections::BTreeMap, net::IpAddr};

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AddressLists, address_lists::WrittenAddressLists};
use crate::{
    meta::{Conditions, LabelSelector},
    schema::{Address, is_false, rules},
    value::{HostCidr, IfName, MacAddress, Mtu, Prefix, VlanId, Vni, VrfName},
};

/// A layer 2 segment on nodes: a VLAN with its VXLAN and gateway, or a VLAN on an existing interface of the node. Usually generated
/// from a `Layer2Attachment`.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "Layer2NetworkConfiguration",
    status = "Layer2NetworkConfigurationStatus",
    derive = "PartialEq",
    shortname = "layer2",
    category = "selvedge",
    printcolumn = r#"{"name":"VLAN","type":"integer","jsonPath":".spec.id"}"#,
    printcolumn = r#"{"name":"Gateway","type":"string","jsonPath":".spec.anycastGateways"}"#,
    printcolumn = r#"{"name":"VRF","type":"string","jsonPath":".spec.vrf"}"#,
    printcolumn = r#"{"name":"VNI","type":"integer","jsonPath":".spec.vni","priority":10}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    ("has(self.vni) || has(self.interfaceRef)", "vni is required unless interfaceRef is set"),
    (
        "!(has(self.nodeIPs) && self.nodeIPs.enabled) \
         || (has(self.nodeIPs.networks) && size(self.nodeIPs.networks) > 0) \
         || (has(self.anycastGateways) && size(self.anycastGateways) > 0)",
        "nodeIPs needs networks, or anycastGateways whose networks the addresses come from",
    ),
])))]
pub struct Layer2NetworkConfigurationSpec {
    /// VLAN ID of the segment, 1–4094.
    pub id: VlanId,
    /// MTU of the segment in bytes, 1000–9000.
    pub mtu: Mtu,
    /// VXLAN network identifier (VNI) of the segment, 1–16777215. Required unless `interfaceRef` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vni: Option<Vni>,
    /// MAC address of the anycast gateway, the same on every node. Default: `Settings.spec.anycastMAC`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anycast_mac: Option<MacAddress>,
    /// Addresses of the anycast gateway with prefix length, such as `198.51.100.1/24`. Default: no gateway.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub anycast_gateways: Vec<HostCidr>,
    /// Announces the neighbors learned on the segment to the fabric as host routes. Segments with a gateway in a fabric VRF always do;
    /// without such a gateway the field has no effect. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub advertise_neighbors: bool,
    /// Deprecated: accepted for compatibility and ignored. Create macvlans on the interface that `interfaceName` defines.
    #[serde(
        default,
        rename = "createMacVLANInterface",
        skip_serializing_if = "is_false"
    )]
    pub create_mac_vlan_interface: bool,
    /// Answers ARP and IPv6 neighbor discovery for hosts behind the fabric instead of flooding them. Default: true if the segment has a
    /// gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neigh_suppression: Option<bool>,
    /// Disables segmentation offloads on the VLAN interface, for programs that read raw packets. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_segmentation: bool,
    /// Name of the VRF of the gateways. Default: the cluster VRF. Ignored for a segment without gateways.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vrf: Option<VrfName>,
    /// Selects the nodes by label. Default: all nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<LabelSelector>,
    /// Existing interface of the nodes that carries the VLAN instead of the fabric, such as `bond1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_ref: Option<IfName>,
    /// Name of the interface on the nodes. Over the fabric the interface is named `l2.<interfaceName>`; with `interfaceRef` this is the
    /// full name and defaults to `vlan.<id>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_name: Option<IfName>,
    /// Addresses of the nodes on the segment. Default: none.
    #[serde(default, rename = "nodeIPs", skip_serializing_if = "Option::is_none")]
    pub node_ips: Option<NodeIps>,
    /// Static routes of the node through its interface on this segment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub static_routes: Vec<StaticRoute>,
}

/// Addresses of the nodes on a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeIps {
    /// Allocates an address to every selected node. Default: false.
    #[serde(default)]
    pub enabled: bool,
    /// Networks from which the addresses are allocated, at most one per address family. Default: the networks of `anycastGateways`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2))]
    pub networks: Vec<Prefix>,
    /// Number of addresses per address family that are reserved for pods and not allocated to nodes. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_for_pods: Option<u32>,
}

/// A static route through a router on the segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([(
    "self.prefix.contains(':') == self.nextHop.contains(':')",
    "prefix and nextHop must be of the same address family",
)])))]
pub struct StaticRoute {
    /// Destination prefix of the route, such as `203.0.113.0/24`.
    pub prefix: Prefix,
    /// IP address of the next hop, in the same address family as `prefix`.
    #[schemars(with = "Address")]
    pub next_hop: IpAddr,
}

/// Observed state of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Layer2NetworkConfigurationStatus {
    /// `metadata.generation` of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Addresses allocated to each node, by node name. For a segment generated from a `Layer2Attachment`, they are in the status of
    /// that object.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, WrittenAddressLists>")]
    pub node_addresses: BTreeMap<String, AddressLists>,
    /// Conditions of the object. `Ready` is true when the object is in effect on all selected nodes; otherwise `reason` and `message`
    /// say why not.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}
