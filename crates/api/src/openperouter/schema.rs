//! Pieces of schema that several kinds share.

use schemars::{Schema, SchemaGenerator, json_schema};

/// An IPv4 or IPv6 address.
pub(crate) fn ip(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 39,
        "nullable": true,
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
    const KEY: &str = "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$";
    json_schema!({
        "type": "object",
        "nullable": true,
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {
                "type": "object",
                "description": "Labels that a node must have with exactly these values.",
                "additionalProperties": {"type": "string", "maxLength": 63, "pattern": VALUE},
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
                            "pattern": KEY,
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
