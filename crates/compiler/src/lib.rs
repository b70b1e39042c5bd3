//! The decisions of Selvedge: from a [`Snapshot`] of all objects to the exact config of every node, as one pure function.
//!
//! ```text
//! Snapshot ─► what references resolve to ─lower─► low-level objects ─select─► groups of nodes ─► config of each node
//!                                             └──► objects for other programs of the cluster         │
//!                                                            statuses ◄── problems, progress ◄───────┘
//! ```
//!
//! Each stage is a plain function of what it reads, and reads through a `View` that records it (`memo`), so that after a change only
//! that is computed again which depends on it. `stages` lists them all.
//!
//! No clock, no IO, no logger, no hash order: the same input gives the same bytes. It cannot fail; it can only find
//! [`Problem`]s, each of which belongs to one object and harms no other.

pub mod allocate;
mod compiler;
mod exhausted;
mod fingerprint;
pub mod host_router;
mod last_good;
pub mod lower;
mod memo;
pub mod mirror;
pub mod names;
pub mod node;
pub mod platform;
pub mod prefixes;
pub mod problem;
mod problems;
pub mod revision;
pub mod rollout;
pub mod select;
pub mod snapshot;
mod special;
mod stages;
pub mod status;
mod view;
mod writes;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use api::value::Vni;

pub use self::{
    compiler::{Change, Compiler, Prepared, Review, Writes},
    lower::{LowLevelObjects, MergedIntent},
    node::NodeConfig,
    platform::PlatformObject,
    problem::{Problem, Severity},
    revision::Revision,
    rollout::Removal,
    snapshot::{Insertion, Kind, Object, ObjectRef, Snapshot},
    status::Status,
};
use self::{
    lower::{NodeAddresses, ResolvedVrfs},
    platform::Identity,
};

/// The result of a compile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compilation {
    /// What intents became, merged with hand-written low-level objects.
    pub objects: LowLevelObjects,
    /// What stands for each intent.
    pub intents: BTreeMap<ObjectRef, Arc<MergedIntent>>,
    /// VRFs that can be used.
    pub vrfs: Arc<ResolvedVrfs>,
    /// VNIs that Networks got from the cluster's range, or have of their own.
    pub network_vnis: Arc<BTreeMap<String, Vni>>,
    /// The addresses from which workloads of each BGPNeighbor open sessions.
    pub workload_ips: Arc<BTreeMap<String, Vec<IpAddr>>>,
    /// The addresses that nodes have on segments.
    pub node_addresses: NodeAddresses,
    /// What changes forwarding, with its fingerprint.
    pub revision: Revision,
    /// The config of each node.
    pub nodes: BTreeMap<String, Arc<NodeConfig>>,
    /// Nodes whose config must be approved before it is published, each with what the config would take away.
    pub removals: BTreeMap<String, Removal>,
    /// Objects for other programs of the cluster, such as the load balancer.
    pub platform: BTreeMap<Identity, Arc<PlatformObject>>,
    /// Intents that something is wrong with: what stands on the platform for them stays as it is.
    pub platform_keeps: BTreeSet<ObjectRef>,
    /// What is wrong, sorted by object; nothing twice.
    pub problems: Arc<Vec<Problem>>,
}

/// Compiles everything.
pub fn compile(snapshot: &Snapshot) -> Compilation {
    compiler::compile_once(snapshot)
}

/// The statuses that objects have. Times are left out: the writer of a status knows when it changed.
pub fn statuses(snapshot: &Snapshot) -> BTreeMap<ObjectRef, Arc<Status>> {
    Compiler::new(snapshot.clone()).statuses().clone()
}

impl Compilation {
    /// Whether anything is wrong that keeps an object, or a part of it, out of effect.
    pub fn has_errors(&self) -> bool {
        self.problems
            .iter()
            .any(|problem| problem.severity() == Severity::Error)
    }

    /// What a service comes to.
    pub fn service(&self, subject: &ObjectRef) -> Option<&lower::Service> {
        self.intents.get(subject)?.service.as_ref()
    }

    /// What an attachment comes to; nothing while something is wrong with it.
    pub fn attachment(&self, name: &str) -> Option<&lower::Attachment> {
        let subject = ObjectRef::named(Kind::Layer2Attachment, name);
        self.intents.get(&subject)?.attachment.as_ref()
    }
}

#[cfg(test)]
mod tests;
