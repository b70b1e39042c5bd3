//! Schema parts that cannot be derived: CEL rules, addresses, and Kubernetes extensions.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema, transform::transform_subschemas};
use serde::{Deserialize as _, Deserializer, de::DeserializeOwned};
use serde_json::{Map, Value, json};

/// The value of `x-kubernetes-validations`: pairs of a CEL rule and what is said when it does not hold.
pub(crate) fn rules<const N: usize>(rules: [(&str, &str); N]) -> Value {
    rules
        .into_iter()
        .map(|(rule, message)| json!({"rule": rule, "message": message}))
        .collect()
}

/// True for a flag that is off, which is not serialized.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
pub(crate) fn is_false(switch: &bool) -> bool {
    !*switch
}

/// A value that an earlier or later version may have written in another form: nothing where it cannot be read.
pub(crate) fn if_readable<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: DeserializeOwned,
    D: Deserializer<'de>,
{
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}

/// A schema that replaces the derived schema of a type.
macro_rules! stand_in {
    ($(#[$doc:meta])* $name:ident, $schema:expr) => {
        $(#[$doc])*
        pub(crate) enum $name {}

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

/// Longest text of an IPv6 address.
const MAX_ADDRESS_TEXT: u32 = 39;

fn address(rule: &str, message: &str) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": MAX_ADDRESS_TEXT,
        "x-kubernetes-validations": rules([(rule, message)]),
    })
}

stand_in!(
    /// An address of either family.
    Address,
    address("isIP(self)", "must be an IP address without prefix length, such as 192.0.2.1 or 2001:db8::1")
);
stand_in!(
    /// An IPv4 address.
    Ipv4Address,
    address("isIP(self) && ip(self).family() == 4", "must be an IPv4 address without prefix length, such as 192.0.2.1")
);
stand_in!(
    /// An IPv6 address.
    Ipv6Address,
    address("isIP(self) && ip(self).family() == 6", "must be an IPv6 address without prefix length, such as 2001:db8::1")
);
stand_in!(
    /// A text that only Selvedge writes. It has no rule, because rules cost budget and its Rust type validates it.
    Written,
    json_schema!({"type": "string"})
);
stand_in!(
    /// An object that is stored unchanged; its fields are described elsewhere.
    Kept,
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
);

/// An absent field is absent: kinds of Kubernetes have no `null`, and `has(…)` in a CEL rule must be false for it.
#[derive(Clone, Debug)]
pub(crate) struct AbsentNotNull;

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

/// The API server knows no pattern for the keys of a map. The Rust types of the keys check them.
#[derive(Clone, Debug)]
pub(crate) struct AnyKeys;

impl schemars::transform::Transform for AnyKeys {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else {
            return;
        };
        let Some(Value::Object(by_pattern)) = object.remove("patternProperties") else {
            return;
        };
        if let Some(value) = by_pattern.into_values().next() {
            object.insert("additionalProperties".into(), value);
        }
    }
}

/// Number formats that the API server knows; it warns about all others.
#[derive(Clone, Debug)]
pub(crate) struct KnownFormats;

impl schemars::transform::Transform for KnownFormats {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else {
            return;
        };
        let (format, maximum) = match object.get("format").and_then(Value::as_str) {
            Some("uint8") => ("int32", i64::from(u8::MAX)),
            Some("uint16") => ("int32", i64::from(u16::MAX)),
            Some("uint32") => ("int64", i64::from(u32::MAX)),
            _ => return,
        };
        object.insert("format".into(), format.into());
        object.entry("maximum").or_insert(maximum.into());
    }
}

/// A description is one text: the line breaks of its source mean nothing to a reader of `kubectl explain`.
#[derive(Clone, Debug)]
pub(crate) struct Reflow;

impl schemars::transform::Transform for Reflow {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(Value::String(text)) = schema.get_mut("description") else {
            return;
        };
        let paragraphs: Vec<String> = text
            .split("\n\n")
            .map(|paragraph| paragraph.replace('\n', " "))
            .collect();
        *text = paragraphs.join("\n\n");
    }
}

/// Takes all CEL rules out.
#[derive(Clone, Debug)]
pub(crate) struct WithoutRules;

impl schemars::transform::Transform for WithoutRules {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        schema.remove("x-kubernetes-validations");
    }
}
