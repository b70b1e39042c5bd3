//! `TrafficMirror`: which traffic is copied to a collector.

use std::sync::Arc;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MirrorDirection, TrafficMatch};
use crate::meta::Conditions;

/// Copies traffic of a `Layer2Attachment`, `Inbound` or `Outbound` to a `Collector`.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "TrafficMirror",
    status = "TrafficMirrorStatus",
    derive = "PartialEq",
    shortname = "tmir",
    category = "selvedge",
    printcolumn = r#"{"name":"SourceKind","type":"string","jsonPath":".spec.source.kind"}"#,
    printcolumn = r#"{"name":"SourceName","type":"string","jsonPath":".spec.source.name"}"#,
    printcolumn = r#"{"name":"Collector","type":"string","jsonPath":".spec.collector"}"#,
    printcolumn = r#"{"name":"Direction","type":"string","jsonPath":".spec.direction"}"#,
    printcolumn = r#"{"name":"Nodes","type":"integer","jsonPath":".status.activeNodes"}"#,
    printcolumn = r#"{"name":"Applied","type":"string","jsonPath":".status.conditions[?(@.type=='Applied')].status"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct TrafficMirrorSpec {
    /// Object whose traffic is copied.
    pub source: MirrorSource,
    /// Name of the `Collector` that receives the copies.
    #[schemars(length(min = 1, max = 253))]
    pub collector: String,
    /// Direction of the traffic as seen by the workload: `ingress` (to the workload) or `egress` (from it).
    pub direction: MirrorDirection,
    /// Traffic to copy. Default: all traffic in this direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_match: Option<TrafficMatch>,
}

/// Object whose traffic is copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MirrorSource {
    /// Kind of the object. For an `Inbound` or `Outbound` only traffic of its own addresses is copied.
    pub kind: MirrorSourceKind,
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// A kind whose traffic can be mirrored.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum MirrorSourceKind {
    /// A layer 2 segment.
    Layer2Attachment,
    /// Service addresses.
    Inbound,
    /// Egress addresses.
    Outbound,
}

/// Observed state of a mirror.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrafficMirrorStatus {
    /// `metadata.generation` of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Number of nodes on which the mirror is in effect.
    #[serde(default)]
    pub active_nodes: u32,
    /// Last valid spec, which is in effect. It differs from `spec` while `spec` has an error: the object then keeps its last valid
    /// state.
    #[serde(
        default,
        deserialize_with = "crate::schema::if_readable",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<crate::schema::Kept>")]
    pub in_effect: Option<Arc<TrafficMirrorSpec>>,
    /// Conditions of the object: `Resolved` (source and collector exist) and `Applied` (in effect on all matching nodes).
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}
