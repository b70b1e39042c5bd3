//! The decisions of Selvedge: from a [`Snapshot`] of all objects to the exact config of every node, as one pure function.
//!
//! ```text
//! Snapshot ─lower─► low-level objects ─gather─► revision ─build─► config of each node
//!              └──► objects for other programs of the cluster
//! ```
//!
//! No clock, no IO, no logger, no hash order: the same input gives the same bytes. It cannot fail; it can only find
//! [`Problem`]s, each of which belongs to one object and harms no other.

pub mod allocate;
pub mod element;
mod last_good;
pub mod lower;
pub mod mirror;
pub mod names;
pub mod node;
pub mod plan;
pub mod platform;
pub mod prefixes;
pub mod problem;
pub mod provenance;
pub mod question;
pub mod revision;
pub mod rollout;
pub mod select;
pub mod snapshot;
pub mod status;
pub mod why_not;

use std::collections::{BTreeMap, BTreeSet};

pub use self::{
    lower::Lowered,
    node::NodeConfig,
    platform::PlatformObject,
    problem::{Problem, Severity},
    revision::Revision,
    snapshot::{Insertion, Kind, Object, ObjectRef, Snapshot},
};

/// The result of a compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compilation {
    /// What intents became, joined with people's own low-level objects.
    pub lowered: Lowered,
    /// What changes forwarding, with its fingerprint.
    pub revision: Revision,
    /// The config of each node.
    pub nodes: BTreeMap<String, NodeConfig>,
    /// Objects for other programs of the cluster, such as the load balancer.
    pub platform: Vec<PlatformObject>,
    /// Intents that something is wrong with: what stands on the platform for them stays as it is.
    pub platform_keeps: BTreeSet<ObjectRef>,
    /// What is wrong, sorted by object; nothing twice.
    pub problems: Vec<Problem>,
}

/// Compiles everything.
pub fn compile(snapshot: &Snapshot) -> Compilation {
    last_good::compile(snapshot, as_it_is)
}

fn as_it_is(snapshot: &Snapshot) -> Compilation {
    let settings = snapshot.settings();
    let platform_settings = settings.platform.clone();
    let mut lowered = lower::lower(snapshot, &settings);
    let mut problems = snapshot.unreadable.clone();
    problems.append(&mut lowered.problems);
    let content = revision::Content::gather(snapshot, settings, &lowered);
    let mut nodes = node::build(&content, snapshot, &lowered.node_addresses, &mut problems);
    let rules = (&content.settings, &lowered);
    mirror::assign(snapshot, rules, &mut nodes, &mut problems);
    let revision = content.revision();
    Compilation {
        platform: platform::objects(snapshot, &platform_settings, &lowered, &nodes, &revision),
        revision,
        platform_keeps: platform::keeps(snapshot, &lowered),
        lowered,
        nodes,
        problems: once(problems),
    }
}

impl Compilation {
    /// Whether anything is wrong that keeps an object, or a part of it, out of effect.
    pub fn has_errors(&self) -> bool {
        self.problems
            .iter()
            .any(|problem| problem.severity() == Severity::Error)
    }
}

/// Sorted by object; of several problems with the same reason at one field, which differ only in the node they were
/// seen on, the first.
fn once(mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.sort();
    let mut seen = BTreeSet::new();
    problems.retain(|problem| {
        seen.insert((
            problem.subject.clone(),
            problem.field.clone(),
            problem.kind.reason(),
        ))
    });
    problems
}

#[cfg(test)]
mod tests;
