//! What Selvedge reports on each object of this group.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;
use crate::meta::Conditions;

/// Observed state of an object on all nodes it selects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OverlayStatus {
    /// `metadata.generation` of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions of the object. `Accepted`: the object has no problems. `Ready`: every selected node runs this generation.
    /// `Overlapping` (Underlay only): node labels could match another Underlay as well.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// Number of selected nodes, by state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodeCounts>,
    /// Last valid generation, if the current generation is rejected on some node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_good_generation: Option<i64>,
}

/// Counts of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeCounts {
    /// Number of nodes that the object selects.
    #[schemars(schema_with = "schema::count")]
    pub matched: u32,
    /// Number of selected nodes that run the current generation.
    #[schemars(schema_with = "schema::count")]
    pub ready: u32,
    /// Number of selected nodes that failed to apply the object.
    #[schemars(schema_with = "schema::count")]
    pub failed: u32,
}
