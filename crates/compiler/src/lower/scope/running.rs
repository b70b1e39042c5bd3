//! What runs: of an intent what was generated from it, of a hand-written object what the last revision has, or, for mirrors, which are in
//! no revision, some node's config.

use api::{
    meta::TypedObjectReference,
    tcaas::{MirrorSelectorSpec, MirrorTargetSpec, node_network_config::MirrorAcl},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use super::{Scope, Scoped};
use crate::{
    last_good::{InRevision, LastRevision},
    lower::low_level::{LowLevel, LowLevelObject},
    memo::Index,
    names,
    snapshot::{Key, ObjectRef, kinds},
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
    match object {
        LowLevelObject::Layer2(object) => {
            let before = last_of::<kinds::Layer2NetworkConfiguration>(view, object);
            before.map(|before| before.scopes()).unwrap_or_default()
        }
        LowLevelObject::Vrf(object) => {
            let before = last_of::<kinds::VrfRouteConfiguration>(view, object);
            before.map(|before| before.scopes()).unwrap_or_default()
        }
        LowLevelObject::Bgp(object) => {
            let before = last_of::<kinds::BgpPeering>(view, object);
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

/// Whether nodes run an object as it is: the last revision has it, or, for a mirror, some node's config.
pub(crate) fn runs(view: &View<'_>, object: &LowLevelObject) -> bool {
    match object {
        LowLevelObject::Layer2(object) => {
            in_last_revision::<kinds::Layer2NetworkConfiguration>(view, &object.name).as_ref()
                == Some(&object.spec)
        }
        LowLevelObject::Vrf(object) => {
            in_last_revision::<kinds::VrfRouteConfiguration>(view, &object.name).as_ref()
                == Some(&object.spec)
        }
        LowLevelObject::Bgp(object) => {
            in_last_revision::<kinds::BgpPeering>(view, &object.name).as_ref() == Some(&object.spec)
        }
        LowLevelObject::MirrorTarget(object) => runs_tunnel(view, &object.name, &object.spec),
        LowLevelObject::MirrorSelector(object) => runs_rule(view, &object.spec),
    }
}

/// An object as it runs: generated from its intent before, or as the last revision has it.
pub(crate) fn running<R>(view: &View<'_>, object: &LowLevel<R::Spec>) -> Option<Arc<R::Spec>>
where
    R: InRevision,
{
    let key = Key::named(&object.name);
    if !object.is_generated() {
        return last_of::<R>(view, object).map(Arc::new);
    }
    let meta = view.meta::<R>(&key)?;
    let is_own = meta.owner.as_ref() == Some(&object.source);
    view.spec::<R>(&key).filter(|_| is_own)
}

/// What an object has to do with something that it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    /// It does not run it.
    New,
    /// It runs it, and was edited since: it may run it on other nodes than it wants it on now.
    RunsOtherwise,
    /// It runs it as it is, on whichever nodes.
    Runs,
    /// The nodes at hand have it from this object.
    RunsHere,
}

/// Those of some objects that want what another of them runs, and do not run it themselves, or not as they are now, or not on the nodes at
/// hand: they are served after all others. `is_here` says whether these nodes have what an object was.
pub(crate) fn challengers<'a, R, T>(
    view: &View<'_>,
    objects: impl Iterator<Item = &'a LowLevel<R::Spec>> + Clone,
    wanted: impl Fn(&R::Spec) -> Vec<T>,
    meet: impl Fn(&T, &T) -> bool,
    is_here: impl Fn(&R::Spec) -> bool,
) -> BTreeSet<String>
where
    R: InRevision,
    R::Spec: 'a,
    T: Ord + Clone,
{
    let items = |object: &'a LowLevel<R::Spec>| {
        let items = wanted(&object.spec).into_iter();
        items.map(move |item| (item, object))
    };
    let mut items: Vec<(T, &'a LowLevel<R::Spec>)> = objects.flat_map(items).collect();
    items.sort_by(|(one, _), (other, _)| one.cmp(other));
    // Hardly ever do two want the same. Where prefixes overlap, some two that are next to each other do.
    let is_contested = items.windows(2).any(|pair| match pair {
        [(one, _), (next, _)] => one == next || meet(one, next),
        _ => false,
    });
    if !is_contested {
        return BTreeSet::new();
    }
    let mut by_item: BTreeMap<T, Vec<&'a LowLevel<R::Spec>>> = BTreeMap::new();
    for (item, object) in items {
        by_item.entry(item).or_default().push(object);
    }
    let claim = |object: &LowLevel<R::Spec>, item: &T| {
        let before = running::<R>(view, object);
        match before.filter(|before| wanted(before).contains(item)) {
            Some(before) if is_here(&before) => Claim::RunsHere,
            Some(before) if *before == object.spec => Claim::Runs,
            Some(_) => Claim::RunsOtherwise,
            None => Claim::New,
        }
    };
    let mut challengers = BTreeSet::new();
    for (item, own) in &by_item {
        let others = by_item.iter().filter(|(other, _)| meet(item, other));
        let others: Vec<_> = others
            .flat_map(|(other, of)| of.iter().map(move |one| (other, *one)))
            .collect();
        if others.len() < 2 {
            continue;
        }
        for object in own {
            let own = claim(object, item);
            let mut rivals = others.iter().filter(|(_, one)| one.name != object.name);
            if rivals.any(|(other, one)| claim(one, other) > own) {
                challengers.insert(object.name.clone());
            }
        }
    }
    challengers
}

/// A hand-written object as the last revision has it. Where a person has written it over one that an intent generates, the last revision has the
/// intent's.
pub(crate) fn last_of<R: InRevision>(
    view: &View<'_>,
    object: &LowLevel<R::Spec>,
) -> Option<R::Spec> {
    let last = in_last_revision::<R>(view, &object.name)?;
    let is_there = |intent: &ObjectRef| view.stored_meta(intent).is_some();
    let is_written_over = || last != object.spec && names::is_generated_by(&object.name, is_there);
    (!is_written_over()).then_some(last)
}

/// An object as the last revision has it.
pub(crate) fn in_last_revision<R: InRevision>(view: &View<'_>, name: &str) -> Option<R::Spec> {
    let last = view.get::<LastRevision>(&())?;
    R::last(&last, &Key::named(name))
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

/// Whether some node has the tunnel of a target.
pub(crate) fn runs_tunnel(view: &View<'_>, name: &str, spec: &MirrorTargetSpec) -> bool {
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
