//! BGP sessions inside a VRF.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::filter::Filter;
use crate::{
    meta::SecretReference,
    value::{Asn, IfName, Prefix, Seconds},
};

/// A BGP session with a workload or a neighbor of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BgpPeer {
    /// IP address of the peer. Exactly one of `address`, `interface` and `listenRange` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub address: Option<IpAddr>,
    /// Device of an unnumbered session, which uses link-local addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<IfName>,
    /// Network from which peers may open sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen_range: Option<Prefix>,
    /// AS number of the peer.
    pub remote_asn: Asn,
    /// Local AS number on this session. Default: the AS number of the BGP instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_as: Option<Asn>,
    /// IPv4 unicast on the session. Absent: not activated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv4: Option<AddressFamily>,
    /// IPv6 unicast on the session. Absent: not activated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv6: Option<AddressFamily>,
    /// BFD parameters of the session. Absent: no BFD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bfd_profile: Option<BfdProfile>,
    /// Maximum number of hops to the peer (eBGP multihop).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multihop: Option<u8>,
    /// Hold time: the session is closed after this long without a message. Default: `180s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_time: Option<Seconds>,
    /// Interval between keepalive messages. Default: `60s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keepalive_time: Option<Seconds>,
    /// Secret with the TCP MD5 password of the session under the key `password`. Read by the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_secret: Option<SecretReference>,
    /// Device whose address is the source of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_source: Option<IfName>,
    /// Source address of the session. At most one of `updateSource` and `sourceAddress` is set.
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

/// One address family of a BGP session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddressFamily {
    /// Filter for routes announced to the peer. Absent: no route is announced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export_filter: Option<Filter>,
    /// Filter for routes received from the peer. Absent: no route is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import_filter: Option<Filter>,
    /// Maximum number of routes from the peer; above it the session is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_prefixes: Option<u32>,
}

/// BFD with the same interval in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BfdProfile {
    /// Interval between BFD packets in both directions, in milliseconds.
    pub min_interval: u32,
}
