//! An account for the agent of each node, which may read and write what is of its own node and nothing else.
//!
//! Roles of Kubernetes know no "own node": every node has a ServiceAccount, with roles that name its objects. The account of the
//! DaemonSet can do nothing but ask for a token of the account of the node that its own token is bound to.

mod plan;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    future,
    sync::Arc,
    time::{Duration, Instant},
};

use api::{meta::SecretReference, selvedge::AGENT_LEASES};
use compiler::{
    Compilation, Snapshot,
    platform::{Identity, PlatformKind},
};
use futures::{StreamExt as _, stream};
use kube::{Client, runtime::watcher};
use tokio::{
    sync::{mpsc::unbounded_channel, watch as latest},
    task::JoinSet,
    time::sleep,
};

use self::plan::{KINDS, SELECTOR};
use crate::{
    backoff::Backoffs,
    election::Leadership,
    platform::{self, Change, Write, store::Store},
    publish::CONCURRENCY,
    request::{Failure, Sender},
};

/// Delay between a change and what is done about it.
const DEBOUNCE: Duration = Duration::from_millis(50);

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
pub(crate) async fn run(
    client: Client,
    sender: Sender,
    mut leadership: Leadership,
    mut access: latest::Receiver<Option<Arc<Access>>>,
) {
    let (queue, mut changes) = unbounded_channel();
    let mut tasks = JoinSet::new();
    for kind in KINDS {
        let config = watcher::Config::default().labels(SELECTOR);
        let follow = platform::watch::follow(client.clone(), kind, config, queue.clone());
        tasks.spawn(follow);
    }
    let mut accounts = Accounts::default();
    let mut next = None;
    loop {
        let is_due = async {
            match next {
                Some(delay) => sleep(delay).await,
                None => future::pending().await,
            }
        };
        tokio::select! {
            change = changes.recv() => match change {
                Some((kind, change)) => accounts.apply(kind, change),
                None => return,
            },
            changed = access.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            _is_leading = leadership.changed() => {}
            () = is_due => {}
        }
        sleep(DEBOUNCE).await;
        while let Ok((kind, change)) = changes.try_recv() {
            accounts.apply(kind, change);
        }
        let latest = access.borrow_and_update().clone();
        if let Some(latest) = latest {
            accounts.set(latest);
        }
        next = accounts.write(&sender).await;
    }
}

/// What is known, and what is to be looked at.
#[derive(Debug, Default)]
struct Accounts {
    store: Store,
    /// What agents may read; absent until all nodes are known.
    access: Option<Arc<Access>>,
    /// Namespaces in which roles were seen.
    namespaces: BTreeSet<String>,
    /// Nodes whose objects may not be what they must be.
    unsettled: BTreeSet<String>,
    backoffs: Backoffs<Identity, Failure>,
}

impl Accounts {
    /// Takes in what a watch reports.
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
        self.store.apply(kind, change);
    }

    /// Takes in what agents may read.
    fn set(&mut self, access: Arc<Access>) {
        let none = Arc::default();
        let before = self.access.as_ref().unwrap_or(&none);
        for node in before.keys().chain(access.keys()) {
            if before.get(node) != access.get(node) {
                self.unsettled.insert(node.clone());
            }
        }
        self.access = Some(access);
    }

    /// Does all that can be done now. When there is more to do, if nothing changes before.
    async fn write(&mut self, sender: &Sender) -> Option<Duration> {
        if !sender.is_leading() {
            return None;
        }
        let access = self.access.clone()?;
        let now = Instant::now();
        let mut ready = Vec::new();
        for node in &self.unsettled {
            let secrets = access.get(node);
            // Nothing is done while a kind is not known as it is now.
            let writes = plan::writes(&self.store, &self.namespaces, node, secrets)?;
            ready.push((node.clone(), writes));
        }
        let mut sent = stream::iter(ready.into_iter().map(|(node, writes)| {
            let backoffs = &self.backoffs;
            async move {
                // One after another: a binding is refused as long as its role is not there.
                let mut answers = Vec::new();
                for write in writes {
                    if backoffs
                        .waiting(&write.identity, &write.content, now)
                        .is_some()
                    {
                        answers.push((write, None));
                        continue;
                    }
                    let answer = sender.send_platform(&write).await;
                    answers.push((write, Some(answer)));
                }
                (node, answers)
            }
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
                let is_done = answer.is_some_and(|answer| self.answered(&write, answer, now));
                is_settled &= is_done;
            }
            if is_settled {
                self.unsettled.remove(&node);
            }
        }
        let due = self.backoffs.due().map(|(_, _, at)| at);
        due.min().map(|at| at.saturating_duration_since(now))
    }

    /// Takes in the answer to a write; whether it was done.
    fn answered(
        &mut self,
        write: &Write,
        answer: Result<Option<kube::api::DynamicObject>, Failure>,
        now: Instant,
    ) -> bool {
        let (_, _, namespace, name) = &write.identity;
        let failure = match answer {
            Ok(stored) => {
                self.backoffs.succeeded(&write.identity);
                let name = (namespace.clone(), name.clone());
                self.store.written(write.kind, &name, stored);
                return true;
            }
            Err(failure) if failure.ends_pass() => return false,
            Err(failure) => failure,
        };
        let (identity, content) = (write.identity.clone(), write.content.clone());
        let (error, retry_after) = (failure.to_string(), failure.retry_after());
        let retry_in = self
            .backoffs
            .failed(identity, content, failure, retry_after, now);
        tracing::warn!(object = ?write.identity, error, ?retry_in, "what the agent of a node may do is not written");
        false
    }
}
