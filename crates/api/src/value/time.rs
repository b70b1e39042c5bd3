//! Durations in the format of Kubernetes.

use std::{fmt, str::FromStr};

use schemars::json_schema;

use super::{InvalidValue, string_value};

/// A span of whole seconds, written like `90s`, `1m30s` or `2h`.
///
/// BGP timers count in seconds; fractions are rejected, because rounding would silently change the timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seconds(u32);

impl Seconds {
    /// A span of this many seconds.
    pub const fn new(seconds: u32) -> Self {
        Self(seconds)
    }

    /// How many seconds.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl FromStr for Seconds {
    type Err = InvalidValue;
    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        parse(text)
            .map(Self)
            .ok_or_else(|| InvalidValue::new(text, "a span of whole seconds, such as 90s or 1m30s"))
    }
}

/// Units must come in falling order and once each, which is how every Kubernetes client writes them.
fn parse(text: &str) -> Option<u32> {
    if text == "0" {
        return Some(0);
    }
    let mut rest = text;
    let mut total: u32 = 0;
    let mut last_unit = u32::MAX;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, tail) = rest.split_at_checked(digits)?;
        let unit = match tail.chars().next()? {
            'h' => 3600,
            'm' if !tail.starts_with("ms") => 60,
            's' => 1,
            _ => return None,
        };
        if unit >= last_unit {
            return None;
        }
        last_unit = unit;
        total = total.checked_add(number.parse::<u32>().ok()?.checked_mul(unit)?)?;
        rest = tail.get(1..)?;
    }
    (!text.is_empty()).then_some(total)
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hours, minutes, seconds) = (self.0 / 3600, self.0 / 60 % 60, self.0 % 60);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        if seconds > 0 || self.0 == 0 {
            write!(f, "{seconds}s")?;
        }
        Ok(())
    }
}

string_value!(
    Seconds,
    json_schema!({"type": "string", "maxLength": 24, "pattern": r"^(0|([0-9]+h)?([0-9]+m)?([0-9]+s)?)$", "minLength": 1})
);
