//! What a selector of Destinations reaches: VRFs with their prefixes.

use std::collections::BTreeMap;

use api::{
    meta::LabelSelector,
    tcaas::MatchedDestination,
    value::{Prefix, RouteTarget, Vni, VrfName},
};

use super::vrf::ResolvedVrf;
use crate::{
    problem::{self, Problem},
    snapshot::{Key, Kind, ObjectRef, Snapshot},
};

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
    vrfs: &BTreeMap<Key, ResolvedVrf>,
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
    let selected = snapshot
        .destinations
        .iter()
        .filter(|(_, destination)| selector.matches(&destination.meta.labels));
    for (key, destination) in selected {
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
        let vrf = vrfs.get(&Key::named(vrf_ref));
        reach.matched.push(MatchedDestination {
            name: key.name.clone(),
            vrf: vrf.map(|vrf| vrf.name.clone()),
        });
        let Some(vrf) = vrf else {
            complete = false;
            // What is wrong with a VRF that exists is said on the VRF.
            if !snapshot.vrfs.contains_key(&Key::named(vrf_ref)) {
                let kind = snapshot.missing(ObjectRef::named(Kind::Vrf, vrf_ref));
                let destination = ObjectRef {
                    kind: Kind::Destination,
                    key: key.clone(),
                };
                report(&destination, "spec.vrfRef", kind);
            }
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
