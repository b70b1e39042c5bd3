//! How a node is plugged into the fabric.

use std::net::{IpAddr, Ipv4Addr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    meta::SecretReference,
    value::{Asn, HostCidr, IfName, MacAddress, Mtu, Prefix},
};

/// The base of the router domain: its namespace, uplinks, identity and fabric peers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Underlay {
    /// The `Underlay` object that this was made from, as `namespace/name`. The node does nothing with it: the operator keeps a node on its
    /// Underlay by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Name of the network namespace that holds the router domain.
    pub namespace: String,
    /// AS number of the router.
    pub asn: Asn,
    /// BGP router id.
    #[schemars(with = "String")]
    pub router_id: Ipv4Addr,
    /// Host devices that move into the router's namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nics: Vec<IfName>,
    /// Address of the VXLAN tunnel endpoint, carried by the loopback of the router's namespace.
    /// Absent on a node that takes part in no overlay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub vtep: Option<IpAddr>,
    /// The device that has the address of the tunnel endpoint by itself. The address is then neither put on the loopback nor announced: the
    /// fabric must know the way to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vtep_interface: Option<IfName>,
    /// A second tunnel endpoint, of the other address family, which VNIs use that ask for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub other_vtep: Option<IpAddr>,
    /// MAC address of the node's L3 bridges: the router MAC that EVPN announces.
    pub router_mac: MacAddress,
    /// The link between the host's namespace and the router's.
    pub trunk: Trunk,
    /// Networks of the addresses that workloads have on loopbacks of their node, the same on every node: no route to them leaves
    /// the node or its VRF.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workload_networks: Vec<Prefix>,
    /// Fabric peers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub neighbors: Vec<Neighbor>,
    /// How long peers keep our routes while the router restarts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graceful_restart: Option<GracefulRestart>,
}

/// The pair of devices that joins the host's namespace and the router's; segments are VLANs on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trunk {
    /// Device in the host's namespace.
    pub host: IfName,
    /// Device in the router's namespace.
    pub router: IfName,
    /// MTU of both.
    pub mtu: Mtu,
    /// Addresses of the host's device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_addresses: Vec<HostCidr>,
    /// Addresses of the router's device, which lies in the cluster VRF.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub router_addresses: Vec<HostCidr>,
}

/// A BGP session with the fabric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Neighbor {
    /// Address of the peer; exactly one of `address` and `interface` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub address: Option<IpAddr>,
    /// Device of an unnumbered session over link-local addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<IfName>,
    /// AS of the peer.
    pub remote_as: RemoteAs,
    /// TCP port to dial, where it is not 179.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Seconds between keepalives, set together with `holdTime`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keepalive_time: Option<u16>,
    /// Seconds of silence after which the session is down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_time: Option<u16>,
    /// Seconds between two attempts to connect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_time: Option<u16>,
    /// Whether the peer may be more than one hop away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ebgp_multi_hop: bool,
    /// Whether to accept routes that carry our own AS: all nodes of a cluster may share one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_own_as: bool,
    /// BFD on the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bfd: Option<Bfd>,
    /// Secret (key `password`) with the TCP-MD5 password of the session; the agent reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_secret: Option<SecretReference>,
    /// Whether the session starts from the VTEP, for peers that are reached over other sessions, such as route reflectors.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_vtep: bool,
    /// Address families of the session, all of them: FRR activates no other.
    pub address_families: Vec<AddressFamilyName>,
}

impl Neighbor {
    /// What FRR calls the peer: its address, or the device of an unnumbered session.
    pub fn peer(&self) -> Option<String> {
        let address = self.address.map(|address| address.to_string());
        address.or_else(|| self.interface.as_ref().map(ToString::to_string))
    }
}

/// The AS a peer must have: a number, or only whether it is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("maxProperties" = 1, "minProperties" = 1))]
pub struct RemoteAs {
    /// Exactly this AS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asn: Option<Asn>,
    /// Any other AS than ours.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub external: bool,
    /// Our own AS.
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

/// Parameters of a BFD session; an empty one means FRR's defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bfd {
    /// Milliseconds between packets we are ready to receive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_interval: Option<u32>,
    /// Milliseconds between packets we send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transmit_interval: Option<u32>,
    /// How many packets may be missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detect_multiplier: Option<u8>,
    /// Milliseconds between echo packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echo_interval: Option<u32>,
    /// Whether to use the echo function.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub echo_mode: bool,
    /// Whether to wait for the peer's first packet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passive_mode: bool,
    /// Least TTL of a packet that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum_ttl: Option<u8>,
}

/// Timers of BGP graceful restart, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GracefulRestart {
    /// How long peers keep our routes.
    pub restart_time: u16,
    /// How long we keep the routes of a restarting peer.
    pub stale_path_time: u16,
}
