//! `Outbound`: addresses under which pods reach the outside.

use std::sync::Arc;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AddressLists, MatchedDestination, address_lists::WrittenAddressLists};
use crate::{
    meta::{Conditions, LabelSelector},
    schema::{is_false, rules},
    value::{Community, Prefix},
};

/// Allocates addresses from a `Network` for egress gateways. Generates a Coil `Egress` with a Calico pool and policy, and exports host
/// routes into the VRFs of the selected destinations.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "Outbound",
    status = "OutboundStatus",
    derive = "PartialEq",
    shortname = "ob",
    category = "selvedge",
    printcolumn = r#"{"name":"NetworkRef","type":"string","jsonPath":".spec.networkRef"}"#,
    printcolumn = r#"{"name":"Count","type":"integer","jsonPath":".spec.count"}"#,
    printcolumn = r#"{"name":"Replicas","type":"integer","jsonPath":".spec.replicas"}"#,
    printcolumn = r#"{"name":"VRFs","type":"string","jsonPath":".status.matchedDestinations[*].vrf"}"#,
    printcolumn = r#"{"name":"IPv4","type":"string","jsonPath":".status.addresses.ipv4","priority":10}"#,
    printcolumn = r#"{"name":"IPv6","type":"string","jsonPath":".status.addresses.ipv6","priority":10}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    ("has(self.count) != has(self.addresses)", "exactly one of count and addresses must be set"),
    (
        "!has(self.count) || self.count > (has(self.replicas) ? self.replicas : 1)",
        "count must be greater than replicas, which is at least 1: a gateway that is being replaced needs an address too",
    ),
    (
        "!has(self.addresses) \
         || ((!has(self.addresses.ipv4) || size(self.addresses.ipv4) == 0 \
         || size(self.addresses.ipv4) > (has(self.replicas) ? self.replicas : 1)) \
         && (!has(self.addresses.ipv6) || size(self.addresses.ipv6) == 0 \
         || size(self.addresses.ipv6) > (has(self.replicas) ? self.replicas : 1)))",
        "each family in addresses needs more addresses than replicas, which is at least 1: \
         a gateway that is being replaced needs an address too",
    ),
])))]
pub struct OutboundSpec {
    /// Name of the `Network` from which addresses are allocated. It must have `ipv4` or `ipv6`.
    #[schemars(length(min = 1, max = 253))]
    pub network_ref: String,
    /// Selects by label the `Destination`s that are reachable through the gateways. An empty selector selects all. Default: none; only
    /// the gateways and their pool are created and no route is exported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destinations: Option<LabelSelector>,
    /// Selects by label the nodes that carry the routes. Default: all nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<LabelSelector>,
    /// Number of addresses to allocate, per address family of the network. Must be greater than `replicas`, and at least 2. Exactly one
    /// of `count` and `addresses` must be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65536))]
    pub count: Option<u32>,
    /// Explicit addresses to use: per address family none, or more than `replicas` and at least 2. Exactly one of `count` and
    /// `addresses` must be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<AddressLists>,
    /// Number of gateway pods. Default: one fewer than there are addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub replicas: Option<u32>,
    /// Networks that pods reach through the gateways, in CIDR notation. Default: the prefixes of the selected destinations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4096))]
    pub egress_destinations: Vec<Prefix>,
    /// Exports only the host routes, not the network they are part of. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_aggregation: bool,
    /// BGP communities set on routes that are exported into the VRFs of the destinations, such as `64512:100`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub communities: Vec<Community>,
}

/// Observed state of an outbound.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutboundStatus {
    /// `metadata.generation` of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Allocated addresses. They are kept until `count` is reduced or the object is deleted.
    #[serde(default, skip_serializing_if = "AddressLists::is_empty")]
    #[schemars(with = "WrittenAddressLists")]
    pub addresses: AddressLists,
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
    pub in_effect: Option<Arc<OutboundSpec>>,
    /// Conditions of the object. `Ready` is true when the object is in effect on all selected nodes; otherwise `reason` and `message`
    /// say why not.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}
