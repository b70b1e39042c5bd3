//! The decisions of the agent: events in, actions out. No clock, no IO; time is an input.
//!
//! ```text
//!  assigned ─► Baseline ─► Announce ─► Apply ─► Probe ⇄ Settle ─► Confirm ─► Idle
//!          (measure)   (journal)     │        │ deadline        (journal)   │ drift
//!                                    ▼        ▼                             ▼
//!                                  Restore ─► Record (journal) ─► Idle    Repair ─► Idle
//! ```
//!
//! One action is under way at a time; its outcome is the next event. What makes it safe:
//! * a config is applied only after the journal names it as being tried;
//! * it is confirmed only after a measurement that is no worse than the baseline;
//! * the baseline waits a while for what worked when the running config was confirmed, so that one that is tried just after a rollback
//!   or a restart is not excused by sessions that are not up yet;
//! * a machine that starts with a journal that names a trial restores the confirmed config first.

mod event;
mod fresh;
mod repairs;
mod status;
mod trial;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

pub use self::{
    event::{Action, Assigned, Event, Fault, FrrFault, Means, Outcome, Purpose},
    status::{Counters, Drift, State, Status, Timings},
};
use self::{
    fresh::FreshStarts,
    repairs::Repairs,
    trial::{confirmed, give_up, last_retry},
};
use crate::{
    config::{Config, Time},
    health::Health,
    journal::{Journal, Rejected},
};

/// Between two measurements of a config that is being tried.
const PROBE_INTERVAL: Duration = Duration::from_millis(500);
/// How long health must last before a config is confirmed: the effects of a change are not all immediate.
const SETTLE: Duration = Duration::from_millis(1500);
/// How long a baseline waits for checks that passed when the running config was confirmed. Sessions come up again within a few seconds.
const BASELINE_PATIENCE: Duration = Duration::from_secs(15);
/// A return takes about as long as the apply did; this much is added, for what differs.
const RETURN_MARGIN: Duration = Duration::from_secs(1);
/// How long a return may take that finds that FRR does not answer and starts it anew.
const FRESH_FRR: Duration = Duration::from_secs(8);
/// The waits of a return always have this long; those of one with a fresh FRR have twice as long.
const LEAST_RETURN: Duration = Duration::from_secs(2);
/// A measurement always has this long.
const LEAST_PROBE: Duration = Duration::from_secs(1);
/// Before a failed step is attempted again.
const RETRY: Duration = Duration::from_secs(1);
/// The longest pause between two attempts to restore or to repair.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// Between two looks at a node on which a repair is put off.
const LOOK: Duration = Duration::from_secs(1);
/// How often in a row FRR may not answer at a repair before it is started anew: it may be busy.
const SILENCES: u32 = 2;
/// How often the node is compared with its config without any sign of drift.
const RESYNC: Duration = Duration::from_secs(30);
/// How often the health of a node at rest is measured.
const CHECKUP: Duration = Duration::from_secs(30);

/// A config between its baseline and its end.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Trial {
    config: Arc<Config>,
    fingerprint: String,
    baseline: Health,
    /// When the journal named it.
    announced: Time,
    /// When its latest apply began.
    began: Time,
    /// How long it took until it was applied.
    applied: Duration,
    /// When it is rolled back at the latest.
    give_up: Time,
    /// How it is applied next.
    means: Means,
    healthy_since: Option<Time>,
    /// The checks that passed in the latest measurement.
    passed: BTreeSet<String>,
    /// Why it is not confirmed yet.
    problem: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing is under way; `next` is when the node is looked at again.
    Idle { next: Time },
    /// Health is measured before a change; until this time it is measured again if it is worse than it was.
    Baseline { config: Arc<Config>, until: Time },
    /// Between two measurements before a change.
    BaselineLater {
        config: Arc<Config>,
        until: Time,
        at: Time,
    },
    /// The journal is written before a change.
    Announce { trial: Trial },
    /// The trial is applied.
    Apply { trial: Trial },
    /// A transient failure is waited out.
    Retry { trial: Trial, at: Time },
    /// The trial is measured.
    Probe { trial: Trial },
    /// Between two measurements.
    Settle { trial: Trial, at: Time },
    /// The journal is written to confirm the trial.
    Confirm { trial: Trial },
    /// The confirmed config is brought back; `until` is the end of the time of a change that is rolled back.
    Restore { means: Means, until: Option<Time> },
    /// A failed restore waits for its next attempt.
    RestoreLater { at: Time },
    /// The journal is written after a restore.
    Record,
    /// The restored config is measured.
    ProbeRestored,
    /// The confirmed config is applied because the node drifted.
    Repair,
}

/// The agent's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// What the journal on disk says, as far as known.
    journal: Journal,
    /// Whether the disk may be older than `journal`.
    unsaved: bool,
    /// When the journal is written again, after it could not be, and how often in a row that failed.
    save_at: Time,
    save_failures: u32,
    /// Why the journal could not be written.
    save_error: Option<String>,
    phase: Phase,
    assigned: Option<Assigned>,
    /// What the kernel and FRR run; `None` while that is not known.
    running: Option<Arc<Config>>,
    /// A drift was noticed while something else was under way.
    drifted: bool,
    repairs: Repairs,
    fresh_starts: FreshStarts,
    /// When the node was last compared with its config.
    compared: Time,
    /// When health was last measured.
    measured: Time,
    failures: u32,
    /// How often in a row FRR did not answer at a repair.
    silences: u32,
    /// The config that a user wants to be tried although there is no way back from it.
    forced: Option<String>,
    /// FRR was started anew during the present restore; once is enough.
    frr_restarted: bool,
    outcome: Outcome,
    timings: Option<Timings>,
    counters: Counters,
    /// The latest error of a step, and the checks that the running config fails.
    error: Option<String>,
    unhealthy: Vec<String>,
}

impl Machine {
    /// A machine with the journal as it was found, or an empty one.
    pub fn new(journal: Journal) -> Self {
        Self {
            journal,
            unsaved: false,
            save_at: Time::ZERO,
            save_failures: 0,
            save_error: None,
            phase: Phase::Idle { next: Time::ZERO },
            assigned: None,
            running: None,
            drifted: false,
            repairs: Repairs::default(),
            fresh_starts: FreshStarts::default(),
            compared: Time::ZERO,
            measured: Time::ZERO,
            failures: 0,
            silences: 0,
            forced: None,
            frr_restarted: false,
            outcome: Outcome::default(),
            timings: None,
            counters: Counters::default(),
            error: None,
            unhealthy: Vec::new(),
        }
    }

    /// Takes an event and says what to do next.
    pub fn step(&mut self, event: Event, now: Time) -> Action {
        self.fresh_starts.forget(now);
        match event {
            Event::Started {
                has_objects,
                rebooted,
            } => return self.started(has_objects, rebooted, now),
            Event::Assigned(assigned) => self.assigned = Some(self.with_known_passwords(assigned)),
            Event::Drifted => self.drifted = true,
            Event::Interrupted => return self.interrupted(now),
            Event::Woken => {}
            Event::Saved(outcome) => return self.saved(outcome, now),
            Event::Measured(health) => return self.measured(health, now),
            Event::Applied(outcome) => return self.applied(outcome, now),
        }
        self.proceed(now)
    }

    /// A Secret that cannot be read at the moment closes no session: the password that was confirmed last stays.
    fn with_known_passwords(&self, mut assigned: Assigned) -> Assigned {
        if let Some(confirmed) = &self.journal.confirmed {
            let missing = assigned.config.unresolved();
            let known = confirmed.secrets.iter();
            let known: Vec<_> = known
                .filter(|secret| missing.contains(&secret.reference))
                .cloned()
                .collect();
            if !known.is_empty() {
                Arc::make_mut(&mut assigned.config).secrets.extend(known);
            }
        }
        assigned
    }

    /// Decides while nothing is under way.
    fn proceed(&mut self, now: Time) -> Action {
        match self.phase.clone() {
            Phase::Idle { next } => self.idle(next, now),
            Phase::Retry { trial, .. } | Phase::Settle { trial, .. }
                if self.is_superseded(&trial) =>
            {
                self.supersede(trial, now)
            }
            Phase::BaselineLater { until, at, .. } => self.baseline_later(until, at, now),
            Phase::Retry { trial, at } if now >= at => self.apply(trial, now),
            Phase::Settle { trial, at } if now >= at => self.probe_again(trial, now),
            Phase::RestoreLater { at } => match self.wanted() {
                Some(assigned) => self.begin(assigned, now + BASELINE_PATIENCE),
                None if now >= at => self.restore(Means::LeastChange, None, now),
                None => Action::Wait(at),
            },
            Phase::Retry { at, .. } | Phase::Settle { at, .. } => Action::Wait(at),
            // An action is under way; its outcome comes as an event.
            _ => Action::Wait(now + RESYNC),
        }
    }

    fn started(&mut self, has_objects: bool, rebooted: bool, now: Time) -> Action {
        if let Some(trying) = self.journal.trying.clone() {
            let reason = if rebooted {
                "the node was rebooted before the config was confirmed"
            } else {
                "the agent ended before the config was confirmed"
            };
            self.reject(trying.fingerprint(), reason.to_owned());
            return self.restore(Means::LeastChange, None, now);
        }
        if self.journal.confirmed.is_some() {
            return self.restore(Means::LeastChange, None, now);
        }
        self.journal.adopted = has_objects;
        self.phase = Phase::Idle { next: now };
        self.idle(now, now)
    }

    fn idle(&mut self, next: Time, now: Time) -> Action {
        let may_save = now >= self.save_at;
        if let Some(assigned) = self.wanted().filter(|_| may_save) {
            return self.begin(assigned, now + BASELINE_PATIENCE);
        }
        if self.unsaved && may_save && now >= next {
            self.phase = Phase::Record;
            return Action::Save(self.journal.clone());
        }
        let put_off = self.repairs.put_off(now);
        let earliest = if put_off.is_empty() {
            now
        } else {
            self.compared + LOOK
        };
        let due = if self.drifted {
            earliest
        } else {
            next.max(earliest)
        };
        if let Some(confirmed) = self.journal.confirmed.clone().filter(|_| now >= due) {
            self.drifted = false;
            self.compared = now;
            self.phase = Phase::Repair;
            return Action::Apply {
                config: confirmed,
                means: Means::LeastChange,
                purpose: Purpose::Repair { put_off },
                limit: None,
            };
        }
        let mut until = if due > now { due } else { now + RESYNC };
        if !may_save {
            until = until.min(self.save_at);
        }
        self.phase = Phase::Idle {
            next: next.max(now),
        };
        Action::Wait(until)
    }

    /// The config to be tried: what was assigned, unless it runs, cannot be used, or was rolled back.
    fn wanted(&mut self) -> Option<Assigned> {
        let assigned = self.assigned.clone().filter(Assigned::is_usable)?;
        let fingerprint = assigned.config.fingerprint();
        let confirmed = self.journal.confirmed.clone();
        if let Some(confirmed) = confirmed.filter(|it| it.fingerprint() == fingerprint) {
            if *confirmed != *assigned.config {
                // The same content under another name: there is nothing to try.
                self.journal.confirmed = Some(Arc::clone(&assigned.config));
                if self.running.as_ref() == Some(&confirmed) {
                    self.running = Some(Arc::clone(&assigned.config));
                }
                // A number alone, as every change of the host's router brings one, is not worth a write.
                self.unsaved |= !confirmed.is_but_for_generation(&assigned.config);
            }
            return None;
        }
        let is_retry = assigned.retry.is_some() && assigned.retry != self.journal.retried;
        if is_retry {
            // Not at the first attempt: the annotation may be an old one, which a lost journal knew.
            let is_known = self.journal.rejection(&fingerprint).is_some();
            self.forced = is_known.then(|| fingerprint.clone());
            self.journal.retried.clone_from(&assigned.retry);
            self.journal.accept(&fingerprint);
            self.unsaved = true;
        }
        self.journal
            .rejection(&fingerprint)
            .is_none()
            .then_some(assigned)
    }

    fn saved(&mut self, outcome: Result<(), String>, now: Time) -> Action {
        match (self.phase.clone(), outcome) {
            (Phase::Announce { mut trial }, Ok(())) => {
                self.journal.trying = Some(Arc::clone(&trial.config));
                self.is_saved();
                trial.announced = now;
                self.apply(trial, now)
            }
            (Phase::Announce { .. }, Err(error)) => {
                // If another trial was superseded, it has changed the node already.
                let started = self.journal.trying.is_some();
                // The disk may hold the new journal all the same.
                self.not_saved(&error, now);
                if started {
                    return self.restore(Means::LeastChange, None, now);
                }
                self.rest(now)
            }
            (Phase::Confirm { trial }, Ok(())) => {
                self.journal = confirmed(&self.journal, &trial);
                self.is_saved();
                self.counters.confirmed += 1;
                self.timings = Some(Timings {
                    apply: trial.applied,
                    confirm: now.saturating_sub(trial.announced),
                });
                self.failures = 0;
                self.error = None;
                self.phase = Phase::Idle { next: now + RESYNC };
                self.idle(now + RESYNC, now)
            }
            (Phase::Confirm { trial }, Err(error)) => {
                self.unsaved = true;
                self.not_yet(
                    trial,
                    format!("the journal cannot be written: {error}"),
                    now,
                )
            }
            (Phase::Record, Ok(())) => {
                self.is_saved();
                self.after_record(now)
            }
            (Phase::Record, Err(error)) => {
                self.not_saved(&error, now);
                self.rest(now)
            }
            _ => self.proceed(now),
        }
    }

    fn is_saved(&mut self) {
        self.unsaved = false;
        self.save_failures = 0;
        self.save_error = None;
    }

    /// The next attempt comes after a pause. Comparisons and repairs do not wait for it.
    fn not_saved(&mut self, error: &str, now: Time) {
        self.unsaved = true;
        self.save_error = Some(format!("the journal cannot be written: {error}"));
        self.save_at = now + pause(self.save_failures);
        self.save_failures = self.save_failures.saturating_add(1);
    }

    /// Back to idle; the next comparison comes when it would have come anyway.
    fn rest(&mut self, now: Time) -> Action {
        let next = self.compared + RESYNC;
        self.phase = Phase::Idle { next };
        self.idle(next, now)
    }

    /// A restored config is measured as well: the report says how the node is.
    fn after_record(&mut self, now: Time) -> Action {
        let Some(confirmed) = self.journal.confirmed.clone() else {
            self.phase = Phase::Idle { next: now + RESYNC };
            return self.idle(now + RESYNC, now);
        };
        self.phase = Phase::ProbeRestored;
        Action::Measure {
            router: Some(Arc::clone(&confirmed)),
            probes: confirmed,
            limit: None,
        }
    }

    fn reject(&mut self, fingerprint: String, reason: String) {
        self.journal.reject(Rejected {
            fingerprint,
            reason,
        });
        self.unsaved = true;
    }

    /// Brings back the confirmed config; without one, the node as it was before Selvedge.
    ///
    /// One by least change leaves time for a fresh FRR.
    fn restore(&mut self, means: Means, until: Option<Time>, now: Time) -> Action {
        let limit = until.map(|until| match (until.saturating_sub(now), means) {
            (left, Means::LeastChange) => (left / 3).max(LEAST_RETURN),
            (left, Means::FreshFrr) => left.max(2 * LEAST_RETURN),
        });
        self.running = None;
        self.frr_restarted |= means == Means::FreshFrr;
        let config = match &self.journal.confirmed {
            Some(config) => Arc::clone(config),
            None if self.journal.adopted => {
                // What ran before is not known; to take everything away would be worse than to leave it.
                return self.record();
            }
            None => Arc::new(Config::empty()),
        };
        self.phase = Phase::Restore { means, until };
        Action::Apply {
            config,
            means,
            purpose: Purpose::Keep,
            limit,
        }
    }

    fn record(&mut self) -> Action {
        self.journal.trying = None;
        self.phase = Phase::Record;
        Action::Save(self.journal.clone())
    }

    fn applied(&mut self, outcome: Result<Outcome, Fault>, now: Time) -> Action {
        self.counters.failed += u64::from(outcome.is_err());
        match (self.phase.clone(), outcome) {
            (Phase::Apply { mut trial }, Ok(outcome)) => {
                self.outcome = outcome;
                self.running = Some(Arc::clone(&trial.config));
                trial.applied = now.saturating_sub(trial.announced);
                trial.give_up = give_up(&trial, now);
                self.probe(trial, now)
            }
            (Phase::Apply { trial }, Err(fault)) => self.trial_failed(trial, fault, now),
            (Phase::Restore { .. }, Ok(outcome)) => {
                self.counters.restored += 1;
                self.outcome = outcome;
                self.failures = 0;
                self.frr_restarted = false;
                self.error = None;
                self.running = self.journal.confirmed.clone();
                self.record()
            }
            (Phase::Restore { means, until }, Err(fault)) => {
                self.error = Some(format!("restore failed: {}", fault.message));
                let helps = means == Means::LeastChange
                    && match fault.frr {
                        // Where a change is taken back, its deadline is the limit.
                        FrrFault::Silent => until.is_some() || self.fresh_starts.begin(now),
                        FrrFault::Refused => !self.frr_restarted,
                        FrrFault::None => false,
                    };
                if helps {
                    return self.restore(Means::FreshFrr, until, now);
                }
                let at = now + self.next_pause();
                self.phase = Phase::RestoreLater { at };
                self.proceed(now)
            }
            (Phase::Repair, Ok(outcome)) => {
                self.counters.repaired += u64::from(!outcome.changes.is_empty());
                self.repairs.add(outcome.changes.clone(), now);
                self.failures = 0;
                self.silences = 0;
                self.error = None;
                let mut next = now + RESYNC;
                if outcome.put_off {
                    next = self.repairs.next_due(now).map_or(next, |due| due.min(next));
                } else {
                    self.running = self.journal.confirmed.clone();
                    self.outcome = outcome;
                }
                self.phase = Phase::Idle { next };
                self.idle(next, now)
            }
            (Phase::Repair, Err(fault)) => {
                self.error = Some(fault.message);
                self.running = None;
                self.silences = match fault.frr {
                    FrrFault::Silent => self.silences.saturating_add(1),
                    FrrFault::None | FrrFault::Refused => 0,
                };
                if self.silences >= SILENCES && self.fresh_starts.begin(now) {
                    self.silences = 0;
                    return self.restore(Means::FreshFrr, None, now);
                }
                self.pause(now)
            }
            _ => self.proceed(now),
        }
    }

    /// A trial was not applied: it is attempted again while there is time, else it is rolled back.
    fn trial_failed(&mut self, mut trial: Trial, fault: Fault, now: Time) -> Action {
        self.error = Some(fault.message.clone());
        // FRR does not start to answer by itself: the next attempt has a fresh FRR, if there is time for it and for the way back.
        let (means, takes) = match fault.frr {
            FrrFault::Silent => (Means::FreshFrr, FRESH_FRR),
            FrrFault::None | FrrFault::Refused => (Means::LeastChange, Duration::ZERO),
        };
        let is_hopeless =
            fault.permanent || (fault.frr == FrrFault::Silent && trial.means == Means::FreshFrr);
        if is_hopeless || now + RETRY + takes >= last_retry(&trial, now) {
            return self.take_back(&trial, fault.message, means, now);
        }
        trial.problem = Some(fault.message);
        trial.means = means;
        self.phase = Phase::Retry {
            trial,
            at: now + RETRY,
        };
        self.proceed(now)
    }

    /// Back to idle, with a pause that grows with each failure in a row.
    fn pause(&mut self, now: Time) -> Action {
        let next = now + self.next_pause();
        self.drifted = false;
        self.phase = Phase::Idle { next };
        Action::Wait(next)
    }

    fn next_pause(&mut self) -> Duration {
        let pause = pause(self.failures);
        self.failures = self.failures.saturating_add(1);
        pause
    }
}

/// The pause after so many failures in a row.
fn pause(failures: u32) -> Duration {
    (RETRY * 2_u32.saturating_pow(failures.min(16))).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests;
