//! The VNI of each `Network` that has or needs one.

use std::collections::{BTreeMap, BTreeSet};

use api::{selvedge::SettingsSpec, value::Vni};

use super::vrf::ResolvedVrf;
use crate::{
    allocate,
    problem::{self, Problem},
    snapshot::{Key, Kind, ObjectRef, Snapshot, by_age},
};

/// The VNIs of Networks: their own, the ones they were given before, or the next of the range.
///
/// A VNI is an identity across the whole fabric: of two that claim one, the younger carries the problem.
pub(super) fn vnis(
    snapshot: &Snapshot,
    settings: &SettingsSpec,
    vrfs: &BTreeMap<Key, ResolvedVrf>,
    problems: &mut Vec<Problem>,
) -> BTreeMap<String, Vni> {
    let holder = |(key, vrf): (&Key, &ResolvedVrf)| {
        let by = ObjectRef {
            kind: Kind::Vrf,
            key: key.clone(),
        };
        (vrf.vni, by)
    };
    let mut holders: BTreeMap<Vni, ObjectRef> = vrfs.iter().map(holder).collect();
    let mut given = BTreeMap::new();
    for (key, network) in by_age(&snapshot.networks) {
        let Some(vni) = network.spec.vni else {
            continue;
        };
        let subject = ObjectRef {
            kind: Kind::Network,
            key: key.clone(),
        };
        if let Some(by) = holders.get(&vni).cloned() {
            let kind = problem::Kind::VniTaken {
                vni,
                by,
                node: None,
            };
            problems.push(Problem::new(subject, "spec.vni", kind));
            continue;
        }
        holders.insert(vni, subject);
        given.insert(key.name.clone(), vni);
    }
    from_range(snapshot, settings, &holders, &mut given, problems);
    given
}

/// Gives the networks that need a VNI and have none of their own one of the range.
fn from_range(
    snapshot: &Snapshot,
    settings: &SettingsSpec,
    holders: &BTreeMap<Vni, ObjectRef>,
    given: &mut BTreeMap<String, Vni>,
    problems: &mut Vec<Problem>,
) {
    let over_the_fabric = snapshot
        .layer2_attachments
        .values()
        .filter(|attachment| super::is_over_the_fabric(&attachment.spec));
    let attached: BTreeSet<&str> = over_the_fabric
        .map(|attachment| attachment.spec.network_ref.as_str())
        .collect();
    let mut names = BTreeSet::new();
    let mut before = BTreeMap::new();
    for (key, network) in &snapshot.networks {
        let spec = &network.spec;
        let needs_one = spec.managed && spec.vni.is_none() && spec.vlan.is_some();
        if !needs_one || !attached.contains(key.name.as_str()) {
            continue;
        }
        names.insert(key.name.as_str());
        if let Some(vni) = network.status.as_ref().and_then(|status| status.vni) {
            before.insert(key.name.clone(), vni.get());
        }
    }
    if before.len() < names.len() {
        recall(snapshot, &names, &mut before);
    }
    let as_vni = |number: u32| Vni::try_from(i64::from(number)).ok();
    let free = |number: &u32| as_vni(*number).is_some_and(|vni| !holders.contains_key(&vni));
    let range = settings.l2_vni_range.as_ref();
    let numbers = range.map_or_else(BTreeMap::new, |range| {
        allocate::numbers((range.first.get(), range.last.get()), &names, &before, free)
    });
    for name in names {
        if let Some(vni) = numbers.get(name).and_then(|number| as_vni(*number)) {
            given.insert(name.to_owned(), vni);
        } else {
            let subject = ObjectRef::named(Kind::Network, name);
            problems.push(Problem::new(subject, "spec.vni", problem::Kind::NoVniLeft));
        }
    }
}

/// Whether some network may need a VNI that its status does not say.
pub(super) fn has_newcomers(snapshot: &Snapshot) -> bool {
    let mut networks = snapshot.networks.values();
    networks.any(|network| {
        let status = network.status.as_ref();
        network.spec.vni.is_none() && status.is_none_or(|status| status.vni.is_none())
    })
}

/// Adds what is known of VNIs besides statuses: the one of a network whose status was lost; and, so that no newcomer gets them, those
/// of low-level objects, and those that nodes were told of and whose network is gone.
fn recall(snapshot: &Snapshot, names: &BTreeSet<&str>, before: &mut BTreeMap<String, u32>) {
    let segments = &snapshot.layer2_network_configurations;
    for object in segments.values() {
        let owner = object.meta.owner.as_ref();
        let attachment = owner.and_then(|owner| snapshot.layer2_attachments.get(&owner.key));
        let name = attachment.map(|attachment| attachment.spec.network_ref.as_str());
        let network = name.and_then(|name| snapshot.networks.get_key_value(&Key::named(name)));
        let its = network.filter(|(_, network)| network.spec.vlan == Some(object.spec.id));
        let (Some((key, _)), Some(vni)) = (its, object.spec.vni) else {
            continue;
        };
        let has_none = names.contains(key.name.as_str()) && !before.contains_key(&key.name);
        if has_none {
            before.insert(key.name.clone(), vni.get());
        }
    }
    let segments = segments.values().filter_map(|one| one.spec.vni);
    let routing = snapshot.vrf_route_configurations.values();
    let routing = routing.filter_map(|one| one.spec.vni);
    let configs = snapshot.node_network_configs.values();
    let told = configs.flat_map(|config| config.spec.layer2s.values().map(|one| one.vni));
    let mut known: BTreeSet<u32> = before.values().copied().collect();
    for vni in segments.chain(routing).chain(told).map(Vni::get) {
        if known.insert(vni) {
            // Nothing is called so: it is a place for the number alone.
            before.insert(format!("VNI {vni}"), vni);
        }
    }
}
