//! Connection of nodes to the fabric.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Contradiction, Isis, Neighbor, OverlayStatus,
    schema::{self, rules},
};
use crate::{
    meta::LabelSelector,
    value::{Asn, IfName, RestartTime, WrittenIpv4Prefix, WrittenIpv6Prefix, WrittenPrefix},
};

/// Connection of the selected nodes to the fabric: uplinks, AS number, BGP peers and tunnel endpoint. Each node can match at most one
/// Underlay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "openpe.openperouter.github.io",
    version = "v1alpha1",
    kind = "Underlay",
    plural = "underlays",
    namespaced,
    status = "OverlayStatus",
    derive = "PartialEq",
    shortname = "ul",
    category = "selvedge",
    printcolumn = r#"{"name": "ASN", "type": "integer", "jsonPath": ".spec.asn"}"#,
    printcolumn = r#"{"name": "Nodes", "type": "integer", "jsonPath": ".status.nodes.matched"}"#,
    printcolumn = r#"{"name": "Accepted", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Accepted\")].status"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "(has(self.nics) && size(self.nics) > 0) || (has(self.interfaces) && size(self.interfaces) > 0)",
        "at least one device must lead to the fabric: name it in nics",
    ),
    (
        "!has(self.nics) || !has(self.interfaces) \
         || self.nics.all(n, self.interfaces.all(i, !has(i.networkDevice) || i.networkDevice.interfaceName != n))",
        "nics and interfaces name the same device: name it once",
    ),
    (
        "!has(self.evpn) || !has(self.tunnelEndpoint)",
        "evpn and tunnelEndpoint say the same thing: give one of them",
    ),
    (
        "!has(self.srv6) || has(self.isis)",
        "srv6 needs isis",
    ),
    (
        "!has(self.srv6) || (has(self.tunnelEndpoint) && self.tunnelEndpoint.cidrs.exists(c, c.contains(':'))) \
         || (has(self.evpn) && has(self.evpn.vtepcidr) && self.evpn.vtepcidr.contains(':'))",
        "srv6 needs an IPv6 tunnel endpoint: add an IPv6 network to tunnelEndpoint.cidrs",
    ),
])))]
pub struct UnderlaySpec {
    /// Selects the nodes by label. Default, also for an empty selector: all nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::node_selector")]
    pub node_selector: Option<LabelSelector>,
    /// AS number of the selected nodes, 1–4294967295.
    pub asn: Asn,
    /// Pool of router IDs, one per node. Default: `10.0.0.0/24`; when the default pool is exhausted, the IPv4 VTEP address of the node
    /// is used.
    #[serde(default = "default_router_ids")]
    pub routeridcidr: WrittenIpv4Prefix,
    /// Uplinks to the fabric, such as `eth1`. They are moved into the network namespace of the router.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "set"))]
    pub nics: Vec<IfName>,
    /// Further uplinks to the fabric. Replaces `nics`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[schemars(extend("x-kubernetes-validations" = rules([
    (
        "self.all(a, !has(a.networkDevice) || self.exists_one(b, has(b.networkDevice) \
         && b.networkDevice.interfaceName == a.networkDevice.interfaceName))",
        "interfaces names a device twice: name it once",
    ),
])))]
    pub interfaces: Vec<UnderlayInterface>,
    /// Enables EVPN over VXLAN and defines the tunnel endpoint of each node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evpn: Option<Evpn>,
    /// Pools of tunnel endpoint addresses, one per address family. Replaces `evpn.vtepcidr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel_endpoint: Option<TunnelEndpoint>,
    /// Enables BGP graceful restart. Default: disabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graceful_restart: Option<GracefulRestart>,
    /// IS-IS as the routing protocol of the fabric. Not implemented: an Underlay that sets it is rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isis: Option<Isis>,
    /// SRv6 as the encapsulation. Not implemented: an Underlay that sets it is rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub srv6: Option<Srv6>,
    /// BGP peers in the fabric, usually the top-of-rack switches. At least one.
    #[schemars(length(min = 1, max = 128))]
    #[schemars(extend("x-kubernetes-validations" = rules([
    (
        "self.all(a, !has(a.address) || !isIP(a.address) || self.exists_one(b, has(b.address) && isIP(b.address) \
         && ip(b.address) == ip(a.address)))",
        "two neighbors have the same address: keep one of them",
    ),
    (
        "self.all(a, !has(a.interface) || self.exists_one(b, has(b.interface) && b.interface == a.interface))",
        "two neighbors have the same interface: keep one of them",
    ),
])))]
    pub neighbors: Vec<Neighbor>,
}

/// An uplink to the fabric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "(self.type == 'NetworkDevice') == has(self.networkDevice)",
        "type NetworkDevice needs networkDevice.interfaceName",
    ),
])))]
pub struct UnderlayInterface {
    /// Kind of uplink. Only `NetworkDevice` is supported.
    #[serde(rename = "type")]
    pub kind: InterfaceType,
    /// Device of the host. Required for type `NetworkDevice`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_device: Option<NetworkDevice>,
}

/// Kind of uplink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum InterfaceType {
    /// A network device of the host.
    NetworkDevice,
}

/// A network device of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkDevice {
    /// Name of the device, such as `eth1`.
    pub interface_name: IfName,
}

/// Source of the tunnel endpoint of each node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "has(self.vtepcidr) != has(self.vtepInterface)",
        "exactly one of vtepcidr and vtepInterface is needed",
    ),
])))]
pub struct Evpn {
    /// Pool of tunnel endpoint addresses, one per node, such as `100.65.0.0/24`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vtepcidr: Option<WrittenPrefix>,
    /// Device of the router's namespace, such as one of `spec.nics`, whose first IPv4 address is the tunnel endpoint. The fabric must already
    /// have a route to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vtep_interface: Option<IfName>,
}

/// Pools of tunnel endpoint addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TunnelEndpoint {
    /// Pools of tunnel endpoint addresses, at most one per address family.
    #[schemars(length(min = 1, max = 2))]
    #[schemars(extend("x-kubernetes-validations" = rules([
    (
        "self.filter(c, c.contains(':')).size() <= 1 && self.filter(c, !c.contains(':')).size() <= 1",
        "at most one IPv4 and one IPv6 network",
    ),
])))]
    pub cidrs: Vec<WrittenPrefix>,
}

/// Timers of BGP graceful restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GracefulRestart {
    /// Time for which peers keep routes of the node while it restarts, in seconds, 1–4095. Default: 120.
    #[serde(default = "default_restart_time")]
    pub restart_time_seconds: RestartTime,
    /// Time for which the node keeps routes of a restarting peer, in seconds, 1–4095. Default: 360.
    #[serde(default = "default_stale_path_time")]
    pub stale_path_time_seconds: RestartTime,
}

/// SRv6 settings of the fabric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Srv6 {
    /// Locator from which the segment identifiers of the nodes are derived.
    pub locator: Srv6Locator,
}

/// Source of segment identifiers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Srv6Locator {
    /// Locator of the first node. Each further node has the next /48.
    pub base_prefix: WrittenIpv6Prefix,
    /// Format of the segment identifiers. Only `usid-f3216` is supported.
    pub format: Srv6Format,
}

/// Format of a segment identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum Srv6Format {
    /// Micro-segments with a block of 32 and a node of 16 bits.
    #[serde(rename = "usid-f3216")]
    UsidF3216,
}

/// Where a node's tunnel endpoint comes from, whichever way it was spelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VtepSource<'a> {
    /// An address of each of these pools.
    Pools(&'a [WrittenPrefix]),
    /// The first IPv4 address of this device.
    Device(&'a IfName),
}

impl UnderlaySpec {
    /// Whether the pool of router ids is the default. The API server writes the default into every object, so it is not known whether
    /// the author chose it.
    pub fn has_default_router_ids(&self) -> bool {
        self.routeridcidr.prefix() == default_router_ids().prefix()
    }

    /// The devices that lead to the fabric: `nics`, then `interfaces`.
    pub fn devices(&self) -> impl Iterator<Item = &IfName> {
        let newer = self
            .interfaces
            .iter()
            .filter_map(|interface| interface.network_device.as_ref());
        self.nics
            .iter()
            .chain(newer.map(|device| &device.interface_name))
    }

    /// Where tunnel endpoints come from; without one, no VNI can exist on the node.
    pub fn vtep(&self) -> Result<Option<VtepSource<'_>>, Contradiction> {
        match (&self.evpn, &self.tunnel_endpoint) {
            (Some(_), Some(_)) => Err(Contradiction::Both("evpn", "tunnelEndpoint")),
            (Some(evpn), None) => evpn.vtep().map(Some),
            (None, Some(endpoint)) => Ok(Some(VtepSource::Pools(&endpoint.cidrs))),
            (None, None) => Ok(None),
        }
    }
}

impl Evpn {
    fn vtep(&self) -> Result<VtepSource<'_>, Contradiction> {
        match (&self.vtepcidr, &self.vtep_interface) {
            (Some(pool), None) => Ok(VtepSource::Pools(std::slice::from_ref(pool))),
            (None, Some(device)) => Ok(VtepSource::Device(device)),
            (Some(_), Some(_)) => Err(Contradiction::Both("evpn.vtepcidr", "evpn.vtepInterface")),
            (None, None) => Err(Contradiction::Neither(
                "evpn.vtepcidr",
                "evpn.vtepInterface",
            )),
        }
    }
}

fn default_router_ids() -> WrittenIpv4Prefix {
    WrittenIpv4Prefix::new(ipnet::Ipv4Net::new_assert(
        std::net::Ipv4Addr::new(10, 0, 0, 0),
        24,
    ))
}

fn default_restart_time() -> RestartTime {
    RestartTime::DEFAULT
}

fn default_stale_path_time() -> RestartTime {
    RestartTime::STALE_PATH_DEFAULT
}
