//! Detects a loop without progress. Every call has a deadline, so this should never happen; if it does, a new agent is
//! better than one that hangs: it restores what was confirmed.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// How long the loop may stand still. A step of it may take long; what it waits for in between may not: every call has a deadline that
/// is shorter than these.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// After this long without progress, the log says so, and the loop is not alive any more.
    warn: Duration,
    /// After this long, the process is ended.
    end: Duration,
    /// Between two looks.
    look: Duration,
}

const LIMITS: Limits = Limits {
    warn: Duration::from_mins(2),
    end: Duration::from_mins(4),
    look: Duration::from_secs(5),
};

/// What the loop does, and since when there is no progress.
#[derive(Clone, Debug)]
pub(crate) struct Watchdog {
    state: Arc<Mutex<(Instant, String)>>,
    limits: Limits,
}

impl Watchdog {
    /// Starts to watch, on a thread of its own: a blocked runtime would not run a task.
    pub(crate) fn start() -> std::io::Result<Self> {
        Self::start_with(LIMITS)
    }

    fn start_with(limits: Limits) -> std::io::Result<Self> {
        let state = Arc::new(Mutex::new((Instant::now(), String::new())));
        let dog = Self { state, limits };
        let watched = dog.clone();
        thread::Builder::new()
            .name("watchdog".into())
            .spawn(move || watched.watch())?;
        Ok(dog)
    }

    /// The loop has come to a new step.
    pub(crate) fn step(&self, what: &str) {
        *self.locked() = (Instant::now(), what.to_owned());
    }

    /// A part of the step is done.
    pub(crate) fn moves_on(&self) {
        self.locked().0 = Instant::now();
    }

    fn locked(&self) -> MutexGuard<'_, (Instant, String)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the loop makes progress; or since when it does not.
    pub(crate) fn liveness(&self) -> Result<(), String> {
        let (since, what) = self.locked().clone();
        let standing = since.elapsed();
        if standing <= self.limits.warn {
            return Ok(());
        }
        Err(format!("no progress for {} s: {what}", standing.as_secs()))
    }

    fn watch(&self) {
        let mut warned = None;
        // Ends with the process: the loop holds the other end as long as it runs.
        while Arc::strong_count(&self.state) > 1 {
            thread::sleep(self.limits.look);
            let (since, what) = self.locked().clone();
            let standing = since.elapsed();
            if standing > self.limits.end {
                tracing::error!(?standing, what, "the agent makes no progress and aborts");
                std::process::abort();
            }
            if standing > self.limits.warn && warned != Some(since) {
                tracing::error!(?standing, what, "the agent makes no progress");
                warned = Some(since);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::process::ExitStatusExt as _, process::Command};

    use super::*;

    const SHORT: Limits = Limits {
        warn: Duration::from_millis(400),
        end: Duration::from_millis(1200),
        look: Duration::from_millis(50),
    };
    /// Tells the test that it is the process that stands still.
    const STANDS: &str = "SELVEDGE_TEST_STANDS_STILL";

    #[test]
    fn a_process_whose_loop_stands_still_ends_itself_and_one_that_moves_on_lives() {
        if std::env::var_os(STANDS).is_some() {
            let watchdog = Watchdog::start_with(SHORT).unwrap();
            watchdog.step("waits for what never comes");
            thread::sleep(Duration::from_mins(1));
            return;
        }
        let patient = Limits {
            end: Duration::from_mins(1),
            ..SHORT
        };
        let watchdog = Watchdog::start_with(patient).unwrap();
        watchdog.step("a long change");
        for _ in 0..20 {
            thread::sleep(Duration::from_millis(50));
            watchdog.moves_on();
            assert_eq!(watchdog.liveness(), Ok(()));
        }
        thread::sleep(2 * SHORT.warn);
        let why = watchdog.liveness().unwrap_err();
        assert!(why.contains("a long change"), "{why}");
        drop(watchdog);

        let started = Instant::now();
        let name = "watchdog::tests::a_process_whose_loop_stands_still_ends_itself_and_one_that_moves_on_lives";
        let stands = Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture"])
            .env(STANDS, "1")
            .output()
            .unwrap();
        // SIGABRT.
        assert_eq!(stands.status.signal(), Some(6), "{stands:?}");
        assert!(started.elapsed() < Duration::from_secs(20));
    }
}
