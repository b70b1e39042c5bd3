//! Gives addresses of `InClusterIPPool`s to claims, in clusters without a provider that does. Off unless the operator is started with it.
//!
//! No address is given twice, whatever operators do at the same time: a claim first says in its status which object is its address, in a write
//! that names the version of the claim; and the object of an address is named after pool and address, so that the API server takes one alone.

mod plan;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use compiler::platform::{
    PlatformKind,
    in_cluster::{ADDRESSES, CLAIMS, POOLS},
};
use k8s_openapi::jiff::Timestamp;
use kube::runtime::watcher;
use tokio::sync::watch as latest;

use self::plan::{Plan, plan};
use crate::{
    platform::{Change, Write},
    request::Sender,
    worker::{DEBOUNCE, Keeper, Objects, Worker},
};

/// Gives addresses as long as this operator leads, until the process ends.
pub(crate) async fn run(worker: Worker) {
    let kinds = [POOLS, CLAIMS, ADDRESSES];
    let (_never, woken) = latest::channel(());
    let fulfiller = Fulfiller::default();
    worker
        .run(kinds, watcher::Config::default(), woken, fulfiller)
        .await;
}

/// What is known, and what could not be done.
#[derive(Debug, Default)]
struct Fulfiller {
    objects: Objects,
    /// Why claims have no address, as it was logged last.
    problems: BTreeMap<String, String>,
}

impl Keeper for Fulfiller {
    fn apply(&mut self, kind: PlatformKind, change: Change) {
        self.objects.store.apply(kind, change);
    }

    async fn write(&mut self, sender: &Sender) -> Option<Duration> {
        // Each round brings every claim one step further; none has more than a few.
        for _ in 0..8 {
            let (now, time) = (Instant::now(), Timestamp::now());
            let Plan {
                writes,
                problems,
                due,
            } = plan(&self.objects.store, time);
            self.report(problems);
            let is_waiting = |write: &Write| self.objects.is_waiting(write, now);
            let (waiting, ready): (Vec<_>, Vec<_>) = writes.into_iter().partition(is_waiting);
            if ready.is_empty() {
                let due = due.map(|due| time.duration_until(due).unsigned_abs());
                let failed = self.objects.backoffs.due();
                let retry = failed.filter(|(identity, ..)| {
                    waiting.iter().any(|write| write.identity == **identity)
                });
                let retry = retry.map(|(_, _, at)| at.saturating_duration_since(now));
                return retry.chain(due).min();
            }
            for write in &ready {
                let answer = sender.send_platform(write).await;
                self.objects.answered(write, answer, now);
            }
        }
        Some(DEBOUNCE)
    }
}

impl Fulfiller {
    /// Logs why claims have no address, once.
    fn report(&mut self, problems: BTreeMap<String, String>) {
        for (claim, problem) in &problems {
            if self.problems.get(claim) != Some(problem) {
                tracing::warn!(claim, problem, "an IPAddressClaim gets no address");
            }
        }
        self.problems = problems;
    }
}
