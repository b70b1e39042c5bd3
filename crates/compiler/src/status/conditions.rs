//! What holds for an object now: problems and the nodes' answers as conditions.

use std::collections::BTreeSet;

use api::meta::{Condition, ConditionStatus, Conditions};

use super::{Fold, selectors};
use crate::{
    node::Shared,
    problem::{self, Problem, Severity},
    rollout::Progress,
    snapshot::{Key, Kind, Meta, ObjectRef},
};

impl Fold<'_> {
    /// Conditions of an object that is only referred to: it is ready when nothing is wrong with it.
    pub(super) fn validity(&self, kind: Kind, key: &Key, meta: &Meta) -> Conditions {
        let resolved = self.resolved(
            &ObjectRef {
                kind,
                key: key.clone(),
            },
            meta,
        );
        let mut ready = resolved.clone();
        "Ready".clone_into(&mut ready.kind);
        Conditions(vec![ready, resolved])
    }

    /// Conditions of an intent that becomes config of nodes: it is ready when every node that shall have it does.
    pub(super) fn application(&self, kind: Kind, key: &Key, meta: &Meta) -> Conditions {
        let subject = ObjectRef {
            kind,
            key: key.clone(),
        };
        let resolved = self.resolved(&subject, meta);
        let objects = self.generated.get(&subject);
        let nothing_to_apply = kind == Kind::Layer2Attachment
            && objects.is_none_or(BTreeSet::is_empty)
            && self.compilation.lowered.attachments.contains_key(&key.name);
        let is_on = |shared: &Shared| {
            let has = |object: &&str| match kind {
                Kind::BgpNeighbor => shared.peerings.contains(*object),
                _ => shared.segments.contains(*object) || shared.routing.contains(*object),
            };
            objects.is_some_and(|objects| objects.iter().any(has))
        };
        let applied = if nothing_to_apply {
            let message = "nodes need nothing for it".to_owned();
            let (kind, reason) = ("Applied", "NothingToApply");
            condition(kind, ConditionStatus::True, reason, message, meta)
        } else {
            let names = objects.into_iter().flatten().copied();
            self.applied(names, is_on, meta)
        };
        let mut overall = if resolved.status == ConditionStatus::True {
            applied.clone()
        } else {
            resolved.clone()
        };
        "Ready".clone_into(&mut overall.kind);
        let mut conditions = vec![applied, overall, resolved];
        conditions.extend(self.steering(&subject, meta));
        conditions.extend(self.interface_not_found(&subject, meta));
        conditions.extend(self.no_vrf(&subject, meta));
        Conditions(conditions)
    }

    /// Whether every node that shall have something of these objects does.
    pub(super) fn applied<'n>(
        &self,
        names: impl Iterator<Item = &'n str>,
        is_on: impl Fn(&Shared) -> bool,
        meta: &Meta,
    ) -> Condition {
        let places = names.filter_map(|name| self.places.get(name));
        let places: BTreeSet<&usize> = places.flatten().collect();
        let holders = places
            .into_iter()
            .filter_map(|place| self.groups.get(*place));
        let holders = holders.filter(|(shared, _)| is_on(shared));
        let mut total = 0_usize;
        let mut ready = 0_usize;
        let mut failed = BTreeSet::new();
        for node in holders.flat_map(|(_, nodes)| nodes) {
            total += 1;
            match self.nodes.get(*node) {
                Some(Progress::Ready) => ready += 1,
                Some(Progress::Failed) => {
                    failed.insert(*node);
                }
                Some(Progress::Ongoing | Progress::Queued) | None => {}
            }
        }
        let (status, reason, message) = if let Some(node) = failed.first() {
            let message = format!("node {node} could not apply it");
            (ConditionStatus::False, "NodeFailed", message)
        } else if total == 0 {
            let message = "no node has it".to_owned();
            (ConditionStatus::False, "NoNode", message)
        } else if ready == total {
            let message = format!("applied on {total} nodes");
            (ConditionStatus::True, "Applied", message)
        } else {
            let message = format!("applied on {ready} of {total} nodes");
            (ConditionStatus::False, "Pending", message)
        };
        condition("Applied", status, reason, message, meta)
    }

    /// Nodes that lack the device an attachment is on.
    pub(super) fn interface_not_found(
        &self,
        subject: &ObjectRef,
        meta: &Meta,
    ) -> Option<Condition> {
        let mut problems = self.problems.get(subject)?.iter();
        let found = problems
            .find(|problem| matches!(problem.kind, problem::Kind::InterfaceNotFound { .. }))?;
        let kind = found.kind.reason();
        let message = found.kind.to_string();
        let (status, reason) = (ConditionStatus::True, "NotReported");
        Some(condition(kind, status, reason, message, meta))
    }

    /// That an object without destinations is known to no VRF, which its author may or may not have meant.
    pub(super) fn no_vrf(&self, subject: &ObjectRef, meta: &Meta) -> Option<Condition> {
        if !selectors::has_none(self.snapshot, subject) {
            return None;
        }
        let (kind, reason) = ("VRFConfigured", "NoDestinations");
        let message = "it selects no destinations, so no VRF configuration is made".to_owned();
        let status = ConditionStatus::False;
        Some(condition(kind, status, reason, message, meta))
    }

    /// Why the object's traffic is routed by its source, where it is.
    pub(super) fn steering(&self, subject: &ObjectRef, meta: &Meta) -> Option<Condition> {
        let groups = self.groups.iter();
        let steered = groups.filter_map(|(shared, nodes)| {
            let reason = shared.steering.get(subject)?;
            Some((*nodes.first()?, reason))
        });
        let (node, reason) = steered.min_by_key(|(node, _)| *node)?;
        let overlap = reason.overlap.as_ref()?;
        let message = format!(
            "on node {node}, {} behind VRF {:?} and {} behind VRF {:?} overlap: traffic is routed by its source",
            overlap.prefix, reason.vrf, overlap.other_prefix, overlap.other
        );
        let (kind, reason) = ("SourceBasedRouting", "OverlappingPrefixes");
        Some(condition(
            kind,
            ConditionStatus::True,
            reason,
            message,
            meta,
        ))
    }

    pub(super) fn resolved(&self, subject: &ObjectRef, meta: &Meta) -> Condition {
        let problems = self.problems.get(subject).into_iter().flatten();
        let errors: Vec<&Problem> = problems
            .filter(|problem| problem.severity() == Severity::Error)
            .copied()
            .collect();
        let Some(first) = errors.first() else {
            return condition(
                "Resolved",
                ConditionStatus::True,
                "Resolved",
                "nothing is wrong with it".to_owned(),
                meta,
            );
        };
        let sentences: Vec<String> = errors
            .iter()
            .map(|problem| match problem.kind.remedy() {
                Some(remedy) => format!("{}: {}; {remedy}", problem.field, problem.kind),
                None => format!("{}: {}", problem.field, problem.kind),
            })
            .collect();
        condition(
            "Resolved",
            ConditionStatus::False,
            first.kind.reason(),
            sentences.join(". "),
            meta,
        )
    }
}

pub(super) fn condition(
    kind: &str,
    status: ConditionStatus,
    reason: &str,
    message: String,
    meta: &Meta,
) -> Condition {
    Condition {
        kind: kind.to_owned(),
        status,
        observed_generation: meta.generation,
        last_transition_time: None,
        reason: reason.to_owned(),
        message,
    }
}
