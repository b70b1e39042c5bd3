//! Communities as this group writes them.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::value::{Community, InvalidValue};

/// A BGP community in this group's spelling: standard `a:b`, or `large:a:b:c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrrCommunity(Community);

impl FrrCommunity {
    /// The community itself.
    pub fn community(self) -> Community {
        self.0
    }
}

impl FromStr for FrrCommunity {
    type Err = InvalidValue;
    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let parsed = match text.strip_prefix("large:") {
            Some(large) => large
                .parse()
                .ok()
                .filter(|community| matches!(community, Community::Large(..))),
            None => text
                .parse()
                .ok()
                .filter(|community| matches!(community, Community::Standard(..))),
        };
        let expected =
            "a BGP community (a:b up to 65535 each, or large:a:b:c up to 4294967295 each)";
        parsed
            .map(Self)
            .ok_or_else(|| InvalidValue::new(text, expected))
    }
}

impl fmt::Display for FrrCommunity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Community::Standard(..) => self.0.fmt(f),
            Community::Large(..) => write!(f, "large:{}", self.0),
        }
    }
}

impl Serialize for FrrCommunity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FrrCommunity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(Error::custom)
    }
}
