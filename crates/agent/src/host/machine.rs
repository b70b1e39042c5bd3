//! The decisions about the host's router: events in, actions out. No clock, no IO; time is an input.
//!
//! ```text
//!  assigned ─► Apply ─► (watched: the API server is reached) ─► good
//!                │ refused          │ not reached until the deadline
//!                ▼                  ▼
//!              Apply the good config, and say why
//! ```
//!
//! * A new config is applied at once, and over one that is still watched. The way back is the last good config.
//! * A config is good when it has run for a while and the API server was reached after that, or was not reached before it either.
//! * A config that was rolled back is not tried again until its content changes or a user asks for it. If the way back did not bring the
//!   API server back, the config was not the cause, and is tried again.

mod status;

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

pub(crate) use self::status::{Counters, Status};
use super::config::{Assigned, HostConfig};
use crate::config::Time;

/// How long a config must run before it can be good.
const SETTLE: Duration = Duration::from_secs(10);
/// Between two attempts to reach the API server while a config is watched.
const PROBE_INTERVAL: Duration = Duration::from_secs(2);
/// The same after one that failed.
const PROBE_AGAIN: Duration = Duration::from_millis(500);
/// How long what is known of the API server counts.
const PROBE_AGE: Duration = Duration::from_mins(1);
/// How much of the deadline is kept for the way back.
const RETURN: Duration = Duration::from_secs(3);
/// How long after a return the API server may take to be reached again, if the change was the cause.
const JUDGE: Duration = Duration::from_secs(15);
/// How long an agent that finds FRR running waits for the node's config, before it restores the one on disk.
const GRACE: Duration = Duration::from_secs(3);
/// The first pause after a failed apply, and the longest.
const RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// How often FRR is compared with its config without any sign of drift.
const RESYNC: Duration = Duration::from_secs(30);
/// Repairs in a row without a pause, and the pause after that.
const FREE_REPAIRS: u32 = 5;
const REPAIR_PAUSE: Duration = Duration::from_secs(5);
/// A time without repairs after which they are counted anew.
const REPAIR_MEMORY: Duration = Duration::from_mins(5);
/// Between two writes to the disk.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);
/// How often in a row FRR may not answer before it is started anew.
const SILENCES: u32 = 2;
/// How many configs that were rolled back are remembered.
const REJECTED: usize = 16;

/// What is kept on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stored {
    /// The config to which a change is rolled back.
    pub(crate) good: Arc<HostConfig>,
    /// The config that runs and is still watched, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) watched: Option<Arc<HostConfig>>,
    /// Configs that were rolled back, oldest first, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) rejected: Vec<(String, String)>,
    /// The value of the retry annotation that was acted on last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retried: Option<String>,
}

impl Stored {
    /// Whether there is nothing to keep.
    pub(crate) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// What happened.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// The agent has started.
    Started {
        /// What was on disk.
        stored: Stored,
        /// Whether the machine was rebooted since.
        rebooted: bool,
        /// Whether the instance runs.
        runs: bool,
    },
    /// The node's config arrived.
    Assigned(Assigned),
    /// The time to wait for has come.
    Woken,
    /// FRR may have been changed by others.
    Drifted,
    /// A config was applied, with whether that changed anything.
    Applied(Result<bool, Fault>),
    /// An attempt to reach the API server has ended.
    Probed {
        /// When it began.
        began: Time,
        /// Whether the API server was reached.
        reached: bool,
    },
    /// The disk was written, or why not.
    Saved(Result<(), String>),
}

/// A failed apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The failing step and its error, without secrets.
    pub(crate) message: String,
    /// Whose fault it is.
    pub(crate) cause: Cause,
}

/// Why an apply failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// FRR does not take the config.
    Config,
    /// A daemon did not answer in time.
    Silence,
    /// The node cannot run FRR at the moment.
    Node,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Wait for an event, at most until this time.
    Wait(Time),
    /// Find out whether the API server is reached before anything is changed.
    Probe,
    /// Make FRR what the config says.
    Apply {
        /// The config.
        config: Arc<HostConfig>,
        /// Whether FRR is stopped and started from the config.
        fresh: bool,
    },
    /// Write this to the disk.
    Save(Stored),
}

/// What is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Rest,
    /// The API server is asked for before a change.
    Probing,
    Applying {
        config: Arc<HostConfig>,
        purpose: Purpose,
    },
    Saving,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    New,
    Keep,
    Back,
}

/// A config that runs and is not good yet: the oldest of those that were applied since the last good one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Watched {
    config: Arc<HostConfig>,
    /// When it was applied.
    since: Time,
    /// Whether the API server was reached before it.
    guarded: bool,
}

/// A change that is rolled back.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Back {
    /// The config that is brought back.
    config: Arc<HostConfig>,
    /// Whether the change is suspected to have cut off the API server, so that nothing since the good config stays.
    is_cut_off: bool,
}

/// The state of the task.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// Whether the agent has a way to the API server at all.
    has_api: bool,
    stored: Stored,
    unsaved: bool,
    saved: Option<Time>,
    assigned: Option<Assigned>,
    phase: Phase,
    /// What FRR runs; absent while that is not known.
    running: Option<Arc<HostConfig>>,
    /// When it was applied first.
    applied: Time,
    watched: Option<Watched>,
    /// Whether the API server was reached the last time, and when.
    reached: Option<(Time, bool)>,
    /// What ran before the apply that is under way.
    before: Option<Arc<HostConfig>>,
    /// A change that is being taken back.
    back: Option<Back>,
    /// The config whose return must bring the API server back, or it was not the cause.
    judged: Option<(String, Time)>,
    /// No attempt before this time.
    not_before: Time,
    failures: u32,
    silences: u32,
    drifted: bool,
    compare: Time,
    repairs: u32,
    repaired: Time,
    counters: Counters,
    error: Option<String>,
}

impl Machine {
    pub(crate) fn new(has_api: bool) -> Self {
        Self {
            has_api,
            stored: Stored::default(),
            unsaved: false,
            saved: None,
            assigned: None,
            phase: Phase::Rest,
            running: None,
            applied: Time::ZERO,
            watched: None,
            reached: None,
            before: None,
            back: None,
            judged: None,
            not_before: Time::ZERO,
            failures: 0,
            silences: 0,
            drifted: false,
            compare: Time::ZERO,
            repairs: 0,
            repaired: Time::ZERO,
            counters: Counters::default(),
            error: None,
        }
    }

    /// Takes an event and says what to do next.
    pub(crate) fn step(&mut self, event: Event, now: Time) -> Action {
        match event {
            Event::Started {
                stored,
                rebooted,
                runs,
            } => self.started(stored, rebooted, runs, now),
            Event::Assigned(assigned) => self.assigned(assigned),
            Event::Woken => {}
            Event::Drifted => self.drifted = true,
            Event::Applied(outcome) => self.finished(outcome, now),
            Event::Probed { began, reached } => self.probed(began, reached, now),
            Event::Saved(outcome) => {
                self.phase = Phase::Rest;
                self.saved = Some(now);
                if let Err(error) = outcome {
                    self.unsaved = true;
                    self.error = Some(error);
                }
            }
        }
        self.next(now)
    }

    /// When the API server is to be reached beside everything else, if at all.
    pub(crate) fn probe_due(&self) -> Option<Time> {
        if self.watched.as_ref().is_none_or(|it| !it.guarded) && self.judged.is_none() {
            return None;
        }
        let due = self.reached.map(|(at, reached)| {
            let pause = if reached { PROBE_INTERVAL } else { PROBE_AGAIN };
            at + pause
        });
        Some(due.unwrap_or_default())
    }

    fn started(&mut self, stored: Stored, rebooted: bool, runs: bool, now: Time) {
        self.stored = stored;
        let known = self.stored.watched.take().filter(|_| !rebooted);
        let nothing = known.is_none() && self.stored.good.router.is_none() && !runs;
        if nothing {
            self.running = Some(Arc::clone(&self.stored.good));
        }
        self.watched = known.map(|config| Watched {
            config,
            since: now,
            guarded: self.is_guarded(),
        });
        self.not_before = if runs && !rebooted { now + GRACE } else { now };
        self.compare = now + RESYNC;
    }

    /// Whether the API server matters for what is assigned; unknown counts as yes.
    fn is_guarded(&self) -> bool {
        let assigned = self.assigned.as_ref();
        self.has_api && assigned.is_none_or(|assigned| assigned.deadline.is_some())
    }

    fn assigned(&mut self, mut assigned: Assigned) {
        let known = self.target();
        assigned.config = Arc::new(assigned.config.with_passwords_of(&known));
        if assigned.retry.is_some() && assigned.retry != self.stored.retried {
            self.stored.retried.clone_from(&assigned.retry);
            self.stored.rejected.clear();
            self.unsaved = true;
        }
        let is_new = self
            .assigned
            .as_ref()
            .is_none_or(|before| before.config != assigned.config);
        if is_new || self.running.is_none() {
            // What failed, failed with another config, and an agent that waits for a config has it.
            self.not_before = Time::ZERO;
        }
        self.assigned = Some(assigned);
    }

    /// What FRR should run, as long as nothing new is applied.
    fn target(&self) -> Arc<HostConfig> {
        let latest = self.running.as_ref();
        let watched = self.watched.as_ref().map(|watched| &watched.config);
        Arc::clone(latest.or(watched).unwrap_or(&self.stored.good))
    }

    fn next(&mut self, now: Time) -> Action {
        if self.phase != Phase::Rest {
            return Action::Wait(now + RESYNC);
        }
        let unguarded = self.watched.as_ref().filter(|watched| !watched.guarded);
        let settled = unguarded.map(|watched| watched.since + SETTLE);
        if settled.is_some_and(|at| at <= now) {
            self.settle(now);
        }
        if let Some(action) = self.change(now) {
            return action;
        }
        let save = self.saved.map_or(now, |at| at + SAVE_INTERVAL);
        if self.unsaved && save <= now {
            self.unsaved = false;
            self.phase = Phase::Saving;
            return Action::Save(self.on_disk());
        }
        let waits = [
            Some(self.compare),
            self.unsaved.then_some(save),
            (self.not_before > now).then_some(self.not_before),
            settled.filter(|at| *at > now),
        ];
        let until = waits.into_iter().flatten().min();
        Action::Wait(until.unwrap_or(now + RESYNC).max(now))
    }

    /// What is to be changed in FRR, if anything.
    fn change(&mut self, now: Time) -> Option<Action> {
        if now < self.not_before {
            return None;
        }
        if let Some(back) = &self.back {
            let config = Arc::clone(&back.config);
            return Some(self.apply(config, Purpose::Back));
        }
        if let Some(config) = self.wanted() {
            if self.watched.is_none() && self.is_guarded() && !self.is_fresh(now) {
                self.phase = Phase::Probing;
                return Some(Action::Probe);
            }
            self.before.clone_from(&self.running);
            return Some(self.apply(config, Purpose::New));
        }
        let is_due = self.running.is_none() || self.drifted || now >= self.compare;
        is_due.then(|| {
            self.drifted = false;
            let target = self.target();
            self.apply(target, Purpose::Keep)
        })
    }

    fn apply(&mut self, config: Arc<HostConfig>, purpose: Purpose) -> Action {
        let fresh = self.silences >= SILENCES || (purpose == Purpose::Back && self.failures > 0);
        self.phase = Phase::Applying {
            config: Arc::clone(&config),
            purpose,
        };
        Action::Apply { config, fresh }
    }

    /// Whether it is known whether the API server is reached.
    fn is_fresh(&self, now: Time) -> bool {
        self.reached.is_some_and(|(at, _)| now < at + PROBE_AGE)
    }

    /// The config to be applied: what was assigned, unless it runs, cannot be used, or was rolled back.
    fn wanted(&self) -> Option<Arc<HostConfig>> {
        let assigned = self.assigned.as_ref()?;
        if assigned.refusal.is_some() || self.running.as_ref() == Some(&assigned.config) {
            return None;
        }
        let is_rejected = self.rejection(&assigned.config).is_some();
        (!is_rejected).then(|| Arc::clone(&assigned.config))
    }

    fn rejection(&self, config: &HostConfig) -> Option<&str> {
        if self.stored.rejected.is_empty() {
            return None;
        }
        let fingerprint = config.fingerprint();
        let mut rejected = self.stored.rejected.iter();
        let found = rejected.find(|(known, _)| *known == fingerprint);
        found.map(|(_, why)| why.as_str())
    }

    fn reject(&mut self, config: &HostConfig, why: &str) -> String {
        let fingerprint = config.fingerprint();
        let rejected = &mut self.stored.rejected;
        rejected.retain(|(known, _)| *known != fingerprint);
        rejected.push((fingerprint.clone(), why.to_owned()));
        let excess = rejected.len().saturating_sub(REJECTED);
        rejected.drain(..excess);
        self.unsaved = true;
        fingerprint
    }

    fn finished(&mut self, outcome: Result<bool, Fault>, now: Time) {
        let Phase::Applying { config, purpose } = std::mem::replace(&mut self.phase, Phase::Rest)
        else {
            return;
        };
        match outcome {
            Ok(changed) => self.succeeded(config, purpose, changed, now),
            Err(fault) => self.failed(&config, purpose, fault, now),
        }
    }

    fn succeeded(&mut self, config: Arc<HostConfig>, purpose: Purpose, changed: bool, now: Time) {
        self.failures = 0;
        self.silences = 0;
        self.not_before = now;
        self.compare = now + RESYNC;
        self.error = None;
        match purpose {
            Purpose::New => {
                self.counters.applied += 1;
                self.running = Some(Arc::clone(&config));
                self.applied = now;
                self.unsaved = true;
                let guarded = self.is_guarded() && self.reached.is_some_and(|(_, reached)| reached);
                self.watched.get_or_insert(Watched {
                    config,
                    since: now,
                    guarded,
                });
            }
            Purpose::Keep => {
                if self.running.is_none() {
                    self.running = Some(config);
                    self.applied = now;
                } else if changed {
                    self.count_repair(now);
                }
            }
            Purpose::Back => {
                self.counters.taken_back += 1;
                self.running = Some(config);
                self.applied = now;
                self.unsaved = true;
                let is_cut_off = self.back.take().is_some_and(|back| back.is_cut_off);
                // With the good config there is nothing left to watch.
                if is_cut_off || self.running.as_ref() == Some(&self.stored.good) {
                    self.watched = None;
                }
                if let Some((_, until)) = &mut self.judged {
                    *until = now + JUDGE;
                }
            }
        }
    }

    fn count_repair(&mut self, now: Time) {
        if self.repaired + REPAIR_MEMORY < now {
            self.repairs = 0;
        }
        self.repairs += 1;
        self.counters.repaired += 1;
        self.repaired = now;
        if self.repairs > FREE_REPAIRS {
            self.not_before = now + REPAIR_PAUSE;
        }
    }

    fn failed(&mut self, config: &Arc<HostConfig>, purpose: Purpose, fault: Fault, now: Time) {
        self.counters.failed += 1;
        self.failures += 1;
        let pause = RETRY * 2_u32.saturating_pow(self.failures.min(8) - 1);
        self.not_before = now + pause.min(LONGEST_RETRY);
        if fault.cause == Cause::Silence {
            self.silences += 1;
        }
        let is_bad = fault.cause == Cause::Config && purpose == Purpose::New;
        if is_bad {
            self.reject(config, &fault.message);
            let before = self.before.take();
            self.back = Some(Back {
                config: before.unwrap_or_else(|| Arc::clone(&self.stored.good)),
                is_cut_off: false,
            });
            self.failures = 0;
            self.not_before = now;
        }
        self.error = Some(fault.message);
        // What runs now is between the two.
        if purpose != Purpose::Keep {
            self.running = None;
        }
    }

    fn probed(&mut self, began: Time, reached: bool, now: Time) {
        self.reached = Some((now, reached));
        if self.phase == Phase::Probing {
            self.phase = Phase::Rest;
        }
        if let Some((fingerprint, until)) = self.judged.clone() {
            if self.back.is_some() {
                return;
            }
            if reached {
                self.judged = None;
            } else if now >= until {
                self.judged = None;
                self.stored
                    .rejected
                    .retain(|(known, _)| *known != fingerprint);
                self.unsaved = true;
            }
            return;
        }
        let Some(watched) = self.watched.clone() else {
            return;
        };
        if watched.guarded && reached && began >= watched.since + SETTLE {
            self.settle(now);
        } else if watched.guarded && !reached && now + RETURN >= watched.since + self.deadline() {
            self.take_back(&watched);
        }
    }

    /// How long a config may leave the node without the API server.
    fn deadline(&self) -> Duration {
        let deadline = self.assigned.as_ref().and_then(|it| it.deadline);
        deadline.unwrap_or(Duration::from_secs(30))
    }

    fn take_back(&mut self, watched: &Watched) {
        let why = format!(
            "the API server is not reached since the change; it was taken back after {} s",
            self.deadline().as_secs()
        );
        if let Some(running) = self.running.clone() {
            let fingerprint = self.reject(&running, &why);
            self.judged = Some((fingerprint, Time::MAX));
        }
        self.reject(&watched.config, &why);
        self.back = Some(Back {
            config: Arc::clone(&self.stored.good),
            is_cut_off: true,
        });
    }

    /// The oldest config that is watched is good now; a later one goes on being watched.
    fn settle(&mut self, now: Time) {
        let Some(watched) = self.watched.take() else {
            return;
        };
        self.unsaved = true;
        let is_latest = self.running.as_ref() == Some(&watched.config);
        self.stored.good = watched.config;
        if !is_latest && let Some(running) = &self.running {
            self.watched = Some(Watched {
                config: Arc::clone(running),
                since: self.applied.min(now),
                guarded: watched.guarded,
            });
        }
    }

    fn on_disk(&self) -> Stored {
        let good = self.stored.good.as_ref();
        let watched = self.running.clone().filter(|running| **running != *good);
        Stored {
            watched: watched.filter(|_| self.watched.is_some()),
            ..self.stored.clone()
        }
    }
}

#[cfg(test)]
mod tests;
