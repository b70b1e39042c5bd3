//! Mirrors: which traffic of which segments and VRFs is copied into which tunnels.
//!
//! They change no forwarding and are part of no revision: what a node has of them is put into its config when that is made.

mod loopback;
mod place;

use std::collections::BTreeMap;

use api::{
    meta::TypedObjectReference,
    selvedge::SettingsSpec,
    tcaas::{GROUP, GreProtocol, MirrorSelectorSpec, MirrorTargetSpec},
    value::IfName,
};

use self::loopback::{Loopback, Loopbacks, loopbacks};
pub(crate) use self::place::without;
pub use self::place::{NodeMirrors, Place, Rule};
use crate::{
    NodeConfig,
    lower::{LowLevel, LowLevelObjects, Lowered, check_traffic},
    names,
    problem::{self, Problem},
    snapshot::{Kind, ObjectRef, Snapshot, age},
};

/// What mirrors come to, before anybody asks on which nodes.
struct Mirrors<'a> {
    settings: &'a SettingsSpec,
    /// Targets with which nothing is wrong, by name.
    tunnels: BTreeMap<&'a str, Tunnel<'a>>,
    /// Selectors with which nothing is wrong, by the segment's object whose traffic they copy.
    of_segments: BTreeMap<&'a str, Vec<Mirror<'a>>>,
    /// The same, by routing.
    of_routing: BTreeMap<&'a str, Vec<Mirror<'a>>>,
}

/// A tunnel, wherever it is needed.
struct Tunnel<'a> {
    object: &'a LowLevel<MirrorTargetSpec>,
    device: IfName,
    loopback: &'a Loopback<'a>,
}

/// A selector.
struct Mirror<'a> {
    name: &'a str,
    object: &'a LowLevel<MirrorSelectorSpec>,
    target: &'a str,
    place: Place,
}

/// Gives every node the mirrors that concern it, and says what is wrong with the others.
pub(crate) fn assign(
    snapshot: &Snapshot,
    (settings, lowered): (&SettingsSpec, &Lowered),
    nodes: &mut BTreeMap<String, NodeConfig>,
    problems: &mut Vec<Problem>,
) {
    let loopbacks = loopbacks(snapshot, lowered, problems);
    let mirrors = resolve(snapshot, settings, lowered, &loopbacks, problems);
    place::place(&mirrors, snapshot, nodes, problems);
}

/// Checks all targets and selectors.
fn resolve<'a>(
    snapshot: &Snapshot,
    settings: &'a SettingsSpec,
    lowered: &'a Lowered,
    loopbacks: &'a Loopbacks<'a>,
    problems: &mut Vec<Problem>,
) -> Mirrors<'a> {
    let tunnels = tunnels(lowered, loopbacks, problems);
    let mut mirrors = Mirrors {
        settings,
        tunnels,
        of_segments: BTreeMap::new(),
        of_routing: BTreeMap::new(),
    };
    for (name, object) in &*lowered.mirror_selectors {
        match source(snapshot, lowered, object) {
            Ok((source, place)) => {
                let target = object.spec.mirror_target.name.as_str();
                let mirror = Mirror {
                    name,
                    object,
                    target,
                    place,
                };
                // What is wrong with a target that exists is said on the target.
                if mirrors.tunnels.contains_key(target) {
                    let by_source = match mirror.place {
                        Place::Segment(_) => &mut mirrors.of_segments,
                        Place::Vrf(_) => &mut mirrors.of_routing,
                    };
                    by_source.entry(source).or_default().push(mirror);
                }
            }
            Err(found) => {
                let problem = |(field, kind)| Problem::new(object.source.clone(), field, kind);
                problems.extend(found.into_iter().map(problem));
            }
        }
    }
    mirrors
}

type Refusal = (&'static str, problem::Kind);

/// The object whose traffic a selector copies.
fn source<'a>(
    snapshot: &Snapshot,
    lowered: &'a Lowered,
    object: &'a LowLevel<MirrorSelectorSpec>,
) -> Result<(&'a str, Place), Vec<Refusal>> {
    let spec = &object.spec;
    let mut wrong = Vec::new();
    if let Some(Err(message)) = spec.traffic_match.as_ref().map(check_traffic) {
        let message = message.to_owned();
        wrong.push(("spec.trafficMatch", problem::Kind::RuleBroken { message }));
    }
    if let Err(kind) = target(snapshot, lowered, &spec.mirror_target) {
        wrong.push(("spec.mirrorTarget", kind));
    }
    let target = lowered.mirror_targets.get(&spec.mirror_target.name);
    let mirror_vrf = target.map(|target| target.spec.destination_vrf.as_str());
    let place = place_of(snapshot, lowered, &spec.mirror_source).and_then(|place| match place {
        Place::Vrf(vrf) if Some(vrf.as_str()) == mirror_vrf => {
            Err(problem::Kind::MirrorOfItself { vrf })
        }
        place => Ok(place),
    });
    match place {
        Ok(place) if wrong.is_empty() => Ok((&spec.mirror_source.name, place)),
        Ok(_) => Err(wrong),
        Err(kind) => {
            wrong.push(("spec.mirrorSource", kind));
            Err(wrong)
        }
    }
}

/// Whether a reference names a kind of our group.
fn names_kind(reference: &TypedObjectReference, kind: Kind) -> bool {
    let group = reference.api_group.as_deref();
    group.is_none_or(|group| group == GROUP) && reference.kind == <&str>::from(kind)
}

fn written(reference: &TypedObjectReference) -> String {
    let TypedObjectReference {
        api_group, kind, ..
    } = reference;
    match api_group {
        Some(group) => format!("{group}/{kind}"),
        None => kind.clone(),
    }
}

fn target(
    snapshot: &Snapshot,
    lowered: &Lowered,
    reference: &TypedObjectReference,
) -> Result<(), problem::Kind> {
    if !names_kind(reference, Kind::MirrorTarget) {
        return Err(problem::Kind::WrongReference {
            found: written(reference),
            wanted: "a MirrorTarget",
        });
    }
    if lowered.mirror_targets.contains_key(&reference.name) {
        return Ok(());
    }
    Err(snapshot.missing(ObjectRef::named(Kind::MirrorTarget, &reference.name)))
}

/// Where the traffic of an object is seen on a node.
fn place_of(
    snapshot: &Snapshot,
    lowered: &Lowered,
    reference: &TypedObjectReference,
) -> Result<Place, problem::Kind> {
    let name = &reference.name;
    let of_layer2 = names_kind(reference, Kind::Layer2NetworkConfiguration);
    if !of_layer2 && !names_kind(reference, Kind::VrfRouteConfiguration) {
        return Err(problem::Kind::WrongReference {
            found: written(reference),
            wanted: "a Layer2NetworkConfiguration or a VRFRouteConfiguration",
        });
    }
    let missing = |kind| snapshot.missing(ObjectRef::named(kind, name));
    if !of_layer2 {
        let object = lowered.vrf.get(name);
        let object = object.ok_or_else(|| missing(Kind::VrfRouteConfiguration))?;
        return Ok(Place::Vrf(object.spec.vrf.to_string()));
    }
    let object = lowered.layer2.get(name);
    let object = object.ok_or_else(|| missing(Kind::Layer2NetworkConfiguration))?;
    if object.spec.interface_ref.is_some() {
        return Err(problem::Kind::NothingToMirror {
            mirrored: object.source.clone(),
            why: "it is on a device of the node",
        });
    }
    Ok(Place::Segment(object.spec.id.get()))
}

/// The tunnels that can be made. Of two that would be one to the kernel, the older object's is made.
fn tunnels<'a>(
    lowered: &'a Lowered,
    loopbacks: &'a Loopbacks<'a>,
    problems: &mut Vec<Problem>,
) -> BTreeMap<&'a str, Tunnel<'a>> {
    let mut tunnels: BTreeMap<&str, Tunnel<'_>> = BTreeMap::new();
    let mut devices: BTreeMap<IfName, &ObjectRef> = BTreeMap::new();
    let mut ends: BTreeMap<_, &ObjectRef> = BTreeMap::new();
    for (name, object) in by_age(&lowered.mirror_targets) {
        let spec = &object.spec;
        let device = names::mirror_tunnel(name, spec.kind);
        let is_generated = object.is_generated();
        let mut report = |field: &str, kind| {
            problems.push(Problem::new(object.source.clone(), field, kind));
        };
        let vrf = spec.destination_vrf.as_str();
        let Some(loopback) = loopbacks.get(&(vrf, &spec.source_loopback)) else {
            let mut routing = lowered.vrf.values();
            if !routing.any(|object| object.spec.vrf.as_str() == vrf) {
                let vrf = vrf.to_owned();
                report(
                    "spec.destinationVrf",
                    problem::Kind::MirrorVrfMissing { vrf },
                );
            // What is wrong with a loopback that exists is said on its object.
            } else if !wanted(lowered, vrf, &spec.source_loopback) {
                let (vrf, loopback) = (vrf.to_owned(), spec.source_loopback.to_string());
                let kind = problem::Kind::LoopbackMissing { vrf, loopback };
                report("spec.sourceLoopback", kind);
            }
            continue;
        };
        if let Some(by) = devices.get(&device).map(|by| (*by).clone()) {
            let (name, node) = (device.to_string(), None);
            let kind = problem::Kind::DeviceNameTaken { name, by, node };
            report("metadata.name", kind);
            continue;
        }
        let end = (vrf, &spec.source_loopback, spec.destination_ip, spec.key);
        let end = (end, spec.kind == GreProtocol::L2gre);
        if let Some(by) = ends.get(&end).map(|by| (*by).clone()) {
            let field = if is_generated {
                "spec.address"
            } else {
                "spec.destinationIP"
            };
            report(field, problem::Kind::TunnelTaken { by });
            continue;
        }
        ends.insert(end, &object.source);
        devices.insert(device.clone(), &object.source);
        let tunnel = Tunnel {
            object,
            device,
            loopback,
        };
        tunnels.insert(name, tunnel);
    }
    tunnels
}

/// Whether some object would give a VRF this loopback.
fn wanted(lowered: &Lowered, vrf: &str, loopback: &IfName) -> bool {
    let objects = lowered.vrf.values();
    let mut of_vrf = objects.filter(|object| object.spec.vrf.as_str() == vrf);
    of_vrf.any(|object| {
        object
            .spec
            .loopbacks
            .iter()
            .any(|one| one.name == *loopback)
    })
}

fn by_age<S>(objects: &LowLevelObjects<S>) -> Vec<(&str, &LowLevel<S>)> {
    let mut sorted: Vec<_> = objects
        .iter()
        .map(|(name, one)| (name.as_str(), &**one))
        .collect();
    sorted.sort_by(|(a_name, a), (b_name, b)| (age(&a.meta), a_name).cmp(&(age(&b.meta), b_name)));
    sorted
}
