//! Prefixes that are advertised to a neighbor and accepted from it: IPv4 and IPv6 unicast only.

use std::net::{Ipv4Addr, Ipv6Addr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FrrCommunity, schema};
use crate::{
    openperouter::schema::is_default,
    value::{HostCidr, LocalPreference, MatchLength},
};

/// Prefixes that are advertised to a neighbor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Advertise {
    /// Prefixes of the router of this object that are advertised. Default: none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub allowed: AllowedOut,
    /// Next hop of advertised routes. Default: the address of the node.
    #[serde(default, skip_serializing_if = "is_default")]
    pub next_hop: NextHop,
    /// BGP local preferences of advertised prefixes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with_local_pref: Vec<LocalPrefPrefixes>,
    /// BGP communities of advertised prefixes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with_community: Vec<CommunityPrefixes>,
}

/// Prefixes that may be advertised.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllowedOut {
    /// Prefixes for the mode `filtered`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::prefixes")]
    pub prefixes: Vec<HostCidr>,
    /// `all` prefixes of the router of this object, or only the listed ones (`filtered`). Default: `filtered`.
    #[serde(default)]
    pub mode: FilterMode,
}

/// Mode of a prefix filter.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum FilterMode {
    /// Everything passes.
    All,
    /// Only what is listed passes.
    #[default]
    Filtered,
}

/// Next hop of advertised routes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextHop {
    /// IPv4 next hop of advertised IPv4 routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::ipv4")]
    pub ipv4: Option<Ipv4Addr>,
    /// IPv6 next hop of advertised IPv6 routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::ipv6")]
    pub ipv6: Option<Ipv6Addr>,
}

/// Prefixes that are advertised with a local preference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalPrefPrefixes {
    /// Prefixes in CIDR notation. Each must also be advertised.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::some_prefixes")]
    pub prefixes: Vec<HostCidr>,
    /// BGP local preference, 0–4294967295. Default: 0.
    #[serde(default = "no_preference")]
    pub local_pref: LocalPreference,
}

/// Prefixes that are advertised with a community.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommunityPrefixes {
    /// Prefixes in CIDR notation. Each must also be advertised.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::some_prefixes")]
    pub prefixes: Vec<HostCidr>,
    /// BGP community: standard `a:b`, or large `large:a:b:c`.
    #[schemars(schema_with = "schema::community")]
    pub community: FrrCommunity,
}

/// Prefixes that are accepted from a neighbor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Receive {
    /// Prefixes that are accepted. Default: none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub allowed: AllowedIn,
}

/// Prefixes that may be accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllowedIn {
    /// Prefixes for the mode `filtered`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<PrefixSelector>,
    /// `all` prefixes of both address families, or only the listed ones (`filtered`). Default: `filtered`.
    #[serde(default)]
    pub mode: FilterMode,
}

/// A prefix with an optional range of prefix lengths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrefixSelector {
    /// Prefix in CIDR notation, such as `192.0.2.0/24`.
    #[schemars(schema_with = "schema::prefix")]
    pub prefix: HostCidr,
    /// Maximum prefix length to accept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub le: Option<MatchLength>,
    /// Minimum prefix length to accept, between the length of `prefix` and `le`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ge: Option<MatchLength>,
}

fn no_preference() -> LocalPreference {
    LocalPreference::MIN
}
