//! Writers beside the passes: each follows kinds of its own, and keeps their objects what they must be while this operator leads.

use std::{
    future,
    time::{Duration, Instant},
};

use compiler::platform::{Identity, PlatformKind};
use kube::{Client, api::DynamicObject, runtime::watcher};
use tokio::{
    sync::{mpsc::unbounded_channel, watch as latest},
    task::JoinSet,
    time::sleep,
};

use crate::{
    backoff::Backoffs,
    election::Leadership,
    platform::{self, Change, Operation, Write, store::Store},
    request::{Failure, Sender},
};

/// Delay between a change and what is done about it.
pub(crate) const DEBOUNCE: Duration = Duration::from_millis(50);

/// What a writer knows and decides.
pub(crate) trait Keeper {
    /// Takes in what a watch reports.
    fn apply(&mut self, kind: PlatformKind, change: Change);

    /// Does all that can be done now; it is asked only while this operator leads. When there is more to do, if nothing changes before.
    fn write(&mut self, sender: &Sender) -> impl Future<Output = Option<Duration>> + Send;
}

/// What every writer works with.
pub(crate) struct Worker {
    pub(crate) client: Client,
    pub(crate) sender: Sender,
    pub(crate) leadership: Leadership,
    /// Changes when the API server returns older versions.
    pub(crate) restored: latest::Receiver<u64>,
}

impl Worker {
    /// Follows these kinds and lets the keeper write, also when `woken` changes, until the process ends.
    pub(crate) async fn run<T>(
        mut self,
        kinds: impl IntoIterator<Item = PlatformKind>,
        config: watcher::Config,
        mut woken: latest::Receiver<T>,
        mut keeper: impl Keeper,
    ) {
        let (queue, mut changes) = unbounded_channel();
        let mut tasks = JoinSet::new();
        for kind in kinds {
            let (client, restored) = (self.client.clone(), self.restored.clone());
            let follow =
                platform::watch::follow(client, kind, config.clone(), restored, queue.clone());
            tasks.spawn(follow);
        }
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
                    Some((kind, change)) => keeper.apply(kind, change),
                    None => return,
                },
                Ok(()) = woken.changed() => {}
                _is_leading = self.leadership.changed() => {}
                () = is_due => {}
            }
            sleep(DEBOUNCE).await;
            while let Ok((kind, change)) = changes.try_recv() {
                keeper.apply(kind, change);
            }
            next = if self.sender.is_leading() {
                keeper.write(&self.sender).await
            } else {
                None
            };
        }
    }
}

/// Objects as their watches report them, and the writes of them that failed.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    pub(crate) store: Store,
    pub(crate) backoffs: Backoffs<Identity, Failure>,
}

impl Objects {
    /// Whether a write failed, and is not tried again yet.
    pub(crate) fn is_waiting(&self, write: &Write, now: Instant) -> bool {
        let waiting = self.backoffs.waiting(&write.identity, &write.content, now);
        waiting.is_some()
    }

    /// Takes in the answer to a write; whether it was done.
    pub(crate) fn answered(
        &mut self,
        write: &Write,
        answer: Result<Option<DynamicObject>, Failure>,
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
        // What has changed in the meantime is reported by its watch. Where an object is created, its namespace is missing.
        let is_new = matches!(write.operation, Operation::Create(_));
        let is_expected = matches!(failure, Failure::Conflict(_))
            || (matches!(failure, Failure::NotFound) && !is_new);
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
        false
    }
}
