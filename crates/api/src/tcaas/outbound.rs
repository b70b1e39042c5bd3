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

/// Takes addresses from a `Network` for egress gateways: a Coil `Egress` with a Calico pool and policy, and host routes in the VRFs of
/// the selected destinations.
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
    /// Name of the `Network` the addresses come from; it must have `ipv4` or `ipv6`.
    #[schemars(length(min = 1, max = 253))]
    pub network_ref: String,
    /// Selects the `Destination`s that are reached through the gateways, by label. An empty selector selects all; without one no VRF
    /// knows the addresses and only the gateways and their pool are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destinations: Option<LabelSelector>,
    /// Selects the nodes that carry the routes, by label. Without it all nodes do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<LabelSelector>,
    /// How many addresses to take, of each family the network has; more than `replicas`, and at least 2. Exactly one of `count` and `addresses` must
    /// be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65536))]
    pub count: Option<u32>,
    /// The addresses themselves; of each family none or more than `replicas`, and at least 2. Exactly one of `count` and `addresses`
    /// must be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<AddressLists>,
    /// How many gateways run. Without it there is one fewer than there are addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub replicas: Option<u32>,
    /// Networks that pods reach through the gateways.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4096))]
    pub egress_destinations: Vec<Prefix>,
    /// Exports only the host routes and not the network they come from.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_aggregation: bool,
    /// BGP communities set on the routes that are exported into the destinations' VRFs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub communities: Vec<Community>,
}

/// What is known about an outbound.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutboundStatus {
    /// Generation of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The addresses it holds. They stay until `count` shrinks or the object goes.
    #[serde(default, skip_serializing_if = "AddressLists::is_empty")]
    #[schemars(with = "WrittenAddressLists")]
    pub addresses: AddressLists,
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
    pub in_effect: Option<Arc<OutboundSpec>>,
    /// What holds for the object now.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}
