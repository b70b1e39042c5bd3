//! How an object of another program differs from what it must be. Pure.

use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::FIELD_MANAGER;

/// Whether an object lacks something that is wanted, or has something that this operator has applied before and that is wanted no longer.
///
/// Fields of other writers, and those that the API server sets by default, are left alone.
pub(crate) fn differs(stored: &DynamicObject, wanted: &Value) -> bool {
    let as_stored = json!(stored);
    // Version and kind are those of the request.
    let mut parts = wanted.as_object().cloned().unwrap_or_default();
    parts.retain(|name, _| name != "apiVersion" && name != "kind");
    let wanted = Value::Object(parts);
    has_unwanted(stored, &wanted) || !contains(&as_stored, &wanted)
}

/// Whether an object loses something that it has when it becomes what is wanted. A value that is replaced is lost.
pub(crate) fn takes_away(stored: &DynamicObject, wanted: &Value) -> bool {
    let (as_stored, nothing) = (json!(stored), Value::Null);
    let spec = wanted.get("spec").unwrap_or(&nothing);
    let stored_spec = as_stored.get("spec").unwrap_or(&nothing);
    has_unwanted(stored, wanted) || loses(stored_spec, spec)
}

fn loses(stored: &Value, wanted: &Value) -> bool {
    match (stored, wanted) {
        (Value::Object(stored), Value::Object(wanted)) => {
            let mut both = wanted
                .iter()
                .filter_map(|(name, wanted)| Some((stored.get(name)?, wanted)));
            both.any(|(stored, wanted)| loses(stored, wanted))
        }
        (Value::Array(stored), Value::Array(wanted)) => stored
            .iter()
            .any(|stored| !wanted.iter().any(|wanted| contains(stored, wanted))),
        (stored, wanted) => stored != wanted && !is_zero(stored),
    }
}

/// Whether this operator has applied a field before that is wanted no longer.
fn has_unwanted(stored: &DynamicObject, wanted: &Value) -> bool {
    let managers = stored.metadata.managed_fields.iter().flatten();
    let mut ours = managers.filter(|one| {
        let is_applied = one.operation.as_deref() == Some("Apply");
        is_applied && one.manager.as_deref() == Some(FIELD_MANAGER)
    });
    ours.any(|one| {
        let fields = one.fields_v1.as_ref();
        fields.is_some_and(|fields| has_more(&fields.0, wanted))
    })
}

/// Whether a field is applied that is not wanted. An item of a list is no field: lists are compared as a whole.
fn has_more(applied: &Value, wanted: &Value) -> bool {
    let mut applied = applied.as_object().into_iter().flatten();
    applied.any(|(field, below)| match field.strip_prefix("f:") {
        Some(name) => wanted
            .get(name)
            .is_none_or(|wanted| has_more(below, wanted)),
        None => false,
    })
}

/// Whether a value has everything that another has. A field that is not wanted may have any value.
fn contains(stored: &Value, wanted: &Value) -> bool {
    match (stored, wanted) {
        (Value::Object(stored), Value::Object(wanted)) => wanted.iter().all(|(name, wanted)| {
            let stored = stored.get(name);
            stored.map_or_else(|| is_zero(wanted), |stored| contains(stored, wanted))
        }),
        (Value::Array(stored), Value::Array(wanted)) => {
            let mut pairs = stored.iter().zip(wanted);
            stored.len() == wanted.len() && pairs.all(|(stored, wanted)| contains(stored, wanted))
        }
        (stored, wanted) => stored == wanted,
    }
}

/// Whether a value is as good as none: API servers that are written in Go leave such values out of their answers.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        Value::String(value) => value.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_zero),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An object whose stored spec is this, of which one of these managers has written these fields.
    fn stored(spec: &Value, fields: &Value, manager: &str, operation: &str) -> DynamicObject {
        let managed = json!([{
            "manager": manager, "operation": operation, "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": fields},
        }]);
        let metadata = json!({"name": "a", "managedFields": managed});
        let object = json!({"metadata": metadata, "spec": spec});
        serde_json::from_value(object).expect("an object")
    }

    fn wanted(spec: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "a"}, "spec": spec})
    }

    #[test]
    fn a_field_that_is_wanted_no_longer_is_a_difference_if_this_operator_applied_it() {
        let spec = json!({"pools": ["a"], "selectors": [{"x": "y"}], "theirs": 7});
        let fields = json!({"f:pools": {}, "f:selectors": {}});
        let wanted = wanted(&json!({"pools": ["a"]}));
        let differs = |manager, operation| {
            let object = stored(&spec, &fields, manager, operation);
            differs(&object, &wanted)
        };
        assert!(differs(FIELD_MANAGER, "Apply"));
        assert!(!differs("another", "Apply"));
        assert!(!differs(FIELD_MANAGER, "Update"));
    }

    #[test]
    fn what_is_added_takes_nothing_away_and_what_is_left_out_or_replaced_does() {
        let spec = json!({"addresses": ["a", "b"], "items": [{"x": 1, "theirs": 2}], "mode": "m"});
        let fields = json!({"f:addresses": {}, "f:items": {}, "f:mode": {}});
        let object = stored(&spec, &fields, FIELD_MANAGER, "Apply");
        let takes_away = |spec: Value| takes_away(&object, &wanted(&spec));
        assert!(!takes_away(
            json!({"addresses": ["b", "a", "c"], "items": [{"x": 1}, {"x": 2}], "mode": "m"})
        ));
        for less in [
            json!({"addresses": ["a"], "items": [{"x": 1}], "mode": "m"}),
            json!({"addresses": ["a", "b"], "items": [{"x": 3}], "mode": "m"}),
            json!({"addresses": ["a", "b"], "items": [{"x": 1}], "mode": "other"}),
            json!({"addresses": ["a", "b"], "items": [{"x": 1}]}),
        ] {
            assert!(takes_away(less.clone()), "{less}");
        }
    }

    #[test]
    fn a_zero_value_that_the_api_server_leaves_out_is_no_difference() {
        let wanted = wanted(&json!({"cidr": "c", "natOutgoing": false, "blockSize": 0}));
        let differs = |spec: Value| {
            let object = stored(&spec, &json!({}), FIELD_MANAGER, "Apply");
            differs(&object, &wanted)
        };
        assert!(!differs(json!({"cidr": "c"})));
        assert!(differs(json!({"cidr": "c", "natOutgoing": true})));
        assert!(differs(json!({"natOutgoing": false})));
    }
}
