//! `BGPNeighbor`: workloads that announce their own routes.

use std::{net::IpAddr, sync::Arc};

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::asn_text;
use crate::{
    meta::{Conditions, NameReference},
    schema::{Address, Written, is_false},
    value::{Asn, HostCidr, Seconds},
};

/// A BGP neighbor on the nodes for workloads that announce the addresses of their `Inbound`s to the backbone themselves.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "BGPNeighbor",
    root = "BgpNeighbor",
    status = "BgpNeighborStatus",
    derive = "PartialEq",
    shortname = "bgpn",
    category = "selvedge",
    printcolumn = r#"{"name":"Inbounds","type":"string","jsonPath":".spec.allowedInbounds[*].name"}"#,
    printcolumn = r#"{"name":"WorkloadAS","type":"integer","jsonPath":".status.workloadASNumber"}"#,
    printcolumn = r#"{"name":"NeighborAS","type":"integer","jsonPath":".status.neighborASNumber"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct BgpNeighborSpec {
    /// `Inbound`s whose addresses the workloads may announce. Each must set `disableLoadBalancer: true`, and all must select the same
    /// nodes; these nodes get the neighbor.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub allowed_inbounds: Vec<NameReference>,
    /// Exports the whole networks of the `Inbound`s, even if an `Inbound` sets `disableAggregation`. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub advertise_transfer_network: bool,
    /// Hold time: the session is closed after this long without a message. `0s` (never) or `3s` to `65535s`, such as `90s`. Default:
    /// `180s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_time: Option<Seconds>,
    /// Keepalive interval, at most the hold time, such as `30s`. Default: `60s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keepalive_time: Option<Seconds>,
    /// Maximum number of prefixes a workload may announce per address family. Default: 1000. Above the limit the session is closed for
    /// five minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub maximum_prefixes: Option<u32>,
    /// AS number of the workloads, as a quoted string such as `"64600"`. Default, also for an empty string:
    /// `Settings.spec.bgp.workloadAS`.
    #[serde(
        default,
        rename = "workloadAS",
        with = "asn_text",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "asn_text::AsnText")]
    pub workload_as: Option<Asn>,
}

/// Parameters that a workload needs to open its BGP sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BgpNeighborStatus {
    /// `metadata.generation` of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// AS number of the BGP router on the node, as text.
    #[serde(default, with = "asn_text", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "asn_text::AsnText")]
    pub as_number: Option<Asn>,
    /// Addresses of the neighbor that the workload connects to, with prefix length.
    #[serde(default, rename = "neighborIPs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Written>")]
    pub neighbor_ips: Vec<HostCidr>,
    /// Source addresses the workload must use, one per address family. Every node that has the neighbor has them on a loopback.
    #[serde(default, rename = "workloadIPs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Address>", length(max = 2))]
    pub workload_ips: Vec<IpAddr>,
    /// AS number of the neighbor, as the workload must configure it.
    #[serde(
        default,
        rename = "neighborASNumber",
        skip_serializing_if = "Option::is_none"
    )]
    pub neighbor_as_number: Option<Asn>,
    /// AS number that the workload itself must use.
    #[serde(
        default,
        rename = "workloadASNumber",
        skip_serializing_if = "Option::is_none"
    )]
    pub workload_as_number: Option<Asn>,
    /// Hold time in effect, such as `1m30s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_time: Option<Seconds>,
    /// Keepalive interval in effect, such as `30s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keepalive_time: Option<Seconds>,
    /// Maximum number of prefixes per address family in effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum_prefixes: Option<u32>,
    /// Last valid spec, which is in effect. It differs from `spec` while `spec` has an error: the object then keeps its last valid
    /// state.
    #[serde(
        default,
        deserialize_with = "crate::schema::if_readable",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<crate::schema::Kept>")]
    pub in_effect: Option<Arc<BgpNeighborSpec>>,
    /// Conditions of the object. `Ready` is true when the object is in effect on all selected nodes; otherwise `reason` and `message`
    /// say why not.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}
