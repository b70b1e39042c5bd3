//! The BGP router in the host's own network namespace: what all `FRRConfiguration`s that select the node add up to.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::underlay::RemoteAs;
use crate::{
    frrk8s::{BfdProfile, FrrCommunity, ObservedConfiguration, UpdateSource},
    meta::SecretReference,
    selvedge::LogLevel,
    value::{
        Asn, IfName, ImportRouteTarget, LocalPreference, MatchLength, Prefix, RouteDistinguisher,
        RouteTarget, Vni,
    },
};

/// The BGP router of the host, merged from all `FRRConfiguration`s that select the node. It is no part of a revision: the node applies a
/// change at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostRouter {
    /// The `FRRConfiguration`s that are in effect, each with the generation that it was merged from, in order of namespace and name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configurations: Vec<ObservedConfiguration>,
    /// Problems of `FRRConfiguration`s that select the node and are not in effect as they are now, one message each. The node reports them
    /// in its `FRRNodeState`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// Log level of FRR. Default: `info`.
    #[serde(default, skip_serializing_if = "LogLevel::is_default")]
    pub log_level: LogLevel,
    /// Networks that are accepted from no neighbor, nor any part of them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub always_block: BTreeSet<Prefix>,
    /// BGP routers by VRF device; `default` is the default VRF.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub routers: BTreeMap<IfName, HostBgp>,
    /// BFD profiles, in order of their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bfd_profiles: Vec<BfdProfile>,
    /// Raw FRR configuration, in order of priority, then of namespace and name of the objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub raw: Vec<RawLines>,
}

/// Raw FRR configuration of one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RawLines {
    /// The `FRRConfiguration`, as `namespace/name`.
    pub source: String,
    /// FRR configuration lines, separated by newlines.
    pub lines: String,
}

/// A BGP router of the host in one VRF.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostBgp {
    /// AS number of the router.
    pub asn: Asn,
    /// BGP router ID, written as an IPv4 address. Default: chosen by FRR from the addresses of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub router_id: Option<Ipv4Addr>,
    /// BGP peers, in order of device or address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub neighbors: Vec<HostNeighbor>,
    /// Networks that the router originates.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub networks: BTreeSet<Prefix>,
    /// VRF devices whose unicast routes are imported; `default` is the default VRF.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub imports: BTreeSet<IfName>,
    /// Advertises all VNIs of the host to EVPN neighbors.
    #[serde(
        default,
        rename = "advertiseAllVNIs",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub advertise_all_vnis: bool,
    /// Advertises IP and MAC address of the host's own devices in its segments.
    #[serde(
        default,
        rename = "advertiseSVI",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub advertise_svi: bool,
    /// Layer 2 VNIs with a route distinguisher or route targets of their own, in order of their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub l2vnis: Vec<HostVni>,
    /// Layer 3 VNI of the VRF. The unicast routes of the router are advertised as EVPN type 5 routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l3vni: Option<HostVni>,
}

/// A VNI with its route distinguisher and route targets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostVni {
    /// VXLAN network identifier (VNI).
    pub vni: Vni,
    /// Route distinguisher. Default: derived by FRR from router ID and VNI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rd: Option<RouteDistinguisher>,
    /// Route targets of imported routes. Default: derived by FRR from AS number and VNI.
    #[serde(
        default,
        rename = "importRTs",
        skip_serializing_if = "BTreeSet::is_empty"
    )]
    pub import_rts: BTreeSet<ImportRouteTarget>,
    /// Route targets of exported routes. Default: derived by FRR from AS number and VNI.
    #[serde(
        default,
        rename = "exportRTs",
        skip_serializing_if = "BTreeSet::is_empty"
    )]
    pub export_rts: BTreeSet<RouteTarget>,
}

/// A BGP peer of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "settings of a session that have nothing to do with one another"
)]
pub struct HostNeighbor {
    /// IP address of the peer. Exactly one of `address` and `interface` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub address: Option<IpAddr>,
    /// Device of an unnumbered session, which uses link-local addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<IfName>,
    /// AS number of the peer.
    pub remote_as: RemoteAs,
    /// Local AS number on this session. Default: the AS number of the router.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_as: Option<Asn>,
    /// Source address or source device of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub source: Option<UpdateSource>,
    /// TCP port of the peer. Default: 179.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Keepalive interval in seconds. Set together with `holdTime`. Default: 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keepalive_time: Option<u16>,
    /// Hold time in seconds: the session is closed after this long without a message. Default: 180.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_time: Option<u16>,
    /// Time between two connection attempts in seconds. Default: 120.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_time: Option<u16>,
    /// Allows a peer that is more than one hop away (eBGP multihop).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ebgp_multi_hop: bool,
    /// Does not require that the address of the peer is in a network of the host: external IPv6 peers that are one hop away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disable_connected_check: bool,
    /// Advertises graceful restart on this session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub graceful_restart: bool,
    /// Name of the BFD profile of the session. Absent: no BFD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bfd_profile: Option<String>,
    /// Secret with the TCP MD5 password of the session under the key `password`. Read by the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_secret: Option<SecretReference>,
    /// Exchanges IPv4 unicast routes with the peer. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ipv4: bool,
    /// Exchanges IPv6 unicast routes with the peer. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ipv6: bool,
    /// Exchanges EVPN routes with the peer (address family L2VPN EVPN). Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub evpn: bool,
    /// Unicast routes that the peer gets.
    #[serde(default, skip_serializing_if = "HostAdvertise::is_nothing")]
    pub advertise: HostAdvertise,
    /// Unicast routes that are accepted from the peer.
    #[serde(default, skip_serializing_if = "HostReceive::is_nothing")]
    pub receive: HostReceive,
}

/// Unicast routes that a peer gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostAdvertise {
    /// Prefixes that are advertised. No other is.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub prefixes: BTreeSet<Prefix>,
    /// IPv4 next hop of advertised IPv4 routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub next_hop_ipv4: Option<Ipv4Addr>,
    /// IPv6 next hop of advertised IPv6 routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub next_hop_ipv6: Option<Ipv6Addr>,
    /// Local preferences of advertised prefixes, in order of the preference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub local_preferences: Vec<PreferredPrefixes>,
    /// Communities of advertised prefixes, in order of the community.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub communities: Vec<MarkedPrefixes>,
}

impl HostAdvertise {
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Prefixes that are advertised with a local preference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreferredPrefixes {
    /// BGP local preference of the prefixes, such as `200`.
    pub local_preference: LocalPreference,
    /// Advertised prefixes with this local preference.
    pub prefixes: BTreeSet<Prefix>,
}

/// Prefixes that are advertised with a community.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MarkedPrefixes {
    /// BGP community: standard `a:b`, or large `large:a:b:c`.
    #[schemars(with = "String")]
    pub community: FrrCommunity,
    /// Advertised prefixes with this community.
    pub prefixes: BTreeSet<Prefix>,
}

/// Unicast routes that are accepted from a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostReceive {
    /// Accepts all prefixes. Default: false, only those of `prefixes`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Prefixes that are accepted, if not all are.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub prefixes: BTreeSet<AcceptedPrefix>,
}

impl HostReceive {
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// A prefix that is accepted, with an optional range of prefix lengths.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct AcceptedPrefix {
    /// Network that is accepted, such as `192.0.2.0/24`.
    pub prefix: Prefix,
    /// Minimum prefix length. Default: the length of `prefix`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ge: Option<MatchLength>,
    /// Maximum prefix length. Default: the length of `prefix`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub le: Option<MatchLength>,
}

/// State of the host's router, reported by the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostRouterStatus {
    /// The `FRRConfiguration`s that FRR runs, with their generations. Empty while FRR does not run or its state is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configurations: Vec<ObservedConfiguration>,
    /// Why the latest config of the host's router is not in effect. Absent if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Lines of raw configuration that are not applied, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_raw: Vec<RefusedLine>,
    /// Fields that the FRR of this node cannot apply. The rest of their objects is applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsupported: Vec<UnsupportedField>,
    /// Devices and VNIs that the config refers to and that the host does not have: what depends on them has no effect yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingDevice>,
}

/// A line of raw configuration that is not applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusedLine {
    /// The `FRRConfiguration`, as `namespace/name`.
    pub source: String,
    /// Number of the line in `spec.raw.rawConfig`, from 1.
    pub line: u32,
    /// Why it is refused. A password in the line is cut out.
    pub message: String,
}

/// A field that the FRR of a node cannot apply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnsupportedField {
    /// VRF device of the router; `default` is the default VRF.
    pub vrf: IfName,
    /// VNI, if the field is of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vni: Option<Vni>,
    /// Address or device of the neighbor, if the field is of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// What cannot be applied, with the version of FRR and what to do.
    pub message: String,
}

/// Something that the config of the host's router refers to and that the host does not have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MissingDevice {
    /// VRF device of the router that refers to it; `default` is the default VRF.
    pub vrf: IfName,
    /// Kind of the missing thing.
    pub kind: MissingKind,
    /// Name of the device, or the VNI.
    pub name: String,
}

/// Kind of a thing that the host lacks.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum MissingKind {
    /// VRF device of a router.
    Vrf,
    /// Device of an unnumbered neighbor or the source of a session.
    Interface,
    /// VXLAN device of a layer 2 VNI, as port of a bridge.
    L2vni,
    /// VXLAN device of a layer 3 VNI, as port of a bridge in the VRF.
    L3vni,
}
