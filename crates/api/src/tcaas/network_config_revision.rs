//! `NetworkConfigRevision`: the target of a rollout.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{BgpPeeringSpec, Layer2NetworkConfigurationSpec, VrfRouteConfigurationSpec};
use crate::{meta::Conditions, schema::Kept, selvedge::SettingsSpec};

/// A snapshot of all low-level objects that affect forwarding. Written and rolled out by the operator; read-only for users.
///
/// Each entry nests the spec of an object under `spec`, so that its name cannot collide with a field of the spec.
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
    /// SHA-256 hash of the content, in hexadecimal. The object is named after its first ten digits.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[0-9a-f]+$"))]
    pub revision: String,
    /// Names of the `NetworkConfigRevisionPart`s that hold the objects of a revision that is too large for one object. The lists of the
    /// revision itself are then empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
    /// All `Layer2NetworkConfiguration`s of the revision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layer2: Vec<Layer2Revision>,
    /// All `VRFRouteConfiguration`s of the revision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vrf: Vec<VrfRevision>,
    /// All `BGPPeering`s of the revision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bgp: Vec<BgpRevision>,
    /// All `Underlay`s of the revision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub underlay: Vec<RevisionEntry>,
    /// All `L3VNI`s of the revision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub l3vni: Vec<RevisionEntry>,
    /// All `L2VNI`s of the revision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub l2vni: Vec<RevisionEntry>,
    /// All `L3Passthrough`s of the revision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passthrough: Vec<RevisionEntry>,
    /// Spec of the `Settings` object. Absent if no such object exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Kept>")]
    pub settings: Option<SettingsSpec>,
}

/// A part of a revision that is too large for one object. It is named after its content and can be shared by several revisions.
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
    /// Objects of a revision: JSON, compressed with zlib, encoded in base64.
    #[schemars(extend("format" = "byte"))]
    pub data: String,
}

/// A `Layer2NetworkConfiguration` in a revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Layer2Revision {
    /// Name of the object.
    pub name: String,
    /// Spec of the object in this revision.
    #[schemars(with = "Kept")]
    pub spec: Layer2NetworkConfigurationSpec,
}

/// A `VRFRouteConfiguration` in a revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VrfRevision {
    /// Name of the object.
    pub name: String,
    /// Spec of the object in this revision.
    #[schemars(with = "Kept")]
    pub spec: VrfRouteConfigurationSpec,
}

/// A `BGPPeering` in a revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BgpRevision {
    /// Name of the object.
    pub name: String,
    /// Spec of the object in this revision.
    #[schemars(with = "Kept")]
    pub spec: BgpPeeringSpec,
}

/// An object of another API group in a revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevisionEntry {
    /// Name of the object.
    pub name: String,
    /// Namespace of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Spec of the object in this revision.
    #[schemars(with = "Kept")]
    pub spec: Value,
}

/// Progress of the rollout of a revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkConfigRevisionStatus {
    /// Phase of the rollout: `Progressing`, `Soaking`, `Paused`, `Unapproved`, `Failed` or `Complete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Sequence number of the revision: increases by one each time a revision becomes the newest.
    #[serde(default)]
    pub sequence: u32,
    /// Wave of nodes that is being changed, such as the canary or a failure domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wave: Option<String>,
    /// Progress of each wave, in order. At most 16 failure domains have a wave of their own here; the others are counted together. A complete
    /// revision keeps the waves of its rollout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waves: Vec<RolloutWave>,
    /// Time at which the soak time before the next wave started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub soaking_since: Option<String>,
    /// Time at which this rollout started. A revision whose content becomes the newest again has a new rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub started_at: Option<String>,
    /// Value of the annotation `selvedge.dev/approved` when this rollout started: the approval of an earlier rollout, without effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent_approval: Option<String>,
    /// Value of the annotation `selvedge.dev/retry` that the operator has acted on. Another value requests a retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<String>,
    /// Time at which the operator acted on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub retried_at: Option<String>,
    /// Time at which all nodes had confirmed the revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub completed_at: Option<String>,
    /// True if a node failed to apply the revision. It is then not rolled out any further.
    #[serde(default)]
    pub is_invalid: bool,
    /// Number of nodes that run the revision and have confirmed it.
    #[serde(default)]
    pub ready: u32,
    /// Number of nodes that were given the revision and have not reported a result yet.
    #[serde(default)]
    pub ongoing: u32,
    /// Number of nodes that have not been given the revision yet.
    #[serde(default)]
    pub queued: u32,
    /// Number of nodes that failed to apply the revision.
    #[serde(default)]
    pub failed: u32,
    /// Number of nodes that keep their current config because the new one removes their Underlay or all their VRFs and the revision is
    /// not approved yet.
    #[serde(default)]
    pub unapproved: u32,
    /// Reason why the revision, or the config of the first of these nodes, needs approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unapproved_message: Option<String>,
    /// Reason why the config of the first of the nodes that should have it by now could not be stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwritten_message: Option<String>,
    /// Total number of nodes.
    #[serde(default)]
    pub total: u32,
    /// Name of the first node that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_node: Option<String>,
    /// Error message of that node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_message: Option<String>,
    /// Time at which that node failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub failed_at: Option<String>,
    /// Condition `Ready`: whether all available nodes have confirmed the revision. Its reason is the phase, and its message says why.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}

/// Progress of the nodes that change together in a rollout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutWave {
    /// Name of the wave.
    pub name: String,
    /// Number of its nodes that run the revision and have confirmed it.
    pub ready: u32,
    /// Number of its nodes.
    pub total: u32,
}
