//! What a selector of Destinations reaches: VRFs with their prefixes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    meta::LabelSelector,
    selvedge::ImportMatch,
    tcaas::{MatchedDestination, VrfLoopback},
    value::{Prefix, RouteTarget, Vni, VrfName},
};

use super::{intent, low_level::StoredByOwner};
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

/// What a selector reaches, for every object that has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reached {
    /// What the Destinations in effect lead to.
    reach: Arc<Reach>,
    /// What is to be said about the selector.
    problems: Vec<problem::Kind>,
    /// Destinations that are selected and not in effect.
    broken: Vec<ObjectRef>,
    /// A prefix that is behind two VRFs.
    contradiction: Option<problem::Kind>,
}

/// What a selector reaches. Many objects have the same one, which is resolved once.
pub(crate) struct ReachOf;
impl Query for ReachOf {
    type Key = LabelSelector;
    type Value = Arc<Reached>;
    fn compute(view: &View<'_>, selector: &LabelSelector) -> Arc<Reached> {
        let chosen = view.destinations(selector);
        let mut reached = reach(view, chosen.iter());
        reached.broken.extend(unread(view, selector));
        Arc::new(reached)
    }
}

/// The Destinations that a selector chooses and that cannot be read.
pub(super) fn unread(view: &View<'_>, selector: &LabelSelector) -> Vec<ObjectRef> {
    let unread = view.get::<AllUnread>(&());
    let chosen = unread.iter().filter(|target| {
        let meta = view.unread_meta(target);
        let is_chosen = meta.is_some_and(|meta| selector.matches(&meta.labels));
        target.kind == Kind::Destination && is_chosen
    });
    chosen.cloned().collect()
}

/// Resolves an object's selector. `None` where it cannot be resolved: the problems say why. Nothing is reached where nothing is left to
/// select.
///
/// Of a Destination that the object cannot use, what came from it before stays. One that it never used is left out, so that no author is
/// harmed by a Destination of another.
pub(super) fn resolve(
    view: &View<'_>,
    subject: &ObjectRef,
    selector: &LabelSelector,
    problems: &mut Vec<Problem>,
) -> Option<Arc<Reach>> {
    let mut report = |kind| problems.push(Problem::new(subject.clone(), "spec.destinations", kind));
    if let Err(error) = selector.check() {
        report(problem::Kind::InvalidSelector(error));
        return None;
    }
    let mut reached = view.get::<ReachOf>(selector);
    if reached.contradiction.is_some() {
        let agreeing = agreeing(view, subject, selector, &mut report);
        reached = Arc::new(agreeing);
    }
    reached.problems.iter().cloned().for_each(&mut report);
    if let Some(contradiction) = reached.contradiction.clone() {
        report(contradiction);
        return None;
    }
    let mut reach = Arc::clone(&reached.reach);
    let mut left_out = Vec::new();
    if !reached.broken.is_empty() {
        let used = Used::by(view, subject);
        let reach = Arc::make_mut(&mut reach);
        for destination in reached.broken.iter().cloned() {
            if used.keep(view, &destination, reach) {
                report(problem::Kind::DestinationKept { destination });
            } else {
                left_out.push(destination);
            }
        }
    }
    if reach.vrfs.is_empty() {
        let left_out = left_out.into_iter().next();
        report(problem::Kind::NoDestination { left_out });
    } else {
        for destination in left_out {
            let why = "it is not in effect".to_owned();
            report(problem::Kind::DestinationLeftOut { destination, why });
        }
    }
    Some(reach)
}

/// What a selector reaches without the Destinations that contradict those which an object uses.
fn agreeing(
    view: &View<'_>,
    subject: &ObjectRef,
    selector: &LabelSelector,
    report: &mut impl FnMut(problem::Kind),
) -> Reached {
    let used = Used::by(view, subject);
    let chosen = view.destinations(selector);
    let (mut taken, new): (BTreeSet<&Key>, BTreeSet<&Key>) =
        chosen.iter().partition(|key| used.has(view, key));
    for key in new.into_iter().filter(|_| used.is_any()) {
        let with: BTreeSet<&Key> = taken.iter().copied().chain([key]).collect();
        match reach(view, with.iter().copied()).contradiction {
            Some(contradiction) => report(problem::Kind::DestinationLeftOut {
                destination: reference(Kind::Destination, key),
                why: contradiction.to_string(),
            }),
            None => taken = with,
        }
    }
    let mut reached = if used.is_any() {
        reach(view, taken.into_iter())
    } else {
        reach(view, chosen.iter())
    };
    reached.broken.extend(unread(view, selector));
    reached
}

/// The Destinations that an object uses, as it last ran.
pub(super) struct Used {
    /// As its status names them; nothing where the status was lost.
    named: Vec<MatchedDestination>,
    /// The VRFs that it was last in, with what was imported there.
    vrfs: BTreeMap<VrfName, ReachedVrf>,
    /// The prefixes that it had static routes to.
    routes: BTreeSet<Prefix>,
}

impl Used {
    pub(super) fn by(view: &View<'_>, subject: &ObjectRef) -> Self {
        let stored = view.who::<StoredByOwner>(&Some(subject.clone()));
        let segments = stored
            .iter()
            .filter(|one| one.kind == Kind::Layer2NetworkConfiguration);
        let segments =
            segments.filter_map(|one| view.spec::<kinds::Layer2NetworkConfiguration>(&one.key));
        let routes = segments.flat_map(|segment| segment.static_routes.clone());
        Self {
            named: intent::matched(view, subject),
            vrfs: last(view, subject),
            routes: routes.map(|route| route.prefix).collect(),
        }
    }

    /// Whether it uses any: one that never ran uses none.
    pub(super) fn is_any(&self) -> bool {
        !self.vrfs.is_empty() || !self.routes.is_empty()
    }

    /// Whether it uses a Destination.
    pub(super) fn has(&self, view: &View<'_>, key: &Key) -> bool {
        if !self.named.is_empty() {
            let mut named = self.named.iter();
            return named.any(|one| one.name == *key.name);
        }
        let spec = view.spec::<kinds::Destination>(key);
        let mut prefixes = spec.iter().flat_map(|spec| &spec.prefixes);
        let imports = |prefix: &Prefix| {
            let mut vrfs = self.vrfs.values();
            vrfs.any(|vrf| vrf.prefixes.contains(prefix))
        };
        prefixes.any(|prefix| imports(prefix) || self.routes.contains(prefix))
    }

    /// Adds what came from a Destination that is not in effect any more; returns whether anything did.
    fn keep(&self, view: &View<'_>, target: &ObjectRef, reach: &mut Reach) -> bool {
        let spec = view.spec::<kinds::Destination>(&target.key);
        let named = self.named.iter();
        let named = named.filter(|one| one.name == *target.key.name);
        let named: BTreeSet<_> = named.filter_map(|one| one.vrf.as_ref()).collect();
        // Where the status was lost, all that came from Destinations may have come from this one.
        let vrfs = self.vrfs.iter();
        let vrfs = vrfs.filter(|(vrf, _)| self.named.is_empty() || named.contains(vrf));
        let vrfs: Vec<_> = vrfs.collect();
        for (vrf, last) in &vrfs {
            let reached = reach
                .vrfs
                .entry((*vrf).clone())
                .or_insert_with(|| ReachedVrf {
                    prefixes: Vec::new(),
                    ..(*last).clone()
                });
            // What one that cannot be read has led to is not known: everything stays.
            let led_to = |prefix: &Prefix| {
                let spec = spec.as_ref();
                spec.is_none_or(|spec| spec.prefixes.contains(prefix))
            };
            let left = last.prefixes.iter().filter(|prefix| led_to(prefix));
            reached.prefixes.extend(left);
            // They are imported in the order in which they were.
            let place = |prefix: &Prefix| last.prefixes.iter().position(|one| one == prefix);
            let place = |prefix: &Prefix| place(prefix).unwrap_or(usize::MAX);
            reached.prefixes.sort_by_key(place);
            reached.prefixes.dedup();
            let matched = Arc::make_mut(&mut reach.matched);
            matched.push(MatchedDestination {
                name: target.key.name.to_string(),
                vrf: Some((*vrf).clone()),
            });
            matched.sort_by(|a, b| a.name.cmp(&b.name));
        }
        !vrfs.is_empty()
    }
}

/// The VRFs that an intent was last in, with what was imported there.
fn last(view: &View<'_>, subject: &ObjectRef) -> BTreeMap<VrfName, ReachedVrf> {
    let stored = view.who::<StoredByOwner>(&Some(subject.clone()));
    let stored = stored.iter().filter_map(|stored| {
        let spec = view.spec::<kinds::VrfRouteConfiguration>(&stored.key);
        let spec = spec.filter(|_| stored.kind == Kind::VrfRouteConfiguration)?;
        let reached = ReachedVrf {
            vni: spec.vni?,
            route_target: spec.route_target?,
            prefixes: spec.import.iter().map(|item| item.cidr).collect(),
            import_match: view.settings().import_match,
            loopbacks: spec.loopbacks.clone(),
        };
        Some((spec.vrf.clone(), reached))
    });
    stored.collect()
}

impl Reach {
    /// Where nothing is left to select: the VRFs that an intent was last in, without anything behind them, so that its segment stays there.
    /// Nothing for one that never ran.
    pub(super) fn or_last(
        self: Arc<Self>,
        view: &View<'_>,
        subject: &ObjectRef,
    ) -> Option<Arc<Self>> {
        if !self.vrfs.is_empty() {
            return Some(self);
        }
        runs(view, subject).then_some(())?;
        let mut vrfs = last(view, subject);
        for vrf in vrfs.values_mut() {
            vrf.prefixes.clear();
        }
        let matched = Arc::clone(&self.matched);
        Some(Arc::new(Self { vrfs, matched }))
    }
}

/// Whether an intent became something before: only such a one stays where nothing is left to select.
pub(super) fn runs(view: &View<'_>, subject: &ObjectRef) -> bool {
    view.has::<StoredByOwner>(&Some(subject.clone()))
}

fn reach<'a>(view: &View<'_>, destinations: impl Iterator<Item = &'a Key>) -> Reached {
    let mut reached = Reached::default();
    let mut vrfs: BTreeMap<VrfName, ReachedVrf> = BTreeMap::new();
    let mut matched = Vec::new();
    let mut behind: BTreeMap<Prefix, (VrfName, Key)> = BTreeMap::new();
    for key in destinations {
        let Some(destination) = view.spec::<kinds::Destination>(key) else {
            continue;
        };
        let Some(vrf_ref) = &destination.vrf_ref else {
            let what = format!(
                "Destination {} has a nextHop, which only an attachment to a device of the node uses",
                key.name
            );
            reached.problems.push(problem::Kind::NoEffect { what });
            continue;
        };
        let Some(vrf) = view.vrf(&Key::named(vrf_ref)) else {
            reached.broken.push(reference(Kind::Destination, key));
            continue;
        };
        matched.push(MatchedDestination {
            name: key.name.to_string(),
            vrf: Some(vrf.name.clone()),
        });
        let in_vrf = vrfs.entry(vrf.name.clone());
        let in_vrf = in_vrf.or_insert_with(|| ReachedVrf {
            vni: vrf.vni,
            route_target: vrf.route_target,
            prefixes: Vec::new(),
            import_match: view.settings().import_match,
            loopbacks: Vec::new(),
        });
        for loopback in &vrf.loopbacks {
            if !in_vrf.loopbacks.contains(loopback) {
                in_vrf.loopbacks.push(loopback.clone());
            }
        }
        for prefix in &destination.prefixes {
            let first = behind
                .entry(*prefix)
                .or_insert_with(|| (vrf.name.clone(), key.clone()));
            if first.0 != vrf.name && reached.contradiction.is_none() {
                let destination = |key: &Key| Box::new(reference(Kind::Destination, key));
                reached.contradiction = Some(problem::Kind::PrefixInTwoVrfs {
                    prefix: prefix.to_string(),
                    vrf: vrf.name.to_string(),
                    destination: destination(key),
                    other_vrf: first.0.to_string(),
                    other: destination(&first.1),
                });
            }
            if !in_vrf.prefixes.contains(prefix) {
                in_vrf.prefixes.push(*prefix);
            }
        }
    }
    let matched = Arc::new(matched);
    reached.reach = Arc::new(Reach { vrfs, matched });
    reached
}
