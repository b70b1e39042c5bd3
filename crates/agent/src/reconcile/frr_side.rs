//! FRR's half of an apply: its daemons, its lines, and unmanaged lines.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use frr::{Batch, Change, FrrVersion, Parsed, UnknownLine};

use super::{
    Applied, Reconciler,
    failure::{Failure, unsupported},
    start, unmanaged,
};
use crate::{config::Config, daemons, machine::Means, patience::Patience, vtysh};

/// How long FRR's daemons may take to learn of each other's changes. On a busy node each attempt takes FRR 10.3 more than a second.
const FRR_PATIENCE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(50);

impl Reconciler {
    /// The configuration that FRR should have.
    pub(super) async fn desired_frr(
        &self,
        config: &Config,
        patience: Patience,
    ) -> Result<frr::FrrConfig, Failure> {
        let version = self.version_for(config, patience).await?;
        let (spec, _held_back) = config.without_held_back();
        frr::desired(&spec, &config.secrets(), version).map_err(|refused| unsupported(&refused))
    }

    /// The version to write for. A node without an underlay needs no FRR, and may have none.
    async fn version_for(
        &self,
        config: &Config,
        patience: Patience,
    ) -> Result<FrrVersion, Failure> {
        match &config.spec.underlay {
            Some(_) => self.frr_version(patience.silence()).await,
            None => Ok(FrrVersion::NEWEST),
        }
    }

    /// The text of the `frr.conf` with which a fresh FRR would have this config.
    pub(crate) async fn frr_conf(
        &self,
        config: &Config,
        patience: Patience,
    ) -> Result<String, Failure> {
        let version = self.version_for(config, patience).await?;
        let frr = self.desired_frr(config, patience).await?;
        Ok(frr::print(&frr, version, &config.spec.revision))
    }

    /// Starts what does not run and types the lines that lead to the configuration.
    pub(super) async fn bring_up_frr(
        &self,
        config: &Config,
        namespace: &str,
        means: Means,
        applied: &mut Applied,
        patience: Patience,
    ) -> Result<Change, Failure> {
        if means == Means::FreshFrr {
            self.stop_frr(patience).await?;
        }
        self.start_frr(namespace, applied, patience).await?;
        // A bgpd that is given its configuration line by line opens its sessions before it has all of it, and then announces
        // nothing for as long as graceful restart lets it wait. Loaded from a file, it begins when the file is read.
        let is_fresh = applied.started.contains(&"bgpd");
        if is_fresh && self.paths.frr_conf().exists() {
            self.configured.fetch_add(1, Ordering::Relaxed);
            vtysh::load(&self.paths.frr_conf(), patience.silence())
                .await
                .map_err(Failure::Frr)?;
        }
        self.configure_frr(config, namespace, applied, patience)
            .await
    }

    async fn start_frr(
        &self,
        namespace: &str,
        applied: &mut Applied,
        patience: Patience,
    ) -> Result<(), Failure> {
        applied.started = daemons::ensure(&self.paths, namespace, patience)
            .await
            .map_err(Failure::Daemons)?;
        applied
            .changes
            .extend(applied.started.iter().map(|name| start(name)));
        Ok(())
    }

    /// Types the lines that lead to the configuration; returns the change that was left when FRR took all of it.
    ///
    /// FRR's daemons learn of each other's changes a moment later: bgpd rejects the removal of a VRF until zebra has reported that
    /// the VNI is gone. What is left then is looked at again, for as long as it may take.
    async fn configure_frr(
        &self,
        config: &Config,
        namespace: &str,
        applied: &mut Applied,
        patience: Patience,
    ) -> Result<Change, Failure> {
        let deadline = Instant::now() + patience.at_most(FRR_PATIENCE);
        // The daemons that were started may be of another version than those that ran.
        let desired = self.desired_frr(config, patience).await?;
        let mut change = self.change(&desired, applied, patience).await?;
        if change.replaces_router {
            // Nothing of the old router survives a new AS, and bgpd does not always survive the change itself.
            self.stop_frr(patience).await?;
            self.start_frr(namespace, applied, patience).await?;
            change = self.change(&desired, applied, patience).await?;
        }
        loop {
            let outcome = self.type_batches(&change.batches(), patience).await;
            applied.frr_lines += change.n_lines();
            let resets = change.resets.iter().map(ToString::to_string);
            applied.resets.extend(resets);
            match outcome {
                Ok(()) => return Ok(change),
                Err(error) if error.is_passing() && Instant::now() < deadline => {
                    tokio::time::sleep(POLL).await;
                    change = self.change(&desired, applied, patience).await?;
                }
                Err(error) => return Err(Failure::Frr(error)),
            }
        }
    }

    /// Gives FRR one batch after the other; stops at the first that it refuses.
    async fn type_batches(
        &self,
        batches: &[Batch],
        patience: Patience,
    ) -> Result<(), vtysh::Error> {
        for batch in batches {
            if batch.is_configuration() {
                self.configured.fetch_add(1, Ordering::Relaxed);
            }
            vtysh::send(&self.paths.run, batch, patience.silence()).await?;
        }
        Ok(())
    }

    /// Types the lines that FRR takes only after the kernel's devices are gone, which zebra notices a moment later, and
    /// makes sessions look at changed filters.
    pub(super) async fn finish_frr(
        &self,
        config: &Config,
        change: &Change,
        patience: Patience,
    ) -> Result<(), Failure> {
        let deadline = Instant::now() + patience.at_most(FRR_PATIENCE);
        let mut lines = change.batches_after_devices();
        loop {
            match self.type_batches(&lines, patience).await {
                Ok(()) => break,
                Err(error) if error.is_passing() && Instant::now() < deadline => {
                    tokio::time::sleep(POLL).await;
                    let desired = self.desired_frr(config, patience).await?;
                    let left = frr::diff(&self.running_frr(patience).await?.config, &desired);
                    lines = left.batches_after_devices();
                }
                Err(error) => return Err(Failure::Frr(error)),
            }
        }
        let clears = change.clear_batches();
        self.type_batches(&clears, patience)
            .await
            .map_err(Failure::Frr)
    }

    pub(super) async fn verify_frr(
        &self,
        config: &Config,
        applied: &mut Applied,
        patience: Patience,
    ) -> Result<(), Failure> {
        let desired = self.desired_frr(config, patience).await?;
        let running = self.running_frr(patience).await?;
        let change = frr::diff(&running.config, &desired);
        applied.unmanaged = running.unknown.iter().map(ToString::to_string).collect();
        if change.is_empty() {
            return Ok(());
        }
        Err(Failure::Verify {
            differences: change.to_string(),
            of_frr: true,
        })
    }

    pub(super) async fn running_frr(&self, patience: Patience) -> Result<Parsed, Failure> {
        let version = self.frr_version(patience.silence()).await?;
        let text = vtysh::running_config(&self.paths.run, patience.silence())
            .await
            .map_err(Failure::Frr)?;
        Ok(frr::parse(&text, version))
    }

    /// What is to be changed, after lines that the config does not have are gone.
    async fn change(
        &self,
        desired: &frr::FrrConfig,
        applied: &mut Applied,
        patience: Patience,
    ) -> Result<Change, Failure> {
        let mut running = self.running_frr(patience).await?;
        if !running.unknown.is_empty() && !self.report_only {
            applied
                .changes
                .extend(running.unknown.iter().map(unmanaged));
            applied.frr_lines += self.remove_unmanaged(&running.unknown, patience).await;
            running = self.running_frr(patience).await?;
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
}
