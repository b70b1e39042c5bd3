//! What an agent runs: a node's config with the passwords it needs.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use api::{
    meta::SecretReference,
    tcaas::{NodeNetworkConfigSpec, node_network_config::CONTRACT_VERSION},
};
use frr::{Password, Secrets};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Time since the agent started.
pub type Time = Duration;

/// A node's config with its resolved passwords. `Debug` shows no password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// `metadata.uid` of the NodeNetworkConfig; empty for a file.
    #[serde(default)]
    pub uid: String,
    /// `metadata.generation` of the NodeNetworkConfig; 0 for a file.
    #[serde(default)]
    pub generation: i64,
    /// The config itself.
    pub spec: NodeNetworkConfigSpec,
    /// Passwords of the sessions, as they were read from their Secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<ResolvedSecret>,
}

/// A password together with the Secret it was read from.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ResolvedSecret {
    /// The Secret.
    pub reference: SecretReference,
    /// The password.
    pub password: String,
}

impl fmt::Debug for ResolvedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResolvedSecret")
            .field("reference", &self.reference)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("uid", &self.uid)
            .field("generation", &self.generation)
            .field("revision", &self.spec.revision)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// The config of a node on which Selvedge has nothing.
    pub fn empty() -> Self {
        Self {
            uid: String::new(),
            generation: 0,
            spec: NodeNetworkConfigSpec {
                contract_version: CONTRACT_VERSION,
                ..NodeNetworkConfigSpec::default()
            },
            secrets: Vec::new(),
        }
    }

    /// SHA-256 of the content: of everything but the revision's name, the uid and the generation.
    ///
    /// A config that failed is recognised by it, also under a new generation.
    pub fn fingerprint(&self) -> String {
        let content = NodeNetworkConfigSpec {
            revision: String::new(),
            ..self.spec.clone()
        };
        let secrets: BTreeMap<_, _> = self
            .secrets
            .iter()
            .map(|secret| (&secret.reference, &secret.password))
            .collect();
        let secrets: Vec<_> = secrets.into_iter().collect();
        // Maps of the contract have text for keys, so this cannot fail.
        let bytes = serde_json::to_vec(&(content, secrets)).unwrap_or_default();
        hex(&Sha256::digest(bytes))
    }

    /// Whether the other one differs in its generation at most.
    pub(crate) fn is_but_for_generation(&self, other: &Self) -> bool {
        let Self {
            uid,
            generation: _,
            spec,
            secrets,
        } = self;
        *uid == other.uid && *spec == other.spec && *secrets == other.secrets
    }

    /// How long FRR may not answer while this config is applied. It is a part of the time in which a change is confirmed or taken back,
    /// so that a return still fits into it.
    pub fn silence(&self) -> Duration {
        let deadline = Duration::from_secs(self.spec.health.confirm_deadline.get().into());
        (deadline / 4).clamp(Duration::from_secs(2), Duration::from_secs(5))
    }

    /// The uplinks.
    pub fn nics(&self) -> impl Iterator<Item = &str> {
        let underlay = self.spec.underlay.iter();
        underlay.flat_map(|underlay| underlay.nics.iter().map(AsRef::as_ref))
    }

    /// The Secrets that the config refers to.
    pub fn references(&self) -> BTreeSet<SecretReference> {
        self.spec.password_secrets().cloned().collect()
    }

    /// The Secrets whose password is not known.
    pub fn unresolved(&self) -> BTreeSet<SecretReference> {
        let mut references = self.references();
        for secret in &self.secrets {
            references.remove(&secret.reference);
        }
        references
    }

    /// The config as it can be applied: without the sessions whose password is not known, and which those are.
    ///
    /// A session is never configured without the password it should have; all others are configured.
    pub fn without_held_back(&self) -> (Cow<'_, NodeNetworkConfigSpec>, Vec<String>) {
        let known = self.secrets();
        if self.references().iter().all(|it| known.contains_key(it)) {
            return (Cow::Borrowed(&self.spec), Vec::new());
        }
        let mut held_back = Vec::new();
        let mut keep = |secret: Option<&SecretReference>, session: &dyn Fn() -> String| {
            let Some(secret) = secret.filter(|secret| !known.contains_key(secret)) else {
                return true;
            };
            held_back.push(format!(
                "the BGP session with {} is not configured: Secret {secret} has no usable password",
                session()
            ));
            false
        };
        let mut spec = self.spec.clone();
        if let Some(underlay) = &mut spec.underlay {
            underlay.neighbors.retain(|neighbor| {
                let session = || neighbor.peer().unwrap_or_default();
                keep(neighbor.password_secret.as_ref(), &session)
            });
        }
        for vrf in spec.vrfs_mut() {
            let device = vrf.devices.vrf.clone();
            Arc::make_mut(vrf).bgp_peers.retain(|peer| {
                let session = || format!("{} in VRF {device}", peer.peer().unwrap_or_default());
                keep(peer.password_secret.as_ref(), &session)
            });
        }
        (Cow::Owned(spec), held_back)
    }

    /// The passwords in the form that `frr` takes. A text that cannot be a password is left out, and refused there.
    pub fn secrets(&self) -> Secrets {
        let parsed = self.secrets.iter().filter_map(|secret| {
            let password = Password::new(&secret.password).ok()?;
            Some((secret.reference.clone(), password))
        });
        parsed.collect()
    }
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        write!(text, "{byte:02x}").unwrap_or_default();
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_ignores_the_revision_and_sees_passwords() {
        let mut config = Config::empty();
        let before = config.fingerprint();
        config.spec.revision = "r2".to_owned();
        config.generation = 7;
        assert_eq!(config.fingerprint(), before);
        config.secrets.push(ResolvedSecret {
            reference: SecretReference {
                name: Some("leaf".to_owned()),
                namespace: None,
            },
            password: "hunter2".to_owned(),
        });
        assert_ne!(config.fingerprint(), before);
        assert!(!format!("{config:?} {:?}", config.secrets).contains("hunter2"));
    }
}
