//! `BGPPeering`: BGP sessions between nodes and workloads.

use std::net::IpAddr;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PrefixItem;
use crate::{
    meta::{Conditions, LabelSelector, NameReference},
    schema::{Address, is_false, rules},
    value::{Asn, Seconds},
};

/// BGP sessions between nodes and workloads: with peers on a VLAN, or with addresses on a loopback of the node.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "BGPPeering",
    root = "BgpPeering",
    status = "BgpPeeringStatus",
    derive = "PartialEq",
    shortname = "bgpp",
    category = "selvedge",
    printcolumn = r#"{"name":"VLAN","type":"string","jsonPath":".spec.peeringVlan.name"}"#,
    printcolumn = r#"{"name":"Loopback","type":"string","jsonPath":".spec.loopbackPeer.ips"}"#,
    printcolumn = r#"{"name":"ASN","type":"integer","jsonPath":".spec.remoteASN"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([(
    "has(self.peeringVlan) != has(self.loopbackPeer)",
    "exactly one of peeringVlan and loopbackPeer must be set",
)])))]
pub struct BgpPeeringSpec {
    /// `Layer2NetworkConfiguration` whose gateway networks peers may connect from. Exactly one of `peeringVlan` and `loopbackPeer` must
    /// be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peering_vlan: Option<NameReference>,
    /// Peers whose addresses are on a loopback of the node. Exactly one of `peeringVlan` and `loopbackPeer` must be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loopback_peer: Option<LoopbackPeer>,
    /// AS number of the peers, 1–4294967295.
    #[serde(rename = "remoteASN")]
    pub remote_asn: Asn,
    /// Enables BFD on the sessions. Default: false.
    #[serde(default, rename = "enableBFD", skip_serializing_if = "is_false")]
    pub enable_bfd: bool,
    /// Maximum number of prefixes a peer may announce per address family. Default: 1000. Above the limit the session is closed for five
    /// minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub maximum_prefixes: Option<u32>,
    /// Hold time: the session is closed after this long without a message. `0s` (never) or `3s` to `65535s`, such as `90s`. Default:
    /// `180s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_time: Option<Seconds>,
    /// Keepalive interval, at most the hold time, such as `30s`. Default: `60s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keepalive_time: Option<Seconds>,
    /// Prefix filter for routes received from the peers. Routes that no entry permits are rejected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4096))]
    pub import: Vec<PrefixItem>,
    /// Prefix filter for routes announced to the peers. Routes that no entry permits are not announced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4096))]
    pub export: Vec<PrefixItem>,
    /// Selects the nodes by label. Default: all nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<LabelSelector>,
}

/// Peers whose addresses are on a loopback of the node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoopbackPeer {
    /// IP addresses of the peers, without prefix length.
    #[schemars(with = "Vec<Address>", length(min = 1, max = 64), extend("x-kubernetes-list-type" = "set"))]
    pub ips: Vec<IpAddr>,
}

/// Observed state of a peering.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BgpPeeringStatus {
    /// `metadata.generation` of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions of the object. `Ready` is true when the object is in effect on all selected nodes; otherwise `reason` and `message`
    /// say why not.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}
