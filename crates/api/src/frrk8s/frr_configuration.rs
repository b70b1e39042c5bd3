//! What the host's own router speaks.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BfdProfile, Router};
use crate::{
    meta::{Conditions, LabelSelector},
    openperouter::schema::{count, node_selector, rules},
};

/// What the host's own router on the selected nodes speaks. Objects that select the same node are merged: everything is
/// a union, and nobody can take away what another object added.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomResource, JsonSchema,
)]
#[kube(
    group = "frrk8s.metallb.io",
    version = "v1beta1",
    kind = "FRRConfiguration",
    root = "FrrConfiguration",
    plural = "frrconfigurations",
    namespaced,
    status = "FrrConfigurationStatus",
    derive = "PartialEq",
    shortname = "frrconf",
    category = "selvedge",
    printcolumn = r#"{"name": "Nodes", "type": "integer", "jsonPath": ".status.nodes.matched"}"#,
    printcolumn = r#"{"name": "Accepted", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Accepted\")].status"}"#,
    printcolumn = r#"{"name": "Applied", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Applied\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct FrrConfigurationSpec {
    /// BGP: routers with their peers, and BFD profiles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bgp: Option<Bgp>,
    /// Lines of FRR configuration that are appended as they are. They can break what Selvedge configures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<RawConfig>,
    /// Nodes the object applies to; absent or empty means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "node_selector")]
    pub node_selector: Option<LabelSelector>,
}

/// BGP of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bgp {
    /// Routers, one for each VRF.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub routers: Vec<Router>,
    /// BFD profiles that the neighbors of this object can refer to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-kubernetes-validations" = rules([(
        "self.all(a, self.exists_one(b, b.name == a.name))",
        "two BFD profiles have the same name: keep one of them",
    )])))]
    pub bfd_profiles: Vec<BfdProfile>,
}

/// Lines of FRR configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RawConfig {
    /// Order among the lines of several objects: lower comes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// The lines.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub raw_config: String,
}

/// How far an FRRConfiguration has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FrrConfigurationStatus {
    /// Generation of the object that the rest of the status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Accepted`: the object is free of problems. `Applied`: every selected node runs this generation.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// How many nodes the object selects, and how many of them run it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<AppliedNodes>,
    /// What stands in the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<ConfigurationProblem>,
}

/// Counts of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedNodes {
    /// Nodes that the object selects.
    #[schemars(schema_with = "count")]
    pub matched: u32,
    /// Selected nodes that run the object as it is now.
    #[schemars(schema_with = "count")]
    pub applied: u32,
}

/// Something that stands in an object's way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigurationProblem {
    /// One word for programs.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// Path of the field that is at fault.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// The other object, as namespace/name, where two do not agree.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub other: String,
    /// Nodes that are concerned; at most the first sixteen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub nodes: Vec<String>,
}
