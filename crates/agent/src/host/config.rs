//! What the task of the host's router is given: its part of a node's config, with the passwords that it needs.

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use api::{meta::SecretReference, tcaas::node_network_config::HostRouter};
use frr::{Password, Secrets};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{
    config::{ResolvedSecret, hex},
    machine,
};

/// The host's router with its resolved passwords; without one where the node has none. `Debug` shows no password.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HostConfig {
    /// The router.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) router: Option<Arc<HostRouter>>,
    /// Passwords of the sessions, as they were read from their Secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) secrets: Vec<ResolvedSecret>,
}

impl fmt::Debug for HostConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let routers = self.router.as_ref().map(|router| router.routers.len());
        f.debug_struct("HostConfig")
            .field("routers", &routers)
            .finish_non_exhaustive()
    }
}

impl HostConfig {
    /// SHA-256 of the content, in hexadecimal digits.
    pub(crate) fn fingerprint(&self) -> String {
        let mut secrets: Vec<&ResolvedSecret> = self.secrets.iter().collect();
        secrets.sort();
        let secrets: Vec<_> = secrets
            .into_iter()
            .map(|secret| (&secret.reference, &secret.password))
            .collect();
        // Maps of the contract have text for keys, so this cannot fail.
        let bytes = serde_json::to_vec(&(&self.router, secrets)).unwrap_or_default();
        hex(&Sha256::digest(bytes))
    }

    /// The Secrets that sessions refer to.
    pub(crate) fn references(&self) -> BTreeSet<SecretReference> {
        let routers = self.router.iter().flat_map(|it| it.routers.values());
        let neighbors = routers.flat_map(|bgp| &bgp.neighbors);
        neighbors
            .filter_map(|neighbor| neighbor.password_secret.clone())
            .collect()
    }

    /// The passwords in the form that `frr` takes. A text that cannot be a password is left out, and its session held back.
    pub(crate) fn secrets(&self) -> Secrets {
        let parsed = self.secrets.iter().filter_map(|secret| {
            let password = Password::new(&secret.password).ok()?;
            Some((secret.reference.clone(), password))
        });
        parsed.collect()
    }

    /// The same with passwords of another config where they are not known: a Secret that cannot be read at the moment closes no session.
    pub(super) fn with_passwords_of(&self, other: &Self) -> Self {
        let mut missing = self.references();
        for secret in &self.secrets {
            missing.remove(&secret.reference);
        }
        let known = other.secrets.iter();
        let known = known.filter(|secret| missing.contains(&secret.reference));
        let mut config = self.clone();
        config.secrets.extend(known.cloned());
        config
    }
}

/// The host's router as the node's config has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assigned {
    /// The config.
    pub(crate) config: Arc<HostConfig>,
    /// Value of the retry annotation: a new value makes a config that was rolled back be tried again.
    pub(crate) retry: Option<String>,
    /// Why the node's config cannot be used at all, or why the node is held.
    pub(crate) refusal: Option<String>,
    /// Secrets that cannot be read, and why.
    pub(crate) unread: Vec<String>,
    /// How long a change may leave the node without the API server before it is rolled back; absent where that is not looked at.
    pub(crate) deadline: Option<Duration>,
}

/// Takes the host's router out of a node's config: the rest is tried and confirmed, the router is applied at once.
pub(crate) fn split(mut assigned: machine::Assigned) -> (machine::Assigned, Assigned) {
    let whole = Arc::make_mut(&mut assigned.config);
    let router = whole.spec.host_router.take();
    let health = &whole.spec.health;
    let deadline = Duration::from_secs(health.confirm_deadline.get().into());
    let deadline = health.api_server.then_some(deadline);
    let mut config = HostConfig {
        router,
        secrets: Vec::new(),
    };
    let (of_host, of_rest) = (config.references(), whole.references());
    let is_of = |references: &BTreeSet<SecretReference>, secret: &ResolvedSecret| {
        references.contains(&secret.reference)
    };
    config.secrets.clone_from(&whole.secrets);
    config.secrets.retain(|secret| is_of(&of_host, secret));
    whole.secrets.retain(|secret| is_of(&of_rest, secret));
    let mut unread = assigned.unread.clone();
    unread.retain(|secret, _| of_host.contains(secret));
    assigned.unread.retain(|secret, _| of_rest.contains(secret));
    let hold = assigned
        .hold
        .as_ref()
        .map(|why| format!("the node is held: {why}"));
    let host = Assigned {
        config: Arc::new(config),
        retry: assigned.retry.clone(),
        refusal: assigned.refusal.clone().or(hold),
        unread: unread.into_values().collect(),
        deadline,
    };
    (assigned, host)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::Config;

    fn secret(name: &str) -> ResolvedSecret {
        ResolvedSecret {
            reference: SecretReference {
                name: Some(name.to_owned()),
                namespace: Some("selvedge-system".to_owned()),
            },
            password: "hunter2".to_owned(),
        }
    }

    fn whole() -> Config {
        let mut config = Config::empty();
        let neighbor = |secret: &str| {
            json!({"address": "192.0.2.1", "remoteAs": {"asn": 65001}, "ipv4": true,
                   "passwordSecret": {"name": secret, "namespace": "selvedge-system"}})
        };
        let router =
            json!({"routers": {"default": {"asn": 65000, "neighbors": [neighbor("host")]}}});
        config.spec.host_router = Some(serde_json::from_value(router).unwrap());
        config.secrets = vec![secret("host"), secret("other")];
        config
    }

    #[test]
    fn a_change_of_the_hosts_router_alone_is_no_change_of_the_rest() {
        let before = machine::Assigned::new(Arc::new(whole()));
        let mut changed = whole();
        let router = Arc::make_mut(changed.spec.host_router.as_mut().unwrap());
        router.routers.values_mut().next().unwrap().networks =
            ["198.51.100.0/24".parse().unwrap()].into();
        let after = machine::Assigned::new(Arc::new(changed));
        let ((rest, host), (rest_after, host_after)) = (split(before), split(after));
        assert_eq!(rest, rest_after);
        assert_eq!(rest.config.spec.host_router, None);
        assert_ne!(host.config.fingerprint(), host_after.config.fingerprint());
        assert_eq!(host.config.secrets, vec![secret("host")]);
        assert_eq!(rest.config.secrets, vec![]);
        assert!(!format!("{host:?}").contains("hunter2"));
    }

    #[test]
    fn a_password_that_cannot_be_read_stays_the_one_that_is_known() {
        let (_, known) = split(machine::Assigned::new(Arc::new(whole())));
        let mut unread = whole();
        unread.secrets.clear();
        let mut unread = machine::Assigned::new(Arc::new(unread));
        let why = "cannot read Secret selvedge-system/host: no answer".to_owned();
        unread.unread = [(secret("host").reference, why)].into();
        let (rest, host) = split(unread);
        assert!(rest.unread.is_empty());
        assert_eq!(host.unread.len(), 1);
        let filled = host.config.with_passwords_of(&known.config);
        assert_eq!(filled.fingerprint(), known.config.fingerprint());
    }
}
