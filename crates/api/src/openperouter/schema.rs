//! Pieces of schema that several kinds share.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};
use kube::{CustomResourceExt, core::schema::StructuralSchemaRewriter};
use schemars::{
    JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema,
    transform::transform_subschemas,
};
use serde_json::{Map, Value, json};

/// The value of `x-kubernetes-validations`: pairs of a CEL rule and what is said when it does not hold.
pub(crate) fn rules<const N: usize>(rules: [(&str, &str); N]) -> Value {
    rules
        .into_iter()
        .map(|(rule, message)| json!({"rule": rule, "message": message}))
        .collect()
}

/// Whether a value is what it would be if it were not written.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The definition of one kind, with a schema that a real API server takes without a warning.
///
/// The derived `K::crd()` lets every optional field be `null`, and puts a type's description in place of the field's.
pub(crate) fn definition<K: CustomResourceExt + JsonSchema>() -> CustomResourceDefinition {
    let mut definition = K::crd();
    let schema = SchemaSettings::openapi3()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .with_transform(AbsentNotNull)
        .with_transform(StructuralSchemaRewriter)
        .into_generator()
        .into_root_schema_for::<K>();
    let mut schema: JSONSchemaProps =
        serde_json::from_value(schema.to_value()).expect("a derived schema is an OpenAPI schema");
    schema.title = None;
    let about = schema
        .properties
        .as_ref()
        .and_then(|properties| properties.get("spec")?.description.clone());
    schema.description = about.or(schema.description);
    for version in &mut definition.spec.versions {
        if let Some(validation) = &mut version.schema {
            validation.open_api_v3_schema = Some(schema.clone());
        }
    }
    definition
}

/// An absent field is absent: Kubernetes' own kinds know no `null`, and a rule that asks `has(…)` must not find one.
#[derive(Clone, Debug)]
struct AbsentNotNull;

impl schemars::transform::Transform for AbsentNotNull {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else {
            return;
        };
        if let Some(wanted) = object.get("anyOf").and_then(optional) {
            object.remove("anyOf");
            for (key, value) in wanted {
                object.entry(key).or_insert(value);
            }
        }
        object.remove("nullable");
    }
}

/// The schema of `T` in the schema of `Option<T>`.
fn optional(any_of: &Value) -> Option<Map<String, Value>> {
    let [wanted, null] = any_of.as_array()?.as_slice() else {
        return None;
    };
    let is_null =
        null.get("enum") == Some(&json!([null])) || null.get("type") == Some(&json!("null"));
    if is_null {
        wanted.as_object().cloned()
    } else {
        None
    }
}

/// An IPv4 or IPv6 address.
pub(crate) fn ip(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 39,
        "x-kubernetes-validations": [{
            "rule": "isIP(self)",
            "message": "must be an IPv4 or IPv6 address, such as 192.0.2.1 or 2001:db8::1",
        }],
    })
}

/// How many of something there are.
pub(crate) fn count(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int32", "minimum": 0})
}

/// A selector of nodes, with the rules of label names and values that `metav1.LabelSelector` leaves to programs.
pub(crate) fn node_selector(_: &mut SchemaGenerator) -> Schema {
    const VALUE: &str = "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";
    const LABEL_KEY: &str = "a label's key is a name of at most 63 letters, digits, '-', '_' and '.', behind an optional domain and '/'";
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {
                "type": "object",
                "description": "Labels that a node must have with exactly these values.",
                "maxProperties": 64,
                "additionalProperties": {"type": "string", "maxLength": 63, "pattern": VALUE},
                "x-kubernetes-validations": rules([(
                    "self.all(key, !format.qualifiedName().validate(key).hasValue())",
                    LABEL_KEY,
                )]),
            },
            "matchExpressions": {
                "type": "array",
                "description": "Conditions on labels that must all hold.",
                "maxItems": 64,
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": {
                            "type": "string",
                            "description": "The label's key.",
                            "minLength": 1,
                            "maxLength": 317,
                            "x-kubernetes-validations": rules([(
                                "!format.qualifiedName().validate(self).hasValue()",
                                LABEL_KEY,
                            )]),
                        },
                        "operator": {
                            "type": "string",
                            "description": "How the label relates to the values.",
                            "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
                        },
                        "values": {
                            "type": "array",
                            "description":
                                "The values for In and NotIn; none for Exists and DoesNotExist.",
                            "items": {"type": "string", "maxLength": 63, "pattern": VALUE},
                        },
                    },
                    "x-kubernetes-validations": [{
                        "rule": "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
                        "message": "In and NotIn need at least one value; Exists and DoesNotExist take none",
                    }],
                },
            },
        },
    })
}

#[cfg(test)]
pub(crate) mod checks;
