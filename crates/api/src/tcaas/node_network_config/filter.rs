//! Filters: ordered rules over routes. The first that matches decides; after the last comes the default.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{Community, Prefix};

/// An ordered list of rules with a default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Filter {
    /// The rules, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<FilterItem>,
    /// What happens to a route that no rule decides on.
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
    /// Which routes; both parts must match where both are set.
    pub matcher: Matcher,
    /// What happens to them.
    pub action: Action,
}

/// Which routes a rule speaks of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Matcher {
    /// Routes of this prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<PrefixMatcher>,
    /// Routes with this community.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bgp_community: Option<CommunityMatcher>,
}

/// A prefix, or a range of lengths below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrefixMatcher {
    /// The prefix.
    pub prefix: Prefix,
    /// Least length of a route that matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ge: Option<u8>,
    /// Greatest length of a route that matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub le: Option<u8>,
}

/// A community that a route carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommunityMatcher {
    /// The community.
    pub community: Community,
    /// Whether the route may carry no other.
    pub exact_match: bool,
}

/// What happens to a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Action {
    /// Whether the route passes.
    #[serde(rename = "type")]
    pub kind: ActionType,
    /// How the route is changed on its way.
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

/// How a route is changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModifyRoute {
    /// Communities it gets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add_communities: Vec<Community>,
    /// Whether it keeps those it had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additive_communities: Option<bool>,
    /// Communities it loses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove_communities: Vec<Community>,
    /// Whether it loses all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remove_all_communities: Option<bool>,
}
