//! From a config of the host's router to an FRR that has it: start, compare, type, verify. Every error is part of the outcome.

use std::time::{Duration, Instant};

use api::tcaas::node_network_config::{MissingDevice, RefusedLine, UnsupportedField};
use frr::host::Desired;

use super::{
    HostConfig,
    machine::{Cause, Fault},
};
use crate::{
    config::Config,
    daemons::{self, Instance, Paths},
    file,
    frr_shell::FrrShell,
    machine::FrrFault,
    patience::Patience,
    reconcile::{Applied, Failure, start},
};

/// How long one apply should take at most; waits become shorter towards its end.
const LIMIT: Duration = Duration::from_secs(30);

/// FRR in the host's network namespace.
#[derive(Debug)]
pub(crate) struct Router {
    frr: FrrShell,
}

/// What FRR runs after an apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// What was done.
    pub(crate) applied: Applied,
    /// How long it took.
    pub(crate) took: Duration,
    /// What of the config is not in effect on this node.
    pub(crate) limits: Limits,
}

/// What of a config cannot be in effect on this node, and what it needs of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Fields that this FRR cannot apply.
    pub(crate) unsupported: Vec<UnsupportedField>,
    /// Lines of raw configuration that are left out.
    pub(crate) refused_raw: Vec<RefusedLine>,
    /// Sessions that wait for a password.
    pub(crate) held_back: Vec<String>,
    /// Devices and VNIs that the configuration refers to.
    pub(crate) needs: Vec<MissingDevice>,
}

impl Limits {
    fn of(desired: Desired) -> (frr::FrrConfig, Self) {
        let Desired {
            config,
            unsupported,
            held_back,
            refused_raw,
            needs,
        } = desired;
        let limits = Self {
            unsupported,
            refused_raw,
            held_back: held_back.iter().map(ToString::to_string).collect(),
            needs,
        };
        (config, limits)
    }
}

impl Router {
    pub(crate) fn new(paths: &Paths, report_only: bool) -> Self {
        Self {
            frr: FrrShell::new(Instance::host(paths), report_only),
        }
    }

    pub(crate) fn frr(&self) -> &FrrShell {
        &self.frr
    }

    fn instance(&self) -> &Instance {
        self.frr.instance()
    }

    /// Makes FRR what the config says, and proves it by a second comparison. With `fresh`, FRR is stopped before.
    pub(crate) async fn apply(&self, config: &HostConfig, fresh: bool) -> Result<Outcome, Failure> {
        let began = Instant::now();
        let patience = Patience::new(&Config::empty(), Some(LIMIT));
        let mut outcome = Outcome::default();
        match &config.router {
            None => outcome.applied = self.end(patience).await?,
            Some(_) if fresh => {
                self.stop(patience).await?;
                self.run(config, &mut outcome, patience).await?;
            }
            Some(_) => self.run(config, &mut outcome, patience).await?,
        }
        outcome.took = began.elapsed();
        Ok(outcome)
    }

    async fn stop(&self, patience: Patience) -> Result<(), Failure> {
        let stop = daemons::stop(self.instance(), patience);
        stop.await.map_err(Failure::Daemons)
    }

    /// Ends FRR and removes what it left.
    async fn end(&self, patience: Patience) -> Result<Applied, Failure> {
        let mut applied = Applied::default();
        if daemons::any(self.instance()) {
            self.stop(patience).await?;
            applied.changes.insert("stop FRR of the host".to_owned());
        }
        if self.instance().sockets().exists() || self.instance().etc().exists() {
            daemons::remove(self.instance(), patience)
                .await
                .map_err(Failure::Daemons)?;
        }
        Ok(applied)
    }

    async fn desired(
        &self,
        config: &HostConfig,
        patience: Patience,
    ) -> Result<(frr::FrrConfig, Limits), Failure> {
        let version = self.frr.version(patience.silence()).await?;
        let router = config.router.clone().unwrap_or_default();
        let desired = frr::host::desired(&router, &config.secrets(), version);
        Ok(Limits::of(desired))
    }

    async fn run(
        &self,
        config: &HostConfig,
        outcome: &mut Outcome,
        patience: Patience,
    ) -> Result<(), Failure> {
        let applied = &mut outcome.applied;
        self.start(config, applied, patience).await?;
        let (desired, limits) = self.desired(config, patience).await?;
        outcome.limits = limits;
        let mut change = self.frr.change(&desired, applied, patience).await?;
        if change.replaces_router {
            // Nothing of the old router survives a new AS, and bgpd does not always survive the change itself.
            self.stop(patience).await?;
            self.start(config, applied, patience).await?;
            change = self.frr.change(&desired, applied, patience).await?;
        }
        if change.steps.is_empty() && change.clears.is_empty() {
            return Ok(());
        }
        self.frr
            .configure(&desired, change.clone(), applied, patience)
            .await?;
        self.frr.clear(&change, patience).await?;
        self.verify(&desired, applied, patience).await
    }

    /// Starts the daemons that do not run. A fresh bgpd is given the whole config at once: line by line it would open its sessions
    /// before it has all of it.
    async fn start(
        &self,
        config: &HostConfig,
        applied: &mut Applied,
        patience: Patience,
    ) -> Result<(), Failure> {
        let started = daemons::ensure(self.instance(), patience);
        let started = started.await.map_err(Failure::Daemons)?.started;
        if started.is_empty() {
            return Ok(());
        }
        applied
            .changes
            .extend(started.iter().map(|name| start(name)));
        let (desired, _) = self.desired(config, patience).await?;
        let version = self.frr.version(patience.silence()).await?;
        let path = self.instance().frr_conf();
        let text = frr::print(&desired, version, "host");
        file::replace(&path, text.as_bytes())
            .map_err(daemons::Error::File)
            .map_err(Failure::Daemons)?;
        applied.started = started;
        self.frr.load(&path, patience).await
    }

    async fn verify(
        &self,
        desired: &frr::FrrConfig,
        applied: &mut Applied,
        patience: Patience,
    ) -> Result<(), Failure> {
        let running = self.frr.running(patience).await?;
        let left = frr::diff(&running.config, desired);
        applied.unmanaged = running.unknown.iter().map(ToString::to_string).collect();
        if left.steps.is_empty() {
            return Ok(());
        }
        Err(Failure::Verify {
            differences: left.to_string(),
            of_frr: true,
        })
    }

    /// What an apply would do, a line for each difference.
    pub(crate) async fn preview(&self, config: &HostConfig) -> Result<Vec<String>, Failure> {
        let patience = Patience::new(&Config::empty(), None);
        if config.router.is_none() {
            let runs = daemons::any(self.instance());
            return Ok(runs
                .then(|| "stop FRR of the host".to_owned())
                .into_iter()
                .collect());
        }
        let missing = daemons::missing(self.instance());
        if !missing.is_empty() {
            return Ok(missing
                .iter()
                .map(|name| format!("host: {}", start(name)))
                .collect());
        }
        let (desired, _) = self.desired(config, patience).await?;
        let running = self.frr.running(patience).await?;
        let change = frr::diff(&running.config, &desired);
        let steps = change.steps.len() + change.clears.len();
        let lines = change.to_string();
        let unknown = running
            .unknown
            .iter()
            .map(|line| format!("host: unmanaged: {line}"));
        let lines = lines.lines().filter(|_| steps > 0);
        Ok(unknown
            .chain(lines.map(|line| format!("host: {line}")))
            .collect())
    }
}

/// The failure as the state machine judges it.
pub(crate) fn fault(failure: &Failure) -> Fault {
    let judged = failure.fault();
    let is_node = matches!(failure, Failure::Daemons(_));
    Fault {
        message: judged.message,
        cause: match judged.frr {
            FrrFault::Silent => Cause::Silence,
            FrrFault::Refused if !is_node => Cause::Config,
            FrrFault::Refused | FrrFault::None => Cause::Node,
        },
    }
}
