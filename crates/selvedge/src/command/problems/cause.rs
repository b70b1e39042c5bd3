//! Which problems follow from others: what refers to an object that is missing or broken says nothing new.

use std::collections::{BTreeMap, BTreeSet};

use compiler::{Kind, ObjectRef, Problem, Severity, problem};

use super::hint;
use crate::{input::World, rules};

/// How the warning begins that a selector selects no node.
pub(super) const NO_NODE: &str = "matches no node";

/// What other problems can follow from.
pub(super) struct Causes<'a> {
    world: &'a World,
    /// Objects that have an error of their own, which follows from nothing else.
    broken: BTreeSet<&'a ObjectRef>,
    /// The first object of each kind that cannot be used.
    kinds: BTreeMap<&'static str, String>,
    /// Fields of objects that no kind has.
    unknown: Vec<(&'a ObjectRef, &'a str)>,
    /// The first problem of each kind that no object of the input can be used for.
    without: BTreeMap<Kind, &'a Problem>,
}

impl<'a> Causes<'a> {
    pub(super) fn of(world: &'a World, problems: &'a [Problem]) -> Self {
        let is_broken = |problem: &&Problem| {
            problem.severity() == Severity::Error && referred(&problem.kind).is_none()
        };
        let broken = problems.iter().filter(is_broken);
        let mut kinds = BTreeMap::new();
        let is_unusable = |problem: &&Problem| match problem.kind {
            problem::Kind::Unreadable { .. } | problem::Kind::RuleBroken { .. } => true,
            // Labels may be meant, which others select.
            problem::Kind::UnknownField => problem.field.starts_with("metadata."),
            _ => false,
        };
        for problem in problems.iter().filter(is_unusable) {
            let kind: &str = problem.subject.kind.into();
            kinds
                .entry(kind)
                .or_insert_with(|| problem.subject.to_string());
        }
        for kind in [Kind::Underlay, Kind::Settings, Kind::Destination, Kind::Vrf] {
            let mut unread = world.unknown.iter();
            if let Some(unread) = unread.find(|unread| unread.may_have_kind(kind)) {
                kinds
                    .entry(kind.into())
                    .or_insert_with(|| unread.at.to_string());
            }
        }
        let unknown = problems.iter();
        let unknown = unknown.filter(|problem| problem.kind == problem::Kind::UnknownField);
        let is_lacking = |kind: &Kind| {
            let mut unread = world.unknown.iter();
            !world.has(*kind) && !unread.any(|unread| unread.may_have_kind(*kind))
        };
        let lacking = [Kind::Underlay, Kind::Destination].into_iter();
        let lacking: BTreeSet<Kind> = lacking.filter(is_lacking).collect();
        let mut without = BTreeMap::new();
        for problem in problems {
            if let Some(kind) = needed(&problem.kind).filter(|kind| lacking.contains(kind)) {
                without.entry(kind).or_insert(problem);
            }
        }
        Self {
            world,
            without,
            broken: broken.map(|problem| &problem.subject).collect(),
            kinds,
            unknown: unknown
                .map(|problem| (&problem.subject, problem.field.as_str()))
                .collect(),
        }
    }

    /// What a problem follows from; nothing where it is a cause itself.
    pub(super) fn behind(&self, problem: &Problem) -> Option<String> {
        // A warning says what stays in effect, which is new; except where a broken Underlay gives a node nothing, and labels of nodes are
        // not read.
        if problem.severity() == Severity::Warning {
            return match &problem.kind {
                problem::Kind::NoEffect { .. } if problem.subject.kind == Kind::Node => {
                    self.broken_underlay()
                }
                problem::Kind::NoEffect { what } if what.starts_with(NO_NODE) => {
                    self.of_kind(Kind::Node)
                }
                _ => None,
            };
        }
        if let Some(kind) = needed(&problem.kind)
            && let Some(first) = self.without.get(&kind)
            && **first != *problem
        {
            return Some(format!("no {kind} in the input"));
        }
        if let Some(target) = referred(&problem.kind) {
            // An empty name is refused as such.
            if target.key.name.is_empty() {
                return Some(format!("{} {}", problem.subject, problem.field));
            }
            if self.broken.contains(target) {
                return Some(target.to_string());
            }
            let mut unread = self.world.unknown.iter();
            if let Some(unread) = unread.find(|unread| unread.may_be(target)) {
                return Some(unread.at.to_string());
            }
            let is_itself_behind = matches!(
                problem.kind,
                problem::Kind::ReferenceNotInEffect { .. }
                    | problem::Kind::NoDestination { .. }
                    | problem::Kind::DestinationLeftOut { .. }
            );
            return is_itself_behind.then(|| target.to_string());
        }
        if let Some(field) = self.misspelled(problem) {
            return Some(field);
        }
        let of_kind = |kind: Kind| self.of_kind(kind);
        match &problem.kind {
            problem::Kind::NoUnderlay { .. } | problem::Kind::VrfNotOnNode { .. } => {
                of_kind(Kind::Underlay).or_else(|| of_kind(Kind::Node))
            }
            problem::Kind::NoDestination { left_out: None } => {
                of_kind(Kind::Destination).or_else(|| of_kind(Kind::Vrf))
            }
            problem::Kind::VrfIncomplete { .. }
            | problem::Kind::NoVniRange
            | problem::Kind::NoVniLeft
            | problem::Kind::TrunkRequired
            | problem::Kind::WorkloadAsRequired
            | problem::Kind::NoWayToPeer { .. }
            | problem::Kind::NeedsLegacyFlavour { .. } => of_kind(Kind::Settings),
            problem::Kind::MirrorVrfMissing { .. } => of_kind(Kind::Vrf),
            problem::Kind::NetworkLacks { network, .. } if self.broken.contains(network) => {
                Some(network.to_string())
            }
            _ => None,
        }
    }

    /// The first Underlay that is not in effect, or a document that may be one.
    fn broken_underlay(&self) -> Option<String> {
        let kind = Kind::Underlay;
        let mut broken = self.broken.iter().filter(|object| object.kind == kind);
        let broken = broken.next().map(ToString::to_string);
        broken.or_else(|| self.of_kind(kind))
    }

    /// The first object of a kind that cannot be used.
    fn of_kind(&self, kind: Kind) -> Option<String> {
        self.kinds.get(<&str>::from(kind)).cloned()
    }

    /// The misspelled field of the object that the missing one is likely to be.
    fn misspelled(&self, problem: &Problem) -> Option<String> {
        if problem.kind == problem::Kind::UnknownField {
            return None;
        }
        let message = problem.kind.to_string();
        let has_word = |field: &str| {
            let is_part = |c: char| c.is_alphanumeric() || c == '-';
            message
                .split(|c: char| !is_part(c))
                .any(|word| word == field)
        };
        let mut unknown = self
            .unknown
            .iter()
            .filter(|(object, _)| **object == problem.subject);
        let field = unknown.find(|(_, field)| {
            let (parent, name) = field.rsplit_once('.').unwrap_or(("", field));
            let kind = problem.subject.kind;
            let meant = hint::meant(kind, parent, name);
            // A field that belongs below the spec, which is then missing with all of its fields.
            let is_of_spec = parent.is_empty() && rules::fields(kind, "spec").contains(&name);
            let is_missing =
                problem.field == "spec" || problem.field.strip_prefix("spec.") == Some(name);
            if is_of_spec && is_missing {
                return true;
            }
            meant.is_some_and(|meant| {
                let path = match parent {
                    "" => meant.clone(),
                    parent => format!("{parent}.{meant}"),
                };
                let is_below = problem.field.strip_prefix(&path);
                let is_below =
                    is_below.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
                is_below || has_word(&meant)
            })
        });
        let (object, field) = field?;
        Some(format!("{object} {field}"))
    }
}

/// The kind of which a problem says that no object fits.
fn needed(kind: &problem::Kind) -> Option<Kind> {
    match kind {
        problem::Kind::NoUnderlay { .. } => Some(Kind::Underlay),
        problem::Kind::NoDestination { left_out: None } => Some(Kind::Destination),
        _ => None,
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
