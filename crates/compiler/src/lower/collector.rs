//! A `Collector` becomes its mirror VRF, on every node that has a fabric, and a mirror target. Tunnels are made only where something
//! is mirrored.

use api::{
    selvedge::ImportMatch,
    tcaas::{CollectorSpec, MirrorTargetSpec, VrfRouteConfigurationSpec},
    value::VrfName,
};

use super::{
    intent::{Author, Intent, LoweredIntent, Terms},
    low_level::LowLevelObject,
    reach::ReachedVrf,
    routing::{Exports, generated_name, routing},
    scope::Scope,
    values,
};
use crate::{
    allocate::share::Claim,
    problem::{self, Problem},
    snapshot::{Key, Kind, ObjectRef, kinds},
    view::{View, reference},
};

impl Intent for kinds::Collector {
    const VRF_FIELD: &'static str = "spec.mirrorVRF.name";

    fn terms(spec: &CollectorSpec) -> Terms<'_> {
        Terms::naming([ObjectRef::named(Kind::Vrf, &spec.mirror_vrf.name)])
    }

    fn scope_field(scope: &Scope) -> &'static str {
        match scope {
            Scope::Vrf(_) => Self::VRF_FIELD,
            Scope::Tunnel { .. } => "spec.address",
            _ => "spec",
        }
    }

    fn claim(_view: &View<'_>, _subject: &ObjectRef) -> Option<Claim> {
        None
    }

    fn is_needed(object: &LowLevelObject) -> bool {
        // What nodes report of tunnels is counted tunnel by tunnel.
        matches!(object, LowLevelObject::MirrorTarget(_))
    }

    fn lower(
        view: &View<'_>,
        author: &Author<'_>,
        spec: &CollectorSpec,
        problems: &mut Vec<Problem>,
    ) -> Option<LoweredIntent> {
        if let Some(kind) = values::collector(spec.address) {
            problems.push(author.problem("spec.address", kind));
            return None;
        }
        let key = Key::named(&spec.mirror_vrf.name);
        let vrf = reference(Kind::Vrf, &key);
        let mut report = |kind| problems.push(author.problem("spec.mirrorVRF.name", kind));
        let Some(object) = view.spec::<kinds::Vrf>(&key) else {
            report(view.missing(vrf));
            return None;
        };
        let [loopback] = object.loopbacks.as_slice() else {
            let loopbacks = object.loopbacks.len();
            report(problem::Kind::MirrorVrfLoopbacks { vrf, loopbacks });
            return None;
        };
        let Some(resolved) = view.vrf(&key) else {
            // What is wrong with it is said on the VRF.
            report(problem::Kind::ReferenceNotInEffect { target: vrf });
            return None;
        };
        let reached = ReachedVrf {
            vni: resolved.vni,
            route_target: resolved.route_target,
            prefixes: Vec::new(),
            import_match: ImportMatch::Exact,
            loopbacks: vec![loopback.clone()],
        };
        let target = MirrorTargetSpec {
            kind: spec.protocol,
            destination_ip: spec.address,
            key: spec.key,
            destination_vrf: resolved.name.clone(),
            source_loopback: loopback.name.clone(),
        };
        let name = generated_name(author.subject, resolved.name.as_str());
        // The tunnel's name is made of the target's, so that both are the collector's.
        let target_name = author.subject.key.name.to_string();
        Some(LoweredIntent {
            objects: vec![
                author.object(name, mirror_vrf(&resolved.name, &reached)),
                author.object(target_name, target),
            ],
            ..LoweredIntent::default()
        })
    }
}

/// The mirror VRF: it takes in what the fabric knows, the way to the collector among it, and announces the tunnels' sources alone.
fn mirror_vrf(vrf: &VrfName, reached: &ReachedVrf) -> VrfRouteConfigurationSpec {
    let exports = Exports {
        items: Vec::new(),
        aggregate: Vec::new(),
        communities: &[],
        node_selector: None,
    };
    routing(vrf, reached, &[], exports)
}
