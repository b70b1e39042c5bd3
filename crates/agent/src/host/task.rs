//! The task of the host's router: does what its machine says, beside the loop of the rest of the node.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use k8s_openapi::jiff::Timestamp;
use linux::netlink::{Changes, Kernel};
use tokio::{
    sync::watch,
    task::{JoinHandle, JoinSet},
    time,
};

use super::{
    apply::{Limits, Router, fault},
    config::{Assigned, HostConfig},
    events,
    machine::{Action, Event, Machine, Stored},
    missing::missing,
    report::{Change, Report},
    sessions::Session,
    store::Store,
};
use crate::{
    command_log::CommandLog, config::Time, daemons, drift::Signs, probe::ApiServer, report,
};

/// How long one attempt to reach the API server may take.
const PROBE_PATIENCE: Duration = Duration::from_secs(2);
/// How long the kernel may take to tell its interfaces.
const KERNEL_PATIENCE: Duration = Duration::from_secs(5);

/// What the task works with.
pub(crate) struct Way {
    /// FRR of the host.
    pub(crate) router: Router,
    /// The place of the last good config.
    pub(crate) store: Store,
    /// The kernel.
    pub(crate) kernel: Arc<Kernel>,
    /// The API server, if there is one.
    pub(crate) api: Option<Arc<dyn ApiServer>>,
    /// The node's latest config.
    pub(crate) assigned: watch::Receiver<Option<Assigned>>,
    /// The state, as it is to be reported.
    pub(crate) reports: watch::Sender<Report>,
    /// The sessions, as bgpd tells them.
    pub(crate) sessions: watch::Sender<Vec<Session>>,
}

/// The task.
pub(crate) struct Task {
    way: Way,
    machine: Machine,
    started: Instant,
    limits: Limits,
    change: Option<Change>,
    /// Of others who change FRR, and of daemons that end.
    signs: Signs,
    /// Changes of the host's kernel, while something runs that may need them.
    devices: Signs,
    probe: Option<JoinHandle<(Time, bool)>>,
    report: Report,
}

impl Task {
    pub(crate) fn new(way: Way) -> Self {
        Self {
            machine: Machine::new(way.api.is_some()),
            way,
            started: Instant::now(),
            limits: Limits::default(),
            change: None,
            signs: Signs::default(),
            devices: Signs::default(),
            probe: None,
            report: Report::default(),
        }
    }

    /// Keeps the host's router what the node's config says, for as long as the agent runs.
    pub(crate) async fn run(mut self) {
        let mut followers = JoinSet::new();
        let instance = self.way.router.frr().instance().clone();
        let runs = daemons::any(&instance);
        followers.spawn(events::follow(instance, self.way.sessions.clone()));
        let (stored, rebooted) = self.way.store.load();
        let started = Event::Started {
            stored,
            rebooted,
            runs,
        };
        let mut action = self.step(started);
        loop {
            self.report();
            let event = match &action {
                Action::Wait(until) => self.wait(*until).await,
                Action::Probe => self.probed_now().await,
                Action::Apply { config, fresh } => self.apply(config, *fresh).await,
                Action::Save(stored) => Event::Saved(self.save(stored.clone()).await),
            };
            action = self.step(event);
        }
    }

    fn now(&self) -> Time {
        self.started.elapsed()
    }

    fn step(&mut self, event: Event) -> Action {
        let now = self.now();
        self.machine.step(event, now)
    }

    async fn wait(&mut self, until: Time) -> Event {
        let until = self.begin_probe().map_or(until, |due| due.min(until));
        let left = until.saturating_sub(self.now());
        let instance = self.way.router.frr().instance().clone();
        if self.signs.commands.is_some() {
            self.signs.compare(daemons::running(&instance));
        }
        tokio::select! {
            Ok(()) = self.way.assigned.changed() => {
                let assigned = self.way.assigned.borrow_and_update().clone();
                return assigned.map_or(Event::Woken, Event::Assigned);
            }
            () = self.devices.next(&instance) => {}
            () = self.signs.next(&instance) => return Event::Drifted,
            probed = probed(self.probe.as_mut()) => {
                self.probe = None;
                let (began, reached) = probed;
                return Event::Probed { began, reached };
            }
            () = time::sleep(left) => return Event::Woken,
        }
        // What was missing and has come takes effect by itself in most versions of FRR, and by an apply in all.
        let before = self.report.missing.len();
        self.look().await;
        if self.report.missing.len() < before {
            Event::Drifted
        } else {
            Event::Woken
        }
    }

    /// Begins to reach for the API server when that is due; when it is due, unless one attempt is under way.
    fn begin_probe(&mut self) -> Option<Time> {
        let due = self.machine.probe_due()?;
        let api = self.way.api.clone()?;
        if self.probe.is_some() {
            return None;
        }
        if due > self.now() {
            return Some(due);
        }
        let began = self.now();
        self.probe = Some(tokio::spawn(async move { (began, reach(&*api).await) }));
        None
    }

    async fn probed_now(&mut self) -> Event {
        let began = self.now();
        let reached = match &self.way.api {
            Some(api) => reach(&**api).await,
            None => false,
        };
        Event::Probed { began, reached }
    }

    async fn apply(&mut self, config: &Arc<HostConfig>, fresh: bool) -> Event {
        let outcome = self.way.router.apply(config, fresh).await;
        let own = self.way.router.frr().take_configured();
        let is_nothing = outcome.as_ref().is_ok_and(|it| it.applied.is_nothing());
        match &outcome {
            Ok(outcome) if outcome.applied.is_nothing() => {
                tracing::debug!(took = ?outcome.took, "host's router: nothing to do");
            }
            Ok(outcome) => {
                let applied = &outcome.applied;
                tracing::info!(took = ?outcome.took, fresh, %applied, "host's router: applied");
            }
            Err(failure) => {
                let error = report::chain(failure);
                tracing::error!(fresh, error, "host's router: apply failed");
            }
        }
        let said = outcome.map_err(|failure| (report::chain(&failure), fault(&failure)));
        if !is_nothing || self.change.as_ref().is_none_or(Change::is_over) {
            let at = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            let said = said.as_ref().map_err(|(message, _)| message.clone());
            self.change = Some(Change::new(at, said));
        }
        let event = match said {
            Ok(outcome) => {
                self.limits = outcome.limits;
                Event::Applied(Ok(!is_nothing))
            }
            Err((_, fault)) => Event::Applied(Err(fault)),
        };
        self.watch(config.router.is_some(), own);
        self.look().await;
        event
    }

    /// Follows what others do to FRR and to the kernel, while there is an FRR.
    fn watch(&mut self, is_there: bool, own: usize) {
        if !is_there {
            self.signs = Signs::default();
            self.devices = Signs::default();
            return;
        }
        let instance = self.way.router.frr().instance();
        self.signs.expect(daemons::running(instance));
        match &mut self.signs.commands {
            Some(commands) => commands.expect(own),
            None => {
                self.signs.commands =
                    CommandLog::open(&instance.command_log(), &instance.shells()).ok();
            }
        }
        if self.devices.changes.as_ref().is_none_or(Changes::is_over) {
            let changes = self.way.kernel.changes_of_host();
            self.devices.changes = changes
                .inspect_err(|error| {
                    tracing::warn!(error = report::chain(error), "cannot subscribe to changes of the kernel; they are found by periodic checks");
                })
                .ok();
        }
    }

    /// Finds out what the config needs and the host lacks.
    async fn look(&mut self) {
        if self.limits.needs.is_empty() {
            self.report.missing.clear();
            return;
        }
        match time::timeout(KERNEL_PATIENCE, self.way.kernel.interfaces()).await {
            Ok(Ok(interfaces)) => {
                self.report.missing = missing(&self.limits.needs, &interfaces);
            }
            Ok(Err(error)) => {
                tracing::warn!(
                    error = report::chain(&error),
                    "the host cannot be looked at"
                );
            }
            Err(_elapsed) => tracing::warn!("the host cannot be looked at: no answer"),
        }
    }

    async fn save(&self, stored: Stored) -> Result<(), String> {
        let store = self.way.store.clone();
        let save = tokio::task::spawn_blocking(move || {
            if stored.is_nothing() {
                store.remove()
            } else {
                store.save(&stored)
            }
        });
        match save.await {
            Ok(outcome) => outcome.map_err(|error| report::chain(&error)),
            Err(error) => Err(error.to_string()),
        }
    }

    fn report(&mut self) {
        self.report.status = self.machine.status();
        self.report.limits.clone_from(&self.limits);
        self.report.change.clone_from(&self.change);
        self.way.reports.send_if_modified(|known| {
            let is_new = *known != self.report;
            if is_new {
                known.clone_from(&self.report);
            }
            is_new
        });
    }
}

async fn reach(api: &dyn ApiServer) -> bool {
    matches!(time::timeout(PROBE_PATIENCE, api.reach()).await, Ok(Ok(())))
}

/// The outcome of the attempt that is under way.
async fn probed(probe: Option<&mut JoinHandle<(Time, bool)>>) -> (Time, bool) {
    match probe {
        Some(probe) => probe.await.unwrap_or((Time::ZERO, false)),
        None => std::future::pending().await,
    }
}
