//! Passwords that users wrote into Underlays, in a Secret for each node and session, which only the agent of that node reads.
//!
//! No password is in a config of a node, in a revision or in a log. A config names a Secret whose name says nothing about the password;
//! a note in the config's metadata says that a Secret has changed, so that the agent reads it again.

mod plan;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, future, sync::Arc, time::Duration};

use api::{meta::SecretReference, selvedge::AGENT_LEASES, value::Password};
use compiler::{Compilation, Snapshot, names};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, api::ListParams};
use tokio::{sync::watch as latest, time::sleep};

use self::plan::SELECTOR;
use crate::{
    errors::chain,
    request::{Failure, Sender},
    worker::Worker,
};

/// How long to wait after a failure.
const RETRY: Duration = Duration::from_secs(5);

/// How often Secrets are compared although nothing is known to have changed.
const RESYNC: Duration = Duration::from_mins(5);

/// The Secrets that there must be, by name.
pub(crate) type Passwords = BTreeMap<String, Wanted>;

/// A Secret that there must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The node whose agent reads it.
    pub(crate) node: String,
    /// What is in it. Absent where only a config that was published still refers to it: then it stays what it is.
    pub(crate) password: Option<Password>,
    /// Whether the password is the one of the config that the node gets. Otherwise an existing Secret stays unchanged.
    pub(crate) is_in_effect: bool,
}

/// The Secrets that there must be: those of the config that a node has, and of the one that it gets.
pub(crate) fn wanted(snapshot: &Snapshot, compilation: &Compilation) -> Passwords {
    let mut wanted = Passwords::new();
    for (key, config) in &snapshot.node_network_configs {
        for reference in config.spec.password_secrets() {
            if let Some(name) = own(reference, &key.name) {
                let kept = Wanted {
                    node: key.name.to_string(),
                    password: None,
                    is_in_effect: false,
                };
                wanted.insert(name.to_owned(), kept);
            }
        }
    }
    for (node, config) in &compilation.nodes {
        for moved in config.moved_passwords(snapshot) {
            let Some(name) = moved.secret.name else {
                continue;
            };
            let made = Wanted {
                node: node.clone(),
                password: moved.password,
                is_in_effect: moved.is_in_effect,
            };
            wanted.insert(name, made);
        }
    }
    wanted
}

/// The name of a Secret that is one of ours for a node.
fn own<'a>(reference: &'a SecretReference, node: &str) -> Option<&'a str> {
    let name = reference.name.as_deref()?;
    let is_own = reference.namespace.as_deref() == Some(AGENT_LEASES)
        && name.starts_with(&names::moved_passwords_of(node));
    is_own.then_some(name)
}

/// Keeps the Secrets what they must be while this operator leads, until the process ends.
pub(crate) async fn run(worker: Worker, mut passwords: latest::Receiver<Option<Arc<Passwords>>>) {
    let Worker {
        client,
        sender,
        mut leadership,
        restored: _,
    } = worker;
    let secrets: Api<Secret> = Api::namespaced(client, AGENT_LEASES);
    let mut next = None;
    loop {
        let is_due = async {
            match next {
                Some(delay) => sleep(delay).await,
                None => future::pending().await,
            }
        };
        tokio::select! {
            changed = passwords.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            _is_leading = leadership.changed() => {}
            () = is_due => {}
        }
        next = None;
        let wanted = passwords.borrow_and_update().clone();
        let Some(wanted) = wanted.filter(|_| sender.is_leading()) else {
            continue;
        };
        next = match write(&secrets, &sender, &wanted).await {
            Ok(()) => Some(RESYNC),
            Err(failure) if failure.ends_pass() => None,
            Err(failure) => {
                let retry_after = failure.retry_after().unwrap_or(RETRY);
                tracing::warn!(error = %failure, "failed to write a Secret with a node's password");
                Some(retry_after)
            }
        };
    }
}

/// Makes the Secrets what they must be. All are tried; one that cannot be written holds up no other.
async fn write(secrets: &Api<Secret>, sender: &Sender, wanted: &Passwords) -> Result<(), Failure> {
    let ours = ListParams::default().labels(SELECTOR);
    let listed = secrets.list(&ours).await;
    let listed = listed.map_err(|error| Failure::NoAnswer(chain(&error)))?;
    let stored = listed.items.into_iter();
    let stored = stored.filter_map(|one| Some((one.metadata.name.clone()?, one)));
    let stored: BTreeMap<String, Secret> = stored.collect();
    let mut failed = Ok(());
    for (name, write) in plan::writes(&stored, wanted) {
        match sender.send_platform(&write).await {
            Ok(_) => {}
            Err(failure) if failure.ends_pass() => return Err(failure),
            Err(failure) => {
                tracing::warn!(secret = name, error = %failure, "cannot write a Secret");
                failed = Err(failure);
            }
        }
    }
    // A value that is recorded already is stored unchanged, without a notification.
    let listed = secrets.list(&ours).await;
    let listed = listed.map_err(|error| Failure::NoAnswer(chain(&error)))?;
    for note in plan::notes(&listed.items, wanted) {
        match sender.send_platform(&note).await {
            Ok(_) => {}
            Err(failure) if failure.ends_pass() => return Err(failure),
            // The config is not there yet, or has changed just now: its agent reads the Secret with it.
            Err(failure) => {
                tracing::debug!(error = %failure, "failed to record a changed password");
            }
        }
    }
    failed
}
