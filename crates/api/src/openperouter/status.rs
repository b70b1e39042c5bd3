//! What Selvedge reports on each object of this group.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;
use crate::meta::Conditions;

/// How far an object has come, over all nodes it selects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OverlayStatus {
    /// Generation of the object that the rest of the status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Accepted`: the object is free of problems. `Ready`: every selected node runs this generation.
    /// `Overlapping` (Underlay only): a node could come to match another Underlay too.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// How many nodes the object selects, and how they fare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodeCounts>,
    /// The earlier generation that is still in force on some node, because the present one has a problem there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_good_generation: Option<i64>,
}

/// Counts of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeCounts {
    /// Nodes that the object selects.
    #[schemars(schema_with = "schema::count")]
    pub matched: u32,
    /// Selected nodes that run the object as it is now.
    #[schemars(schema_with = "schema::count")]
    pub ready: u32,
    /// Selected nodes that could not apply it.
    #[schemars(schema_with = "schema::count")]
    pub failed: u32,
}
