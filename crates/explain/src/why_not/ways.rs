//! Which attachments and services reach which attachments and Destinations: the answer of [`super::reach`] for each pair, for all of
//! them at once.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::Arc,
};

use api::tcaas::{Layer2NetworkConfigurationSpec, VrfRouteConfigurationSpec};
use compiler::snapshot::{Key, Kind, ObjectRef};

use super::{
    Obstacle, Walk,
    between::{self, Made, Side},
    referrers,
};
use crate::provenance::{Trace, is_kept};

/// What an intent reaches: an attachment or a Destination, and the VRF through which; a Destination without one has a next hop.
pub type Reached = BTreeSet<(ObjectRef, Option<String>)>;

/// What the attachments and services on a node reach, or those on any node. Nothing is reached from a segment that nothing routes.
pub fn ways(trace: &Trace<'_>, node: Option<&str>) -> BTreeMap<ObjectRef, Reached> {
    let compilation = trace.compilation;
    let intents = Intents::of(trace);
    let announced = Rc::new(between::announced(compilation));
    let mut ends: BTreeMap<Option<String>, Ends<'_>> = BTreeMap::new();
    let mut ways: BTreeMap<ObjectRef, Reached> = BTreeMap::new();
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
        let ends = ends.or_insert_with(|| Ends::of(&walk, &intents));
        for object in intents.on(&walk) {
            let Some(from) = ends.sides.get(object) else {
                continue;
            };
            let reached = ways.entry(object.clone()).or_default();
            let tables = walk.possible_tables(from);
            let behind = tables.iter().flat_map(|table| walk.behind(table));
            let behind: BTreeSet<String> = behind.collect();
            let candidates = behind.iter().filter_map(|vrf| ends.by_vrf.get(vrf));
            let candidates: BTreeSet<&ObjectRef> = candidates.flatten().copied().collect();
            for to in candidates.into_iter().filter(|to| *to != object) {
                let way = ends.sides.get(to).and_then(|to| walk.way(from, to));
                reached.extend(way.map(|(vrf, _)| (to.clone(), Some(vrf))));
            }
            for target in intents.selected.get(object).into_iter().flatten() {
                reached.extend(walk.of_destination(from, target.clone()));
            }
        }
    }
    ways
}

/// The intents whose workloads reach Destinations, each with what is made of it.
struct Intents<'a> {
    made: BTreeMap<&'a ObjectRef, Made<'a>>,
    /// The intents of each segment.
    of_segment: BTreeMap<&'a str, &'a ObjectRef>,
    /// The intents of each routing.
    of_routing: BTreeMap<&'a str, &'a ObjectRef>,
    /// The Destinations of each.
    selected: BTreeMap<&'a ObjectRef, Vec<ObjectRef>>,
}

impl<'a> Intents<'a> {
    fn of(trace: &Trace<'a>) -> Self {
        let compilation = trace.compilation;
        let is_ours = |source: &ObjectRef| referrers::selects_destinations(source.kind);
        let mut made = BTreeMap::<_, Made<'a>>::new();
        let (mut of_segment, mut of_routing) = (BTreeMap::new(), BTreeMap::new());
        let segments = compilation.objects.of::<Layer2NetworkConfigurationSpec>();
        for (name, one) in segments.filter(|(_, one)| is_ours(&one.source)) {
            made.entry(&one.source)
                .or_default()
                .0
                .push((name, &one.spec));
            of_segment.insert(name.as_str(), &one.source);
        }
        let routing = compilation.objects.of::<VrfRouteConfigurationSpec>();
        for (name, one) in routing.filter(|(_, one)| is_ours(&one.source)) {
            made.entry(&one.source)
                .or_default()
                .1
                .push((name, &one.spec));
            of_routing.insert(name.as_str(), &one.source);
        }
        let objects = made.keys().copied();
        let selected = objects.map(|object| (object, selected(trace, object)));
        Self {
            selected: selected.collect(),
            made,
            of_segment,
            of_routing,
        }
    }

    /// Those that are completely on a node.
    fn on(&self, walk: &Walk<'_>) -> BTreeSet<&'a ObjectRef> {
        let shared = &walk.config.shared;
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
        let segments = shared.segments.iter();
        let segments = segments.filter_map(|segment| self.of_segment.get(segment.as_str()));
        let routing = shared.routing.iter();
        let routing = routing.filter_map(|routing| self.of_routing.get(routing.as_str()));
        let own: BTreeSet<&'a ObjectRef> = segments.chain(routing).copied().collect();
        own.into_iter().filter(is_complete).collect()
    }
}

/// The Destinations that an intent reaches where the tables of a node lead to them.
fn selected(trace: &Trace<'_>, object: &ObjectRef) -> Vec<ObjectRef> {
    if object.kind == Kind::Layer2Attachment {
        let attachment = trace.compilation.attachment(&object.key.name);
        let matched = attachment.into_iter().flat_map(|one| one.matched.iter());
        return matched
            .map(|matched| ObjectRef::named(Kind::Destination, &matched.name))
            .collect();
    }
    let Some(selector) = referrers::selector(trace.snapshot, object) else {
        return Vec::new();
    };
    let destinations = trace.snapshot.destinations.iter();
    let selected = destinations.filter(|(_, one)| selector.matches(&one.meta.labels));
    selected
        .map(|(key, _)| ObjectRef {
            kind: Kind::Destination,
            key: key.clone(),
        })
        .collect()
}

/// The intents as ends of traffic, and the attachments that each VRF holds.
struct Ends<'a> {
    sides: BTreeMap<&'a ObjectRef, Side>,
    by_vrf: BTreeMap<String, Vec<&'a ObjectRef>>,
}

impl<'a> Ends<'a> {
    fn of(walk: &Walk<'_>, intents: &Intents<'a>) -> Self {
        let mut by_vrf: BTreeMap<String, Vec<&'a ObjectRef>> = BTreeMap::new();
        let mut sides = BTreeMap::new();
        for (object, made) in &intents.made {
            let side = walk.side_of(object, made);
            let holders = side.holders.iter();
            for vrf in holders.filter(|_| object.kind == Kind::Layer2Attachment) {
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
