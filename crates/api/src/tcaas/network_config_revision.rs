//! `NetworkConfigRevision`: the target of a rollout.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{BgpPeeringSpec, Layer2NetworkConfigurationSpec, VrfRouteConfigurationSpec};
use crate::{schema::Kept, selvedge::SettingsSpec};

/// Everything that changes forwarding, as it was at one moment. Selvedge writes it and rolls it out; people read it.
///
/// The entries nest each object's spec under `spec`, so that a name can never meet a field of the spec.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "NetworkConfigRevision",
    status = "NetworkConfigRevisionStatus",
    derive = "PartialEq",
    shortname = "ncr",
    category = "selvedge",
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Wave","type":"string","jsonPath":".status.wave"}"#,
    printcolumn = r#"{"name":"Queued","type":"integer","jsonPath":".status.queued"}"#,
    printcolumn = r#"{"name":"Ongoing","type":"integer","jsonPath":".status.ongoing"}"#,
    printcolumn = r#"{"name":"Ready","type":"integer","jsonPath":".status.ready"}"#,
    printcolumn = r#"{"name":"Failed","type":"integer","jsonPath":".status.failed","priority":1}"#,
    printcolumn = r#"{"name":"Total","type":"integer","jsonPath":".status.total"}"#,
    printcolumn = r#"{"name":"FailedNode","type":"string","jsonPath":".status.failedNode","priority":1}"#,
    printcolumn = r#"{"name":"Sequence","type":"integer","jsonPath":".status.sequence","priority":1}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct NetworkConfigRevisionSpec {
    /// Hash over the content. The object is named after its first ten digits.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[0-9a-f]+$"))]
    pub revision: String,
    /// The `NetworkConfigRevisionPart`s that have the layer 2 segments, VRF route configurations and BGP peerings of a revision that is too
    /// large for one object. These are then not in the revision itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
    /// The layer 2 segments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layer2: Vec<Layer2Revision>,
    /// The VRF route configurations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vrf: Vec<VrfRevision>,
    /// The BGP peerings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bgp: Vec<BgpRevision>,
    /// The underlays.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub underlay: Vec<RevisionEntry>,
    /// The layer 3 VNIs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub l3vni: Vec<RevisionEntry>,
    /// The layer 2 VNIs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub l2vni: Vec<RevisionEntry>,
    /// The layer 3 passthroughs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passthrough: Vec<RevisionEntry>,
    /// The settings. Absent where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Kept>")]
    pub settings: Option<SettingsSpec>,
}

/// A part of revisions that are too large for one object. It is named after its content, and revisions share it.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "NetworkConfigRevisionPart",
    derive = "PartialEq",
    shortname = "ncrp",
    category = "selvedge",
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct NetworkConfigRevisionPartSpec {
    /// Objects of a revision, as JSON, compressed (zlib), in base64.
    #[schemars(extend("format" = "byte"))]
    pub data: String,
}

/// A `Layer2NetworkConfiguration` in a revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Layer2Revision {
    /// Name of the object.
    pub name: String,
    /// What it said.
    #[schemars(with = "Kept")]
    pub spec: Layer2NetworkConfigurationSpec,
}

/// A `VRFRouteConfiguration` in a revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VrfRevision {
    /// Name of the object.
    pub name: String,
    /// What it said.
    #[schemars(with = "Kept")]
    pub spec: VrfRouteConfigurationSpec,
}

/// A `BGPPeering` in a revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BgpRevision {
    /// Name of the object.
    pub name: String,
    /// What it said.
    #[schemars(with = "Kept")]
    pub spec: BgpPeeringSpec,
}

/// An object of another group in a revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevisionEntry {
    /// Name of the object.
    pub name: String,
    /// Namespace of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What it said.
    #[schemars(with = "Kept")]
    pub spec: Value,
}

/// How far the rollout of a revision is. Ready, ongoing, queued and failed nodes add up to the total.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkConfigRevisionStatus {
    /// How far the rollout is: `Progressing`, `Soaking`, `Paused`, `Unapproved`, `Failed` or `Complete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Counts revisions in the order in which they became the newest.
    #[serde(default)]
    pub sequence: u32,
    /// The wave of nodes that is being changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wave: Option<String>,
    /// Since when the next wave waits for the soak time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub soaking_since: Option<String>,
    /// When all nodes had confirmed the revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub completed_at: Option<String>,
    /// Whether a node could not take the revision, so that it is not rolled out any further.
    #[serde(default)]
    pub is_invalid: bool,
    /// How many nodes run the revision and have confirmed it.
    #[serde(default)]
    pub ready: u32,
    /// How many nodes have been told and have not answered yet.
    #[serde(default)]
    pub ongoing: u32,
    /// How many nodes have not been told yet.
    #[serde(default)]
    pub queued: u32,
    /// How many nodes could not take the revision.
    #[serde(default)]
    pub failed: u32,
    /// How many nodes keep the config that they have, because the new one removes their Underlay or all their VRFs and its revision is not
    /// approved yet.
    #[serde(default)]
    pub unapproved: u32,
    /// Why the revision, or the config of the first of these nodes, needs an approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unapproved_message: Option<String>,
    /// How many nodes there are.
    #[serde(default)]
    pub total: u32,
    /// The first node that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_node: Option<String>,
    /// What that node said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_message: Option<String>,
    /// When that node failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub failed_at: Option<String>,
}
