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

/// The interfaces, addresses and routes of one node, as its agent sees them. The object is named like the node; there is nothing to
/// configure. Interfaces and routes of pods are left out.
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

/// What the agent has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeNetworkStatusStatus {
    /// The node's interfaces, without those of pods and containers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<NodeInterface>,
    /// The node's routes, without those of single pods and link-local ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<NodeRoute>,
    /// What the kernel and FRR of the node can do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// When the agent last looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_updated: Option<String>,
    /// What holds for the report now.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}

/// What the kernel and FRR of a node can do, found out before a config needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// Release of the running kernel, such as `6.12.41`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_version: Option<String>,
    /// Version of FRR: of the running daemons, or of those that would be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frr_version: Option<String>,
    /// Kinds of links and filters that the kernel can make, by the names of `ip link` and `tc`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernel: Vec<String>,
    /// What the node cannot do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingCapability>,
}

/// Something that a node cannot do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MissingCapability {
    /// Kind of link or filter, or `frr`.
    pub name: String,
    /// Error of the attempt.
    pub message: String,
}

/// An interface of a node. Its names are the node's own and need not be names that Selvedge would give.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeInterface {
    /// Its name, such as `bond0`.
    pub name: String,
    /// Network namespace of the interface; absent for the host's. Uplinks of the router are in the router's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its MAC address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<MacAddress>,
    /// Its MTU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// Whether it is up.
    pub state: LinkState,
    /// What it is.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<InterfaceType>,
    /// The interfaces that make up a bond or hang on a bridge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
    /// The interface that carries a VLAN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The VLAN's id.
    #[serde(default, rename = "vlanID", skip_serializing_if = "Option::is_none")]
    pub vlan_id: Option<VlanId>,
    /// Its addresses, with prefix length.
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
    /// Where it leads.
    #[schemars(with = "Written")]
    pub destination: Prefix,
    /// The router; absent where the destination is on the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written>")]
    pub gateway: Option<IpAddr>,
    /// The interface through which it leaves.
    pub interface: String,
    /// The table it is in, such as `main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
}
