//! The password of a BGP session.

use std::{fmt, str::FromStr};

use schemars::json_schema;

use super::InvalidValue;

/// The password of a BGP session: 1–80 printable ASCII characters without blanks.
///
/// The limits are those of TCP MD5 signatures and of one line of FRR. It is never shown: debug output and every document that is
/// written hide it, and there is no way to print it except by asking for it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Password(Box<str>);

/// What stands for a password wherever an object is written down.
const HIDDEN: &str = "(hidden)";

impl Password {
    /// What is left of a password where its object was written down.
    pub fn hidden() -> Self {
        Self(HIDDEN.into())
    }

    /// Whether this only stands for a password.
    pub fn is_hidden(&self) -> bool {
        *self.0 == *HIDDEN
    }

    /// The password in clear text. Only for code that passes it to FRR or writes it into a Secret.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl FromStr for Password {
    type Err = InvalidValue;
    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let fits = (1..=80).contains(&text.len());
        if !fits || !text.bytes().all(|b| b.is_ascii_graphic()) {
            let expected = "a password (1–80 printable ASCII characters without blanks)";
            return Err(InvalidValue::new(HIDDEN, expected));
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl serde::Serialize for Password {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(HIDDEN)
    }
}

impl<'de> serde::Deserialize<'de> for Password {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for Password {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Password".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        json_schema!({"type": "string", "minLength": 1, "maxLength": 80, "pattern": "^[!-~]+$"})
    }
}
