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

/// Takes addresses from a `Network` for load-balanced services: a MetalLB pool with its advertisement, and host routes in the VRFs of
/// the selected destinations.
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
    /// Name of the `Network` the addresses come from; it must have `ipv4` or `ipv6`.
    #[schemars(length(min = 1, max = 253))]
    pub network_ref: String,
    /// Selects the `Destination`s from which the addresses can be reached, by label. An empty selector selects all; without one no VRF
    /// knows the addresses and only the pool and its advertisement are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destinations: Option<LabelSelector>,
    /// Selects the nodes that announce the addresses, by label. Without it all nodes do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<LabelSelector>,
    /// How many addresses to take, of each family the network has. Exactly one of `count` and `addresses` must be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65536))]
    pub count: Option<u32>,
    /// The addresses themselves. Exactly one of `count` and `addresses` must be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<AddressLists>,
    /// Name of the MetalLB pool. Without it the pool is called like this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub pool_name: Option<String>,
    /// Load balancer class for an implementation the tenant runs, such as kube-vip. Only with `Settings.spec.hbnFlavour: legacy-frr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub tenant_load_balancer_class: Option<String>,
    /// How the addresses are announced.
    #[serde(default)]
    pub advertisement: Advertisement,
    /// Makes no pool and no advertisement: the addresses are for workloads that announce them themselves, see `BGPNeighbor`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_load_balancer: bool,
    /// Exports only the host routes and not the network they come from.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_aggregation: bool,
    /// BGP communities set on the routes that are exported into the destinations' VRFs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub communities: Vec<Community>,
}

/// How service addresses are announced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Advertisement {
    /// The protocol: `bgp` makes a `BGPAdvertisement`, `l2` an `L2Advertisement`.
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

/// What is known about an inbound.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InboundStatus {
    /// Generation of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The addresses it holds. They stay until `count` shrinks or the object goes.
    #[serde(default, skip_serializing_if = "AddressLists::is_empty")]
    #[schemars(with = "WrittenAddressLists")]
    pub addresses: AddressLists,
    /// Name of the MetalLB pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool_name: Option<String>,
    /// The destinations that the selector has chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matched_destinations: Vec<MatchedDestination>,
    /// The spec in effect. It differs from `spec` while something is wrong with the object: what was in effect before stays.
    #[serde(
        default,
        deserialize_with = "crate::schema::if_readable",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<crate::schema::Kept>")]
    pub in_effect: Option<Arc<InboundSpec>>,
    /// What holds for the object now.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}
