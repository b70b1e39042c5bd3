//! Intents: what all of them have in common, and what lowering one gives.

use std::{collections::BTreeSet, sync::Arc};

use api::{
    meta::LabelSelector,
    selvedge::Platform,
    tcaas::{AddressLists, Anycast, ExtraRoute, MatchedDestination},
    value::{Community, IfName, Prefix, VlanId},
};
use strum::IntoEnumIterator;

use super::{
    low_level::{self, LowLevelObject, LowLevelSpec},
    reach,
    scope::Scope,
    service::Service,
    timers,
};
use crate::{
    allocate::share::Claim,
    last_good::InStatus,
    memo::{Query, Registered},
    platform::PlatformObject,
    problem::{self, Problem},
    snapshot::{IntentKind, Key, Kind, Meta, ObjectRef, Resource, Snapshot, kinds},
    view::{AllUnread, View, reference},
};

/// A kind of intent.
pub(super) trait Intent: Resource + Registered {
    /// The field that says how long its sessions are held.
    const HOLD_TIME: &'static str = "spec.holdTime";
    /// The field by which it has a VRF.
    const VRF_FIELD: &'static str;
    /// What it says.
    fn terms(spec: &Self::Spec) -> Terms<'_>;
    /// The field that puts it into a scope.
    fn scope_field(scope: &Scope) -> &'static str;
    /// Whether a node must have an object of it before it counts as applied there.
    fn is_needed(object: &LowLevelObject) -> bool;
    /// What it wants, and has, of the addresses of its Network.
    fn claim(view: &View<'_>, subject: &ObjectRef) -> Option<Claim>;
    /// Whether it can be served, regardless of free addresses, where it is a service: only then does it conflict with others.
    fn is_servable(_view: &View<'_>, _subject: &ObjectRef, _spec: &Self::Spec) -> bool {
        true
    }
    /// The Destinations that it used last.
    fn matched(_status: &Self::Status) -> Vec<MatchedDestination> {
        Vec::new()
    }
    /// The pools that it had last, where it is a service.
    fn held_pools(_view: &View<'_>, _key: &Key) -> Vec<String> {
        Vec::new()
    }
    /// What it is on the platform, where it is a service.
    fn on_platform(
        _settings: &Platform,
        _subject: &ObjectRef,
        _spec: &Self::Spec,
        _service: &Service,
    ) -> Vec<PlatformObject> {
        Vec::new()
    }
    /// What it becomes; `None` when something is wrong, with the reason in `problems`.
    fn lower(
        view: &View<'_>,
        author: &Author<'_>,
        spec: &Self::Spec,
        problems: &mut Vec<Problem>,
    ) -> Option<LoweredIntent>;
}

/// What an intent says in terms that all kinds share.
#[derive(Clone, Debug)]
pub struct Terms<'a> {
    /// The Network that it uses.
    pub network: Option<&'a str>,
    /// What it selects Destinations by.
    pub destinations: Option<&'a LabelSelector>,
    /// What it selects nodes by.
    pub nodes: Option<&'a LabelSelector>,
    /// Other objects that it names.
    pub others: Vec<ObjectRef>,
    /// Prefixes behind its workloads.
    pub routes: &'a [ExtraRoute],
    /// What is tagged onto its routes.
    pub communities: &'a [Community],
    /// The addresses that it asks for by name.
    pub addresses: Option<&'a AddressLists>,
}

impl Terms<'_> {
    /// Of an intent that only names other objects.
    pub(super) fn naming(others: impl IntoIterator<Item = ObjectRef>) -> Self {
        Self {
            network: None,
            destinations: None,
            nodes: None,
            others: others.into_iter().collect(),
            routes: &[],
            communities: &[],
            addresses: None,
        }
    }
}

/// The intent that objects are generated from.
pub(super) struct Author<'a> {
    pub(super) subject: &'a ObjectRef,
    pub(super) meta: &'a Meta,
}

impl Author<'_> {
    /// An object that the intent becomes.
    pub(super) fn object<S: LowLevelSpec>(&self, name: String, spec: S) -> LowLevelObject {
        low_level::generated(self.subject, self.meta, name, spec)
    }

    /// The same for several of one kind.
    pub(super) fn objects<S: LowLevelSpec>(
        &self,
        objects: impl IntoIterator<Item = (String, S)>,
    ) -> Vec<LowLevelObject> {
        let objects = objects.into_iter();
        objects
            .map(|(name, spec)| self.object(name, spec))
            .collect()
    }

    /// A problem of the intent.
    pub(super) fn problem(&self, field: impl Into<String>, kind: problem::Kind) -> Problem {
        Problem::new(self.subject.clone(), field, kind)
    }
}

/// What an intent becomes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoweredIntent {
    /// Low-level objects.
    pub objects: Vec<LowLevelObject>,
    /// What an attachment comes to, for its status.
    pub attachment: Option<Attachment>,
    /// What a service comes to, for the platform and for its status.
    pub service: Option<Service>,
}

/// What an attachment comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attachment {
    /// The interface on the nodes.
    pub interface: Option<IfName>,
    /// The SR-IOV devices that pods get.
    pub sriov: Option<SriovDevices>,
    /// The gateway.
    pub anycast: Option<Anycast>,
    /// The destinations that its selector chose.
    pub matched: Arc<Vec<MatchedDestination>>,
}

/// The SR-IOV devices of an attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SriovDevices {
    /// The VLAN that they carry.
    pub vlan: VlanId,
    /// The device that their virtual functions belong to, if the attachment names one.
    pub interface_ref: Option<IfName>,
    /// The nodes that they are on, if the attachment selects nodes.
    pub node_selector: Option<LabelSelector>,
}

/// What lowering an intent gives, before it is merged with others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// What it would become.
    pub(crate) lowered: Option<Arc<LoweredIntent>>,
    /// What is wrong with it, or worth knowing.
    pub(crate) problems: Vec<Problem>,
}

/// Does something for an intent of a kind, as a type.
macro_rules! with_intent {
    ($kind:expr, $type:ident => $do:expr) => {
        match $kind {
            IntentKind::Layer2Attachment => {
                type $type = kinds::Layer2Attachment;
                $do
            }
            IntentKind::Inbound => {
                type $type = kinds::Inbound;
                $do
            }
            IntentKind::Outbound => {
                type $type = kinds::Outbound;
                $do
            }
            IntentKind::PodNetwork => {
                type $type = kinds::PodNetwork;
                $do
            }
            IntentKind::BgpNeighbor => {
                type $type = kinds::BgpNeighbor;
                $do
            }
            IntentKind::Collector => {
                type $type = kinds::Collector;
                $do
            }
            IntentKind::TrafficMirror => {
                type $type = kinds::TrafficMirror;
                $do
            }
        }
    };
}

/// All intents, by kind, whether or not they can be read.
pub(crate) struct AllIntents;
impl Query for AllIntents {
    type Key = ();
    type Value = Arc<Vec<ObjectRef>>;
    fn compute(view: &View<'_>, (): &()) -> Arc<Vec<ObjectRef>> {
        let kinds = IntentKind::iter();
        let intents = kinds.flat_map(|kind| with_intent!(kind, Of => view.all::<Of>()));
        // One that cannot be read keeps what it became last.
        let unread = view.get::<AllUnread>(&());
        let unread = unread.iter().filter(|one| one.kind.intent().is_some());
        Arc::new(intents.chain(unread.cloned()).collect())
    }
}

/// All intents, by kind.
pub(crate) fn all(view: &View<'_>) -> Arc<Vec<ObjectRef>> {
    view.get::<AllIntents>(&())
}

/// The Network that an intent refers to.
pub(crate) fn network<N>(view: &View<'_>, subject: &ObjectRef) -> Option<N>
where
    N: for<'a> From<&'a str>,
{
    let kind = subject.kind.intent()?;
    with_intent!(kind, Of => {
        let spec = view.spec::<Of>(&subject.key)?;
        <Of as Intent>::terms(&spec).network.map(N::from)
    })
}

/// What an intent selects Destinations by.
pub(crate) fn destinations(view: &View<'_>, subject: &ObjectRef) -> Option<LabelSelector> {
    let kind = subject.kind.intent()?;
    with_intent!(kind, Of => {
        let spec = view.spec::<Of>(&subject.key)?;
        <Of as Intent>::terms(&spec).destinations.cloned()
    })
}

/// The Destinations that an intent used last, as its status names them.
pub(crate) fn matched(view: &View<'_>, subject: &ObjectRef) -> Vec<MatchedDestination> {
    let Some(kind) = subject.kind.intent() else {
        return Vec::new();
    };
    with_intent!(kind, Of => {
        let status = view.status::<Of>(&subject.key);
        status.map(|status| <Of as Intent>::matched(&status)).unwrap_or_default()
    })
}

/// What an intent that was well selected Destinations by, and the prefixes behind its workloads.
pub(super) fn last_selection(
    view: &View<'_>,
    subject: &ObjectRef,
) -> Option<(LabelSelector, Vec<Prefix>)> {
    let kind = subject.kind.intent()?;
    with_intent!(kind, Of => {
        let status = view.status::<Of>(&subject.key)?;
        let spec = <Of as InStatus>::in_effect(&status)?;
        let terms = <Of as Intent>::terms(&spec);
        let routes = terms.routes.iter().flat_map(|route| route.prefixes.clone());
        Some((terms.destinations?.clone(), routes.collect()))
    })
}

/// The Destinations that an intent used last and still selects.
pub(crate) fn still_matched(view: &View<'_>, subject: &ObjectRef) -> Vec<MatchedDestination> {
    let mut matched = matched(view, subject);
    let Some((selector, _)) = last_selection(view, subject).filter(|_| !matched.is_empty()) else {
        return matched;
    };
    let chosen = view.destinations(&selector);
    let unread = reach::unread(view, &selector);
    let all = chosen.iter().chain(unread.iter().map(|one| &one.key));
    let all: BTreeSet<&str> = all.map(|key| &*key.name).collect();
    matched.retain(|one| all.contains(&*one.name));
    matched
}

/// The routes behind an intent's workloads.
pub(crate) fn routes(view: &View<'_>, subject: &ObjectRef) -> Vec<ExtraRoute> {
    let Some(kind) = subject.kind.intent() else {
        return Vec::new();
    };
    with_intent!(kind, Of => {
        let spec = view.spec::<Of>(&subject.key);
        spec.map(|spec| <Of as Intent>::terms(&spec).routes.to_vec()).unwrap_or_default()
    })
}

/// What an intent selects nodes by.
pub(crate) fn nodes(view: &View<'_>, subject: &ObjectRef) -> Option<LabelSelector> {
    let kind = subject.kind.intent()?;
    with_intent!(kind, Of => {
        let spec = view.spec::<Of>(&subject.key)?;
        <Of as Intent>::terms(&spec).nodes.cloned()
    })
}

/// What an intent says.
pub fn terms<'a>(snapshot: &'a Snapshot, subject: &ObjectRef) -> Option<Terms<'a>> {
    let kind = subject.kind.intent()?;
    with_intent!(kind, Of => {
        let object = Of::objects(snapshot).get(&subject.key)?;
        Some(<Of as Intent>::terms(&object.spec))
    })
}

/// All intents, by kind.
pub fn all_in(snapshot: &Snapshot) -> Vec<ObjectRef> {
    let keys = |kind| {
        with_intent!(kind, Of => {
            let keys = Of::objects(snapshot).keys();
            keys.map(|key| reference(Of::KIND, key)).collect::<Vec<_>>()
        })
    };
    IntentKind::iter().flat_map(keys).collect()
}

/// The field that puts an intent into a scope.
pub(super) fn scope_field(kind: IntentKind, scope: &Scope) -> &'static str {
    with_intent!(kind, Of => <Of as Intent>::scope_field(scope))
}

/// The field by which an intent has a VRF.
pub(crate) fn vrf_field(kind: IntentKind) -> &'static str {
    with_intent!(kind, Of => <Of as Intent>::VRF_FIELD)
}

/// What an intent wants, and has, of the addresses of its Network.
pub(super) fn claim(view: &View<'_>, kind: IntentKind, subject: &ObjectRef) -> Option<Claim> {
    with_intent!(kind, Of => <Of as Intent>::claim(view, subject))
}

/// The field of an intent that says how long sessions are held.
pub(super) fn hold_time_field(kind: IntentKind) -> &'static str {
    with_intent!(kind, Of => <Of as Intent>::HOLD_TIME)
}

/// Whether a node must have an object of an intent before the intent counts as applied there.
pub(crate) fn is_needed(kind: Kind, object: &LowLevelObject) -> bool {
    let kind = kind.intent();
    kind.is_some_and(|kind| with_intent!(kind, Of => <Of as Intent>::is_needed(object)))
}

/// Whether an intent can be served, whatever addresses are left.
pub(super) fn is_servable(view: &View<'_>, subject: &ObjectRef) -> bool {
    let Some(kind) = subject.kind.intent() else {
        return true;
    };
    with_intent!(kind, Of => {
        let spec = view.spec::<Of>(&subject.key);
        spec.is_some_and(|spec| <Of as Intent>::is_servable(view, subject, &spec))
    })
}

/// The pools that a service had last.
pub(super) fn held_pools(view: &View<'_>, subject: &ObjectRef) -> Vec<String> {
    let pools = subject
        .kind
        .intent()
        .map(|kind| with_intent!(kind, Of => <Of as Intent>::held_pools(view, &subject.key)));
    pools.unwrap_or_default()
}

/// What a service is on the platform.
pub(crate) fn on_platform(
    view: &View<'_>,
    settings: &Platform,
    subject: &ObjectRef,
    service: &Service,
) -> Vec<PlatformObject> {
    let Some(kind) = subject.kind.intent() else {
        return Vec::new();
    };
    with_intent!(kind, Of => {
        let spec = view.spec::<Of>(&subject.key);
        let objects = spec.map(|spec| <Of as Intent>::on_platform(settings, subject, &spec, service));
        objects.unwrap_or_default()
    })
}

/// The objects of an intent without conflicts.
pub(crate) struct Lower;
impl Query for Lower {
    type Key = ObjectRef;
    type Value = Arc<Outcome>;
    fn compute(view: &View<'_>, subject: &ObjectRef) -> Arc<Outcome> {
        let mut problems = Vec::new();
        let lowered = lower(view, subject, &mut problems);
        let lowered = lowered.filter(|lowered| {
            let fit = lowered.objects.iter().all(has_fitting_timers);
            if !fit {
                let field = timers::field(subject.kind);
                let kind = problem::Kind::TimersDoNotFit;
                problems.push(Problem::new(subject.clone(), field, kind));
            }
            fit
        });
        let lowered = lowered.map(Arc::new);
        Arc::new(Outcome { lowered, problems })
    }
}

pub(super) fn has_fitting_timers(object: &LowLevelObject) -> bool {
    match object {
        LowLevelObject::Bgp(object) => timers::fit(&object.spec),
        LowLevelObject::Layer2(_)
        | LowLevelObject::Vrf(_)
        | LowLevelObject::MirrorTarget(_)
        | LowLevelObject::MirrorSelector(_) => true,
    }
}

fn lower(
    view: &View<'_>,
    subject: &ObjectRef,
    problems: &mut Vec<Problem>,
) -> Option<LoweredIntent> {
    let kind = subject.kind.intent()?;
    with_intent!(kind, Of => {
        let (meta, spec) = (view.meta::<Of>(&subject.key)?, view.spec::<Of>(&subject.key)?);
        let author = Author { subject, meta: &meta };
        <Of as Intent>::lower(view, &author, &spec, problems)
    })
}

/// An intent's place in the order of service.
pub(crate) fn rank(
    view: &View<'_>,
    subject: &ObjectRef,
) -> (Option<IntentKind>, (bool, Option<String>), ObjectRef) {
    let meta = view.stored_meta(subject);
    let created = meta.and_then(|meta| meta.created.clone());
    let age = (created.is_none(), created);
    (subject.kind.intent(), age, subject.clone())
}

/// A kind's place in the order of service, then the older, then by name.
pub(super) fn order<'a>(
    subject: &'a ObjectRef,
    meta: &'a Meta,
) -> (Option<IntentKind>, (bool, Option<&'a str>), &'a ObjectRef) {
    (subject.kind.intent(), crate::snapshot::age(meta), subject)
}
