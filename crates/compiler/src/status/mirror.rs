//! Statuses of mirrors: a mirror is in effect where a node has said that it runs the config that carries it.

use std::collections::BTreeMap;

use api::{
    meta::{Condition, ConditionStatus, Conditions},
    tcaas::{
        CollectorStatus, MirrorSelectorStatus, MirrorTargetStatus, TrafficMirrorStatus,
        node_network_config::MIRRORS_APPLIED,
    },
};

use super::{Fold, Statuses, conditions::condition, count, low_level::whose};
use crate::{
    names,
    node::NodeConfig,
    problem::Severity,
    rollout::Progress,
    snapshot::{Key, Kind, Meta, ObjectRef},
};

/// The nodes that shall have something, each with how far it is.
type OnNodes<'a> = BTreeMap<&'a str, State<'a>>;

/// How far something is on a node. What is worse is greater.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum State<'a> {
    /// In the node's config.
    #[default]
    Carried,
    /// Not there, because something is wrong.
    Wrong,
    /// Not there before this claim has an address.
    Waiting(&'a str),
}

/// On which nodes mirrors are.
#[derive(Default)]
pub(super) struct Carried<'a> {
    selectors: BTreeMap<&'a str, OnNodes<'a>>,
    targets: BTreeMap<&'a str, OnNodes<'a>>,
}

impl<'a> Carried<'a> {
    pub(super) fn new(
        nodes: &'a BTreeMap<String, NodeConfig>,
        target_of: impl Fn(&str) -> Option<&'a str>,
    ) -> Self {
        let mut carried = Self::default();
        for (node, config) in nodes {
            let rules = config.mirrors.rules.iter();
            let rules = rules.map(|rule| (rule.selector.as_str(), State::Carried));
            let missing = config.mirrors.missing.iter();
            let missing = missing.map(|(selector, claim)| {
                let state = claim.as_deref().map_or(State::Wrong, State::Waiting);
                (selector.as_str(), state)
            });
            for (selector, state) in rules.chain(missing) {
                let on = carried.selectors.entry(selector).or_default();
                on.insert(node, state);
                if let Some(target) = target_of(selector) {
                    let on = carried.targets.entry(target).or_default();
                    on.insert(node, state);
                }
            }
        }
        carried
    }
}

/// How far something is on the nodes that shall have it.
#[derive(Default)]
struct Count<'a> {
    total: usize,
    ready: usize,
    failed: Option<&'a str>,
    claim: Option<&'a str>,
}

impl Count<'_> {
    fn active(&self) -> u32 {
        u32::try_from(self.ready).unwrap_or(u32::MAX)
    }

    /// What stands in the way on some node, if anything does: reason and message.
    fn obstacle(&self) -> Option<(&'static str, String)> {
        if let Some(node) = self.failed {
            return Some(("NodeFailed", format!("node {node} could not apply it")));
        }
        let claim = self.claim?;
        Some((
            "Pending",
            format!("IPAddressClaim {claim} has no address yet"),
        ))
    }
}

impl Fold<'_> {
    /// The statuses of all mirrors.
    pub(super) fn mirrors(&self, statuses: &mut Statuses) {
        let snapshot = self.snapshot;
        for (key, object) in &snapshot.collectors {
            let status = self.collector(key, &object.meta);
            statuses.put(Kind::Collector, key, &status);
        }
        for (key, object) in &snapshot.traffic_mirrors {
            let collector = ObjectRef::named(Kind::Collector, &object.spec.collector);
            let status = self.traffic_mirror(key, &object.meta, &collector);
            statuses.put(Kind::TrafficMirror, key, &status);
        }
        let lowered = &self.compilation.lowered;
        for (key, object) in &snapshot.mirror_targets {
            let (kind, made) = (Kind::MirrorTarget, lowered.mirror_targets.get(&key.name));
            if let Some(source) = whose(made, (kind, key), &object.meta) {
                let status = self.mirror_target(key, &object.meta, &source);
                statuses.put(kind, key, &status);
            }
        }
        for (key, object) in &snapshot.mirror_selectors {
            let made = lowered.mirror_selectors.get(&key.name);
            let kind = Kind::MirrorSelector;
            if let Some(source) = whose(made, (kind, key), &object.meta) {
                let target = lowered.mirror_targets.get(&object.spec.mirror_target.name);
                let target = target.map(|target| &target.source);
                let status = self.mirror_selector(key, &object.meta, &source, target);
                statuses.put(kind, key, &status);
            }
        }
    }

    fn collector(&self, key: &Key, meta: &Meta) -> CollectorStatus {
        let subject = ObjectRef {
            kind: Kind::Collector,
            key: key.clone(),
        };
        let users = self.snapshot.traffic_mirrors.values();
        let users = users.filter(|user| user.spec.collector == key.name);
        let target = self.compilation.lowered.mirror_targets.get(&key.name);
        let target = target.filter(|target| target.source == subject);
        let on = target.and_then(|_| self.carried.targets.get(key.name.as_str()));
        let count_of_nodes = self.count(on.into_iter());
        CollectorStatus {
            observed_generation: meta.generation,
            gre_interface: target.map(|target| names::mirror_tunnel(&key.name, target.spec.kind)),
            reference_count: count(users),
            active_nodes: count_of_nodes.active(),
            conditions: self.tunnel_conditions(&subject, meta, &count_of_nodes),
        }
    }

    fn mirror_target(&self, key: &Key, meta: &Meta, source: &ObjectRef) -> MirrorTargetStatus {
        let selectors = self.compilation.lowered.mirror_selectors.values();
        let selectors = selectors.filter(|user| user.spec.mirror_target.name == key.name);
        let on = self.carried.targets.get(key.name.as_str());
        let count_of_nodes = self.count(on.into_iter());
        MirrorTargetStatus {
            observed_generation: meta.generation,
            active_selectors: count(selectors),
            active_nodes: count_of_nodes.active(),
            conditions: self.tunnel_conditions(source, meta, &count_of_nodes),
        }
    }

    fn traffic_mirror(&self, key: &Key, meta: &Meta, collector: &ObjectRef) -> TrafficMirrorStatus {
        let subject = ObjectRef {
            kind: Kind::TrafficMirror,
            key: key.clone(),
        };
        let selectors = self.compilation.lowered.mirror_selectors.iter();
        let its_own = selectors.filter(|(_, selector)| selector.source == subject);
        let on = its_own.filter_map(|(name, _)| self.carried.selectors.get(name.as_str()));
        let count_of_nodes = self.count(on);
        let words = "Source and collector resolved successfully";
        TrafficMirrorStatus {
            observed_generation: meta.generation,
            active_nodes: count_of_nodes.active(),
            conditions: self.rule_conditions(
                (&subject, Some(collector)),
                meta,
                &count_of_nodes,
                words,
            ),
        }
    }

    fn mirror_selector(
        &self,
        key: &Key,
        meta: &Meta,
        source: &ObjectRef,
        target: Option<&ObjectRef>,
    ) -> MirrorSelectorStatus {
        let on = self.carried.selectors.get(key.name.as_str());
        let count_of_nodes = self.count(on.into_iter());
        let words = "Source and target resolved successfully";
        MirrorSelectorStatus {
            observed_generation: meta.generation,
            active_nodes: count_of_nodes.active(),
            conditions: self.rule_conditions((source, target), meta, &count_of_nodes, words),
        }
    }

    /// Counts the nodes of several things that belong together: a node is ready when it has all of them.
    fn count<'a>(&self, all: impl Iterator<Item = &'a OnNodes<'a>>) -> Count<'a> {
        let mut nodes: OnNodes<'a> = BTreeMap::new();
        for on in all {
            for (node, state) in on {
                let entry = nodes.entry(node).or_default();
                *entry = (*entry).max(*state);
            }
        }
        let mut count = Count::default();
        for (node, state) in nodes {
            count.total += 1;
            match (state, self.nodes.get(node)) {
                (State::Waiting(claim), _) => count.claim = count.claim.or(Some(claim)),
                (State::Carried, Some(Progress::Ready)) if !self.copies_too_little(node) => {
                    count.ready += 1;
                }
                (State::Carried, Some(Progress::Ready | Progress::Failed)) => {
                    count.failed = count.failed.or(Some(node));
                }
                (State::Wrong, _)
                | (State::Carried, Some(Progress::Ongoing | Progress::Queued) | None) => {}
            }
        }
        count
    }

    /// Whether a node that is ready has said that it could not make all of its mirrors.
    fn copies_too_little(&self, node: &str) -> bool {
        let configs = &self.snapshot.node_network_configs;
        let status = configs
            .get(&Key::named(node))
            .and_then(|config| config.status.as_ref());
        status
            .and_then(|status| status.conditions.get(MIRRORS_APPLIED))
            .is_some_and(|said| said.status == ConditionStatus::False)
    }

    /// Conditions of a tunnel: it is ready when it is up on every node from which something is mirrored.
    fn tunnel_conditions(&self, subject: &ObjectRef, meta: &Meta, count: &Count<'_>) -> Conditions {
        let resolved = self.resolved(subject, meta);
        let ready =
            |status, reason: &str, message| condition("Ready", status, reason, message, meta);
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
        &self,
        (subject, target): (&ObjectRef, Option<&ObjectRef>),
        meta: &Meta,
        count: &Count<'_>,
        resolved_message: &str,
    ) -> Conditions {
        let mut resolved = self.resolved(subject, meta);
        if resolved.status == ConditionStatus::True {
            resolved_message.clone_into(&mut resolved.message);
        }
        let applied = self.copied(target, meta, count);
        let mut overall = if resolved.status == ConditionStatus::True {
            applied.clone()
        } else {
            resolved.clone()
        };
        "Ready".clone_into(&mut overall.kind);
        Conditions(vec![applied, overall, resolved])
    }

    fn copied(&self, target: Option<&ObjectRef>, meta: &Meta, count: &Count<'_>) -> Condition {
        let applied =
            |status, reason: &str, message| condition("Applied", status, reason, message, meta);
        let Count { total, ready, .. } = count;
        let is_broken = |target: &&ObjectRef| {
            let mut problems = self.compilation.problems.iter();
            problems.any(|one| one.subject == **target && one.severity() == Severity::Error)
        };
        if let Some((reason, message)) = count.obstacle() {
            return applied(ConditionStatus::False, reason, message);
        }
        if let Some(target) = target.filter(is_broken) {
            let message = format!("something is wrong with {target}");
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
}
