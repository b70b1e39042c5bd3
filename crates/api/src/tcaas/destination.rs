//! `Destination`: what can be reached, and by which way.

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    meta::Conditions,
    schema::{Ipv4Address, Ipv6Address, rules},
    value::{Prefix, VrfName},
};

/// A set of prefixes that are reachable through a VRF or a static next hop. Attachments select destinations by label and import their
/// prefixes.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "Destination",
    status = "DestinationStatus",
    derive = "PartialEq",
    shortname = "dst",
    category = "selvedge",
    printcolumn = r#"{"name":"VRFRef","type":"string","jsonPath":".spec.vrfRef"}"#,
    printcolumn = r#"{"name":"Prefixes","type":"string","jsonPath":".spec.prefixes","priority":10}"#,
    printcolumn = r#"{"name":"RefCount","type":"integer","jsonPath":".status.referenceCount"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([(
    "has(self.vrfRef) != has(self.nextHop)",
    "exactly one of vrfRef and nextHop must be set",
)])))]
pub struct DestinationSpec {
    /// Name of the `VRF` object through which the prefixes are reachable. Exactly one of `vrfRef` and `nextHop` must be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub vrf_ref: Option<String>,
    /// Reachable prefixes, such as `203.0.113.0/24`. With `vrfRef` they are imported from the VRF; with `nextHop` they become static
    /// routes. `0.0.0.0/0` and `::/0` are the default route.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4096))]
    pub prefixes: Vec<Prefix>,
    /// Next hops for the prefixes, for attachments with `interfaceRef`. Exactly one of `vrfRef` and `nextHop` must be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_hop: Option<NextHop>,
}

/// Next hops of static routes, one for each family.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([(
    "has(self.ipv4) || has(self.ipv6)",
    "nextHop needs at least one of ipv4 and ipv6",
)])))]
pub struct NextHop {
    /// IPv4 address of the next hop for the IPv4 prefixes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Ipv4Address>")]
    pub ipv4: Option<Ipv4Addr>,
    /// IPv6 address of the next hop for the IPv6 prefixes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Ipv6Address>")]
    pub ipv6: Option<Ipv6Addr>,
}

/// Observed state of a destination.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DestinationStatus {
    /// `metadata.generation` of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Number of objects that select this destination.
    #[serde(default)]
    pub reference_count: u32,
    /// Last valid spec, which is in effect. It differs from `spec` while `spec` has an error: the object then keeps its last valid
    /// state.
    #[serde(
        default,
        deserialize_with = "crate::schema::if_readable",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<crate::schema::Kept>")]
    pub in_effect: Option<Arc<DestinationSpec>>,
    /// Conditions of the object. `Ready` is true when the object is in effect on all selected nodes; otherwise `reason` and `message`
    /// say why not.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}

/// Prefixes in addition to those of the selected destinations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExtraRoute {
    /// Prefixes in CIDR notation, without host bits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub prefixes: Vec<Prefix>,
}

/// A destination that matches the selector of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MatchedDestination {
    /// Name of the `Destination`.
    pub name: String,
    /// VRF of the destination. Absent for a destination with a static next hop or with an unknown VRF.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vrf: Option<VrfName>,
}
