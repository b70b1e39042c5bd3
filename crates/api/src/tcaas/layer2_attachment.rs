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

/// Attaches a `Network` to nodes as a layer 2 segment: over the fabric with an anycast gateway that reaches the selected destinations,
/// or as a VLAN on an existing interface of the node when `interfaceRef` is set.
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
    /// Selects by label the `Destination`s that are reachable from the segment. An empty selector selects all. Default: none, the
    /// segment is layer 2 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destinations: Option<LabelSelector>,
    /// Selects by label the nodes that get the segment. Default: all nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<LabelSelector>,
    /// Existing interface of the nodes that carries the VLAN instead of the fabric: a bond, a NIC or an SR-IOV physical function, such
    /// as `bond1`. The `Network` must have no `vni`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_ref: Option<IfName>,
    /// Name of the interface on the nodes. Over the fabric the interface is named `l2.<interfaceName>`; with `interfaceRef` this is the
    /// full name and defaults to `vlan.<VLAN ID>`. Immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_name: Option<IfName>,
    /// MTU of the segment in bytes, 1000–9000. Default: 1500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Mtu>,
    /// Disables the anycast gateway, which is otherwise the first address of the network on every node. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_anycast: bool,
    /// Floods ARP and IPv6 neighbor discovery instead of answering them on the node. Must be true with `disableAnycast`. Default:
    /// false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_neighbor_suppression: bool,
    /// BGP sessions between workloads on the segment and the node. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bgp: Option<AttachmentBgp>,
    /// SR-IOV virtual functions on the segment. `enabled` is immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sriov: Option<Sriov>,
    /// Addresses of the nodes on the segment. Default: none.
    #[serde(default, rename = "nodeIPs", skip_serializing_if = "Option::is_none")]
    pub node_ips: Option<AttachmentNodeIps>,
    /// Prefixes to import and export in addition to those of the destinations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub routes: Vec<ExtraRoute>,
    /// BGP communities set on routes that are exported into the VRFs of the destinations, such as `64512:100`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub communities: Vec<Community>,
}

/// BGP between the workloads of a segment and the node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttachmentBgp {
    /// Accepts BGP sessions from workloads on the segment. Default: false.
    #[serde(default)]
    pub enabled: bool,
    /// Exports the network of the segment itself into the VRFs of the destinations. Default: false, only more specific routes from
    /// workloads are exported.
    #[serde(default, skip_serializing_if = "is_false")]
    pub advertise_transfer_network: bool,
    /// Hold time: the session is closed after this long without a message. `0s` (never) or `3s` to `65535s`, such as `90s`. Default:
    /// `180s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_time: Option<Seconds>,
    /// Keepalive interval, at most the hold time, such as `30s`. Default: `60s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keepalive_time: Option<Seconds>,
    /// Maximum number of prefixes a workload may announce per address family. Default: 1000. Above the limit the session is closed for
    /// five minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub maximum_prefixes: Option<u32>,
    /// AS number of the workloads, as a quoted string such as `"64600"`. Default, also for an empty string:
    /// `Settings.spec.bgp.workloadAS`.
    #[serde(
        default,
        rename = "workloadAS",
        with = "asn_text",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "asn_text::AsnText")]
    pub workload_as: Option<Asn>,
}

/// Use of SR-IOV virtual functions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sriov {
    /// Allows pods to use virtual functions on the VLAN. Default: false. Immutable.
    #[serde(default)]
    pub enabled: bool,
}

/// Addresses of the nodes on a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttachmentNodeIps {
    /// Allocates an address of the network to every selected node. Default: false.
    #[serde(default)]
    pub enabled: bool,
    /// Number of addresses per address family that are reserved for pods and not allocated to nodes. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_for_pods: Option<u32>,
}

/// Observed state of an attachment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Layer2AttachmentStatus {
    /// `metadata.generation` of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Full name of the interface on the nodes, such as `l2.shop`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_name: Option<IfName>,
    /// VLAN ID that SR-IOV devices use.
    #[serde(
        default,
        rename = "sriovVlanID",
        skip_serializing_if = "Option::is_none"
    )]
    pub sriov_vlan_id: Option<VlanId>,
    /// Anycast gateway, the same on every node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anycast: Option<Anycast>,
    /// Addresses allocated to each node, by node name. A node keeps its addresses while it is selected.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, WrittenAddressLists>")]
    pub node_addresses: BTreeMap<String, AddressLists>,
    /// What a workload on the segment needs to know to open its sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bgp: Option<AttachmentBgpStatus>,
    /// Destinations that match the selector.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matched_destinations: Vec<MatchedDestination>,
    /// Last valid spec, which is in effect. It differs from `spec` while `spec` has an error: the object then keeps its last valid
    /// state.
    #[serde(
        default,
        deserialize_with = "crate::schema::if_readable",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<crate::schema::Kept>")]
    pub in_effect: Option<Arc<Layer2AttachmentSpec>>,
    /// Conditions of the object. `Ready` is true when the object is in effect on all selected nodes; otherwise `reason` and `message`
    /// say why not.
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
    /// Addresses of the neighbor with prefix length, which are those of the gateway.
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
    /// Hold time in effect, such as `1m30s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_time: Option<Seconds>,
    /// Keepalive interval in effect, such as `30s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keepalive_time: Option<Seconds>,
    /// Maximum number of prefixes per address family in effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum_prefixes: Option<u32>,
}

/// An anycast gateway, the same on every node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Anycast {
    /// MAC address of the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<MacAddress>,
    /// IPv6 address of the gateway with prefix length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written>")]
    pub gateway: Option<HostCidr>,
    /// IPv4 address of the gateway with prefix length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written>")]
    pub gatewayv4: Option<HostCidr>,
}
