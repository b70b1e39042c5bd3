//! One line of a prefix filter.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    schema::rules,
    value::{Prefix, Seq},
};

/// One line of a filter: which prefixes it means and what happens to them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    (
        "!has(self.ge) || self.ge >= cidr(self.cidr).prefixLength()",
        "ge must not be smaller than the prefix length of cidr",
    ),
    (
        "!has(self.le) || self.le >= (has(self.ge) ? self.ge : cidr(self.cidr).prefixLength())",
        "le must not be smaller than ge, nor than the prefix length of cidr",
    ),
    (
        "self.cidr.contains(':') || ((!has(self.ge) || self.ge <= 32) && (!has(self.le) || self.le <= 32))",
        "ge and le of an IPv4 prefix can be at most 32",
    ),
])))]
pub struct PrefixItem {
    /// The network, without host bits.
    pub cidr: Prefix,
    /// Where the line stands among the others. Without it the line stands at its place in the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
    /// Shortest prefix length that is meant. Without `ge` and `le` only the network itself is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 128))]
    pub ge: Option<u8>,
    /// Longest prefix length that is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 128))]
    pub le: Option<u8>,
    /// What happens to the prefixes.
    pub action: PrefixAction,
}

impl PrefixItem {
    /// The prefix lengths that are meant: `ge` alone reaches up to full length, `le` alone starts at the network itself.
    pub fn lengths(&self) -> RangeInclusive<u8> {
        let net = self.cidr.net();
        let open_end = match self.ge {
            Some(_) => net.max_prefix_len(),
            None => net.prefix_len(),
        };
        self.ge.unwrap_or_else(|| net.prefix_len())..=self.le.unwrap_or(open_end)
    }
}

/// What a filter does with a prefix.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum PrefixAction {
    /// It passes.
    Permit,
    /// It is held back.
    Deny,
}
