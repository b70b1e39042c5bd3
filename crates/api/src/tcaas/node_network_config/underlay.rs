//! How a node is connected to the fabric.

use std::net::{IpAddr, Ipv4Addr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    meta::SecretReference,
    value::{Asn, HostCidr, IfName, MacAddress, Mtu, Prefix},
};

/// Connection of a node to the fabric: network namespace of the router, uplinks, identity and BGP peers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Underlay {
    /// `Underlay` object from which this was generated, as `namespace/name`. The node ignores it; the operator uses it to keep a node
    /// on its Underlay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Name of the network namespace of the router.
    pub namespace: String,
    /// AS number of the BGP router.
    pub asn: Asn,
    /// BGP router ID, written as an IPv4 address.
    #[schemars(with = "String")]
    pub router_id: Ipv4Addr,
    /// Host devices that are moved into the namespace of the router.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nics: Vec<IfName>,
    /// IP address of the VXLAN tunnel endpoint (VTEP), on the loopback of the router. Absent on a node without overlay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub vtep: Option<IpAddr>,
    /// Existing device that has the VTEP address. The address is then neither added to the loopback nor announced; the fabric must have
    /// a route to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vtep_interface: Option<IfName>,
    /// Second VTEP in the other address family, for VNIs that require it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub other_vtep: Option<IpAddr>,
    /// MAC address of the L3 bridges of the node: the router MAC that EVPN announces.
    pub router_mac: MacAddress,
    /// Link between the namespaces of the host and the router.
    pub trunk: Trunk,
    /// Networks of the loopback addresses of workloads, the same on every node. Routes to them are never announced outside the node and
    /// the VRF.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workload_networks: Vec<Prefix>,
    /// BGP peers in the fabric.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub neighbors: Vec<Neighbor>,
    /// Timers of BGP graceful restart. Absent: no graceful restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graceful_restart: Option<GracefulRestart>,
}

/// The veth pair between the namespaces of the host and the router. Segments are VLANs on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trunk {
    /// Device in the namespace of the host.
    pub host: IfName,
    /// Device in the namespace of the router.
    pub router: IfName,
    /// MTU of both devices in bytes.
    pub mtu: Mtu,
    /// Addresses of the host device, with prefix length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_addresses: Vec<HostCidr>,
    /// Addresses of the router device, which is in the cluster VRF.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub router_addresses: Vec<HostCidr>,
}

/// A BGP session with the fabric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Neighbor {
    /// IP address of the peer. Exactly one of `address` and `interface` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub address: Option<IpAddr>,
    /// Device of an unnumbered session, which uses link-local addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<IfName>,
    /// AS number of the peer.
    pub remote_as: RemoteAs,
    /// TCP port of the peer. Default: 179.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Keepalive interval in seconds. Set together with `holdTime`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keepalive_time: Option<u16>,
    /// Hold time in seconds: the session is closed after this long without a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_time: Option<u16>,
    /// Time between two connection attempts in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_time: Option<u16>,
    /// Allows a peer that is more than one hop away (eBGP multihop).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ebgp_multi_hop: bool,
    /// Accepts routes with the local AS number in their path, for clusters whose nodes share one AS number.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_own_as: bool,
    /// BFD parameters of the session. Absent: no BFD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bfd: Option<Bfd>,
    /// Secret with the TCP MD5 password of the session under the key `password`. Read by the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_secret: Option<SecretReference>,
    /// Uses the VTEP as the source address of the session, for peers behind other peers, such as route reflectors.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_vtep: bool,
    /// Address families of the session. No other is activated.
    pub address_families: Vec<AddressFamilyName>,
}

impl Neighbor {
    /// What FRR calls the peer: its address, or the device of an unnumbered session.
    pub fn peer(&self) -> Option<String> {
        let address = self.address.map(|address| address.to_string());
        address.or_else(|| self.interface.as_ref().map(ToString::to_string))
    }
}

/// AS of a peer: a number, `internal` or `external`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("maxProperties" = 1, "minProperties" = 1))]
pub struct RemoteAs {
    /// AS number of the peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asn: Option<Asn>,
    /// Accepts any AS number except the local one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub external: bool,
    /// Accepts only the local AS number.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub internal: bool,
}

impl From<crate::value::RemoteAs> for RemoteAs {
    fn from(wanted: crate::value::RemoteAs) -> Self {
        use crate::value::{PeerType, RemoteAs as Wanted};
        Self {
            asn: match wanted {
                Wanted::Number(asn) => Some(asn),
                Wanted::Type(PeerType::External | PeerType::Internal) => None,
            },
            external: wanted == Wanted::Type(PeerType::External),
            internal: wanted == Wanted::Type(PeerType::Internal),
        }
    }
}

/// An address family of a BGP session.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum AddressFamilyName {
    /// IPv4 unicast.
    Ipv4Unicast,
    /// IPv6 unicast.
    Ipv6Unicast,
    /// L2VPN EVPN.
    L2vpnEvpn,
}

/// Parameters of a BFD session. Absent fields have the defaults of FRR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bfd {
    /// Minimum interval between received BFD packets, in milliseconds. FRR default: 300.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_interval: Option<u32>,
    /// Interval between sent BFD packets, in milliseconds. FRR default: 300.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transmit_interval: Option<u32>,
    /// Number of lost BFD packets after which the session is down. FRR default: 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detect_multiplier: Option<u8>,
    /// Interval between BFD echo packets, in milliseconds. FRR default: 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo_interval: Option<u32>,
    /// Enables the BFD echo function. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub echo_mode: bool,
    /// Waits for the first packet of the peer before sending any. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passive_mode: bool,
    /// Minimum TTL of received BFD packets on multihop sessions. FRR default: 254.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum_ttl: Option<u8>,
}

/// Timers of BGP graceful restart, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GracefulRestart {
    /// Time for which peers keep routes of this router while it restarts, in seconds.
    pub restart_time: u16,
    /// Time for which routes of a restarting peer are kept, in seconds.
    pub stale_path_time: u16,
}
