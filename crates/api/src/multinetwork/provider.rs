//! Provider of a network.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::{openperouter::schema::rules, value::InvalidValue};

/// Provider of a network: a domain and a path, such as `example.net/multi-network`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Provider(Box<str>);

impl Provider {
    /// Networks of this provider are Selvedge's.
    pub const SELVEDGE: &str = "selvedge.dev/pod-network";

    /// The provider as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether Selvedge handles the network.
    pub fn is_selvedge(&self) -> bool {
        self.as_str() == Self::SELVEDGE
    }
}

impl FromStr for Provider {
    type Err = InvalidValue;
    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let well_formed = |(domain, path): (&str, &str)| {
            domain.split('.').all(is_label) && !path.is_empty() && path.bytes().all(is_path_byte)
        };
        if text.len() <= 253 && text.split_once('/').is_some_and(well_formed) {
            Ok(Self(text.into()))
        } else {
            Err(InvalidValue::new(
                text,
                "a domain and a path, such as example.net/multi-network",
            ))
        }
    }
}

/// A part of a domain: lower-case letters, digits and, inside, `-`.
fn is_label(label: &str) -> bool {
    !label.starts_with('-')
        && !label.ends_with('-')
        && !label.is_empty()
        && label
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte)
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Provider {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Provider {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(Error::custom)
    }
}

impl JsonSchema for Provider {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Provider".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        const DOMAIN_PATH: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9/._~%!$&\'()*+,;=:-]+$";
        json_schema!({
            "type": "string",
            "minLength": 1,
            "maxLength": 253,
            "x-kubernetes-validations": rules([(
                &format!("self.matches('{DOMAIN_PATH}')"),
                "must be a domain and a path, such as example.net/multi-network",
            )]),
        })
    }
}
