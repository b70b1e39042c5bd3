//! BFD settings that neighbors refer to by name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{BfdInterval, BfdMultiplier, BfdTtl};

/// BFD settings that the neighbors of the same object can refer to. What is absent follows FRR.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BfdProfile {
    /// Name that neighbors refer to.
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[!-~]+$"))]
    pub name: String,
    /// Least interval between packets that this side can take, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_interval: Option<BfdInterval>,
    /// Least interval between packets that this side sends, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transmit_interval: Option<BfdInterval>,
    /// How many packets may be missed before the session is down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detect_multiplier: Option<BfdMultiplier>,
    /// Interval between echo packets in both directions, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo_interval: Option<BfdInterval>,
    /// Whether echo packets are sent; over a single hop only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo_mode: Option<bool>,
    /// Whether to wait for the peer's first packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passive_mode: Option<bool>,
    /// Least TTL of packets that arrive over several hops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum_ttl: Option<BfdTtl>,
}
