//! Fields that are null: they are not there, and a reader of the rest does not see them.

use serde_json::Value;

/// A document as the API server stores it: a field that is null is not there. A label without a value is left to be refused: without it,
/// a selector would select everything.
pub(super) fn without_null_fields(value: &Value) -> Value {
    let is_map_of_strings = |name: &str| matches!(name, "labels" | "annotations" | "matchLabels");
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .filter(|(_, field)| !field.is_null())
                .map(|(name, field)| match field {
                    Value::Object(_) if is_map_of_strings(name) => (name.clone(), field.clone()),
                    _ => (name.clone(), without_null_fields(field)),
                })
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(without_null_fields).collect()),
        other => other.clone(),
    }
}

/// A field of a map.
pub(super) fn below(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}

/// The fields that are null, each with the path of the map that it is in.
pub(super) fn null_fields(path: &str, value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if field.is_null() {
                    found.push((path.to_owned(), name.clone()));
                } else if !matches!(field, Value::String(_) | Value::Number(_) | Value::Bool(_)) {
                    null_fields(&below(path, name), field, found);
                }
            }
        }
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                null_fields(&format!("{path}[{place}]"), item, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
