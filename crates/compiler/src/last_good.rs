//! What objects last were, for those that something is wrong with now.
//!
//! Low-level objects, Underlays and Settings are as the last revision has them; intents, what they refer to, and hand-written mirrors, which
//! are in no revision, as their status says. Where that is no longer well either, an intent keeps the objects that were generated from it. A
//! hand-written object that the last revision lacks is new: it is not in effect while something is wrong with it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    frrk8s::{FrrConfigurationSpec, FrrConfigurationStatus},
    openperouter::{L2VniSpec, L3PassthroughSpec, L3VniSpec, UnderlaySpec},
    selvedge::{Rollout, SettingsSpec},
    tcaas::{
        BgpPeeringSpec, Layer2NetworkConfigurationSpec, NetworkConfigRevisionSpec, RevisionEntry,
        VrfRouteConfigurationSpec,
    },
};
use serde::{Deserialize as _, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    host_router,
    memo::{Memo, Query, Registered},
    names,
    problem::{self, Problem},
    revision::parts::Whole,
    snapshot::{Key, Kind, Object, ObjectRef, Resource, Snapshot, age, kinds},
    view::{View, reference},
};

/// The last revision that no node refused, with the places of its objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Last {
    spec: Arc<NetworkConfigRevisionSpec>,
    layer2: BTreeMap<String, usize>,
    vrf: BTreeMap<String, usize>,
    bgp: BTreeMap<String, usize>,
    /// Those of kinds that live in namespaces, as `namespace/name`.
    underlay: BTreeMap<String, usize>,
    l3vni: BTreeMap<String, usize>,
    l2vni: BTreeMap<String, usize>,
    passthrough: BTreeMap<String, usize>,
}

impl Last {
    fn new(spec: &Arc<NetworkConfigRevisionSpec>) -> Self {
        fn places<'a>(names: impl Iterator<Item = &'a String>) -> BTreeMap<String, usize> {
            let places = names.enumerate();
            places.map(|(place, name)| (name.clone(), place)).collect()
        }
        let in_namespaces = |entries: &[RevisionEntry]| {
            let keys = entries.iter().map(|one| {
                let key = Key {
                    namespace: one.namespace.as_deref().map(Into::into),
                    name: one.name.as_str().into(),
                };
                key.to_string()
            });
            let places = keys.enumerate().map(|(place, key)| (key, place));
            places.collect::<BTreeMap<String, usize>>()
        };
        Self {
            underlay: in_namespaces(&spec.underlay),
            l3vni: in_namespaces(&spec.l3vni),
            l2vni: in_namespaces(&spec.l2vni),
            passthrough: in_namespaces(&spec.passthrough),
            layer2: places(spec.layer2.iter().map(|one| &one.name)),
            vrf: places(spec.vrf.iter().map(|one| &one.name)),
            bgp: places(spec.bgp.iter().map(|one| &one.name)),
            spec: Arc::clone(spec),
        }
    }
}

/// Where objects are as they last were.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sources<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) revision: Option<&'a Last>,
}

/// A kind of object whose last good spec is stored.
pub(crate) trait LastGood: Resource + Registered {
    /// Whether revisions have it. The last good spec of other kinds is in their status.
    const IN_REVISIONS: bool;
    /// The spec of an object as it was last in effect.
    fn last(sources: Sources<'_>, key: &Key) -> Option<Arc<Self::Spec>>;
}

/// A kind of object that revisions have.
pub(crate) trait InRevision: Resource + Registered {
    /// The object as a revision has it.
    fn last(last: &Last, key: &Key) -> Option<Self::Spec>;
    /// The same with what revisions leave out, which is as it is now.
    fn completed(last: Self::Spec, _now: Option<&Self::Spec>) -> Self::Spec {
        last
    }
}

/// A kind of object whose status has the spec in effect.
pub(crate) trait InStatus: Resource + Registered {
    /// The spec that was in effect when the status was written.
    fn in_effect(status: &Self::Status) -> Option<Arc<Self::Spec>>;
    /// The same with what statuses leave out, which is as it is now.
    fn completed(last: Arc<Self::Spec>, _now: &Self::Spec) -> Arc<Self::Spec> {
        last
    }
}

macro_rules! last_good {
    (in revisions: $($of_revision:ident),+; in statuses: $($of_status:ident),+; without passwords: $($without:ident),+) => {
        $(
            impl LastGood for kinds::$of_revision {
                const IN_REVISIONS: bool = true;
                fn last(sources: Sources<'_>, key: &Key) -> Option<Arc<Self::Spec>> {
                    let last = <Self as InRevision>::last(sources.revision?, key)?;
                    let now = Self::objects(sources.snapshot).get(key);
                    if now.is_some_and(|now| *now.spec != last && is_written_over(sources, now, key)) {
                        return None;
                    }
                    let now = now.map(|object| &*object.spec);
                    Some(Arc::new(Self::completed(last, now)))
                }
            }
        )+
        /// All objects that were last in effect with another spec, and hand-written ones that were deleted.
        pub(crate) fn edited(sources: Sources<'_>) -> BTreeSet<ObjectRef> {
            let mut edited = deleted(sources);
            $(edited_of::<kinds::$of_revision>(sources, &mut edited);)+
            $(edited_of::<kinds::$of_status>(sources, &mut edited);)+
            $(edited_of::<kinds::$without>(sources, &mut edited);)+
            edited
        }
        $(
            impl InStatus for kinds::$of_status {
                fn in_effect(status: &Self::Status) -> Option<Arc<Self::Spec>> {
                    status.in_effect.clone()
                }
            }
        )+
        last_good!(@in_status $($of_status),+, $($without),+);
    };
    (@in_status $($of_status:ident),+) => {
        $(
            impl LastGood for kinds::$of_status {
                const IN_REVISIONS: bool = false;
                fn last(sources: Sources<'_>, key: &Key) -> Option<Arc<Self::Spec>> {
                    let last = Self::in_effect(&*status::<Self>(sources.snapshot, key)?)?;
                    let now = Self::objects(sources.snapshot).get(key);
                    Some(match now {
                        Some(now) => Self::completed(last, &now.spec),
                        None => last,
                    })
                }
            }
        )+
    };
}

last_good! {
    in revisions: Layer2NetworkConfiguration, VrfRouteConfiguration, BgpPeering, Underlay, L3Vni, L2Vni, L3Passthrough, Settings;
    in statuses: Vrf, Network, Destination, Layer2Attachment, Inbound, Outbound, BgpNeighbor, PodNetwork, Collector, TrafficMirror,
        MirrorTarget, MirrorSelector;
    without passwords: FrrConfiguration
}

impl InStatus for kinds::FrrConfiguration {
    fn in_effect(status: &FrrConfigurationStatus) -> Option<Arc<FrrConfigurationSpec>> {
        status.in_effect.clone()
    }
    fn completed(
        last: Arc<FrrConfigurationSpec>,
        now: &FrrConfigurationSpec,
    ) -> Arc<FrrConfigurationSpec> {
        host_router::with_passwords(last, now)
    }
}

impl InRevision for kinds::Layer2NetworkConfiguration {
    fn last(last: &Last, key: &Key) -> Option<Layer2NetworkConfigurationSpec> {
        let place = last.layer2.get(&*key.name)?;
        last.spec.layer2.get(*place).map(|one| one.spec.clone())
    }
}

impl InRevision for kinds::VrfRouteConfiguration {
    fn last(last: &Last, key: &Key) -> Option<VrfRouteConfigurationSpec> {
        let place = last.vrf.get(&*key.name)?;
        last.spec.vrf.get(*place).map(|one| one.spec.clone())
    }
}

impl InRevision for kinds::BgpPeering {
    fn last(last: &Last, key: &Key) -> Option<BgpPeeringSpec> {
        let place = last.bgp.get(&*key.name)?;
        last.spec.bgp.get(*place).map(|one| one.spec.clone())
    }
}

impl InRevision for kinds::Underlay {
    fn last(last: &Last, key: &Key) -> Option<UnderlaySpec> {
        entry(&last.spec.underlay, &last.underlay, key)
    }
}

impl InRevision for kinds::L3Vni {
    fn last(last: &Last, key: &Key) -> Option<L3VniSpec> {
        entry(&last.spec.l3vni, &last.l3vni, key)
    }
}

impl InRevision for kinds::L2Vni {
    fn last(last: &Last, key: &Key) -> Option<L2VniSpec> {
        entry(&last.spec.l2vni, &last.l2vni, key)
    }
}

impl InRevision for kinds::L3Passthrough {
    fn last(last: &Last, key: &Key) -> Option<L3PassthroughSpec> {
        entry(&last.spec.passthrough, &last.passthrough, key)
    }
}

/// An object of a kind that lives in namespaces.
fn entry<S: DeserializeOwned>(
    entries: &[RevisionEntry],
    places: &BTreeMap<String, usize>,
    key: &Key,
) -> Option<S> {
    let entry = entries.get(*places.get(&key.to_string())?)?;
    S::deserialize(&entry.spec).ok()
}

impl InRevision for kinds::Settings {
    fn last(last: &Last, _: &Key) -> Option<SettingsSpec> {
        last.spec.settings.clone()
    }
    fn completed(last: SettingsSpec, now: Option<&SettingsSpec>) -> SettingsSpec {
        SettingsSpec {
            rollout: now.map_or_else(Rollout::default, |now| now.rollout.clone()),
            ..last
        }
    }
}

/// The status of an object, whether or not its spec can be read.
fn status<R: Resource>(snapshot: &Snapshot, key: &Key) -> Option<Arc<R::Status>> {
    if let Some(object) = R::objects(snapshot).get(key) {
        return object.status.clone();
    }
    let subject = reference(R::KIND, key);
    let partial = snapshot.unread.get(&subject)?;
    R::Status::deserialize(&*partial.status).ok().map(Arc::new)
}

/// Does something for a kind whose last good spec is stored, as a type; nothing for any other.
macro_rules! with_last_good {
    ($subject:expr, $type:ident => $do:expr) => {
        match $subject.kind {
            Kind::Layer2NetworkConfiguration => {
                type $type = kinds::Layer2NetworkConfiguration;
                $do
            }
            Kind::VrfRouteConfiguration => {
                type $type = kinds::VrfRouteConfiguration;
                $do
            }
            Kind::BgpPeering => {
                type $type = kinds::BgpPeering;
                $do
            }
            Kind::Underlay => {
                type $type = kinds::Underlay;
                $do
            }
            Kind::L3Vni => {
                type $type = kinds::L3Vni;
                $do
            }
            Kind::L2Vni => {
                type $type = kinds::L2Vni;
                $do
            }
            Kind::L3Passthrough => {
                type $type = kinds::L3Passthrough;
                $do
            }
            Kind::Settings => {
                type $type = kinds::Settings;
                $do
            }
            Kind::Vrf => {
                type $type = kinds::Vrf;
                $do
            }
            Kind::Network => {
                type $type = kinds::Network;
                $do
            }
            Kind::Destination => {
                type $type = kinds::Destination;
                $do
            }
            Kind::Layer2Attachment => {
                type $type = kinds::Layer2Attachment;
                $do
            }
            Kind::Inbound => {
                type $type = kinds::Inbound;
                $do
            }
            Kind::Outbound => {
                type $type = kinds::Outbound;
                $do
            }
            Kind::BgpNeighbor => {
                type $type = kinds::BgpNeighbor;
                $do
            }
            Kind::PodNetwork => {
                type $type = kinds::PodNetwork;
                $do
            }
            Kind::Collector => {
                type $type = kinds::Collector;
                $do
            }
            Kind::TrafficMirror => {
                type $type = kinds::TrafficMirror;
                $do
            }
            Kind::MirrorTarget => {
                type $type = kinds::MirrorTarget;
                $do
            }
            Kind::MirrorSelector => {
                type $type = kinds::MirrorSelector;
                $do
            }
            Kind::FrrConfiguration => {
                type $type = kinds::FrrConfiguration;
                $do
            }
            Kind::Node
            | Kind::NetworkConfigRevision
            | Kind::NetworkConfigRevisionPart
            | Kind::NodeNetworkConfig
            | Kind::NodeNetworkStatus
            | Kind::FrrNodeState
            | Kind::BgpSessionState
            | Kind::MultiPodNetwork
            | Kind::IpAddressClaim
            | Kind::IpAddress => Default::default(),
        }
    };
}

/// Whether the last good spec of a kind is stored.
pub(crate) fn is_stored(kind: Kind) -> bool {
    struct Subject {
        kind: Kind,
    }
    with_last_good!(Subject { kind }, _Of => true)
}

/// The last revision that no node refused.
pub(crate) struct LastRevision;
impl Query for LastRevision {
    type Key = ();
    type Value = Option<Arc<Last>>;
    fn compute(view: &View<'_>, (): &()) -> Option<Arc<Last>> {
        let keys = view.keys::<kinds::NetworkConfigRevision>();
        let valid = keys.iter().filter_map(|key| {
            let meta = view.meta::<kinds::NetworkConfigRevision>(key)?;
            let status = view.status::<kinds::NetworkConfigRevision>(key);
            let (is_invalid, sequence) =
                status.map_or((false, 0), |status| (status.is_invalid, status.sequence));
            (!is_invalid).then_some((sequence, meta, key))
        });
        let mut valid: Vec<_> = valid.collect();
        valid.sort_by(|(a_place, a, a_key), (b_place, b, b_key)| {
            (b_place, age(b), b_key).cmp(&(a_place, age(a), a_key))
        });
        // One whose parts are not all there says less than the one before.
        let spec = valid.iter().find_map(|(.., key)| view.get::<Whole>(key))?;
        Some(Arc::new(Last::new(&spec)))
    }
}

/// The settings as the last revision has them. How changes reach the nodes is in no revision.
pub(crate) fn settings(view: &View<'_>) -> Option<Arc<SettingsSpec>> {
    let last = view.get::<LastRevision>(&())?;
    let settings = <kinds::Settings as InRevision>::last(&last, &Key::named("default"))?;
    Some(Arc::new(kinds::Settings::completed(settings, None)))
}

/// Whether Settings that said something were deleted.
pub(crate) fn settings_deleted(view: &View<'_>) -> Option<Problem> {
    let subject = ObjectRef::named(Kind::Settings, "default");
    let is_gone = view.stored_meta(&subject).is_none();
    let said = settings(view).filter(|_| is_gone);
    let is_deleted = said.is_some_and(|said| *said != SettingsSpec::default());
    is_deleted.then(|| Problem::new(subject, "", problem::Kind::SettingsDeleted))
}

/// Whether a person has written an object over one that an intent generates: what the last revision has is the intent's.
fn is_written_over<S, T>(sources: Sources<'_>, now: &Object<S, T>, key: &Key) -> bool {
    let Snapshot { unread, .. } = sources.snapshot;
    let is_there = |intent: &ObjectRef| sources.snapshot.has(intent) || unread.contains_key(intent);
    now.meta.owner.is_none() && names::is_generated_by(&key.name, is_there)
}

/// Whether an object that was last in effect is not there any more.
pub(crate) fn is_deleted(sources: Sources<'_>, subject: &ObjectRef) -> bool {
    let Snapshot { unread, .. } = sources.snapshot;
    !sources.snapshot.has(subject) && !unread.contains_key(subject)
}

/// Hand-written low-level objects that the last revision has and that were deleted. Those that were generated went with their intent.
fn deleted(sources: Sources<'_>) -> BTreeSet<ObjectRef> {
    let Some(last) = sources.revision else {
        return BTreeSet::new();
    };
    let named = |kind: Kind, names: &BTreeMap<String, usize>| {
        let names = names.keys().filter(|name| !names::is_generated(name));
        let named: Vec<ObjectRef> = names.map(|name| ObjectRef::named(kind, name)).collect();
        named
    };
    let mut before = named(Kind::Layer2NetworkConfiguration, &last.layer2);
    before.extend(named(Kind::VrfRouteConfiguration, &last.vrf));
    before.extend(named(Kind::BgpPeering, &last.bgp));
    before.retain(|subject| is_deleted(sources, subject));
    before.into_iter().collect()
}

/// Adds the objects of a kind that authors wrote and that were last in effect with another spec.
fn edited_of<R: LastGood>(sources: Sources<'_>, edited: &mut BTreeSet<ObjectRef>) {
    let objects = R::objects(sources.snapshot).iter();
    let written = objects.filter(|(_, object)| object.meta.owner.is_none());
    let is_other = |(key, object): &(&Key, &Object<R::Spec, R::Status>)| {
        R::last(sources, key).is_some_and(|last| last != object.spec)
    };
    let keys = written.filter(is_other).map(|(key, _)| key);
    edited.extend(keys.map(|key| reference(R::KIND, key)));
}

/// Whether an object of a kind that revisions have was not in effect before: there is a last revision, which lacks it.
pub(crate) fn is_new(sources: Sources<'_>, subject: &ObjectRef) -> bool {
    sources.revision.is_some()
        && with_last_good!(subject, Of => {
            Of::IN_REVISIONS && <Of as LastGood>::last(sources, &subject.key).is_none()
        })
}

/// Whether an object was last in effect with the spec that it has.
pub(crate) fn is_as_it_was(sources: Sources<'_>, subject: &ObjectRef) -> bool {
    with_last_good!(subject, Of => {
        let object = <Of as Resource>::objects(sources.snapshot).get(&subject.key);
        let last = <Of as LastGood>::last(sources, &subject.key);
        object.is_some_and(|object| last.is_some_and(|last| last == object.spec))
    })
}

/// The field in which an object differs from what was last in effect; the narrowest that holds all differences.
pub(crate) fn edited_field(sources: Sources<'_>, subject: &ObjectRef) -> String {
    let mut field = "spec".to_owned();
    let (mut one, mut other) = with_last_good!(subject, Of => {
        let object = <Of as Resource>::objects(sources.snapshot).get(&subject.key);
        let last = <Of as LastGood>::last(sources, &subject.key);
        let now = object.and_then(|object| serde_json::to_value(&*object.spec).ok());
        let last = last.and_then(|last| serde_json::to_value(&*last).ok());
        (now.unwrap_or_default(), last.unwrap_or_default())
    });
    while let (Value::Object(mut fields), Value::Object(mut others)) = (one, other) {
        let names: BTreeSet<String> = fields.keys().chain(others.keys()).cloned().collect();
        let mut differing = names
            .into_iter()
            .filter(|name| fields.get(name) != others.get(name));
        let (Some(name), None) = (differing.next(), differing.next()) else {
            break;
        };
        field.extend([".", &name]);
        one = fields.remove(&name).unwrap_or_default();
        other = others.remove(&name).unwrap_or_default();
    }
    field
}

/// Those of these objects that were last in effect with another spec.
pub(crate) fn otherwise(sources: Sources<'_>, broken: &BTreeSet<ObjectRef>) -> BTreeSet<ObjectRef> {
    let is_other = |subject: &&ObjectRef| with_last_good!(subject, Of => as_it_was::<Of>(sources, subject).is_some());
    broken.iter().filter(is_other).cloned().collect()
}

/// Sets an object as it was last in effect.
pub(crate) fn set(memo: &mut Memo, sources: Sources<'_>, subject: &ObjectRef) {
    with_last_good!(subject, Of => {
        let object = as_it_was::<Of>(sources, subject);
        memo.set::<Of>(&subject.key, object);
    });
}

/// An object as it was last in effect; nothing if it is the same now.
fn as_it_was<R: LastGood>(
    sources: Sources<'_>,
    subject: &ObjectRef,
) -> Option<Object<R::Spec, R::Status>> {
    let spec = R::last(sources, &subject.key)?;
    match R::objects(sources.snapshot).get(&subject.key) {
        Some(object) => (object.spec != spec).then(|| Object {
            spec,
            ..object.clone()
        }),
        None => Some(Object {
            // Of one that was deleted nothing is known but its spec.
            meta: match sources.snapshot.unread.get(subject) {
                Some(partial) => Arc::clone(&partial.meta),
                None => Arc::default(),
            },
            spec,
            status: status::<R>(sources.snapshot, &subject.key),
        }),
    }
}
