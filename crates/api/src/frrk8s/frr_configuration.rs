//! Configuration of the router in the host namespace.

use std::sync::Arc;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BfdProfile, Router};
use crate::{
    meta::{Conditions, LabelSelector},
    openperouter::schema::{count, node_selector, rules},
};

/// BGP configuration of the router in the host namespace of the selected nodes. Objects that select the same node are merged as a
/// union: no object can remove what another one adds.
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
    /// BGP routers with their peers, and BFD profiles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bgp: Option<Bgp>,
    /// FRR configuration that is appended unchanged. It can break the generated configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<RawConfig>,
    /// Selects the nodes by label. Default, also for an empty selector: all nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "node_selector")]
    pub node_selector: Option<LabelSelector>,
}

/// BGP of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bgp {
    /// BGP routers, one per VRF.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub routers: Vec<Router>,
    /// BFD profiles that neighbors of this object can reference by name.
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
    /// Order among the raw configurations of several objects, lowest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// FRR configuration lines, separated by newlines.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub raw_config: String,
}

/// Observed state of an FRRConfiguration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FrrConfigurationStatus {
    /// `metadata.generation` of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions of the object. `Accepted`: the object has no errors. `Applied`: every selected node runs this generation. `Ready`: both.
    /// `RawApplied`: no line of `spec.raw` is refused. `Supported` is false where the FRR of a node cannot apply a field, and
    /// `DevicesMissing` is true where a node lacks a device or a VNI that the object refers to.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// Number of selected nodes, and of those that run the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<AppliedNodes>,
    /// Problems found in the object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<ConfigurationProblem>,
    /// Spec that was last free of mistakes, without passwords. It stays in effect while the current spec has one.
    #[serde(
        default,
        deserialize_with = "crate::schema::if_readable",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<crate::schema::Kept>")]
    pub in_effect: Option<Arc<FrrConfigurationSpec>>,
    /// Generation of the object (`metadata.generation`) that `inEffect` is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_effect_generation: Option<i64>,
}

/// Counts of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedNodes {
    /// Number of nodes that the object selects.
    #[schemars(schema_with = "count")]
    pub matched: u32,
    /// Number of selected nodes that run the current generation.
    #[schemars(schema_with = "count")]
    pub applied: u32,
}

/// A problem of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigurationProblem {
    /// Machine-readable reason in CamelCase.
    pub reason: String,
    /// Human-readable explanation of the problem.
    pub message: String,
    /// Path of the field that causes the problem.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// Other object of a conflict, as `namespace/name`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub other: String,
    /// Names of affected nodes, at most sixteen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub nodes: Vec<String>,
}
