//! An AS number as text, where the empty text means "not said here".

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serializer, de::Error};

use crate::{schema::rules, value::Asn};

#[expect(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
pub(super) fn serialize<S: Serializer>(
    asn: &Option<Asn>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match asn {
        Some(asn) => serializer.collect_str(asn),
        None => serializer.serialize_str(""),
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Asn>, D::Error> {
    let text = Cow::<'de, str>::deserialize(deserializer)?;
    if text.is_empty() {
        return Ok(None);
    }
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    match text
        .parse::<i64>()
        .ok()
        .filter(|_| digits)
        .map(Asn::try_from)
    {
        Some(asn) => asn.map(Some).map_err(D::Error::custom),
        None => Err(D::Error::custom(format!(
            "{text:?} is not an AS number (1–4294967295) and not empty"
        ))),
    }
}

/// The schema of such a text.
pub(super) enum AsnText {}

impl JsonSchema for AsnText {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "AsnText".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "maxLength": 10,
            "pattern": "^[0-9]*$",
            "x-kubernetes-validations": rules([(
                "self == '' || (int(self) >= 1 && int(self) <= 4294967295)",
                "must be an AS number between 1 and 4294967295 in quotes, or empty",
            )]),
        })
    }
}
