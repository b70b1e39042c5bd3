//! An account for the agent of each node, which may read and write what is of its own node and nothing else.
//!
//! Roles of Kubernetes know no "own node": every node has a ServiceAccount, with roles that name its objects. The account of the
//! DaemonSet can do nothing but ask for a token of the account of the node that its own token is bound to.

mod plan;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use api::{meta::SecretReference, selvedge::AGENT_LEASES};
use compiler::{Compilation, Snapshot, platform::PlatformKind};
use futures::{StreamExt as _, stream};
use kube::runtime::watcher;
use tokio::sync::watch as latest;

use self::plan::{KINDS, SELECTOR};
use crate::{
    platform::Change,
    request::{CONCURRENCY, Sender},
    worker::{Keeper, Objects, Worker},
};

/// Namespace and name of a Secret.
type Secret = (String, String);

/// The nodes, each with the Secrets that its agent reads.
pub(crate) type Access = BTreeMap<String, BTreeSet<Secret>>;

/// The nodes that have an agent, and the Secrets that it reads: those of the config that the node has, and of the one that it gets.
///
/// A node that is gone keeps its account as long as its config is kept: its agent reports that it was cleaned up.
pub(crate) fn access(snapshot: &Snapshot, compilation: &Compilation) -> Access {
    let mut access = Access::new();
    for key in snapshot.nodes.keys() {
        access.entry(key.name.to_string()).or_default();
    }
    for (key, config) in &snapshot.node_network_configs {
        let secrets = access.entry(key.name.to_string()).or_default();
        secrets.extend(config.spec.password_secrets().filter_map(secret));
    }
    for (node, config) in &compilation.nodes {
        let Some(secrets) = access.get_mut(node) else {
            continue;
        };
        secrets.extend(config.password_secrets().filter_map(|one| secret(&one)));
    }
    access
}

fn secret(reference: &SecretReference) -> Option<Secret> {
    let namespace = reference.namespace.as_deref().unwrap_or(AGENT_LEASES);
    let name = reference.name.as_deref()?;
    Some((namespace.to_owned(), name.to_owned()))
}

/// Keeps the accounts what they must be while this operator leads, until the process ends.
pub(crate) async fn run(worker: Worker, access: latest::Receiver<Option<Arc<Access>>>) {
    let config = watcher::Config::default().labels(SELECTOR);
    let accounts = Accounts::new(access.clone());
    worker.run(KINDS, config, access, accounts).await;
}

/// What is known, and what is to be looked at.
#[derive(Debug)]
struct Accounts {
    objects: Objects,
    /// What agents may read, as the last pass has it; absent until all nodes are known.
    latest: latest::Receiver<Option<Arc<Access>>>,
    /// The same, as it was looked at last.
    access: Option<Arc<Access>>,
    /// Namespaces in which roles were seen.
    namespaces: BTreeSet<String>,
    /// Nodes whose objects may not be what they must be.
    unsettled: BTreeSet<String>,
}

impl Keeper for Accounts {
    fn apply(&mut self, kind: PlatformKind, change: Change) {
        match &change {
            Change::Applied(object) | Change::Deleted(object) => {
                let name = object.metadata.name.as_deref().unwrap_or_default();
                self.unsettled.extend(plan::node(name).map(str::to_owned));
                self.namespaces.extend(object.metadata.namespace.clone());
            }
            Change::ListCompleted => {
                let access = self.access.iter().flat_map(|access| access.keys());
                self.unsettled.extend(access.cloned());
                // What was deleted while nothing was watched is in the new list no longer, and what is in it was reported.
            }
            Change::ListStarted(_) | Change::Failed(_) | Change::NotServed => {}
        }
        self.objects.store.apply(kind, change);
    }

    async fn write(&mut self, sender: &Sender) -> Option<Duration> {
        let latest = self.latest.borrow_and_update().clone()?;
        self.set(&latest);
        let now = Instant::now();
        let mut ready = Vec::new();
        for node in &self.unsettled {
            let secrets = latest.get(node);
            // Nothing is done while a kind is not known as it is now.
            let writes = plan::writes(&self.objects.store, &self.namespaces, node, secrets)?;
            ready.push((node.clone(), writes));
        }
        let objects = &self.objects;
        let mut sent = stream::iter(ready.into_iter().map(|(node, writes)| async move {
            // One after another: a binding is refused as long as its role is not there.
            let mut answers = Vec::new();
            for write in writes {
                let answer = if objects.is_waiting(&write, now) {
                    None
                } else {
                    Some(sender.send_platform(&write).await)
                };
                answers.push((write, answer));
            }
            (node, answers)
        }))
        .buffer_unordered(CONCURRENCY);
        let mut answered = Vec::new();
        while let Some(one) = sent.next().await {
            answered.push(one);
        }
        drop(sent);
        for (node, answers) in answered {
            let mut is_settled = true;
            for (write, answer) in answers {
                let objects = &mut self.objects;
                is_settled &= answer.is_some_and(|answer| objects.answered(&write, answer, now));
            }
            if is_settled {
                self.unsettled.remove(&node);
            }
        }
        let due = self.objects.backoffs.due().map(|(_, _, at)| at);
        due.min().map(|at| at.saturating_duration_since(now))
    }
}

impl Accounts {
    fn new(latest: latest::Receiver<Option<Arc<Access>>>) -> Self {
        Self {
            objects: Objects::default(),
            latest,
            access: None,
            namespaces: BTreeSet::new(),
            unsettled: BTreeSet::new(),
        }
    }

    /// Takes in what agents may read.
    fn set(&mut self, access: &Arc<Access>) {
        let none = Arc::default();
        let before = self.access.as_ref().unwrap_or(&none);
        for node in before.keys().chain(access.keys()) {
            if before.get(node) != access.get(node) {
                self.unsettled.insert(node.clone());
            }
        }
        self.access = Some(Arc::clone(access));
    }
}
