//! What must be true of every definition: it is described, and the examples of its kind use all of it.

use std::{collections::BTreeSet, fmt::Debug};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::crds::definition;

fn schema_of(definition: &CustomResourceDefinition) -> &JSONSchemaProps {
    let [version] = definition.spec.versions.as_slice() else {
        panic!("one version is served")
    };
    version
        .schema
        .as_ref()
        .and_then(|schema| schema.open_api_v3_schema.as_ref())
        .expect("there is a schema")
}

/// Calls `see` with the path and the schema of each property below `schema`.
fn walk(path: &str, schema: &JSONSchemaProps, see: &mut dyn FnMut(&str, &JSONSchemaProps)) {
    for (name, property) in schema.properties.iter().flatten() {
        let path = format!("{path}.{name}");
        see(&path, property);
        walk(&path, property, see);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(item)) = &schema.items {
        walk(path, item, see);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(value)) = &schema.additional_properties {
        walk(path, value, see);
    }
}

/// Each kind has a status of its own, belongs to the category, and every field of it is described.
pub(crate) fn are_well_formed(definitions: &[CustomResourceDefinition]) {
    for definition in definitions {
        let name = definition
            .metadata
            .name
            .as_deref()
            .expect("a definition has a name");
        assert!(
            definition
                .spec
                .names
                .categories
                .iter()
                .flatten()
                .any(|category| category == "selvedge"),
            "{name}"
        );
        assert!(definition.spec.names.short_names.is_some(), "{name}");
        let [version] = definition.spec.versions.as_slice() else {
            panic!("{name}: one version is served")
        };
        assert!(
            version
                .subresources
                .as_ref()
                .is_some_and(|resources| resources.status.is_some()),
            "{name}"
        );
        let schema = schema_of(definition);
        assert!(schema.description.is_some(), "{name}");
        walk("", schema, &mut |path, property| {
            assert!(
                property.description.is_some(),
                "{name}: {path} has no description"
            );
            assert_eq!(property.nullable, None, "{name}: {path} may be null");
            let known = [
                None,
                Some("int32"),
                Some("int64"),
                Some("date-time"),
                Some("cidr"),
            ];
            assert!(
                known.contains(&property.format.as_deref()),
                "{name}: {path} has the format {:?}",
                property.format
            );
        });
    }
}

/// Each example is read and written back as it was, and together they use every field of the kind.
pub(crate) fn examples_use_every_field<K>(examples: &[Value])
where
    K: CustomResourceExt
        + kube::Resource<DynamicType = ()>
        + JsonSchema
        + Serialize
        + DeserializeOwned
        + PartialEq
        + Debug,
{
    let mut seen = BTreeSet::new();
    for example in examples {
        let mut object = example.clone();
        object["apiVersion"] = json!(K::api_version(&()));
        object["kind"] = json!(K::kind(&()));
        object["metadata"] = json!({"name": "example"});
        let read: K = serde_json::from_value(object.clone()).expect("the example is readable");
        let written = serde_json::to_value(&read).expect("what was read is writable");
        assert_eq!(written, object);
        collect("", example, &mut seen);
    }
    walk("", schema_of(&definition::<K>()), &mut |path, _| {
        assert!(seen.contains(path), "no example uses {path}");
    });
}

fn collect(path: &str, value: &Value, seen: &mut BTreeSet<String>) {
    seen.insert(path.to_owned());
    match value {
        Value::Object(fields) => fields
            .iter()
            .for_each(|(name, field)| collect(&format!("{path}.{name}"), field, seen)),
        Value::Array(items) => items.iter().for_each(|item| collect(path, item, seen)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
