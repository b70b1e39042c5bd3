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

/// A BGP neighbor on the nodes that workloads may talk to, to announce the addresses of their `Inbound`s to the backbone.
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
    /// The `Inbound`s whose addresses may be announced. None may have a pool of the load balancer: set `disableLoadBalancer` in each. All
    /// must select the same nodes, which are those that have the neighbor.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub allowed_inbounds: Vec<NameReference>,
    /// Whether the networks of the `Inbound`s are exported as a whole, also where an `Inbound` sets `disableAggregation`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub advertise_transfer_network: bool,
    /// How long a session survives without a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_time: Option<Seconds>,
    /// How often a sign of life is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keepalive_time: Option<Seconds>,
    /// How many prefixes a workload may announce in each family; 1000 where it is absent. Above that the session is closed for five minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub maximum_prefixes: Option<u32>,
    /// AS number of the workloads, in quotes. Empty or absent means `Settings.spec.bgp.workloadAS`.
    #[serde(
        default,
        rename = "workloadAS",
        with = "asn_text",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "asn_text::AsnText")]
    pub workload_as: Option<Asn>,
}

/// What a workload needs to know to open its sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BgpNeighborStatus {
    /// Generation of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// AS number of the node's router.
    #[serde(default, with = "asn_text", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "asn_text::AsnText")]
    pub as_number: Option<Asn>,
    /// Addresses of the neighbor, with prefix length: what the workload dials.
    #[serde(default, rename = "neighborIPs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Written>")]
    pub neighbor_ips: Vec<HostCidr>,
    /// Addresses that the workload must dial from, one of each family. Every node that has the neighbor has them on a loopback.
    #[serde(default, rename = "workloadIPs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Address>", length(max = 2))]
    pub workload_ips: Vec<IpAddr>,
    /// AS number that the workload must expect of the neighbor.
    #[serde(
        default,
        rename = "neighborASNumber",
        skip_serializing_if = "Option::is_none"
    )]
    pub neighbor_as_number: Option<Asn>,
    /// AS number that the workload must use.
    #[serde(
        default,
        rename = "workloadASNumber",
        skip_serializing_if = "Option::is_none"
    )]
    pub workload_as_number: Option<Asn>,
    /// The hold time in effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_time: Option<Seconds>,
    /// The keepalive time in effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keepalive_time: Option<Seconds>,
    /// The limit of prefixes in effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum_prefixes: Option<u32>,
    /// The spec in effect. It differs from `spec` while something is wrong with the object: what was in effect before stays.
    #[serde(
        default,
        deserialize_with = "crate::schema::if_readable",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<crate::schema::Kept>")]
    pub in_effect: Option<Arc<BgpNeighborSpec>>,
    /// What holds for the object now.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}
