//! Values of IS-IS.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use super::{InvalidValue, number::ranged_number, string_value};

ranged_number!(
    /// An IS-IS level, 1 or 2.
    IsisLevel(u8), (1..=2), "an IS-IS level (1 or 2)", "int32"
);

/// An IS-IS network entity title, such as `49.0001.0000.0000.0001.00`: area, system id and selector in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NetworkEntityTitle(Box<str>);

impl FromStr for NetworkEntityTitle {
    type Err = InvalidValue;
    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let hex = |part: &str| part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let groups: Vec<usize> = text
            .split('.')
            .filter(|part| hex(part))
            .map(str::len)
            .collect();
        if groups == [2, 4, 4, 4, 4, 2] && text.len() == 25 {
            Ok(Self(text.into()))
        } else {
            Err(InvalidValue::new(
                text,
                "a network entity title, such as 49.0001.0000.0000.0001.00",
            ))
        }
    }
}

impl fmt::Display for NetworkEntityTitle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

string_value!(
    NetworkEntityTitle,
    json_schema!({
        "type": "string",
        "minLength": 25,
        "maxLength": 25,
        "pattern": r"^[0-9a-f]{2}\.([0-9a-f]{4}\.){4}[0-9a-f]{2}$",
    })
);
