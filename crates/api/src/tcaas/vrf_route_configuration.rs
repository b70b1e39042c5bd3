//! `VRFRouteConfiguration`: which routes a VRF takes and gives.

use std::{borrow::Cow, fmt};

use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{PrefixItem, VrfLoopback};
use crate::{
    meta::{Conditions, LabelSelector},
    schema::rules,
    value::{Community, Prefix, RouteTarget, Vni, VrfName},
};

/// Routes exchanged between a VRF and the cluster VRF. Several objects can configure the same VRF; on each node they are merged in the
/// order of `seq`. Usually generated from intents.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "VRFRouteConfiguration",
    root = "VrfRouteConfiguration",
    status = "VrfRouteConfigurationStatus",
    derive = "PartialEq",
    shortname = "vrc",
    category = "selvedge",
    printcolumn = r#"{"name":"VRF","type":"string","jsonPath":".spec.vrf"}"#,
    printcolumn = r#"{"name":"Sequence","type":"integer","jsonPath":".spec.seq"}"#,
    printcolumn = r#"{"name":"VNI","type":"integer","jsonPath":".spec.vni","priority":10}"#,
    printcolumn = r#"{"name":"Communities","type":"string","jsonPath":".spec.communities"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([(
    "!(has(self.community) && has(self.communities))",
    "community and communities exclude each other; move the community into communities",
)])))]
pub struct VrfRouteConfigurationSpec {
    /// Name of the VRF, at most 12 characters.
    pub vrf: VrfName,
    /// VXLAN network identifier (VNI) of the VRF, 1–16777215. Default: the VNI of the VRF in `Settings.spec.vrfs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vni: Option<Vni>,
    /// Route target for import and export of the VRF, such as `64512:2002`. Default: the route target of the VRF in
    /// `Settings.spec.vrfs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_target: Option<RouteTarget>,
    /// Prefix filter for routes imported from the VRF into the cluster VRF.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4096))]
    pub import: Vec<PrefixItem>,
    /// Prefix filter for routes exported from the cluster VRF into the VRF and announced to the fabric.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4096))]
    pub export: Vec<PrefixItem>,
    /// Networks announced as aggregates. Packets to addresses in them without a more specific route are dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub aggregate: Vec<Prefix>,
    /// Source networks whose traffic is routed through this VRF (source-based routing), for VRFs with overlapping destinations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub sbr_prefixes: Vec<Prefix>,
    /// Order in which objects of the same VRF are merged, 1–65534, smallest first.
    pub seq: MergeOrder,
    /// Deprecated: use `communities`. BGP community set on exported routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub community: Option<Community>,
    /// BGP communities added to exported routes, such as `64512:100`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub communities: Vec<Community>,
    /// Selects the nodes by label. Default: all nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<LabelSelector>,
    /// Loopback interfaces of the VRF with a unique address on each node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub loopbacks: Vec<VrfLoopback>,
}

/// Order of an object among those of the same VRF, 1–65534.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub struct MergeOrder(u16);

impl MergeOrder {
    const LAST: u16 = 65534;

    /// The plain number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// A number that is not an order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not an order of merging (1–65534)")]
pub struct InvalidMergeOrder(i64);

impl TryFrom<i64> for MergeOrder {
    type Error = InvalidMergeOrder;
    fn try_from(number: i64) -> Result<Self, InvalidMergeOrder> {
        match u16::try_from(number) {
            Ok(order @ 1..=Self::LAST) => Ok(Self(order)),
            _ => Err(InvalidMergeOrder(number)),
        }
    }
}

impl From<MergeOrder> for i64 {
    fn from(order: MergeOrder) -> Self {
        Self::from(order.0)
    }
}

impl fmt::Display for MergeOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl JsonSchema for MergeOrder {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "MergeOrder".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "format": "int32", "minimum": 1, "maximum": Self::LAST})
    }
}

/// Observed state of a VRF route configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VrfRouteConfigurationStatus {
    /// `metadata.generation` of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions of the object. `Ready` is true when the object is in effect on all selected nodes; otherwise `reason` and `message`
    /// say why not.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}
