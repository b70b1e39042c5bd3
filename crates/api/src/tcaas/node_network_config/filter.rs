//! Filters: ordered rules over routes. The first that matches decides; after the last comes the default.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{Community, Prefix};

/// An ordered list of filter rules with a default action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Filter {
    /// Rules in order of evaluation; the first match decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<FilterItem>,
    /// Action for routes that no rule matches.
    pub default_action: Action,
}

impl Filter {
    /// A filter without rules.
    pub fn default_to(action: ActionType) -> Self {
        Self {
            items: Vec::new(),
            default_action: Action::new(action),
        }
    }
}

/// One rule of a filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FilterItem {
    /// Match criteria; all that are set must match.
    pub matcher: Matcher,
    /// Action for matching routes.
    pub action: Action,
}

/// Match criteria of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Matcher {
    /// Matches routes by prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<PrefixMatcher>,
    /// Matches routes by BGP community.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bgp_community: Option<CommunityMatcher>,
}

/// A prefix with an optional range of prefix lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrefixMatcher {
    /// Prefix to match, in CIDR notation.
    pub prefix: Prefix,
    /// Minimum prefix length of a matching route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ge: Option<u8>,
    /// Maximum prefix length of a matching route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub le: Option<u8>,
}

/// A BGP community of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommunityMatcher {
    /// BGP community to match, such as `64512:100`.
    pub community: Community,
    /// Matches only routes that carry no other community.
    pub exact_match: bool,
}

/// What happens to a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Action {
    /// Decision: `accept`, `reject`, or `next` (evaluate the next rule).
    #[serde(rename = "type")]
    pub kind: ActionType,
    /// Modifications of the route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modify_route: Option<ModifyRoute>,
}

impl Action {
    /// An action that changes nothing on the route.
    pub fn new(kind: ActionType) -> Self {
        Self {
            kind,
            modify_route: None,
        }
    }
}

/// Whether a route passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ActionType {
    /// It passes.
    Accept,
    /// It does not.
    Reject,
    /// The next rule decides, after this one has changed the route.
    Next,
}

/// Modifications of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModifyRoute {
    /// BGP communities to add to the route.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add_communities: Vec<Community>,
    /// Keeps the existing communities when adding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additive_communities: Option<bool>,
    /// BGP communities to remove from the route.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove_communities: Vec<Community>,
    /// Removes all communities from the route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remove_all_communities: Option<bool>,
}
