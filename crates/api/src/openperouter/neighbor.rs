//! The fabric's side of an Underlay: the peers of a node.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Contradiction,
    schema::{self, rules},
};
use crate::value::{
    Asn, BfdInterval, BfdMultiplier, BfdTtl, IfName, Password, Peer, PeerType, Port, RemoteAs,
    Seconds, TimerSeconds,
};

/// A BGP peer in the fabric, usually a top-of-rack switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "has(self.asn) != has(self.type)",
        "exactly one of asn and type is needed: give the peer's AS number, or external or internal",
    ),
    (
        "has(self.address) != has(self.interface)",
        "exactly one of address and interface is needed: give the peer's address, or the device it is behind",
    ),
    (
        "!has(self.hostasn) || !has(self.asn) || self.hostasn != self.asn",
        "hostasn must differ from asn; it has no effect and can be left out",
    ),
    (
        "!has(self.password) || !has(self.passwordSecret)",
        "password and passwordSecret exclude each other: keep passwordSecret",
    ),
    (
        "!has(self.holdTime) || !has(self.holdTimeSeconds)",
        "holdTime and holdTimeSeconds say the same thing: give one of them",
    ),
    (
        "!has(self.keepaliveTime) || !has(self.keepaliveTimeSeconds)",
        "keepaliveTime and keepaliveTimeSeconds say the same thing: give one of them",
    ),
    (
        "!has(self.connectTime) || !has(self.connectTimeSeconds)",
        "connectTime and connectTimeSeconds say the same thing: give one of them",
    ),
    (
        "(has(self.holdTime) || has(self.holdTimeSeconds)) == (has(self.keepaliveTime) \
         || has(self.keepaliveTimeSeconds))",
        "hold time and keepalive time go together: give both or neither",
    ),
    (
        "!has(self.holdTime) || duration(self.holdTime) == duration('0s') \
         || (duration(self.holdTime) >= duration('3s') && duration(self.holdTime) <= duration('65535s'))",
        "holdTime must be 0s, or 3s to 65535s",
    ),
    (
        "!has(self.holdTimeSeconds) || self.holdTimeSeconds == 0 || self.holdTimeSeconds >= 3",
        "holdTimeSeconds must be 0, or 3 to 65535",
    ),
    (
        "!(has(self.holdTime) || has(self.holdTimeSeconds)) || !(has(self.keepaliveTime) \
         || has(self.keepaliveTimeSeconds)) || (has(self.keepaliveTime) \
         ? duration(self.keepaliveTime).getSeconds() : self.keepaliveTimeSeconds) <= (has(self.holdTime) \
         ? duration(self.holdTime).getSeconds() : self.holdTimeSeconds)",
        "the keepalive time must not exceed the hold time",
    ),
    (
        "!has(self.connectTime) || (duration(self.connectTime) >= duration('1s') && duration(self.connectTime) \
         <= duration('65535s'))",
        "connectTime must be 1s to 65535s",
    ),
    (
        "!has(self.bfd) || !has(self.bfd.echoMode) || !self.bfd.echoMode || !has(self.ebgpMultiHop) \
         || !self.ebgpMultiHop",
        "bfd.echoMode works over a single hop only: drop it or ebgpMultiHop",
    ),
    (
        "!has(self.updateSource) || has(self.address)",
        "updateSource needs a neighbor with an address: a session over a device starts from that device",
    ),
    (
        "!has(self.addressFamilies) || !self.addressFamilies.exists(f, f.type == 'evpn') \
         || !self.addressFamilies.exists(f, f.type in ['ipv4vpn', 'ipv6vpn'])",
        "evpn excludes ipv4vpn and ipv6vpn on one neighbor",
    ),
    (
        "!has(self.addressFamilies) || !self.addressFamilies.exists(f, f.type in ['ipv4vpn', 'ipv6vpn']) \
         || (has(self.address) && self.address.contains(':'))",
        "ipv4vpn and ipv6vpn need a neighbor with an IPv6 address",
    ),
])))]
pub struct Neighbor {
    /// AS number of the peer. The AS number of the Underlay makes the session iBGP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asn: Option<Asn>,
    /// `internal` or `external`, instead of the AS number of the peer.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<PeerType>,
    /// Deprecated: accepted for compatibility and ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4_294_967_295_i64))]
    pub hostasn: Option<i64>,
    /// IP address of the peer. Exactly one of `address` and `interface` must be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::ip")]
    pub address: Option<IpAddr>,
    /// Device of an unnumbered session, such as `eth1`. Exactly one of `address` and `interface` must be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<IfName>,
    /// TCP port of the peer. Default, also for 0: 179.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<Port>,
    /// TCP MD5 password of the session in clear text. Prefer `passwordSecret`, which keeps it out of this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Password>,
    /// Name of a Secret of type `kubernetes.io/basic-auth` in the namespace of this object, with the TCP MD5 password under the key
    /// `password`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub password_secret: Option<String>,
    /// Hold time: the session is closed after this long without a message, in whole seconds, such as `90s`. Requires `keepaliveTime`.
    /// Default without `bfd`: `9s` with a keepalive interval of `3s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_time: Option<Seconds>,
    /// Keepalive interval in whole seconds, such as `30s`. Requires `holdTime`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keepalive_time: Option<Seconds>,
    /// Time between connection attempts, in whole seconds, such as `10s`. Default: `10s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_time: Option<Seconds>,
    /// Hold time as a number of seconds, 0 or 3–65535. Replaces `holdTime`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_time_seconds: Option<TimerSeconds>,
    /// Keepalive interval as a number of seconds. Replaces `keepaliveTime`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keepalive_time_seconds: Option<TimerSeconds>,
    /// Time between connection attempts as a number of seconds, 1–65535. Replaces `connectTime`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = rules([
    (
        "self >= 1",
        "connectTimeSeconds must be 1 to 65535",
    ),
])))]
    pub connect_time_seconds: Option<TimerSeconds>,
    /// Allows an external peer that is more than one hop away. Default: false.
    #[serde(
        rename = "ebgpMultiHop",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub ebgp_multi_hop: Option<bool>,
    /// Enables BFD on the session. An empty object uses the timers of FRR. Default: no BFD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bfd: Option<Bfd>,
    /// Source address of the session, for peers behind other peers, such as EVPN route reflectors. An external peer also needs
    /// `ebgpMultiHop`. Default: the address of the outgoing device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_source: Option<UpdateSource>,
    /// Address families of the session. Default: unicast of the address family of the session, and EVPN if the Underlay has a tunnel
    /// endpoint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 4),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub address_families: Vec<NeighborAddressFamily>,
}

/// How a session is watched by BFD. What is absent follows FRR.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "!has(self.minimumTtl) || !has(self.minimumTTL)",
        "minimumTtl and minimumTTL say the same thing: give one of them",
    ),
])))]
pub struct Bfd {
    /// Minimum interval between received BFD packets, in milliseconds, 10–60000. FRR default: 300.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_interval: Option<BfdInterval>,
    /// Interval between sent BFD packets, in milliseconds, 10–60000. FRR default: 300.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transmit_interval: Option<BfdInterval>,
    /// Number of lost BFD packets after which the session is down, 2–255. FRR default: 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detect_multiplier: Option<BfdMultiplier>,
    /// Interval between BFD echo packets, in milliseconds, 10–60000. FRR default: 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo_interval: Option<BfdInterval>,
    /// Enables BFD echo packets. Only on single-hop sessions. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo_mode: Option<bool>,
    /// Waits for the first packet of the peer before sending any. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passive_mode: Option<bool>,
    /// Minimum TTL of received BFD packets on multihop sessions, 1–254. FRR default: 254.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum_ttl: Option<BfdTtl>,
    /// Same as `minimumTtl`, which it replaces.
    #[serde(
        rename = "minimumTTL",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub minimum_ttl_upper: Option<BfdTtl>,
}

/// Source address of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum UpdateSource {
    /// The node's tunnel endpoint.
    Vtep,
}

/// An address family of a BGP session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NeighborAddressFamily {
    /// Address family, such as `ipv4unicast` or `evpn`.
    #[serde(rename = "type")]
    pub kind: NeighborFamily,
}

/// Address families that a session in the fabric can carry.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum NeighborFamily {
    /// IPv4 routes.
    Ipv4Unicast,
    /// IPv6 routes.
    Ipv6Unicast,
    /// MAC addresses and prefixes of the overlay.
    Evpn,
    /// IPv4 routes of VPNs.
    Ipv4Vpn,
    /// IPv6 routes of VPNs.
    Ipv6Vpn,
}

/// Hold and keepalive time of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    /// How long the session outlives the peer's silence.
    pub hold: Seconds,
    /// How often the session shows that it lives.
    pub keepalive: Seconds,
}

impl Neighbor {
    /// The AS the session expects.
    pub fn remote_as(&self) -> Result<RemoteAs, Contradiction> {
        match (self.asn, self.kind) {
            (Some(asn), None) => Ok(RemoteAs::Number(asn)),
            (None, Some(kind)) => Ok(RemoteAs::Type(kind)),
            (Some(_), Some(_)) => Err(Contradiction::Both("asn", "type")),
            (None, None) => Err(Contradiction::Neither("asn", "type")),
        }
    }

    /// Peer of the session.
    pub fn peer(&self) -> Result<Peer, Contradiction> {
        match (self.address, &self.interface) {
            (Some(address), None) => Ok(Peer::Address(address)),
            (None, Some(interface)) => Ok(Peer::Interface(interface.clone())),
            (Some(_), Some(_)) => Err(Contradiction::Both("address", "interface")),
            (None, None) => Err(Contradiction::Neither("address", "interface")),
        }
    }

    /// Hold and keepalive time, if given, in either spelling.
    pub fn timers(&self) -> Result<Option<Timers>, Contradiction> {
        let hold = one_of(
            self.hold_time,
            self.hold_time_seconds,
            ("holdTime", "holdTimeSeconds"),
        )?;
        let names = ("keepaliveTime", "keepaliveTimeSeconds");
        let keepalive = one_of(self.keepalive_time, self.keepalive_time_seconds, names)?;
        match (hold, keepalive) {
            (Some(hold), Some(keepalive)) => Ok(Some(Timers { hold, keepalive })),
            (None, None) => Ok(None),
            (Some(_), None) => Err(Contradiction::Needs("holdTime", "keepaliveTime")),
            (None, Some(_)) => Err(Contradiction::Needs("keepaliveTime", "holdTime")),
        }
    }

    /// How long to wait between attempts to connect, if given, in either spelling.
    pub fn connect_time(&self) -> Result<Option<Seconds>, Contradiction> {
        one_of(
            self.connect_time,
            self.connect_time_seconds,
            ("connectTime", "connectTimeSeconds"),
        )
    }
}

impl Bfd {
    /// Least TTL of packets, in either spelling.
    pub fn minimum_ttl(&self) -> Result<Option<BfdTtl>, Contradiction> {
        match (self.minimum_ttl, self.minimum_ttl_upper) {
            (Some(_), Some(_)) => Err(Contradiction::Both("bfd.minimumTtl", "bfd.minimumTTL")),
            (older, newer) => Ok(older.or(newer)),
        }
    }
}

fn one_of(
    span: Option<Seconds>,
    number: Option<TimerSeconds>,
    names: (&'static str, &'static str),
) -> Result<Option<Seconds>, Contradiction> {
    match (span, number) {
        (Some(_), Some(_)) => Err(Contradiction::Both(names.0, names.1)),
        (span, number) => {
            Ok(span.or_else(|| number.map(|number| Seconds::new(number.get().into()))))
        }
    }
}
