//! `NodeNetworkStatus`: what a node's network looks like.

use std::net::IpAddr;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    meta::Conditions,
    schema::Written,
    value::{HostCidr, MacAddress, Prefix, VlanId},
};

/// Interfaces, addresses and routes of one node, as reported by its agent. The object has the name of the node and an empty spec.
/// Interfaces and routes of pods are omitted.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "NodeNetworkStatus",
    status = "NodeNetworkStatusStatus",
    derive = "PartialEq",
    shortname = "nns",
    category = "selvedge",
    printcolumn = r#"{"name":"LastUpdated","type":"date","jsonPath":".status.lastUpdated"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct NodeNetworkStatusSpec {}

/// Report of the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeNetworkStatusStatus {
    /// Interfaces of the node, without those of pods and containers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<NodeInterface>,
    /// Routes of the node, without routes to single pods and link-local routes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<NodeRoute>,
    /// Features that the kernel and FRR of the node support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// Time of the last observation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_updated: Option<String>,
    /// Conditions of the report: `reason` and `message` say what could not be observed.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}

/// Features of the kernel and of FRR on a node, probed before a config needs them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// Release of the running kernel, such as `6.12.41`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_version: Option<String>,
    /// Version of the running FRR daemons, or of the installed ones if none are running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frr_version: Option<String>,
    /// Link kinds and traffic filters that the kernel supports, with the names of `ip link` and `tc`, such as `vxlan`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernel: Vec<String>,
    /// Features that the node does not support.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingCapability>,
}

/// A feature that a node does not support.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MissingCapability {
    /// Link kind or traffic filter, or `frr`.
    pub name: String,
    /// Error that the probe returned.
    pub message: String,
}

/// An interface of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeInterface {
    /// Name of the interface, such as `bond0`.
    pub name: String,
    /// Network namespace of the interface. Absent for the namespace of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// MAC address of the interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<MacAddress>,
    /// MTU of the interface in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// Operational state: `up`, `down` or `unknown`.
    pub state: LinkState,
    /// Kind of interface, such as `bond`, `vlan` or `vxlan`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<InterfaceType>,
    /// Member interfaces of a bond or a bridge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
    /// Parent interface of a VLAN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// VLAN ID, for a VLAN interface.
    #[serde(default, rename = "vlanID", skip_serializing_if = "Option::is_none")]
    pub vlan_id: Option<VlanId>,
    /// IP addresses with prefix length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Written>")]
    pub addresses: Vec<HostCidr>,
}

/// Whether an interface is up.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum LinkState {
    /// It carries traffic.
    Up,
    /// It does not.
    Down,
    /// The kernel does not say.
    Unknown,
}

/// What an interface is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum InterfaceType {
    /// A network card.
    Physical,
    /// Several interfaces as one.
    Bond,
    /// A VLAN on another interface.
    Vlan,
    /// A bridge.
    Bridge,
    /// A VXLAN tunnel end.
    Vxlan,
    /// A VRF.
    Vrf,
    /// One end of a pair.
    Veth,
    /// A dummy.
    Dummy,
    /// A tunnel other than VXLAN.
    Tunnel,
    /// The loopback.
    Loopback,
    /// Any other that is not a network card.
    Virtual,
}

/// A route of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeRoute {
    /// Destination prefix of the route.
    #[schemars(with = "Written")]
    pub destination: Prefix,
    /// IP address of the next hop. Absent if the destination is on the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written>")]
    pub gateway: Option<IpAddr>,
    /// Outgoing interface of the route.
    pub interface: String,
    /// Routing table, such as `main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
}
