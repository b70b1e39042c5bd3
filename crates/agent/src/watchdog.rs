//! Detects a loop without progress. Every call has a deadline, so this should never happen; if it does, a new agent is
//! better than one that hangs: it restores what was confirmed.

use std::{
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// After this long without a step, the log says so.
const WARN_AFTER: Duration = Duration::from_mins(2);
/// After this long, the process is ended.
const END_AFTER: Duration = Duration::from_mins(10);
const LOOK: Duration = Duration::from_secs(5);

/// What the loop does, and since when.
#[derive(Clone, Debug)]
pub(crate) struct Watchdog(Arc<Mutex<(Instant, String)>>);

impl Watchdog {
    /// Starts to watch, on a thread of its own: a blocked runtime would not run a task.
    pub(crate) fn start() -> std::io::Result<Self> {
        let dog = Self(Arc::new(Mutex::new((Instant::now(), String::new()))));
        let watched = dog.clone();
        thread::Builder::new()
            .name("watchdog".into())
            .spawn(move || watched.watch())?;
        Ok(dog)
    }

    /// The loop has come to a new step.
    pub(crate) fn step(&self, what: &str) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = (Instant::now(), what.to_owned());
    }

    /// Whether the loop makes progress; or since when it does not.
    pub(crate) fn liveness(&self) -> Result<(), String> {
        let (since, what) = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let standing = since.elapsed();
        if standing <= WARN_AFTER {
            return Ok(());
        }
        Err(format!("no step for {} s: {what}", standing.as_secs()))
    }

    fn watch(&self) {
        let mut warned = None;
        // Ends with the process: the loop holds the other end as long as it runs.
        while Arc::strong_count(&self.0) > 1 {
            thread::sleep(LOOK);
            let (since, what) = self
                .0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            let standing = since.elapsed();
            if standing > END_AFTER {
                tracing::error!(?standing, what, "the agent makes no progress and exits");
                std::process::abort();
            }
            if standing > WARN_AFTER && warned != Some(since) {
                tracing::error!(?standing, what, "the agent makes no progress");
                warned = Some(since);
            }
        }
    }
}
