//! How an object of another program differs from what it must be. Pure.

use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::FIELD_MANAGER;

/// What is merged into an object so that it has all that is wanted, and nothing else that this operator has written before. Nothing, if it is
/// so already. The object must still be the one that is stored.
///
/// Fields of other writers are left alone.
pub(super) fn difference(stored: &DynamicObject, wanted: &Value) -> Option<Value> {
    let as_stored = json!(stored);
    // Version and kind are those of the request.
    let parts = |value: &Value| {
        let mut parts = value.as_object().cloned().unwrap_or_default();
        parts.retain(|name, _| name != "apiVersion" && name != "kind");
        Value::Object(parts)
    };
    let mut patch = parts(wanted);
    let mut is_same = contains(&as_stored, &patch);
    let managers = stored.metadata.managed_fields.iter().flatten();
    let ours = managers.filter(|one| one.manager.as_deref() == Some(FIELD_MANAGER));
    for owned in ours.filter_map(|one| one.fields_v1.as_ref()) {
        is_same &= !remove_unwanted(&owned.0, &as_stored, &mut patch);
    }
    if is_same {
        return None;
    }
    let metadata = patch
        .as_object_mut()?
        .entry("metadata")
        .or_insert_with(|| json!({}));
    let metadata = metadata.as_object_mut()?;
    let version = json!(stored.metadata.resource_version);
    metadata.insert("resourceVersion".to_owned(), version);
    metadata.insert("uid".to_owned(), json!(stored.metadata.uid));
    Some(patch)
}

/// Sets fields to null that are owned and stored, but not wanted; whether there are any. An item of a list is no field: a list is replaced as
/// a whole.
fn remove_unwanted(owned: &Value, stored: &Value, patch: &mut Value) -> bool {
    let (Some(owned), Some(patch)) = (owned.as_object(), patch.as_object_mut()) else {
        return false;
    };
    let mut has_removed = false;
    for (field, owned) in owned {
        let Some(name) = field.strip_prefix("f:") else {
            continue;
        };
        let Some(stored) = stored.get(name).filter(|stored| !stored.is_null()) else {
            continue;
        };
        match patch.get_mut(name) {
            Some(wanted) => has_removed |= remove_unwanted(owned, stored, wanted),
            None => {
                patch.insert(name.to_owned(), Value::Null);
                has_removed = true;
            }
        }
    }
    has_removed
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

    /// An object whose stored spec is this, of which the operator has written these fields.
    fn stored(spec: &Value, owned: &Value, manager: &str) -> DynamicObject {
        let managed = json!([{
            "manager": manager, "operation": "Update", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": owned},
        }]);
        let metadata = json!({
            "name": "a", "uid": "u", "resourceVersion": "7", "managedFields": managed,
        });
        let object = json!({"metadata": metadata, "spec": spec});
        serde_json::from_value(object).expect("an object")
    }

    fn wanted(spec: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "a"}, "spec": spec})
    }

    #[test]
    fn a_field_that_is_wanted_no_longer_is_removed_if_this_operator_wrote_it() {
        let spec = json!({"pools": ["a"], "selectors": [{"x": "y"}], "theirs": 7});
        let owned = json!({"f:pools": {}, "f:selectors": {}});
        let wanted = wanted(&json!({"pools": ["a"]}));
        let object = stored(&spec, &owned, FIELD_MANAGER);
        let patch = difference(&object, &wanted).expect("a difference");
        let metadata = json!({"name": "a", "resourceVersion": "7", "uid": "u"});
        let spec_patch = json!({"pools": ["a"], "selectors": null});
        assert_eq!(patch, json!({"metadata": metadata, "spec": spec_patch}));
        let object = stored(&spec, &owned, "another");
        assert_eq!(difference(&object, &wanted), None, "another wrote it");
    }

    #[test]
    fn a_zero_value_that_the_api_server_leaves_out_is_no_difference() {
        let wanted = wanted(&json!({"cidr": "c", "natOutgoing": false, "blockSize": 0}));
        let object = stored(&json!({"cidr": "c"}), &json!({}), FIELD_MANAGER);
        assert_eq!(difference(&object, &wanted), None);
        let edited = json!({"cidr": "c", "natOutgoing": true});
        let object = stored(&edited, &json!({}), FIELD_MANAGER);
        assert!(difference(&object, &wanted).is_some());
    }
}
