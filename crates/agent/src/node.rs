//! This node: performs the actions of the state machine.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::JoinHandle;

use crate::{
    config::{Config, Time},
    file,
    health::Health,
    journal::{self, Journal, Store},
    machine::{Action, Event, Machine, Means, Outcome, Purpose},
    patience::Patience,
    probe::{self, ApiServer},
    reconcile::{Failure, Reconciler},
    report,
};

/// This node, with its journal and its state machine.
#[derive(Debug)]
pub(crate) struct Node {
    reconciler: Reconciler,
    store: Store,
    api: Option<Arc<dyn ApiServer>>,
    machine: Machine,
    started: Instant,
    /// What the last apply did, for the log and for people.
    pub(crate) last_apply: Option<String>,
}

/// Why the agent cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The node cannot be looked at.
    #[error("failed to open this node")]
    Node(#[source] Failure),
    /// The journal is there and cannot be read, because of the system.
    #[error("failed to open the journal")]
    Journal(#[source] journal::Error),
}

impl Node {
    /// Opens the node and its journal; the event that begins is returned along with it.
    pub(crate) async fn open(
        reconciler: Reconciler,
        api: Option<Arc<dyn ApiServer>>,
    ) -> Result<(Self, Event), OpenError> {
        let boot_id = Store::boot_id().map_err(OpenError::Journal)?;
        let paths = reconciler.paths();
        let store = Store::new(&paths.state, &boot_id).with_copy_in(&paths.runtime);
        let has_objects = reconciler.has_objects().await.map_err(OpenError::Node)?;
        let found = find(&store, has_objects)?;
        let rebooted = found.as_ref().is_some_and(|found| found.boot_id != boot_id);
        let journal = found.map_or_else(Journal::default, |found| found.journal);
        let node = Self {
            reconciler,
            store,
            api,
            machine: Machine::new(journal),
            started: Instant::now(),
            last_apply: None,
        };
        let started = Event::Started {
            has_objects,
            rebooted,
        };
        Ok((node, started))
    }

    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }

    pub(crate) fn reconciler(&self) -> &Reconciler {
        &self.reconciler
    }

    /// Time as the machine counts it.
    pub(crate) fn now(&self) -> Time {
        self.started.elapsed()
    }

    /// Gives an event to the machine.
    pub(crate) fn step(&mut self, event: Event) -> Action {
        let now = self.now();
        self.machine.step(event, now)
    }

    /// Does an action and returns its outcome; `None` for a wait, which is the caller's.
    pub(crate) async fn perform(&mut self, action: &Action) -> Option<Event> {
        match action {
            Action::Wait(_) => None,
            Action::Save(journal) => Some(Event::Saved(self.save(journal).await)),
            Action::Measure {
                router,
                probes,
                limit,
            } => {
                let limit = limit.unwrap_or(Duration::MAX);
                let health = self.measure(router.as_deref(), probes, limit).await;
                Some(Event::Measured(health))
            }
            Action::Apply {
                config,
                means,
                purpose,
                limit,
            } => Some(self.apply(config, *means, purpose, *limit).await),
        }
    }

    async fn save(&self, journal: &Journal) -> Result<(), String> {
        let (store, saved) = (self.store.clone(), journal.clone());
        let save = tokio::task::spawn_blocking(move || store.save(&saved));
        match save.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(report::chain(&error)),
            Err(error) => return Err(error.to_string()),
        }
        if let (Some(confirmed), None) = (&journal.confirmed, &journal.trying) {
            self.write_frr_conf(confirmed).await;
        }
        Ok(())
    }

    /// Keeps the `frr.conf` that a fresh FRR is given: it holds the confirmed config and nothing else.
    async fn write_frr_conf(&self, config: &Config) {
        let path = self.reconciler.frr().instance().frr_conf();
        let patience = Patience::new(config, None);
        let written = match self.reconciler.frr_conf(config, patience).await {
            Ok(text) if std::fs::read(&path).is_ok_and(|old| old == text.as_bytes()) => Ok(()),
            Ok(text) => file::replace(&path, text.as_bytes()).map_err(|it| report::chain(&it)),
            Err(failure) => Err(report::chain(&failure)),
        };
        if let Err(error) = written {
            tracing::warn!(error, "failed to write the confirmed frr.conf");
        }
    }

    /// Begins to measure the health of a node at rest, beside everything else. The API server is left out: ten thousand nodes would ask
    /// it all the time, and each renews a Lease anyway.
    pub(crate) fn checkup(&self, config: Arc<Config>) -> JoinHandle<Health> {
        let kernel = Arc::clone(self.reconciler.kernel());
        let frr = self.reconciler.frr().instance().clone();
        tokio::spawn(async move {
            let router = Some(&*config);
            probe::measure(&kernel, &frr, None, router, &config, 1, Duration::MAX).await
        })
    }

    async fn measure(&self, router: Option<&Config>, probes: &Config, limit: Duration) -> Health {
        let is_baseline = router != Some(probes);
        let attempts = if is_baseline {
            probes.spec.health.retries.saturating_add(1)
        } else {
            1
        };
        let kernel = self.reconciler.kernel();
        let frr = self.reconciler.frr().instance();
        let api = self.api.as_deref();
        let health = probe::measure(kernel, frr, api, router, probes, attempts, limit).await;
        let failures: Vec<String> = health.failures().collect();
        tracing::debug!(is_baseline, ?failures, "measured");
        health
    }

    async fn apply(
        &mut self,
        config: &Arc<Config>,
        means: Means,
        purpose: &Purpose,
        limit: Option<Duration>,
    ) -> Event {
        let start = Instant::now();
        let patience = Patience::new(config, limit);
        let apply = self.reconciler.reconcile(config, means, purpose, patience);
        let outcome = apply.await;
        let (took, revision) = (start.elapsed(), &config.spec.revision);
        match outcome {
            Ok(applied) => {
                if applied.is_nothing() {
                    tracing::debug!(%revision, ?took, "nothing to do");
                } else {
                    tracing::info!(%revision, ?took, ?means, %applied, "applied");
                }
                self.last_apply = Some(applied.to_string());
                Event::Applied(Ok(Outcome {
                    changes: applied.changes,
                    put_off: applied.put_off,
                    notes: applied.notes,
                    unattached: applied.unattached,
                    mirror_failures: applied.mirror_failures,
                }))
            }
            Err(failure) => {
                let fault = failure.fault();
                tracing::error!(%revision, ?took, ?means, error = fault.message, "apply failed");
                Event::Applied(Err(fault))
            }
        }
    }
}

/// The journal, or a copy of one that is lost or damaged; nothing on a node that has none of them.
fn find(store: &Store, has_objects: bool) -> Result<Option<journal::Found>, OpenError> {
    match store.load() {
        Ok(Some(found)) => Ok(Some(found)),
        // Whether the kernel has objects says little: after a reboot it has none.
        Ok(None) => {
            let copy = intact_copy(store);
            let is_restored = copy.is_some();
            if has_objects || is_restored {
                tracing::error!(has_objects, is_restored, "the journal of this node is lost");
            }
            Ok(copy)
        }
        Err(error @ journal::Error::File(_)) => Err(OpenError::Journal(error)),
        Err(error) => instead_of_damaged(store, &error),
    }
}

/// The first copy of the journal that can be read.
fn intact_copy(store: &Store) -> Option<journal::Found> {
    for copy in store.copies() {
        match copy {
            Ok(found) => return Some(found),
            Err(error) => tracing::error!(
                error = report::chain(&error),
                "a copy of the journal cannot be read"
            ),
        }
    }
    None
}

/// A copy of a journal that is damaged. The damaged file is kept for examination.
fn instead_of_damaged(
    store: &Store,
    damage: &journal::Error,
) -> Result<Option<journal::Found>, OpenError> {
    let copy = intact_copy(store);
    let is_restored = copy.is_some();
    tracing::error!(%damage, is_restored, "the journal cannot be read and is set aside");
    match store.set_aside() {
        // A file system that is read-only does not keep the node from its confirmed config.
        Err(error) if is_restored => {
            tracing::error!(
                error = report::chain(&error),
                "the damaged journal stays in place"
            );
        }
        outcome => outcome.map_err(OpenError::Journal)?,
    }
    Ok(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_that_is_lost_or_damaged_is_replaced_by_its_copy_also_after_a_reboot() {
        let directory = tempfile::TempDir::new().unwrap();
        let store = Store::new(directory.path(), "boot");
        let confirmed = Journal {
            confirmed: Some(Arc::new(Config::empty())),
            ..Journal::default()
        };
        let trial = Journal {
            trying: confirmed.confirmed.clone(),
            ..confirmed.clone()
        };
        let file = directory.path().join("journal");
        assert!(find(&store, false).unwrap().is_none(), "a new node");
        for has_objects in [true, false] {
            for damage in [None, Some("selvedge-journal 1 damaged")] {
                store.save(&confirmed).unwrap();
                store.save(&trial).unwrap();
                assert_eq!(find(&store, has_objects).unwrap().unwrap().journal, trial);
                match damage {
                    Some(text) => std::fs::write(&file, text).unwrap(),
                    None => std::fs::remove_file(&file).unwrap(),
                }
                let found = find(&store, has_objects).unwrap().unwrap();
                assert_eq!(found.journal, confirmed, "{has_objects} {damage:?}");
            }
        }
        store.remove().unwrap();
        assert!(find(&store, false).unwrap().is_none(), "given back");
    }
}
