//! A number of things, or a share of them.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::schema::rules;

/// A number of things, or a share of them in whole percent, written as `3` or `"30%"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CountOrPercent {
    /// So many.
    Count(u32),
    /// So many of a hundred, at most 100.
    Percent(u8),
}

/// What is neither a number nor a share.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a whole number and not a share from \"0%\" to \"100%\"")]
pub struct InvalidCountOrPercent(String);

impl FromStr for CountOrPercent {
    type Err = InvalidCountOrPercent;
    fn from_str(text: &str) -> Result<Self, InvalidCountOrPercent> {
        let invalid = || InvalidCountOrPercent(text.to_owned());
        let digits = text.strip_suffix('%').ok_or_else(invalid)?;
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(invalid());
        }
        match digits.parse() {
            Ok(share @ 0..=100) => Ok(Self::Percent(share)),
            _ => Err(invalid()),
        }
    }
}

impl fmt::Display for CountOrPercent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Percent(share) => write!(f, "{share}%"),
        }
    }
}

impl Serialize for CountOrPercent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) => serializer.serialize_u32(*count),
            Self::Percent(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for CountOrPercent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor)
    }
}

struct Visitor;

impl de::Visitor<'_> for Visitor {
    type Value = CountOrPercent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a share such as \"30%\"")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<CountOrPercent, E> {
        match u32::try_from(number) {
            Ok(count) => Ok(CountOrPercent::Count(count)),
            Err(_) => Err(E::custom(InvalidCountOrPercent(number.to_string()))),
        }
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<CountOrPercent, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::custom(InvalidCountOrPercent(number.to_string()))),
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<CountOrPercent, E> {
        text.parse().map_err(E::custom)
    }
}

impl JsonSchema for CountOrPercent {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "CountOrPercent".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "x-kubernetes-validations": rules([(
                // Without `type(…)`, which not every reader of rules knows: a text is never equal to a number.
                "string(self).matches('^(100|[0-9]{1,2})%$') \
                 || (string(self).matches('^[0-9]{1,10}$') && self == int(self) && int(self) <= 4294967295)",
                "must be a number, or a share between \"0%\" and \"100%\"",
            )]),
        })
    }
}
