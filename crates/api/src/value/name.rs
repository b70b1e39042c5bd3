//! Names of kernel devices.

use std::{fmt, str::FromStr};

use schemars::json_schema;

use super::{InvalidValue, string_value};

macro_rules! device_name {
    ($(#[$doc:meta])* $name:ident, $max:literal, $pattern:literal, $first:expr, $expected:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Box<str>);

        impl $name {
            /// How many bytes fit.
            pub const MAX_LEN: usize = $max;

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidValue;
            fn from_str(text: &str) -> Result<Self, InvalidValue> {
                let first: fn(u8) -> bool = $first;
                let mut bytes = text.bytes();
                let fits = text.len() <= $max
                    && bytes.next().is_some_and(first)
                    && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'));
                if fits { Ok(Self(text.into())) } else { Err(InvalidValue::new(text, $expected)) }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        string_value!(compact $name, json_schema!({"type": "string", "minLength": 1, "maxLength": $max, "pattern": $pattern}));
    };
}

device_name!(
    /// Name of a network device: 1–15 letters, digits, `_`, `.` or `-`.
    ///
    /// Narrower than what the kernel takes, so that a name can never mean anything to a shell, a file path or FRR.
    IfName,
    15,
    r"^[a-zA-Z0-9_][a-zA-Z0-9_.-]*$",
    |b| b.is_ascii_alphanumeric() || b == b'_',
    "an interface name (1–15 letters, digits, '_', '.' or '-', not starting with '.' or '-')"
);
device_name!(
    /// Name of a VRF: at most 12 bytes, because `br.<vrf>` and `vx.<vrf>` must fit into a device name.
    VrfName,
    12,
    r"^[a-zA-Z0-9_][a-zA-Z0-9_.-]*$",
    |b| b.is_ascii_alphanumeric() || b == b'_',
    "a VRF name (1–12 letters, digits, '_', '.' or '-', not starting with '.' or '-')"
);
device_name!(
    /// Name of a VRF in OpenPERouter's kinds, which allow the full length of a device name.
    PeVrfName,
    15,
    r"^[a-zA-Z][a-zA-Z0-9_.-]*$",
    |b| b.is_ascii_alphabetic(),
    "a VRF name (1–15 letters, digits, '_', '.' or '-', starting with a letter)"
);

impl From<VrfName> for IfName {
    fn from(name: VrfName) -> Self {
        Self(name.0)
    }
}

impl From<PeVrfName> for IfName {
    fn from(name: PeVrfName) -> Self {
        Self(name.0)
    }
}
