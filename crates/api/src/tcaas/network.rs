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

/// A pool of addresses with the VLAN and VNI of its segment. It has no effect by itself: a `Layer2Attachment` makes it a layer 2
/// segment, and `Inbound`, `Outbound` and `PodNetwork` allocate addresses from it.
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
    /// IPv4 address pool. Without `ipv4` and `ipv6` the network is a pure layer 2 segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv4: Option<IpNetwork>,
    /// IPv6 address pool. Without `ipv4` and `ipv6` the network is a pure layer 2 segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv6: Option<IpNetwork>,
    /// Allocation class per address family, for automatic allocation of prefixes. Accepted and validated, but not implemented.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation_pool: Option<AllocationPool>,
    /// VLAN of the segment, 1–4094.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<VlanId>,
    /// VXLAN network identifier (VNI) of the layer 2 segment, 1–16777215. Default: allocated from `Settings.spec.l2VniRange` when
    /// needed, and then kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vni: Option<Vni>,
    /// Configures the layer 2 segment on the nodes. Default: true. When false, the network is only a source of numbers and addresses,
    /// and no segment is created.
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
    /// Network in CIDR notation, without host bits, such as `198.51.100.0/24`.
    pub cidr: Prefix,
    /// Prefix length of the slice per consumer, such as 28. Validated, but not implemented.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 128))]
    pub prefix_length: Option<u8>,
}

/// Classes of an upstream address management, one for each family.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllocationPool {
    /// Allocation class for IPv4, such as `private/cndtag`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub ipv4: Option<String>,
    /// Allocation class for IPv6, such as `global/cndtag`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub ipv6: Option<String>,
}

/// Observed state of a network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkStatus {
    /// `metadata.generation` of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Number of objects that reference this network.
    #[serde(default)]
    pub reference_count: u32,
    /// VNI of the segment: `spec.vni`, or the one allocated from `Settings.spec.l2VniRange`, which is kept until the network is
    /// deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vni: Option<Vni>,
    /// Slices of the pool that are allocated to consumers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocated_slices: Vec<AllocatedSlice>,
    /// Last valid spec, which is in effect. It differs from `spec` while `spec` has an error: the object then keeps its last valid
    /// state.
    #[serde(
        default,
        deserialize_with = "crate::schema::if_readable",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<crate::schema::Kept>")]
    pub in_effect: Option<Arc<NetworkSpec>>,
    /// Conditions of the object. `Ready` is true when the object is in effect on all selected nodes; otherwise `reason` and `message`
    /// say why not.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}

/// A slice of the pool of a network and its holder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllocatedSlice {
    /// Name of the object that holds the slice.
    pub name: String,
    /// IPv4 slice in CIDR notation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written>")]
    pub ipv4: Option<Prefix>,
    /// IPv6 slice in CIDR notation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written>")]
    pub ipv6: Option<Prefix>,
}
