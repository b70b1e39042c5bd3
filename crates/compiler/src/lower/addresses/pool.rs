//! What consumers share addresses of, who shares what, and which of these pools have addresses in common.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::value::Prefix;
use ipnet::IpNet;

use super::{claims::ClaimsOn, nodes::networks};
use crate::{
    lower::{
        intent,
        low_level::{self, HandWritten, LowLevelObject},
        routing::subnets,
    },
    memo::{Index, Query},
    snapshot::{Kind, ObjectRef, Role},
    view::View,
};

/// What consumers share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum AddressPool {
    /// A Network.
    Network(Arc<str>),
    /// Networks that hand-written segments name.
    Networks(Arc<[Prefix]>),
}

impl AddressPool {
    pub(super) fn prefixes(&self, view: &View<'_>) -> Vec<Prefix> {
        match self {
            Self::Network(name) => {
                let network = view.network(name);
                network.map_or_else(Vec::new, |network| subnets(&network))
            }
            Self::Networks(networks) => networks.to_vec(),
        }
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Network(name) => name,
            Self::Networks(_) => "",
        }
    }
}

/// What an object draws on, if it is there and draws on anything.
pub(super) fn of(view: &View<'_>, subject: &ObjectRef) -> Option<AddressPool> {
    if subject.kind == Kind::Layer2NetworkConfiguration {
        let object = view.get::<HandWritten>(subject)?;
        let LowLevelObject::Layer2(object) = object else {
            return None;
        };
        let node_ips = object.spec.node_ips.as_ref();
        let gives = node_ips.is_some_and(|ips| ips.enabled);
        return gives.then(|| AddressPool::Networks(networks(&object.spec).into()));
    }
    intent::network(view, subject).map(AddressPool::Network)
}

/// Who draws on which pool.
pub(crate) struct ConsumersByPool;
impl Index for ConsumersByPool {
    type Source = ObjectRef;
    type Key = AddressPool;
    type Item = ObjectRef;
    fn sources(view: &View<'_>) -> Vec<ObjectRef> {
        let intents = intent::all(view);
        let intents = intents.iter().cloned();
        let intents = intents.filter(|one| one.kind.role() != Role::Other);
        let written = low_level::hand_written(view);
        let written = written.iter();
        let segments = written.filter(|one| one.kind == Kind::Layer2NetworkConfiguration);
        intents.chain(segments.cloned()).collect()
    }
    fn entries(view: &View<'_>, subject: &ObjectRef) -> Vec<(AddressPool, ObjectRef)> {
        let pool = of(view, subject).into_iter();
        pool.map(|pool| (pool, subject.clone())).collect()
    }
}

/// Pools that have addresses in common.
pub(crate) type Island = Arc<Vec<AddressPool>>;

/// The island of each pool that has addresses in common with another.
pub(crate) struct Islands;
impl Query for Islands {
    type Key = ();
    type Value = Arc<BTreeMap<AddressPool, Island>>;
    fn compute(view: &View<'_>, (): &()) -> Self::Value {
        let pools = view.all_keys::<ConsumersByPool>();
        let footprints = pools
            .iter()
            .map(|pool| view.get::<ClaimsOn>(pool).footprint.clone());
        let footprints: Vec<Vec<IpNet>> = footprints.collect();
        let groups = overlapping_groups(&footprints);
        let mut islands = BTreeMap::new();
        for group in groups {
            let members = group.iter().filter_map(|place| pools.get(*place).cloned());
            let island: Island = Arc::new(members.collect());
            for pool in island.iter() {
                islands.insert(pool.clone(), Arc::clone(&island));
            }
        }
        Arc::new(islands)
    }
}

/// The pools that are shared out together with one, and that one.
pub(super) fn island(view: &View<'_>, pool: &AddressPool) -> Island {
    let islands = view.get::<Islands>(&());
    let island = islands.get(pool).cloned();
    island.unwrap_or_else(|| Arc::new(vec![pool.clone()]))
}

/// The places of those that have addresses in common, directly or by others, where there are at least two of them.
///
/// Networks lie beside each other or inside each other, so those that overlap have the same outermost network.
fn overlapping_groups(footprints: &[Vec<IpNet>]) -> Vec<BTreeSet<usize>> {
    let places = footprints.iter().enumerate();
    let mut nets: Vec<(IpNet, usize)> = places
        .flat_map(|(place, nets)| nets.iter().map(move |net| (*net, place)))
        .collect();
    nets.sort_unstable();
    let mut parents: Vec<usize> = (0..footprints.len()).collect();
    let mut outermost: Option<(IpNet, usize)> = None;
    for (net, place) in nets {
        match outermost {
            Some((outer, first)) if outer.contains(&net) => unite(&mut parents, first, place),
            _ => outermost = Some((net, place)),
        }
    }
    let mut groups: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for place in 0..footprints.len() {
        groups
            .entry(root(&parents, place))
            .or_default()
            .insert(place);
    }
    let groups = groups.into_values();
    groups.filter(|group| group.len() > 1).collect()
}

fn root(parents: &[usize], mut place: usize) -> usize {
    while let Some(parent) = parents.get(place)
        && *parent != place
    {
        place = *parent;
    }
    place
}

fn unite(parents: &mut [usize], one: usize, other: usize) {
    let (one, other) = (root(parents, one), root(parents, other));
    // The lower one is the root, so that the same pools always give the same.
    if let Some(parent) = parents.get_mut(one.max(other)) {
        *parent = one.min(other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nets(texts: &[&str]) -> Vec<IpNet> {
        let nets = texts.iter().map(|text| text.parse().expect("a network"));
        nets.collect()
    }

    #[test]
    fn what_overlaps_directly_or_by_others_is_one_group() {
        let footprints = [
            nets(&["10.0.0.0/24"]),
            nets(&["10.0.1.0/24"]),
            nets(&["10.0.0.128/25", "2001:db8::/64"]),
            nets(&["2001:db8::7/128"]),
            nets(&["10.2.0.0/16"]),
            nets(&[]),
        ];
        let groups = overlapping_groups(&footprints);
        assert_eq!(groups, [BTreeSet::from([0, 2, 3])]);
        let around = [
            nets(&["10.0.0.0/8"]),
            nets(&["10.1.0.0/16"]),
            nets(&["10.2.0.0/16"]),
        ];
        assert_eq!(overlapping_groups(&around), [BTreeSet::from([0, 1, 2])]);
    }
}
