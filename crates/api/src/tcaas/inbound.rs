//! `Inbound`: service addresses that are reached from outside.

use std::sync::Arc;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AddressLists, MatchedDestination, address_lists::WrittenAddressLists};
use crate::{
    meta::{Conditions, LabelSelector},
    schema::{is_false, rules},
    value::Community,
};

/// Allocates addresses from a `Network` for load-balanced services. Generates a MetalLB pool and advertisement, and exports host routes
/// into the VRFs of the selected destinations.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "Inbound",
    status = "InboundStatus",
    derive = "PartialEq",
    shortname = "ib",
    category = "selvedge",
    printcolumn = r#"{"name":"NetworkRef","type":"string","jsonPath":".spec.networkRef"}"#,
    printcolumn = r#"{"name":"Count","type":"integer","jsonPath":".spec.count"}"#,
    printcolumn = r#"{"name":"Pool","type":"string","jsonPath":".status.poolName"}"#,
    printcolumn = r#"{"name":"Advertisement","type":"string","jsonPath":".spec.advertisement.type"}"#,
    printcolumn = r#"{"name":"VRFs","type":"string","jsonPath":".status.matchedDestinations[*].vrf"}"#,
    printcolumn = r#"{"name":"IPv4","type":"string","jsonPath":".status.addresses.ipv4","priority":10}"#,
    printcolumn = r#"{"name":"IPv6","type":"string","jsonPath":".status.addresses.ipv6","priority":10}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([(
    "has(self.count) != has(self.addresses)",
    "exactly one of count and addresses must be set",
)])))]
pub struct InboundSpec {
    /// Name of the `Network` from which addresses are allocated. It must have `ipv4` or `ipv6`.
    #[schemars(length(min = 1, max = 253))]
    pub network_ref: String,
    /// Selects by label the `Destination`s from which the addresses are reachable. An empty selector selects all. Default: none; only
    /// the pool and its advertisement are created and no route is exported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destinations: Option<LabelSelector>,
    /// Selects by label the nodes that announce the addresses. Default: all nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<LabelSelector>,
    /// Number of addresses to allocate, per address family of the network. Exactly one of `count` and `addresses` must be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65536))]
    pub count: Option<u32>,
    /// Explicit addresses to use. Exactly one of `count` and `addresses` must be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<AddressLists>,
    /// Name of the MetalLB pool. Default: the name of this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub pool_name: Option<String>,
    /// Load balancer class of an implementation that the tenant runs, such as kube-vip. Only valid with `Settings.spec.hbnFlavour:
    /// legacy-frr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub tenant_load_balancer_class: Option<String>,
    /// Advertisement of the addresses by MetalLB. Default: `bgp`.
    #[serde(default)]
    pub advertisement: Advertisement,
    /// Creates no pool and no advertisement; for workloads that announce the addresses themselves, see `BGPNeighbor`. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_load_balancer: bool,
    /// Exports only the host routes, not the network they are part of. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_aggregation: bool,
    /// BGP communities set on routes that are exported into the VRFs of the destinations, such as `64512:100`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub communities: Vec<Community>,
}

/// Advertisement of service addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Advertisement {
    /// Protocol: `bgp` creates a `BGPAdvertisement`, `l2` an `L2Advertisement`. Default: `bgp`.
    #[serde(default, rename = "type")]
    pub kind: AdvertisementType,
}

/// A protocol that announces service addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AdvertisementType {
    /// By BGP.
    #[default]
    Bgp,
    /// By ARP and neighbour discovery.
    L2,
}

/// Observed state of an inbound.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InboundStatus {
    /// `metadata.generation` of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Allocated addresses. They are kept until `count` is reduced or the object is deleted.
    #[serde(default, skip_serializing_if = "AddressLists::is_empty")]
    #[schemars(with = "WrittenAddressLists")]
    pub addresses: AddressLists,
    /// Name of the MetalLB pool that was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool_name: Option<String>,
    /// Destinations that match the selector.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matched_destinations: Vec<MatchedDestination>,
    /// Last valid spec, which is in effect. It differs from `spec` while `spec` has an error: the object then keeps its last valid
    /// state.
    #[serde(
        default,
        deserialize_with = "crate::schema::if_readable",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<crate::schema::Kept>")]
    pub in_effect: Option<Arc<InboundSpec>>,
    /// Conditions of the object. `Ready` is true when the object is in effect on all selected nodes; otherwise `reason` and `message`
    /// say why not.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}
