//! The low-level objects of intents, merged with hand-written objects: conflicts about names and scopes are decided here.
//!
//! An intent with errors, or one that loses a conflict, keeps its last generated objects, which are stored.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::BuildHasher as _,
    sync::Arc,
};

use rustc_hash::{FxBuildHasher, FxHashSet};

use super::{
    addresses,
    intent::{self, Attachment, Lower, LoweredIntent},
    low_level::{self, HandWritten, LowLevelObject, StoredByOwner},
    revoked::Left,
    scope,
    service::Service,
};
use crate::{
    memo::{Index, Query, Registered},
    problem::{self, Problem},
    problems,
    snapshot::{IntentKind, Kind, Meta, ObjectRef, age, kinds},
    view::View,
};

/// What stands for an intent among all objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergedIntent {
    /// What it contributes: what it becomes, or what it became last.
    pub objects: Vec<LowLevelObject>,
    /// What an attachment comes to; nothing while something is wrong with it.
    pub attachment: Option<Attachment>,
    /// What a service comes to; what it holds while something is wrong with it.
    pub service: Option<Service>,
    /// Whether it becomes nothing as it is now.
    pub is_held_back: bool,
    /// Its problems, and those of hand-written objects that lose a conflict with it.
    pub(crate) problems: Vec<Problem>,
}

/// Looks at the names of the objects that an intent wants, or had.
fn for_wanted_names(view: &View<'_>, subject: &ObjectRef, mut look: impl FnMut(Kind, &str)) {
    let outcome = view.get::<Lower>(subject);
    for object in outcome.lowered.iter().flat_map(|lowered| &lowered.objects) {
        look(object.kind(), object.name());
    }
    if outcome.lowered.is_none() || !low_level::hand_written(view).is_empty() {
        for stored in last(view, subject) {
            look(stored.kind, &stored.key.name);
        }
    }
}

/// What an intent became last: the objects that were generated from it, and those of a Collector that vanished under a TrafficMirror. Those
/// become the TrafficMirror's, since Kubernetes deletes what has no owner.
fn last(view: &View<'_>, subject: &ObjectRef) -> Vec<ObjectRef> {
    let mut stored = view.who::<StoredByOwner>(&Some(subject.clone())).to_vec();
    if subject.kind == Kind::TrafficMirror
        && let Some(spec) = view.spec::<kinds::TrafficMirror>(&subject.key)
    {
        let collector = ObjectRef::named(Kind::Collector, &spec.collector);
        if view.stored_meta(&collector).is_none() {
            let orphans = view.who::<StoredByOwner>(&Some(collector));
            stored.extend(orphans.iter().cloned());
        }
    }
    stored
}

fn hash(kind: Kind, name: &str) -> u64 {
    FxBuildHasher.hash_one((kind, name))
}

/// Hashes of the names of the objects that an intent wants, or had, each once. Hardly ever do two intents want the same.
pub(crate) struct WantedHashes;
impl Query for WantedHashes {
    type Key = ObjectRef;
    type Value = Arc<[u64]>;
    fn compute(view: &View<'_>, subject: &ObjectRef) -> Arc<[u64]> {
        let mut hashes = Vec::new();
        for_wanted_names(view, subject, |kind, name| hashes.push(hash(kind, name)));
        hashes.sort_unstable();
        hashes.dedup();
        hashes.into()
    }
}

/// The names of objects that several intents want, or had, each with who wants it: of the layer below alone, or of both, as an intent above may
/// want what one below has by an owner reference that a person wrote.
pub(crate) struct ContestedNames<const ABOVE: bool>;
impl<const ABOVE: bool> Query for ContestedNames<ABOVE>
where
    Self: Registered,
{
    type Key = ();
    type Value = Arc<BTreeMap<(Kind, String), BTreeSet<ObjectRef>>>;
    fn compute(view: &View<'_>, (): &()) -> Self::Value {
        let intents = intent::all(view);
        let is_of_layer = |one: &&ObjectRef| ABOVE || !is_above(one);
        let intents = || intents.iter().filter(is_of_layer);
        let mut seen: FxHashSet<u64> = FxHashSet::default();
        let mut twice: FxHashSet<u64> = FxHashSet::default();
        for intent in intents() {
            let hashes = view.get::<WantedHashes>(intent);
            let again = hashes.iter().filter(|hash| !seen.insert(**hash));
            twice.extend(again);
        }
        if twice.is_empty() {
            return Arc::default();
        }
        let mut wanted: BTreeMap<(Kind, String), BTreeSet<ObjectRef>> = BTreeMap::new();
        for intent in intents() {
            for_wanted_names(view, intent, |kind, name| {
                if twice.contains(&hash(kind, name)) {
                    let by = wanted.entry((kind, name.to_owned())).or_default();
                    by.insert(intent.clone());
                }
            });
        }
        wanted.retain(|_, by| by.len() > 1);
        Arc::new(wanted)
    }
}

/// The names of objects that intents want, or had, each with who wants it.
pub(crate) struct WantedNames;
impl Index for WantedNames {
    type Source = ObjectRef;
    type Key = (Kind, String);
    type Item = ObjectRef;
    fn sources(view: &View<'_>) -> Vec<ObjectRef> {
        intent::all(view).to_vec()
    }
    fn entries(view: &View<'_>, subject: &ObjectRef) -> Vec<((Kind, String), ObjectRef)> {
        let mut entries = Vec::new();
        for_wanted_names(view, subject, |kind, name| {
            entries.push(((kind, name.to_owned()), subject.clone()));
        });
        entries
    }
}

/// What stands for each intent.
pub(crate) struct Merged;
impl Query for Merged {
    type Key = ObjectRef;
    type Value = Arc<MergedIntent>;
    fn compute(view: &View<'_>, subject: &ObjectRef) -> Arc<MergedIntent> {
        let Some(meta) = view.stored_meta(subject) else {
            return Arc::default();
        };
        let outcome = view.get::<Lower>(subject);
        let mut merged = MergedIntent {
            service: held(view, subject),
            problems: outcome.problems.clone(),
            ..MergedIntent::default()
        };
        let lowered = outcome.lowered.as_ref();
        let lowered = lowered.filter(|_| !problems::waits(view, subject));
        if lowered.is_some_and(|lowered| merged.take_in(view, subject, &meta, lowered)) {
            return Arc::new(merged);
        }
        merged.is_held_back = true;
        merged.keep(view, subject, &meta);
        Arc::new(merged)
    }
}

impl MergedIntent {
    /// Adds the objects of an intent, if it has no conflict.
    fn take_in(
        &mut self,
        view: &View<'_>,
        subject: &ObjectRef,
        meta: &Meta,
        lowered: &LoweredIntent,
    ) -> bool {
        let runs = |object: &&LowLevelObject| keeps_name(view, meta, object);
        let written = lowered.objects.iter().filter(runs).map(|object| {
            let written = ObjectRef::named(object.kind(), object.name());
            let by = Box::new(subject.clone());
            Problem::new(
                written,
                "metadata.name",
                problem::Kind::NameGenerated { by },
            )
        });
        self.problems.extend(written);
        let mut objects = lowered.objects.iter();
        if let Some(object) = objects.find(|object| is_taken(view, subject, meta, object)) {
            let name = object.name().to_owned();
            let kind = problem::Kind::NameTaken { name };
            let problem = Problem::new(subject.clone(), "metadata.name", kind);
            self.problems.push(problem);
            return false;
        }
        if !self.may_have(view, subject, meta, &lowered.objects) {
            return false;
        }
        self.objects.clone_from(&lowered.objects);
        self.attachment.clone_from(&lowered.attachment);
        if lowered.service.is_some() {
            self.service.clone_from(&lowered.service);
        }
        true
    }

    /// Keeps what an intent became last, but for what came from Destinations that were taken away, and names that another has.
    fn keep(&mut self, view: &View<'_>, subject: &ObjectRef, meta: &Meta) {
        let mut kept: Vec<LowLevelObject> = last(view, subject)
            .iter()
            .filter_map(|stored| low_level::stored(view, stored, subject))
            .collect();
        if let Some(left) = Left::of(view, subject) {
            let objects = kept.into_iter();
            kept = objects
                .filter_map(|object| left.of_object(view, meta, object))
                .collect();
        }
        if self.may_have(view, subject, meta, &kept) {
            kept.retain(|object| !is_taken(view, subject, meta, object));
            self.objects = kept;
        }
    }

    /// Whether no hand-written object has a scope of these objects, or each such object loses the conflict.
    fn may_have(
        &mut self,
        view: &View<'_>,
        subject: &ObjectRef,
        meta: &Meta,
        objects: &[LowLevelObject],
    ) -> bool {
        if low_level::hand_written(view).is_empty() {
            return true;
        }
        let verdict = scope::contend(view, subject, meta, objects);
        self.problems.extend(verdict.problems);
        !verdict.waits
    }
}

/// Whether another has the name of an object: a person wrote one, or an intent that is served before has it.
fn is_taken(view: &View<'_>, subject: &ObjectRef, meta: &Meta, object: &LowLevelObject) -> bool {
    if is_written(view, object) && !keeps_name(view, meta, object) {
        return true;
    }
    let contested = if is_above(subject) {
        view.get::<ContestedNames<true>>(&())
    } else {
        view.get::<ContestedNames<false>>(&())
    };
    if contested.is_empty() {
        return false;
    }
    let name = (object.kind(), object.name().to_owned());
    let wanted = contested.get(&name).into_iter().flatten();
    let mut others = wanted.filter(|other| *other != subject);
    others.any(|other| {
        let Some(other_meta) = view.stored_meta(other) else {
            return false;
        };
        let is_below = is_above(subject) && !is_above(other);
        let is_before = || intent::order(other, &other_meta) < intent::order(subject, meta);
        let has = |object: &LowLevelObject| object.kind() == name.0 && object.name() == name.1;
        (is_below || is_before()) && view.get::<Merged>(other).objects.iter().any(has)
    })
}

/// Whether a person wrote an object with the name of one that an intent makes.
fn is_written(view: &View<'_>, object: &LowLevelObject) -> bool {
    low_level::are_any_hand_written(view) && {
        let stored = view.stored_meta(&ObjectRef::named(object.kind(), object.name()));
        stored.is_some_and(|stored| stored.owner.is_none())
    }
}

/// Whether an intent keeps the name of an object that a person wrote another one over: it runs what it makes. Of two that say the same the
/// older has the name.
fn keeps_name(view: &View<'_>, meta: &Meta, object: &LowLevelObject) -> bool {
    if !is_written(view, object) || !scope::runs(view, object) {
        return false;
    }
    let written = ObjectRef::named(object.kind(), object.name());
    let written = view.stored_meta(&written);
    let is_older = || written.is_some_and(|written| age(meta) < age(&written));
    !low_level::is_stored(view, object) || is_older()
}

/// Whether an intent is of the layer above, which may build on what those below become.
fn is_above(intent: &ObjectRef) -> bool {
    intent.kind.intent().is_some_and(IntentKind::is_above)
}

/// The object of a kind and a name that an intent has.
pub(crate) fn generated(view: &View<'_>, kind: Kind, name: &str) -> Option<LowLevelObject> {
    let key = (kind, name.to_owned());
    let wanted = view.who::<WantedNames>(&key);
    wanted.iter().find_map(|intent| {
        let merged = view.get::<Merged>(intent);
        let mut objects = merged.objects.iter();
        let has = |object: &&LowLevelObject| object.kind() == kind && object.name() == name;
        objects.find(has).cloned()
    })
}

/// What a service holds, whatever is wrong with it: its addresses, and its pools as they were last.
fn held(view: &View<'_>, subject: &ObjectRef) -> Option<Service> {
    if !subject.kind.is_service() {
        return None;
    }
    let pools = intent::held_pools(view, subject);
    Some(Service {
        addresses: addresses::share(view, subject).addresses.clone(),
        pools,
        ..Service::default()
    })
}

/// The hand-written objects that lose a conflict with intents, each with its problems.
pub(crate) struct YieldingToIntents;
impl Index for YieldingToIntents {
    type Source = ObjectRef;
    type Key = ObjectRef;
    type Item = Problem;
    fn sources(view: &View<'_>) -> Vec<ObjectRef> {
        intent::all(view).to_vec()
    }
    fn entries(view: &View<'_>, subject: &ObjectRef) -> Vec<(ObjectRef, Problem)> {
        let merged = view.get::<Merged>(subject);
        let of_others = merged.problems.iter();
        let of_others = of_others.filter(|problem| problem.subject != *subject);
        of_others
            .map(|problem| (problem.subject.clone(), problem.clone()))
            .collect()
    }
}

/// A hand-written object that is in effect: its selector is valid, and it loses no conflict with an intent.
pub(crate) struct InEffect;
impl Query for InEffect {
    type Key = ObjectRef;
    type Value = Option<Arc<LowLevelObject>>;
    fn compute(view: &View<'_>, subject: &ObjectRef) -> Self::Value {
        let object = view.get::<HandWritten>(subject)?;
        let yields = view.has::<YieldingToIntents>(subject);
        (!yields).then(|| Arc::new(object))
    }
}

/// A hand-written object that is in effect.
pub(crate) fn in_effect(view: &View<'_>, subject: &ObjectRef) -> Option<LowLevelObject> {
    let object = view.get::<InEffect>(subject)?;
    Some(LowLevelObject::clone(&object))
}
