//! Programs written in Go write an absent text or number as `""` or `0`.

use std::str::FromStr;

use serde::{Deserialize, Deserializer, de::Error};

/// A text that is absent when empty.
pub(super) fn text<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: std::fmt::Display>,
{
    match Option::<String>::deserialize(deserializer)?.as_deref() {
        None | Some("") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(Error::custom),
    }
}

/// A number that is absent when zero.
pub(super) fn number<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<i64, Error: std::fmt::Display>,
{
    match Option::<i64>::deserialize(deserializer)? {
        None | Some(0) => Ok(None),
        Some(number) => T::try_from(number).map(Some).map_err(Error::custom),
    }
}
