//! What a `VRF` comes to: its name with a VNI and a route target, of its own or from the settings.

use std::{collections::BTreeMap, sync::Arc};

use api::{
    selvedge::SettingsSpec,
    tcaas::{VrfLoopback, VrfSpec},
    value::{RouteTarget, Vni, VrfName},
};

use super::network;
use crate::{
    memo::Query,
    names,
    problem::{self, Problem},
    snapshot::{Key, Kind, ObjectRef, kinds},
    view::{Aged, View, reference},
};

/// A VRF that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedVrf {
    /// Its name on nodes.
    pub name: VrfName,
    /// Its VNI.
    pub vni: Vni,
    /// Its route target.
    pub route_target: RouteTarget,
    /// Its loopbacks, which every node that has it gets.
    pub loopbacks: Vec<VrfLoopback>,
}

/// VRFs by what they are called in the cluster.
pub type ResolvedVrfs = BTreeMap<Key, Arc<ResolvedVrf>>;

/// Every VRF that can be used, and what is wrong with the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resolution {
    pub(crate) vrfs: Arc<ResolvedVrfs>,
    pub(crate) problems: Arc<Vec<Problem>>,
}

/// All VRFs.
///
/// A name has one VNI and one route target, and a VNI one name; the object that uses it already is served first, then the older object.
pub(crate) struct Resolved;
impl Query for Resolved {
    type Key = ();
    type Value = Resolution;
    fn compute(view: &View<'_>, (): &()) -> Resolution {
        let settings = view.settings();
        let mut resolved = ResolvedVrfs::new();
        let mut problems = Vec::new();
        let mut names: BTreeMap<VrfName, (ResolvedVrf, ObjectRef)> = BTreeMap::new();
        let mut vnis: BTreeMap<Vni, (VrfName, ObjectRef)> = BTreeMap::new();
        let mut targets: BTreeMap<RouteTarget, (VrfName, ObjectRef)> = BTreeMap::new();
        let mut objects = view.by_age::<kinds::Vrf>();
        let runs = |object: &Aged<kinds::Vrf>| {
            let status = view.status::<kinds::Vrf>(&object.key);
            let vrf = complete(&settings, &object.spec);
            status.is_some_and(|status| {
                vrf.is_ok_and(|vrf| {
                    (status.vni, status.route_target) == (Some(vrf.vni), Some(vrf.route_target))
                })
            })
        };
        objects.sort_by_cached_key(|object| !runs(object));
        for object in objects {
            let subject = reference(Kind::Vrf, &object.key);
            let runs = runs(&object);
            let checked = complete(&settings, &object.spec).and_then(|vrf| {
                let segment = network::vni_held_by_another(view, vrf.vni, &subject);
                let cluster = names::settings_vnis(&settings).any(|own| own == vrf.vni);
                let by = segment.or_else(|| cluster.then(settings_object));
                if let Some(by) = by.filter(|_| !runs) {
                    let kind = problem::Kind::VniTaken {
                        vni: vrf.vni,
                        by,
                        node: None,
                    };
                    return Err(("spec.vni", kind));
                }
                let (first, by) = names
                    .entry(vrf.name.clone())
                    .or_insert_with(|| (vrf.clone(), subject.clone()));
                agree(first, &vrf, by)?;
                let (holder, by) = vnis
                    .entry(vrf.vni)
                    .or_insert_with(|| (vrf.name.clone(), subject.clone()));
                if *holder == vrf.name {
                    return Ok(vrf);
                }
                let kind = problem::Kind::VniTaken {
                    vni: vrf.vni,
                    by: by.clone(),
                    node: None,
                };
                Err(("spec.vni", kind))
            });
            match checked {
                Ok(vrf) => {
                    let holder = targets.entry(vrf.route_target);
                    let (name, other) =
                        holder.or_insert_with(|| (vrf.name.clone(), subject.clone()));
                    if *name != vrf.name {
                        let kind = problem::Kind::RouteTargetShared {
                            target: vrf.route_target.to_string(),
                            other: other.clone(),
                        };
                        problems.push(Problem::new(subject, "spec.routeTarget", kind));
                    }
                    resolved.insert(Key::clone(&object.key), Arc::new(vrf));
                }
                Err((field, kind)) => problems.push(Problem::new(subject, field, kind)),
            }
        }
        Resolution {
            vrfs: Arc::new(resolved),
            problems: Arc::new(problems),
        }
    }
}

fn settings_object() -> ObjectRef {
    ObjectRef::named(Kind::Settings, "default")
}

/// What is wrong with the name and the VNI of the cluster VRF: a VRF or Network that runs them keeps them.
pub(crate) fn cluster_vrf(view: &View<'_>) -> Vec<Problem> {
    let settings = view.settings();
    let cluster = &settings.cluster_vrf;
    let mut problems = Vec::new();
    let mut report = |field, kind| problems.push(Problem::new(settings_object(), field, kind));
    if let Some(by) = names::of_no_vrf(cluster.name.as_str()) {
        let name = cluster.name.to_string();
        report(
            "spec.clusterVRF.name",
            problem::Kind::VrfNameTaken { name, by },
        );
    }
    for key in view.keys::<kinds::Vrf>().iter() {
        let status = view.status::<kinds::Vrf>(key);
        let Some(running) = status.as_ref().and_then(|status| status.in_effect.as_ref()) else {
            continue;
        };
        let by = reference(Kind::Vrf, key);
        if running.vrf == cluster.name {
            let message = format!(
                "{by} already uses {:?}: choose another name",
                cluster.name.as_str()
            );
            report(
                "spec.clusterVRF.name",
                problem::Kind::RuleBroken { message },
            );
        }
        let vni = status.and_then(|status| status.vni);
        if let Some(vni) = cluster.vni.filter(|_| cluster.vni == vni) {
            let node = None;
            report(
                "spec.clusterVRF.vni",
                problem::Kind::VniTaken { vni, by, node },
            );
        }
    }
    if let Some(vni) = cluster.vni {
        let by = network::vni_held_by_another(view, vni, &settings_object());
        let taken = by.map(|by| problem::Kind::VniTaken {
            vni,
            by,
            node: None,
        });
        if let Some(kind) = taken {
            report("spec.clusterVRF.vni", kind);
        }
    }
    problems
}

/// Numbers of VRFs in the settings that are not in effect: a VRF says otherwise, or another VRF has the VNI.
pub(crate) fn of_settings(view: &View<'_>) -> Vec<Problem> {
    let settings = view.settings();
    if settings.vrfs.is_empty() {
        return Vec::new();
    }
    let resolved = view.get::<Resolved>(&()).vrfs;
    let mut problems = Vec::new();
    let mut note = |field: String, what: String| {
        let kind = problem::Kind::NoEffect { what };
        problems.push(Problem::new(settings_object(), field, kind));
    };
    for (name, entry) in &settings.vrfs {
        let field = |what: &str| format!("spec.vrfs.{name}.{what}");
        let says_otherwise = |key: &Key, what: &str, value: String| {
            format!(
                "VRF {key} sets {what} {value} for {:?}, which takes precedence",
                name.as_str()
            )
        };
        let mut vrfs = resolved.iter();
        if let Some((key, vrf)) = vrfs.find(|(_, vrf)| vrf.name == *name) {
            if entry.vni.is_some_and(|vni| vni != vrf.vni) {
                note(
                    field("vni"),
                    says_otherwise(key, "vni", vrf.vni.to_string()),
                );
            }
            if entry
                .route_target
                .is_some_and(|target| target != vrf.route_target)
            {
                let value = vrf.route_target.to_string();
                note(
                    field("routeTarget"),
                    says_otherwise(key, "routeTarget", value),
                );
            }
            continue;
        }
        let mut vrfs = resolved.iter();
        let other = vrfs.find(|(_, vrf)| entry.vni == Some(vrf.vni));
        if let Some((key, vrf)) = other {
            let what = format!(
                "VNI {} is that of VRF {key}, so VRF {:?} cannot have it",
                vrf.vni,
                name.as_str()
            );
            note(field("vni"), what);
        }
    }
    problems
}

/// One VRF: most readers need no other.
pub(crate) struct ResolvedOf;
impl Query for ResolvedOf {
    type Key = Key;
    type Value = Option<Arc<ResolvedVrf>>;
    fn compute(view: &View<'_>, key: &Key) -> Option<Arc<ResolvedVrf>> {
        view.get::<Resolved>(&()).vrfs.get(key).cloned()
    }
}

fn complete(
    settings: &SettingsSpec,
    spec: &VrfSpec,
) -> Result<ResolvedVrf, (&'static str, problem::Kind)> {
    let name = spec.vrf.clone();
    if let Some(by) = names::reserved_vrf(settings, name.as_str()) {
        let name = name.to_string();
        return Err(("spec.vrf", problem::Kind::VrfNameTaken { name, by }));
    }
    let default = settings.vrfs.get(&name);
    let lacks = |field, what| {
        let vrf = spec.vrf.to_string();
        (field, problem::Kind::VrfIncomplete { vrf, what })
    };
    let vni = spec.vni.or_else(|| default?.vni);
    let vni = vni.ok_or_else(|| lacks("spec.vni", "vni"))?;
    let route_target = spec.route_target.or_else(|| default?.route_target);
    let route_target = route_target.ok_or_else(|| lacks("spec.routeTarget", "routeTarget"))?;
    Ok(ResolvedVrf {
        name,
        vni,
        route_target,
        loopbacks: spec.loopbacks.clone(),
    })
}

fn agree(
    first: &ResolvedVrf,
    vrf: &ResolvedVrf,
    by: &ObjectRef,
) -> Result<(), (&'static str, problem::Kind)> {
    let disagrees = |field, what| {
        let kind = problem::Kind::VrfDisagrees {
            vrf: vrf.name.to_string(),
            what,
            other: by.clone(),
        };
        Err((field, kind))
    };
    if first.vni != vrf.vni {
        return disagrees("spec.vni", "vni");
    }
    if first.route_target != vrf.route_target {
        return disagrees("spec.routeTarget", "routeTarget");
    }
    Ok(())
}
