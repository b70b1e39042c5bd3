//! `VRF`: the identity of a backbone VRF.

use std::sync::Arc;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    meta::{Conditions, TypedObjectReference},
    schema::rules,
    value::{IfName, RouteTarget, Vni, VrfName},
};

/// A routing domain of the backbone. It says where in the overlay the VRF is, not what can be reached through it: that is what
/// `Destination`s are for, which refer to it by name.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "VRF",
    root = "Vrf",
    status = "VrfStatus",
    derive = "PartialEq",
    category = "selvedge",
    printcolumn = r#"{"name":"VRF","type":"string","jsonPath":".spec.vrf"}"#,
    printcolumn = r#"{"name":"VNI","type":"integer","jsonPath":".spec.vni"}"#,
    printcolumn = r#"{"name":"RouteTarget","type":"string","jsonPath":".spec.routeTarget"}"#,
    printcolumn = r#"{"name":"RefCount","type":"integer","jsonPath":".status.referenceCount"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([(
    "self.vrf == oldSelf.vrf",
    "vrf cannot be changed; create another VRF object and let the Destinations refer to it",
)])))]
pub struct VrfSpec {
    /// Name of the VRF in the backbone and on every node, at most 12 characters. It cannot be changed.
    pub vrf: VrfName,
    /// VXLAN network identifier of the VRF. When absent, `Settings.spec.vrfs` must know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vni: Option<Vni>,
    /// Route target with which the VRF's routes are imported and exported. When absent, `Settings.spec.vrfs` must know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_target: Option<RouteTarget>,
    /// Loopback interfaces of the VRF that have an address of their own on each node, such as the source of mirror tunnels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub loopbacks: Vec<VrfLoopback>,
}

/// A loopback interface of a VRF whose address on each node comes from a Cluster API IPAM pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VrfLoopback {
    /// Name of the interface, by convention `lo.` and a short word, such as `lo.mir`.
    pub name: IfName,
    /// The pool the addresses come from, such as an `InClusterIPPool`. One `IPAddressClaim` is made for each node that needs one.
    pub pool_ref: TypedObjectReference,
}

/// What is known about a VRF.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VrfStatus {
    /// Generation of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many `Destination`s refer to this VRF.
    #[serde(default)]
    pub reference_count: u32,
    /// The VNI in effect: the object's own, or the one from `Settings`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vni: Option<Vni>,
    /// The route target in effect: the object's own, or the one from `Settings`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::schema::Written>")]
    pub route_target: Option<RouteTarget>,
    /// The spec in effect. It differs from `spec` while something is wrong with the object: what was in effect before stays.
    #[serde(
        default,
        deserialize_with = "crate::schema::if_readable",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<crate::schema::Kept>")]
    pub in_effect: Option<Arc<VrfSpec>>,
    /// What holds for the object now.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}
