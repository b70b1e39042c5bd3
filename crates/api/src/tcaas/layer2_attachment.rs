//! `Layer2Attachment`: a network as a layer 2 segment on nodes.

use std::{collections::BTreeMap, sync::Arc};

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AddressLists, ExtraRoute, MatchedDestination, address_lists::WrittenAddressLists, asn_text,
};
use crate::{
    meta::{Conditions, LabelSelector},
    schema::{Written, is_false, rules},
    value::{Asn, Community, HostCidr, IfName, MacAddress, Mtu, Seconds, VlanId},
};

/// Brings a `Network` to nodes as a layer 2 segment: over the fabric, with a gateway in the VRFs of the selected destinations, or on
/// an existing interface of the node when `interfaceRef` is set.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "Layer2Attachment",
    status = "Layer2AttachmentStatus",
    derive = "PartialEq",
    shortname = "l2a",
    category = "selvedge",
    printcolumn = r#"{"name":"NetworkRef","type":"string","jsonPath":".spec.networkRef"}"#,
    printcolumn = r#"{"name":"Interface","type":"string","jsonPath":".status.interfaceName"}"#,
    printcolumn = r#"{"name":"GatewayV4","type":"string","jsonPath":".status.anycast.gatewayv4"}"#,
    printcolumn = r#"{"name":"GatewayV6","type":"string","jsonPath":".status.anycast.gateway","priority":10}"#,
    printcolumn = r#"{"name":"VRFs","type":"string","jsonPath":".status.matchedDestinations[*].vrf"}"#,
    printcolumn = r#"{"name":"MTU","type":"integer","jsonPath":".spec.mtu"}"#,
    printcolumn = r#"{"name":"SRIOV","type":"boolean","jsonPath":".spec.sriov.enabled"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "has(oldSelf.interfaceName) == has(self.interfaceName) \
         && (!has(self.interfaceName) || self.interfaceName == oldSelf.interfaceName)",
        "interfaceName cannot be set, changed or removed after creation; create another Layer2Attachment",
    ),
    (
        "(has(oldSelf.sriov) && oldSelf.sriov.enabled) == (has(self.sriov) && self.sriov.enabled)",
        "sriov.enabled cannot be changed after creation; create another Layer2Attachment",
    ),
    (
        "has(self.interfaceName) || has(self.interfaceRef) || (has(self.sriov) && self.sriov.enabled)",
        "interfaceName is required unless interfaceRef is set or sriov.enabled is true",
    ),
    (
        "!(has(self.nodeIPs) && self.nodeIPs.enabled) || has(self.interfaceName) || !(has(self.sriov) && self.sriov.enabled)",
        "nodeIPs.enabled must be false when sriov.enabled is true and interfaceName is not set: there is no interface to carry them",
    ),
    (
        "!(has(self.disableAnycast) && self.disableAnycast) \
         || (has(self.disableNeighborSuppression) && self.disableNeighborSuppression)",
        "disableNeighborSuppression must be true when disableAnycast is true",
    ),
])))]
pub struct Layer2AttachmentSpec {
    /// Name of the `Network` to attach.
    #[schemars(length(min = 1, max = 253))]
    pub network_ref: String,
    /// Selects the `Destination`s that can be reached from the segment, by label. An empty selector selects all; without one the
    /// segment is layer 2 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destinations: Option<LabelSelector>,
    /// Selects the nodes that get the segment, by label. Without it all nodes do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<LabelSelector>,
    /// An interface that exists on the nodes (a bond, a network card, an SR-IOV physical function) and carries the VLAN instead of
    /// the fabric. The `Network` must then have no `vni`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_ref: Option<IfName>,
    /// Name of the interface on the nodes. Over the fabric the interface is called `l2.<interfaceName>`; with `interfaceRef` it is the
    /// whole name and defaults to `vlan.<VLAN id>`. It cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_name: Option<IfName>,
    /// MTU of the segment, 1000–9000. Without it 1500 is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Mtu>,
    /// Leaves out the anycast gateway, which otherwise is the first address of the network on every node.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_anycast: bool,
    /// Lets ARP and neighbour discovery be flooded instead of answered by the nodes. Must be true with `disableAnycast`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_neighbor_suppression: bool,
    /// BGP sessions that workloads on the segment may open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bgp: Option<AttachmentBgp>,
    /// Use of SR-IOV virtual functions on the segment. It cannot be switched on or off later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sriov: Option<Sriov>,
    /// Addresses for the nodes themselves.
    #[serde(default, rename = "nodeIPs", skip_serializing_if = "Option::is_none")]
    pub node_ips: Option<AttachmentNodeIps>,
    /// Prefixes to import and export beside those of the destinations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub routes: Vec<ExtraRoute>,
    /// BGP communities set on the routes that are exported into the destinations' VRFs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub communities: Vec<Community>,
}

/// BGP between the workloads of a segment and the node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttachmentBgp {
    /// Whether workloads may open sessions.
    #[serde(default)]
    pub enabled: bool,
    /// Whether the network of the segment itself is exported.
    #[serde(default, skip_serializing_if = "is_false")]
    pub advertise_transfer_network: bool,
    /// How long a session survives without a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_time: Option<Seconds>,
    /// How often a sign of life is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keepalive_time: Option<Seconds>,
    /// How many prefixes a workload may announce in each family; 1000 where it is absent. Above that the session is closed for five minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub maximum_prefixes: Option<u32>,
    /// AS number of the workloads, in quotes. Empty or absent means `Settings.spec.bgp.workloadAS`.
    #[serde(
        default,
        rename = "workloadAS",
        with = "asn_text",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "asn_text::AsnText")]
    pub workload_as: Option<Asn>,
}

/// Use of SR-IOV.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sriov {
    /// Whether pods may use virtual functions on this VLAN.
    #[serde(default)]
    pub enabled: bool,
}

/// Addresses of the nodes on a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttachmentNodeIps {
    /// Whether every selected node gets an address of the network.
    #[serde(default)]
    pub enabled: bool,
    /// How many addresses must stay free for pods; the nodes do not get them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_for_pods: Option<u32>,
}

/// What is known about an attachment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Layer2AttachmentStatus {
    /// Generation of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Full name of the interface on the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_name: Option<IfName>,
    /// VLAN that traffic of SR-IOV devices carries.
    #[serde(
        default,
        rename = "sriovVlanID",
        skip_serializing_if = "Option::is_none"
    )]
    pub sriov_vlan_id: Option<VlanId>,
    /// The gateway that every node provides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anycast: Option<Anycast>,
    /// The addresses each node holds, by node name. An address stays with its node as long as the node is selected.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, WrittenAddressLists>")]
    pub node_addresses: BTreeMap<String, AddressLists>,
    /// What a workload on the segment needs to know to open its sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bgp: Option<AttachmentBgpStatus>,
    /// The destinations that the selector has chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matched_destinations: Vec<MatchedDestination>,
    /// The spec in effect. It differs from `spec` while something is wrong with the object: what was in effect before stays.
    #[serde(
        default,
        deserialize_with = "crate::schema::if_readable",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<crate::schema::Kept>")]
    pub in_effect: Option<Arc<Layer2AttachmentSpec>>,
    /// What holds for the object now.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}

/// What a workload on the segment needs to know to open its sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttachmentBgpStatus {
    /// AS number of the node's router.
    #[serde(default, with = "asn_text", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "asn_text::AsnText")]
    pub as_number: Option<Asn>,
    /// Addresses of the neighbor, with prefix length: the gateway.
    #[serde(default, rename = "neighborIPs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Written>")]
    pub neighbor_ips: Vec<HostCidr>,
    /// AS number that the workload must expect of the neighbor.
    #[serde(
        default,
        rename = "neighborASNumber",
        skip_serializing_if = "Option::is_none"
    )]
    pub neighbor_as_number: Option<Asn>,
    /// AS number that the workload must use.
    #[serde(
        default,
        rename = "workloadASNumber",
        skip_serializing_if = "Option::is_none"
    )]
    pub workload_as_number: Option<Asn>,
    /// The hold time in effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_time: Option<Seconds>,
    /// The keepalive time in effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keepalive_time: Option<Seconds>,
    /// The limit of prefixes in effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum_prefixes: Option<u32>,
}

/// A gateway with the same addresses on every node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Anycast {
    /// Its MAC address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<MacAddress>,
    /// Its IPv6 address with prefix length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written>")]
    pub gateway: Option<HostCidr>,
    /// Its IPv4 address with prefix length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written>")]
    pub gatewayv4: Option<HostCidr>,
}
