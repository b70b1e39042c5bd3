//! Networks as people write them: bits behind the prefix length are taken and ignored.

use std::{fmt, str::FromStr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use schemars::json_schema;

use super::{HostCidr, InvalidValue, Prefix, address::cidr, string_value};

macro_rules! written_prefix {
    ($(#[$doc:meta])* $name:ident($net:ty) $($compact:ident)?, $pattern:pat => $found:expr, $max:literal, $rule:literal, $expected:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($net);

        impl $name {
            /// The text as it was read.
            pub fn new(net: $net) -> Self {
                Self(net)
            }

            /// The network that is meant.
            pub fn prefix(self) -> Prefix {
                Prefix::of(self.0.into())
            }

            /// What was written, where it has bits that are ignored.
            pub fn with_ignored_bits(self) -> Option<HostCidr> {
                let written = IpNet::from(self.0);
                (written != written.trunc()).then(|| HostCidr::new(written))
            }
        }

        impl FromStr for $name {
            type Err = InvalidValue;
            fn from_str(text: &str) -> Result<Self, InvalidValue> {
                match cidr(text) {
                    Some($pattern) => Ok(Self($found)),
                    _ => Err(InvalidValue::new(text, $expected)),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        string_value!(
            $($compact)? $name,
            json_schema!({
                "type": "string",
                "maxLength": $max,
                "pattern": r"^[0-9a-fA-F:.]+/[0-9]{1,3}$",
                "x-kubernetes-validations": [{"rule": $rule, "message": concat!("must be ", $expected)}],
            })
        );
    };
}

written_prefix!(
    /// A network of either address family.
    WrittenPrefix(IpNet) compact, net => net, 43, "isCIDR(self)",
    "a network in CIDR notation, such as 192.0.2.0/24 or 2001:db8::/32"
);
written_prefix!(
    /// An IPv4 network.
    WrittenIpv4Prefix(Ipv4Net), IpNet::V4(net) => net, 18, "isCIDR(self) && cidr(self).ip().family() == 4",
    "an IPv4 network in CIDR notation, such as 192.0.2.0/24"
);
written_prefix!(
    /// An IPv6 network.
    WrittenIpv6Prefix(Ipv6Net), IpNet::V6(net) => net, 43, "isCIDR(self) && cidr(self).ip().family() == 6",
    "an IPv6 network in CIDR notation, such as 2001:db8::/64"
);
