//! `PodNetwork`: one more network for pods.

use std::sync::Arc;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ExtraRoute, MatchedDestination};
use crate::{
    meta::{Conditions, LabelSelector},
    value::Community,
};

/// Provides an additional network for pods: a Calico pool and policy over a `Network`, with routes to the selected destinations.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "PodNetwork",
    status = "PodNetworkStatus",
    derive = "PartialEq",
    shortname = "pnet",
    category = "selvedge",
    printcolumn = r#"{"name":"NetworkRef","type":"string","jsonPath":".spec.networkRef"}"#,
    printcolumn = r#"{"name":"VRFs","type":"string","jsonPath":".status.matchedDestinations[*].vrf"}"#,
    printcolumn = r#"{"name":"IPPools","type":"string","jsonPath":".status.ipPools","priority":10}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct PodNetworkSpec {
    /// Name of the `Network` from which pods get addresses.
    #[schemars(length(min = 1, max = 253))]
    pub network_ref: String,
    /// Selects by label the `Destination`s that the pods can reach. An empty selector selects all. Default: none, no route is exported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destinations: Option<LabelSelector>,
    /// Selects by label the nodes that provide the network. Default: all nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<LabelSelector>,
    /// Prefixes to import and export in addition to those of the destinations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub routes: Vec<ExtraRoute>,
    /// BGP communities set on routes that are exported into the VRFs of the destinations, such as `64512:100`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub communities: Vec<Community>,
}

/// Observed state of a pod network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodNetworkStatus {
    /// `metadata.generation` of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Destinations that match the selector.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matched_destinations: Vec<MatchedDestination>,
    /// Names of the Calico IP pools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ip_pools: Vec<String>,
    /// Last valid spec, which is in effect. It differs from `spec` while `spec` has an error: the object then keeps its last valid
    /// state.
    #[serde(
        default,
        deserialize_with = "crate::schema::if_readable",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<crate::schema::Kept>")]
    pub in_effect: Option<Arc<PodNetworkSpec>>,
    /// Conditions of the object. `Ready` is true when the object is in effect on all selected nodes; otherwise `reason` and `message`
    /// say why not.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}
