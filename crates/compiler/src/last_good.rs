//! What objects last were: one that something is wrong with stays as the last revision has it.
//!
//! Intents have theirs in the objects that were generated from them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    openperouter::UnderlaySpec,
    selvedge::SettingsSpec,
    tcaas::{
        BgpPeeringSpec, Layer2NetworkConfigurationSpec, NetworkConfigRevisionSpec,
        VrfRouteConfigurationSpec,
    },
};
use serde::Deserialize as _;

use crate::{
    memo::{Memo, Query, Registered},
    snapshot::{Key, Kind, Object, ObjectRef, Resource, Snapshot, age, kinds},
    view::View,
};

/// The last revision that no node refused, with the places of its objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Last {
    spec: Arc<NetworkConfigRevisionSpec>,
    layer2: BTreeMap<String, usize>,
    vrf: BTreeMap<String, usize>,
    bgp: BTreeMap<String, usize>,
}

impl Last {
    fn new(spec: &Arc<NetworkConfigRevisionSpec>) -> Self {
        fn places<'a>(names: impl Iterator<Item = &'a String>) -> BTreeMap<String, usize> {
            let places = names.enumerate();
            places.map(|(place, name)| (name.clone(), place)).collect()
        }
        Self {
            layer2: places(spec.layer2.iter().map(|one| &one.name)),
            vrf: places(spec.vrf.iter().map(|one| &one.name)),
            bgp: places(spec.bgp.iter().map(|one| &one.name)),
            spec: Arc::clone(spec),
        }
    }
}

/// A kind of object whose last good state is in revisions.
pub(crate) trait InRevision: Resource + Registered {
    /// The object as a revision has it.
    fn last(last: &Last, key: &Key) -> Option<Self::Spec>;
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
        let mut underlays = last.spec.underlay.iter();
        let entry = underlays.find(|one| {
            *one.name == *key.name && one.namespace.as_deref() == key.namespace.as_deref()
        })?;
        UnderlaySpec::deserialize(&entry.spec).ok()
    }
}

impl InRevision for kinds::Settings {
    fn last(last: &Last, _: &Key) -> Option<SettingsSpec> {
        last.spec.settings.clone()
    }
}

/// Does something for a kind whose last good state is in revisions, as a type; nothing for any other.
macro_rules! with_kind_in_revision {
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
            Kind::Settings => {
                type $type = kinds::Settings;
                $do
            }
            Kind::Node
            | Kind::L3Vni
            | Kind::L2Vni
            | Kind::L3Passthrough
            | Kind::Vrf
            | Kind::Network
            | Kind::Destination
            | Kind::Layer2Attachment
            | Kind::Inbound
            | Kind::Outbound
            | Kind::BgpNeighbor
            | Kind::PodNetwork
            | Kind::Collector
            | Kind::TrafficMirror
            | Kind::MirrorTarget
            | Kind::MirrorSelector
            | Kind::NetworkConfigRevision
            | Kind::NodeNetworkConfig
            | Kind::NodeNetworkStatus
            | Kind::FrrConfiguration
            | Kind::FrrNodeState
            | Kind::BgpSessionState
            | Kind::MultiPodNetwork
            | Kind::IpAddressClaim
            | Kind::IpAddress => Default::default(),
        }
    };
}

/// Whether the last good state of a kind is in revisions.
pub(crate) fn is_in_revisions(kind: Kind) -> bool {
    struct Subject {
        kind: Kind,
    }
    with_kind_in_revision!(Subject { kind }, _Of => true)
}

/// The youngest revision that no node refused.
pub(crate) struct LastRevision;
impl Query for LastRevision {
    type Key = ();
    type Value = Option<Arc<Last>>;
    fn compute(view: &View<'_>, (): &()) -> Option<Arc<Last>> {
        let keys = view.keys::<kinds::NetworkConfigRevision>();
        let valid = keys.iter().filter(|key| {
            let status = view.status::<kinds::NetworkConfigRevision>(key);
            !status.is_some_and(|status| status.is_invalid)
        });
        let aged = valid.filter_map(|key| {
            let meta = view.meta::<kinds::NetworkConfigRevision>(key)?;
            Some((meta, key))
        });
        let (_, youngest) =
            aged.max_by(|(a, a_key), (b, b_key)| (age(a), a_key).cmp(&(age(b), b_key)))?;
        let spec = view.spec::<kinds::NetworkConfigRevision>(youngest)?;
        Some(Arc::new(Last::new(&spec)))
    }
}

/// Those of these objects that the last revision has otherwise.
pub(crate) fn otherwise(
    snapshot: &Snapshot,
    last: &Last,
    broken: &BTreeSet<ObjectRef>,
) -> BTreeSet<ObjectRef> {
    let is_other = |subject: &&ObjectRef| with_kind_in_revision!(subject, Of => as_it_was::<Of>(snapshot, last, subject).is_some());
    broken.iter().filter(is_other).cloned().collect()
}

/// Sets an object as the last revision has it.
pub(crate) fn set(memo: &mut Memo, snapshot: &Snapshot, last: &Last, subject: &ObjectRef) {
    with_kind_in_revision!(subject, Of => {
        let object = as_it_was::<Of>(snapshot, last, subject);
        memo.set::<Of>(&subject.key, object);
    });
}

/// An object as the last revision has it; nothing if it is the same now.
fn as_it_was<R: InRevision>(
    snapshot: &Snapshot,
    last: &Last,
    subject: &ObjectRef,
) -> Option<Object<R::Spec, R::Status>> {
    let before = R::last(last, &subject.key)?;
    match R::objects(snapshot).get(&subject.key) {
        Some(object) => (*object.spec != before).then(|| Object {
            spec: Arc::new(before),
            ..object.clone()
        }),
        None => Some(Object {
            meta: Arc::clone(snapshot.unread.get(subject)?),
            spec: Arc::new(before),
            status: None,
        }),
    }
}
