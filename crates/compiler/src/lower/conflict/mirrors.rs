//! The scopes of mirrors. They are in no revision: those run that some node was told of.

use std::collections::BTreeMap;

use api::{
    meta::{LabelSelector, TypedObjectReference},
    tcaas::{
        MirrorSelectorSpec, MirrorTargetSpec, NodeNetworkConfigSpec, node_network_config::MirrorAcl,
    },
};

use super::{Scope, Scoped};
use crate::{
    names,
    snapshot::{Key, Snapshot},
};

impl Scoped for MirrorTargetSpec {
    fn scopes(&self) -> Vec<Scope> {
        vec![Scope::Tunnel {
            vrf: self.destination_vrf.clone(),
            loopback: self.source_loopback.clone(),
            destination: self.destination_ip,
            key: self.key,
            protocol: self.kind,
        }]
    }

    fn node_selector(&self) -> Option<&LabelSelector> {
        None
    }
}

impl Scoped for MirrorSelectorSpec {
    fn scopes(&self) -> Vec<Scope> {
        let source = &self.mirror_source;
        vec![Scope::Copies {
            source: format!("{}/{}", source.kind, source.name),
            direction: self.direction,
            target: self.mirror_target.name.clone(),
        }]
    }

    fn node_selector(&self) -> Option<&LabelSelector> {
        None
    }
}

/// People's own targets whose tunnel some node was told of.
pub(super) fn told_targets(snapshot: &Snapshot) -> BTreeMap<&str, &MirrorTargetSpec> {
    // Without intents nobody is in their way.
    if snapshot.collectors.is_empty() {
        return BTreeMap::new();
    }
    let is_told = |name: &str, spec: &MirrorTargetSpec| {
        let device = names::mirror_tunnel(name, spec.kind);
        told(snapshot).any(|config| {
            let vrf = config.fabric_vrfs.get(spec.destination_vrf.as_str());
            let gre = vrf.and_then(|vrf| vrf.gres.get(device.as_str()));
            gre.is_some_and(|gre| {
                gre.destination_address == spec.destination_ip && gre.encapsulation_key == spec.key
            })
        })
    };
    let written = snapshot.mirror_targets.iter();
    let written = written.filter(|(_, object)| object.meta.owner.is_none());
    let written = written.map(|(key, object)| (key.name.as_str(), &object.spec));
    written.filter(|(name, spec)| is_told(name, spec)).collect()
}

/// People's own selectors whose rule some node was told of.
pub(super) fn told_selectors(snapshot: &Snapshot) -> BTreeMap<&str, &MirrorSelectorSpec> {
    if snapshot.traffic_mirrors.is_empty() {
        return BTreeMap::new();
    }
    let is_told = |spec: &MirrorSelectorSpec| {
        let target = &spec.mirror_target.name;
        let Some(object) = snapshot.mirror_targets.get(&Key::named(target)) else {
            return false;
        };
        let acl = MirrorAcl {
            traffic_match: spec.traffic_match.clone().unwrap_or_default(),
            mirror_destination: names::mirror_tunnel(target, object.spec.kind),
            direction: spec.direction,
        };
        told(snapshot).any(|config| rules(snapshot, config, &spec.mirror_source).contains(&acl))
    };
    let written = snapshot.mirror_selectors.iter();
    let written = written.filter(|(_, object)| object.meta.owner.is_none());
    let written = written.map(|(key, object)| (key.name.as_str(), &object.spec));
    written.filter(|(_, spec)| is_told(spec)).collect()
}

fn told(snapshot: &Snapshot) -> impl Iterator<Item = &NodeNetworkConfigSpec> {
    let configs = snapshot.node_network_configs.values();
    configs.map(|config| &config.spec)
}

/// What a config says is copied of an object's traffic.
fn rules<'a>(
    snapshot: &Snapshot,
    config: &'a NodeNetworkConfigSpec,
    source: &TypedObjectReference,
) -> &'a [MirrorAcl] {
    let key = Key::named(&source.name);
    let segment = snapshot.layer2_network_configurations.get(&key);
    let routing = snapshot.vrf_route_configurations.get(&key);
    let rules = if source.kind == "Layer2NetworkConfiguration" {
        let vlan = segment.map(|object| object.spec.id.to_string());
        let segment = vlan.and_then(|vlan| config.layer2s.get(&vlan));
        segment.map(|segment| &segment.mirror_acls)
    } else {
        let vrf = routing.map(|object| object.spec.vrf.as_str());
        let vrf = vrf.and_then(|vrf| config.fabric_vrfs.get(vrf));
        vrf.map(|vrf| &vrf.mirror_acls)
    };
    rules.map(Vec::as_slice).unwrap_or_default()
}
