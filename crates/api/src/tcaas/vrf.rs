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

/// A VRF of the backbone. It defines the identity of the VRF in the overlay (VNI and route target). The prefixes that are reachable
/// through it are defined by `Destination`s, which reference it by name.
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
    /// Name of the VRF in the backbone and on every node, at most 12 characters. Immutable.
    pub vrf: VrfName,
    /// VXLAN network identifier (VNI) of the VRF, 1–16777215. Default: the VNI of the VRF in `Settings.spec.vrfs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vni: Option<Vni>,
    /// Route target for import and export of the VRF, such as `64512:2002`. Default: the route target of the VRF in
    /// `Settings.spec.vrfs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_target: Option<RouteTarget>,
    /// Loopback interfaces of the VRF with a unique address on each node, such as the source of mirror tunnels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub loopbacks: Vec<VrfLoopback>,
}

/// A loopback interface of a VRF. Its address on each node is allocated from a Cluster API IPAM pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VrfLoopback {
    /// Name of the interface, by convention `lo.` and a short suffix, such as `lo.mir`.
    pub name: IfName,
    /// Pool from which the addresses are allocated, such as an `InClusterIPPool`. One `IPAddressClaim` is created for each node that
    /// needs an address.
    pub pool_ref: TypedObjectReference,
}

/// Observed state of a VRF.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VrfStatus {
    /// `metadata.generation` of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Number of `Destination`s that reference this VRF.
    #[serde(default)]
    pub reference_count: u32,
    /// VNI in effect: `spec.vni`, or the one from `Settings.spec.vrfs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vni: Option<Vni>,
    /// Route target in effect: `spec.routeTarget`, or the one from `Settings.spec.vrfs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::schema::Written>")]
    pub route_target: Option<RouteTarget>,
    /// Last valid spec, which is in effect. It differs from `spec` while `spec` has an error: the object then keeps its last valid
    /// state.
    #[serde(
        default,
        deserialize_with = "crate::schema::if_readable",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<crate::schema::Kept>")]
    pub in_effect: Option<Arc<VrfSpec>>,
    /// Conditions of the object. `Ready` is true when the object is in effect on all selected nodes; otherwise `reason` and `message`
    /// say why not.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}
