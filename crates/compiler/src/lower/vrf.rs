//! What a `VRF` comes to: its name with a VNI and a route target, of its own or from the settings.

use std::collections::BTreeMap;

use api::{
    selvedge::SettingsSpec,
    tcaas::VrfSpec,
    value::{RouteTarget, Vni, VrfName},
};

use crate::{
    names,
    problem::{self, Problem},
    snapshot::{Key, Kind, ObjectRef, Snapshot, by_age},
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
}

/// Resolves every VRF that can be. What is wrong with the others is said once, on them.
///
/// A name stands for one VNI and one route target, and a VNI for one name; the older object is served first.
pub(super) fn resolve(
    snapshot: &Snapshot,
    settings: &SettingsSpec,
    problems: &mut Vec<Problem>,
) -> BTreeMap<Key, ResolvedVrf> {
    let mut resolved: BTreeMap<Key, ResolvedVrf> = BTreeMap::new();
    let mut names: BTreeMap<VrfName, (ResolvedVrf, ObjectRef)> = BTreeMap::new();
    let mut vnis: BTreeMap<Vni, (VrfName, ObjectRef)> = BTreeMap::new();
    for (key, object) in by_age(&snapshot.vrfs) {
        let subject = ObjectRef {
            kind: Kind::Vrf,
            key: key.clone(),
        };
        let checked = complete(settings, &object.spec).and_then(|vrf| {
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
                resolved.insert(key.clone(), vrf);
            }
            Err((field, kind)) => problems.push(Problem::new(subject, field, kind)),
        }
    }
    resolved
}

fn complete(
    settings: &SettingsSpec,
    spec: &VrfSpec,
) -> Result<ResolvedVrf, (&'static str, problem::Kind)> {
    let name = spec.vrf.clone();
    if let Some(by) = names::reserved_vrf(settings, &name) {
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
