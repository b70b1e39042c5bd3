//! Parameters of BGP and BFD sessions.

use std::{borrow::Cow, fmt, net::IpAddr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{Asn, IfName, InvalidValue, number::ranged_number};

ranged_number!(
    /// TCP port of the peer, 0–65535; 0 is the default port of the protocol.
    Port(u16), (0..=u16::MAX), "a TCP port (0–65535)", "int32"
);
ranged_number!(
    /// UDP port, 1–65535.
    UdpPort(u16), (1..=u16::MAX), "a UDP port (1–65535)", "int32"
);
ranged_number!(
    /// Interval between BFD packets in milliseconds, 10–60000.
    BfdInterval(u16), (10..=60_000), "a BFD interval (10–60000 ms)", "int32"
);
ranged_number!(
    /// Number of lost BFD packets after which the session is down, 2–255.
    BfdMultiplier(u8), (2..=u8::MAX), "a BFD detection multiplier (2–255)", "int32"
);
ranged_number!(
    /// Least TTL of a multi-hop BFD packet, 1–254.
    BfdTtl(u8), (1..=254), "a BFD minimum TTL (1–254)", "int32"
);
ranged_number!(
    /// BGP local preference, 0–4294967295.
    LocalPreference(u32), (0..=u32::MAX), "a local preference (0–4294967295)", "int64"
);
ranged_number!(
    /// Prefix length that a filter compares with, 1–128.
    MatchLength(u8), (1..=128), "a prefix length (1–128)", "int32"
);
ranged_number!(
    /// A BGP timer in seconds, 0–65535.
    TimerSeconds(u16), (0..=u16::MAX), "a timer in seconds (0–65535)", "int32"
);

ranged_number!(
    /// How long routes outlive a restart in seconds, 1–4095.
    RestartTime(u16), (1..=4095), "a restart time (1–4095 s)", "int32"
);

impl Port {
    /// The port, unless it stands for the protocol's own.
    pub fn explicit(self) -> Option<u16> {
        (self.get() != 0).then_some(self.get())
    }
}

/// Relation of the AS of a peer to the local AS, if its number is not configured.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum PeerType {
    /// Any AS number except the local one.
    External,
    /// The local AS number.
    Internal,
}

/// The AS of a peer, as a session expects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RemoteAs {
    /// Exactly this one.
    Number(Asn),
    /// Whatever the peer says, if it is on this side.
    Type(PeerType),
}

impl fmt::Display for RemoteAs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(asn) => asn.fmt(f),
            Self::Type(PeerType::External) => f.write_str("external"),
            Self::Type(PeerType::Internal) => f.write_str("internal"),
        }
    }
}

/// Peer of a session: an address, or the device of an unnumbered session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Peer {
    /// The peer with this address.
    Address(IpAddr),
    /// The peer behind this device, found by its link-local address.
    Interface(IfName),
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Interface(name) => name.fmt(f),
        }
    }
}

impl RestartTime {
    /// Default time for which peers keep the routes of a restarting router.
    pub const DEFAULT: Self = Self(120);
    /// Default time for which routes of a restarting peer are kept.
    pub const STALE_PATH_DEFAULT: Self = Self(360);
}

impl UdpPort {
    /// VXLAN's own port.
    pub const VXLAN: Self = Self(4789);
}
