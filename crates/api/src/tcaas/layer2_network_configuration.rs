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

/// A layer 2 segment on nodes: a VLAN with its VXLAN and gateway, or a VLAN on an existing interface of the node.
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
    /// VLAN of the segment, 1–4094.
    pub id: VlanId,
    /// MTU of the segment, 1000–9000.
    pub mtu: Mtu,
    /// VXLAN network identifier of the segment. Required unless `interfaceRef` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vni: Option<Vni>,
    /// MAC address of the gateway, the same on every node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anycast_mac: Option<MacAddress>,
    /// Addresses of the gateway with prefix length, the same on every node. Without any there is no gateway.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub anycast_gateways: Vec<HostCidr>,
    /// Announces the neighbours seen on the segment to the fabric as host routes. A segment with a gateway in a VRF of the fabric does so
    /// in any case; without one there is nothing to announce.
    #[serde(default, skip_serializing_if = "is_false")]
    pub advertise_neighbors: bool,
    /// Accepted for manifests of old, and without effect: macvlans can be made on the interface that `interfaceName` gives the node.
    #[serde(
        default,
        rename = "createMacVLANInterface",
        skip_serializing_if = "is_false"
    )]
    pub create_mac_vlan_interface: bool,
    /// Whether the node answers ARP and neighbour discovery for hosts behind the fabric instead of flooding. Without it the node does
    /// so where the segment has a gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neigh_suppression: Option<bool>,
    /// Switches segmentation offloads off on the VLAN interface, for programs that read raw packets.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_segmentation: bool,
    /// VRF of the gateways. Without it gateways are in the cluster VRF. A segment without gateways is in no VRF.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vrf: Option<VrfName>,
    /// Selects the nodes, by label. Without it all nodes are meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<LabelSelector>,
    /// An interface that exists on the nodes and carries the VLAN instead of the fabric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_ref: Option<IfName>,
    /// Name of the interface on the nodes. Over the fabric the interface is called `l2.<interfaceName>`; with `interfaceRef` it is the
    /// whole name and defaults to `vlan.<id>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_name: Option<IfName>,
    /// Addresses for the nodes themselves.
    #[serde(default, rename = "nodeIPs", skip_serializing_if = "Option::is_none")]
    pub node_ips: Option<NodeIps>,
    /// Routes that leave through the node's interface on this segment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub static_routes: Vec<StaticRoute>,
}

/// Addresses of the nodes on a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeIps {
    /// Whether every selected node gets an address.
    #[serde(default)]
    pub enabled: bool,
    /// Networks the addresses come from, one for each family. Without any, the networks of `anycastGateways` are meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2))]
    pub networks: Vec<Prefix>,
    /// How many addresses must stay free for pods; the nodes do not get them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_for_pods: Option<u32>,
}

/// A route by a router on the segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([(
    "self.prefix.contains(':') == self.nextHop.contains(':')",
    "prefix and nextHop must be of the same address family",
)])))]
pub struct StaticRoute {
    /// Where the route leads.
    pub prefix: Prefix,
    /// The router.
    #[schemars(with = "Address")]
    pub next_hop: IpAddr,
}

/// What is known about a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Layer2NetworkConfigurationStatus {
    /// Generation of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The addresses each node holds, by node name. Of a segment that a `Layer2Attachment` has made, they are in its status.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, WrittenAddressLists>")]
    pub node_addresses: BTreeMap<String, AddressLists>,
    /// What holds for the object now.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}
