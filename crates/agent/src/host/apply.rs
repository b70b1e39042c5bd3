//! From a config of the host's router to an FRR that has it: start, compare, type, verify. Every error is part of the outcome.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use api::tcaas::node_network_config::{HostRouter, MissingDevice, RefusedLine, UnsupportedField};
use frr::{
    Change, FrrVersion,
    host::{Desired, LeftOut},
};

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
    report, vtysh,
};

/// How long one apply should take at most; waits become shorter towards its end.
const LIMIT: Duration = Duration::from_secs(30);

/// FRR in the host's network namespace.
#[derive(Debug)]
pub(crate) struct Router {
    frr: FrrShell,
    /// What FRR did not take of the latest config: it is not tried again before the config changes, or FRR itself.
    reduced: Mutex<Option<Reduced>>,
}

/// A config without the parts that FRR refuses.
#[derive(Clone, Debug)]
struct Reduced {
    /// Fingerprint of the config.
    of: String,
    /// The FRR that refuses them.
    version: FrrVersion,
    router: HostRouter,
    left_out: LeftOut,
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
    /// What FRR refused, in its own words. The parts are among the fields and the raw configuration as well.
    pub(crate) rejected: Vec<String>,
}

impl Limits {
    fn of(desired: Desired, left_out: LeftOut) -> (frr::FrrConfig, Self) {
        let Desired {
            config,
            unsupported,
            held_back,
            refused_raw,
            needs,
        } = desired;
        let LeftOut { fields, raw } = left_out;
        let lines = raw
            .iter()
            .map(|it| format!("{} line {}: {}", it.source, it.line, it.message));
        let mut rejected: Vec<String> = fields.iter().map(|it| it.message.clone()).collect();
        rejected.extend(lines);
        rejected.dedup();
        let limits = Self {
            unsupported: [unsupported, fields].concat(),
            refused_raw: [refused_raw, raw].concat(),
            held_back: held_back.iter().map(ToString::to_string).collect(),
            needs,
            rejected,
        };
        (config, limits)
    }
}

impl Router {
    pub(crate) fn new(paths: &Paths, report_only: bool) -> Self {
        Self {
            frr: FrrShell::new(Instance::host(paths), report_only),
            reduced: Mutex::new(None),
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
        let Reduced {
            router, left_out, ..
        } = self.reduced(config, version);
        let desired = frr::host::desired(&router, &config.secrets(), version);
        Ok(Limits::of(desired, left_out))
    }

    /// The config without what FRR is known to refuse of it.
    fn reduced(&self, config: &HostConfig, version: FrrVersion) -> Reduced {
        let known = self.reduced.lock().ok().and_then(|known| known.clone());
        let known = known.filter(|known| known.version == version);
        let of = known.as_ref().map(|_| config.fingerprint());
        let known = known.filter(|known| Some(&known.of) == of.as_ref());
        known.unwrap_or_else(|| Reduced {
            of: of.unwrap_or_default(),
            version,
            router: config.router.as_deref().cloned().unwrap_or_default(),
            left_out: LeftOut::default(),
        })
    }

    /// Applies what FRR takes of the config: what it refuses is found, left out with the part of the object that it is of, and reported.
    /// A daemon that exits has refused nothing: a fresh FRR is given the config once.
    async fn run(
        &self,
        config: &HostConfig,
        outcome: &mut Outcome,
        patience: Patience,
    ) -> Result<(), Failure> {
        let until = Instant::now() + patience.at_most(LIMIT);
        let mut is_restarted = false;
        loop {
            let Err(failure) = self.attempt(config, outcome, patience).await else {
                return Ok(());
            };
            if self.has_exited(&failure) {
                if is_restarted {
                    return Err(failure);
                }
                let error = report::chain(&failure);
                tracing::warn!(
                    error,
                    "a daemon of the host's router exited while it was configured"
                );
                is_restarted = true;
                self.stop(patience).await?;
                continue;
            }
            let is_refused = match &failure {
                Failure::Frr(error) => error.refusal().is_some(),
                Failure::Verify { .. } => true,
                _ => false,
            };
            if !is_refused || !self.leave_out(config, until, patience).await? {
                return Err(failure);
            }
        }
    }

    /// Whether an attempt failed because a daemon exited.
    fn has_exited(&self, failure: &Failure) -> bool {
        match failure {
            Failure::Daemons(_) => false,
            Failure::Ended(_) | Failure::Frr(vtysh::Error::Socket { .. }) => true,
            _ => !daemons::missing(self.instance()).is_empty(),
        }
    }

    /// Finds a line that FRR refuses and leaves out what it is of. `false`: there is none, or it is of no object.
    async fn leave_out(
        &self,
        config: &HostConfig,
        until: Instant,
        patience: Patience,
    ) -> Result<bool, Failure> {
        let (desired, _) = self.desired(config, patience).await?;
        let refused = self.frr.first_refused(&desired, until, patience).await?;
        let Some(refused) = refused else {
            return Ok(false);
        };
        let version = self.frr.version(patience.silence()).await?;
        let mut reduced = self.reduced(config, version);
        reduced.of = config.fingerprint();
        let Reduced {
            router, left_out, ..
        } = &mut reduced;
        let secrets = config.secrets();
        let is_known = frr::host::leave_out(router, &refused, &secrets, version, left_out);
        if is_known {
            tracing::warn!(line = %refused.line, why = refused.why, "FRR refuses a line of the host's router: what it is of is left out");
            if let Ok(mut known) = self.reduced.lock() {
                *known = Some(reduced);
            }
        }
        Ok(is_known)
    }

    async fn attempt(
        &self,
        config: &HostConfig,
        outcome: &mut Outcome,
        patience: Patience,
    ) -> Result<(), Failure> {
        let applied = &mut outcome.applied;
        self.start(config, applied, patience).await?;
        let (desired, limits) = self.desired(config, patience).await?;
        outcome.limits = limits;
        let is_fresh = applied.started.contains(&"bgpd");
        let mut change = self.frr.change(&desired, applied, patience).await?;
        if change.router.needs_fresh_frr(is_fresh) {
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
        let is_done = |left: &Change| left.steps.is_empty();
        self.frr.verify(&desired, is_done, applied, patience).await
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
    let cause = match (failure, judged.frr) {
        (Failure::Verify { .. }, _) => Cause::Config,
        (_, FrrFault::Silent) => Cause::Silence,
        (Failure::Daemons(_), _) | (_, FrrFault::None) => Cause::Node,
        (_, FrrFault::Refused) => Cause::Config,
    };
    Fault {
        message: judged.message,
        cause,
    }
}
