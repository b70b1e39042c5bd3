//! How the host's router on one node fares.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::openperouter::schema::count;

/// How the host's router on the node of the same name fares. Selvedge writes it; there is nothing to specify.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomResource, JsonSchema,
)]
#[kube(
    group = "frrk8s.metallb.io",
    version = "v1beta1",
    kind = "FRRNodeState",
    root = "FrrNodeState",
    plural = "frrnodestates",
    status = "FrrNodeStateStatus",
    derive = "PartialEq",
    shortname = "frrstate",
    category = "selvedge",
    printcolumn = r#"{"name": "Conversion", "type": "string", "jsonPath": ".status.lastConversionResult"}"#,
    printcolumn = r#"{"name": "Reload", "type": "string", "jsonPath": ".status.lastReloadResult"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
pub struct FrrNodeStateSpec {}

/// How the host's router on a node fares.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FrrNodeStateStatus {
    /// FRR's running configuration, without passwords; cut off, with a line that says so, when it is very long.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub running_config: String,
    /// `success`, or `failed: ` and why the objects could not be merged.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_conversion_result: String,
    /// `success`, or `failed: ` and why FRR did not take the result.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_reload_result: String,
    /// The FRRConfigurations that the running configuration was made of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configurations: Vec<ObservedConfiguration>,
    /// Hash of the configuration that was asked for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub config_hash: String,
    /// When FRR was last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_reload_time: Option<String>,
    /// How long the last change took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "count")]
    pub last_reload_milliseconds: Option<u32>,
    /// Lines that FRR refused at the last change, without passwords.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_lines: Vec<String>,
}

/// An FRRConfiguration as a node has seen it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObservedConfiguration {
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// Generation of the object.
    pub generation: i64,
}
