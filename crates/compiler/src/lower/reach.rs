//! What a selector of Destinations reaches: VRFs with their prefixes.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    meta::{LabelSelector, Labels},
    tcaas::{DestinationSpec, DestinationStatus, MatchedDestination},
    value::{Prefix, RouteTarget, Vni, VrfName},
};

use super::Lowered;
use crate::{
    changes::Changes,
    problem::{self, Problem},
    snapshot::{Key, Kind, Object, ObjectRef, Snapshot},
};

type Destination = Object<DestinationSpec, DestinationStatus>;

/// The Destinations by their labels, so that a selector finds its own without asking every one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Destinations(BTreeMap<String, BTreeMap<String, BTreeSet<Key>>>);

impl Destinations {
    /// Brings it up to date; gives the labels of those that changed, as they were and as they are.
    pub(super) fn update(&mut self, snapshot: &Snapshot, changes: Changes<'_>) -> Vec<Labels> {
        if changes.is_all() {
            *self = Self::default();
            for (key, destination) in &snapshot.destinations {
                self.insert(key, &destination.meta.labels);
            }
            return Vec::new();
        }
        let mut touched = Vec::new();
        for key in changes.of(Kind::Destination) {
            touched.push(self.remove(key));
            if let Some(destination) = snapshot.destinations.get(key) {
                let labels = &destination.meta.labels;
                self.insert(key, labels);
                touched.push(labels.clone());
            }
        }
        touched
    }

    fn insert(&mut self, key: &Key, labels: &Labels) {
        for (label, value) in labels {
            let values = self.0.entry(label.clone()).or_default();
            values.entry(value.clone()).or_default().insert(key.clone());
        }
    }

    /// Takes one out; gives the labels that it had.
    fn remove(&mut self, key: &Key) -> Labels {
        let mut labels = Labels::new();
        self.0.retain(|label, values| {
            values.retain(|value, keys| {
                if keys.remove(key) {
                    labels.insert(label.clone(), value.clone());
                }
                !keys.is_empty()
            });
            !values.is_empty()
        });
        labels
    }

    /// The Destinations that a selector chooses, by name.
    pub(super) fn select<'a>(
        &self,
        snapshot: &'a Snapshot,
        selector: &LabelSelector,
    ) -> Vec<(&'a Key, &'a Destination)> {
        let all = &snapshot.destinations;
        let fits = |(_, one): &(&Key, &Destination)| selector.matches(&one.meta.labels);
        let Some((label, value)) = selector.match_labels.first_key_value() else {
            return all.iter().filter(fits).collect();
        };
        let found = self.0.get(label).and_then(|values| values.get(value));
        let found = found.into_iter().flatten();
        let found = found.filter_map(|key| all.get_key_value(key));
        found.filter(fits).collect()
    }
}

/// What is wrong with Destinations: a VRF that is not there, or is itself not in effect.
pub(super) fn problems(snapshot: &Snapshot, lowered: &Lowered) -> Vec<Problem> {
    let problem = |(key, destination): (&Key, &Destination)| {
        let vrf = Key::named(destination.spec.vrf_ref.as_ref()?);
        if lowered.vrfs.contains_key(&vrf) {
            return None;
        }
        let target = ObjectRef {
            kind: Kind::Vrf,
            key: vrf,
        };
        let subject = ObjectRef {
            kind: Kind::Destination,
            key: key.clone(),
        };
        Some(Problem::new(
            subject,
            "spec.vrfRef",
            snapshot.missing(target),
        ))
    };
    snapshot.destinations.iter().filter_map(problem).collect()
}

/// What a selector of Destinations reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reach {
    /// The VRFs, by name, each with what can be reached in it.
    pub(super) vrfs: BTreeMap<VrfName, ReachedVrf>,
    /// The Destinations, by name.
    pub(super) matched: Vec<MatchedDestination>,
}

/// A VRF that is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReachedVrf {
    pub(super) vni: Vni,
    pub(super) route_target: RouteTarget,
    /// Prefixes behind it, in the order in which they are imported.
    pub(super) prefixes: Vec<Prefix>,
}

/// Resolves a selector. `None` when something it needs is missing or broken: the problems say what.
pub(super) fn resolve(
    snapshot: &Snapshot,
    lowered: &Lowered,
    subject: &ObjectRef,
    selector: &LabelSelector,
    problems: &mut Vec<Problem>,
) -> Option<Reach> {
    let mut report = |subject: &ObjectRef, field: &str, kind| {
        problems.push(Problem::new(subject.clone(), field, kind));
    };
    if let Err(error) = selector.check() {
        let kind = problem::Kind::InvalidSelector(error);
        report(subject, "spec.destinations", kind);
        return None;
    }
    let mut reach = Reach::default();
    let mut complete = true;
    let mut behind: BTreeMap<Prefix, (&VrfName, &Key)> = BTreeMap::new();
    for (key, destination) in lowered.destinations.select(snapshot, selector) {
        let Some(vrf_ref) = &destination.spec.vrf_ref else {
            let name = &key.name;
            let what = format!(
                "Destination {name} has a nextHop, which only an attachment to a device of the node uses"
            );
            report(
                subject,
                "spec.destinations",
                problem::Kind::NoEffect { what },
            );
            continue;
        };
        let vrf = lowered.vrfs.get(&Key::named(vrf_ref));
        reach.matched.push(MatchedDestination {
            name: key.name.clone(),
            vrf: vrf.map(|vrf| vrf.name.clone()),
        });
        let Some(vrf) = vrf else {
            complete = false;
            let target = ObjectRef {
                kind: Kind::Destination,
                key: key.clone(),
            };
            let kind = problem::Kind::ReferenceNotInEffect { target };
            report(subject, "spec.destinations", kind);
            continue;
        };
        let reached = reach
            .vrfs
            .entry(vrf.name.clone())
            .or_insert_with(|| ReachedVrf {
                vni: vrf.vni,
                route_target: vrf.route_target,
                prefixes: Vec::new(),
            });
        for prefix in &destination.spec.prefixes {
            let (other_vrf, other) = *behind.entry(*prefix).or_insert((&vrf.name, key));
            if *other_vrf != vrf.name {
                complete = false;
                let destination = |key: &Key| {
                    let (kind, key) = (Kind::Destination, key.clone());
                    Box::new(ObjectRef { kind, key })
                };
                let kind = problem::Kind::PrefixInTwoVrfs {
                    prefix: prefix.to_string(),
                    vrf: vrf.name.to_string(),
                    destination: destination(key),
                    other_vrf: other_vrf.to_string(),
                    other: destination(other),
                };
                report(subject, "spec.destinations", kind);
            }
            if !reached.prefixes.contains(prefix) {
                reached.prefixes.push(*prefix);
            }
        }
    }
    if reach.vrfs.is_empty() && complete {
        report(subject, "spec.destinations", problem::Kind::NoDestination);
    }
    (complete && !reach.vrfs.is_empty()).then_some(reach)
}
