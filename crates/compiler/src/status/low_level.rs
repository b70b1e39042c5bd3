//! Statuses of low-level objects, hand-written and generated ones alike.

use std::collections::BTreeMap;

use api::{
    meta::Conditions,
    tcaas::{
        BgpPeeringSpec, BgpPeeringStatus, Layer2NetworkConfigurationSpec,
        Layer2NetworkConfigurationStatus, VrfRouteConfigurationSpec, VrfRouteConfigurationStatus,
    },
};

use super::{Subject, conditions, intents};
use crate::{
    lower::{LowLevel, LowLevelSpec, object},
    node::Shared,
    snapshot::{ObjectRef, kinds},
    view::View,
};

pub(super) fn layer2(
    view: &View<'_>,
    subject: &Subject<'_>,
) -> Option<Layer2NetworkConfigurationStatus> {
    let name = &subject.key().name;
    let made = object::<Layer2NetworkConfigurationSpec>(view, name);
    let source = whose(subject, made.as_deref())?;
    let stored = view.spec::<kinds::Layer2NetworkConfiguration>(subject.key())?;
    let vlan = made.as_ref().map_or(stored.id, |made| made.spec.id);
    let on_node = |shared: &Shared| {
        let has_vlan = shared.layer2s.contains_key(&vlan.to_string())
            || shared.host_vlans.values().any(|host| host.vlan == vlan);
        has_vlan && shared.segments.contains(&**name)
    };
    Some(Layer2NetworkConfigurationStatus {
        observed_generation: subject.meta.generation,
        node_addresses: if source == *subject.object {
            let made = made.map(LowLevelSpec::wrap);
            intents::node_addresses(view, &source, made.as_slice())
        } else {
            BTreeMap::new()
        },
        conditions: conditions_of(view, subject, &source, on_node),
    })
}

pub(super) fn vrf(view: &View<'_>, subject: &Subject<'_>) -> Option<VrfRouteConfigurationStatus> {
    let name = &subject.key().name;
    let made = object::<VrfRouteConfigurationSpec>(view, name);
    let source = whose(subject, made.as_deref())?;
    let stored = view.spec::<kinds::VrfRouteConfiguration>(subject.key())?;
    let vrf = made.as_ref().map_or(&stored.vrf, |made| &made.spec.vrf);
    let vrf = vrf.as_str();
    let on_node = |shared: &Shared| {
        let mut cluster = shared.cluster_vrf.iter();
        let has_vrf = shared.fabric_vrfs.contains_key(vrf)
            || cluster.any(|cluster| cluster.devices.vrf.as_str() == vrf);
        has_vrf && shared.routing.contains(&**name)
    };
    Some(VrfRouteConfigurationStatus {
        observed_generation: subject.meta.generation,
        conditions: conditions_of(view, subject, &source, on_node),
    })
}

pub(super) fn bgp(view: &View<'_>, subject: &Subject<'_>) -> Option<BgpPeeringStatus> {
    let name = &subject.key().name;
    let made = object::<BgpPeeringSpec>(view, name);
    let source = whose(subject, made.as_deref())?;
    let on_node = |shared: &Shared| shared.peerings.contains(&**name);
    Some(BgpPeeringStatus {
        observed_generation: subject.meta.generation,
        conditions: conditions_of(view, subject, &source, on_node),
    })
}

/// Conditions of a low-level object. What is wrong with a generated one is wrong with its intent.
fn conditions_of(
    view: &View<'_>,
    subject: &Subject<'_>,
    source: &ObjectRef,
    on_node: impl Fn(&Shared) -> bool,
) -> Conditions {
    let names = [&*subject.key().name].into_iter();
    let applied = conditions::applied(view, names, on_node, subject.meta);
    conditions::application(view, subject, source, applied)
}

/// Whose problems a low-level object has: those of the intent that it is generated from, or its own, also where an intent keeps it out.
/// `None` for a generated object whose intent is gone.
pub(super) fn whose<S>(subject: &Subject<'_>, made: Option<&LowLevel<S>>) -> Option<ObjectRef> {
    let own = || {
        let is_own = subject.meta.owner.is_none();
        is_own.then(|| subject.object.clone())
    };
    made.map(|made| made.source.clone()).or_else(own)
}
