//! Which attachments reach which attachments and Destinations: the answer of [`super::reach`] for each pair, for all of them at once.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::Arc,
};

use api::tcaas::{Layer2NetworkConfigurationSpec, VrfRouteConfigurationSpec};
use compiler::{
    Compilation,
    snapshot::{Key, Kind, ObjectRef},
};

use super::{
    Obstacle, Walk,
    between::{self, Made, Side},
};
use crate::provenance::{Trace, is_kept};

/// What an attachment reaches: an attachment or a Destination, and the VRF through which; a Destination without one has a next hop.
pub type Reached = BTreeSet<(ObjectRef, Option<String>)>;

/// What the attachments on a node reach, or those on any node, each by its name.
pub fn ways(trace: &Trace<'_>, node: Option<&str>) -> BTreeMap<String, Reached> {
    let compilation = trace.compilation;
    let attachments = Attachments::of(compilation);
    let announced = Rc::new(between::announced(compilation));
    let mut ends: BTreeMap<Option<String>, Ends<'_>> = BTreeMap::new();
    let mut ways: BTreeMap<String, Reached> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let nodes = compilation.nodes.iter();
    for (name, config) in nodes.filter(|(name, _)| node.is_none_or(|node| node == *name)) {
        let underlay = config.underlay.as_ref();
        let has_vtep = underlay.is_some_and(|underlay| underlay.vtep.is_some());
        // Nodes with the same tables have the same answer.
        if !seen.insert((Arc::as_ptr(&config.shared), has_vtep)) {
            continue;
        }
        let Some(walk) = Walk::new(trace, name) else {
            continue;
        };
        let walk = walk.knowing(Rc::clone(&announced));
        let ends = ends.entry(walk.cluster());
        let ends = ends.or_insert_with(|| Ends::of(&walk, &attachments));
        for object in attachments.on(&walk) {
            let Some(from) = ends.sides.get(object).filter(|side| side.is_routed()) else {
                continue;
            };
            let reached = ways.entry(object.key.name.to_string()).or_default();
            let tables = walk.possible_tables(from);
            let behind = tables.iter().flat_map(|table| walk.behind(table));
            let behind: BTreeSet<String> = behind.collect();
            let candidates = behind.iter().filter_map(|vrf| ends.by_vrf.get(vrf));
            let candidates: BTreeSet<&ObjectRef> = candidates.flatten().copied().collect();
            for to in candidates.into_iter().filter(|to| *to != object) {
                let way = ends.sides.get(to).and_then(|to| walk.way(from, to));
                reached.extend(way.map(|(vrf, _)| (to.clone(), Some(vrf))));
            }
            let attachment = compilation.attachment(&object.key.name);
            let matched = attachment.map(|attachment| attachment.matched.iter());
            for matched in matched.into_iter().flatten() {
                let target = ObjectRef::named(Kind::Destination, &matched.name);
                reached.extend(walk.of_destination(from, target));
            }
        }
    }
    ways
}

/// The attachments of a compilation, each with what is made of it.
struct Attachments<'a> {
    made: BTreeMap<&'a ObjectRef, Made<'a>>,
    /// The attachment of each segment.
    owners: BTreeMap<&'a str, &'a ObjectRef>,
}

impl<'a> Attachments<'a> {
    fn of(compilation: &'a Compilation) -> Self {
        let is_ours = |source: &ObjectRef| source.kind == Kind::Layer2Attachment;
        let (mut made, mut owners) = (BTreeMap::<_, Made<'a>>::new(), BTreeMap::new());
        let segments = compilation.objects.of::<Layer2NetworkConfigurationSpec>();
        for (name, one) in segments.filter(|(_, one)| is_ours(&one.source)) {
            made.entry(&one.source)
                .or_default()
                .0
                .push((name, &one.spec));
            owners.insert(name.as_str(), &one.source);
        }
        let routing = compilation.objects.of::<VrfRouteConfigurationSpec>();
        for (name, one) in routing.filter(|(_, one)| is_ours(&one.source)) {
            made.entry(&one.source)
                .or_default()
                .1
                .push((name, &one.spec));
        }
        Self { made, owners }
    }

    /// Those that are completely on a node.
    fn on(&self, walk: &Walk<'_>) -> BTreeSet<&'a ObjectRef> {
        let shared = &walk.config.shared;
        let owners = shared.segments.iter();
        let owners = owners.filter_map(|segment| self.owners.get(segment.as_str()).copied());
        let is_complete = |object: &&ObjectRef| {
            // An object in its last valid state has a problem that is the answer.
            let is_sound = !is_kept(walk.trace, object)
                || matches!(walk.of_user(object, object), Obstacle::Elsewhere { .. });
            let made = self.made.get(*object);
            is_sound
                && made.is_some_and(|(segments, routing)| {
                    let mut segments = segments.iter();
                    let mut vrfs = routing.iter().map(|(_, one)| one.vrf.as_str());
                    segments.all(|(name, _)| shared.segments.contains(*name))
                        && vrfs.all(|vrf| shared.fabric_vrfs.contains_key(vrf))
                })
        };
        owners.filter(is_complete).collect()
    }
}

/// The attachments as ends of traffic, and those that each VRF holds.
struct Ends<'a> {
    sides: BTreeMap<&'a ObjectRef, Side>,
    by_vrf: BTreeMap<String, Vec<&'a ObjectRef>>,
}

impl<'a> Ends<'a> {
    fn of(walk: &Walk<'_>, attachments: &Attachments<'a>) -> Self {
        let mut by_vrf: BTreeMap<String, Vec<&'a ObjectRef>> = BTreeMap::new();
        let mut sides = BTreeMap::new();
        for (object, made) in &attachments.made {
            let side = walk.side_of(object, made);
            for vrf in &side.holders {
                by_vrf.entry(vrf.clone()).or_default().push(*object);
            }
            sides.insert(*object, side);
        }
        Self { sides, by_vrf }
    }
}

impl Walk<'_> {
    /// A Destination with its VRF, where the tables of the node lead to it.
    fn of_destination(
        &self,
        from: &Side,
        target: ObjectRef,
    ) -> Option<(ObjectRef, Option<String>)> {
        let snapshot = self.trace.snapshot;
        let spec = &snapshot.destinations.get(&target.key)?.spec;
        let Some(vrf) = &spec.vrf_ref else {
            return Some((target, None));
        };
        let vrf = snapshot.vrfs.get(&Key::named(vrf))?.spec.vrf.to_string();
        let mut prefixes = spec.prefixes.iter();
        let is_there = prefixes.any(|prefix| self.leads(from, prefix.net(), &vrf));
        is_there.then_some((target, Some(vrf)))
    }
}
