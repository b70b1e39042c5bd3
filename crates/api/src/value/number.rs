//! Numbers with a range.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use super::InvalidValue;

macro_rules! ranged_number {
    ($(#[$doc:meta])* $name:ident($inner:ty), $range:expr, $expected:literal, $format:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(into = "i64")]
        pub struct $name($inner);

        impl $name {
            /// The smallest value.
            pub const MIN: Self = Self(*$range.start());
            /// The largest value.
            pub const MAX: Self = Self(*$range.end());

            /// The plain number.
            pub const fn get(self) -> $inner {
                self.0
            }
        }

        impl TryFrom<i64> for $name {
            type Error = InvalidValue;
            fn try_from(number: i64) -> Result<Self, InvalidValue> {
                <$inner>::try_from(number)
                    .ok()
                    .filter(|inner| $range.contains(inner))
                    .map(Self)
                    .ok_or_else(|| InvalidValue::new(&number, $expected))
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Reader;
                impl serde::de::Visitor<'_> for Reader {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expected)
                    }
                    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<$name, E> {
                        $name::try_from(number).map_err(E::custom)
                    }
                    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<$name, E> {
                        let small = i64::try_from(number).ok();
                        let small = small.ok_or_else(|| InvalidValue::new(&number, $expected));
                        small.and_then($name::try_from).map_err(E::custom)
                    }
                }
                deserializer.deserialize_i64(Reader)
            }
        }

        impl From<$name> for i64 {
            fn from(value: $name) -> Self {
                Self::from(value.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "integer",
                    "format": $format,
                    "minimum": i64::from(*$range.start()),
                    "maximum": i64::from(*$range.end()),
                })
            }
        }
    };
}

pub(super) use ranged_number;

ranged_number!(
    /// VXLAN network identifier, 1–16777215.
    Vni(u32), (1..=16_777_215), "a VXLAN network identifier (1–16777215)", "int32"
);
ranged_number!(
    /// VLAN identifier, 1–4094.
    VlanId(u16), (1..=4094), "a VLAN ID (1–4094)", "int32"
);
ranged_number!(
    /// Autonomous system number, 1–4294967295.
    Asn(u32), (1..=u32::MAX), "an AS number (1–4294967295)", "int64"
);
ranged_number!(
    /// Maximum transmission unit of a segment, 1000–9000.
    Mtu(u16), (1000..=9000), "an MTU (1000–9000)", "int32"
);
ranged_number!(
    /// Order of a rule in its list, 1–4294967295.
    Seq(u32), (1..=u32::MAX), "a sequence number (1–4294967295)", "int64"
);
