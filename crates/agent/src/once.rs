//! Work without a cluster: one config from a file, a preview, and giving a node back.

use std::sync::Arc;

use api::tcaas::{NodeNetworkConfigSpec, node_network_config::CONTRACT_VERSION};

use crate::{
    config::Config,
    daemons::{self, Paths},
    file, host,
    journal::{self, Store},
    lock::{self, Lock},
    machine::{Action, Assigned, Event, Means, Purpose, State},
    node::{Node, OpenError},
    patience::Patience,
    reconcile::{Failure, Reconciler},
    report,
};

/// What is said when there was nothing to do.
const NOTHING: &str = "nothing to do";

/// Why a config from a file could not be brought onto the node.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another agent works on this node.
    #[error("cannot change this node")]
    Locked(#[from] lock::Error),
    /// The node cannot be worked on.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The node cannot be looked at or changed.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// The journal could not be removed.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// The config was rolled back, and why.
    #[error("{0}")]
    TakenBack(String),
    /// The config was rolled back, and each attempt to restore the confirmed one failed.
    #[error("{0}; the node is between two configs: start the agent, or run the same command again")]
    Between(String),
}

/// What became of a config from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// What was changed.
    pub changes: String,
    /// What this node cannot give.
    pub notes: Vec<String>,
}

/// How often a rollback that fails is attempted again before the command ends.
const RETURNS: usize = 5;

/// Applies a config as the daemon would, with journal and confirmation, and exits when it is confirmed or rolled back. When `stop` is
/// done before that, it is rolled back.
pub async fn apply(
    spec: NodeNetworkConfigSpec,
    paths: Paths,
    namespace: &str,
    stop: impl Future<Output = ()>,
) -> Result<Done, Error> {
    let _lock = Lock::take(&paths.runtime)?;
    let refusal = refusal(&spec);
    let (rest, host) = host::split(Assigned {
        refusal: refusal.clone(),
        // The user who runs the command wants it to be tried.
        retry: Some(format!("{:?}", std::time::SystemTime::now())),
        ..Assigned::new(Arc::new(Config {
            spec,
            ..Config::empty()
        }))
    });
    let mut done = apply_rest(Event::Assigned(rest), &paths, namespace, stop).await?;
    if refusal.is_none() {
        let of_host = host::once::apply(&host, &paths).await?;
        done.notes.extend(of_host.notes);
        if let Some(changes) = of_host.changes {
            let is_all = done.changes == NOTHING;
            done.changes = if is_all {
                changes
            } else {
                format!("{}; {changes}", done.changes)
            };
        }
    }
    Ok(done)
}

/// Everything but the host's router.
async fn apply_rest(
    assigned: Event,
    paths: &Paths,
    namespace: &str,
    stop: impl Future<Output = ()>,
) -> Result<Done, Error> {
    let reconciler = Reconciler::open(paths, namespace, false)?;
    let (mut node, started) = Node::open(reconciler, None).await?;
    let mut action = node.step(started);
    let mut pending = Some(assigned);
    let mut changes: Option<String> = None;
    let mut stop = std::pin::pin!(stop);
    let (mut is_stopped, mut returns) = (false, RETURNS);
    loop {
        if let Some(event) = node.perform(&action).await {
            if matches!(action, Action::Apply { .. }) && pending.is_none() {
                changes = changes.or_else(|| node.last_apply.clone());
            }
            action = node.step(event);
            continue;
        }
        let Action::Wait(until) = action else {
            continue;
        };
        if node.machine().is_at_rest() {
            match pending.take().filter(|_| !is_stopped) {
                Some(assigned) => {
                    action = node.step(assigned);
                    continue;
                }
                // Between two configs, and no agent runs that would restore the node.
                None if node.machine().is_returning() && returns > 0 => returns -= 1,
                None => break,
            }
        }
        let left = until.saturating_sub(node.now());
        let event = tokio::select! {
            () = &mut stop, if !is_stopped => {
                is_stopped = true;
                Event::Interrupted
            }
            () = tokio::time::sleep(left) => Event::Woken,
        };
        action = node.step(event);
    }
    let status = node.machine().status();
    if status.state == State::Confirmed {
        // The same config again: what was there to repair was repaired at the start.
        let changes = changes.or(node.last_apply).unwrap_or_default();
        return Ok(Done {
            changes,
            notes: status.notes,
        });
    }
    let why = status.error.unwrap_or_else(|| "not confirmed".to_owned());
    if node.machine().is_returning() {
        return Err(Error::Between(why));
    }
    Err(Error::TakenBack(why))
}

/// What an apply would do. It needs no lock: nothing is changed.
pub async fn preview(
    spec: NodeNetworkConfigSpec,
    paths: Paths,
    namespace: &str,
) -> Result<String, Error> {
    let config = Config {
        spec,
        ..Config::empty()
    };
    let (rest, host) = host::split(Assigned::new(Arc::new(config)));
    let reconciler = Reconciler::open(&paths, namespace, true)?;
    let of_rest = reconciler.preview(&rest.config).await?;
    let of_host = host::once::preview(&host, &paths).await?.join("\n");
    Ok(match (of_rest.as_str(), of_host.as_str()) {
        (_, "") => of_rest,
        (NOTHING, _) => of_host,
        _ => format!("{of_rest}\n{of_host}"),
    })
}

/// Gives the node back: FRR stopped, NICs returned, nothing of Selvedge left, the journal removed. What could not be given back is
/// a note, and is stored for another attempt.
pub async fn cleanup(paths: Paths, namespace: &str) -> Result<Done, Error> {
    let _lock = Lock::take(&paths.runtime)?;
    let store = Store::new(&paths.state, "").with_copy_in(&paths.runtime);
    let reconciler = Reconciler::open(&paths, namespace, false)?;
    let frr_conf = reconciler.frr().instance().frr_conf();
    let empty = Config::empty();
    let patience = Patience::new(&empty, None);
    let applied = reconciler
        .reconcile(&empty, Means::LeastChange, &Purpose::Keep, patience)
        .await?;
    store.remove()?;
    file::remove(&frr_conf).map_err(journal::Error::File)?;
    let of_host = host::once::remove(&paths).await?;
    let mut changes = applied.to_string();
    changes.extend(
        of_host
            .into_iter()
            .flat_map(|of_host| ["; ".to_owned(), of_host]),
    );
    let mut notes = applied.notes;
    let removed = daemons::remove(reconciler.frr().instance(), patience).await;
    let token = file::remove(&paths.token());
    notes.extend(removed.err().map(|error| report::chain(&error)));
    notes.extend(token.err().map(|error| report::chain(&error)));
    Ok(Done { changes, notes })
}

/// Why this version cannot use a config, if it cannot.
pub(crate) fn refusal(spec: &NodeNetworkConfigSpec) -> Option<String> {
    let version = spec.contract_version;
    (version > CONTRACT_VERSION).then(|| {
        format!(
            "the config is written in contract version {version}; this agent reads up to {CONTRACT_VERSION}; configuration unchanged"
        )
    })
}
