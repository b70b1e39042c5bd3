//! The rules of a kind's own definition, checked without an API server: the same rules from the same place.

use std::{
    collections::BTreeMap,
    sync::{LazyLock, Mutex, PoisonError},
};

use api::crds::Served;
use compiler::{Kind, ObjectRef, Problem, problem};
use kube_cel::{CompiledSchema, Validator, compile_schema};
use regex::Regex;
use serde_json::Value;

/// The definition of one kind, as the API server gets it.
struct Definition {
    schema: Value,
    rules: CompiledSchema,
}

/// The schema of one kind; to make them all would take longer than to check an object.
fn schema(kind: Kind) -> Option<Value> {
    let is_wanted = |served: &Served| {
        let (group, _) = kind.group_version();
        served.group == group && served.kind == kind.to_string()
    };
    let definition = api::crds::served()
        .into_iter()
        .find(is_wanted)?
        .definition();
    let version = definition
        .spec
        .versions
        .into_iter()
        .find(|version| version.name == kind.group_version().1)?;
    serde_json::to_value(version.schema?.open_api_v3_schema?).ok()
}

/// Checks objects against the definitions of their kinds. Each definition is compiled when it is first needed.
#[derive(Default)]
pub(crate) struct Rules {
    definitions: BTreeMap<Kind, Option<Definition>>,
    validator: LazyValidator,
}

struct LazyValidator(LazyLock<Validator>);

impl Default for LazyValidator {
    fn default() -> Self {
        Self(LazyLock::new(Validator::new))
    }
}

impl std::fmt::Debug for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rules").finish_non_exhaustive()
    }
}

impl Rules {
    /// What rules of its kind an object breaks.
    pub(crate) fn broken(&mut self, object: &ObjectRef, document: &Value) -> Vec<Problem> {
        let definition = self.definitions.entry(object.kind).or_insert_with(|| {
            let schema = schema(object.kind)?;
            Some(Definition {
                rules: compile_schema(&schema),
                schema,
            })
        });
        let Some(definition) = definition else {
            return Vec::new();
        };
        let mut found = Vec::new();
        limits(&definition.schema, document, "", &mut found);
        if let Err(errors) = self
            .validator
            .0
            .validate_compiled(&definition.rules, document, None)
        {
            found.extend(
                errors
                    .as_slice()
                    .iter()
                    .map(|error| (error.field_path.clone(), error.message.clone())),
            );
        }
        let problem = |(field, message)| {
            Problem::new(object.clone(), field, problem::Kind::RuleBroken { message })
        };
        found.into_iter().map(problem).collect()
    }
}

/// The limits that a schema sets beside its CEL rules: sizes, ranges and patterns.
fn limits(schema: &Value, value: &Value, path: &str, found: &mut Vec<(String, String)>) {
    let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
    let mut refuse = |message: String| found.push((path.to_owned(), message));
    let mut between = |what: &str, size: f64, least: &str, most: &str| {
        if let Some(least) = limit(least).filter(|least| size < *least) {
            refuse(format!("{what} must be at least {least}"));
        }
        if let Some(most) = limit(most).filter(|most| size > *most) {
            refuse(format!("{what} must be at most {most}"));
        }
    };
    #[expect(clippy::cast_precision_loss, reason = "no list or text is that long")]
    match value {
        Value::Number(number) => between(
            "the value",
            number.as_f64().unwrap_or(0.0),
            "minimum",
            "maximum",
        ),
        Value::String(text) => {
            between(
                "its length",
                text.chars().count() as f64,
                "minLength",
                "maxLength",
            );
            let pattern = schema.get("pattern").and_then(Value::as_str);
            if let Some(pattern) = pattern.filter(|pattern| !matches(pattern, text)) {
                refuse(format!("{text:?} must match {pattern}"));
            }
        }
        Value::Array(items) => {
            between(
                "the number of items",
                items.len() as f64,
                "minItems",
                "maxItems",
            );
            let Some(schema) = schema.get("items") else {
                return;
            };
            for (index, item) in items.iter().enumerate() {
                limits(schema, item, &format!("{path}[{index}]"), found);
            }
        }
        Value::Object(fields) => {
            between(
                "the number of entries",
                fields.len() as f64,
                "minProperties",
                "maxProperties",
            );
            let known = schema.get("properties");
            let others = schema.get("additionalProperties");
            for (name, field) in fields {
                let Some(schema) = known.and_then(|known| known.get(name)).or(others) else {
                    continue;
                };
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                limits(schema, field, &path, found);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    static COMPILED: Mutex<BTreeMap<String, Option<Regex>>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let regex = compiled
        .entry(pattern.to_owned())
        .or_insert_with(|| Regex::new(pattern).ok());
    regex.as_ref().is_none_or(|regex| regex.is_match(text))
}
