//! A network that pods can be attached to.

use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Provider;
use crate::{meta::ConditionStatus, openperouter::schema::rules};

/// A network that pods can be attached to, and who handles it. How it works is the provider's matter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "multinetwork.networking.x-k8s.io",
    version = "v1alpha1",
    kind = "PodNetwork",
    plural = "podnetworks",
    status = "PodNetworkStatus",
    derive = "PartialEq",
    shortname = "podnet",
    category = "selvedge",
    printcolumn = r#"{"name": "Provider", "type": "string", "jsonPath": ".spec.provider"}"#,
    printcolumn = r#"{"name": "Enabled", "type": "boolean", "jsonPath": ".spec.enabled"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([(
    "has(oldSelf.provider) == has(self.provider) && (!has(self.provider) || self.provider == oldSelf.provider)",
    "provider is immutable: create another PodNetwork for another provider",
)])))]
pub struct PodNetworkSpec {
    /// Whether new pods may be attached. Pods that are attached stay so. When false, the network is not ready.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Who handles the network: a domain and a path, such as `example.net/multi-network`. It cannot be changed.
    pub provider: Provider,
    /// Settings that the provider alone understands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "open_object")]
    pub parameters: Option<Map<String, Value>>,
}

/// What is known of a PodNetwork.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("default" = json!({"conditions": waiting()})))]
pub struct PodNetworkStatus {
    /// `Ready`: the object is well formed and pods can be attached. Others are the provider's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<PodNetworkCondition>,
}

/// One observed aspect of a PodNetwork's state. The proposal's examples give it a time of the last probe as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodNetworkCondition {
    /// What the condition is about.
    #[serde(rename = "type")]
    #[schemars(length(max = 316))]
    pub kind: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Generation of the object that the condition was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// When the provider last looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_probe_time: Option<String>,
    /// When the status last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: Option<String>,
    /// One word for programs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub reason: String,
    /// A sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 32768))]
    pub message: String,
}

fn yes() -> bool {
    true
}

fn open_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

fn conditions(generator: &mut SchemaGenerator) -> Schema {
    let item = generator.subschema_for::<PodNetworkCondition>();
    json_schema!({
        "type": "array",
        "items": item,
        "maxItems": 5,
        "default": waiting(),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}

/// What is said of a network that nobody has looked at yet.
fn waiting() -> Value {
    json!([{
        "type": "Ready",
        "status": "Unknown",
        "reason": "Pending",
        "message": "Waiting for controller",
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }])
}
