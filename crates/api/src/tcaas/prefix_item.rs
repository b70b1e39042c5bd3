//! One line of a prefix filter.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    schema::rules,
    value::{Prefix, Seq},
};

/// One entry of a prefix filter: the prefixes it matches and the action on them.
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
    /// Network in CIDR notation, without host bits, such as `192.0.2.0/24`.
    pub cidr: Prefix,
    /// Sequence number of the entry; the smallest is evaluated first. Default: the position in the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
    /// Minimum prefix length to match. Without `ge` and `le` only the network itself matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 128))]
    pub ge: Option<u8>,
    /// Maximum prefix length to match. Default with `ge`: the full length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 128))]
    pub le: Option<u8>,
    /// Action on matching prefixes: `permit` or `deny`.
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

/// Action of a prefix filter.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum PrefixAction {
    /// The prefix passes the filter.
    Permit,
    /// The prefix is filtered out.
    Deny,
}
