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
mod compiler;
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

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

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
#[derive(Clone, Debug, PartialEq, Eq)]
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
    let (now, _) = as_it_is(snapshot, None);
    last_good::restore(snapshot, &now).unwrap_or(now)
}

/// An earlier compile, and the objects that are new, changed or gone since then. Settings, and what cannot be read, are the same.
#[derive(Clone, Copy)]
struct Before<'a> {
    compilation: &'a Compilation,
    memo: &'a node::Memo,
    changed: &'a BTreeSet<ObjectRef>,
}

/// Compiles without a look at what broken objects were before. What did not change since `before` is not made again.
fn as_it_is(snapshot: &Snapshot, before: Option<Before<'_>>) -> (Compilation, node::Memo) {
    let settings = snapshot.settings();
    let platform_settings = settings.platform.clone();
    let lowered_before = before.map(|before| lower::Before {
        lowered: &before.compilation.lowered,
        changed: before.changed,
    });
    let mut lowered = lower::lower(snapshot, &settings, lowered_before);
    let mut problems = snapshot.unreadable.clone();
    problems.append(&mut lowered.problems);
    let content = revision::Content::gather(snapshot, settings, &lowered);
    let addresses = &lowered.node_addresses;
    let memo = before.map(|before| before.memo);
    let (mut nodes, memo) = node::build(&content, snapshot, addresses, memo, &mut problems);
    let rules = (&content.settings, &lowered);
    mirror::assign(snapshot, rules, &mut nodes, &mut problems);
    let revision = content.revision();
    let made = before.map(|before| platform::Before {
        objects: &before.compilation.platform,
        lowered: &before.compilation.lowered,
        changed: before.changed,
    });
    let (settings, claims) = (&platform_settings, (&nodes, &revision));
    let compilation = Compilation {
        platform: platform::objects(snapshot, settings, &lowered, claims, made),
        revision,
        platform_keeps: platform::keeps(snapshot, &lowered),
        lowered,
        nodes,
        problems: once(problems),
    };
    (compilation, memo)
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
