//! What a neighbor is told and what is taken from it: IPv4 and IPv6 unicast only, never EVPN.

use std::net::{Ipv4Addr, Ipv6Addr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FrrCommunity, schema};
use crate::{
    openperouter::schema::is_default,
    value::{HostCidr, LocalPreference, MatchLength},
};

/// What a neighbor is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Advertise {
    /// Which prefixes of this object's router are advertised; without it, none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub allowed: AllowedOut,
    /// Next hop that advertised routes carry, in place of the node's own address.
    #[serde(default, skip_serializing_if = "is_default")]
    pub next_hop: NextHop,
    /// Local preferences of advertised prefixes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with_local_pref: Vec<LocalPrefPrefixes>,
    /// Communities of advertised prefixes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with_community: Vec<CommunityPrefixes>,
}

/// Prefixes that may be advertised.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllowedOut {
    /// The prefixes, when the mode is `filtered`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::prefixes")]
    pub prefixes: Vec<HostCidr>,
    /// `all` prefixes of this object's router, or those that are listed.
    #[serde(default)]
    pub mode: FilterMode,
}

/// Whether a filter lets everything through.
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
    /// Next hop of IPv4 routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::ipv4")]
    pub ipv4: Option<Ipv4Addr>,
    /// Next hop of IPv6 routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::ipv6")]
    pub ipv6: Option<Ipv6Addr>,
}

/// Prefixes with one local preference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalPrefPrefixes {
    /// The prefixes; each must be among those that are advertised.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::some_prefixes")]
    pub prefixes: Vec<HostCidr>,
    /// Their local preference.
    #[serde(default = "no_preference")]
    pub local_pref: LocalPreference,
}

/// Prefixes with one community.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommunityPrefixes {
    /// The prefixes; each must be among those that are advertised.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::some_prefixes")]
    pub prefixes: Vec<HostCidr>,
    /// Their community: `a:b`, or large as `large:a:b:c`.
    #[schemars(schema_with = "schema::community")]
    pub community: FrrCommunity,
}

/// What is taken from a neighbor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Receive {
    /// Which prefixes are accepted; without it, none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub allowed: AllowedIn,
}

/// Prefixes that may be accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllowedIn {
    /// The prefixes, when the mode is `filtered`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<PrefixSelector>,
    /// `all` prefixes of either family, or those that are listed.
    #[serde(default)]
    pub mode: FilterMode,
}

/// A prefix, and how much longer an accepted one may be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrefixSelector {
    /// The prefix.
    #[schemars(schema_with = "schema::prefix")]
    pub prefix: HostCidr,
    /// Longest length that is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub le: Option<MatchLength>,
    /// Shortest length that is accepted; not less than the prefix's own and not more than `le`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ge: Option<MatchLength>,
}

fn no_preference() -> LocalPreference {
    LocalPreference::MIN
}
