//! Where hand-written objects run: the last revision has them there, or, for mirrors, which are in no revision, some node's config.

use api::{
    meta::TypedObjectReference,
    tcaas::{MirrorSelectorSpec, MirrorTargetSpec, node_network_config::MirrorAcl},
};
use std::net::IpAddr;

use super::{Scope, Scoped};
use crate::{
    last_good::LastRevision,
    lower::low_level::LowLevelObject,
    memo::Index,
    names,
    snapshot::{Key, kinds},
    view::View,
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
}

/// The scopes in which a hand-written object runs.
pub(super) fn scopes(view: &View<'_>, object: &LowLevelObject) -> Vec<Scope> {
    let last = || view.get::<LastRevision>(&());
    match object {
        LowLevelObject::Layer2(object) => {
            let before = last().and_then(|last| last.layer2(&object.name).cloned());
            before.map(|before| before.scopes()).unwrap_or_default()
        }
        LowLevelObject::Vrf(object) => {
            let before = last().and_then(|last| last.vrf(&object.name).cloned());
            before.map(|before| before.scopes()).unwrap_or_default()
        }
        LowLevelObject::Bgp(object) => {
            let before = last().and_then(|last| last.bgp(&object.name).cloned());
            before.map(|before| before.scopes()).unwrap_or_default()
        }
        LowLevelObject::MirrorTarget(object) => {
            if runs_tunnel(view, &object.name, &object.spec) {
                object.spec.scopes()
            } else {
                Vec::new()
            }
        }
        LowLevelObject::MirrorSelector(object) => {
            if runs_rule(view, &object.spec) {
                object.spec.scopes()
            } else {
                Vec::new()
            }
        }
    }
}

/// The tunnels that configs of nodes have, by VRF and device: where they lead, and their key.
pub(crate) struct RunningTunnels;
impl Index for RunningTunnels {
    type Source = Key;
    type Key = (String, String);
    type Item = (IpAddr, Option<u32>);
    fn sources(view: &View<'_>) -> Vec<Key> {
        view.keys::<kinds::NodeNetworkConfig>().to_vec()
    }
    fn entries(view: &View<'_>, node: &Key) -> Vec<(Self::Key, Self::Item)> {
        let Some(config) = view.spec::<kinds::NodeNetworkConfig>(node) else {
            return Vec::new();
        };
        let vrfs = config.fabric_vrfs.iter();
        let tunnels = vrfs.flat_map(|(name, vrf)| {
            vrf.gres.iter().map(move |(device, gre)| {
                let ends = (gre.destination_address, gre.encapsulation_key);
                ((name.clone(), device.clone()), ends)
            })
        });
        tunnels.collect()
    }
}

fn runs_tunnel(view: &View<'_>, name: &str, spec: &MirrorTargetSpec) -> bool {
    let device = names::mirror_tunnel(name, spec.kind).to_string();
    let tunnels = view.who::<RunningTunnels>(&(spec.destination_vrf.to_string(), device));
    tunnels.contains(&(spec.destination_ip, spec.key))
}

/// Where a rule copies traffic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Hook {
    Vlan(String),
    Vrf(String),
}

/// The rules that configs of nodes have, by where they copy.
pub(crate) struct RunningRules;
impl Index for RunningRules {
    type Source = Key;
    type Key = Hook;
    type Item = MirrorAcl;
    fn sources(view: &View<'_>) -> Vec<Key> {
        view.keys::<kinds::NodeNetworkConfig>().to_vec()
    }
    fn entries(view: &View<'_>, node: &Key) -> Vec<(Hook, MirrorAcl)> {
        let Some(config) = view.spec::<kinds::NodeNetworkConfig>(node) else {
            return Vec::new();
        };
        let segments = config.layer2s.iter();
        let segments = segments.map(|(vlan, one)| (Hook::Vlan(vlan.clone()), &one.mirror_acls));
        let vrfs = config.fabric_vrfs.iter();
        let vrfs = vrfs.map(|(vrf, one)| (Hook::Vrf(vrf.clone()), &one.mirror_acls));
        let rules = segments.chain(vrfs);
        let rules = rules.flat_map(|(hook, acls)| {
            let acls = acls.iter();
            acls.map(move |acl| (hook.clone(), acl.clone()))
        });
        rules.collect()
    }
}

fn runs_rule(view: &View<'_>, spec: &MirrorSelectorSpec) -> bool {
    let target = &spec.mirror_target.name;
    let Some(object) = view.spec::<kinds::MirrorTarget>(&Key::named(target)) else {
        return false;
    };
    let Some(hook) = hook(view, &spec.mirror_source) else {
        return false;
    };
    let acl = MirrorAcl {
        traffic_match: spec.traffic_match.clone().unwrap_or_default(),
        mirror_destination: names::mirror_tunnel(target, object.kind),
        direction: spec.direction,
    };
    view.who::<RunningRules>(&hook).contains(&acl)
}

/// Where the traffic of an object is seen on a node.
fn hook(view: &View<'_>, source: &TypedObjectReference) -> Option<Hook> {
    let key = Key::named(&source.name);
    if source.kind == "Layer2NetworkConfiguration" {
        let object = view.spec::<kinds::Layer2NetworkConfiguration>(&key)?;
        return Some(Hook::Vlan(object.id.to_string()));
    }
    let object = view.spec::<kinds::VrfRouteConfiguration>(&key)?;
    Some(Hook::Vrf(object.vrf.to_string()))
}
