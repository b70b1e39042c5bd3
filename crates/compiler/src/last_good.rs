//! What hand-written low-level objects last contributed: an object that something is wrong with stays as the last revision has it.
//!
//! Intents have theirs in the objects that were generated from them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::tcaas::{
    BgpPeeringSpec, BgpPeeringStatus, Layer2NetworkConfigurationSpec,
    Layer2NetworkConfigurationStatus, NetworkConfigRevisionSpec, VrfRouteConfigurationSpec,
    VrfRouteConfigurationStatus,
};

use crate::{
    memo::Query,
    problem::{self, Problem},
    snapshot::{Kind, Object, ObjectRef, Objects, Snapshot, age, kinds},
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

    /// A segment of it.
    pub(crate) fn layer2(&self, name: &str) -> Option<&Layer2NetworkConfigurationSpec> {
        let place = self.layer2.get(name)?;
        self.spec.layer2.get(*place).map(|one| &one.spec)
    }

    /// Routing of it.
    pub(crate) fn vrf(&self, name: &str) -> Option<&VrfRouteConfigurationSpec> {
        let place = self.vrf.get(name)?;
        self.spec.vrf.get(*place).map(|one| &one.spec)
    }

    /// Sessions of it.
    pub(crate) fn bgp(&self, name: &str) -> Option<&BgpPeeringSpec> {
        let place = self.bgp.get(name)?;
        self.spec.bgp.get(*place).map(|one| &one.spec)
    }
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

/// Hand-written objects that are not in effect at all, or not on some nodes, by a mistake of their author.
pub(crate) fn out_of_effect(problems: &[Problem]) -> BTreeSet<ObjectRef> {
    let mistakes = problems.iter().filter(|problem| {
        let is_in_revisions = matches!(
            problem.subject.kind,
            Kind::Layer2NetworkConfiguration | Kind::VrfRouteConfiguration | Kind::BgpPeering
        );
        is_in_revisions
            && matches!(
                problem.kind,
                problem::Kind::Unreadable { .. }
                    | problem::Kind::RuleBroken { .. }
                    | problem::Kind::InvalidSelector(_)
                    | problem::Kind::LineTwice { .. }
                    | problem::Kind::SeqTwice { .. }
                    | problem::Kind::MissingReference { .. }
                    | problem::Kind::TimersDoNotFit
                    | problem::Kind::LowLevelConflict { .. }
                    | problem::Kind::VlanTaken { .. }
                    | problem::Kind::VniTaken { .. }
                    | problem::Kind::DeviceNameTaken { .. }
                    | problem::Kind::NetworksOverlap { .. }
                    | problem::Kind::NameTooLong { .. }
                    | problem::Kind::MtuTooSmall { .. }
                    | problem::Kind::VrfNameTaken { .. }
                    | problem::Kind::VrfIncomplete { .. }
                    | problem::Kind::VrfDisagrees { .. }
                    | problem::Kind::PeerTaken { .. }
            )
    });
    mistakes.map(|problem| problem.subject.clone()).collect()
}

/// The hand-written objects that the last revision has otherwise, as it has them; of those that something is wrong with.
pub(crate) fn before(
    snapshot: &Snapshot,
    last: &Last,
    broken: &BTreeSet<ObjectRef>,
) -> BTreeMap<ObjectRef, Restored> {
    let mut restored = BTreeMap::new();
    for subject in broken {
        let name = &subject.key.name;
        let object = if subject.kind == Kind::Layer2NetworkConfiguration {
            let objects = &snapshot.layer2_network_configurations;
            put_back(snapshot, subject, objects, last.layer2(name)).map(Restored::Layer2)
        } else if subject.kind == Kind::VrfRouteConfiguration {
            let objects = &snapshot.vrf_route_configurations;
            put_back(snapshot, subject, objects, last.vrf(name)).map(Restored::Vrf)
        } else if subject.kind == Kind::BgpPeering {
            put_back(snapshot, subject, &snapshot.bgp_peerings, last.bgp(name)).map(Restored::Bgp)
        } else {
            None
        };
        restored.extend(object.map(|object| (subject.clone(), object)));
    }
    restored
}

/// An object as the last revision has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Restored {
    Layer2(Object<Layer2NetworkConfigurationSpec, Layer2NetworkConfigurationStatus>),
    Vrf(Object<VrfRouteConfigurationSpec, VrfRouteConfigurationStatus>),
    Bgp(Object<BgpPeeringSpec, BgpPeeringStatus>),
}

fn put_back<S: Clone + PartialEq, T>(
    snapshot: &Snapshot,
    subject: &ObjectRef,
    objects: &Objects<S, T>,
    before: Option<&S>,
) -> Option<Object<S, T>> {
    let before = before?;
    let Some(object) = objects.get(&subject.key) else {
        return Some(Object {
            meta: Arc::clone(snapshot.unread.get(subject)?),
            spec: Arc::new(before.clone()),
            status: None,
        });
    };
    (*object.spec != *before).then(|| Object {
        spec: Arc::new(before.clone()),
        ..object.clone()
    })
}
