//! `MirrorSelector`: which traffic is copied into a tunnel.

use std::sync::Arc;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MirrorDirection, TrafficMatch};
use crate::{
    meta::{Conditions, TypedObjectReference},
    schema::rules,
};

/// Copies traffic of a layer 2 segment or a VRF into the tunnel of a `MirrorTarget`. Usually generated from a `TrafficMirror`.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "MirrorSelector",
    status = "MirrorSelectorStatus",
    derive = "PartialEq",
    shortname = "mselector",
    category = "selvedge",
    printcolumn = r#"{"name":"Direction","type":"string","jsonPath":".spec.direction"}"#,
    printcolumn = r#"{"name":"SourceKind","type":"string","jsonPath":".spec.mirrorSource.kind","priority":10}"#,
    printcolumn = r#"{"name":"Source","type":"string","jsonPath":".spec.mirrorSource.name"}"#,
    printcolumn = r#"{"name":"Target","type":"string","jsonPath":".spec.mirrorTarget.name"}"#,
    printcolumn = r#"{"name":"Applied","type":"string","jsonPath":".status.conditions[?(@.type=='Applied')].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct MirrorSelectorSpec {
    /// Traffic to copy. Default: all traffic in this direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_match: Option<TrafficMatch>,
    /// Reference to the `MirrorTarget` that receives the copies.
    #[schemars(extend("x-kubernetes-validations" = rules([
        ("self.kind == 'MirrorTarget'", "mirrorTarget must refer to a MirrorTarget"),
        (
            "!has(self.apiGroup) || self.apiGroup == 'network.t-caas.telekom.com'",
            "apiGroup of mirrorTarget must be network.t-caas.telekom.com or absent",
        ),
    ])))]
    pub mirror_target: TypedObjectReference,
    /// Reference to the `Layer2NetworkConfiguration` or `VRFRouteConfiguration` whose traffic is copied.
    #[schemars(extend("x-kubernetes-validations" = rules([
        (
            "self.kind in ['Layer2NetworkConfiguration', 'VRFRouteConfiguration']",
            "mirrorSource must refer to a Layer2NetworkConfiguration or a VRFRouteConfiguration",
        ),
        (
            "!has(self.apiGroup) || self.apiGroup == 'network.t-caas.telekom.com'",
            "apiGroup of mirrorSource must be network.t-caas.telekom.com or absent",
        ),
    ])))]
    pub mirror_source: TypedObjectReference,
    /// Direction of the traffic as seen by the workload: `ingress` (to the workload) or `egress` (from it).
    pub direction: MirrorDirection,
}

/// Observed state of a mirror selector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MirrorSelectorStatus {
    /// `metadata.generation` of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Number of nodes on which the mirror is in effect.
    #[serde(default)]
    pub active_nodes: u32,
    /// Last valid spec of an object that was not generated from an intent. It differs from `spec` while `spec` has an error: the object
    /// then keeps its last valid state.
    #[serde(
        default,
        deserialize_with = "crate::schema::if_readable",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<crate::schema::Kept>")]
    pub in_effect: Option<Arc<MirrorSelectorSpec>>,
    /// Conditions of the object: `Resolved` (target and source exist) and `Applied` (in effect on all matching nodes).
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}
