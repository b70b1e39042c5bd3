//! Reads and changes the configuration of one FRR instance. Other modules decide which lines, and when.

use std::{
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use frr::{Batch, Change, FrrVersion, Parsed, Step, UnknownLine, host::Refusal};

use crate::{
    daemons::{self, Daemon, Instance},
    patience::Patience,
    reconcile::{Applied, Failure, unmanaged},
    vtysh,
    watchdog::Watchdog,
};

/// How long FRR's daemons may take to learn of each other's changes. On a busy node each attempt takes FRR 10.3 more than a second.
const FRR_PATIENCE: Duration = Duration::from_secs(20);
/// How long FRR may take until it shows what it was given. It is read again until then, and not typed again.
const SHOWN_PATIENCE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(50);

/// One FRR instance of the node.
#[derive(Debug)]
pub(crate) struct FrrShell {
    instance: Instance,
    /// Lines that the config does not have are reported and kept, instead of removed.
    report_only: bool,
    /// How often the configuration mode was entered.
    configured: AtomicUsize,
    /// The running zebra and its version, which stays as long as it runs.
    version: Mutex<Option<(Daemon, FrrVersion)>>,
    /// Notified that a long change continues; absent in commands.
    watchdog: Option<Watchdog>,
}

impl FrrShell {
    pub(crate) fn new(instance: Instance, report_only: bool) -> Self {
        Self {
            instance,
            report_only,
            configured: AtomicUsize::new(0),
            version: Mutex::new(None),
            watchdog: None,
        }
    }

    pub(crate) fn set_watchdog(&mut self, watchdog: Watchdog) {
        self.watchdog = Some(watchdog);
    }

    /// Whether lines that the config does not have are reported and kept.
    pub(crate) fn reports_only(&self) -> bool {
        self.report_only
    }

    pub(crate) fn instance(&self) -> &Instance {
        &self.instance
    }

    /// How often the configuration mode was entered since the last call.
    pub(crate) fn take_configured(&self) -> usize {
        self.configured.swap(0, Ordering::Relaxed)
    }

    /// The version of FRR that runs, or would be started. A zebra is asked once: it may not answer later.
    pub(crate) async fn version(&self, patience: Duration) -> Result<FrrVersion, Failure> {
        let zebra = daemons::zebra(&self.instance);
        let known = self.version.lock().ok().and_then(|known| known.clone());
        if let (Some(zebra), Some((asked, version))) = (&zebra, known)
            && *zebra == asked
        {
            return Ok(version);
        }
        if let Some(zebra) = zebra
            && let Some(version) = daemons::running_version(&self.instance, patience).await
        {
            if let Ok(mut known) = self.version.lock() {
                *known = Some((zebra, version));
            }
            return Ok(version);
        }
        let installed = daemons::installed_version(self.instance.paths()).await;
        installed.map_err(Failure::Daemons)
    }

    /// The running configuration.
    pub(crate) async fn running(&self, patience: Patience) -> Result<Parsed, Failure> {
        let version = self.version(patience.silence()).await?;
        let text = vtysh::running_config(&self.instance, patience.silence())
            .await
            .map_err(Failure::Frr)?;
        Ok(frr::parse(&text, version))
    }

    /// Loads a file as at a fresh boot.
    pub(crate) async fn load(&self, file: &Path, patience: Patience) -> Result<(), Failure> {
        self.configured.fetch_add(1, Ordering::Relaxed);
        vtysh::load(&self.instance, file, patience.silence())
            .await
            .map_err(Failure::Frr)
    }

    /// What is to be changed, after lines that the config does not have are gone.
    pub(crate) async fn change(
        &self,
        desired: &frr::FrrConfig,
        applied: &mut Applied,
        patience: Patience,
    ) -> Result<Change, Failure> {
        let mut running = self.running(patience).await?;
        if !running.unknown.is_empty() && !self.report_only {
            applied
                .changes
                .extend(running.unknown.iter().map(unmanaged));
            applied.frr_lines += self.remove_unmanaged(&running.unknown, patience).await;
            running = self.running(patience).await?;
        }
        applied.unmanaged = running.unknown.iter().map(ToString::to_string).collect();
        let change = frr::diff(&running.config, desired);
        let lines = change.to_string();
        applied.changes.extend(lines.lines().map(str::to_owned));
        Ok(change)
    }

    /// Takes back lines that the config does not have. One that FRR does not take back stays and is reported.
    async fn remove_unmanaged(&self, lines: &[UnknownLine], patience: Patience) -> usize {
        let mut removed = 0;
        for line in lines {
            let Some(step) = line.removal() else { continue };
            let change = Change {
                steps: vec![step],
                ..Change::default()
            };
            match self.type_batches(&change.batches(), patience).await {
                Ok(()) => {
                    tracing::warn!(%line, "removed an unmanaged line of FRR");
                    removed += 1;
                }
                Err(error) => {
                    tracing::warn!(%line, %error, "failed to remove an unmanaged line of FRR");
                }
            }
        }
        removed
    }

    /// Gives FRR one batch after the other; stops at the first that it refuses.
    pub(crate) async fn type_batches(
        &self,
        batches: &[Batch],
        patience: Patience,
    ) -> Result<(), vtysh::Error> {
        for batch in batches {
            if batch.is_configuration() {
                self.configured.fetch_add(1, Ordering::Relaxed);
            }
            vtysh::send(&self.instance, batch, patience.silence()).await?;
            if let Some(watchdog) = &self.watchdog {
                watchdog.moves_on();
            }
        }
        Ok(())
    }

    /// Types the lines of a change; returns the change that was left when FRR took all of it.
    ///
    /// FRR's daemons learn of each other's changes a moment later: bgpd rejects the removal of a VRF until zebra has reported that
    /// the VNI is gone. What is left then is looked at again, for as long as it may take.
    pub(crate) async fn configure(
        &self,
        desired: &frr::FrrConfig,
        mut change: Change,
        applied: &mut Applied,
        patience: Patience,
    ) -> Result<Change, Failure> {
        let deadline = Instant::now() + patience.at_most(FRR_PATIENCE);
        loop {
            let outcome = self.type_batches(&change.batches(), patience).await;
            applied.frr_lines += change.n_lines();
            let resets = change.resets.iter().map(ToString::to_string);
            applied.resets.extend(resets);
            match outcome {
                Ok(()) => return Ok(change),
                Err(error) if error.is_passing() && Instant::now() < deadline => {
                    tokio::time::sleep(POLL).await;
                    change = self.change(desired, applied, patience).await?;
                }
                Err(error) => return Err(Failure::Frr(error)),
            }
        }
    }

    /// Types the lines that FRR takes only after the kernel's devices are gone, which zebra notices a moment later.
    pub(crate) async fn after_devices(
        &self,
        desired: &frr::FrrConfig,
        change: &Change,
        patience: Patience,
    ) -> Result<(), Failure> {
        let deadline = Instant::now() + patience.at_most(FRR_PATIENCE);
        let mut lines = change.batches_after_devices();
        loop {
            match self.type_batches(&lines, patience).await {
                Ok(()) => return Ok(()),
                Err(error) if error.is_passing() && Instant::now() < deadline => {
                    tokio::time::sleep(POLL).await;
                    let left = frr::diff(&self.running(patience).await?.config, desired);
                    lines = left.batches_after_devices();
                }
                Err(error) => return Err(Failure::Frr(error)),
            }
        }
    }

    /// Verifies that FRR runs the configuration: `is_done` is asked about the change that is left.
    pub(crate) async fn verify(
        &self,
        desired: &frr::FrrConfig,
        is_done: fn(&Change) -> bool,
        applied: &mut Applied,
        patience: Patience,
    ) -> Result<(), Failure> {
        let deadline = Instant::now() + patience.at_most(SHOWN_PATIENCE);
        loop {
            let running = self.running(patience).await?;
            applied.unmanaged = running.unknown.iter().map(ToString::to_string).collect();
            let left = frr::diff(&running.config, desired);
            if is_done(&left) {
                return Ok(());
            }
            // A daemon that has exited shows nothing, and has forgotten nothing.
            let ended = daemons::missing(&self.instance);
            if !ended.is_empty() {
                return Err(Failure::Ended(ended));
            }
            if Instant::now() < deadline {
                tokio::time::sleep(POLL).await;
                continue;
            }
            return Err(Failure::Verify {
                differences: left.to_string(),
                of_frr: true,
            });
        }
    }

    /// The first line of a change that FRR does not take. Lines are typed one by one, for as long as this may take.
    pub(crate) async fn first_refused(
        &self,
        desired: &frr::FrrConfig,
        until: Instant,
        patience: Patience,
    ) -> Result<Option<Refusal>, Failure> {
        let left = frr::diff(&self.running(patience).await?.config, desired);
        for step in single_lines(&left) {
            if Instant::now() >= until {
                return Ok(None);
            }
            match self.type_line(&step, patience).await {
                Ok(_) => {}
                Err(error) => match error.refusal() {
                    Some(why) if !error.is_passing() => return Ok(Some(refusal(&step, why))),
                    _ => return Err(Failure::Frr(error)),
                },
            }
        }
        // Taken, and not kept.
        let left = frr::diff(&self.running(patience).await?.config, desired);
        let Some(step) = single_lines(&left).next() else {
            return Ok(None);
        };
        let said = self.type_line(&step, patience).await;
        let said = said.map_err(Failure::Frr)?;
        let why = if said.trim().is_empty() {
            "it is taken, and it is not in the running configuration".to_owned()
        } else {
            said
        };
        Ok(Some(refusal(&step, why)))
    }

    /// Types one line; returns what FRR says.
    async fn type_line(&self, step: &Step, patience: Patience) -> Result<String, vtysh::Error> {
        let change = Change {
            steps: vec![step.clone()],
            ..Change::default()
        };
        let mut said = String::new();
        for batch in change.batches() {
            if batch.is_configuration() {
                self.configured.fetch_add(1, Ordering::Relaxed);
            }
            said.push_str(&vtysh::send(&self.instance, &batch, patience.silence()).await?);
        }
        Ok(said)
    }

    /// Makes sessions look at changed filters.
    pub(crate) async fn clear(&self, change: &Change, patience: Patience) -> Result<(), Failure> {
        let clears = change.clear_batches();
        self.type_batches(&clears, patience)
            .await
            .map_err(Failure::Frr)
    }
}

/// The lines of a change, each as a change of its own.
fn single_lines(change: &Change) -> impl Iterator<Item = Step> + '_ {
    change.steps.iter().flat_map(|step| {
        let enter = step.lines.is_empty().then(Vec::new);
        let lines = step.lines.iter().map(|line| vec![line.clone()]);
        enter.into_iter().chain(lines).map(|lines| Step {
            path: step.path.clone(),
            lines,
        })
    })
}

fn refusal(step: &Step, why: String) -> Refusal {
    let line = step.lines.first();
    Refusal {
        path: step.path.clone(),
        line: line.map(ToString::to_string).unwrap_or_default(),
        why,
    }
}
