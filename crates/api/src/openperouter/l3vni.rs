//! A VRF over VXLAN.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    HostSession, OverlayStatus,
    schema::{self, rules},
};
use crate::{
    meta::LabelSelector,
    value::{PeVrfName, RouteTarget, UdpPort, Vni},
};

/// A VRF of the fabric on the selected nodes with an L3 VNI and an optional BGP session to the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "openpe.openperouter.github.io",
    version = "v1alpha1",
    kind = "L3VNI",
    root = "L3Vni",
    plural = "l3vnis",
    namespaced,
    status = "OverlayStatus",
    derive = "PartialEq",
    shortname = "l3v",
    category = "selvedge",
    printcolumn = r#"{"name": "VRF", "type": "string", "jsonPath": ".spec.vrf"}"#,
    printcolumn = r#"{"name": "VNI", "type": "integer", "jsonPath": ".spec.vni"}"#,
    printcolumn = r#"{"name": "Nodes", "type": "integer", "jsonPath": ".status.nodes.matched"}"#,
    printcolumn = r#"{"name": "Accepted", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Accepted\")].status"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "!has(self.hostsession) || !has(self.hostsession.hostasn) \
         || self.hostsession.hostasn != self.hostsession.asn",
        "hostsession.hostasn must differ from hostsession.asn: the session of a VRF is external",
    ),
])))]
pub struct L3VniSpec {
    /// Selects the nodes by label. Default, also for an empty selector: all nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::node_selector")]
    pub node_selector: Option<LabelSelector>,
    /// Name of the VRF, at most 15 characters.
    pub vrf: PeVrfName,
    /// VXLAN network identifier (VNI), 1–16777215.
    pub vni: Vni,
    /// UDP port of the VXLAN device. Default: 4789.
    #[serde(default = "vxlan_port")]
    pub vxlanport: UdpPort,
    /// Address family of the tunnel endpoint. Default: IPv4 if the Underlay of the node has an IPv4 tunnel endpoint, otherwise IPv6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub underlay_address_family: Option<UnderlayAddressFamily>,
    /// Veth pair and BGP session to the host. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostsession: Option<HostSession>,
    /// Route targets of exported routes, such as `64512:2002`. Default: derived from AS number and VNI.
    #[serde(rename = "exportRTs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub export_rts: Vec<RouteTarget>,
    /// Route targets of imported routes, such as `64512:2002`. Default: all routes with the VNI, from any AS number.
    #[serde(rename = "importRTs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub import_rts: Vec<RouteTarget>,
}

/// Address family of a tunnel.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum UnderlayAddressFamily {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

/// Default UDP port of VXLAN.
pub(super) fn vxlan_port() -> UdpPort {
    UdpPort::VXLAN
}
