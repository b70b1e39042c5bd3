//! Statuses of mirrors: a mirror is in effect where a node has said that it runs the config that carries it.

use std::collections::BTreeMap;

use api::{
    meta::{Condition, ConditionStatus, Conditions},
    tcaas::{
        CollectorStatus, MirrorSelectorSpec, MirrorSelectorStatus, MirrorTargetSpec,
        MirrorTargetStatus, TrafficMirrorStatus, node_network_config::MIRRORS_APPLIED,
    },
};

use super::{
    Subject,
    conditions::{self, condition},
    count, in_effect,
    low_level::whose,
};
use crate::{
    lower::{merge::Merged, object},
    memo::Index,
    mirror::HasMirrors,
    names,
    node::{Facet, Facets, config, told_progress},
    platform::state,
    problem::Severity,
    problems::ProblemsOf,
    rollout::Progress,
    snapshot::{Key, Kind, Meta, ObjectRef, kinds},
    view::View,
};

/// How far something is on a node. What is worse is greater.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    /// In the node's config.
    #[default]
    Carried,
    /// Not there, because something is wrong.
    Wrong,
    /// Not there before this claim has an address.
    Waiting(String),
}

/// A selector or a target of mirrors, by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Part {
    Selector(String),
    Target(String),
}

/// On which nodes mirrors are, and how far.
pub(crate) struct MirrorsOnNodes;
impl Index for MirrorsOnNodes {
    type Source = Key;
    type Key = Part;
    type Item = (String, State);
    fn sources(view: &View<'_>) -> Vec<Key> {
        if !view.get::<HasMirrors>(&()) {
            return Vec::new();
        }
        view.keys::<kinds::Node>().to_vec()
    }
    fn entries(view: &View<'_>, node: &Key) -> Vec<(Part, (String, State))> {
        let Some(config) = config(view, node) else {
            return Vec::new();
        };
        let rules = config.mirrors.rules.iter();
        let rules = rules.map(|rule| (&rule.selector, State::Carried));
        let missing = config.mirrors.missing.iter();
        let missing = missing.map(|(selector, claim)| {
            let state = claim.clone().map_or(State::Wrong, State::Waiting);
            (selector, state)
        });
        let mut entries = Vec::new();
        // Of several selectors that copy into one target the last one stands for the target.
        let mut targets: BTreeMap<String, State> = BTreeMap::new();
        for (selector, state) in rules.chain(missing) {
            let object = object::<MirrorSelectorSpec>(view, selector);
            if let Some(object) = object {
                targets.insert(object.spec.mirror_target.name.clone(), state.clone());
            }
            let on = (node.name.to_string(), state);
            entries.push((Part::Selector(selector.clone()), on));
        }
        let targets = targets.into_iter();
        entries.extend(targets.map(|(target, state)| {
            let on = (node.name.to_string(), state);
            (Part::Target(target), on)
        }));
        entries
    }
}

/// How far something is on the nodes that must have it.
#[derive(Default)]
struct Count {
    total: usize,
    ready: usize,
    failed: Option<String>,
    /// Why an address is missing: reason and message.
    claim: Option<(&'static str, String)>,
}

impl Count {
    fn active(&self) -> u32 {
        u32::try_from(self.ready).unwrap_or(u32::MAX)
    }

    /// The obstacle on some node, if there is one: reason and message.
    fn obstacle(&self) -> Option<(&'static str, String)> {
        if let Some(node) = &self.failed {
            return Some(("NodeFailed", format!("apply failed on node {node}")));
        }
        self.claim.clone()
    }
}

/// Counts the nodes of several things that belong together: a node is ready when it has all of them.
fn count_nodes(view: &View<'_>, parts: impl Iterator<Item = Part>) -> Count {
    let mut nodes: BTreeMap<String, State> = BTreeMap::new();
    for part in parts {
        for (node, state) in view.who::<MirrorsOnNodes>(&part).iter() {
            let entry = nodes.entry(node.clone()).or_default();
            *entry = entry.clone().max(state.clone());
        }
    }
    let mut count = Count::default();
    for (node, state) in nodes {
        count.total += 1;
        let progress = || told_progress(view, &Key::named(&node));
        match state {
            State::Waiting(claim) => {
                let claim = || waiting(view, &node, &claim);
                count.claim = count.claim.or_else(|| Some(claim()));
            }
            State::Wrong => {}
            State::Carried => match progress() {
                Progress::Ready if !copies_too_little(view, &node) => count.ready += 1,
                Progress::Ready | Progress::Failed => count.failed = count.failed.or(Some(node)),
                Progress::Ongoing | Progress::Queued | Progress::Unapproved => {}
            },
        }
    }
    count
}

/// Why a claim of a node has no address: reason and message.
fn waiting(view: &View<'_>, node: &str, claim: &str) -> (&'static str, String) {
    match state::absent_claim(view, node, claim) {
        Some(absent) => (absent.why.reason(), absent.to_string()),
        None => (
            "Pending",
            format!("IPAddressClaim {claim} has no address yet"),
        ),
    }
}

/// Whether a node that is ready has said that it could not make all of its mirrors.
fn copies_too_little(view: &View<'_>, node: &str) -> bool {
    let status = view.status::<kinds::NodeNetworkConfig>(&Key::named(node));
    let said = status
        .as_ref()
        .and_then(|status| status.conditions.get(MIRRORS_APPLIED));
    said.is_some_and(|said| said.status == ConditionStatus::False)
}

pub(super) fn collector(view: &View<'_>, subject: &Subject<'_>) -> CollectorStatus {
    let name = &subject.key().name;
    let users = view.keys::<kinds::TrafficMirror>();
    let users = users.iter().filter(|user| {
        let spec = view.spec::<kinds::TrafficMirror>(user);
        spec.is_some_and(|spec| *spec.collector == **name)
    });
    let target = object::<MirrorTargetSpec>(view, name);
    let target = target.filter(|target| target.source == *subject.object);
    let part = target.as_ref().map(|_| Part::Target(name.to_string()));
    let nodes = count_nodes(view, part.into_iter());
    CollectorStatus {
        observed_generation: subject.meta.generation,
        gre_interface: target.map(|target| names::mirror_tunnel(name, target.spec.kind)),
        reference_count: count(users),
        active_nodes: nodes.active(),
        in_effect: in_effect::<kinds::Collector>(view, subject),
        conditions: tunnel_conditions(view, subject.object, subject.meta, &nodes),
    }
}

pub(super) fn target(view: &View<'_>, subject: &Subject<'_>) -> Option<MirrorTargetStatus> {
    let name = &subject.key().name;
    let made = object::<MirrorTargetSpec>(view, name);
    let source = whose(subject, made.as_deref())?;
    let selectors = view.who::<Facets>(&Facet::MirrorSelectors);
    let selectors = selectors.iter().filter_map(|one| one.object());
    let selectors = selectors.filter_map(|one| one.mirror_selector());
    let selectors = selectors.filter(|one| *one.spec.mirror_target.name == **name);
    let nodes = count_nodes(view, [Part::Target(name.to_string())].into_iter());
    Some(MirrorTargetStatus {
        observed_generation: subject.meta.generation,
        active_selectors: count(selectors),
        active_nodes: nodes.active(),
        in_effect: own(subject, || in_effect::<kinds::MirrorTarget>(view, subject)),
        conditions: tunnel_conditions(view, &source, subject.meta, &nodes),
    })
}

pub(super) fn traffic_mirror(
    view: &View<'_>,
    subject: &Subject<'_>,
) -> Option<TrafficMirrorStatus> {
    let spec = view.spec::<kinds::TrafficMirror>(subject.key())?;
    let collector = ObjectRef::named(Kind::Collector, &spec.collector);
    let merged = view.get::<Merged>(subject.object);
    let selectors = merged.objects.iter();
    let selectors = selectors.map(|one| Part::Selector(one.name().to_owned()));
    let nodes = count_nodes(view, selectors);
    let words = "Source and collector resolved successfully";
    Some(TrafficMirrorStatus {
        observed_generation: subject.meta.generation,
        active_nodes: nodes.active(),
        in_effect: in_effect::<kinds::TrafficMirror>(view, subject),
        conditions: rule_conditions(
            view,
            subject.object,
            Some(&collector),
            subject.meta,
            &nodes,
            words,
        ),
    })
}

pub(super) fn selector(view: &View<'_>, subject: &Subject<'_>) -> Option<MirrorSelectorStatus> {
    let name = &subject.key().name;
    let made = object::<MirrorSelectorSpec>(view, name);
    let source = whose(subject, made.as_deref())?;
    let stored = view.spec::<kinds::MirrorSelector>(subject.key())?;
    let target = object::<MirrorTargetSpec>(view, &stored.mirror_target.name);
    let target = target.map(|target| target.source.clone());
    let nodes = count_nodes(view, [Part::Selector(name.to_string())].into_iter());
    let words = "Source and target resolved successfully";
    Some(MirrorSelectorStatus {
        observed_generation: subject.meta.generation,
        active_nodes: nodes.active(),
        in_effect: own(subject, || {
            in_effect::<kinds::MirrorSelector>(view, subject)
        }),
        conditions: rule_conditions(view, &source, target.as_ref(), subject.meta, &nodes, words),
    })
}

/// The spec in effect of an object that is not generated: the last good state of a generated one is that of its intent.
fn own<S>(subject: &Subject<'_>, in_effect: impl FnOnce() -> Option<S>) -> Option<S> {
    let is_own = subject.meta.owner.is_none();
    is_own.then(in_effect).flatten()
}

/// Conditions of a tunnel: it is ready when it is up on every node from which something is mirrored.
fn tunnel_conditions(
    view: &View<'_>,
    object: &ObjectRef,
    meta: &Meta,
    count: &Count,
) -> Conditions {
    let resolved = conditions::resolved(view, object, meta);
    let ready = |status, reason: &str, message| condition("Ready", status, reason, message, meta);
    let Count {
        total, ready: up, ..
    } = count;
    let state = if resolved.status != ConditionStatus::True {
        ready(
            ConditionStatus::False,
            &resolved.reason,
            resolved.message.clone(),
        )
    } else if let Some((reason, message)) = count.obstacle() {
        ready(ConditionStatus::False, reason, message)
    } else if *total == 0 {
        let message = "nothing is mirrored to it, so no node needs the tunnel".to_owned();
        ready(ConditionStatus::False, "NotConfigured", message)
    } else if up == total {
        let message = format!("tunnel configured on {total} nodes");
        ready(ConditionStatus::True, "Configured", message)
    } else {
        let message = format!("tunnel configured on {up} of {total} nodes");
        ready(ConditionStatus::False, "Pending", message)
    };
    Conditions(vec![state, resolved])
}

/// Conditions of a rule: it is applied when all nodes that have its source carry it.
fn rule_conditions(
    view: &View<'_>,
    object: &ObjectRef,
    target: Option<&ObjectRef>,
    meta: &Meta,
    count: &Count,
    resolved_message: &str,
) -> Conditions {
    let mut resolved = conditions::resolved(view, object, meta);
    if resolved.status == ConditionStatus::True {
        resolved_message.clone_into(&mut resolved.message);
    }
    let applied = copied(view, target, meta, count);
    let mut overall = if resolved.status == ConditionStatus::True {
        applied.clone()
    } else {
        resolved.clone()
    };
    "Ready".clone_into(&mut overall.kind);
    Conditions(vec![applied, overall, resolved])
}

fn copied(view: &View<'_>, target: Option<&ObjectRef>, meta: &Meta, count: &Count) -> Condition {
    let applied =
        |status, reason: &str, message| condition("Applied", status, reason, message, meta);
    let Count { total, ready, .. } = count;
    let is_broken = |target: &&ObjectRef| {
        let problems = view.get::<ProblemsOf>(target);
        let mut problems = problems.iter();
        problems.any(|one| one.severity() == Severity::Error)
    };
    if let Some((reason, message)) = count.obstacle() {
        return applied(ConditionStatus::False, reason, message);
    }
    if let Some(target) = target.filter(is_broken) {
        let message = format!("{target} has errors");
        return applied(ConditionStatus::False, "TargetNotReady", message);
    }
    if *total == 0 {
        let message = "no node carries it".to_owned();
        return applied(ConditionStatus::False, "NoNode", message);
    }
    if ready == total {
        let message = format!("MirrorACLs programmed on {total} nodes");
        return applied(ConditionStatus::True, "Applied", message);
    }
    let message = format!("MirrorACLs programmed on {ready} of {total} nodes");
    applied(ConditionStatus::False, "Pending", message)
}
