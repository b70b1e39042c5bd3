//! Which problems follow from others: what refers to an object that is missing or broken says nothing new.

use std::collections::{BTreeMap, BTreeSet};

use compiler::{Kind, ObjectRef, Problem, Severity, problem};

use crate::input::World;

/// What other problems can follow from.
pub(super) struct Causes {
    /// Objects that have an error of their own, which follows from nothing else.
    broken: BTreeSet<ObjectRef>,
    /// Documents that are not read, by the kind and name that they give themselves.
    unread: Vec<(Option<String>, Option<String>, String)>,
    /// The first object of each kind that cannot be used.
    kinds: BTreeMap<&'static str, String>,
}

impl Causes {
    pub(super) fn of(world: &World, problems: &[Problem]) -> Self {
        let is_broken = |problem: &&Problem| {
            problem.severity() == Severity::Error && referred(&problem.kind).is_none()
        };
        let broken: BTreeSet<ObjectRef> = problems
            .iter()
            .filter(is_broken)
            .map(|problem| problem.subject.clone())
            .collect();
        let unread: Vec<_> = world
            .unknown
            .iter()
            .map(|one| (one.kind.clone(), one.name.clone(), one.at.to_string()))
            .collect();
        let mut kinds = BTreeMap::new();
        let is_unusable = |problem: &&Problem| {
            matches!(
                problem.kind,
                problem::Kind::Unreadable { .. } | problem::Kind::RuleBroken { .. }
            )
        };
        for problem in problems.iter().filter(is_unusable) {
            let kind: &str = problem.subject.kind.into();
            kinds.entry(kind).or_insert_with(|| problem.subject.to_string());
        }
        for kind in [Kind::Underlay, Kind::Settings, Kind::Destination, Kind::Vrf, Kind::Node] {
            let kind: &str = kind.into();
            let mut of_kind = unread.iter();
            let is_kind = |written: &Option<String>| {
                // A document that does not even say its kind may be any object.
                written.as_deref().is_none_or(|written| {
                    written == kind || crate::suggest::nearest(written, [kind].into_iter()).is_some()
                })
            };
            if let Some((_, _, at)) = of_kind.find(|(written, ..)| is_kind(written)) {
                kinds.entry(kind).or_insert_with(|| at.clone());
            }
        }
        Self {
            broken,
            unread,
            kinds,
        }
    }

    /// What a problem follows from; nothing where it is a cause itself.
    pub(super) fn behind(&self, problem: &Problem) -> Option<String> {
        if let Some(target) = referred(&problem.kind) {
            if self.broken.contains(target) {
                return Some(target.to_string());
            }
            let of_target = self.unread.iter().find(|(_, name, _)| {
                name.as_deref()
                    .is_some_and(|name| *name == *target.key.name)
            });
            if let Some((_, _, at)) = of_target {
                return Some(at.clone());
            }
            let is_itself_behind = matches!(
                problem.kind,
                problem::Kind::ReferenceNotInEffect { .. }
                    | problem::Kind::NoDestination { .. }
                    | problem::Kind::DestinationLeftOut { .. }
            );
            return is_itself_behind.then(|| target.to_string());
        }
        let of_kind = |kind: Kind| self.kinds.get(<&str>::from(kind)).cloned();
        match &problem.kind {
            problem::Kind::NoUnderlay { .. } | problem::Kind::VrfNotOnNode { .. } => {
                of_kind(Kind::Underlay)
            }
            problem::Kind::NoDestination { left_out: None } => {
                of_kind(Kind::Destination).or_else(|| of_kind(Kind::Vrf))
            }
            problem::Kind::VrfIncomplete { .. }
            | problem::Kind::NoVniLeft
            | problem::Kind::TrunkRequired
            | problem::Kind::WorkloadAsRequired
            | problem::Kind::NoWayToPeer { .. }
            | problem::Kind::NeedsLegacyFlavour { .. }
            | problem::Kind::SettingsDeleted => of_kind(Kind::Settings),
            problem::Kind::MirrorVrfMissing { .. } => of_kind(Kind::Vrf),
            _ => None,
        }
    }
}

/// The object that a problem says is missing or broken.
fn referred(kind: &problem::Kind) -> Option<&ObjectRef> {
    match kind {
        problem::Kind::MissingReference { target }
        | problem::Kind::UnreadableReference { target }
        | problem::Kind::ReferenceNotInEffect { target }
        | problem::Kind::DestinationLeftOut {
            destination: target,
            ..
        }
        | problem::Kind::NoDestination {
            left_out: Some(target),
        } => Some(target),
        _ => None,
    }
}
