//! State of one BGP session of a node.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// State of one BGP session of a node. Written by the operator; the spec is empty.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomResource, JsonSchema,
)]
#[kube(
    group = "frrk8s.metallb.io",
    version = "v1beta1",
    kind = "BGPSessionState",
    root = "BgpSessionState",
    plural = "bgpsessionstates",
    namespaced,
    status = "BgpSessionStateStatus",
    derive = "PartialEq",
    shortname = "bgpstate",
    category = "selvedge",
    printcolumn = r#"{"name": "Node", "type": "string", "jsonPath": ".status.node"}"#,
    printcolumn = r#"{"name": "Peer", "type": "string", "jsonPath": ".status.peer"}"#,
    printcolumn = r#"{"name": "VRF", "type": "string", "jsonPath": ".status.vrf"}"#,
    printcolumn = r#"{"name": "BGP", "type": "string", "jsonPath": ".status.bgpStatus"}"#,
    printcolumn = r#"{"name": "BFD", "type": "string", "jsonPath": ".status.bfdStatus"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
pub struct BgpSessionStateSpec {}

/// State of a BGP session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BgpSessionStateStatus {
    /// State of the BGP session, such as `Established`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bgp_status: Option<BgpState>,
    /// State of the BFD session as reported by FRR, or `N/A` without BFD.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bfd_status: String,
    /// Name of the node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// Peer of the session: an IPv4 address, a device, or an IPv6 address in full length with `-` instead of `:`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub peer: String,
    /// VRF of the session. Empty for the default VRF.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub vrf: String,
}

/// State of a BGP session.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[schemars(inline)]
pub enum BgpState {
    /// No connection attempt.
    Idle,
    /// Waiting for the transport.
    Connect,
    /// Trying to reach the peer.
    Active,
    /// OPEN message sent.
    OpenSent,
    /// OPEN message of the peer accepted.
    OpenConfirm,
    /// The session is up.
    Established,
}
