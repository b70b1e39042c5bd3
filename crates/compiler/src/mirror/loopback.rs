//! Loopbacks of VRFs whose addresses come from pools.

use std::collections::{BTreeMap, BTreeSet};

use api::{meta::TypedObjectReference, tcaas::VrfRouteConfigurationSpec, value::IfName};

use super::by_age;
use crate::{
    lower::{LowLevel, Lowered},
    names,
    problem::{self, Problem},
    snapshot::{Kind, ObjectRef, Snapshot},
};

/// A loopback of a VRF, as the objects of the VRF have it.
pub(super) struct Loopback<'a> {
    pub(super) pool: &'a TypedObjectReference,
    /// The oldest object that has it.
    first: &'a ObjectRef,
    /// The names of all that have it.
    pub(super) objects: BTreeSet<&'a str>,
}

pub(super) type Loopbacks<'a> = BTreeMap<(&'a str, &'a IfName), Loopback<'a>>;

/// The loopbacks of all VRFs. A name is one device on a node: of two VRFs that want it, the older object's gets it.
pub(super) fn loopbacks<'a>(
    snapshot: &Snapshot,
    lowered: &'a Lowered,
    problems: &mut Vec<Problem>,
) -> Loopbacks<'a> {
    let mut loopbacks = Loopbacks::new();
    note_unused(snapshot, lowered, problems);
    let mut routing = lowered.vrf.values();
    if routing.all(|object| object.spec.loopbacks.is_empty()) {
        return loopbacks;
    }
    let vrfs: BTreeSet<&str> = lowered
        .vrf
        .values()
        .map(|object| object.spec.vrf.as_str())
        .collect();
    let mut homes: BTreeMap<&IfName, (&str, &ObjectRef)> = BTreeMap::new();
    for (name, object) in by_age(&lowered.vrf) {
        for (place, loopback) in object.spec.loopbacks.iter().enumerate() {
            let vrf = object.spec.vrf.as_str();
            let device = &loopback.name;
            let (home, holder) = *homes.entry(device).or_insert((vrf, &object.source));
            let entry = loopbacks.entry((vrf, device)).or_insert_with(|| Loopback {
                pool: &loopback.pool_ref,
                first: &object.source,
                objects: BTreeSet::new(),
            });
            let wrong = if names::is_reserved_device(device) || vrfs.contains(device.as_str()) {
                let loopback = device.to_string();
                Some(("name", problem::Kind::LoopbackNameReserved { loopback }))
            } else if home != vrf {
                let (name, by) = (device.to_string(), holder.clone());
                let node = None;
                Some(("name", problem::Kind::DeviceNameTaken { name, by, node }))
            } else if loopback.pool_ref.api_group.is_none() {
                let (kind, name) = (
                    loopback.pool_ref.kind.clone(),
                    loopback.pool_ref.name.clone(),
                );
                Some(("poolRef", problem::Kind::NoPool { kind, name }))
            } else if *entry.pool != loopback.pool_ref {
                let (loopback, other) = (device.to_string(), entry.first.clone());
                let kind = problem::Kind::LoopbackDisagrees { loopback, other };
                Some(("poolRef", kind))
            } else {
                entry.objects.insert(name);
                None
            };
            let field = |part| loopback_field(object, place, part);
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
fn note_unused(snapshot: &Snapshot, lowered: &Lowered, problems: &mut Vec<Problem>) {
    let used: BTreeSet<(&str, &IfName)> = lowered
        .mirror_targets
        .values()
        .map(|object| {
            (
                object.spec.destination_vrf.as_str(),
                &object.spec.source_loopback,
            )
        })
        .collect();
    for object in lowered.vrf.values().filter(|object| !object.is_generated()) {
        for (place, loopback) in object.spec.loopbacks.iter().enumerate() {
            if !used.contains(&(object.spec.vrf.as_str(), &loopback.name)) {
                let what = format!("no MirrorTarget uses {}, so no node gets it", loopback.name);
                let field = format!("spec.loopbacks[{place}]");
                let kind = problem::Kind::NoEffect { what };
                problems.push(Problem::new(object.source.clone(), field, kind));
            }
        }
    }
    let collectors = snapshot.collectors.values();
    let mirror_vrfs: BTreeSet<&String> = collectors.map(|one| &one.spec.mirror_vrf.name).collect();
    for (key, object) in &snapshot.vrfs {
        if !object.spec.loopbacks.is_empty() && !mirror_vrfs.contains(&key.name) {
            let subject = ObjectRef {
                kind: Kind::Vrf,
                key: key.clone(),
            };
            let what = "no Collector uses them, so no node gets them".to_owned();
            let kind = problem::Kind::NoEffect { what };
            problems.push(Problem::new(subject, "spec.loopbacks", kind));
        }
    }
}
