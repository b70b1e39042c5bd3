//! FRR's half of an apply: its daemons, its lines, and unmanaged lines.

use frr::{Change, FrrVersion};

use super::{
    Applied, Reconciler,
    failure::{Failure, unsupported},
    start,
};
use crate::{config::Config, daemons, machine::Means, patience::Patience};

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
        let ensured = daemons::ensure(self.frr.instance(), patience).await;
        let daemons::Ensured { started, note } = ensured.map_err(Failure::Daemons)?;
        applied.started = started;
        applied.notes.extend(note);
        applied
            .changes
            .extend(applied.started.iter().map(|name| start(name)));
        Ok(())
    }

    /// Types the lines that lead to the configuration; returns the change that was left when FRR took all of it.
    async fn configure_frr(
        &self,
        config: &Config,
        applied: &mut Applied,
        patience: Patience,
    ) -> Result<Change, Failure> {
        // The daemons that were started may be of another version than those that ran.
        let desired = self.desired_frr(config, patience).await?;
        let is_fresh = applied.started.contains(&"bgpd");
        let mut change = self.frr.change(&desired, applied, patience).await?;
        if change.router.needs_fresh_frr(is_fresh) {
            self.stop_frr(patience).await?;
            self.start_frr(applied, patience).await?;
            change = self.frr.change(&desired, applied, patience).await?;
        }
        self.frr
            .configure(&desired, change, applied, patience)
            .await
    }

    /// Types the lines that FRR takes only after the kernel's devices are gone, and makes sessions look at changed filters.
    pub(super) async fn finish_frr(
        &self,
        config: &Config,
        change: &Change,
        patience: Patience,
    ) -> Result<(), Failure> {
        let desired = self.desired_frr(config, patience).await?;
        self.frr.after_devices(&desired, change, patience).await?;
        self.frr.clear(change, patience).await
    }

    pub(super) async fn verify_frr(
        &self,
        config: &Config,
        applied: &mut Applied,
        patience: Patience,
    ) -> Result<(), Failure> {
        let desired = self.desired_frr(config, patience).await?;
        self.frr
            .verify(&desired, Change::is_empty, applied, patience)
            .await
    }
}
