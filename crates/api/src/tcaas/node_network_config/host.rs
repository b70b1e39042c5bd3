//! Pairs of devices between the router's namespace and the host's: sessions with a BGP speaker on the host, and ports of segments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::underlay::RemoteAs;
use crate::value::{Asn, HostCidr, IfName, Mtu};

/// A pair of devices between the router and the host, and a BGP session over it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostSession {
    /// The object that it was made from, such as `L3VNI default/red`. The node does nothing with it: the operator keeps the addresses of
    /// an object by it.
    pub source: String,
    /// Names of the two devices.
    pub devices: HostDevices,
    /// MTU of both devices.
    pub mtu: Mtu,
    /// Addresses of the host's device, one of each address family; each is announced as a route to this address alone.
    #[schemars(length(min = 1, max = 2))]
    pub host_addresses: Vec<HostCidr>,
    /// Addresses of the router's device, in the same networks.
    #[schemars(length(min = 1, max = 2))]
    pub router_addresses: Vec<HostCidr>,
    /// AS of the BGP speaker on the host.
    pub remote_as: RemoteAs,
    /// AS number that the router has on this session, where it is not that of its BGP instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_as: Option<Asn>,
}

/// Names of a pair of devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostDevices {
    /// The device in the host's namespace.
    pub host: IfName,
    /// The device in the router's namespace.
    pub router: IfName,
}

/// The end of a segment in the host's namespace: the other end of the segment's access port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostPort {
    /// The device in the host's namespace.
    pub device: IfName,
    /// The bridge that the device is a port of. Without it the device is left for other programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master: Option<HostMaster>,
}

/// A bridge in the host's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostMaster {
    /// Name of the bridge.
    pub name: IfName,
    /// What kind of bridge it is.
    #[serde(rename = "type")]
    pub kind: HostMasterKind,
    /// Whether the bridge is made and removed with the segment. Otherwise it is one that the host has, and is neither made nor removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub create: bool,
}

/// Kind of a bridge in the host's namespace.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum HostMasterKind {
    /// A bridge of the kernel.
    LinuxBridge,
    /// A bridge of Open vSwitch.
    OvsBridge,
}
