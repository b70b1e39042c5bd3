//! One peer of a router of the host.

use std::{collections::BTreeSet, net::IpAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Advertise, Receive, UpdateSource, absent, schema};
use crate::{
    meta::SecretReference,
    openperouter::{
        Contradiction,
        schema::{is_default, rules},
    },
    value::{Asn, IfName, Password, Peer, PeerType, Port, RemoteAs, Seconds},
};

/// A BGP peer of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "(has(self.asn) && self.asn != 0) || has(self.dynamicASN)",
        "the neighbor has no ASN or DynamicASN specified: give asn, or dynamicASN with internal or external",
    ),
    (
        "!has(self.asn) || self.asn == 0 || !has(self.dynamicASN)",
        "the neighbor has both ASN and DynamicASN specified: keep one of them",
    ),
    (
        "(has(self.address) && self.address != '') || (has(self.interface) && self.interface != '')",
        "the neighbor has no address and no interface: give one of them",
    ),
    (
        "!has(self.address) || self.address == '' || !has(self.interface) || self.interface == ''",
        "the neighbor has both Address and Interface specified: keep one of them",
    ),
    (
        "!has(self.password) || self.password == '' || !has(self.passwordSecret) || !has(self.passwordSecret.name)",
        "password and passwordSecret exclude each other: keep passwordSecret",
    ),
    (
        "has(self.holdTime) == has(self.keepaliveTime)",
        "holdTime and keepaliveTime go together: give both or neither",
    ),
    (
        "!has(self.holdTime) || !has(self.keepaliveTime) || duration(self.keepaliveTime) <= duration(self.holdTime)",
        "keepaliveTime must not exceed holdTime",
    ),
    (
        "!has(self.localASN) || !has(self.dynamicASN) || self.dynamicASN != 'internal'",
        "localASN is for external neighbors only: drop it, or dynamicASN internal",
    ),
    (
        "!has(self.ebgpMultiHop) || !self.ebgpMultiHop || !has(self.interface) || self.interface == ''",
        "ebgpMultiHop does not go with interface, whose peer is always one hop away: drop it",
    ),
    (
        "!has(self.toAdvertise) || !has(self.toAdvertise.nextHop) || !has(self.toAdvertise.nextHop.ipv4) \
         || self.dualStackAddressFamily || !has(self.address) || !self.address.contains(':')",
        "toAdvertise.nextHop.ipv4 is given for a neighbor without an ipv4 address family: drop it, \
         or set dualStackAddressFamily",
    ),
    (
        "!has(self.toAdvertise) || !has(self.toAdvertise.nextHop) || !has(self.toAdvertise.nextHop.ipv6) \
         || self.dualStackAddressFamily || !has(self.address) || !self.address.contains('.')",
        "toAdvertise.nextHop.ipv6 is given for a neighbor without an ipv6 address family: drop it, \
         or set dualStackAddressFamily",
    ),
])))]
pub struct Neighbor {
    /// AS number of the peer. 0 or absent if `dynamicASN` is set.
    #[serde(
        default,
        deserialize_with = "absent::number",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(schema_with = "schema::optional_asn")]
    pub asn: Option<Asn>,
    /// `internal` or `external`, instead of the AS number of the peer.
    #[serde(
        rename = "dynamicASN",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub dynamic_asn: Option<PeerType>,
    /// Source address or source device of the session.
    #[serde(
        rename = "sourceaddress",
        default,
        deserialize_with = "absent::text",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(schema_with = "schema::update_source")]
    pub source_address: Option<UpdateSource>,
    /// IP address of the peer. Exactly one of `address` and `interface` must be set.
    #[serde(
        default,
        deserialize_with = "absent::text",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(schema_with = "schema::address")]
    pub address: Option<IpAddr>,
    /// Device of an unnumbered session, such as `eth1`, instead of an address. Such a session exchanges IPv4 and IPv6 routes.
    #[serde(
        default,
        deserialize_with = "absent::text",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(schema_with = "schema::device")]
    pub interface: Option<IfName>,
    /// TCP port of the peer. Default, also for 0: 179.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<Port>,
    /// TCP MD5 password of the session in clear text. Prefer `passwordSecret`, which keeps it out of this object.
    #[serde(
        default,
        deserialize_with = "absent::text",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(schema_with = "schema::password")]
    pub password: Option<Password>,
    /// Secret of type `kubernetes.io/basic-auth` with the TCP MD5 password under the key `password`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub password_secret: Option<SecretReference>,
    /// Hold time: the session is closed after this long without a message, in whole seconds, such as `180s`. Requires `keepaliveTime`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = rules([(
        "duration(self) == duration('0s') || (duration(self) >= duration('3s') && duration(self) \
         <= duration('65535s'))",
        "holdTime must be 0s, or 3s to 65535s",
    )])))]
    pub hold_time: Option<Seconds>,
    /// Keepalive interval in whole seconds, such as `60s`. Requires `holdTime`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keepalive_time: Option<Seconds>,
    /// Time between connection attempts, in whole seconds, such as `10s`. FRR default: `120s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = rules([(
        "duration(self) >= duration('1s') && duration(self) <= duration('65535s')",
        "connectTime must be 1s to 65535s",
    )])))]
    pub connect_time: Option<Seconds>,
    /// Allows an external peer that is more than one hop away. Default: false.
    #[serde(
        rename = "ebgpMultiHop",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub ebgp_multi_hop: Option<bool>,
    /// Name of a BFD profile of this object. Enables BFD on the session. Default: no BFD.
    #[serde(
        default,
        deserialize_with = "absent::text",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(max = 63))]
    pub bfd_profile: Option<String>,
    /// Enables BGP graceful restart on the session. Takes effect when the session is next established. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_graceful_restart: Option<bool>,
    /// Prefixes that are advertised to the peer. Only for IPv4 and IPv6 unicast. Default: none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub to_advertise: Advertise,
    /// Prefixes that are accepted from the peer. Only for IPv4 and IPv6 unicast. Default: none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub to_receive: Receive,
    /// Deprecated: accepted for compatibility and ignored.
    #[serde(rename = "disableMP", default)]
    pub disable_mp: bool,
    /// Exchanges IPv4 and IPv6 routes regardless of the address family of the session. Default: false.
    #[serde(default)]
    pub dual_stack_address_family: bool,
    /// Local AS number towards this peer. Default: the AS number of the router.
    #[serde(rename = "localASN", default, skip_serializing_if = "Option::is_none")]
    pub local_asn: Option<Asn>,
    /// Address families of the session: `unicast` (IPv4 or IPv6, by the address of the peer) and `evpn` (L2VPN EVPN). Default: `unicast`.
    #[serde(default = "unicast")]
    #[schemars(length(max = 2))]
    pub address_families: BTreeSet<AddressFamily>,
}

/// An address family of a session.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum AddressFamily {
    /// IPv4, IPv6 or both.
    Unicast,
    /// L2VPN EVPN.
    Evpn,
}

/// Hold and keepalive time of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionTimers {
    /// How long the session outlives the peer's silence.
    pub hold: Seconds,
    /// How often the session shows that it lives.
    pub keepalive: Seconds,
}

impl Neighbor {
    /// The AS the session expects.
    pub fn remote_as(&self) -> Result<RemoteAs, Contradiction> {
        match (self.asn, self.dynamic_asn) {
            (Some(asn), None) => Ok(RemoteAs::Number(asn)),
            (None, Some(kind)) => Ok(RemoteAs::Type(kind)),
            (Some(_), Some(_)) => Err(Contradiction::Both("asn", "dynamicASN")),
            (None, None) => Err(Contradiction::Neither("asn", "dynamicASN")),
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

    /// Hold and keepalive time, if given.
    pub fn timers(&self) -> Result<Option<SessionTimers>, Contradiction> {
        match (self.hold_time, self.keepalive_time) {
            (Some(hold), Some(keepalive)) => Ok(Some(SessionTimers { hold, keepalive })),
            (None, None) => Ok(None),
            (Some(_), None) => Err(Contradiction::Needs("holdTime", "keepaliveTime")),
            (None, Some(_)) => Err(Contradiction::Needs("keepaliveTime", "holdTime")),
        }
    }

    /// Whether the session carries this family; an empty list of families means unicast.
    pub fn carries(&self, family: AddressFamily) -> bool {
        let implied = self.address_families.is_empty() && family == AddressFamily::Unicast;
        implied || self.address_families.contains(&family)
    }

    /// Whether the session carries both unicast families.
    pub fn is_dual_stack(&self) -> bool {
        self.interface.is_some() || self.dual_stack_address_family
    }
}

fn unicast() -> BTreeSet<AddressFamily> {
    BTreeSet::from([AddressFamily::Unicast])
}
