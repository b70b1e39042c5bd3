//! IS-IS in the fabric.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{IfName, IsisLevel, NetworkEntityTitle};

/// IS-IS as the routing protocol of the fabric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Isis {
    /// Network entity title of the first node, such as `49.0001.0000.0000.0001.00`. The system ID increases by one for each further
    /// node.
    pub base_net: NetworkEntityTitle,
    /// Feature flags of the IS-IS instance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub features: Vec<IsisFeature>,
    /// Per-device settings that differ from the defaults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 128),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub interfaces: Vec<IsisInterface>,
    /// IS-IS level, 1 or 2. Default: both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<IsisLevel>,
}

/// A feature flag of the IS-IS instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum IsisFeature {
    /// Advertise only the prefixes of passive devices.
    AdvertisePassiveOnly,
}

/// IS-IS settings of one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IsisInterface {
    /// Name of the device, such as `eth1`.
    pub name: IfName,
    /// Address families of IS-IS on this device: `ipv4`, `ipv6` or `dualstack`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_family: Option<IpFamily>,
    /// Feature flags of this device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub features: Vec<IsisInterfaceFeature>,
}

/// One address family, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum IpFamily {
    /// IPv4 alone.
    Ipv4,
    /// IPv6 alone.
    Ipv6,
    /// Both.
    DualStack,
}

/// A feature flag of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum IsisInterfaceFeature {
    /// Advertise the prefixes of the device without forming adjacencies on it.
    Passive,
}
