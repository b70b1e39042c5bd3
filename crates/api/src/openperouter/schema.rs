//! Pieces of schema that several kinds share.

use schemars::{Schema, SchemaGenerator, json_schema};

pub(crate) use crate::schema::rules;

/// Whether a value is what it would be if it were not written.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
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
                "description": "Labels the node must have, with exactly these values. All must match.",
                "maxProperties": 64,
                "additionalProperties": {"type": "string", "maxLength": 63, "pattern": VALUE},
                "x-kubernetes-validations": rules([(
                    "self.all(key, !format.qualifiedName().validate(key).hasValue())",
                    LABEL_KEY,
                )]),
            },
            "matchExpressions": {
                "type": "array",
                "description": "Further requirements on labels. All must match.",
                "maxItems": 64,
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": {
                            "type": "string",
                            "description": "Key of the label, such as `topology.kubernetes.io/zone`.",
                            "minLength": 1,
                            "maxLength": 317,
                            "x-kubernetes-validations": rules([(
                                "!format.qualifiedName().validate(self).hasValue()",
                                LABEL_KEY,
                            )]),
                        },
                        "operator": {
                            "type": "string",
                            "description": "Operator: `In`, `NotIn`, `Exists` or `DoesNotExist`.",
                            "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
                        },
                        "values": {
                            "type": "array",
                            "description":
                                "Values to compare with: at least one for `In` and `NotIn`, none for `Exists` and `DoesNotExist`.",
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
