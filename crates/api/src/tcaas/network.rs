//! `Network`: a pool of addresses and the numbers of a segment.

use std::sync::Arc;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    meta::Conditions,
    schema::{Written, rules},
    value::{Prefix, VlanId, Vni},
};

/// A pool of addresses together with the VLAN and VNI of its segment. It connects nothing by itself: it becomes a layer 2 segment
/// when a `Layer2Attachment` refers to it, and a source of addresses when an `Inbound`, `Outbound` or `PodNetwork` does.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "Network",
    status = "NetworkStatus",
    derive = "PartialEq",
    shortname = "net",
    category = "selvedge",
    printcolumn = r#"{"name":"VLAN","type":"integer","jsonPath":".spec.vlan"}"#,
    printcolumn = r#"{"name":"VNI","type":"integer","jsonPath":".status.vni","priority":10}"#,
    printcolumn = r#"{"name":"IPv4","type":"string","jsonPath":".spec.ipv4.cidr"}"#,
    printcolumn = r#"{"name":"IPv6","type":"string","jsonPath":".spec.ipv6.cidr"}"#,
    printcolumn = r#"{"name":"RefCount","type":"integer","jsonPath":".status.referenceCount"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    ("has(self.ipv4) || has(self.ipv6) || has(self.vlan)", "a Network needs at least one of ipv4, ipv6 and vlan"),
    ("!has(self.ipv4) || cidr(self.ipv4.cidr).ip().family() == 4", "ipv4.cidr must be an IPv4 network; put IPv6 networks under ipv6"),
    ("!has(self.ipv6) || cidr(self.ipv6.cidr).ip().family() == 6", "ipv6.cidr must be an IPv6 network; put IPv4 networks under ipv4"),
    (
        "!has(self.ipv4) || !has(self.ipv4.prefixLength) || self.ipv4.prefixLength <= 32",
        "ipv4.prefixLength can be at most 32",
    ),
])))]
pub struct NetworkSpec {
    /// Pool of IPv4 addresses. Without `ipv4` and `ipv6` the network is a pure layer 2 segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv4: Option<IpNetwork>,
    /// Pool of IPv6 addresses. Without `ipv4` and `ipv6` the network is a pure layer 2 segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv6: Option<IpNetwork>,
    /// Where prefixes would be ordered from, for each address family. Kept for automatic ordering to come; it has no effect yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation_pool: Option<AllocationPool>,
    /// VLAN of the segment, 1–4094.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<VlanId>,
    /// VXLAN network identifier of the layer 2 segment. When absent and needed, one is taken from `Settings.spec.l2VniRange` and kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vni: Option<Vni>,
    /// Whether Selvedge provides the segment. When false, the network is only a source of numbers and addresses, and no layer 2
    /// segment is made for it.
    #[serde(default = "managed")]
    pub managed: bool,
}

fn managed() -> bool {
    true
}

/// A pool of addresses of one family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([(
    "!has(self.prefixLength) || self.prefixLength >= cidr(self.cidr).prefixLength()",
    "prefixLength must not be shorter than the prefix of cidr: a slice cannot be larger than its pool",
)])))]
pub struct IpNetwork {
    /// The network in CIDR notation, without host bits, such as `198.51.100.0/24`.
    pub cidr: Prefix,
    /// Prefix length of the slice a consumer would get, such as 28. It is checked and has no other effect yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 128))]
    pub prefix_length: Option<u8>,
}

/// Classes of an upstream address management, one for each family.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllocationPool {
    /// Class for IPv4, such as `private/cndtag`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub ipv4: Option<String>,
    /// Class for IPv6, such as `global/cndtag`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub ipv6: Option<String>,
}

/// What is known about a network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkStatus {
    /// Generation of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many objects refer to this network.
    #[serde(default)]
    pub reference_count: u32,
    /// The VNI of the segment: the object's own, or the one taken from `Settings.spec.l2VniRange`, which is kept as long as the
    /// network exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vni: Option<Vni>,
    /// Slices of the pool that consumers hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocated_slices: Vec<AllocatedSlice>,
    /// The spec in effect. It differs from `spec` while something is wrong with the object: what was in effect before stays.
    #[serde(
        default,
        deserialize_with = "crate::schema::if_readable",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<crate::schema::Kept>")]
    pub in_effect: Option<Arc<NetworkSpec>>,
    /// What holds for the object now.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}

/// A slice of a network's pool and who holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllocatedSlice {
    /// Name of the object that holds the slice.
    pub name: String,
    /// The IPv4 slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written>")]
    pub ipv4: Option<Prefix>,
    /// The IPv6 slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written>")]
    pub ipv6: Option<Prefix>,
}
