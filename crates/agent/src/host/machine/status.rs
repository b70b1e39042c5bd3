//! What the machine says about itself.

use std::sync::Arc;

use super::Machine;
use crate::host::HostConfig;

/// How often something happened since the agent started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Configs that were applied.
    pub(crate) applied: u64,
    /// Configs that were rolled back.
    pub(crate) taken_back: u64,
    /// Repairs of drift.
    pub(crate) repaired: u64,
    /// Applies that failed.
    pub(crate) failed: u64,
}

/// What is reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    /// What FRR runs; absent while that is not known.
    pub(crate) running: Option<Arc<HostConfig>>,
    /// What was assigned.
    pub(crate) assigned: Option<Arc<HostConfig>>,
    /// Why what was assigned does not run.
    pub(crate) error: Option<String>,
    /// How often something happened.
    pub(crate) counters: Counters,
}

impl Machine {
    /// The state as it is to be reported.
    pub(crate) fn status(&self) -> Status {
        let assigned = self.assigned.as_ref();
        let refused = assigned.and_then(|assigned| {
            let rejected = || self.rejection(&assigned.config).map(taken_back);
            assigned.refusal.clone().or_else(rejected)
        });
        let unread = assigned.and_then(|assigned| {
            let why = assigned.unread.join("; ");
            (!why.is_empty()).then(|| format!("{why}; the last known password is kept, if any"))
        });
        let errors = [refused, self.error.clone(), unread];
        let errors: Vec<String> = errors.into_iter().flatten().collect();
        Status {
            running: self.running.clone(),
            assigned: assigned.map(|assigned| Arc::clone(&assigned.config)),
            error: (!errors.is_empty()).then(|| errors.join("; ")),
            counters: self.counters,
        }
    }
}

fn taken_back(why: &str) -> String {
    format!("the change was taken back: {why}")
}
