//! A config on trial: announced in the journal, applied, measured, confirmed or taken back.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use super::{
    Action, Assigned, CHECKUP, FRESH_FRR, LEAST_PROBE, Machine, Means, PROBE_INTERVAL, Phase,
    Purpose, RESYNC, RETURN_MARGIN, SETTLE, Trial,
};
use crate::{
    config::{Config, Time},
    health::{self, Health},
    journal::Journal,
};

impl Machine {
    pub(super) fn is_superseded(&mut self, trial: &Trial) -> bool {
        let Some(assigned) = self.assigned.clone().filter(Assigned::is_usable) else {
            return false;
        };
        let fingerprint = assigned.config.fingerprint();
        fingerprint != trial.fingerprint && self.journal.rejection(&fingerprint).is_none()
    }

    /// Goes on with a newer config. The baseline stays the one before the first change.
    pub(super) fn supersede(&mut self, trial: Trial, now: Time) -> Action {
        let Some(assigned) = self.assigned.clone() else {
            return self.apply(trial, now);
        };
        let confirmed = self.journal.confirmed.as_ref();
        if confirmed.is_some_and(|it| it.fingerprint() == assigned.config.fingerprint()) {
            return self.restore(Means::LeastChange, None, now);
        }
        self.announce(assigned.config, trial.baseline, now)
    }

    /// Begins a trial with a look at how the node is.
    pub(super) fn begin(&mut self, assigned: Assigned, until: Time) -> Action {
        let config = assigned.config;
        self.error = None;
        self.phase = Phase::Baseline {
            config: Arc::clone(&config),
            until,
        };
        Action::Measure {
            router: self.journal.confirmed.clone(),
            probes: config,
            limit: None,
        }
    }

    /// Goes on with the baseline, for what is wanted by now.
    pub(super) fn baseline_later(&mut self, until: Time, at: Time, now: Time) -> Action {
        match self.wanted() {
            Some(assigned) if now >= at => self.begin(assigned, until),
            Some(_) => Action::Wait(at),
            None => self.rest(now),
        }
    }

    /// The baseline of a change, if it is no worse than it was when the running config was confirmed. It is measured again for a while.
    fn baseline(&mut self, config: Arc<Config>, until: Time, health: Health, now: Time) -> Action {
        if now >= until || !health.fails_any_of(&self.journal.passed) {
            return self.announce(config, health, now);
        }
        let at = (now + PROBE_INTERVAL).min(until);
        self.phase = Phase::BaselineLater { config, until, at };
        self.proceed(now)
    }

    pub(super) fn announce(&mut self, config: Arc<Config>, baseline: Health, now: Time) -> Action {
        let trial = Trial {
            fingerprint: config.fingerprint(),
            announced: now,
            began: now,
            applied: Duration::ZERO,
            give_up: now + confirm_deadline(&config),
            means: Means::LeastChange,
            config: Arc::clone(&config),
            baseline,
            healthy_since: None,
            passed: BTreeSet::new(),
            problem: None,
        };
        self.phase = Phase::Announce { trial };
        let journal = Journal {
            trying: Some(config),
            ..self.journal.clone()
        };
        Action::Save(journal)
    }

    pub(super) fn apply(&mut self, mut trial: Trial, now: Time) -> Action {
        let config = Arc::clone(&trial.config);
        let has_no_way_back = self.journal.confirmed.is_none() && self.journal.adopted;
        let is_forced = self.forced.as_ref() == Some(&trial.fingerprint);
        let purpose = if has_no_way_back && !is_forced {
            Purpose::Adopt
        } else {
            let new_nics = self.new_nics(&config);
            Purpose::Try { new_nics }
        };
        let means = trial.means;
        trial.began = now;
        let limit = last_retry(&trial, now).saturating_sub(now);
        self.running = None;
        self.phase = Phase::Apply { trial };
        Action::Apply {
            config,
            means,
            purpose,
            limit: Some(limit),
        }
    }

    /// The uplinks of a config that the confirmed one does not have. One that it has may have failed since: that must not hold back a
    /// fix.
    fn new_nics(&self, config: &Config) -> Vec<String> {
        let confirmed = self.journal.confirmed.as_deref();
        let known: Vec<&str> = confirmed.into_iter().flat_map(Config::nics).collect();
        let new = config.nics().filter(|name| !known.contains(name));
        new.map(str::to_owned).collect()
    }

    /// Measures once more, unless the time for it is over. A config that is healthy is not taken back for being late.
    pub(super) fn probe_again(&mut self, trial: Trial, now: Time) -> Action {
        match trial.problem.clone() {
            Some(problem) if now >= trial.give_up => {
                self.take_back(&trial, problem, Means::LeastChange, now)
            }
            Some(_) | None => self.probe(trial, now),
        }
    }

    pub(super) fn probe(&mut self, trial: Trial, now: Time) -> Action {
        let config = Arc::clone(&trial.config);
        let limit = trial.give_up.saturating_sub(now).max(LEAST_PROBE);
        self.phase = Phase::Probe { trial };
        Action::Measure {
            router: Some(Arc::clone(&config)),
            probes: config,
            limit: Some(limit),
        }
    }

    /// The config of a node at rest whose health is to be measured, and when. Nothing waits for that: whatever else happens comes
    /// first.
    pub fn checkup(&self) -> Option<(Arc<Config>, Time)> {
        let is_idle = matches!(self.phase, Phase::Idle { .. });
        let confirmed = self.journal.confirmed.as_ref().filter(|_| is_idle)?;
        Some((Arc::clone(confirmed), self.measured + CHECKUP))
    }

    pub(super) fn measured(&mut self, health: Health, now: Time) -> Action {
        self.measured = now;
        match self.phase.clone() {
            Phase::Baseline { config, until } => self.baseline(config, until, health, now),
            Phase::Probe { mut trial } => {
                let worse = health::regressions(&trial.baseline, &health);
                self.unhealthy = health.failures().collect();
                trial.passed = health.passed();
                if !worse.is_empty() {
                    trial.healthy_since = None;
                    return self.not_yet(trial, worse.join("; "), now);
                }
                trial.problem = None;
                let since = *trial.healthy_since.get_or_insert(now);
                if now < since + SETTLE {
                    self.phase = Phase::Settle {
                        trial,
                        at: now + PROBE_INTERVAL,
                    };
                    return self.proceed(now);
                }
                let journal = confirmed(&self.journal, &trial);
                self.phase = Phase::Confirm { trial };
                Action::Save(journal)
            }
            Phase::ProbeRestored => {
                self.unhealthy = health.failures().collect();
                self.phase = Phase::Idle { next: now + RESYNC };
                self.idle(now + RESYNC, now)
            }
            Phase::Idle { next } => {
                self.unhealthy = health.failures().collect();
                self.idle(next, now)
            }
            _ => self.proceed(now),
        }
    }

    /// The trial is not confirmed yet: it is looked at again, or taken back.
    pub(super) fn not_yet(&mut self, mut trial: Trial, problem: String, now: Time) -> Action {
        self.error = Some(problem.clone());
        if now >= trial.give_up && !self.is_superseded(&trial) {
            return self.take_back(&trial, problem, Means::LeastChange, now);
        }
        trial.problem = Some(problem);
        let at = (now + PROBE_INTERVAL).min(trial.give_up);
        self.phase = Phase::Settle { trial, at };
        self.proceed(now)
    }

    /// Takes back the config that is being tried. What is under way is brought to its end first: the event is for a machine that waits.
    pub(super) fn interrupted(&mut self, now: Time) -> Action {
        let reason = "interrupted before the config was confirmed".to_owned();
        match self.phase.clone() {
            Phase::BaselineLater { config, .. } => {
                self.reject(config.fingerprint(), reason);
                self.rest(now)
            }
            Phase::Retry { trial, .. } | Phase::Settle { trial, .. } => {
                self.take_back(&trial, reason, Means::LeastChange, now)
            }
            _ => self.proceed(now),
        }
    }

    pub(super) fn take_back(
        &mut self,
        trial: &Trial,
        reason: String,
        means: Means,
        now: Time,
    ) -> Action {
        self.counters.taken_back += 1;
        self.frr_restarted = false;
        self.reject(trial.fingerprint.clone(), reason);
        let until = trial.announced + confirm_deadline(&trial.config);
        self.restore(means, Some(until), now)
    }
}

/// The journal in which the trial is confirmed.
pub(super) fn confirmed(journal: &Journal, trial: &Trial) -> Journal {
    let mut journal = Journal {
        confirmed: Some(Arc::clone(&trial.config)),
        passed: trial.passed.clone(),
        trying: None,
        adopted: false,
        ..journal.clone()
    };
    journal.accept(&trial.fingerprint);
    journal
}

/// When an applied trial is rolled back at the latest: early enough that the confirmed config runs again when the deadline is over.
/// An apply that took long still leaves time to become healthy.
pub(super) fn give_up(trial: &Trial, applied: Time) -> Time {
    let least = applied + confirm_deadline(&trial.config) / 4;
    last_retry(trial, applied).max(least)
}

/// When nothing more is tried: a return takes as long as the latest apply did, or as a fresh FRR does.
pub(super) fn last_retry(trial: &Trial, ended: Time) -> Time {
    let deadline = confirm_deadline(&trial.config);
    let way_back = ended.saturating_sub(trial.began) + RETURN_MARGIN;
    let way_back = way_back.max(FRESH_FRR).min(deadline / 2);
    (trial.announced + deadline).saturating_sub(way_back)
}

fn confirm_deadline(config: &Config) -> Duration {
    Duration::from_secs(config.spec.health.confirm_deadline.get().into())
}
