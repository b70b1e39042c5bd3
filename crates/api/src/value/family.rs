//! Networks of one address family.

use std::{fmt, str::FromStr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use schemars::json_schema;

use super::{InvalidValue, Prefix, address::cidr, string_value};

macro_rules! family_prefix {
    ($(#[$doc:meta])* $name:ident($net:ty), $variant:ident, $max:literal, $family:literal, $expected:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($net);

        impl $name {
            /// The network that `net` lies in.
            pub fn of(net: $net) -> Self {
                Self(net.trunc())
            }

            /// The network as a plain value.
            pub fn net(self) -> $net {
                self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidValue;
            fn from_str(text: &str) -> Result<Self, InvalidValue> {
                match cidr(text) {
                    Some(IpNet::$variant(net)) if net == net.trunc() => Ok(Self(net)),
                    _ => Err(InvalidValue::new(text, $expected)),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<$name> for Prefix {
            fn from(prefix: $name) -> Self {
                Self::of(prefix.0.into())
            }
        }

        string_value!(
            $name,
            json_schema!({
                "type": "string",
                "maxLength": $max,
                "pattern": r"^[0-9a-fA-F:.]+/[0-9]{1,3}$",
                "x-kubernetes-validations": [{
                    "rule": concat!(
                        "isCIDR(self) && cidr(self).ip().family() == ", $family, " && cidr(self) == cidr(self).masked()"
                    ),
                    "message": concat!("must be ", $expected),
                }],
            })
        );
    };
}

family_prefix!(
    /// An IPv4 network with no host bits set.
    Ipv4Prefix(Ipv4Net), V4, 18, "4", "an IPv4 network in CIDR notation without host bits, such as 192.0.2.0/24"
);
family_prefix!(
    /// An IPv6 network with no host bits set.
    Ipv6Prefix(Ipv6Net), V6, 43, "6", "an IPv6 network in CIDR notation without host bits, such as 2001:db8::/64"
);
