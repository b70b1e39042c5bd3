//! Pairs of devices between the router's namespace and the host's: sessions with a BGP speaker on the host, and ports of segments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::underlay::RemoteAs;
use crate::value::{Asn, HostCidr, IfName, Mtu};

/// A pair of devices between the router and the host, and a BGP session over it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostSession {
    /// Object from which this was generated, such as `L3VNI default/red`. The node ignores it; the operator uses it to keep the
    /// addresses of an object.
    pub source: String,
    /// Names of the two devices of the pair.
    pub devices: HostDevices,
    /// MTU of both devices in bytes.
    pub mtu: Mtu,
    /// Addresses of the host device, at most one per address family. Each is announced as a host route.
    #[schemars(length(min = 1, max = 2))]
    pub host_addresses: Vec<HostCidr>,
    /// Addresses of the router device, in the same networks.
    #[schemars(length(min = 1, max = 2))]
    pub router_addresses: Vec<HostCidr>,
    /// AS number of the BGP speaker on the host.
    pub remote_as: RemoteAs,
    /// Local AS number on this session. Default: the AS number of the BGP instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_as: Option<Asn>,
}

/// Names of a pair of devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostDevices {
    /// Device in the network namespace of the host.
    pub host: IfName,
    /// Device in the network namespace of the router.
    pub router: IfName,
}

/// The end of a segment in the host's namespace: the other end of the segment's access port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostPort {
    /// Device in the network namespace of the host.
    pub device: IfName,
    /// Bridge that the device is a port of. Absent if other programs use the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master: Option<HostMaster>,
}

/// A bridge in the host's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostMaster {
    /// Name of the bridge.
    pub name: IfName,
    /// Kind of bridge: `linux-bridge` or `ovs-bridge`.
    #[serde(rename = "type")]
    pub kind: HostMasterKind,
    /// Creates and removes the bridge with the segment. Default: false, the bridge must exist and is never removed.
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
