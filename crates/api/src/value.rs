//! Values that are validated when they are parsed, so that code that has one need not check it again.
//!
//! Each rejects invalid input with a message that names the value. Its schema has the same limits, so that `kubectl apply`
//! and `selvedge validate` reject the same input.

mod address;
mod bgp;
mod family;
mod isis;
mod name;
mod number;
mod password;
mod session;
#[cfg(test)]
mod tests;
mod time;
mod written;

pub use address::{HostCidr, MacAddress, Prefix};
pub use bgp::{Community, ImportRouteTarget, RouteDistinguisher, RouteTarget};
pub use family::{Ipv4Prefix, Ipv6Prefix};
pub use isis::{IsisLevel, NetworkEntityTitle};
pub use name::{IfName, PeVrfName, VrfName};
pub use number::{Asn, Mtu, Seq, VlanId, Vni};
pub use password::Password;
pub use session::{
    BfdInterval, BfdMultiplier, BfdTtl, LocalPreference, MatchLength, Peer, PeerType, Port,
    RemoteAs, RestartTime, TimerSeconds, UdpPort,
};
pub use time::Seconds;
pub use written::{WrittenIpv4Prefix, WrittenIpv6Prefix, WrittenPrefix};

/// Why a text or number is not the value it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not {expected}")]
pub struct InvalidValue {
    given: String,
    expected: &'static str,
}

impl InvalidValue {
    pub(crate) fn new(given: &(impl ToString + ?Sized), expected: &'static str) -> Self {
        Self {
            given: given.to_string(),
            expected,
        }
    }
}

/// Serde and schema of a newtype that is written as a string and has `FromStr` and `Display`.
macro_rules! string_value {
    // Binary formats, which fingerprints use, get the value itself without the cost of formatting it.
    (compact $name:ident, $schema:expr) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    serializer.collect_str(self)
                } else {
                    serde::Serialize::serialize(&self.0, serializer)
                }
            }
        }
        crate::value::string_value!(further $name, $schema);
    };
    ($name:ident, $schema:expr) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        crate::value::string_value!(further $name, $schema);
    };
    (further $name:ident, $schema:expr) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text =
                    <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $schema
            }
        }
        impl TryFrom<&str> for $name {
            type Error = crate::value::InvalidValue;
            fn try_from(text: &str) -> Result<Self, Self::Error> {
                text.parse()
            }
        }
    };
}
pub(crate) use string_value;
