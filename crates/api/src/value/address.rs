//! Addresses and prefixes.

use std::{fmt, net::IpAddr, str::FromStr};

use ipnet::IpNet;
use schemars::json_schema;

use super::{InvalidValue, string_value};

/// Longest text of an IPv6 address with its prefix length.
const MAX_CIDR_TEXT: u32 = 43;

/// Reads what the API server's `isCIDR` takes, and nothing else: no leading zeros, no IPv4 address in IPv6 clothes.
pub(super) fn cidr(text: &str) -> Option<IpNet> {
    let (address, length) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let is_disguised = matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some());
    let is_number = length.bytes().all(|byte| byte.is_ascii_digit())
        && (length == "0" || !length.starts_with('0'));
    if is_disguised || !is_number {
        return None;
    }
    IpNet::new(address, length.parse().ok()?).ok()
}

/// A network: address and length, with no host bits set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix(IpNet);

impl Prefix {
    /// The network that `net` lies in.
    pub fn of(net: IpNet) -> Self {
        Self(net.trunc())
    }

    /// The network as a plain value.
    pub fn net(self) -> IpNet {
        self.0
    }

    /// Whether this is an IPv4 network.
    pub fn is_ipv4(self) -> bool {
        matches!(self.0, IpNet::V4(_))
    }

    /// A network of exactly one address.
    pub fn host(address: IpAddr) -> Self {
        Self(IpNet::from(address))
    }
}

impl FromStr for Prefix {
    type Err = InvalidValue;
    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let net = cidr(text).ok_or_else(|| {
            InvalidValue::new(text, "a network in CIDR notation, such as 192.0.2.0/24")
        })?;
        if net != net.trunc() {
            return Err(InvalidValue::new(
                text,
                "a network: bits behind the prefix length are set; write the network address, or a longer prefix",
            ));
        }
        Ok(Self(net))
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

string_value!(
    compact Prefix,
    json_schema!({
        "type": "string",
        "maxLength": MAX_CIDR_TEXT,
        "pattern": r"^[0-9a-fA-F:.]+/[0-9]{1,3}$",
        "x-kubernetes-validations": [{
            "rule": "isCIDR(self) && cidr(self) == cidr(self).masked()",
            "message": "must be a network in CIDR notation without host bits, such as 192.0.2.0/24 or 2001:db8::/32",
        }],
    })
);

/// An interface address: an address together with the length of its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostCidr(IpNet);

impl HostCidr {
    /// An address in a network.
    pub fn new(net: IpNet) -> Self {
        Self(net)
    }

    /// Address and length as a plain value.
    pub fn net(self) -> IpNet {
        self.0
    }

    /// The address alone.
    pub fn addr(self) -> IpAddr {
        self.0.addr()
    }

    /// The network the address lies in.
    pub fn prefix(self) -> Prefix {
        Prefix::of(self.0)
    }

    /// Whether this is an IPv4 address.
    pub fn is_ipv4(self) -> bool {
        matches!(self.0, IpNet::V4(_))
    }
}

impl FromStr for HostCidr {
    type Err = InvalidValue;
    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        cidr(text).map(Self).ok_or_else(|| {
            InvalidValue::new(
                text,
                "an address with its prefix length, such as 192.0.2.1/24 or 2001:db8::1/64",
            )
        })
    }
}

impl fmt::Display for HostCidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

string_value!(
    compact HostCidr,
    json_schema!({
        "type": "string",
        "maxLength": MAX_CIDR_TEXT,
        "pattern": r"^[0-9a-fA-F:.]+/[0-9]{1,3}$",
        "x-kubernetes-validations": [{
            "rule": "isCIDR(self)",
            "message": "must be an address with its prefix length, such as 192.0.2.1/24 or 2001:db8::1/64",
        }],
    })
);

/// A unicast Ethernet address, written as six hexadecimal pairs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress([u8; 6]);

impl MacAddress {
    /// The address from its bytes.
    pub const fn new(bytes: [u8; 6]) -> Self {
        Self(bytes)
    }

    /// The six bytes.
    pub const fn bytes(self) -> [u8; 6] {
        self.0
    }
}

impl FromStr for MacAddress {
    type Err = InvalidValue;
    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let invalid = || InvalidValue::new(text, "a MAC address, such as 02:00:5e:00:01:01");
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts
                .next()
                .filter(|part| part.len() == 2)
                .ok_or_else(invalid)?;
            *byte = u8::from_str_radix(part, 16).ok().ok_or_else(invalid)?;
        }
        if parts.next().is_some() || text.contains('+') {
            return Err(invalid());
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { ":" };
            write!(f, "{separator}{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

string_value!(
    compact MacAddress,
    json_schema!({"type": "string", "maxLength": 17, "pattern": r"^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$"})
);
