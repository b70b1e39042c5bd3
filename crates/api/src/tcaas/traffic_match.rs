//! Which packets a rule speaks of.

use std::{fmt, net::IpAddr, str::FromStr};

use schemars::{JsonSchema, json_schema};
use serde::{Deserialize, Serialize};

use crate::value::{InvalidValue, Prefix, string_value};

/// Which packets a rule speaks of: all parts that are set must match; nothing set means every packet.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct TrafficMatch {
    /// Network or address the packet comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub src_prefix: Option<PrefixOrHost>,
    /// Network or address the packet goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst_prefix: Option<PrefixOrHost>,
    /// Port the packet comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub src_port: Option<u16>,
    /// Port the packet goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst_port: Option<u16>,
    /// Protocol of the packet, such as `tcp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
}

/// A network in CIDR notation, or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrefixOrHost(Prefix);

impl PrefixOrHost {
    /// The network; a single address is one of full length.
    pub fn prefix(self) -> Prefix {
        self.0
    }
}

impl FromStr for PrefixOrHost {
    type Err = InvalidValue;
    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        match text.parse::<IpAddr>() {
            Ok(address) => Ok(Self(Prefix::host(address))),
            Err(_) => text.parse().map(Self),
        }
    }
}

impl fmt::Display for PrefixOrHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

string_value!(
    PrefixOrHost,
    json_schema!({
        "type": "string",
        "maxLength": 43,
        "x-kubernetes-validations": [{
            "rule": "isIP(self) || (isCIDR(self) && cidr(self) == cidr(self).masked())",
            "message": "must be an address, or a network in CIDR notation without host bits",
        }],
    })
);
