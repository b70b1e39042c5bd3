//! From a config to a node that has it: plan, apply, verify. Every error is part of the outcome.
//!
//! The order, and why: kernel objects that FRR refers to come first and stay down; FRR learns of them; then they come up,
//! and what is no longer wanted goes, when FRR has let go of it (see [`linux::plan`]). After that both plans must be
//! empty, or the apply has failed. Mirrors stand apart: one that cannot be made is told of, and fails nothing.

use std::{
    fmt,
    time::{Duration, Instant},
};

use api::tcaas::NodeNetworkConfigSpec;
use frr::{Change, FrrVersion, Secrets};
use linux::{Observed, Plan, Step, netlink::Kernel};

use crate::{daemons, report, vtysh};

/// How long FRR's daemons may take to hear of each other's changes.
const FRR_PATIENCE: Duration = Duration::from_secs(10);

/// What an apply did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Changes of the kernel.
    pub kernel_steps: usize,
    /// Lines typed into FRR.
    pub frr_lines: usize,
    /// Sessions that were closed on purpose.
    pub resets: Vec<String>,
    /// Daemons that had to be started.
    pub started: Vec<&'static str>,
    /// What this kernel or this node cannot give.
    pub notes: Vec<String>,
    /// Why packets are not copied as they should be; nothing if they are.
    pub mirror_failures: Vec<String>,
}

impl Applied {
    /// Whether there was nothing to do.
    pub fn is_nothing(&self) -> bool {
        self.kernel_steps == 0 && self.frr_lines == 0 && self.started.is_empty()
    }
}

impl fmt::Display for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_nothing() {
            return f.write_str("nothing to do");
        }
        write!(
            f,
            "{} kernel steps, {} FRR lines",
            self.kernel_steps, self.frr_lines
        )?;
        if !self.started.is_empty() {
            write!(f, ", started {}", self.started.join(" "))?;
        }
        if !self.resets.is_empty() {
            write!(f, ", closed {}", self.resets.join(", "))?;
        }
        if !self.mirror_failures.is_empty() {
            write!(f, "; not mirrored: {}", self.mirror_failures.join("; "))?;
        }
        Ok(())
    }
}

/// Why a config could not be applied.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The config asks for something this node cannot do.
    #[error("not supported here: {}", .0.join("; "))]
    Unsupported(Vec<String>),
    /// Somebody else's object stands in the way.
    #[error("in the way: {}", .0.join("; "))]
    Conflict(Vec<String>),
    /// The kernel could not be observed.
    #[error("failed to observe the kernel")]
    Observe(#[source] linux::netlink::Error),
    /// The kernel refused a step.
    #[error("failed to change the kernel")]
    Kernel(#[source] linux::netlink::ApplyError),
    /// FRR could not be brought up.
    #[error("failed to bring up FRR")]
    Daemons(#[source] daemons::Error),
    /// FRR refused a line.
    #[error("failed to configure FRR")]
    Frr(#[source] vtysh::Error),
    /// Something is still to be done after everything was done.
    #[error("not as it should be after the apply: {0}")]
    Verify(String),
}

/// Applies configs on this node.
#[derive(Debug)]
pub struct Reconciler {
    kernel: Kernel,
    paths: daemons::Paths,
    version: FrrVersion,
}

impl Reconciler {
    /// Opens this node's kernel and tells its version of FRR.
    pub async fn open(paths: daemons::Paths, namespace: &str) -> Result<Self, Failure> {
        let kernel = Kernel::open(namespace).map_err(Failure::Observe)?;
        let version = daemons::version(&paths).await.map_err(Failure::Daemons)?;
        Ok(Self {
            kernel,
            paths,
            version,
        })
    }

    /// The version of FRR on this node.
    pub fn frr_version(&self) -> FrrVersion {
        self.version
    }

    /// The interfaces of this node.
    pub async fn interfaces(&self) -> Result<Vec<linux::netlink::Interface>, Failure> {
        self.kernel.interfaces().await.map_err(Failure::Observe)
    }

    /// Makes the node what the config says, and proves it by a second plan, which must be empty.
    pub async fn reconcile(&self, config: &NodeNetworkConfigSpec) -> Result<Applied, Failure> {
        let kernel = linux::desired(config).map_err(|refused| unsupported(&refused))?;
        let frr = frr::desired(config, &Secrets::new(), self.version)
            .map_err(|refused| unsupported(&refused))?;

        let plan = self.plan(&kernel).await?;
        let mut applied = Applied {
            kernel_steps: plan.len(),
            ..Applied::default()
        };
        for note in plan.notes() {
            let notes = if note.is_of_mirror() {
                &mut applied.mirror_failures
            } else {
                &mut applied.notes
            };
            notes.push(note.to_string());
        }
        self.mirrors(plan.mirror_teardown(), &mut applied).await;
        self.kernel
            .apply(plan.before_frr())
            .await
            .map_err(Failure::Kernel)?;
        let change = match &config.underlay {
            Some(underlay) => {
                applied.started = daemons::ensure(&self.paths, &underlay.namespace)
                    .await
                    .map_err(Failure::Daemons)?;
                self.configure_frr(&frr, &underlay.namespace, &mut applied)
                    .await?
            }
            None => Change::default(),
        };
        self.kernel
            .apply(plan.after_frr())
            .await
            .map_err(Failure::Kernel)?;
        self.mirrors(plan.mirror_setup(), &mut applied).await;
        self.finish_frr(&frr, &change).await?;
        vtysh::commands(&change.clears)
            .await
            .map_err(Failure::Frr)?;
        if !applied.is_nothing() {
            self.verify(config, &kernel, &frr, &mut applied).await?;
        }
        Ok(applied)
    }

    /// Does the steps of mirrors, and remembers what failed.
    async fn mirrors(&self, steps: &[Step], applied: &mut Applied) {
        let failures = self.kernel.attempt(steps).await;
        let texts = failures.iter().map(|failure| report::chain(failure));
        applied.mirror_failures.extend(texts);
    }

    /// Types the lines that lead to the configuration; returns the change that was left when FRR took all of it.
    ///
    /// FRR's daemons hear of each other's changes a moment later: bgpd refuses to give up a VRF until zebra has told it that
    /// the VNI is gone. What is left then is looked at again, for as long as it may take.
    async fn configure_frr(
        &self,
        desired: &frr::FrrConfig,
        namespace: &str,
        applied: &mut Applied,
    ) -> Result<Change, Failure> {
        let deadline = Instant::now() + FRR_PATIENCE;
        let mut change = self.change(desired).await?;
        if change.replaces_router {
            // Nothing of the old router survives a new AS, and bgpd does not always survive the change itself.
            daemons::stop(&self.paths).await.map_err(Failure::Daemons)?;
            applied.started = daemons::ensure(&self.paths, namespace)
                .await
                .map_err(Failure::Daemons)?;
            change = self.change(desired).await?;
        }
        loop {
            let outcome = vtysh::commands(&change.to_vtysh()).await;
            applied.frr_lines += change.n_lines();
            let resets = change.resets.iter().map(ToString::to_string);
            applied.resets.extend(resets);
            match outcome {
                Ok(()) => return Ok(change),
                Err(error) if error.is_passing() && Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    change = self.change(desired).await?;
                }
                Err(error) => return Err(Failure::Frr(error)),
            }
        }
    }

    /// Types the lines that FRR takes only after the kernel's devices are gone, which zebra hears of a moment later.
    async fn finish_frr(&self, desired: &frr::FrrConfig, change: &Change) -> Result<(), Failure> {
        let deadline = Instant::now() + FRR_PATIENCE;
        let mut lines = change.to_vtysh_after_devices();
        loop {
            match vtysh::commands(&lines).await {
                Ok(()) => return Ok(()),
                Err(error) if error.is_passing() && Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    lines = self.change(desired).await?.to_vtysh_after_devices();
                }
                Err(error) => return Err(Failure::Frr(error)),
            }
        }
    }

    async fn verify(
        &self,
        config: &NodeNetworkConfigSpec,
        kernel: &linux::Desired,
        frr: &frr::FrrConfig,
        applied: &mut Applied,
    ) -> Result<(), Failure> {
        let plan = self.plan(kernel).await?;
        let steps: Vec<String> = plan.essential().map(ToString::to_string).collect();
        if !steps.is_empty() {
            return Err(Failure::Verify(steps.join("; ")));
        }
        if applied.mirror_failures.is_empty() {
            let left = plan.mirrors().map(|step| format!("still to do: {step}"));
            applied.mirror_failures.extend(left);
        }
        if config.underlay.is_some() {
            let change = self.change(frr).await?;
            if !change.is_empty() {
                return Err(Failure::Verify(change.to_string()));
            }
        }
        Ok(())
    }

    async fn plan(&self, desired: &linux::Desired) -> Result<Plan, Failure> {
        let observed: Observed = self.kernel.observe().await.map_err(Failure::Observe)?;
        linux::diff(desired, &observed).map_err(|conflicts| {
            Failure::Conflict(conflicts.iter().map(ToString::to_string).collect())
        })
    }

    async fn change(&self, desired: &frr::FrrConfig) -> Result<Change, Failure> {
        let text = vtysh::running_config().await.map_err(Failure::Frr)?;
        let running = frr::parse(&text, self.version);
        for line in &running.unknown {
            tracing::warn!(%line, "FRR runs a line that nobody asked for");
        }
        Ok(frr::diff(&running.config, desired))
    }
}

fn unsupported<T: fmt::Display>(refused: &[T]) -> Failure {
    Failure::Unsupported(refused.iter().map(ToString::to_string).collect())
}
