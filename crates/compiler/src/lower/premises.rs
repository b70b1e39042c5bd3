//! What intents are lowered from, so that only those are lowered again for which something changed.

use std::collections::{BTreeMap, BTreeSet};

use api::meta::{LabelSelector, Labels};

use super::{Lowered, inbound};
use crate::{
    changes::Changes,
    snapshot::{Key, Kind, ObjectRef, Objects, Snapshot},
};

/// What changed of all that intents are lowered from, beside themselves.
#[derive(Default)]
pub(super) struct Premises {
    /// Networks, with what is given of them to whom.
    pub(super) networks: BTreeSet<String>,
    /// Those who have other addresses.
    pub(super) consumers: BTreeSet<ObjectRef>,
    /// Labels of Destinations that changed, or whose VRF did; as they were and as they are.
    pub(super) destinations: Vec<Labels>,
    /// Pools that somebody else has now.
    pub(super) pools: BTreeSet<String>,
}

impl Premises {
    /// Notes VRFs that changed: what leads there leads elsewhere.
    pub(super) fn vrfs(&mut self, snapshot: &Snapshot, vrfs: &BTreeSet<Key>) {
        if vrfs.is_empty() {
            return;
        }
        for destination in snapshot.destinations.values() {
            let vrf = destination.spec.vrf_ref.as_ref();
            if vrf.is_some_and(|vrf| vrfs.contains(&Key::named(vrf))) {
                self.destinations.push(destination.meta.labels.clone());
            }
        }
    }

    /// The intents that may become something else now; also those that are gone.
    pub(super) fn touched(
        mut self,
        snapshot: &Snapshot,
        lowered: &Lowered,
        changes: Changes<'_>,
    ) -> BTreeSet<ObjectRef> {
        if changes.is_all() {
            // None of them became anything yet.
            return BTreeSet::new();
        }
        let networks = changes.of(Kind::Network).map(|key| key.name.clone());
        self.networks.extend(networks);
        let mut touched = std::mem::take(&mut self.consumers);
        touched.retain(|one| super::INTENTS.contains(&one.kind));
        for kind in super::INTENTS {
            let key = |key: &Key| ObjectRef {
                kind,
                key: key.clone(),
            };
            touched.extend(changes.of(kind).map(key));
        }
        // One that something is wrong with may wait for what was not there.
        let broken = lowered.outcomes.iter().filter(|(_, one)| one.is_broken());
        touched.extend(broken.map(|(subject, _)| subject.clone()));
        choose(
            &mut touched,
            (Kind::Layer2Attachment, &snapshot.layer2_attachments),
            |spec, _| self.is_touched(&spec.network_ref, spec.destinations.as_ref()),
        );
        choose(
            &mut touched,
            (Kind::Inbound, &snapshot.inbounds),
            |spec, key| {
                let pool = inbound::pool(spec, &key.name);
                pool.is_some_and(|pool| self.pools.contains(pool))
                    || self.is_touched(&spec.network_ref, spec.destinations.as_ref())
            },
        );
        choose(
            &mut touched,
            (Kind::Outbound, &snapshot.outbounds),
            |spec, _| self.is_touched(&spec.network_ref, spec.destinations.as_ref()),
        );
        choose(
            &mut touched,
            (Kind::PodNetwork, &snapshot.pod_networks),
            |spec, _| self.is_touched(&spec.network_ref, spec.destinations.as_ref()),
        );
        // These look at what others became.
        choose(
            &mut touched,
            (Kind::BgpNeighbor, &snapshot.bgp_neighbors),
            |_, _| true,
        );
        choose(
            &mut touched,
            (Kind::Collector, &snapshot.collectors),
            |_, _| true,
        );
        choose(
            &mut touched,
            (Kind::TrafficMirror, &snapshot.traffic_mirrors),
            |_, _| true,
        );
        touched
    }

    fn is_touched(&self, network: &str, destinations: Option<&LabelSelector>) -> bool {
        let mut labels = self.destinations.iter();
        self.networks.contains(network)
            || destinations.is_some_and(|selector| labels.any(|labels| selector.matches(labels)))
    }
}

/// Adds the intents of a kind that are touched.
fn choose<S, T>(
    touched: &mut BTreeSet<ObjectRef>,
    (kind, objects): (Kind, &Objects<S, T>),
    is_touched: impl Fn(&S, &Key) -> bool,
) {
    let chosen = objects
        .iter()
        .filter(|(key, object)| is_touched(&object.spec, key));
    touched.extend(chosen.map(|(key, _)| ObjectRef {
        kind,
        key: key.clone(),
    }));
}

/// The keys whose values are not the same in both.
pub(super) fn differing<K: Ord + Clone, V: PartialEq>(
    one: &BTreeMap<K, V>,
    other: &BTreeMap<K, V>,
) -> BTreeSet<K> {
    if one == other {
        return BTreeSet::new();
    }
    let keys = one.keys().chain(other.keys());
    keys.filter(|key| one.get(key) != other.get(key))
        .cloned()
        .collect()
}
