//! Loopbacks of VRFs whose addresses come from pools.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{meta::TypedObjectReference, tcaas::VrfRouteConfigurationSpec, value::IfName};

use super::by_age;
use crate::{
    lower::{LowLevel, scope::running},
    names,
    node::{Facet, Facets},
    problem::{self, Problem},
    snapshot::{Kind, ObjectRef, kinds},
    view::{View, reference},
};

/// A loopback of a VRF, as the objects of the VRF have it.
pub(super) struct Loopback {
    pub(super) pool: TypedObjectReference,
    /// The oldest object that has it.
    pub(super) first: WantedBy,
    /// The names of all that have it.
    pub(super) objects: BTreeSet<String>,
    /// Those of them that give it to every node which has them. The VRF of a Collector has it only where a tunnel starts on it.
    pub(super) on_all_nodes: BTreeSet<String>,
}

/// Routing that wants a loopback, and the loopback's place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WantedBy {
    object: Arc<LowLevel<VrfRouteConfigurationSpec>>,
    place: usize,
}

/// Loopbacks by VRF and name.
pub(super) type Loopbacks = BTreeMap<(String, IfName), Loopback>;

/// The loopbacks of all VRFs. A name is one device on a node: of two VRFs that want it, the one that runs it gets it, then the older object's.
pub(super) fn loopbacks(view: &View<'_>, problems: &mut Vec<Problem>) -> Loopbacks {
    let mut loopbacks = Loopbacks::new();
    let mut homes: BTreeMap<IfName, (String, ObjectRef)> = BTreeMap::new();
    let mut objects = by_age::<VrfRouteConfigurationSpec>(view, &Facet::Loopbacks);
    // An object that runs its loopbacks comes before another that wants them.
    objects.sort_by_cached_key(|object| {
        let before = running::<kinds::VrfRouteConfiguration>(view, object);
        before.is_none_or(|before| before.loopbacks != object.spec.loopbacks)
    });
    for object in objects {
        for (place, loopback) in object.spec.loopbacks.iter().enumerate() {
            let vrf = object.spec.vrf.to_string();
            let device = &loopback.name;
            let home = homes.entry(device.clone());
            let (home, holder) = home.or_insert_with(|| (vrf.clone(), object.source.clone()));
            let entry = loopbacks.entry((vrf.clone(), device.clone()));
            let entry = entry.or_insert_with(|| Loopback {
                pool: loopback.pool_ref.clone(),
                first: WantedBy {
                    object: Arc::clone(&object),
                    place,
                },
                objects: BTreeSet::new(),
                on_all_nodes: BTreeSet::new(),
            });
            let is_vrf = || view.has::<Facets>(&Facet::Vrf(device.to_string()));
            let is_trunk = || view.settings().trunk.name == *device;
            let wrong = if names::reserved_device(device).is_some() || is_vrf() || is_trunk() {
                let loopback = device.to_string();
                Some(("name", problem::Kind::LoopbackNameReserved { loopback }))
            } else if *home != vrf {
                let (name, by) = (device.to_string(), holder.clone());
                let node = None;
                Some(("name", problem::Kind::DeviceNameTaken { name, by, node }))
            } else if loopback.pool_ref.api_group.is_none() {
                let (kind, name) = (
                    loopback.pool_ref.kind.clone(),
                    loopback.pool_ref.name.clone(),
                );
                Some(("poolRef", problem::Kind::NoPool { kind, name }))
            } else if entry.pool != loopback.pool_ref {
                let (loopback, other) = (device.to_string(), entry.first.object.source.clone());
                let kind = problem::Kind::LoopbackDisagrees { loopback, other };
                Some(("poolRef", kind))
            } else {
                entry.objects.insert(object.name.clone());
                // A TrafficMirror has it from a Collector that is gone.
                let is_for_tunnels =
                    matches!(object.source.kind, Kind::Collector | Kind::TrafficMirror);
                if !is_for_tunnels {
                    entry.on_all_nodes.insert(object.name.clone());
                }
                None
            };
            problems.extend(wrong.map(|(part, kind)| {
                let object = Arc::clone(&object);
                let wanted_by = WantedBy { object, place };
                wanted_by.problem(view, part, kind)
            }));
        }
    }
    loopbacks.retain(|_, loopback| !loopback.objects.is_empty());
    loopbacks
}

impl WantedBy {
    /// A problem with a part of the loopback, on the object whose author can correct it.
    pub(super) fn problem(&self, view: &View<'_>, part: &str, kind: problem::Kind) -> Problem {
        let (subject, field) = origin(view, &self.object, self.place, part);
        Problem::new(subject, field, kind)
    }
}

/// The object whose author can correct a loopback of routing, and the field: the routing itself, the VRF that it was made from, or, where a
/// Collector made it, the reference to that VRF.
fn origin(
    view: &View<'_>,
    object: &LowLevel<VrfRouteConfigurationSpec>,
    place: usize,
    part: &str,
) -> (ObjectRef, String) {
    if !object.is_generated() {
        return (
            object.source.clone(),
            format!("spec.loopbacks[{place}].{part}"),
        );
    }
    if object.source.kind == Kind::Collector {
        return (object.source.clone(), "spec.mirrorVRF.name".to_owned());
    }
    if object.source.kind == Kind::TrafficMirror {
        return (object.source.clone(), "spec.collector".to_owned());
    }
    let loopback = object.spec.loopbacks.get(place);
    let vrfs = view.by_age::<kinds::Vrf>();
    let mut origins = vrfs.iter().filter_map(|vrf| {
        let mut own = vrf.spec.loopbacks.iter();
        let place = own.position(|own| Some(own) == loopback)?;
        (vrf.spec.vrf == object.spec.vrf).then_some((vrf, place))
    });
    match origins.next() {
        Some((vrf, place)) => {
            let field = format!("spec.loopbacks[{place}].{part}");
            (reference(Kind::Vrf, &vrf.key), field)
        }
        // The VRF has changed since, and the intent keeps what it became last.
        None => (object.source.clone(), "spec.destinations".to_owned()),
    }
}
