//! Which packets are meant.

use std::{borrow::Cow, fmt, net::IpAddr, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{
    schema::rules,
    value::{InvalidValue, Prefix},
};

/// Match criteria for packets. All that are set must match; an absent one matches every packet.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "!(has(self.srcPort) || has(self.dstPort)) || (has(self.protocol) && self.protocol in ['tcp', 'udp', 'sctp'])",
        "srcPort and dstPort need protocol tcp, udp or sctp",
    ),
    (
        "!has(self.srcPrefix) || !has(self.dstPrefix) || self.srcPrefix.contains(':') == self.dstPrefix.contains(':')",
        "srcPrefix and dstPrefix must be of the same address family: no packet has both",
    ),
])))]
pub struct TrafficMatch {
    /// Source network or address, such as `192.0.2.0/24` or `192.0.2.7`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub src_prefix: Option<MatchPrefix>,
    /// Destination network or address, such as `192.0.2.0/24` or `192.0.2.7`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst_prefix: Option<MatchPrefix>,
    /// Source port, 1–65535. Requires `protocol` `tcp`, `udp` or `sctp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub src_port: Option<u16>,
    /// Destination port, 1–65535. Requires `protocol` `tcp`, `udp` or `sctp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub dst_port: Option<u16>,
    /// Protocol: `tcp`, `udp`, `sctp`, `icmp` (IPv4) or `icmpv6`. Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
}

/// A protocol above IP.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
    /// ICMP of IPv4.
    Icmp,
    /// ICMP of IPv6.
    Icmpv6,
}

impl Protocol {
    /// Whether its packets have ports.
    pub const fn has_ports(self) -> bool {
        matches!(self, Self::Tcp | Self::Udp | Self::Sctp)
    }

    /// Whether it is IPv4's or IPv6's, where it is of one family alone.
    pub const fn is_ipv4(self) -> Option<bool> {
        match self {
            Self::Tcp | Self::Udp | Self::Sctp => None,
            Self::Icmp => Some(true),
            Self::Icmpv6 => Some(false),
        }
    }
}

/// Direction of mirrored traffic as seen by the workload.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum MirrorDirection {
    /// To the workload.
    Ingress,
    /// From the workload.
    Egress,
}

/// A network to match, written in CIDR notation or as a plain address, which stands for itself alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MatchPrefix(Prefix);

impl MatchPrefix {
    /// The network; one address is a network of full length.
    pub fn prefix(self) -> Prefix {
        self.0
    }
}

impl From<Prefix> for MatchPrefix {
    fn from(prefix: Prefix) -> Self {
        Self(prefix)
    }
}

impl FromStr for MatchPrefix {
    type Err = InvalidValue;
    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        match text.parse::<IpAddr>() {
            Ok(address) => Ok(Self(Prefix::host(address))),
            Err(_) => text.parse().map(Self),
        }
    }
}

impl TryFrom<String> for MatchPrefix {
    type Error = InvalidValue;
    fn try_from(text: String) -> Result<Self, InvalidValue> {
        text.parse()
    }
}

impl fmt::Display for MatchPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<MatchPrefix> for String {
    fn from(prefix: MatchPrefix) -> Self {
        prefix.to_string()
    }
}

impl JsonSchema for MatchPrefix {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "MatchPrefix".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "maxLength": 43,
            "x-kubernetes-validations": rules([(
                "isIP(self) || (isCIDR(self) && cidr(self) == cidr(self).masked())",
                "must be an IP address, or a network in CIDR notation without host bits, such as 192.0.2.0/24",
            )]),
        })
    }
}
