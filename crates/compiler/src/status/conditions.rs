//! What holds for an object now: problems and the nodes' answers as conditions.

use api::meta::{Condition, ConditionStatus, Conditions};

use super::{
    Subject,
    groups::{self, SteeringBySubject},
};
use crate::{
    lower::intent,
    node::Shared,
    platform::state,
    problem::{self, Problem, Severity},
    problems::{self, ProblemsOf},
    snapshot::{Meta, ObjectRef, Role},
    view::View,
};

/// How long a message may be: the API server refuses a status with a longer one.
const LONGEST_MESSAGE: usize = 32_768;
/// The end of one that was longer.
const CUT: &str = " …";

/// Conditions of an object that is only referred to: it is ready when it has no errors.
pub(super) fn validity(view: &View<'_>, subject: &Subject<'_>) -> Conditions {
    let resolved = resolved(view, subject.object, subject.meta);
    let platform = platform_ready(view, subject);
    let mut ready = first_unmet([Some(&resolved), platform.as_ref()], &resolved).clone();
    "Ready".clone_into(&mut ready.kind);
    let mut conditions = vec![ready, resolved];
    conditions.extend(platform);
    Conditions(conditions)
}

/// The first condition that does not hold, or else this one.
pub(super) fn first_unmet<'a, const N: usize>(
    conditions: [Option<&'a Condition>; N],
    holding: &'a Condition,
) -> &'a Condition {
    let mut conditions = conditions.into_iter().flatten();
    let unmet = conditions.find(|one| one.status != ConditionStatus::True);
    unmet.unwrap_or(holding)
}

/// That an intent lacks something on the platform, where it does.
fn platform_ready(view: &View<'_>, subject: &Subject<'_>) -> Option<Condition> {
    let absent = state::absent(view, subject.object)?;
    let first = absent.first()?;
    let message = match absent.len() - 1 {
        0 => first.to_string(),
        more => format!("{first}; and {more} more"),
    };
    let (status, reason) = (ConditionStatus::False, first.why.reason());
    Some(condition(
        "PlatformReady",
        status,
        reason,
        message,
        subject.meta,
    ))
}

/// Conditions of an object that becomes config of nodes: it is ready when it has no errors and is applied.
pub(super) fn application(
    view: &View<'_>,
    subject: &Subject<'_>,
    source: &ObjectRef,
    applied: Condition,
) -> Conditions {
    let resolved = resolved(view, source, subject.meta);
    let platform = platform_ready(view, subject);
    let unmet = [Some(&resolved), Some(&applied), platform.as_ref()];
    let mut overall = first_unmet(unmet, &applied).clone();
    "Ready".clone_into(&mut overall.kind);
    let mut conditions = vec![applied, overall, resolved];
    conditions.extend(platform);
    conditions.extend(steering(view, source, subject.meta));
    conditions.extend(interface_not_found(view, source, subject.meta));
    Conditions(conditions)
}

/// Whether every node that must have something of these objects does.
pub(super) fn applied<'n>(
    view: &View<'_>,
    names: impl Iterator<Item = &'n str>,
    is_on: impl Fn(&Shared) -> bool,
    meta: &Meta,
) -> Condition {
    applied_on(&groups::progress(view, names, is_on), meta)
}

/// Whether all of these nodes have applied something.
pub(super) fn applied_on(nodes: &groups::Count, meta: &Meta) -> Condition {
    let groups::Count {
        total,
        ready,
        failures: _,
        failed,
    } = nodes;
    let (status, reason, message) = if let Some(node) = failed {
        let message = format!("apply failed on node {node}");
        (ConditionStatus::False, "NodeFailed", message)
    } else if *total == 0 {
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
fn interface_not_found(view: &View<'_>, object: &ObjectRef, meta: &Meta) -> Option<Condition> {
    let problems = view.get::<ProblemsOf>(object);
    let mut problems = problems.iter();
    let found =
        problems.find(|problem| matches!(problem.kind, problem::Kind::InterfaceNotFound { .. }))?;
    let kind = found.kind.reason();
    let message = found.kind.to_string();
    let (status, reason) = (ConditionStatus::True, "NotReported");
    Some(condition(kind, status, reason, message, meta))
}

/// That an object without destinations is known to no VRF, which its author may or may not have meant.
pub(super) fn no_vrf(view: &View<'_>, subject: &Subject<'_>) -> Option<Condition> {
    let has_vrf = subject.object.kind.role() == Role::Other;
    if has_vrf || intent::destinations(view, subject.object).is_some() {
        return None;
    }
    let (kind, reason) = ("VRFConfigured", "NoDestinations");
    let message = "it selects no destinations, so no VRF configuration is made".to_owned();
    let status = ConditionStatus::False;
    Some(condition(kind, status, reason, message, subject.meta))
}

/// Why the object's traffic is routed by its source, where it is.
fn steering(view: &View<'_>, object: &ObjectRef, meta: &Meta) -> Option<Condition> {
    let steered = view.who::<SteeringBySubject>(object);
    let (node, reason) = steered.iter().min_by_key(|(node, _)| node)?;
    let overlap = reason.overlap.as_ref()?;
    let message = format!(
        "on node {node}, {} behind VRF {:?} and {} behind VRF {:?} overlap: traffic is routed by its source",
        overlap.prefix, reason.vrf, overlap.other_prefix, overlap.other
    );
    let (kind, reason) = ("SourceBasedRouting", "OverlappingPrefixes");
    let status = ConditionStatus::True;
    Some(condition(kind, status, reason, message, meta))
}

/// Whether an object has no errors.
pub(super) fn resolved(view: &View<'_>, object: &ObjectRef, meta: &Meta) -> Condition {
    let problems = view.get::<ProblemsOf>(object);
    let errors: Vec<&Problem> = problems
        .iter()
        .filter(|problem| problem.severity() == Severity::Error)
        .collect();
    let Some(first) = errors.first() else {
        return condition(
            "Resolved",
            ConditionStatus::True,
            "Resolved",
            "All references are resolved.".to_owned(),
            meta,
        );
    };
    let mut sentences: Vec<String> = errors
        .iter()
        .map(|problem| match problem.kind.remedy() {
            Some(remedy) => format!("{}: {}; {remedy}", problem.field, problem.kind),
            None => format!("{}: {}", problem.field, problem.kind),
        })
        .collect();
    if problems::keeps(view, object) {
        sentences.push("The last valid spec stays in effect".to_owned());
    }
    condition(
        "Resolved",
        ConditionStatus::False,
        first.kind.reason(),
        sentences.join(". "),
        meta,
    )
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
        message: shortened(message),
    }
}

/// A message that the API server accepts.
pub(crate) fn shortened(mut message: String) -> String {
    if message.len() > LONGEST_MESSAGE {
        message.truncate(message.floor_char_boundary(LONGEST_MESSAGE - CUT.len()));
        message.push_str(CUT);
    }
    message
}
