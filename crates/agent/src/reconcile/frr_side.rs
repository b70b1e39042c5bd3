//! FRR's half of an apply: its daemons, its lines, and unmanaged lines.

use std::time::{Duration, Instant};

use frr::{Change, FrrVersion};

use super::{
    Applied, Reconciler,
    failure::{Failure, unsupported},
    start,
};
use crate::{config::Config, daemons, machine::Means, patience::Patience};

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
        means: Means,
        applied: &mut Applied,
        patience: Patience,
    ) -> Result<Change, Failure> {
        if means == Means::FreshFrr {
            self.stop_frr(patience).await?;
        }
        self.start_frr(applied, patience).await?;
        // A bgpd that is given its configuration line by line opens its sessions before it has all of it, and then announces
        // nothing for as long as graceful restart lets it wait. Loaded from a file, it begins when the file is read.
        let is_fresh = applied.started.contains(&"bgpd");
        if is_fresh && self.frr.instance().frr_conf().exists() {
            let frr_conf = self.frr.instance().frr_conf();
            self.frr.load(&frr_conf, patience).await?;
        }
        self.configure_frr(config, applied, patience).await
    }

    async fn start_frr(&self, applied: &mut Applied, patience: Patience) -> Result<(), Failure> {
        applied.started = daemons::ensure(self.frr.instance(), patience)
            .await
            .map_err(Failure::Daemons)?;
        applied
            .changes
            .extend(applied.started.iter().map(|name| start(name)));
        Ok(())
    }

    /// Types the lines that lead to the configuration; returns the change that was left when FRR took all of it.
    ///
    /// FRR's daemons learn of each other's changes a moment later: bgpd refuses to give up a VRF until zebra has told it that
    /// the VNI is gone. What is left then is looked at again, for as long as it may take.
    async fn configure_frr(
        &self,
        config: &Config,
        applied: &mut Applied,
        patience: Patience,
    ) -> Result<Change, Failure> {
        let deadline = Instant::now() + patience.at_most(FRR_PATIENCE);
        // The daemons that were started may be of another version than those that ran.
        let desired = self.desired_frr(config, patience).await?;
        let mut change = self.frr.change(&desired, applied, patience).await?;
        if change.replaces_router {
            // Nothing of the old router survives a new AS, and bgpd does not always survive the change itself.
            self.stop_frr(patience).await?;
            self.start_frr(applied, patience).await?;
            change = self.frr.change(&desired, applied, patience).await?;
        }
        loop {
            let outcome = self.frr.type_batches(&change.batches(), patience).await;
            applied.frr_lines += change.n_lines();
            let resets = change.resets.iter().map(ToString::to_string);
            applied.resets.extend(resets);
            match outcome {
                Ok(()) => return Ok(change),
                Err(error) if error.is_passing() && Instant::now() < deadline => {
                    tokio::time::sleep(POLL).await;
                    change = self.frr.change(&desired, applied, patience).await?;
                }
                Err(error) => return Err(Failure::Frr(error)),
            }
        }
    }

    /// Types the lines that FRR takes only after the kernel's devices are gone, which zebra hears of a moment later, and
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
            match self.frr.type_batches(&lines, patience).await {
                Ok(()) => break,
                Err(error) if error.is_passing() && Instant::now() < deadline => {
                    tokio::time::sleep(POLL).await;
                    let desired = self.desired_frr(config, patience).await?;
                    let left = frr::diff(&self.frr.running(patience).await?.config, &desired);
                    lines = left.batches_after_devices();
                }
                Err(error) => return Err(Failure::Frr(error)),
            }
        }
        let clears = change.clear_batches();
        self.frr
            .type_batches(&clears, patience)
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
        let running = self.frr.running(patience).await?;
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
}
