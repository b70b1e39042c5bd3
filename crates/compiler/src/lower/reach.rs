//! What a selector of Destinations reaches: VRFs with their prefixes.

use std::{collections::BTreeMap, sync::Arc};

use api::{
    meta::LabelSelector,
    selvedge::ImportMatch,
    tcaas::{MatchedDestination, VrfLoopback},
    value::{Prefix, RouteTarget, Vni, VrfName},
};

use super::low_level::StoredByOwner;
use crate::{
    memo::{Index, Query},
    problem::{self, Problem},
    snapshot::{Key, Kind, ObjectRef, kinds},
    view::{AllUnread, View, reference},
};

/// The Destinations by their labels, so that a selector finds its own without asking every one.
pub(crate) struct DestinationsByLabel;
impl Index for DestinationsByLabel {
    type Source = Key;
    type Key = (String, String);
    type Item = Key;
    fn sources(view: &View<'_>) -> Vec<Key> {
        view.keys::<kinds::Destination>().to_vec()
    }
    fn entries(view: &View<'_>, key: &Key) -> Vec<((String, String), Key)> {
        let Some(meta) = view.meta::<kinds::Destination>(key) else {
            return Vec::new();
        };
        let labels = meta.labels.iter();
        let entry =
            |(label, value): (&String, &String)| ((label.clone(), value.clone()), key.clone());
        labels.map(entry).collect()
    }
}

/// The Destinations that a selector chooses, by name.
pub(crate) struct Chosen;
impl Query for Chosen {
    type Key = LabelSelector;
    type Value = Arc<Vec<Key>>;
    fn compute(view: &View<'_>, selector: &LabelSelector) -> Arc<Vec<Key>> {
        let candidates = match selector.match_labels.first_key_value() {
            Some((label, value)) => {
                view.who::<DestinationsByLabel>(&(label.clone(), value.clone()))
            }
            None => view.keys::<kinds::Destination>(),
        };
        let fits = |key: &&Key| {
            let meta = view.meta::<kinds::Destination>(key);
            meta.is_some_and(|meta| selector.matches(&meta.labels))
        };
        Arc::new(candidates.iter().filter(fits).cloned().collect())
    }
}

/// What is wrong with a Destination: a VRF that is not there, or is itself not in effect.
pub(crate) fn problem(view: &View<'_>, key: &Key) -> Option<Problem> {
    let destination = view.spec::<kinds::Destination>(key)?;
    let vrf = Key::named(destination.vrf_ref.as_ref()?);
    if view.vrf(&vrf).is_some() {
        return None;
    }
    let kind = view.missing(reference(Kind::Vrf, &vrf));
    let subject = reference(Kind::Destination, key);
    Some(Problem::new(subject, "spec.vrfRef", kind))
}

/// What a selector of Destinations reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    /// The VRFs, by name, each with what can be reached in it.
    pub(super) vrfs: BTreeMap<VrfName, ReachedVrf>,
    /// The Destinations, by name.
    pub(super) matched: Arc<Vec<MatchedDestination>>,
}

/// A VRF that is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReachedVrf {
    pub(super) vni: Vni,
    pub(super) route_target: RouteTarget,
    /// Prefixes behind it, in the order in which they are imported.
    pub(super) prefixes: Vec<Prefix>,
    /// Which routes those prefixes import.
    pub(super) import_match: ImportMatch,
    /// Loopbacks that every node gets which has the VRF.
    pub(super) loopbacks: Vec<VrfLoopback>,
}

/// What a selector reaches, for whoever has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reached {
    /// Nothing where something that is needed is missing or broken.
    reach: Option<Arc<Reach>>,
    /// What is to be said about the selector.
    problems: Vec<problem::Kind>,
}

/// What a selector reaches. Many objects have the same one, which is resolved once.
pub(crate) struct ReachOf;
impl Query for ReachOf {
    type Key = LabelSelector;
    type Value = Arc<Reached>;
    fn compute(view: &View<'_>, selector: &LabelSelector) -> Arc<Reached> {
        let mut problems = Vec::new();
        let reach = reach(view, selector, &mut problems).map(Arc::new);
        Arc::new(Reached { reach, problems })
    }
}

/// Resolves an object's selector. `None` when something it needs is missing or broken: the problems say what.
pub(super) fn resolve(
    view: &View<'_>,
    subject: &ObjectRef,
    selector: &LabelSelector,
    problems: &mut Vec<Problem>,
) -> Option<Arc<Reach>> {
    let reached = view.get::<ReachOf>(selector);
    let found = reached.problems.iter();
    problems
        .extend(found.map(|kind| Problem::new(subject.clone(), "spec.destinations", kind.clone())));
    reached.reach.clone()
}

impl Reach {
    /// Where nothing is left to select: the VRFs that an attachment was last in, without anything behind them, so that its segment stays
    /// there. Nothing for one that never ran.
    pub(super) fn or_last(
        self: Arc<Self>,
        view: &View<'_>,
        subject: &ObjectRef,
    ) -> Option<Arc<Self>> {
        if !self.vrfs.is_empty() {
            return Some(self);
        }
        let vrfs = last(view, subject);
        let matched = Arc::clone(&self.matched);
        (!vrfs.is_empty()).then(|| Arc::new(Self { vrfs, matched }))
    }
}

/// The VRFs that an intent was last in, without anything behind them.
pub(super) fn last(view: &View<'_>, subject: &ObjectRef) -> BTreeMap<VrfName, ReachedVrf> {
    let stored = view.who::<StoredByOwner>(&Some(subject.clone()));
    let stored = stored.iter().filter_map(|stored| {
        let spec = view.spec::<kinds::VrfRouteConfiguration>(&stored.key);
        let spec = spec.filter(|_| stored.kind == Kind::VrfRouteConfiguration)?;
        let reached = ReachedVrf {
            vni: spec.vni?,
            route_target: spec.route_target?,
            prefixes: Vec::new(),
            import_match: view.settings().import_match,
            loopbacks: spec.loopbacks.clone(),
        };
        Some((spec.vrf.clone(), reached))
    });
    stored.collect()
}

fn reach(
    view: &View<'_>,
    selector: &LabelSelector,
    problems: &mut Vec<problem::Kind>,
) -> Option<Reach> {
    if let Err(error) = selector.check() {
        problems.push(problem::Kind::InvalidSelector(error));
        return None;
    }
    let mut vrfs: BTreeMap<VrfName, ReachedVrf> = BTreeMap::new();
    let mut matched = Vec::new();
    let mut complete = true;
    let mut behind: BTreeMap<Prefix, (VrfName, Key)> = BTreeMap::new();
    for key in view.destinations(selector).iter() {
        let Some(destination) = view.spec::<kinds::Destination>(key) else {
            continue;
        };
        let Some(vrf_ref) = &destination.vrf_ref else {
            let what = format!(
                "Destination {} has a nextHop, which only an attachment to a device of the node uses",
                key.name
            );
            problems.push(problem::Kind::NoEffect { what });
            continue;
        };
        let vrf = view.vrf(&Key::named(vrf_ref));
        matched.push(MatchedDestination {
            name: key.name.to_string(),
            vrf: vrf.as_ref().map(|vrf| vrf.name.clone()),
        });
        let Some(vrf) = vrf else {
            complete = false;
            let target = reference(Kind::Destination, key);
            problems.push(problem::Kind::ReferenceNotInEffect { target });
            continue;
        };
        let reached = vrfs.entry(vrf.name.clone());
        let reached = reached.or_insert_with(|| ReachedVrf {
            vni: vrf.vni,
            route_target: vrf.route_target,
            prefixes: Vec::new(),
            import_match: view.settings().import_match,
            loopbacks: Vec::new(),
        });
        for loopback in &vrf.loopbacks {
            if !reached.loopbacks.contains(loopback) {
                reached.loopbacks.push(loopback.clone());
            }
        }
        for prefix in &destination.prefixes {
            let first = behind
                .entry(*prefix)
                .or_insert_with(|| (vrf.name.clone(), key.clone()));
            if first.0 != vrf.name {
                complete = false;
                let destination = |key: &Key| Box::new(reference(Kind::Destination, key));
                problems.push(problem::Kind::PrefixInTwoVrfs {
                    prefix: prefix.to_string(),
                    vrf: vrf.name.to_string(),
                    destination: destination(key),
                    other_vrf: first.0.to_string(),
                    other: destination(&first.1),
                });
            }
            if !reached.prefixes.contains(prefix) {
                reached.prefixes.push(*prefix);
            }
        }
    }
    // One that cannot be read is not one that is gone: what came from it stays.
    for target in view.get::<AllUnread>(&()).iter() {
        let meta = view.unread_meta(target);
        let is_chosen = meta.is_some_and(|meta| selector.matches(&meta.labels));
        if target.kind == Kind::Destination && is_chosen {
            complete = false;
            let target = target.clone();
            problems.push(problem::Kind::UnreadableReference { target });
        }
    }
    // Nothing is left to select where Destinations were taken away on purpose: what came from them goes.
    if vrfs.is_empty() && complete {
        problems.push(problem::Kind::NoDestination);
    }
    let matched = Arc::new(matched);
    complete.then_some(Reach { vrfs, matched })
}
