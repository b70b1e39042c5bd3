//! The host's router without a cluster: applied once, looked at, and ended.

use std::sync::Arc;

use super::{Assigned, Router, Store, apply::Limits, machine::Stored};
use crate::{daemons::Paths, reconcile::Failure, report};

/// What was done.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// In words; nothing if there was nothing to do.
    pub(crate) changes: Option<String>,
    /// What of the config is not in effect.
    pub(crate) notes: Vec<String>,
}

/// Applies a config and keeps it as the good one; if FRR does not take it, the good one before is brought back.
pub(crate) async fn apply(assigned: &Assigned, paths: &Paths) -> Result<Done, Failure> {
    let router = Router::new(paths, false);
    let store = Store::new(&paths.state, &boot_id());
    let (stored, _) = store.load();
    let outcome = match router.apply(&assigned.config, false).await {
        Ok(outcome) => outcome,
        Err(failure) => {
            if let Err(again) = router.apply(&stored.good, false).await {
                tracing::error!(
                    error = report::chain(&again),
                    "the host's router is not brought back"
                );
            }
            return Err(failure);
        }
    };
    let latest = Stored {
        good: Arc::clone(&assigned.config),
        ..Stored::default()
    };
    if latest.is_nothing() {
        store.remove().map_err(Failure::Remember)?;
    } else if latest != stored {
        store.save(&latest).map_err(Failure::Remember)?;
    }
    let applied = outcome.applied;
    let is_nothing = applied.is_nothing() && applied.changes.is_empty();
    Ok(Done {
        changes: (!is_nothing).then(|| format!("host's router: {}", words(&applied))),
        notes: notes(outcome.limits),
    })
}

fn words(applied: &crate::reconcile::Applied) -> String {
    if applied.is_nothing() {
        let changes: Vec<&str> = applied.changes.iter().map(String::as_str).collect();
        return changes.join(", ");
    }
    applied.to_string()
}

fn notes(limits: Limits) -> Vec<String> {
    let Limits {
        unsupported,
        refused_raw,
        held_back,
        needs: _,
        rejected: _,
    } = limits;
    let unsupported = unsupported.into_iter().map(|it| it.message);
    let refused = refused_raw
        .into_iter()
        .map(|it| format!("{} line {}: {}", it.source, it.line, it.message));
    held_back
        .into_iter()
        .chain(unsupported)
        .chain(refused)
        .collect()
}

/// What an apply would do, a line for each difference.
pub(crate) async fn preview(assigned: &Assigned, paths: &Paths) -> Result<Vec<String>, Failure> {
    Router::new(paths, true).preview(&assigned.config).await
}

/// Ends FRR of the host and removes everything of it.
pub(crate) async fn remove(paths: &Paths) -> Result<Option<String>, Failure> {
    let none = super::HostConfig::default();
    let outcome = Router::new(paths, false).apply(&none, false).await?;
    Store::new(&paths.state, "")
        .remove()
        .map_err(Failure::Remember)?;
    let changes: Vec<String> = outcome.applied.changes.into_iter().collect();
    Ok((!changes.is_empty()).then(|| changes.join(", ")))
}

fn boot_id() -> String {
    crate::journal::Store::boot_id().unwrap_or_default()
}
