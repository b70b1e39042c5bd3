//! Statuses of Underlays, and of what runs in the fabric: `L3VNI`, `L2VNI` and `L3Passthrough`.

use std::sync::Arc;

use api::{
    meta::{Condition, ConditionStatus, Conditions},
    openperouter::{NodeCounts, OverlayStatus},
    tcaas::node_network_config::UnattachedPort,
    value::IfName,
};

use super::{
    Subject,
    conditions::{self, applied_on, first_unmet},
    groups::Count,
};
use crate::{
    memo::{Index, Query},
    node::{
        ForwardingOf, MembersOf, NodesBySignature, OverlayOf, SelectedPlans, Signature, is_overlay,
        plans_of_nodes, told_progress,
    },
    problem::{self, Problem},
    problems::{self, ProblemsOf},
    snapshot::{Kind, Meta, ObjectRef, kinds},
    view::View,
};

/// The signatures of nodes that each of these objects selects.
pub(crate) struct SignaturesByFabricObject;
impl Index for SignaturesByFabricObject {
    type Source = Signature;
    type Key = ObjectRef;
    type Item = Signature;
    fn sources(view: &View<'_>) -> Vec<Signature> {
        view.all_keys::<NodesBySignature>().to_vec()
    }
    fn entries(view: &View<'_>, signature: &Signature) -> Vec<(ObjectRef, Signature)> {
        let plans = view.get::<SelectedPlans>(signature);
        let members = view.get::<MembersOf>(signature);
        let entry = |subject: &ObjectRef| (subject.clone(), signature.clone());
        let overlays = members.overlays().iter().map(|one| &one.subject);
        let subjects = plans.iter().map(|plan| &plan.subject).chain(overlays);
        subjects.map(entry).collect()
    }
}

/// A port of an object that a node has not attached to its bridge, and how many nodes have such a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unattached {
    first: Option<(Arc<str>, UnattachedPort)>,
    nodes: usize,
}

impl Unattached {
    fn add(&mut self, other: Self) {
        self.nodes += other.nodes;
        let both = [self.first.take(), other.first].into_iter().flatten();
        self.first = both.min();
    }

    /// That nodes lack the bridge of an object.
    fn condition(&self, meta: &Meta) -> Option<Condition> {
        let (node, port) = self.first.as_ref()?;
        let mut message = format!("node {node:?}: {}", port.message);
        if self.nodes > 1 {
            message = format!("{message}; and {} more nodes", self.nodes - 1);
        }
        let status = ConditionStatus::True;
        Some(conditions::condition(
            "Degraded",
            status,
            "BridgeMissing",
            message,
            meta,
        ))
    }
}

/// The ports of an object that nodes of a signature have not attached to their bridge.
pub(crate) struct UnattachedOf;
impl Query for UnattachedOf {
    type Key = (ObjectRef, Signature);
    type Value = Unattached;
    fn compute(view: &View<'_>, (subject, signature): &(ObjectRef, Signature)) -> Unattached {
        let mut unattached = Unattached::default();
        let Some(port) = host_port(view, subject) else {
            return unattached;
        };
        for node in view.who::<NodesBySignature>(signature).iter() {
            let key = node.key();
            let status = view.status::<kinds::NodeNetworkConfig>(&key);
            let mut ports = status.iter().flat_map(|status| &status.unattached);
            let Some(one) = ports.find(|one| one.port == port.as_str()) else {
                continue;
            };
            let config = view.get::<ForwardingOf>(&key);
            if config.is_some_and(|config| config.has_overlay(subject)) {
                unattached.add(Unattached {
                    first: Some((Arc::clone(&node.name), one.clone())),
                    nodes: 1,
                });
            }
        }
        unattached
    }
}

/// The port on the host of an `L2VNI` that is attached to a bridge of the host.
fn host_port(view: &View<'_>, subject: &ObjectRef) -> Option<IfName> {
    if subject.kind != Kind::L2Vni {
        return None;
    }
    let planned = view.get::<OverlayOf>(subject);
    planned.plan.as_ref()?.port_of_bridge()
}

/// How far the nodes of a signature are that an object selects. One that has another Underlay, or on which the object is not in effect, is
/// not ready.
pub(crate) struct FabricProgress;
impl Query for FabricProgress {
    type Key = (ObjectRef, Signature);
    type Value = Count;
    fn compute(view: &View<'_>, (subject, signature): &(ObjectRef, Signature)) -> Count {
        let mut count = Count {
            total: view.who::<NodesBySignature>(signature).len(),
            ..Count::default()
        };
        if is_overlay(subject.kind) {
            for node in view.who::<NodesBySignature>(signature).iter() {
                let config = view.get::<ForwardingOf>(&node.key());
                let has = config.is_some_and(|config| config.has_overlay(subject));
                if has {
                    count.node(&node.name, told_progress(view, &node.key()));
                }
            }
            return count;
        }
        let plans = plans_of_nodes(view, signature).into_iter();
        for (_, nodes) in plans.filter(|(plan, _)| plan.subject == *subject) {
            for node in nodes.iter() {
                let progress = told_progress(view, &node.key());
                count.node(&node.name, progress);
            }
        }
        count
    }
}

pub(super) fn status(view: &View<'_>, subject: &Subject<'_>) -> OverlayStatus {
    let signatures = view.who::<SignaturesByFabricObject>(subject.object);
    let counts = signatures.iter().map(|signature| {
        let key = (subject.object.clone(), signature.clone());
        view.get::<FabricProgress>(&key)
    });
    let mut sum = Count::default();
    for count in counts {
        sum.add(count);
    }
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let nodes = NodeCounts {
        matched: count(sum.total),
        ready: count(sum.ready),
        failed: count(sum.failures),
    };
    let mut accepted = conditions::resolved(view, subject.object, subject.meta);
    "Accepted".clone_into(&mut accepted.kind);
    let applied = applied_on(&sum, subject.meta);
    let mut unattached = Unattached::default();
    for signature in signatures.iter() {
        let key = (subject.object.clone(), signature.clone());
        unattached.add(view.get::<UnattachedOf>(&key));
    }
    let degraded = unattached.condition(subject.meta);
    let mut ready = first_unmet([Some(&accepted)], &applied).clone();
    // What does not get through its bridge is not there for the host.
    if let Some(degraded) = degraded
        .as_ref()
        .filter(|_| ready.status == ConditionStatus::True)
    {
        ready = degraded.clone();
        ready.status = ConditionStatus::False;
    }
    "Ready".clone_into(&mut ready.kind);
    let mut conditions = vec![accepted, ready];
    conditions.extend(degraded);
    let problems = view.get::<ProblemsOf>(subject.object);
    let mut problems = problems.iter();
    let meets = |one: &&Problem| matches!(one.kind, problem::Kind::UnderlaysMayMeet { .. });
    conditions.extend(problems.find(meets).map(|problem| {
        let (reason, message) = (problem.kind.reason(), problem.kind.to_string());
        let status = ConditionStatus::True;
        conditions::condition("Overlapping", status, reason, message, subject.meta)
    }));
    OverlayStatus {
        observed_generation: subject.meta.generation,
        conditions: Conditions(conditions),
        nodes: Some(nodes),
        last_good_generation: last_good_generation(view, subject.object),
    }
}

/// The generation in effect of an object that something is wrong with now: the last one that the object's status says was accepted.
fn last_good_generation(view: &View<'_>, object: &ObjectRef) -> Option<i64> {
    if !problems::keeps(view, object) {
        return None;
    }
    let key = &object.key;
    let stored = match object.kind {
        Kind::Underlay => view.status::<kinds::Underlay>(key),
        Kind::L3Vni => view.status::<kinds::L3Vni>(key),
        Kind::L2Vni => view.status::<kinds::L2Vni>(key),
        _ => view.status::<kinds::L3Passthrough>(key),
    }?;
    let mut conditions = stored.conditions.0.iter();
    let accepted = conditions
        .find(|one| one.kind == "Accepted" && one.status == ConditionStatus::True)
        .and_then(|one| one.observed_generation);
    accepted.or(stored.last_good_generation)
}
