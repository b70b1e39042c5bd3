//! Passwords of BGP sessions: values that reach FRR and nothing else.

use std::{collections::BTreeMap, fmt};

use api::{meta::SecretReference, tcaas::NodeNetworkConfigSpec};

/// The resolved passwords of a node, by Secret. The agent reads the Secrets; this crate never does.
pub type Secrets = BTreeMap<SecretReference, Password>;

/// A TCP-MD5 password: 1–80 printable ASCII characters without spaces.
///
/// 80 is what the kernel takes. FRR reads a password up to the end of its line, so a space or a line break inside it
/// would be another command or be lost; it is refused here instead.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Password(Box<str>);

/// Why a text cannot be a password. It does not repeat the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a BGP password has 1–80 printable ASCII characters and no spaces")]
pub struct InvalidPassword;

impl Password {
    /// The longest key that the kernel takes for TCP-MD5.
    pub const MAX_LEN: usize = 80;

    /// A password, if the text can be one.
    pub fn new(text: &str) -> Result<Self, InvalidPassword> {
        let fits = (1..=Self::MAX_LEN).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then(|| Self(text.into())).ok_or(InvalidPassword)
    }

    /// The password itself, for a line that goes to FRR.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

/// Placeholders for the passwords of a config, for output that users may see.
pub fn hidden(config: &NodeNetworkConfigSpec) -> Secrets {
    let secrets = config.password_secrets().cloned();
    let word = || Password("(hidden)".into());
    secrets.map(|secret| (secret, word())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_that_could_be_more_than_a_word_is_refused() {
        for text in [
            "",
            "two words",
            "line\nbreak",
            "tab\t",
            "ümlaut",
            &"x".repeat(81),
        ] {
            assert_eq!(Password::new(text), Err(InvalidPassword), "{text:?}");
        }
        assert!(Password::new("se|cret?!#").is_ok());
    }

    #[test]
    fn a_password_stands_in_no_debug_output() {
        let password = Password::new("hunter2").unwrap();
        assert!(!format!("{password:?}").contains("hunter2"));
    }
}
