//! Addresses by family.

use std::net::{Ipv4Addr, Ipv6Addr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{Ipv4Address, Ipv6Address, Written, rules};

/// IP addresses, listed by address family.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([(
    "(has(self.ipv4) && size(self.ipv4) > 0) || (has(self.ipv6) && size(self.ipv6) > 0)",
    "at least one address must be listed under ipv4 or ipv6",
)])))]
pub struct AddressLists {
    /// IPv4 addresses, without prefix length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Ipv4Address>", length(max = 1024), extend("x-kubernetes-list-type" = "set"))]
    pub ipv4: Vec<Ipv4Addr>,
    /// IPv6 addresses, without prefix length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Ipv6Address>", length(max = 1024), extend("x-kubernetes-list-type" = "set"))]
    pub ipv6: Vec<Ipv6Addr>,
}

impl AddressLists {
    /// Whether there is no address of either family.
    pub fn is_empty(&self) -> bool {
        self.ipv4.is_empty() && self.ipv6.is_empty()
    }
}

/// IP addresses, listed by address family.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "used in schemas only, in place of AddressLists")]
pub(super) struct WrittenAddressLists {
    /// IPv4 addresses without prefix length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ipv4: Vec<Written>,
    /// IPv6 addresses without prefix length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ipv6: Vec<Written>,
}
