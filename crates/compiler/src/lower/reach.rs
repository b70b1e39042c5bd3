//! What a selector of Destinations reaches: VRFs with their prefixes.

use std::collections::BTreeMap;

use api::{
    meta::LabelSelector,
    selvedge::SettingsSpec,
    tcaas::MatchedDestination,
    value::{Prefix, RouteTarget, Vni, VrfName},
};

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
    settings: &SettingsSpec,
    subject: &ObjectRef,
    selector: &LabelSelector,
    problems: &mut Vec<Problem>,
) -> Option<Reach> {
    let mut report = |field: &str, kind| problems.push(Problem::new(subject.clone(), field, kind));
    if let Err(error) = selector.check() {
        report("spec.destinations", problem::Kind::InvalidSelector(error));
        return None;
    }
    let mut reach = Reach::default();
    let mut complete = true;
    for (key, destination) in &snapshot.destinations {
        if !selector.matches(&destination.meta.labels) {
            continue;
        }
        let vrf = destination
            .spec
            .vrf_ref
            .as_ref()
            .map(|name| vrf(snapshot, settings, name));
        reach.matched.push(MatchedDestination {
            name: key.name.clone(),
            vrf: vrf
                .as_ref()
                .and_then(|vrf| vrf.as_ref().ok())
                .map(|(name, _)| name.clone()),
        });
        match vrf {
            Some(Ok((name, found))) => {
                let reached = reach.vrfs.entry(name).or_insert(found);
                for prefix in &destination.spec.prefixes {
                    if !reached.prefixes.contains(prefix) {
                        reached.prefixes.push(*prefix);
                    }
                }
            }
            // The mistake is the Destination's or the VRF's, and is reported there; here it only means waiting.
            Some(Err(kind)) => {
                let destination = ObjectRef {
                    kind: Kind::Destination,
                    key: key.clone(),
                };
                problems.push(Problem::new(destination, "spec.vrfRef", kind));
                complete = false;
            }
            None => {
                let what = format!(
                    "Destination {} has a nextHop, which an attachment to the overlay does not use",
                    key.name
                );
                problems.push(Problem::new(
                    subject.clone(),
                    "spec.destinations",
                    problem::Kind::NoEffect { what },
                ));
            }
        }
    }
    if reach.vrfs.is_empty() && complete {
        problems.push(Problem::new(
            subject.clone(),
            "spec.destinations",
            problem::Kind::NoDestination,
        ));
    }
    (complete && !reach.vrfs.is_empty()).then_some(reach)
}

/// The VRF of this object name, with what the settings add to it.
fn vrf(
    snapshot: &Snapshot,
    settings: &SettingsSpec,
    name: &str,
) -> Result<(VrfName, ReachedVrf), problem::Kind> {
    let Some(object) = snapshot.vrfs.get(&Key::named(name)) else {
        return Err(problem::Kind::MissingReference {
            target: ObjectRef::named(Kind::Vrf, name),
        });
    };
    let spec = &object.spec;
    let default = settings.vrfs.get(&spec.vrf);
    let lacks = |what| problem::Kind::VrfIncomplete {
        vrf: spec.vrf.to_string(),
        what,
    };
    let vni = spec
        .vni
        .or_else(|| default?.vni)
        .ok_or_else(|| lacks("vni"))?;
    let route_target = spec
        .route_target
        .or_else(|| default?.route_target)
        .ok_or_else(|| lacks("routeTarget"))?;
    Ok((
        spec.vrf.clone(),
        ReachedVrf {
            vni,
            route_target,
            prefixes: Vec::new(),
        },
    ))
}
