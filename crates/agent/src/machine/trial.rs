//! A config on trial: announced in the journal, applied, measured, confirmed or taken back.

use std::{sync::Arc, time::Duration};

use super::{Action, Machine, Means, PROBE_INTERVAL, Phase, RESYNC, SETTLE, Told, Trial};
use crate::{
    config::{Config, Time},
    health::{self, Health},
    journal::Journal,
};

impl Machine {
    pub(super) fn is_superseded(&mut self, trial: &Trial) -> bool {
        let Some(told) = self.told.clone().filter(Told::is_usable) else {
            return false;
        };
        let fingerprint = told.config.fingerprint();
        fingerprint != trial.fingerprint && self.journal.rejection(&fingerprint).is_none()
    }

    /// Goes on with a newer config. The baseline stays the one before the first change.
    pub(super) fn supersede(&mut self, trial: Trial, now: Time) -> Action {
        let Some(told) = self.told.clone() else {
            return self.apply(trial);
        };
        let confirmed = self.journal.confirmed.as_ref();
        if confirmed.is_some_and(|it| it.fingerprint() == told.config.fingerprint()) {
            return self.restore(Means::LeastChange);
        }
        self.announce(told.config, trial.baseline, now)
    }

    pub(super) fn announce(&mut self, config: Arc<Config>, baseline: Health, now: Time) -> Action {
        let trial = Trial {
            fingerprint: config.fingerprint(),
            deadline: now + confirm_deadline(&config),
            announced: now,
            applied: Duration::ZERO,
            config: Arc::clone(&config),
            baseline,
            healthy_since: None,
            problem: None,
        };
        self.phase = Phase::Announce { trial };
        let journal = Journal {
            trying: Some(config),
            ..self.journal.clone()
        };
        Action::Save(journal)
    }

    pub(super) fn apply(&mut self, trial: Trial) -> Action {
        let config = Arc::clone(&trial.config);
        self.running = None;
        self.phase = Phase::Apply { trial };
        Action::Apply {
            config,
            means: Means::LeastChange,
        }
    }

    pub(super) fn probe(&mut self, trial: Trial) -> Action {
        let config = Arc::clone(&trial.config);
        self.phase = Phase::Probe { trial };
        Action::Measure {
            router: Some(Arc::clone(&config)),
            probes: config,
        }
    }

    pub(super) fn measured(&mut self, health: Health, now: Time) -> Action {
        match self.phase.clone() {
            Phase::Baseline { config } => self.announce(config, health, now),
            Phase::Probe { mut trial } => {
                let worse = health::regressions(&trial.baseline, &health);
                self.unhealthy = health.failures().collect();
                if !worse.is_empty() {
                    trial.healthy_since = None;
                    return self.not_yet(trial, worse.join("; "), now);
                }
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
            _ => self.proceed(now),
        }
    }

    /// The trial is not confirmed yet: it is looked at again, or taken back.
    pub(super) fn not_yet(&mut self, mut trial: Trial, problem: String, now: Time) -> Action {
        self.error = Some(problem.clone());
        if now >= trial.deadline && !self.is_superseded(&trial) {
            return self.take_back(&trial, problem);
        }
        trial.problem = Some(problem);
        self.phase = Phase::Settle {
            trial,
            at: now + PROBE_INTERVAL,
        };
        self.proceed(now)
    }

    pub(super) fn take_back(&mut self, trial: &Trial, reason: String) -> Action {
        self.counters.taken_back += 1;
        self.reject(trial.fingerprint.clone(), reason);
        self.restore(Means::LeastChange)
    }
}

/// The journal in which the trial is confirmed.
pub(super) fn confirmed(journal: &Journal, trial: &Trial) -> Journal {
    let mut journal = Journal {
        confirmed: Some(Arc::clone(&trial.config)),
        trying: None,
        adopted: false,
        ..journal.clone()
    };
    journal.accept(&trial.fingerprint);
    journal
}

pub(super) fn confirm_deadline(config: &Config) -> Duration {
    Duration::from_secs(config.spec.health.confirm_deadline.get().into())
}
