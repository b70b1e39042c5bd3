//! One BGP router of the host.

use std::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Evpn, Neighbor, absent, schema};
use crate::{
    openperouter::schema::rules,
    value::{Asn, HostCidr, IfName},
};

/// A BGP router of the host in one VRF.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "!has(self.evpn) || !has(self.evpn.l3vni) || !has(self.neighbors) || size(self.neighbors) == 0",
        "evpn.l3vni goes on a router without neighbors: move the neighbors to the default VRF's router",
    ),
    (
        "!has(self.evpn) || !has(self.evpn.l3vni) || (has(self.vrf) && self.vrf != '' && self.vrf != 'default')",
        "evpn.l3vni has no effect in the default VRF: give the router a vrf",
    ),
    (
        "!has(self.imports) || self.imports.all(i, i.vrf != (has(self.vrf) && self.vrf != '' ? self.vrf \
         : 'default'))",
        "a router cannot import its own VRF: take it out of imports",
    ),
    (
        "!has(self.neighbors) || self.neighbors.all(n, !has(n.localASN) || !has(n.asn) || n.asn != self.asn)",
        "localASN is for external neighbors only: take it from the neighbor that has the router's AS number",
    ),
    (
        "!has(self.neighbors) || self.neighbors.all(n, !has(n.localASN) || n.localASN != self.asn)",
        "a neighbor's localASN must differ from the router's asn: leave it out",
    ),
])))]
pub struct Router {
    /// AS number of the router, 1–4294967295.
    pub asn: Asn,
    /// Router ID, written as an IPv4 address. Default: derived from the addresses of the node.
    #[serde(
        default,
        deserialize_with = "absent::text",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(schema_with = "schema::optional_ipv4")]
    pub id: Option<Ipv4Addr>,
    /// Name of the VRF of the router. Default, also for an empty string: the default VRF.
    #[serde(
        default,
        deserialize_with = "absent::text",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(schema_with = "schema::device")]
    pub vrf: Option<IfName>,
    /// BGP peers of the router.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub neighbors: Vec<Neighbor>,
    /// Prefixes that the router originates, such as `192.0.2.0/24`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::prefixes")]
    pub prefixes: Vec<HostCidr>,
    /// VRFs whose routes are imported. Each needs a router in the same object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub imports: Vec<Import>,
    /// EVPN settings of the router.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evpn: Option<Evpn>,
}

/// A VRF whose routes are imported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Import {
    /// Name of the VRF. `default` is the default VRF.
    pub vrf: IfName,
}

/// A VRF of the host, whichever way it was spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Vrf<'a> {
    /// The default one.
    Default,
    /// The one of this name.
    Named(&'a IfName),
}

impl<'a> Vrf<'a> {
    fn of(name: &'a IfName) -> Self {
        if name.as_str() == "default" {
            Self::Default
        } else {
            Self::Named(name)
        }
    }
}

impl Router {
    /// The VRF the router is in.
    pub fn vrf(&self) -> Vrf<'_> {
        self.vrf.as_ref().map_or(Vrf::Default, Vrf::of)
    }
}

impl Import {
    /// The VRF whose routes are imported.
    pub fn vrf(&self) -> Vrf<'_> {
        Vrf::of(&self.vrf)
    }
}
