//! A network that pods can be attached to.

use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Provider;
use crate::{meta::ConditionStatus, openperouter::schema::rules};

/// A network that pods can be attached to, and the provider that implements it. The API only names the provider; the provider defines
/// how the network works.
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
    /// Allows new pods to be attached. Default: true. When false, attached pods stay attached and the network is not ready.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Provider that implements the network: a domain and a path, such as `selvedge.dev/pod-network`. Immutable.
    pub provider: Provider,
    /// Parameters of the network. Their format is defined by the provider; the API server does not validate them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "open_object")]
    pub parameters: Option<Map<String, Value>>,
}

/// Observed state of a PodNetwork.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("default" = json!({"conditions": waiting()})))]
pub struct PodNetworkStatus {
    /// Conditions of the object. `Ready`: the object is valid and pods can be attached. Further types are defined by the provider.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<PodNetworkCondition>,
}

/// One observed aspect of the state of a PodNetwork.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodNetworkCondition {
    /// Type of the condition, such as `Ready`.
    #[serde(rename = "type")]
    #[schemars(length(max = 316))]
    pub kind: String,
    /// Status of the condition: `True`, `False` or `Unknown`.
    pub status: ConditionStatus,
    /// `metadata.generation` of the object that the condition was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Time at which the provider last probed the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_probe_time: Option<String>,
    /// Time at which `status` of the condition last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: Option<String>,
    /// Machine-readable reason in CamelCase, such as `Resolved`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub reason: String,
    /// Human-readable explanation of the status.
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

/// Default conditions of a network that has not been processed yet.
fn waiting() -> Value {
    json!([{
        "type": "Ready",
        "status": "Unknown",
        "reason": "Pending",
        "message": "Waiting for controller",
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }])
}
