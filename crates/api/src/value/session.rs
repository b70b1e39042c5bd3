//! Numbers and parties of BGP and BFD sessions.

use std::{borrow::Cow, fmt, net::IpAddr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{Asn, IfName, InvalidValue, number::ranged_number};

ranged_number!(
    /// TCP port to dial, 0–65535; 0 stands for the protocol's own.
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
    /// How many BFD packets may be missed, 2–255.
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

/// Which side of the autonomous system a peer is on, when its number is not given.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum PeerType {
    /// Any AS but our own.
    External,
    /// Our own AS.
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

/// Whom a session is with: an address, or whoever is at the other end of a link.
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
    /// How long peers keep a restarting router's routes unless told otherwise.
    pub const DEFAULT: Self = Self(120);
    /// How long a restarting peer's routes are kept unless told otherwise.
    pub const STALE_PATH_DEFAULT: Self = Self(360);
}

impl UdpPort {
    /// VXLAN's own port.
    pub const VXLAN: Self = Self(4789);
}
