//! What is wrong with configs as a whole: found on the nodes, said on the objects.

use std::{collections::BTreeSet, sync::Arc};

use api::{
    meta::LabelSelector,
    tcaas::{BgpPeeringSpec, InterfaceType, Layer2NetworkConfigurationSpec},
    value::IfName,
};

use super::{
    ForwardingOf, Shared,
    group::{BuiltFor, HasOverlay, MembersOf},
    mtu::{self, Narrowest},
    overlay::{self, SessionAddressesFor},
    peers::WrongWithPeering,
    selection::{Facet, Facets, Member, NodesBySignature, SelectsNoNode, Signature},
    underlay::{
        IPV6_VTEPS, NodeUnderlay, VTEP_INTERFACE, endpoint_reported, is_outside, place,
        second_underlays,
    },
};
use crate::{
    exhausted::{self, Lacking},
    lower::{LowLevelObject, object},
    memo::{Index, Query},
    problem::{self, Problem},
    select,
    snapshot::{Key, Kind, ObjectRef, kinds},
    view::View,
};

/// What is wrong on the nodes of a group.
pub(crate) struct ProblemsOfGroup;
impl Query for ProblemsOfGroup {
    type Key = Signature;
    type Value = Arc<Vec<Problem>>;
    fn compute(view: &View<'_>, signature: &Signature) -> Arc<Vec<Problem>> {
        let built = view.get::<BuiltFor>(signature);
        let mut problems = built.problems.clone();
        problems.extend(second_underlays(view, signature));
        let found = view.get::<FoundOnNodes>(signature);
        problems.extend(found.problems.iter().cloned());
        if !found.lacking.is_empty() {
            // The nodes of a pool are of several groups, and the problem of the pool is one.
            let is_ours = |one: &&Problem| {
                let mut own = found.lacking.iter();
                own.any(|(own, _)| own.subject == one.subject && own.field == one.field)
            };
            let all = view.get::<AllLacking>(&());
            problems.extend(all.iter().filter(is_ours).cloned());
        }
        let members = view.get::<MembersOf>(signature);
        let carriers = view.get::<Carriers>(signature);
        problems.extend(mtu::problems(&carriers.0, &members, &built.shared));
        problems.extend(mtu::problems(&carriers.1, &members, &built.bare));
        Arc::new(problems)
    }
}

/// What is found on the nodes of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    problems: Vec<Problem>,
    lacking: Lacking,
}

/// What is wrong on each node of a group.
pub(crate) struct FoundOnNodes;
impl Query for FoundOnNodes {
    type Key = Signature;
    type Value = Arc<Found>;
    fn compute(view: &View<'_>, signature: &Signature) -> Arc<Found> {
        let nodes = view.who::<NodesBySignature>(signature);
        let notes_nodes_outside = view.get::<NotesNodesOutside>(&());
        let short = [true, false].map(|has_vtep| short_sessions(view, signature, has_vtep));
        let [short_with_vtep, short_without] = &short;
        let Found {
            mut problems,
            mut lacking,
        } = Found::default();
        for node in nodes.iter() {
            let node = node.key();
            let place = place(view, signature, &node.name);
            let is_inside = place.has_vtep();
            match &place.underlay {
                Some(underlay) => {
                    problems.extend(nics_it_lacks(view, &node, underlay));
                    problems.extend(vtep_it_lacks(view, &node, underlay));
                    problems.extend(frr_is_too_old(&node, underlay));
                }
                None => lacking.extend(place.problem.map(|one| (one, Arc::clone(&node.name)))),
            }
            let short = if is_inside {
                short_with_vtep
            } else {
                short_without
            };
            let short = short.iter().filter_map(|one| one.problem(&node.name));
            lacking.extend(short.map(|one| (one, Arc::clone(&node.name))));
            if notes_nodes_outside && !is_inside {
                problems.push(outside(&node.name));
            }
        }
        Arc::new(Found { problems, lacking })
    }
}

/// What is wrong with pools that have no address left for some nodes, over all groups.
pub(crate) struct AllLacking;
impl Query for AllLacking {
    type Key = ();
    type Value = Arc<Vec<Problem>>;
    fn compute(view: &View<'_>, (): &()) -> Arc<Vec<Problem>> {
        let signatures = view.all_keys::<NodesBySignature>();
        let found = signatures.iter().map(|one| view.get::<FoundOnNodes>(one));
        let found: Vec<Arc<Found>> = found.collect();
        let lacking = found.iter().flat_map(|found| &found.lacking);
        Arc::new(exhausted::of_pools(lacking))
    }
}

/// A host session that has no address left for some nodes.
struct ShortSession {
    slot: overlay::Slot,
    hosts: Vec<Vec<overlay::Hosts>>,
}

/// The host sessions of a group, with or without a VTEP, that have no address left for some nodes.
fn short_sessions(view: &View<'_>, signature: &Signature, has_vtep: bool) -> Vec<ShortSession> {
    let built = view.get::<BuiltFor>(signature);
    let slots = &built.shared(has_vtep).sessions;
    if slots.is_empty() {
        return Vec::new();
    }
    let hosts = view.get::<SessionAddressesFor>(&(signature.clone(), has_vtep));
    let slots = slots.iter().zip(hosts.iter());
    let short = slots.filter(|(_, families)| families.iter().any(overlay::Hosts::is_short));
    let short = short.map(|(slot, families)| ShortSession {
        slot: slot.clone(),
        hosts: vec![families.clone()],
    });
    short.collect()
}

impl ShortSession {
    /// Says that a node has no address.
    fn problem(&self, node: &str) -> Option<Problem> {
        let mut own = overlay::hosts_of_node(&self.hosts, node).into_iter();
        if !own.all(|hosts| hosts.is_empty()) {
            return None;
        }
        let networks = self.slot.networks.iter().flatten();
        let networks: Vec<String> = networks.map(ToString::to_string).collect();
        let kind = problem::Kind::PoolExhausted {
            pool: networks.join(", "),
            wanted: format!("node {node:?}"),
        };
        let subject = self.slot.subject.clone();
        Some(Problem::new(subject, "spec.hostsession.localcidr", kind))
    }
}

/// Whether nodes outside the fabric are to be named: something over the fabric is for all nodes, and others are inside. Where none is,
/// that is said on the object.
pub(crate) struct NotesNodesOutside;
impl Query for NotesNodesOutside {
    type Key = ();
    type Value = bool;
    fn compute(view: &View<'_>, (): &()) -> bool {
        let everywhere = view.who::<Facets>(&Facet::Everywhere);
        let is_for_all = |object: &LowLevelObject| match object {
            LowLevelObject::Layer2(object) => {
                object.spec.interface_ref.is_none() && object.spec.node_selector.is_none()
            }
            LowLevelObject::Vrf(object) => object.spec.node_selector.is_none(),
            LowLevelObject::Bgp(_)
            | LowLevelObject::MirrorTarget(_)
            | LowLevelObject::MirrorSelector(_) => false,
        };
        let mut objects = everywhere.iter().filter_map(|one| one.object());
        let signatures = || view.all_keys::<NodesBySignature>();
        objects.any(is_for_all) && signatures().iter().any(|one| view.get::<HasOverlay>(one))
    }
}

/// Says which network card of its Underlay a node does not have, where the node has reported its interfaces. The Underlay is in effect all the
/// same: the card may come later.
fn nics_it_lacks(view: &View<'_>, node: &Key, underlay: &NodeUnderlay) -> Option<Problem> {
    let report = view.status::<kinds::NodeNetworkStatus>(node)?;
    let is_reported = |nic: &IfName| {
        let mut interfaces = report.interfaces.iter();
        interfaces.any(|one| one.name == nic.as_str())
    };
    let mut nics = underlay.fabric.nics.iter();
    let nic = nics.find(|nic| !is_reported(nic))?;
    let what = format!(
        "node {:?} has no interface {:?}: correct the name, or add the card",
        node.name,
        nic.as_str()
    );
    let kind = problem::Kind::NoEffect { what };
    Some(Problem::new(
        underlay.fabric.source.clone(),
        "spec.nics",
        kind,
    ))
}

/// Says that a node has no address on the device that its tunnel endpoint is of, or has it no longer and keeps the endpoint, or that the
/// device is not where the router is.
fn vtep_it_lacks(view: &View<'_>, node: &Key, underlay: &NodeUnderlay) -> Option<Problem> {
    let (device, nics) = (underlay.fabric.vtep_device.as_ref()?, &underlay.fabric.nics);
    let report = view.status::<kinds::NodeNetworkStatus>(node);
    let is_outside = report
        .as_ref()
        .is_some_and(|report| is_outside(report, device, nics));
    let (device_name, node_name) = (device.to_string(), node.name.to_string());
    let kind = if is_outside {
        problem::Kind::VtepDeviceOutside {
            device: device_name,
            node: node_name,
        }
    } else if underlay.vtep_interface.as_ref() == Some(device) {
        if endpoint_reported(&*report?, device, nics).is_some() {
            return None;
        }
        let what = format!(
            "node {node_name:?} has no IPv4 address on {device_name:?} any more and keeps its tunnel endpoint: give the device an address, or correct the name"
        );
        problem::Kind::NoEffect { what }
    } else {
        problem::Kind::NoVtepOnDevice {
            device: device_name,
            node: node_name,
        }
    };
    let subject = underlay.fabric.source.clone();
    Some(Problem::new(subject, VTEP_INTERFACE, kind))
}

/// Says that the FRR of a node cannot have the tunnel endpoint that its Underlay gives it.
fn frr_is_too_old(node: &Key, underlay: &NodeUnderlay) -> Option<Problem> {
    let version = underlay.too_old.as_ref()?;
    let kind = problem::Kind::FrrTooOld {
        node: node.name.to_string(),
        version: version.to_string(),
        what: "IPv6 VTEPs",
        needed: IPV6_VTEPS,
    };
    let subject = underlay.fabric.source.clone();
    Some(Problem::new(subject, "spec.evpn.vtepcidr", kind))
}

fn outside(node: &str) -> Problem {
    let what = "no Underlay gives this node a VTEP: overlay segments that apply to all nodes are not configured on it";
    let what = what.to_owned();
    let kind = problem::Kind::NoEffect { what };
    Problem::new(ObjectRef::named(Kind::Node, node), "", kind)
}

/// The narrowest devices of a group's nodes: of those with an overlay, and of those without.
pub(crate) struct Carriers;
impl Query for Carriers {
    type Key = Signature;
    type Value = Arc<(Narrowest, Narrowest)>;
    fn compute(view: &View<'_>, signature: &Signature) -> Self::Value {
        let mut all = (Narrowest::new(), Narrowest::new());
        if view.keys::<kinds::NodeNetworkStatus>().is_empty() {
            return Arc::new(all);
        }
        let built = view.get::<BuiltFor>(signature);
        for node in view.who::<NodesBySignature>(signature).iter() {
            let key = node.key();
            let Some(report) = view.status::<kinds::NodeNetworkStatus>(&key) else {
                continue;
            };
            let place = place(view, signature, &node.name);
            let (narrowest, shared) = if place.has_vtep() {
                (&mut all.0, &built.shared)
            } else {
                (&mut all.1, &built.bare)
            };
            mtu::add(
                narrowest,
                &node.name,
                &report,
                place.underlay.as_ref(),
                shared,
            );
        }
        Arc::new(all)
    }
}

/// What is wrong with a device of a node that an object's VLAN is on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum InterfaceFault {
    /// The router has it: the object's name and the device.
    IsUplink(String, String),
    /// The node does not report it.
    IsMissing(String, String),
    /// The VLAN would have its name: the object's name, the device, and whether it is an uplink.
    HasName(String, String, bool),
}

/// The nodes on which something is wrong with a device that an object's VLAN is on.
pub(crate) struct InterfaceFaults;
impl Index for InterfaceFaults {
    type Source = Key;
    type Key = InterfaceFault;
    type Item = String;
    fn sources(view: &View<'_>) -> Vec<Key> {
        let has_vlans = |shared: &Shared| !shared.host_vlans.is_empty();
        let signatures = view.all_keys::<NodesBySignature>();
        let concerned = signatures.iter().filter(|signature| {
            let built = view.get::<BuiltFor>(signature);
            has_vlans(&built.shared) || has_vlans(&built.bare)
        });
        let nodes = concerned.flat_map(|signature| {
            let nodes = view.who::<NodesBySignature>(signature);
            nodes.iter().map(Member::key).collect::<Vec<_>>()
        });
        nodes.collect()
    }
    fn entries(view: &View<'_>, node: &Key) -> Vec<(InterfaceFault, String)> {
        let Some(config) = view.get::<ForwardingOf>(node) else {
            return Vec::new();
        };
        let report = view.status::<kinds::NodeNetworkStatus>(node);
        let mut faults = Vec::new();
        for (device, vlan) in &config.shared.host_vlans {
            let Some(object) = config.shared.host_devices.get(device) else {
                continue;
            };
            let (object, parent) = (object.clone(), vlan.parent.to_string());
            let reported = |name: &str| {
                let mut interfaces = report.iter().flat_map(|report| &report.interfaces);
                interfaces.find(|one| one.name == name)
            };
            let is_reported = |name: &str| report.is_none() || reported(name).is_some();
            // A network card or a bond; a VLAN may well be this one.
            let is_other = reported(device).is_some_and(|one| {
                let kind = one.kind;
                kind == Some(InterfaceType::Physical) || kind == Some(InterfaceType::Bond)
            });
            let fabric = config.underlay.as_ref().map(|underlay| &underlay.fabric);
            let mut uplinks = fabric.iter().flat_map(|fabric| &fabric.nics);
            // Where there is an overlay, the trunk's name is refused before.
            let is_trunk = fabric.is_some_and(|fabric| fabric.trunk.host.as_str() == device);
            let is_other = is_other || is_trunk;
            let is_uplink = uplinks.any(|nic| nic.as_str() == device);
            if is_uplink || is_other {
                let fault = InterfaceFault::HasName(object.clone(), device.clone(), is_uplink);
                faults.push((fault, node.name.to_string()));
            }
            if config.is_uplink(&vlan.parent) {
                faults.push((
                    InterfaceFault::IsUplink(object, parent),
                    node.name.to_string(),
                ));
            } else if !is_reported(&parent) {
                faults.push((
                    InterfaceFault::IsMissing(object, parent),
                    node.name.to_string(),
                ));
            }
        }
        faults
    }
}

/// What is to be said about a device.
pub(crate) fn interface_problem(view: &View<'_>, fault: &InterfaceFault) -> Option<Problem> {
    let nodes = view.who::<InterfaceFaults>(fault);
    let node = nodes.first()?.clone();
    let (name, field, kind) = match fault {
        InterfaceFault::HasName(object, device, is_uplink) => {
            let what = if *is_uplink { "an uplink" } else { "a device" };
            let kind = problem::Kind::DeviceNameReserved {
                name: device.clone(),
                what: format!("{what} of node {node:?}"),
            };
            (object, "spec.interfaceName", kind)
        }
        InterfaceFault::IsUplink(object, interface) => {
            let kind = problem::Kind::InterfaceInUse {
                interface: interface.clone(),
                why: format!("is an uplink of node {node:?}"),
            };
            (object, "spec.interfaceRef", kind)
        }
        InterfaceFault::IsMissing(object, interface) => {
            let kind = problem::Kind::InterfaceNotFound {
                interface: interface.clone(),
                node,
                others: nodes.len() - 1,
            };
            (object, "spec.interfaceRef", kind)
        }
    };
    let object = object::<Layer2NetworkConfigurationSpec>(view, name)?;
    Some(Problem::new(object.source.clone(), field, kind))
}

/// The peerings that are in effect on some node.
pub(crate) struct PeeringsInEffect;
impl Query for PeeringsInEffect {
    type Key = ();
    type Value = Arc<BTreeSet<String>>;
    fn compute(view: &View<'_>, (): &()) -> Arc<BTreeSet<String>> {
        let signatures = view.all_keys::<NodesBySignature>();
        let peerings = signatures.iter().flat_map(|signature| {
            let built = view.get::<BuiltFor>(signature);
            built.shared.peerings.iter().cloned().collect::<Vec<_>>()
        });
        Arc::new(peerings.collect())
    }
}

/// What is wrong with a hand-written peering on a segment that no selected node has.
pub(crate) fn is_idle(view: &View<'_>, subject: &ObjectRef) -> Option<Problem> {
    let object = object::<BgpPeeringSpec>(view, &subject.key.name)?;
    if object.is_generated() || view.keys::<kinds::Node>().is_empty() {
        return None;
    }
    let segment = object.spec.peering_vlan.as_ref()?;
    let is_broken = !view.get::<WrongWithPeering>(&object.name).is_empty();
    if is_broken || view.get::<PeeringsInEffect>(&()).contains(&object.name) {
        return None;
    }
    let kind = problem::Kind::PeeringNowhere {
        segment: ObjectRef::named(Kind::Layer2NetworkConfiguration, &segment.name),
    };
    Some(Problem::new(
        object.source.clone(),
        "spec.nodeSelector",
        kind,
    ))
}

/// Says that no node matches the node selector of an object in effect: a mistake in the selector, or nodes that do not have their labels
/// yet. It is no error, since nodes may come later, and what no node can match harms none.
pub(crate) fn selects_no_node(
    view: &View<'_>,
    subject: &ObjectRef,
    selector: &LabelSelector,
) -> Option<Problem> {
    let what = if !select::may_meet(Some(selector), None) {
        "its requirements exclude each other: no node can ever match it"
    } else if view.get::<SelectsNoNode>(selector) {
        "matches no node: no node is configured by this object"
    } else {
        return None;
    };
    let what = what.to_owned();
    let kind = problem::Kind::NoEffect { what };
    Some(Problem::new(subject.clone(), "spec.nodeSelector", kind))
}

/// Says that no node matches the selector of the nodes that a rollout begins with: it then begins with any node.
pub(crate) fn no_canary(view: &View<'_>) -> Option<Problem> {
    let settings = view.settings();
    let selector = settings.rollout.canary.node_selector.as_ref()?;
    let nodes = view.keys::<kinds::Node>();
    let matches = |node: &Key| {
        let meta = view.meta::<kinds::Node>(node);
        meta.is_some_and(|meta| select::selects(Some(selector), &meta.labels))
    };
    if nodes.is_empty() || nodes.iter().any(matches) {
        return None;
    }
    let what = "matches no node: a rollout begins with any of the nodes that change".to_owned();
    let kind = problem::Kind::NoEffect { what };
    let settings = ObjectRef::named(Kind::Settings, "default");
    let field = "spec.rollout.canary.nodeSelector";
    Some(Problem::new(settings, field, kind))
}
