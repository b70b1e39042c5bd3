//! The loop of the daemon: what the state machine decides is done, and what happens in between is its next event.

use std::{collections::BTreeSet, net::SocketAddr, sync::Arc, time::Duration};

use api::tcaas::NodeNetworkConfigStatus;
use linux::netlink::Changes;
use tokio::{
    sync::{mpsc, watch},
    task::{JoinHandle, JoinSet},
    time,
};

use crate::{
    cluster::{Cluster, Connect, OfHost},
    command_log::CommandLog,
    config::{Config, Time},
    daemons::{self, Instance, Paths},
    drift::Signs,
    health::Health,
    hold::{Expected, Keeper},
    host::{self, Report, Router, Way},
    journal,
    lock::{self, Lock},
    machine::{Action, Assigned, Event},
    metrics::Metrics,
    node::{Node, OpenError},
    pages::Shown,
    probe::ApiServer,
    reconcile::{Failure, Reconciler},
    refresh, report,
    watchdog::Watchdog,
};

/// How long another agent may take to end before this one gives up.
const LOCK_PATIENCE: Duration = Duration::from_secs(30);
/// How long FRR may take to tell its version, which it is asked once.
const VERSION_PATIENCE: Duration = Duration::from_secs(1);

/// How the daemon works.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of the node.
    pub node: String,
    /// Where things are on the node.
    pub paths: Paths,
    /// Name of the router's network namespace.
    pub namespace: String,
    /// Namespace of Secrets whose reference names none.
    pub secrets_namespace: String,
    /// Whether the agent works with the account of its own node, for which it gets a token with the one that it is started with.
    pub own_account: bool,
    /// Lines of FRR that the config does not have are reported and kept.
    pub report_only: bool,
    /// Keys of taints that are removed from the Node when the first config is confirmed.
    pub startup_taints: Vec<String>,
    /// Where metrics and health are served, if anywhere.
    pub listen: Option<SocketAddr>,
}

/// Where the node's configs come from.
pub enum Source {
    /// The API server, which also gets the reports.
    Cluster(Connect),
    /// Files that were compiled on this node.
    Files(mpsc::Receiver<Assigned>),
}

/// Why the agent ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another agent works on this node.
    #[error("cannot manage this node")]
    Locked(#[source] lock::Error),
    /// This node cannot be worked on.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The kernel could not be opened.
    #[error("failed to open this node")]
    Kernel(#[source] Failure),
    /// A thread could not be started.
    #[error("failed to start a thread")]
    Thread(#[source] std::io::Error),
    /// The watch of the node's config ended, which it never should.
    #[error("the watch of the node's config ended")]
    WatchEnded,
}

/// Keeps this node what its config says, until `stop` is done. A change that is under way is brought to its end first.
pub async fn run(
    source: Source,
    options: Options,
    stop: impl Future<Output = ()>,
) -> Result<(), Error> {
    let _lock = lock(&options.paths).await?;
    let watchdog = Watchdog::start().map_err(Error::Thread)?;
    let reconciler = Reconciler::open(&options.paths, &options.namespace, options.report_only)
        .map_err(Error::Kernel)?
        .watched_by(watchdog.clone());
    let (statuses, of_router) = watch::channel(None);
    let (whole, reports) = watch::channel(None);
    let (host_reports, of_host) = watch::channel(Report::default());
    let (sessions, seen) = watch::channel(Vec::new());
    let mut tasks = JoinSet::new();
    tasks.spawn(report::with_host(of_router, of_host.clone(), whole));
    let (configs, api) = match source {
        Source::Files(configs) => (configs, None),
        Source::Cluster(connect) => {
            let cluster = Cluster::new(connect, &options);
            let (sender, configs) = mpsc::channel(1);
            let api: Arc<dyn ApiServer> = Arc::new(cluster.clone());
            let host = OfHost {
                reports: of_host.clone(),
                sessions: seen,
            };
            tasks.spawn(cluster.serve(sender, reports, host, options.clone()));
            (configs, Some(api))
        }
    };
    let (sender, assigned) = mpsc::channel(1);
    let (host, host_configs) = watch::channel(None);
    tasks.spawn(lanes(configs, sender, host));
    let metrics = Metrics::default();
    if let Some(address) = options.listen {
        let shown = Shown {
            metrics: metrics.clone(),
            watchdog: watchdog.clone(),
            host: (Instance::host(&options.paths), of_host),
        };
        tasks.spawn(endpoint::serve(address, shown));
    }
    let host = Way {
        router: Router::new(&options.paths, options.report_only),
        store: host_store(&options.paths)?,
        kernel: Arc::clone(reconciler.kernel()),
        api: api.clone(),
        assigned: host_configs,
        reports: host_reports,
        sessions,
    };
    tasks.spawn(host::Task::new(host).run());
    let (gateways, known) = watch::channel(BTreeSet::new());
    tasks.spawn(refresh::refresh(options.namespace.clone(), known));
    let (node, started) = Node::open(reconciler, api).await?;
    let mut agent = Agent {
        gateways,
        node,
        options,
        assigned,
        statuses,
        watchdog,
        metrics,
        frr_version: None,
        signs: Signs::default(),
        keeper: None,
        checkup: None,
    };
    // The tasks end with their set.
    agent.run(started, stop).await
}

fn host_store(paths: &Paths) -> Result<host::Store, Error> {
    let boot_id = journal::Store::boot_id().map_err(OpenError::Journal)?;
    Ok(host::Store::new(&paths.state, &boot_id))
}

/// Takes the host's router out of each config, so that its change waits for no trial of the rest.
async fn lanes(
    mut configs: mpsc::Receiver<Assigned>,
    rest: mpsc::Sender<Assigned>,
    host: watch::Sender<Option<host::Assigned>>,
) {
    let mut pending = None;
    loop {
        tokio::select! {
            config = configs.recv() => {
                // Without an author there is nothing more to come.
                let Some(config) = config else { return };
                let (of_rest, of_host) = host::split(config);
                host.send_replace(Some(of_host));
                pending = Some(of_rest);
            }
            Ok(permit) = rest.reserve(), if pending.is_some() => {
                if let Some(config) = pending.take() {
                    permit.send(config);
                }
            }
        }
    }
}

async fn lock(paths: &Paths) -> Result<Lock, Error> {
    let deadline = time::Instant::now() + LOCK_PATIENCE;
    loop {
        match Lock::take(&paths.runtime) {
            Ok(lock) => return Ok(lock),
            Err(error @ lock::Error::Held { .. }) if time::Instant::now() < deadline => {
                tracing::info!(%error, "waiting");
                time::sleep(Duration::from_secs(1)).await;
            }
            Err(error) => return Err(Error::Locked(error)),
        }
    }
}

struct Agent {
    /// The bridges behind which silent neighbors are asked for.
    gateways: watch::Sender<BTreeSet<String>>,
    node: Node,
    options: Options,
    assigned: mpsc::Receiver<Assigned>,
    statuses: watch::Sender<Option<NodeNetworkConfigStatus>>,
    watchdog: Watchdog,
    metrics: Metrics,
    frr_version: Option<String>,
    signs: Signs,
    /// Holds what zebra has from bgpd in that namespace.
    keeper: Option<Keeper>,
    /// The measurement of health that is under way beside everything else.
    checkup: Option<JoinHandle<Health>>,
}

impl Agent {
    async fn run(&mut self, started: Event, stop: impl Future<Output = ()>) -> Result<(), Error> {
        let mut stop = std::pin::pin!(stop);
        let mut action = self.node.step(started);
        loop {
            self.report();
            self.watchdog.step(&format!("{action:?}"));
            let Action::Wait(until) = action else {
                if let Some(event) = self.node.perform(&action).await {
                    if let Action::Apply { config, .. } = &action {
                        self.look_anew(config, matches!(event, Event::Applied(Ok(_))))
                            .await;
                    }
                    action = self.node.step(event);
                }
                continue;
            };
            let until = self.begin_checkup().map_or(until, |due| due.min(until));
            let left = until.saturating_sub(self.node.now());
            let frr = self.node.reconciler().frr().instance().clone();
            self.signs.compare(daemons::running(&frr));
            let at_rest = self.node.machine().is_at_rest();
            let event = tokio::select! {
                () = &mut stop, if at_rest => return Ok(()),
                assigned = self.assigned.recv() => Event::Assigned(assigned.ok_or(Error::WatchEnded)?),
                () = self.signs.next(&frr) => Event::Drifted,
                health = measured(self.checkup.as_mut()) => {
                    self.checkup = None;
                    health.map_or(Event::Woken, Event::Measured)
                }
                () = time::sleep(left) => Event::Woken,
            };
            action = self.node.step(event);
        }
    }

    /// Begins to measure the health of a node at rest when that is due; when it is due, unless one is under way.
    fn begin_checkup(&mut self) -> Option<Time> {
        let Some((config, due)) = self.node.machine().checkup() else {
            if let Some(task) = self.checkup.take() {
                task.abort();
            }
            return None;
        };
        if self.checkup.is_some() {
            return None;
        }
        if due > self.node.now() {
            return Some(due);
        }
        self.checkup = Some(self.node.checkup(config));
        None
    }

    /// After a change: the namespace may be another one, and FRR of another version.
    async fn look_anew(&mut self, config: &Config, is_applied: bool) {
        let reconciler = self.node.reconciler();
        self.frr_version = reconciler
            .frr_version(VERSION_PATIENCE)
            .await
            .ok()
            .map(|version| version.to_string());
        // Our own changes are announced, too, and lead to one more look, which finds nothing to do. To pass over them would
        // pass over those that others made meanwhile.
        let inode = self.node.reconciler().frr().instance().inode();
        let is_another = inode != self.signs.namespace;
        self.expect_bgpd(config);
        if is_another {
            self.keep(inode);
        }
        let reconciler = self.node.reconciler();
        let is_deaf = self.signs.changes.as_ref().is_none_or(Changes::is_over);
        if is_deaf || is_another {
            self.signs.namespace = inode;
            self.signs.changes = match reconciler.kernel().changes().await {
                Ok(changes) => Some(changes),
                Err(error) => {
                    tracing::warn!(
                        error = report::chain(&error),
                        "cannot subscribe to changes of the kernel; they are found by periodic checks"
                    );
                    None
                }
            };
            // Nothing was announced since the node was last compared with its config.
            self.signs.note();
        }
        let own = self.node.reconciler().frr().take_configured();
        let frr = self.node.reconciler().frr().instance();
        match &mut self.signs.commands {
            Some(commands) => commands.expect(own),
            // Without a router there is none.
            None => {
                self.signs.commands = CommandLog::open(&frr.command_log(), &frr.shells()).ok();
            }
        }
        if is_applied {
            self.expect_daemons(config);
        }
    }

    /// After an apply FRR's daemons run. One that does not has ended since.
    fn expect_daemons(&mut self, config: &Config) {
        let frr = self.node.reconciler().frr().instance();
        self.signs.expect(daemons::running(frr));
        if config.spec.underlay.is_some() && !daemons::missing(frr).is_empty() {
            tracing::warn!("a daemon of FRR has ended");
            self.signs.note();
        }
    }

    /// From now on, an end of the running bgpd is an accident. If none runs, the one that has died is still missed.
    fn expect_bgpd(&self, config: &Config) {
        let running = daemons::running(self.node.reconciler().frr().instance());
        let find = |name: &str| running.iter().find(|it| it.name == name).cloned();
        let Some(daemon) = find("bgpd") else { return };
        let expected = Some(Expected {
            daemon,
            zebra: find("zebra"),
            limit: hold_limit(config),
        });
        self.node.reconciler().bgpd().send_if_modified(|known| {
            let is_new = *known != expected;
            *known = expected;
            is_new
        });
    }

    fn keep(&mut self, inode: Option<u64>) {
        let bgpd = self.node.reconciler().bgpd().subscribe();
        let frr = self.node.reconciler().frr().instance().clone();
        let keeper = inode.map(|_| Keeper::start(&self.options.namespace, frr, bgpd));
        self.keeper = keeper.transpose().unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot hold routes if bgpd crashes");
            None
        });
    }

    fn report(&self) {
        let status = self.node.machine().status();
        self.metrics.show(status.clone(), self.frr_version.clone());
        let running = status.running.as_ref();
        let gateways = running.map(|running| refresh::gateways(&running.spec));
        self.gateways.send_replace(gateways.unwrap_or_default());
        if status.assigned.is_none() {
            return;
        }
        let latest = report::status(&status, self.frr_version.clone());
        self.statuses.send_if_modified(|known| {
            let is_new = known.as_ref() != Some(&latest);
            if is_new {
                tracing::info!(
                    state = ?latest.config_status,
                    observed = latest.observed_revision,
                    running = latest.running_revision,
                    confirmed = latest.confirmed_revision,
                    error = latest.error_message,
                    "status"
                );
                *known = Some(latest);
            }
            is_new
        });
    }
}

/// How long something is held: as long as leaves wait for a bgpd that restarts.
fn hold_limit(config: &Config) -> Duration {
    let underlay = config.spec.underlay.as_ref();
    let restart = underlay.and_then(|underlay| underlay.graceful_restart);
    let default = || frr::config::GracefulRestart::default().restart_time;
    let seconds = restart.map_or_else(default, |it| it.restart_time);
    Duration::from_secs(seconds.into())
}

/// The health, when it has been measured; nothing if that came to nothing.
async fn measured(task: Option<&mut JoinHandle<Health>>) -> Option<Health> {
    match task {
        Some(task) => task.await.ok(),
        None => std::future::pending().await,
    }
}
