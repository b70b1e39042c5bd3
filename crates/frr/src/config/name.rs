//! Names of objects inside FRR.

use std::{fmt, str::FromStr, sync::Arc};

/// Name of a list, route map, peer group or profile: 1–128 letters, digits or `_ . : / -`.
///
/// Wider than a device name, because names are made of VRFs, addresses and prefixes; narrow enough to be one word.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(Arc<str>);

/// Why a text cannot be a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a name for FRR (1–128 letters, digits or '_', '.', ':', '/', '-')")]
pub struct InvalidName(String);

impl Name {
    /// How many bytes FRR's data model takes.
    pub const MAX_LEN: usize = 128;

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A name of parts that are words already; a part that would not fit is cut.
    pub(crate) fn of(parts: fmt::Arguments<'_>) -> Self {
        let text = parts.to_string();
        if text.len() <= Self::MAX_LEN && text.chars().all(allowed) {
            return Self(text.into());
        }
        let words = text.chars().map(|c| if allowed(c) { c } else { '_' });
        let text: String = words.take(Self::MAX_LEN).collect();
        Self(text.into())
    }
}

fn allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '/' | '-')
}

impl FromStr for Name {
    type Err = InvalidName;
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        if (1..=Self::MAX_LEN).contains(&text.len()) && text.chars().all(allowed) {
            Ok(Self(text.into()))
        } else {
            Err(InvalidName(text.to_owned()))
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Description of a session: 1–80 printable ASCII characters, words with one space between them, as FRR gives them back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description(Box<str>);

/// Why a text cannot be a description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a description for FRR (1–80 printable ASCII characters)")]
pub struct InvalidDescription(String);

impl Description {
    /// How many bytes every supported version of FRR keeps.
    pub const MAX_LEN: usize = 80;

    /// A description of parts that are words already; what does not fit is cut.
    pub(crate) fn of(parts: fmt::Arguments<'_>) -> Self {
        let text: String = parts
            .to_string()
            .chars()
            .map(|c| if c.is_ascii_graphic() { c } else { ' ' })
            .take(Self::MAX_LEN)
            .collect();
        let words: Vec<&str> = text.split_whitespace().collect();
        Self(words.join(" ").into())
    }
}

impl FromStr for Description {
    type Err = InvalidDescription;
    fn from_str(text: &str) -> Result<Self, InvalidDescription> {
        let made = Self::of(format_args!("{text}"));
        if *made.0 == *text && !text.is_empty() {
            Ok(made)
        } else {
            Err(InvalidDescription(text.to_owned()))
        }
    }
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
