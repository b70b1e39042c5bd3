//! State of the host router on one node.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::openperouter::schema::count;

/// State of the host router on the node of the same name. Written by the operator; the spec is empty.
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

/// State of the host router on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FrrNodeStateStatus {
    /// Running configuration of FRR, without passwords. A long configuration is truncated; the last line then says so.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub running_config: String,
    /// Result of merging the objects: `success`, or `failed: ` with the reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_conversion_result: String,
    /// Result of the last change in FRR: `success`, or `failed: ` with the reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_reload_result: String,
    /// FRRConfigurations from which the running configuration was generated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configurations: Vec<ObservedConfiguration>,
    /// Hash of the desired configuration.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub config_hash: String,
    /// Time of the last change in FRR.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_reload_time: Option<String>,
    /// Duration of the last change in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "count")]
    pub last_reload_milliseconds: Option<u32>,
    /// Lines that FRR rejected in the last change, without passwords.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_lines: Vec<String>,
}

/// An FRRConfiguration as observed by a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObservedConfiguration {
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// `metadata.generation` of the object.
    pub generation: i64,
}
