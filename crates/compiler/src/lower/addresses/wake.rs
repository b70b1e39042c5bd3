//! Which grounds a change wakes that are not the ground of what changed: those that asked for something, and the answer is another.

use std::collections::BTreeSet;

use super::{
    Addresses, Input,
    ground::{Ground, Standing},
    memory::Memory,
    nodes,
};
use crate::{
    changes::Changes,
    snapshot::{Key, Kind, ObjectRef},
};

impl Addresses {
    /// The grounds that asked for what changed.
    pub(super) fn woken(
        &self,
        input: Input<'_>,
        memory: &Memory<'_>,
        changes: Changes<'_>,
    ) -> BTreeSet<Ground> {
        let routes = changes.touch_any(&[Kind::Destination, Kind::Vrf]);
        let announced = changes.touch(Kind::VrfRouteConfiguration);
        let spoken_for = self.may_be_spoken_for(input, changes);
        if !(routes || announced || spoken_for || changes.touch(Kind::Node)) {
            return BTreeSet::new();
        }
        let is_woken = |ground: &Ground, standing: &Standing| {
            let asked = &standing.asked;
            let mut services = asked.announced.iter();
            let mut nodes = changes.of(Kind::Node).filter(|_| asked.nodes);
            let mut told = changes.of(Kind::NodeNetworkConfig).filter(|_| asked.told);
            let spoken_for = asked.spoken_for.as_ref().filter(|_| spoken_for);
            routes && asked.reached
                || announced && services.any(|(one, known)| memory.announced(one) != known)
                || nodes.any(|node| self.has_node(input, standing, node))
                || told.any(|node| asks_what_is_told(input, standing, node))
                || spoken_for.is_some_and(|known| {
                    *known != memory.spoken_for(&ground.prefixes(input.snapshot))
                })
        };
        let all = self.grounds.all.iter();
        let woken = all.filter(|(ground, standing)| is_woken(ground, standing));
        woken.map(|(ground, _)| ground.clone()).collect()
    }

    /// Whether other addresses may be spoken for: what objects announce counts when their owner comes or goes.
    fn may_be_spoken_for(&self, input: Input<'_>, changes: Changes<'_>) -> bool {
        let snapshot = input.snapshot;
        let has_moved = |kind, key: &Key, is_here: bool| {
            let key = key.clone();
            let consumers = &self.given.consumers;
            consumers.contains_key(&ObjectRef { kind, key }) != is_here
        };
        let mut inbounds = changes.of(Kind::Inbound);
        let mut outbounds = changes.of(Kind::Outbound);
        changes.touch_any(&[
            Kind::NodeNetworkConfig,
            Kind::VrfRouteConfiguration,
            Kind::Destination,
        ]) || inbounds.any(|key| has_moved(Kind::Inbound, key, snapshot.inbounds.contains_key(key)))
            || outbounds
                .any(|key| has_moved(Kind::Outbound, key, snapshot.outbounds.contains_key(key)))
    }

    /// Whether a node is on a segment of a ground, or was. That one was which has nothing of it is known by the problem of the segment, or
    /// by the question what it was told.
    fn has_node(&self, input: Input<'_>, standing: &Standing, node: &Key) -> bool {
        let labels = input.snapshot.nodes.get(node).map(|node| &node.meta.labels);
        standing.asked.told
            || standing.members.iter().any(|member| {
                let had = self.given.nodes.get(member);
                had.is_some_and(|nodes| nodes.contains_key(&node.name))
                    || self.given.node_problems.contains_key(member)
                    || labels.is_some_and(|labels| {
                        nodes::segment(input, member).is_some_and(|segment| segment.selects(labels))
                    })
            })
    }
}

/// Whether only what a node was told says what it has on a segment of a ground.
fn asks_what_is_told(input: Input<'_>, standing: &Standing, node: &Key) -> bool {
    let Some(object) = input.snapshot.nodes.get(node) else {
        return false;
    };
    let segments = standing.members.iter();
    let mut segments = segments.filter_map(|member| nodes::segment(input, member));
    segments.any(|segment| segment.selects(&object.meta.labels) && !segment.remembers(&node.name))
}
