//! Intents: what all of them have in common, and what lowering one gives.

use std::sync::Arc;

use api::{
    meta::LabelSelector,
    selvedge::Platform,
    tcaas::{Anycast, MatchedDestination},
    value::{IfName, VlanId},
};
use strum::IntoEnumIterator;

use super::{
    low_level::{self, LowLevelObject, LowLevelSpec},
    service::Service,
    timers,
};
use crate::{
    memo::{Query, Registered},
    platform::PlatformObject,
    problem::{self, Problem},
    snapshot::{IntentKind, Key, Meta, ObjectRef, Resource, kinds},
    view::View,
};

/// A kind of intent.
pub(super) trait Intent: Resource + Registered {
    /// The Network that it refers to.
    fn network(spec: &Self::Spec) -> Option<&str>;
    /// What it selects Destinations by.
    fn destinations(spec: &Self::Spec) -> Option<&LabelSelector>;
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
    /// The VLAN of SR-IOV devices.
    pub sriov_vlan: Option<VlanId>,
    /// The gateway.
    pub anycast: Option<Anycast>,
    /// The destinations that its selector chose.
    pub matched: Arc<Vec<MatchedDestination>>,
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

/// All intents, by kind.
pub(crate) struct AllIntents;
impl Query for AllIntents {
    type Key = ();
    type Value = Arc<Vec<ObjectRef>>;
    fn compute(view: &View<'_>, (): &()) -> Arc<Vec<ObjectRef>> {
        let kinds = IntentKind::iter();
        let intents = kinds.flat_map(|kind| with_intent!(kind, Of => view.all::<Of>()));
        Arc::new(intents.collect())
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
        <Of as Intent>::network(&spec).map(N::from)
    })
}

/// What an intent selects Destinations by.
pub(crate) fn destinations(view: &View<'_>, subject: &ObjectRef) -> Option<LabelSelector> {
    let kind = subject.kind.intent()?;
    with_intent!(kind, Of => {
        let spec = view.spec::<Of>(&subject.key)?;
        <Of as Intent>::destinations(&spec).cloned()
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

/// What an intent becomes if nobody is in its way.
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

fn has_fitting_timers(object: &LowLevelObject) -> bool {
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

/// A kind's place in the order of service, then the older, then by name.
pub(super) fn order<'a>(
    subject: &'a ObjectRef,
    meta: &'a Meta,
) -> (Option<IntentKind>, (bool, Option<&'a str>), &'a ObjectRef) {
    (subject.kind.intent(), crate::snapshot::age(meta), subject)
}
