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
mod changes;
mod compiler;
mod last_good;
pub mod lower;
pub mod mirror;
pub mod names;
pub mod node;
pub mod platform;
pub mod prefixes;
pub mod problem;
pub mod revision;
pub mod rollout;
pub mod select;
pub mod snapshot;
pub mod status;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use self::changes::Changes;
pub use self::{
    compiler::Compiler,
    lower::Lowered,
    node::NodeConfig,
    platform::PlatformObject,
    problem::{Problem, Severity},
    revision::Revision,
    snapshot::{Insertion, Kind, Object, ObjectRef, Snapshot},
};

/// The result of a compile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compilation {
    /// What intents became, joined with people's own low-level objects.
    pub lowered: Lowered,
    /// What changes forwarding, with its fingerprint.
    pub revision: Revision,
    /// The config of each node.
    pub nodes: BTreeMap<String, NodeConfig>,
    /// Objects for other programs of the cluster, such as the load balancer.
    pub platform: Vec<Arc<PlatformObject>>,
    /// Intents that something is wrong with: what stands on the platform for them stays as it is.
    pub platform_keeps: BTreeSet<ObjectRef>,
    /// What is wrong, sorted by object; nothing twice.
    pub problems: Vec<Problem>,
}

/// Compiles everything.
pub fn compile(snapshot: &Snapshot) -> Compilation {
    let now = as_it_is(snapshot);
    last_good::restore(snapshot, &now).unwrap_or(now)
}

/// Compiles everything without a look at what broken objects were before.
fn as_it_is(snapshot: &Snapshot) -> Compilation {
    let mut compilation = Compilation::default();
    compilation.update(snapshot, &mut node::Memo::default(), Changes::All);
    compilation
}

impl Compilation {
    /// Brings everything up to date. What no change touches is not made again.
    fn update(&mut self, snapshot: &Snapshot, memo: &mut node::Memo, changes: Changes<'_>) {
        let settings = snapshot.settings();
        // What a revision shares with low-level objects is changed in its place, so it must have gone.
        self.revision = Revision::default();
        let touched = self.lowered.update(snapshot, &settings, changes);
        let mut problems = snapshot.unreadable.clone();
        problems.extend(self.lowered.problems(snapshot));
        let content = revision::Content::gather(snapshot, settings, &self.lowered);
        node::update(
            (&mut self.nodes, memo),
            (&content, snapshot),
            self.lowered.node_addresses(),
            (changes, &touched),
            &mut problems,
        );
        let rules = (&content.settings, &self.lowered);
        mirror::assign(snapshot, rules, &mut self.nodes, &mut problems);
        self.revision = content.revision();
        platform::update(self, snapshot, &touched);
        self.platform_keeps = platform::keeps(snapshot, &self.lowered);
        self.problems = once(problems);
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
