//! A layer-2 segment over VXLAN.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Contradiction, OverlayStatus, UnderlayAddressFamily,
    l3vni::vxlan_port,
    schema::{self, rules},
};
use crate::{
    meta::LabelSelector,
    value::{HostCidr, IfName, PeVrfName, UdpPort, Vni},
};

/// A layer 2 segment of the fabric on the selected nodes, with an optional anycast gateway and an optional bridge on the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "openpe.openperouter.github.io",
    version = "v1alpha1",
    kind = "L2VNI",
    root = "L2Vni",
    plural = "l2vnis",
    namespaced,
    status = "OverlayStatus",
    derive = "PartialEq",
    shortname = "l2v",
    category = "selvedge",
    printcolumn = r#"{"name": "VNI", "type": "integer", "jsonPath": ".spec.vni"}"#,
    printcolumn = r#"{"name": "VRF", "type": "string", "jsonPath": ".spec.vrf"}"#,
    printcolumn = r#"{"name": "Nodes", "type": "integer", "jsonPath": ".status.nodes.matched"}"#,
    printcolumn = r#"{"name": "Accepted", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Accepted\")].status"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "!has(self.l2gatewayip) || !has(self.l2gatewayips)",
        "l2gatewayip and l2gatewayips say the same thing: give one of them",
    ),
])))]
pub struct L2VniSpec {
    /// Selects the nodes by label. Default, also for an empty selector: all nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::node_selector")]
    pub node_selector: Option<LabelSelector>,
    /// VXLAN network identifier (VNI), 1–16777215.
    pub vni: Vni,
    /// UDP port of the VXLAN device. Default: 4789.
    #[serde(default = "vxlan_port")]
    pub vxlanport: UdpPort,
    /// Address family of the tunnel endpoint. Default: IPv4 if the Underlay of the node has an IPv4 tunnel endpoint, otherwise IPv6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub underlay_address_family: Option<UnderlayAddressFamily>,
    /// Name of the VRF of the gateway. Default: the name of the object, if there is a gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vrf: Option<PeVrfName>,
    /// Address of the anycast gateway with prefix length, such as `192.0.2.1/24`. Default: no gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = rules([
    (
        "isCIDR(self)",
        "must be an address with its prefix length, such as 192.0.2.1/24 or 2001:db8::1/64",
    ),
    (
        "!isCIDR(self) || cidr(self).prefixLength() < (cidr(self).ip().family() == 4 ? 32 : 128)",
        "a gateway needs the prefix length of its network: this prefix has one address only",
    ),
    (
        "!isCIDR(self) || cidr(self).prefixLength() >= (cidr(self).ip().family() == 4 ? 31 : 127) || !(cidr(self) \
         == cidr(self).masked())",
        "a gateway must be a host of its network, not the network's own address",
    ),
])))]
    pub l2gatewayip: Option<HostCidr>,
    /// Addresses of the anycast gateway with prefix length, at most one per address family. Replaces `l2gatewayip`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2))]
    #[schemars(extend("x-kubernetes-validations" = rules([
    (
        "self.filter(g, g.contains(':')).size() <= 1 && self.filter(g, !g.contains(':')).size() <= 1",
        "at most one IPv4 and one IPv6 gateway",
    ),
    (
        "self.all(g, !isCIDR(g) || cidr(g).prefixLength() < (cidr(g).ip().family() == 4 ? 32 : 128))",
        "a gateway needs the prefix length of its network: this prefix has one address only",
    ),
    (
        "self.all(g, !isCIDR(g) || cidr(g).prefixLength() >= (cidr(g).ip().family() == 4 ? 31 : 127) || !(cidr(g) \
         == cidr(g).masked()))",
        "a gateway must be a host of its network, not the network's own address",
    ),
])))]
    pub l2gatewayips: Vec<HostCidr>,
    /// Bridge on the host to which the segment is connected. Default: none, other programs can use the host end of the veth pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostmaster: Option<HostMaster>,
}

/// The bridge on the host to which a segment is connected: an existing bridge or a bridge for this segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "!has(self.linuxBridge) || self.type != 'ovs-bridge'",
        "linuxBridge does not go with type ovs-bridge: use ovsBridge, or type linux-bridge",
    ),
    (
        "!has(self.ovsBridge) || self.type == 'ovs-bridge'",
        "ovsBridge needs type ovs-bridge",
    ),
    (
        "[has(self.name), has(self.autocreate) && self.autocreate, has(self.linuxBridge) \
         && has(self.linuxBridge.name), has(self.linuxBridge) && has(self.linuxBridge.autoCreate) \
         && self.linuxBridge.autoCreate, has(self.ovsBridge) && has(self.ovsBridge.name), has(self.ovsBridge) \
         && has(self.ovsBridge.autoCreate) && self.ovsBridge.autoCreate].exists_one(given, given)",
        "exactly one bridge is needed: give its name, or let it be made with autocreate, in one place",
    ),
])))]
pub struct HostMaster {
    /// Kind of bridge: `linux-bridge` (also written `bridge`) or `ovs-bridge`. Default: `bridge`.
    #[serde(rename = "type", default)]
    pub kind: HostMasterType,
    /// Name of an existing bridge on the host, such as `br0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<IfName>,
    /// Creates a bridge for this segment, named `br-hs-<vni>`. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autocreate: Option<bool>,
    /// Alternative to `name` and `autocreate` for a Linux bridge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linux_bridge: Option<NamedBridge>,
    /// Alternative to `name` and `autocreate` for an Open vSwitch bridge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ovs_bridge: Option<NamedBridge>,
}

/// Kind of a bridge, as it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum HostMasterType {
    /// A Linux bridge.
    #[default]
    Bridge,
    /// A Linux bridge, in its newer spelling.
    LinuxBridge,
    /// An Open vSwitch bridge.
    OvsBridge,
}

/// An existing bridge, or a bridge to create.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamedBridge {
    /// Name of an existing bridge on the host, such as `br0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<IfName>,
    /// Creates a bridge for this segment, named `br-hs-<vni>`. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_create: Option<bool>,
}

/// The bridge on the host, whichever way it was spelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bridge<'a> {
    /// What kind of bridge it is.
    pub kind: BridgeKind,
    /// Which bridge it is.
    pub source: BridgeSource<'a>,
}

/// Kind of a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BridgeKind {
    /// A Linux bridge.
    Linux,
    /// An Open vSwitch bridge.
    OpenVSwitch,
}

/// Which bridge a segment is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BridgeSource<'a> {
    /// The existing bridge of this name.
    Given(&'a IfName),
    /// One made for this segment alone.
    Own,
}

impl L2VniSpec {
    /// The gateway's addresses, in either spelling.
    pub fn gateways(&self) -> Result<&[HostCidr], Contradiction> {
        match (&self.l2gatewayip, self.l2gatewayips.as_slice()) {
            (Some(gateway), []) => Ok(std::slice::from_ref(gateway)),
            (None, gateways) => Ok(gateways),
            (Some(_), _) => Err(Contradiction::Both("l2gatewayip", "l2gatewayips")),
        }
    }
}

impl HostMaster {
    /// The one bridge that is meant.
    pub fn bridge(&self) -> Result<Bridge<'_>, Contradiction> {
        let kind = match self.kind {
            HostMasterType::Bridge | HostMasterType::LinuxBridge => BridgeKind::Linux,
            HostMasterType::OvsBridge => BridgeKind::OpenVSwitch,
        };
        let nested = match (kind, &self.linux_bridge, &self.ovs_bridge) {
            (BridgeKind::Linux, nested, None) | (BridgeKind::OpenVSwitch, None, nested) => {
                nested.as_ref()
            }
            (BridgeKind::Linux, _, Some(_)) => {
                return Err(Contradiction::Needs(
                    "hostmaster.ovsBridge",
                    "hostmaster.type: ovs-bridge",
                ));
            }
            (BridgeKind::OpenVSwitch, Some(_), _) => {
                return Err(Contradiction::Needs(
                    "hostmaster.linuxBridge",
                    "hostmaster.type: linux-bridge",
                ));
            }
        };
        let name = nested.and_then(|nested| nested.name.as_ref());
        let own = nested.is_some_and(|nested| nested.auto_create == Some(true));
        let given = self.name.iter().chain(name).map(BridgeSource::Given);
        let made = [self.autocreate == Some(true), own]
            .into_iter()
            .filter(|own| *own)
            .map(|_| BridgeSource::Own);
        let sources: Vec<BridgeSource<'_>> = given.chain(made).collect();
        match sources.as_slice() {
            [source] => Ok(Bridge {
                kind,
                source: *source,
            }),
            [] => Err(Contradiction::Neither(
                "hostmaster.name",
                "hostmaster.autocreate",
            )),
            _ => Err(Contradiction::Both(
                "hostmaster.name",
                "hostmaster.autocreate",
            )),
        }
    }
}
