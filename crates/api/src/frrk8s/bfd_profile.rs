//! BFD settings that neighbors refer to by name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{BfdInterval, BfdMultiplier, BfdTtl};

/// A BFD profile that neighbors of the same object can reference. Absent fields have the defaults of FRR.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BfdProfile {
    /// Name by which neighbors reference the profile.
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[!-~]+$"))]
    pub name: String,
    /// Minimum interval between received BFD packets, in milliseconds, 10–60000. FRR default: 300.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_interval: Option<BfdInterval>,
    /// Interval between sent BFD packets, in milliseconds, 10–60000. FRR default: 300.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transmit_interval: Option<BfdInterval>,
    /// Number of lost BFD packets after which the session is down, 2–255. FRR default: 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detect_multiplier: Option<BfdMultiplier>,
    /// Interval between BFD echo packets in both directions, in milliseconds, 10–60000. FRR default: 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo_interval: Option<BfdInterval>,
    /// Enables BFD echo packets. Only on single-hop sessions. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo_mode: Option<bool>,
    /// Waits for the first packet of the peer before sending any. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passive_mode: Option<bool>,
    /// Minimum TTL of received BFD packets on multihop sessions, 1–254. FRR default: 254.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum_ttl: Option<BfdTtl>,
}
