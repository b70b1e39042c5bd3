//! IS-IS in the fabric.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{IfName, IsisLevel, NetworkEntityTitle};

/// IS-IS as routing protocol of the fabric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Isis {
    /// Network entity title of the first node, such as `49.0001.0000.0000.0001.00`; the system id is advanced for each
    /// further node.
    pub base_net: NetworkEntityTitle,
    /// Switches that change how the whole instance behaves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub features: Vec<IsisFeature>,
    /// What differs on single devices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 128),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub interfaces: Vec<IsisInterface>,
    /// The only level to take part in; without it, both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<IsisLevel>,
}

/// A switch of the whole IS-IS instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum IsisFeature {
    /// Advertise the prefixes of passive devices only.
    AdvertisePassiveOnly,
}

/// IS-IS on one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IsisInterface {
    /// Name of the device.
    pub name: IfName,
    /// Address families that IS-IS runs for on this device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_family: Option<IpFamily>,
    /// Switches of this device.
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

/// A switch of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum IsisInterfaceFeature {
    /// Advertise the device's prefixes but form no adjacency on it.
    Passive,
}
