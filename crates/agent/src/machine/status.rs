//! What the machine says about itself.

use std::{sync::Arc, time::Duration};

use api::tcaas::node_network_config::UnattachedPort;

use super::{Machine, Phase};
use crate::config::Config;

/// How far the node is with what it was assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing was assigned yet.
    Unassigned,
    /// The assigned config is being tried.
    Trying,
    /// The assigned config is confirmed and runs.
    Confirmed,
    /// The assigned config cannot be used or was rolled back.
    Rejected,
    /// The confirmed config is being brought back, or could not be brought back yet.
    Restoring,
    /// The assigned config is not tried, because the node is held.
    Held,
}

/// How often something happened since the agent started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Configs that were confirmed by health.
    pub confirmed: u64,
    /// Configs that were rolled back.
    pub taken_back: u64,
    /// Restores of the confirmed config that succeeded.
    pub restored: u64,
    /// Repairs of drift.
    pub repaired: u64,
    /// Applies that failed.
    pub failed: u64,
}

/// How long the config that was confirmed last has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timings {
    /// From the journal to an applied and verified config.
    pub apply: Duration,
    /// From the journal to the confirmation.
    pub confirm: Duration,
}

/// Repairs that were needed lately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// How often the node was repaired within the last minutes.
    pub repairs: usize,
    /// The difference that keeps coming back, so that its next repair is put off.
    pub backed_off: Option<String>,
}

/// What the node reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// How far the node is.
    pub state: State,
    /// What the node was assigned.
    pub assigned: Option<Arc<Config>>,
    /// What kernel and FRR run; `None` while that is not known.
    pub running: Option<Arc<Config>>,
    /// What was confirmed last.
    pub confirmed: Option<Arc<Config>>,
    /// Why the assigned config does not run, or what fails at the moment.
    pub error: Option<String>,
    /// What the node cannot do of the running config.
    pub notes: Vec<String>,
    /// Ports that are not attached to their bridge.
    pub unattached: Vec<UnattachedPort>,
    /// Mirrors that could not be set up.
    pub mirror_failures: Vec<String>,
    /// Checks that the running config fails, also where they failed before.
    pub unhealthy: Vec<String>,
    /// Repairs that were needed lately, if any.
    pub drift: Option<Drift>,
    /// Why the node is held, if it is.
    pub hold: Option<String>,
    /// How long the last confirmed config has taken; unknown after a restart of the agent.
    pub timings: Option<Timings>,
    /// How often something happened.
    pub counters: Counters,
}

impl Machine {
    /// The state as it is to be reported.
    pub fn status(&self) -> Status {
        let assigned = self.assigned.as_ref();
        let drift = Drift {
            repairs: self.repairs.count(),
            backed_off: self.repairs.worst(),
        };
        Status {
            state: self.state(),
            assigned: assigned.map(|assigned| Arc::clone(&assigned.config)),
            running: self.running.clone(),
            confirmed: self.journal.confirmed.clone(),
            error: self.reason(),
            notes: self.notes(),
            unattached: self.outcome.unattached.clone(),
            mirror_failures: self.outcome.mirror_failures.clone(),
            unhealthy: self.unhealthy.clone(),
            drift: (drift.repairs > 0).then_some(drift),
            hold: assigned.and_then(|assigned| assigned.hold.clone()),
            timings: self.timings,
            counters: self.counters,
        }
    }

    /// What the node lacks: by the last apply, and Secrets that cannot be read.
    fn notes(&self) -> Vec<String> {
        let unread = self
            .assigned
            .iter()
            .flat_map(|assigned| assigned.unread.values());
        let unread = unread.map(|why| format!("{why}; the last known password is kept, if any"));
        let notes = self.outcome.notes.iter().cloned();
        notes
            .chain(unread)
            .chain(self.fresh_starts.note())
            .collect()
    }

    /// Whether nothing is under way: the agent may end without leaving anything half done.
    pub fn is_at_rest(&self) -> bool {
        matches!(self.phase, Phase::Idle { .. } | Phase::RestoreLater { .. })
    }

    /// Whether the confirmed config could not be brought back yet.
    pub fn is_returning(&self) -> bool {
        matches!(self.phase, Phase::RestoreLater { .. })
    }

    /// Whether a config is being tried.
    fn is_under_way(&self) -> bool {
        match self.phase {
            Phase::Baseline { .. }
            | Phase::BaselineLater { .. }
            | Phase::Announce { .. }
            | Phase::Apply { .. }
            | Phase::Retry { .. }
            | Phase::Probe { .. }
            | Phase::Settle { .. }
            | Phase::Confirm { .. } => true,
            Phase::Idle { .. }
            | Phase::Restore { .. }
            | Phase::RestoreLater { .. }
            | Phase::Record
            | Phase::ProbeRestored
            | Phase::Repair => false,
        }
    }

    fn state(&self) -> State {
        let is_restoring = matches!(
            self.phase,
            Phase::Restore { .. } | Phase::RestoreLater { .. }
        );
        if is_restoring {
            return State::Restoring;
        }
        let Some(assigned) = &self.assigned else {
            return State::Unassigned;
        };
        let fingerprint = assigned.config.fingerprint();
        let confirmed = self.journal.confirmed.as_ref();
        if assigned.refusal.is_some() || self.journal.rejection(&fingerprint).is_some() {
            State::Rejected
        } else if confirmed.is_some_and(|it| it.fingerprint() == fingerprint) {
            State::Confirmed
        } else if assigned.hold.is_some() && !self.is_under_way() {
            State::Held
        } else {
            State::Trying
        }
    }

    fn reason(&self) -> Option<String> {
        let refused = self.assigned.as_ref().and_then(|assigned| {
            let rejected = || self.journal.rejection(&assigned.config.fingerprint());
            assigned.refusal.as_deref().or_else(rejected)
        });
        let error = self.error.as_ref().or(self.save_error.as_ref());
        match (refused, error) {
            (Some(refused), Some(error)) if refused != error => Some(format!("{refused}; {error}")),
            (Some(refused), _) => Some(refused.to_owned()),
            (None, error) => error.cloned(),
        }
    }
}
