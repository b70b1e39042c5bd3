//! `Collector`: where mirrored traffic goes.

use std::{net::IpAddr, sync::Arc};

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GreProtocol;
use crate::{
    meta::{Conditions, NameReference},
    schema::Address,
    value::IfName,
};

/// An endpoint that receives mirrored traffic through GRE tunnels, and the VRF the tunnels run in. A `TrafficMirror` references it by
/// name.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "Collector",
    status = "CollectorStatus",
    derive = "PartialEq",
    shortname = "col",
    category = "selvedge",
    printcolumn = r#"{"name":"Address","type":"string","jsonPath":".spec.address"}"#,
    printcolumn = r#"{"name":"Protocol","type":"string","jsonPath":".spec.protocol"}"#,
    printcolumn = r#"{"name":"MirrorVRF","type":"string","jsonPath":".spec.mirrorVRF.name"}"#,
    printcolumn = r#"{"name":"RefCount","type":"integer","jsonPath":".status.referenceCount"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct CollectorSpec {
    /// IP address of the endpoint, IPv4 or IPv6.
    #[schemars(with = "Address")]
    pub address: IpAddr,
    /// Encapsulation: `l3gre` carries IP packets, `l2gre` carries Ethernet frames.
    pub protocol: GreProtocol,
    /// GRE key of the tunnel, 0–4294967295. Default: no key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<u32>,
    /// `VRF` object the tunnels run in. It must have exactly one loopback with a pool; the source addresses of the tunnels come from
    /// that pool.
    #[serde(rename = "mirrorVRF")]
    pub mirror_vrf: NameReference,
}

/// Observed state of a collector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CollectorStatus {
    /// `metadata.generation` of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Name of the GRE interface on the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gre_interface: Option<IfName>,
    /// Number of `TrafficMirror`s that reference this collector.
    #[serde(default)]
    pub reference_count: u32,
    /// Number of nodes that have the tunnel.
    #[serde(default)]
    pub active_nodes: u32,
    /// Last valid spec, which is in effect. It differs from `spec` while `spec` has an error: the object then keeps its last valid
    /// state.
    #[serde(
        default,
        deserialize_with = "crate::schema::if_readable",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<crate::schema::Kept>")]
    pub in_effect: Option<Arc<CollectorSpec>>,
    /// Conditions of the object. `Ready` is true when the object is in effect on all selected nodes; otherwise `reason` and `message`
    /// say why not.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}
