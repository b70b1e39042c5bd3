//! Statuses of low-level objects, people's own and generated ones alike.

use std::{collections::BTreeMap, sync::Arc};

use api::{
    meta::{ConditionStatus, Conditions},
    tcaas::{BgpPeeringStatus, Layer2NetworkConfigurationStatus, VrfRouteConfigurationStatus},
};

use super::{Fold, Statuses};
use crate::{
    lower::LowLevel,
    node::Shared,
    snapshot::{Key, Kind, Meta, ObjectRef},
};

impl Fold<'_> {
    /// Statuses of the low-level objects that exist. A generated one that is not made any more is about to go and has none.
    pub(super) fn low_level(&self, statuses: &mut Statuses) {
        let lowered = &self.compilation.lowered;
        for (key, object) in &self.snapshot.layer2_network_configurations {
            let meta = &object.meta;
            let made = lowered.layer2.get(&key.name);
            let kind = Kind::Layer2NetworkConfiguration;
            let Some(source) = whose(made, (kind, key), meta) else {
                continue;
            };
            let vlan = made.map_or(object.spec.id, |made| made.spec.id);
            let on_node = |shared: &Shared| {
                let has_vlan = shared.layer2s.contains_key(&vlan.to_string())
                    || shared.host_vlans.values().any(|host| host.vlan == vlan);
                has_vlan && shared.segments.contains(&key.name)
            };
            let status = Layer2NetworkConfigurationStatus {
                observed_generation: meta.generation,
                node_addresses: if source.kind == kind {
                    self.node_addresses(&source)
                } else {
                    BTreeMap::new()
                },
                conditions: self.of_low_level(&source, (&key.name, on_node), meta),
            };
            statuses.put(kind, key, &status);
        }
        for (key, object) in &self.snapshot.vrf_route_configurations {
            let meta = &object.meta;
            let made = lowered.vrf.get(&key.name);
            let kind = Kind::VrfRouteConfiguration;
            let Some(source) = whose(made, (kind, key), meta) else {
                continue;
            };
            let vrf = made
                .map_or(&object.spec.vrf, |made| &made.spec.vrf)
                .as_str();
            let on_node = |shared: &Shared| {
                let mut cluster = shared.cluster_vrf.iter();
                let has_vrf = shared.fabric_vrfs.contains_key(vrf)
                    || cluster.any(|cluster| cluster.devices.vrf.as_str() == vrf);
                has_vrf && shared.routing.contains(&key.name)
            };
            let status = VrfRouteConfigurationStatus {
                observed_generation: meta.generation,
                conditions: self.of_low_level(&source, (&key.name, on_node), meta),
            };
            statuses.put(kind, key, &status);
        }
        for (key, object) in &self.snapshot.bgp_peerings {
            let made = lowered.bgp.get(&key.name);
            let kind = Kind::BgpPeering;
            let Some(source) = whose(made, (kind, key), &object.meta) else {
                continue;
            };
            let on_node = |shared: &Shared| shared.peerings.contains(&key.name);
            let status = BgpPeeringStatus {
                observed_generation: object.meta.generation,
                conditions: self.of_low_level(&source, (&key.name, on_node), &object.meta),
            };
            statuses.put(kind, key, &status);
        }
    }

    /// Conditions of a low-level object. What is wrong with a generated one is wrong with its intent.
    fn of_low_level(
        &self,
        source: &ObjectRef,
        (name, on_node): (&str, impl Fn(&Shared) -> bool),
        meta: &Meta,
    ) -> Conditions {
        let resolved = self.resolved(source, meta);
        let applied = self.applied([name].into_iter(), on_node, meta);
        let mut overall = if resolved.status == ConditionStatus::True {
            applied.clone()
        } else {
            resolved.clone()
        };
        "Ready".clone_into(&mut overall.kind);
        let mut conditions = vec![applied, overall, resolved];
        conditions.extend(self.steering(source, meta));
        conditions.extend(self.interface_not_found(source, meta));
        Conditions(conditions)
    }
}

/// Whose problems a low-level object has: those of the intent that it is generated from, or its own, also where an intent keeps it out.
/// Nobody's, where it is generated and not made any more.
pub(super) fn whose<S>(
    made: Option<&Arc<LowLevel<S>>>,
    (kind, key): (Kind, &Key),
    meta: &Meta,
) -> Option<ObjectRef> {
    let own = || {
        let key = key.clone();
        meta.owner.is_none().then_some(ObjectRef { kind, key })
    };
    made.map(|made| made.source.clone()).or_else(own)
}
