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

/// BGP sessions with workloads: with whoever speaks on a VLAN, or with addresses on a loopback of the node.
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
    /// The `Layer2NetworkConfiguration` on whose gateway networks peers are accepted. Exactly one of `peeringVlan` and `loopbackPeer`
    /// must be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peering_vlan: Option<NameReference>,
    /// Peers on a loopback of the node. Exactly one of `peeringVlan` and `loopbackPeer` must be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loopback_peer: Option<LoopbackPeer>,
    /// AS number of the peers.
    #[serde(rename = "remoteASN")]
    pub remote_asn: Asn,
    /// Whether BFD watches the sessions.
    #[serde(default, rename = "enableBFD", skip_serializing_if = "is_false")]
    pub enable_bfd: bool,
    /// How many prefixes a peer may announce in each family; 1000 where it is absent. Above that the session is closed for five minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub maximum_prefixes: Option<u32>,
    /// How long a session survives without a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_time: Option<Seconds>,
    /// How often a sign of life is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keepalive_time: Option<Seconds>,
    /// Which routes are taken from the peers; all others are refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4096))]
    pub import: Vec<PrefixItem>,
    /// Which routes are given to the peers; no others are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4096))]
    pub export: Vec<PrefixItem>,
    /// Selects the nodes, by label. Without it all nodes are meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<LabelSelector>,
}

/// Peers on a loopback of the node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoopbackPeer {
    /// Addresses of the peers, without prefix length.
    #[schemars(with = "Vec<Address>", length(min = 1, max = 64), extend("x-kubernetes-list-type" = "set"))]
    pub ips: Vec<IpAddr>,
}

/// What is known about a peering.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BgpPeeringStatus {
    /// Generation of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What holds for the object now.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}
