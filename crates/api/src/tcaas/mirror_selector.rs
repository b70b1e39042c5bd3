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

/// Copies traffic of a layer 2 segment or a VRF to a `MirrorTarget`.
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
    /// Which traffic is copied. Without it all traffic in this direction is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_match: Option<TrafficMatch>,
    /// The `MirrorTarget` that gets the copies.
    #[schemars(extend("x-kubernetes-validations" = rules([
        ("self.kind == 'MirrorTarget'", "mirrorTarget must refer to a MirrorTarget"),
        (
            "!has(self.apiGroup) || self.apiGroup == 'network.t-caas.telekom.com'",
            "apiGroup of mirrorTarget must be network.t-caas.telekom.com or absent",
        ),
    ])))]
    pub mirror_target: TypedObjectReference,
    /// The `Layer2NetworkConfiguration` or `VRFRouteConfiguration` whose traffic is copied.
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
    /// Which way the traffic goes, seen from the workload.
    pub direction: MirrorDirection,
}

/// What is known about a mirror selector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MirrorSelectorStatus {
    /// Generation of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// On how many nodes the mirror is in effect.
    #[serde(default)]
    pub active_nodes: u32,
    /// The spec in effect of an object that no intent owns. It differs from `spec` while something is wrong with the object: what was in
    /// effect before stays.
    #[serde(
        default,
        deserialize_with = "crate::schema::if_readable",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<crate::schema::Kept>")]
    pub in_effect: Option<Arc<MirrorSelectorSpec>>,
    /// What holds for the object now: `Resolved` (target and source are known) and `Applied` (in effect on all matching nodes).
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}
