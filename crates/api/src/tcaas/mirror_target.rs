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

/// A GRE tunnel that takes mirrored traffic to a collector.
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
    /// What the tunnel carries: `l3gre` packets, `l2gre` whole frames.
    #[serde(rename = "type")]
    pub kind: GreProtocol,
    /// Address of the collector.
    #[serde(rename = "destinationIP")]
    #[schemars(with = "Address")]
    pub destination_ip: IpAddr,
    /// Key of the tunnel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<u32>,
    /// Name of the VRF the tunnel runs in.
    pub destination_vrf: VrfName,
    /// Name of the loopback of that VRF whose address is the tunnel's source.
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

/// What is known about a mirror target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MirrorTargetStatus {
    /// Generation of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many `MirrorSelector`s refer to this target.
    #[serde(default)]
    pub active_selectors: u32,
    /// On how many nodes the tunnel is up.
    #[serde(default)]
    pub active_nodes: u32,
    /// The spec in effect of an object that no intent owns. It differs from `spec` while something is wrong with the object: what was in
    /// effect before stays.
    #[serde(
        default,
        deserialize_with = "crate::schema::if_readable",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<crate::schema::Kept>")]
    pub in_effect: Option<Arc<MirrorTargetSpec>>,
    /// What holds for the object now.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}
