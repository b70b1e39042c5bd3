//! Passwords of BGP sessions, as they are read from Secrets: all of a config at once, and not again with every change of the config.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use api::meta::SecretReference;
use futures::future::join_all;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, ResourceExt as _, api::DynamicObject};
use tokio::time;

use crate::{config::ResolvedSecret, report::chain};

/// How long one Secret may take. What does not come in time comes later; the rest of the config does not wait for it.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a password counts that was read, while the config's metadata says nothing of a change.
const AGE: Duration = Duration::from_secs(5);
/// The same for a Secret that could not be read.
const FAILED_AGE: Duration = Duration::from_secs(4);

/// A password, or why it cannot be read.
type Answer = Result<String, String>;

/// The passwords that were read last.
#[derive(Default)]
pub(super) struct Passwords {
    /// Annotations of the config: the operator notes there that a Secret has changed.
    notes: BTreeMap<String, String>,
    known: BTreeMap<SecretReference, (Instant, Answer)>,
}

impl Passwords {
    /// The passwords of the Secrets that a config refers to, and why others cannot be read.
    pub(super) async fn read(
        &mut self,
        client: &Client,
        object: &DynamicObject,
        wanted: BTreeSet<SecretReference>,
        namespace: &str,
    ) -> (Vec<ResolvedSecret>, BTreeMap<SecretReference, String>) {
        if self.notes != *object.annotations() {
            self.notes.clone_from(object.annotations());
            self.known.clear();
        }
        self.known.retain(|secret, (at, answer)| {
            let age = if answer.is_ok() { AGE } else { FAILED_AGE };
            wanted.contains(secret) && at.elapsed() < age
        });
        let asked = wanted.iter().filter(|it| !self.known.contains_key(it));
        let asked: Vec<SecretReference> = asked.cloned().collect();
        let answers = asked
            .iter()
            .map(|secret| password(client, secret, namespace));
        let answers = join_all(answers).await;
        for (secret, answer) in asked.into_iter().zip(answers) {
            self.known.insert(secret, (Instant::now(), answer));
        }
        let (mut secrets, mut unread) = (Vec::new(), BTreeMap::new());
        for (reference, (_, answer)) in &self.known {
            let reference = reference.clone();
            match answer.clone() {
                Ok(password) => secrets.push(ResolvedSecret {
                    reference,
                    password,
                }),
                Err(why) => {
                    unread.insert(reference, why);
                }
            }
        }
        (secrets, unread)
    }
}

/// The password in a Secret. An error names the Secret and nothing of its content.
async fn password(client: &Client, reference: &SecretReference, own: &str) -> Answer {
    let SecretReference { name, namespace } = reference;
    let namespace = namespace.as_deref().unwrap_or(own);
    let name = name.as_deref().unwrap_or_default();
    let unread = |why: &str| Err(format!("cannot read Secret {namespace}/{name}: {why}"));
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let secret = match time::timeout(PATIENCE, api.get(name)).await {
        Ok(Ok(secret)) => secret,
        Ok(Err(error)) => return unread(&chain(&error)),
        Err(_elapsed) => return unread("no answer"),
    };
    let data = secret.data.unwrap_or_default();
    let password = data
        .get("password")
        .and_then(|bytes| std::str::from_utf8(&bytes.0).ok());
    password
        .map(|text| text.trim_end_matches('\n').to_owned())
        .ok_or_else(|| format!("Secret {namespace}/{name} has no text under the key password"))
}
