//! BGP sessions inside a VRF.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::filter::Filter;
use crate::{
    meta::SecretReference,
    value::{Asn, IfName, Prefix, Seconds},
};

/// A session with a workload or a neighbor of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BgpPeer {
    /// Address of the peer; exactly one of `address`, `interface` and `listenRange` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub address: Option<IpAddr>,
    /// Device of an unnumbered session over link-local addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<IfName>,
    /// Network whose members may open a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen_range: Option<Prefix>,
    /// AS of the peer.
    pub remote_asn: Asn,
    /// AS number that the router has on this session, where it is not that of its BGP instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_as: Option<Asn>,
    /// The IPv4 routes of the session; absent means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv4: Option<AddressFamily>,
    /// The IPv6 routes of the session; absent means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv6: Option<AddressFamily>,
    /// BFD on the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bfd_profile: Option<BfdProfile>,
    /// How many hops away the peer may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multihop: Option<u8>,
    /// Silence after which the session is down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_time: Option<Seconds>,
    /// Time between keepalives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keepalive_time: Option<Seconds>,
    /// Secret (key `password`) with the TCP-MD5 password of the session; the agent reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_secret: Option<SecretReference>,
    /// Device whose address the session starts from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_source: Option<IfName>,
    /// Address that the session starts from; at most one of `updateSource` and `sourceAddress` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub source_address: Option<IpAddr>,
}

impl BgpPeer {
    /// The peer's address or device, or the range of addresses that peers may dial from.
    pub fn peer(&self) -> Option<String> {
        let address = self.address.map(|address| address.to_string());
        let interface = || self.interface.as_ref().map(ToString::to_string);
        let range = || self.listen_range.map(|range| range.to_string());
        address.or_else(interface).or_else(range)
    }
}

/// One address family of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddressFamily {
    /// Which routes the peer gets; absent means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export_filter: Option<Filter>,
    /// Which routes the peer's offer is taken of; absent means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import_filter: Option<Filter>,
    /// How many routes the peer may send before the session is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_prefixes: Option<u32>,
}

/// BFD with one interval in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BfdProfile {
    /// Milliseconds between packets, in both directions.
    pub min_interval: u32,
}
