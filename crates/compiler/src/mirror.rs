//! Mirrors: which traffic of which segments and VRFs is copied into which tunnels; and loopbacks of VRFs, on which tunnels start, with
//! addresses from pools.
//!
//! They change no forwarding and are part of no revision: what a node has of them is put into its config when that is made.

mod address;
mod loopback;
mod place;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use api::{
    meta::TypedObjectReference,
    tcaas::{
        GROUP, GreProtocol, Layer2NetworkConfigurationSpec, MirrorSelectorSpec, MirrorTargetSpec,
        VrfRouteConfigurationSpec,
    },
    value::{IfName, VrfName},
};

use self::loopback::{Loopbacks, WantedBy, loopbacks};
pub(crate) use self::place::{GivenByAddress, MirrorsOf, of_node, without};
pub use self::place::{NodeMirrors, Place, Rule};
use crate::{
    lower::{LowLevel, LowLevelSpec, check_traffic, merge::Merged, object, scope::runs_tunnel},
    memo::Query,
    names,
    node::{Facet, Facets},
    problem::{self, Problem},
    snapshot::{Kind, ObjectRef},
    view::View,
};

/// The mirrors of all nodes, before they are selected by node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mirrors {
    /// Valid targets, by name.
    tunnels: BTreeMap<String, Tunnel>,
    /// Valid selectors, by the segment's object whose traffic they copy.
    of_segments: BTreeMap<String, Vec<Mirror>>,
    /// The same, by routing.
    of_routing: BTreeMap<String, Vec<Mirror>>,
    /// Loopbacks of VRFs that nodes have whether or not a tunnel starts there.
    loopbacks: Vec<PooledLoopback>,
    /// What is wrong with the others.
    pub(crate) problems: Vec<Problem>,
}

/// A tunnel, wherever it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Tunnel {
    object: Arc<LowLevel<MirrorTargetSpec>>,
    device: IfName,
    /// Where its source address comes from.
    pool: TypedObjectReference,
    /// Who says so.
    wanted_by: WantedBy,
    /// The names of the routing objects that have its loopback.
    loopback_objects: BTreeSet<String>,
}

/// A loopback of a VRF with an address from a pool, on every node that one of some routing objects is for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PooledLoopback {
    vrf: String,
    name: IfName,
    pool: TypedObjectReference,
    wanted_by: WantedBy,
    /// The names of the routing objects.
    objects: BTreeSet<String>,
}

/// A selector.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mirror {
    object: Arc<LowLevel<MirrorSelectorSpec>>,
    place: Place,
}

impl Mirror {
    fn target(&self) -> &str {
        &self.object.spec.mirror_target.name
    }
}

/// All targets and selectors, checked.
pub(crate) struct AllMirrors;
impl Query for AllMirrors {
    type Key = ();
    type Value = Arc<Mirrors>;
    fn compute(view: &View<'_>, (): &()) -> Arc<Mirrors> {
        let mut mirrors = Mirrors::default();
        let loopbacks = loopbacks(view, &mut mirrors.problems);
        mirrors.tunnels = tunnels(view, &loopbacks, &mut mirrors.problems);
        mirrors.loopbacks = on_all_nodes(loopbacks);
        for object in objects::<MirrorSelectorSpec>(view, &Facet::MirrorSelectors) {
            match place(view, &object) {
                Ok(place) => {
                    let source = object.spec.mirror_source.name.clone();
                    let mirror = Mirror { object, place };
                    // What is wrong with a target that exists is said on the target.
                    if mirrors.tunnels.contains_key(mirror.target()) {
                        let by_source = match mirror.place {
                            Place::Segment(_) => &mut mirrors.of_segments,
                            Place::Vrf(_) => &mut mirrors.of_routing,
                        };
                        by_source.entry(source).or_default().push(mirror);
                    }
                }
                // What an intent keeps from before cannot be corrected by its author: the intent says itself what is wrong with it now.
                Err(_) if object.is_generated() && is_held_back(view, &object.source) => {}
                Err(found) => {
                    let problem = |(field, kind)| {
                        let field = match field {
                            "spec.mirrorTarget" if object.is_generated() => "spec.collector",
                            "spec.mirrorSource" if object.is_generated() => "spec.source.name",
                            field => field,
                        };
                        Problem::new(object.source.clone(), field, kind)
                    };
                    mirrors.problems.extend(found.into_iter().map(problem));
                }
            }
        }
        Arc::new(mirrors)
    }
}

fn is_held_back(view: &View<'_>, intent: &ObjectRef) -> bool {
    view.get::<Merged>(intent).is_held_back
}

fn on_all_nodes(loopbacks: Loopbacks) -> Vec<PooledLoopback> {
    let loopbacks = loopbacks.into_iter();
    let loopbacks = loopbacks.filter(|(_, loopback)| !loopback.on_all_nodes.is_empty());
    let loopbacks = loopbacks.map(|((vrf, name), loopback)| PooledLoopback {
        vrf,
        name,
        pool: loopback.pool,
        wanted_by: loopback.first,
        objects: loopback.on_all_nodes,
    });
    loopbacks.collect()
}

/// Whether anything is mirrored anywhere, or a loopback has an address from a pool.
pub(crate) struct HasMirrors;
impl Query for HasMirrors {
    type Key = ();
    type Value = bool;
    fn compute(view: &View<'_>, (): &()) -> bool {
        let mirrors = view.get::<AllMirrors>(&());
        let has_mirrors = !mirrors.of_segments.is_empty() || !mirrors.of_routing.is_empty();
        has_mirrors || !mirrors.loopbacks.is_empty()
    }
}

/// The objects of a kind under a facet, by name.
fn objects<S: LowLevelSpec>(view: &View<'_>, facet: &Facet) -> Vec<Arc<LowLevel<S>>> {
    let selected = view.who::<Facets>(facet);
    let objects = selected.iter().filter_map(|one| one.object());
    let mut objects: Vec<_> = objects.filter_map(S::of).cloned().collect();
    objects.sort_by(|a, b| a.name.cmp(&b.name));
    objects
}

/// The same, the older first.
fn by_age<S: LowLevelSpec>(view: &View<'_>, facet: &Facet) -> Vec<Arc<LowLevel<S>>> {
    let mut objects = objects(view, facet);
    objects.sort_by(|a, b| a.order().cmp(&b.order()));
    objects
}

type Refusal = (&'static str, problem::Kind);

/// Where a selector copies traffic, if it is valid.
fn place(view: &View<'_>, selector: &LowLevel<MirrorSelectorSpec>) -> Result<Place, Vec<Refusal>> {
    let spec = &selector.spec;
    let mut wrong = Vec::new();
    if let Some(Err(message)) = spec.traffic_match.as_ref().map(check_traffic) {
        let message = message.to_owned();
        wrong.push(("spec.trafficMatch", problem::Kind::RuleBroken { message }));
    }
    if let Err(kind) = target(view, &spec.mirror_target) {
        wrong.push(("spec.mirrorTarget", kind));
    }
    let target = object::<MirrorTargetSpec>(view, &spec.mirror_target.name);
    let mirror_vrf = target.map(|target| target.spec.destination_vrf.to_string());
    let place = place_of(view, &spec.mirror_source).and_then(|place| match place {
        Place::Vrf(vrf) if Some(&vrf) == mirror_vrf.as_ref() => {
            Err(problem::Kind::MirrorOfItself { vrf })
        }
        place => Ok(place),
    });
    match place {
        Ok(place) if wrong.is_empty() => Ok(place),
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

fn target(view: &View<'_>, reference: &TypedObjectReference) -> Result<(), problem::Kind> {
    if !names_kind(reference, Kind::MirrorTarget) {
        return Err(problem::Kind::WrongReference {
            found: written(reference),
            wanted: "a MirrorTarget",
        });
    }
    match object::<MirrorTargetSpec>(view, &reference.name) {
        Some(_) => Ok(()),
        None => Err(view.missing(ObjectRef::named(Kind::MirrorTarget, &reference.name))),
    }
}

/// Where the traffic of an object is seen on a node.
fn place_of(view: &View<'_>, reference: &TypedObjectReference) -> Result<Place, problem::Kind> {
    let name = &reference.name;
    let of_layer2 = names_kind(reference, Kind::Layer2NetworkConfiguration);
    if !of_layer2 && !names_kind(reference, Kind::VrfRouteConfiguration) {
        return Err(problem::Kind::WrongReference {
            found: written(reference),
            wanted: "a Layer2NetworkConfiguration or a VRFRouteConfiguration",
        });
    }
    let missing = |kind| view.missing(ObjectRef::named(kind, name));
    if !of_layer2 {
        let routing = object::<VrfRouteConfigurationSpec>(view, name);
        let routing = routing.ok_or_else(|| missing(Kind::VrfRouteConfiguration))?;
        return Ok(Place::Vrf(routing.spec.vrf.to_string()));
    }
    let segment = object::<Layer2NetworkConfigurationSpec>(view, name);
    let segment = segment.ok_or_else(|| missing(Kind::Layer2NetworkConfiguration))?;
    if segment.spec.interface_ref.is_some() {
        return Err(problem::Kind::NothingToMirror {
            mirrored: segment.source.clone(),
            why: "it is on a device of the node",
        });
    }
    Ok(Place::Segment(segment.spec.id.get()))
}

/// The tunnels that can be made. Of two that would be one to the kernel, the one that nodes have is made, then the older object's.
fn tunnels(
    view: &View<'_>,
    loopbacks: &Loopbacks,
    problems: &mut Vec<Problem>,
) -> BTreeMap<String, Tunnel> {
    let mut tunnels: BTreeMap<String, Tunnel> = BTreeMap::new();
    let mut devices: BTreeMap<IfName, ObjectRef> = BTreeMap::new();
    let mut ends: BTreeMap<End<'_>, ObjectRef> = BTreeMap::new();
    let mut targets = by_age::<MirrorTargetSpec>(view, &Facet::MirrorTargets);
    let different: BTreeSet<End<'_>> = targets.iter().map(|one| end(&one.spec)).collect();
    if different.len() < targets.len() {
        targets.sort_by_cached_key(|one| !runs_tunnel(view, &one.name, &one.spec));
    }
    for object in &targets {
        let spec = &object.spec;
        let device = names::mirror_tunnel(&object.name, spec.kind);
        let mut report = |field: &str, kind| {
            problems.push(Problem::new(object.source.clone(), field, kind));
        };
        let vrf = spec.destination_vrf.to_string();
        let Some(loopback) = loopbacks.get(&(vrf.clone(), spec.source_loopback.clone())) else {
            if !view.has::<Facets>(&Facet::Vrf(vrf.clone())) {
                report(
                    "spec.destinationVrf",
                    problem::Kind::MirrorVrfMissing { vrf },
                );
            // What is wrong with a loopback that exists is said on its object.
            } else if !is_wanted(view, &vrf, &spec.source_loopback) {
                let loopback = spec.source_loopback.to_string();
                let kind = problem::Kind::LoopbackMissing { vrf, loopback };
                report("spec.sourceLoopback", kind);
            }
            continue;
        };
        if let Some(by) = devices.get(&device).cloned() {
            let (name, node) = (device.to_string(), None);
            let kind = problem::Kind::DeviceNameTaken { name, by, node };
            report("metadata.name", kind);
            continue;
        }
        if let Some(by) = ends.get(&end(spec)).cloned() {
            let field = if object.is_generated() {
                "spec.address"
            } else {
                "spec.destinationIP"
            };
            report(field, problem::Kind::TunnelTaken { by });
            continue;
        }
        ends.insert(end(spec), object.source.clone());
        devices.insert(device.clone(), object.source.clone());
        let tunnel = Tunnel {
            device,
            pool: loopback.pool.clone(),
            wanted_by: loopback.first.clone(),
            loopback_objects: loopback.objects.clone(),
            object: Arc::clone(object),
        };
        tunnels.insert(object.name.clone(), tunnel);
    }
    tunnels
}

/// What tells one tunnel from another to the kernel: VRF, loopback, destination, key, and whether it carries frames.
type End<'a> = (&'a VrfName, &'a IfName, IpAddr, Option<u32>, bool);

fn end(spec: &MirrorTargetSpec) -> End<'_> {
    let MirrorTargetSpec {
        kind,
        destination_ip,
        key,
        destination_vrf,
        source_loopback,
    } = spec;
    let has_frames = *kind == GreProtocol::L2gre;
    (
        destination_vrf,
        source_loopback,
        *destination_ip,
        *key,
        has_frames,
    )
}

/// Whether some object would give a VRF this loopback.
fn is_wanted(view: &View<'_>, vrf: &str, loopback: &IfName) -> bool {
    let routing = objects::<VrfRouteConfigurationSpec>(view, &Facet::Loopbacks);
    let mut of_vrf = routing.iter().filter(|one| one.spec.vrf.as_str() == vrf);
    of_vrf.any(|one| one.spec.loopbacks.iter().any(|one| one.name == *loopback))
}
