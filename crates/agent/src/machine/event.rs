//! What the machine takes and gives.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use api::meta::SecretReference;

use api::tcaas::node_network_config::UnattachedPort;

use crate::{
    config::{Config, Time},
    health::Health,
    journal::Journal,
};

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The agent has started and read its journal.
    Started {
        /// Whether the kernel holds objects of Selvedge.
        has_objects: bool,
        /// Whether the machine was rebooted after the journal was written.
        rebooted: bool,
    },
    /// The node's config arrived; also when it is the one already known.
    Assigned(Assigned),
    /// The time to wait for has come.
    Woken,
    /// The user wants no more of the config that is being tried.
    Interrupted,
    /// The kernel or FRR was changed, by the agent itself or by another program.
    Drifted,
    /// The journal was written, or why not.
    Saved(Result<(), String>),
    /// Health was measured.
    Measured(Health),
    /// A config was applied.
    Applied(Result<Outcome, Fault>),
}

/// A config as the API server or a file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assigned {
    /// The config.
    pub config: Arc<Config>,
    /// Value of the retry annotation: a new value makes a config that was rolled back be tried again.
    pub retry: Option<String>,
    /// Why the config cannot be used at all, such as a newer contract.
    pub refusal: Option<String>,
    /// Value of the hold annotation: nothing new is applied while it is there.
    pub hold: Option<String>,
    /// Secrets of the config that cannot be read, and why. Their content is not part of it.
    pub unread: BTreeMap<SecretReference, String>,
}

impl Assigned {
    /// A config that is to be tried as it is.
    pub fn new(config: Arc<Config>) -> Self {
        Self {
            config,
            retry: None,
            refusal: None,
            hold: None,
            unread: BTreeMap::new(),
        }
    }

    /// Whether nothing forbids that the config is tried.
    pub(super) fn is_usable(&self) -> bool {
        self.refusal.is_none() && self.hold.is_none()
    }
}

/// A successful apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What had to be changed, a line for each difference.
    pub changes: BTreeSet<String>,
    /// Whether there are differences, and all of them are put off.
    pub put_off: bool,
    /// What the node cannot do of the config.
    pub notes: Vec<String>,
    /// Ports that are not attached to their bridge.
    pub unattached: Vec<UnattachedPort>,
    /// Mirrors that could not be set up.
    pub mirror_failures: Vec<String>,
}

/// A failed apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The failing step and its error, without secrets.
    pub message: String,
    /// Whether another attempt with the same config cannot succeed.
    pub permanent: bool,
    /// What FRR has to do with it.
    pub frr: FrrFault,
}

/// What FRR has to do with a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrrFault {
    /// Nothing.
    None,
    /// It refused something, or did not start: starting it anew may help.
    Refused,
    /// It did not answer in time: nothing less than starting it anew helps.
    Silent,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Wait for an event, at most until this time.
    Wait(Time),
    /// Write the journal.
    Save(Journal),
    /// Measure health.
    Measure {
        /// Whose uplinks and sessions are measured; none for a node without a config.
        router: Option<Arc<Config>>,
        /// Whose probes are run.
        probes: Arc<Config>,
        /// How long it may take, if less than its checks may; what has not answered by then has failed.
        limit: Option<Duration>,
    },
    /// Make the node what the config says.
    Apply {
        /// The config.
        config: Arc<Config>,
        /// By which means.
        means: Means,
        /// What for.
        purpose: Purpose,
        /// How long it should take at most; none if nothing waits for that. Waits become shorter towards its end, and work that goes on
        /// is not cut off.
        limit: Option<Duration>,
    },
}

/// What a config is applied for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It is tried: nothing is changed where that could not be undone.
    Try {
        /// Uplinks that the confirmed config does not have. While one of them is not there, the others are not moved for a config that
        /// cannot be confirmed.
        new_nics: Vec<String>,
    },
    /// What the node had before is not known, so that there would be no way back: the config is accepted if it is what runs.
    Adopt,
    /// The node gets back what it had, as far as possible.
    Keep,
    /// The node drifted, or may have.
    Repair {
        /// Differences that keep coming back and are not due yet. While there are no others, nothing is done.
        put_off: BTreeSet<String>,
    },
}

/// How a config is brought onto the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// By the least change of kernel and FRR.
    LeastChange,
    /// By the least change of the kernel; FRR is stopped and started from the config.
    FreshFrr,
}
