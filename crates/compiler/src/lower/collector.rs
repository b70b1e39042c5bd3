//! A `Collector` becomes its mirror VRF, on every node that has a fabric, and a mirror target. Tunnels are made only where something
//! is mirrored.

use api::{
    tcaas::{CollectorSpec, MirrorTargetSpec, VrfLoopback, VrfRouteConfigurationSpec},
    value::VrfName,
};

use super::{
    Lowered, Made,
    reach::ReachedVrf,
    routing::{Exports, generated_name, routing},
};
use crate::{
    problem::{self, Problem},
    snapshot::{Key, Kind, ObjectRef, Snapshot},
};

/// What the collector becomes; `None` when something is wrong, with the reason in `problems`.
pub(super) fn lower(
    snapshot: &Snapshot,
    lowered: &Lowered,
    subject: &ObjectRef,
    spec: &CollectorSpec,
    problems: &mut Vec<Problem>,
) -> Option<Made> {
    let key = Key::named(&spec.mirror_vrf.name);
    let vrf = ObjectRef {
        kind: Kind::Vrf,
        key: key.clone(),
    };
    let mut report = |kind| {
        let field = "spec.mirrorVRF.name";
        problems.push(Problem::new(subject.clone(), field, kind));
    };
    let Some(object) = snapshot.vrfs.get(&key) else {
        report(snapshot.missing(vrf));
        return None;
    };
    let [loopback] = object.spec.loopbacks.as_slice() else {
        let loopbacks = object.spec.loopbacks.len();
        report(problem::Kind::MirrorVrfLoopbacks { vrf, loopbacks });
        return None;
    };
    let Some(resolved) = lowered.vrfs.get(&key) else {
        // What is wrong with it is said on the VRF.
        report(problem::Kind::ReferenceNotInEffect { target: vrf });
        return None;
    };
    let reached = ReachedVrf {
        vni: resolved.vni,
        route_target: resolved.route_target,
        prefixes: Vec::new(),
    };
    let target = MirrorTargetSpec {
        kind: spec.protocol,
        destination_ip: spec.address,
        key: spec.key,
        destination_vrf: resolved.name.clone(),
        source_loopback: loopback.name.clone(),
    };
    let name = generated_name(subject, resolved.name.as_str());
    Some(Made {
        vrf: vec![(name, mirror_vrf(&resolved.name, &reached, loopback))],
        // The tunnel's name is made of the target's, so that both are the collector's.
        mirror_targets: vec![(subject.key.name.clone(), target)],
        ..Made::default()
    })
}

/// The mirror VRF: it takes in what the fabric knows, the way to the collector among it, and announces the tunnels' sources alone.
fn mirror_vrf(
    vrf: &VrfName,
    reached: &ReachedVrf,
    loopback: &VrfLoopback,
) -> VrfRouteConfigurationSpec {
    let exports = Exports {
        items: Vec::new(),
        aggregate: Vec::new(),
        communities: &[],
        node_selector: None,
    };
    VrfRouteConfigurationSpec {
        loopbacks: vec![loopback.clone()],
        ..routing(vrf, reached, &[], exports)
    }
}
