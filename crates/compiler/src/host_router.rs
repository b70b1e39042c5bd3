//! The router of the host: what all `FRRConfiguration`s that select a node add up to. It is no part of a revision: what a node has of it is
//! put into its config when that is made.
//!
//! ```text
//! FRRConfiguration ─read─► Part ─┐
//! FRRConfiguration ─read─► Part ─┼─validate::merge─► Merged ─contract─► HostRouter of all nodes that the same objects select
//! FRRConfiguration ─read─► Part ─┘
//! ```

mod contract;
mod fields;
mod merge;
mod node;
mod part;
mod read;
mod select;
mod validate;
mod versions;

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    frrk8s::FrrConfigurationSpec, meta::LabelSelector, selvedge::SettingsSpec,
    tcaas::node_network_config::HostRouter, value::IfName,
};

pub use self::node::NodeHostRouter;
pub(crate) use self::{
    contract::{identity, observed},
    fields::{field_of, field_that_needs},
    node::{of_node, with_passwords, without_passwords},
    select::{
        AnyConfigurations, ConfigurationsByLabel, GroupOf, GroupsByConfiguration, HostGroup,
        NodesByGroup,
    },
};
use self::{
    read::Read,
    validate::{Member, Merged, merge},
};
use crate::{
    memo::Query,
    names,
    node::{FrrOf, is_older_frr},
    problem::{self, Problem, Severity},
    problems::{self, ProblemsOf},
    snapshot::{Key, Kind, ObjectRef, kinds},
    view::{View, reference},
};

/// How the VRF is called that every host has.
const DEFAULT_VRF: &str = "default";

/// The VRF that every host has.
fn default_vrf() -> IfName {
    match DEFAULT_VRF.parse() {
        Ok(name) => name,
        Err(error) => unreachable!("it is a name: {error}"),
    }
}

/// Whether objects and Secrets in a namespace are used. Objects in files may have none: they count as in the namespace of the operator.
fn is_used(settings: &SettingsSpec, namespace: Option<&str>) -> bool {
    let namespace = namespace.unwrap_or(names::OWN_NAMESPACE);
    let mut used = settings.frr_configurations.namespaces.iter();
    namespace == names::OWN_NAMESPACE || used.any(|one| one == "*" || one == namespace)
}

/// What each object contributes to the nodes that it selects.
pub(crate) struct ReadOf;
impl Query for ReadOf {
    type Key = Key;
    type Value = Arc<Read>;
    fn compute(view: &View<'_>, key: &Key) -> Arc<Read> {
        let Some(spec) = view.spec::<kinds::FrrConfiguration>(key) else {
            return Arc::default();
        };
        let settings = view.settings();
        let subject = reference(Kind::FrrConfiguration, key);
        let mut read = read::read(&subject, &spec, &settings);
        let unread = view.unreadable(&subject);
        if unread
            .iter()
            .any(|one| one.field.starts_with("spec.nodeSelector"))
        {
            // Without the fields that are not known it would select other nodes, or all.
            read.contribution = None;
        }
        let namespace = key.namespace.as_deref();
        if !is_used(&settings, namespace) {
            read.contribution = None;
            // Nothing is made of it, so its mistakes stop nothing.
            let kind = problem::Kind::NamespaceNotUsed {
                namespace: namespace.unwrap_or_default().to_owned(),
            };
            read.problems = vec![Problem::new(subject, "metadata.namespace", kind)];
        }
        Arc::new(read)
    }
}

/// What is wrong with an object by itself, and that it selects no node.
pub(crate) fn own_problems(view: &View<'_>, key: &Key) -> Vec<Problem> {
    let read = view.get::<ReadOf>(key);
    let mut problems = read.problems.clone();
    if read.contribution.is_some() {
        let subject = reference(Kind::FrrConfiguration, key);
        let has_nodes = !view.keys::<kinds::Node>().is_empty();
        if has_nodes && !view.has::<GroupsByConfiguration>(key) {
            // No node tells what is wrong with it beside others: it is judged alone.
            let mut alone = vec![member(view, key)];
            problems.extend(merge(&mut alone, None).problems);
            problems.push(matches_no_node(subject));
        }
    }
    problems
}

fn matches_no_node(subject: ObjectRef) -> Problem {
    let what = "matches no node: no node is configured by this object".to_owned();
    Problem::new(
        subject,
        "spec.nodeSelector",
        problem::Kind::NoEffect { what },
    )
}

/// The generation of what is in effect of an object: while it is as it last was, that of its last good state.
fn generation(view: &View<'_>, key: &Key) -> Option<i64> {
    let subject = reference(Kind::FrrConfiguration, key);
    if problems::keeps(view, &subject) {
        let status = view.status::<kinds::FrrConfiguration>(key)?;
        return status.in_effect_generation;
    }
    view.meta::<kinds::FrrConfiguration>(key)?.generation
}

fn member(view: &View<'_>, key: &Key) -> Member {
    let meta = view.meta::<kinds::FrrConfiguration>(key);
    Member {
        subject: reference(Kind::FrrConfiguration, key),
        generation: generation(view, key),
        created: meta.and_then(|meta| meta.created.clone()),
        read: view.get::<ReadOf>(key),
        runs: false,
        runs_as_it_is: false,
    }
}

/// What the objects that select the nodes of a group add up to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OfGroup {
    pub(crate) router: Arc<HostRouter>,
    /// Passwords that stand in clear text in objects.
    passwords: Arc<Vec<node::InClearText>>,
    pub(crate) problems: Vec<Problem>,
}

/// What the objects that select the nodes of each group add up to.
pub(crate) struct MergedFor;
impl Query for MergedFor {
    type Key = HostGroup;
    type Value = Arc<OfGroup>;
    fn compute(view: &View<'_>, group: &HostGroup) -> Arc<OfGroup> {
        let mut members: Vec<Member> = group.keys().iter().map(|key| member(view, key)).collect();
        let nodes = view.who::<NodesByGroup>(group);
        let first = nodes.first().map(|node| &**node);
        let mut merged = merge(&mut members, first);
        if !merged.problems.is_empty() {
            // Who runs there decides, where not all can be in effect.
            let running = running(view, &nodes);
            for member in &mut members {
                let generations = running.get(&identity(&member.subject));
                member.runs = generations.is_some();
                let generation = member.generation.unwrap_or(0);
                member.runs_as_it_is = generations.is_some_and(|one| one.contains(&generation));
            }
            merged = merge(&mut members, first);
        }
        let left_out = versions::left_out(&members, &merged, || oldest_frr(view, &nodes));
        merged.problems.extend(left_out);
        let settings = view.settings();
        let router = contract::host_router(&members, &merged, &settings);
        Arc::new(OfGroup {
            router: Arc::new(router),
            passwords: Arc::new(node::in_clear_text(&merged.part)),
            problems: merged.problems,
        })
    }
}

/// The node with the oldest FRR of those that have reported theirs, with the version.
fn oldest_frr(view: &View<'_>, nodes: &[Arc<str>]) -> Option<(Arc<str>, Arc<str>)> {
    let mut oldest: Option<(Arc<str>, Arc<str>)> = None;
    for node in nodes {
        let Some(version) = view.get::<FrrOf>(&Key::named(&**node)) else {
            continue;
        };
        let known = oldest.as_ref().map(|(_, known)| &**known);
        if known.is_none_or(|known| is_older_frr(&version, known)) {
            oldest = Some((Arc::clone(node), version));
        }
    }
    oldest
}

/// The objects that nodes have in their configs, each with its generation there.
fn running(view: &View<'_>, nodes: &[Arc<str>]) -> BTreeMap<(String, String), BTreeSet<i64>> {
    let configs = nodes.iter().filter_map(|node| {
        let config = view.spec::<kinds::NodeNetworkConfig>(&Key::named(&**node))?;
        config.host_router.clone()
    });
    let mut running: BTreeMap<(String, String), BTreeSet<i64>> = BTreeMap::new();
    for config in configs {
        for one in &config.configurations {
            let identity = (one.namespace.clone(), one.name.clone());
            running.entry(identity).or_default().insert(one.generation);
        }
    }
    running
}

/// The router of the nodes of each group, with what stops objects there.
pub(crate) struct RouterFor;
impl Query for RouterFor {
    type Key = HostGroup;
    type Value = Arc<OfGroup>;
    fn compute(view: &View<'_>, group: &HostGroup) -> Arc<OfGroup> {
        let merged = view.get::<MergedFor>(group);
        let mut messages = Vec::new();
        for key in group.keys() {
            let subject = reference(Kind::FrrConfiguration, key);
            let problems = view.get::<ProblemsOf>(&subject);
            let errors = problems.iter();
            let errors = errors.filter(|problem| problem.severity() == Severity::Error);
            messages.extend(errors.map(ToString::to_string));
        }
        if messages.is_empty() {
            return merged;
        }
        Arc::new(OfGroup {
            router: Arc::new(HostRouter {
                problems: messages,
                ..HostRouter::clone(&merged.router)
            }),
            ..OfGroup::clone(&merged)
        })
    }
}

/// Where there are no nodes, what cannot stand together is still said: of objects with one selector, and of those without.
pub(crate) fn problems_without_nodes(view: &View<'_>) -> Vec<Problem> {
    if !view.keys::<kinds::Node>().is_empty() {
        return Vec::new();
    }
    let keys = view.keys::<kinds::FrrConfiguration>();
    let selector = |key: &Key| {
        let spec = view.spec::<kinds::FrrConfiguration>(key)?;
        spec.node_selector
            .clone()
            .filter(|one| *one != LabelSelector::default())
    };
    let mut selectors: Vec<_> = keys.iter().map(selector).collect();
    selectors.sort();
    selectors.dedup();
    let only_some = selectors.iter().any(Option::is_some);
    let selectors = selectors
        .into_iter()
        .filter(|one| one.is_some() || !only_some);
    let mut problems = Vec::new();
    for wanted in selectors {
        let is_there = |key: &&Key| {
            let selector = selector(key);
            selector.is_none() || selector == wanted
        };
        let members = keys.iter().filter(is_there).map(|key| member(view, key));
        let mut members: Vec<Member> = members.collect();
        problems.extend(merge(&mut members, None).problems);
    }
    problems
}

/// An object for [`merge_all`]: which one it is, and its spec.
pub type Configuration = (ObjectRef, Arc<FrrConfigurationSpec>);

/// Merges objects that select one node, the first ones as the older; what is wrong with them is second. A compile does the same, step by step.
pub fn merge_all(objects: &[Configuration], settings: &SettingsSpec) -> (HostRouter, Vec<Problem>) {
    let member = |(place, (subject, spec)): (usize, &Configuration)| Member {
        subject: subject.clone(),
        generation: None,
        created: Some(format!("{place:012}")),
        read: Arc::new(read::read(subject, spec, settings)),
        runs: false,
        runs_as_it_is: false,
    };
    let mut members: Vec<Member> = objects.iter().enumerate().map(member).collect();
    let mut problems: Vec<Problem> = members
        .iter()
        .flat_map(|member| member.read.problems.iter().cloned())
        .collect();
    let merged: Merged = merge(&mut members, None);
    let router = contract::host_router(&members, &merged, settings);
    problems.extend(merged.problems);
    (router, problems)
}
