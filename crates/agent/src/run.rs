//! The loop: why it woke, what it applied, what it reported.

use std::time::{Duration, Instant};

use api::tcaas::{NodeNetworkConfig, node_network_config::CONTRACT_VERSION};
use futures::{Stream, StreamExt};
use kube::{
    Api, Client,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event},
    },
};
use tokio::time;

use crate::{Applied, Failure, Paths, Reconciler, report};

/// How often the node is looked at without being told: somebody may have changed it by hand.
const RESYNC: Duration = Duration::from_secs(30);

/// How long to wait after a failed attempt; it doubles each time.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(20);

/// Why the agent ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This node cannot be worked on.
    #[error("failed to open this node")]
    Open(#[source] Failure),
    /// The watch of the node's config ended, which it never should.
    #[error("the watch of NodeNetworkConfig {node} ended")]
    WatchEnded {
        /// The node.
        node: String,
    },
}

/// Why the loop woke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Changed,
    Resync,
    Retry,
}

/// Keeps this node what its config says, until the process ends.
pub async fn run(client: Client, node: &str, paths: Paths, namespace: &str) -> Result<(), Error> {
    let reconciler = Reconciler::open(paths, namespace)
        .await
        .map_err(Error::Open)?;
    let api: Api<NodeNetworkConfig> = Api::all(client);
    let only_mine = watcher::Config::default().fields(&format!("metadata.name={node}"));
    let mut events = std::pin::pin!(watcher::watcher(api.clone(), only_mine).default_backoff());
    let mut state = State {
        reconciler,
        api,
        config: None,
        retry: FIRST_RETRY,
        unreported: false,
    };
    let mut wake = RESYNC;
    loop {
        let reason = match time::timeout(wake, next(&mut events)).await {
            Ok(Some(Some(config))) => {
                if state.is_known(&config) {
                    continue;
                }
                state.config = Some(*config);
                Reason::Changed
            }
            // An event that changes nothing here: the object's deletion changes nothing on its node.
            Ok(Some(None)) => continue,
            Ok(None) => {
                return Err(Error::WatchEnded {
                    node: node.to_owned(),
                });
            }
            Err(_elapsed) if wake == RESYNC => Reason::Resync,
            Err(_elapsed) => Reason::Retry,
        };
        wake = state.turn(reason).await;
    }
}

async fn next(
    events: &mut (impl Stream<Item = watcher::Result<Event<NodeNetworkConfig>>> + Unpin),
) -> Option<Option<Box<NodeNetworkConfig>>> {
    Some(match events.next().await? {
        Ok(Event::Apply(config) | Event::InitApply(config)) => Some(Box::new(config)),
        Ok(Event::Delete(_)) => {
            tracing::warn!("the node's config was deleted; the node keeps what it has");
            None
        }
        Ok(Event::Init | Event::InitDone) => None,
        Err(error) => {
            tracing::warn!(%error, "watch failed; the node keeps what it has");
            None
        }
    })
}

struct State {
    reconciler: Reconciler,
    api: Api<NodeNetworkConfig>,
    config: Option<NodeNetworkConfig>,
    retry: Duration,
    /// Whether the last outcome could not be reported.
    unreported: bool,
}

impl State {
    /// Whether the event tells nothing new: our own status comes back as one.
    fn is_known(&mut self, config: &NodeNetworkConfig) -> bool {
        let Some(known) = &mut self.config else {
            return false;
        };
        let same = known.metadata.uid == config.metadata.uid && known.spec == config.spec;
        if same {
            *known = config.clone();
        }
        same && !self.unreported
    }

    /// One turn: applies, reports, and says when to wake at the latest.
    async fn turn(&mut self, reason: Reason) -> Duration {
        let Some(config) = &self.config else {
            return RESYNC;
        };
        if config.spec.contract_version > CONTRACT_VERSION {
            let version = config.spec.contract_version;
            tracing::error!(
                version,
                "the config is written in a newer contract; the node keeps what it has"
            );
            return RESYNC;
        }
        let start = Instant::now();
        let outcome = self.reconciler.reconcile(&config.spec).await;
        log(reason, &outcome, start.elapsed());
        let status = report::status(config, &outcome, self.reconciler.frr_version());
        let reported = report::write(&self.api, config, status).await;
        self.unreported = reported.is_err();
        if let Err(error) = &reported {
            tracing::warn!(%error, "failed to report");
        }
        if outcome.is_ok() && reported.is_ok() {
            self.retry = FIRST_RETRY;
            return RESYNC;
        }
        let retry = self.retry;
        self.retry = (self.retry * 2).min(LAST_RETRY);
        retry
    }
}

fn log(reason: Reason, outcome: &Result<Applied, Failure>, took: Duration) {
    match outcome {
        Ok(applied) if applied.is_nothing() => tracing::debug!(?reason, ?took, "nothing to do"),
        Ok(applied) => {
            for note in applied.notes.iter().chain(&applied.mirror_failures) {
                tracing::warn!(note);
            }
            tracing::info!(?reason, ?took, kernel_steps = applied.kernel_steps, frr_lines = applied.frr_lines,
                started = ?applied.started, resets = ?applied.resets, "applied");
        }
        Err(failure) => tracing::error!(
            ?reason,
            ?took,
            error = report::chain(failure),
            "could not apply"
        ),
    }
}
