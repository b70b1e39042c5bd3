//! Loopbacks of VRFs whose addresses come from pools.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    meta::TypedObjectReference,
    tcaas::{MirrorTargetSpec, VrfRouteConfigurationSpec},
    value::IfName,
};

use super::{by_age, objects};
use crate::{
    lower::LowLevel,
    names,
    node::{Facet, Facets},
    problem::{self, Problem},
    snapshot::{Kind, ObjectRef, kinds},
    view::{View, reference},
};

/// A loopback of a VRF, as the objects of the VRF have it.
pub(super) struct Loopback {
    pub(super) pool: TypedObjectReference,
    /// The oldest object that has it.
    first: ObjectRef,
    /// The names of all that have it.
    pub(super) objects: BTreeSet<String>,
}

/// Loopbacks by VRF and name.
pub(super) type Loopbacks = BTreeMap<(String, IfName), Loopback>;

/// The loopbacks of all VRFs. A name is one device on a node: of two VRFs that want it, the older object's gets it.
pub(super) fn loopbacks(view: &View<'_>, problems: &mut Vec<Problem>) -> Loopbacks {
    let mut loopbacks = Loopbacks::new();
    note_unused(view, problems);
    let mut homes: BTreeMap<IfName, (String, ObjectRef)> = BTreeMap::new();
    for object in by_age::<VrfRouteConfigurationSpec>(view, &Facet::Loopbacks) {
        for (place, loopback) in object.spec.loopbacks.iter().enumerate() {
            let vrf = object.spec.vrf.to_string();
            let device = &loopback.name;
            let home = homes.entry(device.clone());
            let (home, holder) = home.or_insert_with(|| (vrf.clone(), object.source.clone()));
            let entry = loopbacks.entry((vrf.clone(), device.clone()));
            let entry = entry.or_insert_with(|| Loopback {
                pool: loopback.pool_ref.clone(),
                first: object.source.clone(),
                objects: BTreeSet::new(),
            });
            let is_vrf = || view.has::<Facets>(&Facet::Vrf(device.to_string()));
            let wrong = if names::is_reserved_device(device) || is_vrf() {
                let loopback = device.to_string();
                Some(("name", problem::Kind::LoopbackNameReserved { loopback }))
            } else if *home != vrf {
                let (name, by) = (device.to_string(), holder.clone());
                let node = None;
                Some(("name", problem::Kind::DeviceNameTaken { name, by, node }))
            } else if loopback.pool_ref.api_group.is_none() {
                let (kind, name) = (
                    loopback.pool_ref.kind.clone(),
                    loopback.pool_ref.name.clone(),
                );
                Some(("poolRef", problem::Kind::NoPool { kind, name }))
            } else if entry.pool != loopback.pool_ref {
                let (loopback, other) = (device.to_string(), entry.first.clone());
                let kind = problem::Kind::LoopbackDisagrees { loopback, other };
                Some(("poolRef", kind))
            } else {
                entry.objects.insert(object.name.clone());
                None
            };
            let field = |part| loopback_field(&object, place, part);
            let source = &object.source;
            problems
                .extend(wrong.map(|(part, kind)| Problem::new(source.clone(), field(part), kind)));
        }
    }
    loopbacks.retain(|_, loopback| !loopback.objects.is_empty());
    loopbacks
}

fn loopback_field(
    object: &LowLevel<VrfRouteConfigurationSpec>,
    place: usize,
    part: &str,
) -> String {
    if object.is_generated() {
        "spec.mirrorVRF.name".to_owned()
    } else {
        format!("spec.loopbacks[{place}].{part}")
    }
}

/// A loopback is made where a tunnel starts on it. Of one that no tunnel ever starts on nothing is made, and its author is told so.
fn note_unused(view: &View<'_>, problems: &mut Vec<Problem>) {
    let targets = objects::<MirrorTargetSpec>(view, &Facet::MirrorTargets);
    let used = targets.iter().map(|object| {
        let MirrorTargetSpec {
            destination_vrf,
            source_loopback,
            ..
        } = &object.spec;
        (destination_vrf.as_str(), source_loopback)
    });
    let used: BTreeSet<(&str, &IfName)> = used.collect();
    let routing = objects::<VrfRouteConfigurationSpec>(view, &Facet::Loopbacks);
    for object in routing.iter().filter(|object| !object.is_generated()) {
        for (place, loopback) in object.spec.loopbacks.iter().enumerate() {
            if !used.contains(&(object.spec.vrf.as_str(), &loopback.name)) {
                let what = format!("no MirrorTarget uses {}, so no node gets it", loopback.name);
                let field = format!("spec.loopbacks[{place}]");
                let kind = problem::Kind::NoEffect { what };
                problems.push(Problem::new(object.source.clone(), field, kind));
            }
        }
    }
    let collectors = view.keys::<kinds::Collector>();
    let collectors = collectors
        .iter()
        .filter_map(|key| view.spec::<kinds::Collector>(key));
    let mirror_vrfs: BTreeSet<String> = collectors.map(|one| one.mirror_vrf.name.clone()).collect();
    for key in view.keys::<kinds::Vrf>().iter() {
        let spec = view.spec::<kinds::Vrf>(key);
        let has_loopbacks = spec.is_some_and(|spec| !spec.loopbacks.is_empty());
        if has_loopbacks && !mirror_vrfs.contains(&*key.name) {
            let what = "no Collector uses them, so no node gets them".to_owned();
            let kind = problem::Kind::NoEffect { what };
            let subject = reference(Kind::Vrf, key);
            problems.push(Problem::new(subject, "spec.loopbacks", kind));
        }
    }
}
