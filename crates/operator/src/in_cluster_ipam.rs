//! Gives addresses of `InClusterIPPool`s to claims, in clusters without a provider that does. Off unless the operator is started with it.
//!
//! No address is given twice, whatever operators do at the same time: a claim first says in its status which object is its address, in a write
//! that names the version of the claim; and the object of an address is named after pool and address, so that the API server takes one alone.

mod plan;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    future,
    time::{Duration, Instant},
};

use compiler::platform::{
    Identity,
    in_cluster::{ADDRESSES, CLAIMS, POOLS},
};
use k8s_openapi::jiff::Timestamp;
use kube::{Client, runtime::watcher};
use tokio::{sync::mpsc::unbounded_channel, task::JoinSet, time::sleep};

use self::plan::{Plan, plan};
use crate::{
    backoff::Backoffs,
    election::Leadership,
    platform::{self, Write, store::Store},
    request::{Failure, Sender},
};

/// Delay between a change and what is done about it.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// Gives addresses as long as this operator leads, until the process ends.
pub(crate) async fn run(client: Client, sender: Sender, mut leadership: Leadership) {
    let (queue, mut changes) = unbounded_channel();
    let mut tasks = JoinSet::new();
    for kind in [POOLS, CLAIMS, ADDRESSES] {
        let config = watcher::Config::default();
        let follow = platform::watch::follow(client.clone(), kind, config, queue.clone());
        tasks.spawn(follow);
    }
    let mut fulfiller = Fulfiller::default();
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
                Some((kind, change)) => fulfiller.store.apply(kind, change),
                None => return,
            },
            _is_leading = leadership.changed() => {}
            () = is_due => {}
        }
        sleep(DEBOUNCE).await;
        while let Ok((kind, change)) = changes.try_recv() {
            fulfiller.store.apply(kind, change);
        }
        next = fulfiller.fulfil(&sender).await;
    }
}

/// What is known, and what could not be done.
#[derive(Debug, Default)]
struct Fulfiller {
    store: Store,
    backoffs: Backoffs<Identity, Failure>,
    /// Why claims have no address, as it was logged last.
    problems: BTreeMap<String, String>,
}

impl Fulfiller {
    /// Does all that can be done now. When there is more to do, if nothing changes before.
    async fn fulfil(&mut self, sender: &Sender) -> Option<Duration> {
        if !sender.is_leading() {
            return None;
        }
        // Each round brings every claim one step further; none has more than a few.
        for _ in 0..8 {
            let (now, time) = (Instant::now(), Timestamp::now());
            let Plan {
                writes,
                problems,
                due,
            } = plan(&self.store, time);
            self.report(problems);
            let is_waiting = |write: &Write| {
                let waiting = self.backoffs.waiting(&write.identity, &write.content, now);
                waiting.is_some()
            };
            let (waiting, ready): (Vec<_>, Vec<_>) = writes.into_iter().partition(is_waiting);
            if ready.is_empty() {
                let due = due.map(|due| time.duration_until(due).unsigned_abs());
                let retry = self.backoffs.due().filter(|(identity, ..)| {
                    waiting.iter().any(|write| write.identity == **identity)
                });
                let retry = retry.map(|(_, _, at)| at.saturating_duration_since(now));
                return retry.chain(due).min();
            }
            for write in &ready {
                let answer = sender.send_platform(write).await;
                self.answered(write, answer, now);
            }
        }
        Some(DEBOUNCE)
    }

    fn answered(
        &mut self,
        write: &Write,
        answer: Result<Option<kube::api::DynamicObject>, Failure>,
        now: Instant,
    ) {
        let (_, _, namespace, name) = &write.identity;
        let failure = match answer {
            Ok(stored) => {
                self.backoffs.succeeded(&write.identity);
                let name = (namespace.clone(), name.clone());
                return self.store.written(write.kind, &name, stored);
            }
            Err(failure) if failure.ends_pass() => return,
            Err(failure) => failure,
        };
        // What has changed in the meantime is reported by its watch.
        let is_expected = matches!(failure, Failure::Conflict(_) | Failure::NotFound);
        let (identity, content) = (write.identity.clone(), write.content.clone());
        let (error, retry_after) = (failure.to_string(), failure.retry_after());
        let retry_in = self
            .backoffs
            .failed(identity, content, failure, retry_after, now);
        if is_expected {
            tracing::debug!(object = ?write.identity, error, ?retry_in, "write refused: the object has changed");
        } else {
            tracing::warn!(object = ?write.identity, error, ?retry_in, "write failed");
        }
    }

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
