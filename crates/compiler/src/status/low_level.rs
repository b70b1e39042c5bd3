//! Statuses of low-level objects, people's own and generated ones alike.

use std::collections::BTreeMap;

use api::{
    meta::{ConditionStatus, Conditions},
    tcaas::{BgpPeeringStatus, Layer2NetworkConfigurationStatus, VrfRouteConfigurationStatus},
};

use super::{Fold, Statuses};
use crate::{
    lower::LowLevel,
    node::Shared,
    snapshot::{Kind, Meta, ObjectRef},
};

impl Fold<'_> {
    /// Statuses of the low-level objects that exist. One that is not made any more is about to go and has none.
    pub(super) fn low_level(&self, statuses: &mut Statuses) {
        let lowered = &self.compilation.lowered;
        for (key, object) in &self.snapshot.layer2_network_configurations {
            let Some(made) = lowered.layer2.get(&key.name) else {
                continue;
            };
            let (meta, vlan) = (&object.meta, made.spec.id);
            let on_node = |shared: &Shared| {
                let has_vlan = shared.layer2s.contains_key(&vlan.to_string())
                    || shared.host_vlans.values().any(|host| host.vlan == vlan);
                has_vlan && shared.segments.contains(&key.name)
            };
            let status = Layer2NetworkConfigurationStatus {
                observed_generation: meta.generation,
                node_addresses: if made.is_generated() {
                    BTreeMap::new()
                } else {
                    self.node_addresses(&made.source)
                },
                conditions: self.of_low_level(made, on_node, meta),
            };
            statuses.put(Kind::Layer2NetworkConfiguration, key, &status);
        }
        for (key, object) in &self.snapshot.vrf_route_configurations {
            let Some(made) = lowered.vrf.get(&key.name) else {
                continue;
            };
            let (meta, vrf) = (&object.meta, made.spec.vrf.as_str());
            let on_node = |shared: &Shared| {
                let mut cluster = shared.cluster_vrf.iter();
                let has_vrf = shared.fabric_vrfs.contains_key(vrf)
                    || cluster.any(|cluster| cluster.devices.vrf.as_str() == vrf);
                has_vrf && shared.routing.contains(&key.name)
            };
            let status = VrfRouteConfigurationStatus {
                observed_generation: meta.generation,
                conditions: self.of_low_level(made, on_node, meta),
            };
            statuses.put(Kind::VrfRouteConfiguration, key, &status);
        }
        for (key, object) in &self.snapshot.bgp_peerings {
            let Some(made) = lowered.bgp.get(&key.name) else {
                continue;
            };
            let on_node = |shared: &Shared| shared.peerings.contains(&key.name);
            let status = BgpPeeringStatus {
                observed_generation: object.meta.generation,
                conditions: self.of_low_level(made, on_node, &object.meta),
            };
            statuses.put(Kind::BgpPeering, key, &status);
        }
    }

    /// Conditions of a low-level object. What is wrong with a generated one is wrong with its intent.
    fn of_low_level<S>(
        &self,
        object: &LowLevel<S>,
        on_node: impl Fn(&Shared) -> bool,
        meta: &Meta,
    ) -> Conditions {
        let source: &ObjectRef = &object.source;
        let resolved = self.resolved(source, meta);
        let applied = self.applied(on_node, meta);
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
