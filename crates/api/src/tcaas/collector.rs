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

/// An endpoint that takes mirrored traffic through GRE tunnels, and the VRF the tunnels run in. `TrafficMirror`s refer to it by name.
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
    /// Address of the endpoint.
    #[schemars(with = "Address")]
    pub address: IpAddr,
    /// What the tunnel carries: `l3gre` packets, `l2gre` whole frames.
    pub protocol: GreProtocol,
    /// Key of the tunnel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<u32>,
    /// The `VRF` the tunnels run in. It must have exactly one loopback with a pool: the tunnels' source addresses come from there.
    #[serde(rename = "mirrorVRF")]
    pub mirror_vrf: NameReference,
}

/// What is known about a collector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CollectorStatus {
    /// Generation of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Name of the tunnel interface on the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gre_interface: Option<IfName>,
    /// How many `TrafficMirror`s refer to this collector.
    #[serde(default)]
    pub reference_count: u32,
    /// On how many nodes the tunnel is up.
    #[serde(default)]
    pub active_nodes: u32,
    /// The spec in effect. It differs from `spec` while something is wrong with the object: what was in effect before stays.
    #[serde(
        default,
        deserialize_with = "crate::schema::if_readable",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<crate::schema::Kept>")]
    pub in_effect: Option<Arc<CollectorSpec>>,
    /// What holds for the object now.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}
