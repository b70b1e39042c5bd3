//! Route targets, route distinguishers and communities.

use std::{fmt, net::Ipv4Addr, str::FromStr};

use schemars::{Schema, json_schema};

use super::{InvalidValue, string_value};

/// The administrator:number pair that route targets and route distinguishers share, in the three forms of RFC 4364.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Pair {
    TwoByteAs(u16, u32),
    Ipv4(Ipv4Addr, u16),
    FourByteAs(u32, u16),
}

impl Pair {
    fn parse(text: &str) -> Option<Self> {
        let (admin, number) = text.split_once(':')?;
        if let Ok(address) = admin.parse() {
            return Some(Self::Ipv4(address, digits(number)?));
        }
        match u16::try_from(digits::<u32>(admin)?) {
            Ok(asn) => Some(Self::TwoByteAs(asn, digits(number)?)),
            Err(_) => Some(Self::FourByteAs(digits(admin)?, digits(number)?)),
        }
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TwoByteAs(asn, number) => write!(f, "{asn}:{number}"),
            Self::Ipv4(address, number) => write!(f, "{address}:{number}"),
            Self::FourByteAs(asn, number) => write!(f, "{asn}:{number}"),
        }
    }
}

/// A decimal number without sign; the standard parser would take a leading `+`.
fn digits<T: FromStr>(text: &str) -> Option<T> {
    text.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

/// `n` digits at most, as the number's size allows; the exact limit is in the parser and in the CEL rule.
const PAIR: &str = r"([0-9]{1,10}|([0-9]{1,3}\.){3}[0-9]{1,3}):[0-9]{1,10}";

/// What the pattern cannot say: how large each half may be in each of the three forms.
fn pair_schema(pattern: &str, wildcard: bool) -> Schema {
    let sizes = "self.split(':')[0].contains('.') \
        ? isIP(self.split(':')[0]) && int(self.split(':')[1]) <= 65535 \
        : int(self.split(':')[0]) <= 65535 \
        ? int(self.split(':')[1]) <= 4294967295 \
        : int(self.split(':')[0]) <= 4294967295 && int(self.split(':')[1]) <= 65535";
    let rule = if wildcard {
        format!("self.startsWith('*:') ? int(self.split(':')[1]) <= 4294967295 : ({sizes})")
    } else {
        sizes.to_owned()
    };
    json_schema!({
        "type": "string",
        "maxLength": 26,
        "pattern": pattern,
        "x-kubernetes-validations": [{
            "rule": rule,
            "message": "must be ASN:number or IPv4:number, where one half has 16 and the other at most 32 bits",
        }],
    })
}

macro_rules! pair_value {
    ($(#[$doc:meta])* $name:ident, $expected:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Pair);

        impl FromStr for $name {
            type Err = InvalidValue;
            fn from_str(text: &str) -> Result<Self, InvalidValue> {
                Pair::parse(text).map(Self).ok_or_else(|| InvalidValue::new(text, $expected))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        string_value!($name, pair_schema(&format!("^{PAIR}$"), false));
    };
}

pair_value!(
    /// A BGP route target: `ASN:number` with a two- or four-byte ASN, or `IPv4:number`.
    RouteTarget,
    "a route target (ASN:number or IPv4:number, such as 64500:10100)"
);
pair_value!(
    /// A BGP route distinguisher: `ASN:number` with a two- or four-byte ASN, or `IPv4:number`.
    RouteDistinguisher,
    "a route distinguisher (ASN:number or IPv4:number, such as 192.0.2.1:7)"
);

/// A route target to import; `*:number` takes the number of every administrator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ImportRouteTarget {
    /// One route target.
    Exactly(RouteTarget),
    /// This number with any administrator.
    AnyAdministrator(u32),
}

impl FromStr for ImportRouteTarget {
    type Err = InvalidValue;
    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let expected = "a route target to import (ASN:number, IPv4:number or *:number)";
        match text.strip_prefix("*:") {
            Some(number) => digits(number).map(Self::AnyAdministrator),
            None => Pair::parse(text).map(|pair| Self::Exactly(RouteTarget(pair))),
        }
        .ok_or_else(|| InvalidValue::new(text, expected))
    }
}

impl fmt::Display for ImportRouteTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(target) => target.fmt(f),
            Self::AnyAdministrator(number) => write!(f, "*:{number}"),
        }
    }
}

impl From<RouteTarget> for ImportRouteTarget {
    fn from(target: RouteTarget) -> Self {
        Self::Exactly(target)
    }
}

string_value!(
    ImportRouteTarget,
    pair_schema(&format!(r"^({PAIR}|\*:[0-9]{{1,10}})$"), true)
);

/// A BGP community: standard `a:b`, or large `a:b:c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Community {
    /// RFC 1997: two numbers of 16 bits.
    Standard(u16, u16),
    /// RFC 8092: three numbers of 32 bits.
    Large(u32, u32, u32),
}

impl FromStr for Community {
    type Err = InvalidValue;
    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let parts: Vec<&str> = text.split(':').collect();
        match parts.as_slice() {
            [a, b] => digits(a).zip(digits(b)).map(|(a, b)| Self::Standard(a, b)),
            [a, b, c] => digits(a)
                .zip(digits(b))
                .zip(digits(c))
                .map(|((a, b), c)| Self::Large(a, b, c)),
            _ => None,
        }
        .ok_or_else(|| {
            InvalidValue::new(
                text,
                "a BGP community (a:b up to 65535 each, or large a:b:c up to 4294967295 each)",
            )
        })
    }
}

impl fmt::Display for Community {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Standard(a, b) => write!(f, "{a}:{b}"),
            Self::Large(a, b, c) => write!(f, "{a}:{b}:{c}"),
        }
    }
}

string_value!(
    Community,
    json_schema!({
        "type": "string",
        "maxLength": 32,
        "pattern": r"^[0-9]{1,10}:[0-9]{1,10}(:[0-9]{1,10})?$",
        "x-kubernetes-validations": [{
            "rule": "self.split(':').all(n, int(n) <= (self.split(':').size() == 2 ? 65535 : 4294967295))",
            "message": "must be a standard community a:b (up to 65535 each) or a large one a:b:c (up to 4294967295 each)",
        }],
    })
);
