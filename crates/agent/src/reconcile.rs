//! From a config to a node that has it: plan, apply, verify. Every error is part of the outcome.
//!
//! The order, and why: kernel objects that FRR refers to come first and stay down; FRR learns of them; then they come up,
//! and objects that are no longer needed are deleted after FRR has released them (see [`linux::plan`]). After that both plans must be
//! empty, or the apply has failed. Mirrors stand apart: one that cannot be made is reported, and fails nothing.

mod failure;
mod frr_side;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use api::tcaas::node_network_config::UnattachedPort;
use frr::{Change, FrrVersion};
use linux::{Observed, Plan, Step, netlink::Kernel};
use tokio::sync::watch;

pub use self::failure::Failure;
use self::failure::{unsupported, within};
use crate::{
    config::Config,
    daemons::{self, Instance},
    frr_shell::FrrShell,
    hold::Expected,
    machine::{Means, Purpose},
    nics,
    patience::Patience,
    report,
    watchdog::Watchdog,
};

/// How long the kernel may take to tell what it holds.
const OBSERVE_PATIENCE: Duration = Duration::from_secs(10);
/// How long the kernel may take for a change, besides the time for its steps.
const KERNEL_PATIENCE: Duration = Duration::from_secs(10);
/// How long one step of the kernel may take.
const STEP_PATIENCE: Duration = Duration::from_millis(100);

/// How many steps the kernel is given before the watchdog learns that the change continues.
const STEPS_AT_ONCE: usize = 200;

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
    /// Ports that are not attached to their bridge.
    pub unattached: Vec<UnattachedPort>,
    /// Why packets are not copied as they should be; nothing if they are.
    pub mirror_failures: Vec<String>,
    /// The differences that were removed, a line for each.
    pub changes: BTreeSet<String>,
    /// There are differences, and all of them are put off: nothing was done.
    pub put_off: bool,
    /// Lines of FRR that the config does not have, and that are still there.
    pub(crate) unmanaged: Vec<String>,
}

impl Applied {
    /// Whether there was nothing to do.
    pub fn is_nothing(&self) -> bool {
        self.kernel_steps == 0 && self.frr_lines == 0 && self.started.is_empty()
    }
}

/// What differs from a config, a line for each difference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Differences {
    /// Steps of the kernel.
    kernel: Vec<String>,
    /// Lines of FRR that the config does not have.
    unmanaged: Vec<String>,
    /// Lines to be typed into FRR, and daemons to be started or stopped.
    frr: Vec<String>,
}

impl Differences {
    fn into_lines(self) -> Vec<String> {
        [self.kernel, self.unmanaged, self.frr].concat()
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

/// Applies configs on this node.
#[derive(Debug)]
pub struct Reconciler {
    kernel: Arc<Kernel>,
    nics: nics::Store,
    frr: FrrShell,
    /// The bgpd whose end would be an accident; none while FRR is stopped on purpose.
    bgpd: watch::Sender<Option<Expected>>,
    /// Notified that a long change continues; absent in commands.
    watchdog: Option<Watchdog>,
}

impl Reconciler {
    /// Opens this node's kernel.
    pub fn open(
        paths: &daemons::Paths,
        namespace: &str,
        report_only: bool,
    ) -> Result<Self, Failure> {
        Ok(Self {
            kernel: Arc::new(Kernel::open(namespace).map_err(Failure::Observe)?),
            nics: nics::Store::new(&paths.state),
            frr: FrrShell::new(Instance::router(paths, namespace), report_only),
            bgpd: watch::Sender::new(None),
            watchdog: None,
        })
    }

    /// The same, watched while it works.
    pub(crate) fn watched_by(mut self, watchdog: Watchdog) -> Self {
        self.frr.set_watchdog(watchdog.clone());
        self.watchdog = Some(watchdog);
        self
    }

    pub(crate) fn bgpd(&self) -> &watch::Sender<Option<Expected>> {
        &self.bgpd
    }

    pub(crate) fn frr(&self) -> &FrrShell {
        &self.frr
    }

    /// Stops FRR on purpose.
    async fn stop_frr(&self, patience: Patience) -> Result<(), Failure> {
        self.bgpd.send_replace(None);
        let stop = daemons::stop(self.frr.instance(), patience);
        stop.await.map_err(Failure::Daemons)
    }

    pub(crate) fn kernel(&self) -> &Arc<Kernel> {
        &self.kernel
    }

    pub(crate) fn paths(&self) -> &daemons::Paths {
        self.frr.instance().paths()
    }

    /// The version of FRR that runs here, or would be started.
    pub async fn frr_version(&self, patience: Duration) -> Result<FrrVersion, Failure> {
        self.frr.version(patience).await
    }

    /// Whether the kernel holds anything that Selvedge made.
    pub(crate) async fn has_objects(&self) -> Result<bool, Failure> {
        let observed = self.observe(OBSERVE_PATIENCE).await?;
        let namespace = observed.namespace.as_ref();
        let is_ours =
            namespace.is_some_and(|namespace| namespace.owner == linux::owned::Owner::Ours);
        Ok(is_ours || observed.ours().next().is_some())
    }

    /// Makes the node what the config says, and proves it by a second plan, which must be empty.
    pub(crate) async fn reconcile(
        &self,
        config: &Config,
        means: Means,
        purpose: &Purpose,
        patience: Patience,
    ) -> Result<Applied, Failure> {
        let spec = &config.spec;
        let kernel = linux::desired(spec).map_err(|refused| unsupported(&refused))?;
        // What FRR cannot do is found out before anything is changed.
        self.desired_frr(config, patience).await?;
        let plan = self.plan_kernel(&kernel, patience).await?;
        let mut applied = Applied {
            kernel_steps: plan.len(),
            notes: config.without_held_back().1,
            changes: plan.steps().map(ToString::to_string).collect(),
            ..Applied::default()
        };
        take_notes(&plan, &mut applied);
        if self.is_left_alone(config, &plan, purpose, patience).await? {
            return Ok(Applied {
                put_off: true,
                ..Applied::default()
            });
        }
        self.prepare_nics(&plan, purpose, &mut applied, patience)
            .await?;
        self.mirrors(plan.mirror_teardown(), &mut applied).await;
        self.change_kernel(plan.before_frr(), patience).await?;
        let change = if spec.underlay.is_some() {
            self.bring_up_frr(config, means, &mut applied, patience)
                .await?
        } else {
            self.stop_frr(patience).await?;
            Change::default()
        };
        self.change_kernel(plan.after_frr(), patience).await?;
        self.mirrors(plan.mirror_setup(), &mut applied).await;
        self.restore_nics(plan.nic_restore(), &mut applied).await?;
        if spec.underlay.is_some() {
            self.finish_frr(config, &change, patience).await?;
        }
        if !applied.is_nothing() {
            self.verify(config, &kernel, &mut applied, patience).await?;
        }
        let unmanaged: Vec<String> = applied.unmanaged.iter().map(unmanaged).collect();
        applied.notes.extend(unmanaged);
        Ok(applied)
    }

    /// Whether there are differences, and all of them are put off. What runs and is not known is left alone as well.
    async fn is_left_alone(
        &self,
        config: &Config,
        plan: &Plan,
        purpose: &Purpose,
        patience: Patience,
    ) -> Result<bool, Failure> {
        let put_off = match purpose {
            Purpose::Repair { put_off } if !put_off.is_empty() => Some(put_off),
            Purpose::Adopt => None,
            Purpose::Repair { .. } | Purpose::Try { .. } | Purpose::Keep => return Ok(false),
        };
        let mut differences = self.differences(config, plan, patience).await?;
        if self.frr.reports_only() {
            // Nothing is done about them.
            differences.unmanaged.clear();
        }
        let differences = differences.into_lines();
        match put_off {
            _ if differences.is_empty() => Ok(false),
            Some(put_off) => Ok(differences.iter().all(|it| put_off.contains(it))),
            None => Err(Failure::NoWayBack(differences)),
        }
    }

    /// What an apply would do, without doing it.
    pub async fn preview(&self, config: &Config) -> Result<String, Failure> {
        let kernel = linux::desired(&config.spec).map_err(|refused| unsupported(&refused))?;
        let patience = Patience::new(config, None);
        let plan = self.plan_kernel(&kernel, patience).await?;
        let differences = self.differences(config, &plan, patience).await?;
        let mut lines = differences.into_lines();
        if lines.is_empty() {
            lines.push("nothing to do".to_owned());
        }
        Ok(lines.join("\n"))
    }

    /// What differs from the config, a line for each difference, in the words of [`Applied::changes`].
    async fn differences(
        &self,
        config: &Config,
        plan: &Plan,
        patience: Patience,
    ) -> Result<Differences, Failure> {
        let mut differences = Differences {
            kernel: plan.steps().map(ToString::to_string).collect(),
            ..Differences::default()
        };
        let frr = self.desired_frr(config, patience).await?;
        if config.spec.underlay.is_none() {
            let runs = daemons::any(self.frr.instance());
            differences.frr.extend(runs.then(|| "stop FRR".to_owned()));
            return Ok(differences);
        }
        let missing = daemons::missing(self.frr.instance());
        if !missing.is_empty() {
            differences
                .frr
                .extend(missing.iter().map(|name| start(name)));
            return Ok(differences);
        }
        let running = self.frr.running(patience).await?;
        differences.unmanaged = running.unknown.iter().map(unmanaged).collect();
        let change = frr::diff(&running.config, &frr);
        let lines = change.to_string();
        differences.frr.extend(lines.lines().map(str::to_owned));
        Ok(differences)
    }

    /// Does the steps of mirrors, and remembers what failed.
    async fn mirrors(&self, steps: &[Step], applied: &mut Applied) {
        let attempt = async { Ok::<_, Failure>(self.kernel.attempt(steps).await) };
        let failures = match within(
            "change mirrors",
            KERNEL_PATIENCE + for_steps(steps),
            attempt,
        )
        .await
        {
            Ok(failures) => failures.iter().map(|it| report::chain(it)).collect(),
            Err(failure) => vec![report::chain(&failure)],
        };
        applied.mirror_failures.extend(failures);
    }

    async fn verify(
        &self,
        config: &Config,
        kernel: &linux::Desired,
        applied: &mut Applied,
        patience: Patience,
    ) -> Result<(), Failure> {
        let plan = self.plan_kernel(kernel, patience).await?;
        let steps: Vec<String> = plan.essential().map(ToString::to_string).collect();
        if !steps.is_empty() {
            return Err(Failure::Verify {
                differences: steps.join("; "),
                of_frr: false,
            });
        }
        if applied.mirror_failures.is_empty() {
            let left = plan.mirrors().map(|step| format!("still to do: {step}"));
            applied.mirror_failures.extend(left);
        }
        match &config.spec.underlay {
            Some(_) => self.verify_frr(config, applied, patience).await,
            None => Ok(()),
        }
    }

    async fn observe(&self, patience: Duration) -> Result<Observed, Failure> {
        let observe = async { self.kernel.observe().await.map_err(Failure::Observe) };
        let mut observed = within("observe the kernel", patience, observe).await?;
        observed.nic_memory = self.nics.load().map_err(Failure::Remember)?;
        Ok(observed)
    }

    /// Finds out whether NICs can be moved, and given back.
    async fn prepare_nics(
        &self,
        plan: &Plan,
        purpose: &Purpose,
        applied: &mut Applied,
        patience: Patience,
    ) -> Result<(), Failure> {
        match purpose {
            Purpose::Try { new_nics } => {
                let missing = plan.missing_nics();
                let missing = missing.filter(|name| new_nics.iter().any(|new| new == name));
                let missing: Vec<String> = missing.map(str::to_owned).collect();
                if !missing.is_empty() {
                    return Err(Failure::NoNic(missing));
                }
                self.remember_nics(plan, patience).await
            }
            // A node without its uplinks is worse than one that cannot give them back as they were.
            Purpose::Adopt | Purpose::Keep | Purpose::Repair { .. } => {
                if let Err(failure) = self.remember_nics(plan, patience).await {
                    applied.notes.push(report::chain(&failure));
                }
                Ok(())
            }
        }
    }

    /// Stores what the host knows of NICs that are about to be moved.
    async fn remember_nics(&self, plan: &Plan, patience: Patience) -> Result<(), Failure> {
        if plan.taken_nics().next().is_none() {
            return Ok(());
        }
        let patience = patience.at_most(OBSERVE_PATIENCE);
        let known = async { self.known_of_nics(plan).await.map_err(Failure::Observe) };
        let known = within("read the addresses and routes of NICs", patience, known).await?;
        let observed = self.observe(patience).await?;
        let memories =
            nics::before_move(&observed.nic_memory, plan.taken_nics(), &observed, &known);
        self.nics.save(&memories).map_err(Failure::Remember)
    }

    async fn known_of_nics(&self, plan: &Plan) -> Result<nics::Known, linux::netlink::Error> {
        let mut settings = BTreeMap::new();
        for name in plan.taken_nics() {
            settings.insert(name.to_owned(), self.kernel.host_settings(name).await?);
        }
        Ok(nics::Known {
            routes: self.kernel.host_routes().await?,
            addresses: self.kernel.host_addresses().await?,
            settings,
        })
    }

    /// Gives NICs back what the host knew of them. What cannot be given back, such as a route through a link that is down, is noted,
    /// and attempted again at the next apply.
    async fn restore_nics(&self, steps: &[Step], applied: &mut Applied) -> Result<(), Failure> {
        let known = self.nics.load().map_err(Failure::Remember)?;
        if known.is_empty() {
            return Ok(());
        }
        let attempt = async { Ok::<_, Failure>(self.kernel.attempt(steps).await) };
        let failures = within("restore NICs", KERNEL_PATIENCE + for_steps(steps), attempt).await?;
        let notes = failures.iter().map(|it| report::chain(it));
        applied.notes.extend(notes);
        let failed: Vec<&Step> = failures.iter().map(|failure| &*failure.step).collect();
        let observed = self.observe(OBSERVE_PATIENCE).await?;
        let left = nics::after_return(&known, &observed, &failed);
        if left != known
            && let Err(error) = self.nics.save(&left)
        {
            // What is stored is read again at the next return; nothing on the node depends on it now.
            applied.notes.push(report::chain(&Failure::Remember(error)));
        }
        Ok(())
    }

    async fn plan_kernel(
        &self,
        desired: &linux::Desired,
        patience: Patience,
    ) -> Result<Plan, Failure> {
        let observed = self.observe(patience.at_most(OBSERVE_PATIENCE)).await?;
        linux::diff(desired, &observed).map_err(|conflicts| {
            Failure::Conflict(conflicts.iter().map(ToString::to_string).collect())
        })
    }

    async fn change_kernel(&self, steps: &[Step], patience: Patience) -> Result<(), Failure> {
        for steps in steps.chunks(STEPS_AT_ONCE) {
            let apply = async { self.kernel.apply(steps).await.map_err(Failure::Kernel) };
            let waits = patience.at_most(KERNEL_PATIENCE) + for_steps(steps);
            within("change the kernel", waits, apply).await?;
            self.moves_on();
        }
        Ok(())
    }

    /// Tells the watchdog that a part of a long change is done.
    fn moves_on(&self) {
        if let Some(watchdog) = &self.watchdog {
            watchdog.moves_on();
        }
    }
}

/// How long the work of these steps may take. It is no part of the time for waits: a large change may take long.
fn for_steps(steps: &[Step]) -> Duration {
    STEP_PATIENCE * u32::try_from(steps.len()).unwrap_or(u32::MAX)
}

/// The words for a line that the config does not have.
pub(crate) fn unmanaged(line: impl fmt::Display) -> String {
    format!("unmanaged line in the running configuration: {line}")
}

/// The words for a daemon that does not run.
pub(crate) fn start(name: &str) -> String {
    format!("start {name}")
}

fn take_notes(plan: &Plan, applied: &mut Applied) {
    for note in plan.notes() {
        if let Some((port, bridge)) = note.unattached() {
            applied.unattached.push(UnattachedPort {
                port: port.to_owned(),
                bridge: bridge.to_owned(),
                message: note.to_string(),
            });
        }
        let notes = if note.is_of_mirror() {
            &mut applied.mirror_failures
        } else {
            &mut applied.notes
        };
        notes.push(note.to_string());
    }
}
