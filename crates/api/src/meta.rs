//! Types that kinds of all groups share: selectors, references, conditions.

use std::{borrow::Cow, collections::BTreeMap, fmt, sync::Arc};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::schema::rules;

/// Labels of an object.
pub type Labels = BTreeMap<String, String>;

/// Selects objects by their labels: all of `matchLabels` and all of `matchExpressions` must hold.
///
/// An empty selector selects everything. The meaning of an absent selector depends on the field.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels the object must have, with exactly these values. All must match.
    // Shared: each object that an intent becomes has the selector of the intent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: Arc<Labels>,
    /// Further requirements on labels. All must match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub match_expressions: Vec<LabelRequirement>,
}

/// One requirement on a label.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([(
    "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
    "In and NotIn need at least one value; Exists and DoesNotExist take none",
)])))]
pub struct LabelRequirement {
    /// Key of the label, such as `topology.kubernetes.io/zone`.
    pub key: String,
    /// Operator: `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: LabelOperator,
    /// Values to compare with: at least one for `In` and `NotIn`, none for `Exists` and `DoesNotExist`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// Operator of a label requirement.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum LabelOperator {
    /// The label has one of the values.
    In,
    /// The label is missing or has none of the values.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is missing.
    DoesNotExist,
}

/// Why a selector can select nothing at all: it is not well formed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum InvalidSelector {
    /// `In` or `NotIn` without values.
    #[error("matchExpressions for {key:?}: {operator:?} needs at least one value")]
    MissingValues {
        /// Key of the label, such as `topology.kubernetes.io/zone`.
        key: String,
        /// The operator that needs values.
        operator: LabelOperator,
    },
    /// `Exists` or `DoesNotExist` with values.
    #[error("matchExpressions for {key:?}: {operator:?} takes no values")]
    SuperfluousValues {
        /// Key of the label, such as `topology.kubernetes.io/zone`.
        key: String,
        /// The operator that takes no values.
        operator: LabelOperator,
    },
    /// A key that no label can have.
    #[error(
        "{key:?} is not the key of a label: at most 63 letters, digits, '-', '_' and '.', and a letter or digit at both ends; \
         before it, if anything, a DNS name and '/'"
    )]
    ImpossibleKey {
        /// The key.
        key: String,
    },
    /// A value that no label can have.
    #[error(
        "{value:?}, the value for {key:?}, is not the value of a label: at most 63 letters, digits, '-', '_' and '.', \
         and a letter or digit at both ends"
    )]
    ImpossibleValue {
        /// Key of the label, such as `topology.kubernetes.io/zone`.
        key: String,
        /// The value.
        value: String,
    },
}

/// Whether a label or an annotation can have this key.
pub fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => is_dns_name(prefix) && is_label_name(name),
        None => is_label_name(key),
    }
}

/// Whether a label can have this value.
pub fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_label_name(value)
}

/// Whether it is a DNS name as of RFC 1123; its parts have no limit of their own.
pub fn is_dns_name(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    text.len() <= 253 && text.split('.').all(|part| is_framed(part, is_inner))
}

fn is_label_name(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.len() <= 63 && is_framed(text, is_inner)
}

/// Some characters, the first and the last of which are letters or digits.
pub fn is_framed(text: &str, is_inner: impl Fn(u8) -> bool) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    is_end(bytes.first()) && is_end(bytes.last()) && bytes.iter().all(|byte| is_inner(*byte))
}

impl LabelSelector {
    /// Whether the selector is well formed; one that is not must be reported, not taken for "nothing".
    pub fn check(&self) -> Result<(), InvalidSelector> {
        let labels = self.match_labels.iter();
        let labels = labels.map(|(key, value)| (key, std::slice::from_ref(value)));
        let expressions = self.match_expressions.iter();
        let expressions = expressions.map(|one| (&one.key, one.values.as_slice()));
        for (key, values) in labels.chain(expressions) {
            let key = key.clone();
            if !is_label_key(&key) {
                return Err(InvalidSelector::ImpossibleKey { key });
            }
            if let Some(value) = values.iter().find(|value| !is_label_value(value)) {
                let value = value.clone();
                return Err(InvalidSelector::ImpossibleValue { key, value });
            }
        }
        for LabelRequirement {
            key,
            operator,
            values,
        } in &self.match_expressions
        {
            let wants_values = matches!(operator, LabelOperator::In | LabelOperator::NotIn);
            if wants_values && values.is_empty() {
                return Err(InvalidSelector::MissingValues {
                    key: key.clone(),
                    operator: *operator,
                });
            }
            if !wants_values && !values.is_empty() {
                return Err(InvalidSelector::SuperfluousValues {
                    key: key.clone(),
                    operator: *operator,
                });
            }
        }
        Ok(())
    }

    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.match_labels
            .iter()
            .all(|(key, value)| labels.get(key) == Some(value))
            && self
                .match_expressions
                .iter()
                .all(|requirement| requirement.holds(labels))
    }
}

impl LabelRequirement {
    /// Whether an object with these labels fulfils it.
    pub fn holds(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        match self.operator {
            LabelOperator::In => value.is_some_and(|value| self.values.contains(value)),
            LabelOperator::NotIn => !value.is_some_and(|value| self.values.contains(value)),
            LabelOperator::Exists => value.is_some(),
            LabelOperator::DoesNotExist => value.is_none(),
        }
    }
}

/// Reference to an object of any kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TypedObjectReference {
    /// API group of the referenced object, such as `ipam.cluster.x-k8s.io`. Default: the core group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// Kind of the referenced object.
    pub kind: String,
    /// Name of the object.
    pub name: String,
    /// Namespace of the referenced object. Only for namespaced kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Reference to an object by name; the field defines the kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NameReference {
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Reference to a Secret. Its content is read on the node that needs it and is never copied into another object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretReference {
    /// Name of the Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Namespace of the Secret. Default: the operator's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

impl fmt::Display for SecretReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let namespace = self.namespace.as_deref();
        let name = self.name.as_deref();
        write!(
            f,
            "{}/{}",
            namespace.unwrap_or("<operator's namespace>"),
            name.unwrap_or("<no name>")
        )
    }
}

/// One observed aspect of the state of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
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

/// Status of a condition.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// The status is not known yet.
    Unknown,
}

/// A list of conditions, one of each type; in the schema a map keyed by `type`, so that several writers can share it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Conditions(pub Vec<Condition>);

impl Conditions {
    /// Whether there is no condition.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The condition of this type.
    pub fn get(&self, kind: &str) -> Option<&Condition> {
        self.0.iter().find(|condition| condition.kind == kind)
    }
}

impl JsonSchema for Conditions {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Conditions".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let item = generator.subschema_for::<Condition>();
        json_schema!({
            "type": "array",
            "items": item,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        })
    }
}
