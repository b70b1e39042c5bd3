//! `MirrorTarget`: a GRE tunnel for mirrored traffic.

use std::{net::IpAddr, sync::Arc};

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    meta::Conditions,
    schema::Address,
    value::{IfName, VrfName},
};

/// A GRE tunnel that carries mirrored traffic to a collector. Usually generated from a `Collector`.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "MirrorTarget",
    status = "MirrorTargetStatus",
    derive = "PartialEq",
    shortname = "mtarget",
    category = "selvedge",
    printcolumn = r#"{"name":"Type","type":"string","jsonPath":".spec.type"}"#,
    printcolumn = r#"{"name":"Destination","type":"string","jsonPath":".spec.destinationIP"}"#,
    printcolumn = r#"{"name":"VRF","type":"string","jsonPath":".spec.destinationVrf"}"#,
    printcolumn = r#"{"name":"Nodes","type":"integer","jsonPath":".status.activeNodes"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct MirrorTargetSpec {
    /// Encapsulation: `l3gre` carries IP packets, `l2gre` carries Ethernet frames.
    #[serde(rename = "type")]
    pub kind: GreProtocol,
    /// IP address of the collector, IPv4 or IPv6.
    #[serde(rename = "destinationIP")]
    #[schemars(with = "Address")]
    pub destination_ip: IpAddr,
    /// GRE key of the tunnel, 0–4294967295. Default: no key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<u32>,
    /// Name of the VRF in which the tunnel runs.
    pub destination_vrf: VrfName,
    /// Name of the loopback of that VRF whose address is the source of the tunnel, such as `lo.mir`.
    pub source_loopback: IfName,
}

/// What a GRE tunnel carries.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum GreProtocol {
    /// IP packets.
    L3gre,
    /// Ethernet frames.
    L2gre,
}

/// Observed state of a mirror target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MirrorTargetStatus {
    /// `metadata.generation` of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Number of `MirrorSelector`s that reference this target.
    #[serde(default)]
    pub active_selectors: u32,
    /// Number of nodes that have the tunnel.
    #[serde(default)]
    pub active_nodes: u32,
    /// Last valid spec of an object that was not generated from an intent. It differs from `spec` while `spec` has an error: the object
    /// then keeps its last valid state.
    #[serde(
        default,
        deserialize_with = "crate::schema::if_readable",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<crate::schema::Kept>")]
    pub in_effect: Option<Arc<MirrorTargetSpec>>,
    /// Conditions of the object. `Ready` is true when the object is in effect on all selected nodes; otherwise `reason` and `message`
    /// say why not.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}
