//! From a revision to the config of each node: complete, with no choice left to the node.

mod addresses;
mod group;
mod layer2;
mod memo;
mod peers;
mod steering;
mod underlay;
mod vrfs;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    meta::Labels,
    tcaas::{
        NodeNetworkConfigSpec,
        node_network_config::{
            CONTRACT_VERSION, HostInterface, HostLoopback, HostVlan, Layer2, StaticRoute, Underlay,
            Vrf,
        },
    },
    value::{HostCidr, IfName},
};

use self::{
    group::{Group, Indexes, Plan, Reach, everything, selectors},
    steering::Steering,
};
pub use self::{memo::Memo, steering::Reason};
pub(crate) use self::{
    steering::{Consumer, consumers},
    underlay::underlay_of,
};
use crate::{
    allocate,
    lower::NodeAddresses,
    mirror::NodeMirrors,
    names,
    problem::{self, Problem},
    revision::Content,
    select::groups,
    snapshot::{Key, Kind, ObjectRef, Snapshot},
};

/// The config of one node. What it shares with its like is one value in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// How the node is plugged into the fabric.
    pub underlay: Option<Underlay>,
    /// Its addresses on segments, by the name of the segment's object.
    pub addresses: BTreeMap<String, Vec<HostCidr>>,
    /// What is mirrored on it.
    pub mirrors: NodeMirrors,
    /// What all nodes of its group have.
    pub shared: Arc<Shared>,
}

/// What all nodes of a group have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shared {
    /// Segments, by VLAN.
    pub layer2s: BTreeMap<String, Layer2>,
    /// The cluster's VRF.
    pub cluster_vrf: Option<Vrf>,
    /// VRFs of the fabric, by name.
    pub fabric_vrfs: BTreeMap<String, Vrf>,
    /// VRFs of the nodes alone, by name.
    pub local_vrfs: BTreeMap<String, Vrf>,
    /// VLANs on devices of the host's own, by device.
    pub host_vlans: BTreeMap<String, HostVlan>,
    /// Loopbacks of the host, by device.
    pub host_loopbacks: BTreeMap<String, HostLoopback>,
    /// The peerings that are in effect here, by name.
    pub peerings: BTreeSet<String>,
    /// The objects that interfaces in the host's namespace come from, by device.
    pub host_devices: BTreeMap<String, String>,
    /// Objects whose traffic is routed by its source here, and why.
    pub steering: BTreeMap<ObjectRef, Reason>,
    /// The segments that are in effect here, by the name of their object: what the node must have before they count as applied.
    pub segments: BTreeSet<String>,
    /// The routing that is for these nodes, by the name of its object.
    pub routing: BTreeSet<String>,
}

impl NodeConfig {
    /// The config as it is published.
    pub fn spec(&self, revision: &str) -> NodeNetworkConfigSpec {
        let Shared {
            layer2s,
            cluster_vrf,
            fabric_vrfs,
            local_vrfs,
            host_vlans,
            host_loopbacks,
            peerings: _,
            host_devices: _,
            steering: _,
            segments: _,
            routing: _,
        } = &*self.shared;
        let mut layer2s = layer2s.clone();
        for interface in layer2s
            .values_mut()
            .filter_map(|segment| segment.host_interface.as_mut())
        {
            let HostInterface {
                name,
                addresses,
                routes,
            } = interface;
            self.own(name.as_str(), addresses, routes);
        }
        let mut host_vlans = host_vlans.clone();
        host_vlans.retain(|_, vlan| !self.is_uplink(&vlan.parent));
        for (device, vlan) in &mut host_vlans {
            self.own(device, &mut vlan.addresses, &mut vlan.routes);
        }
        let mut spec = NodeNetworkConfigSpec {
            contract_version: CONTRACT_VERSION,
            revision: revision.to_owned(),
            underlay: self.underlay.clone(),
            layer2s,
            cluster_vrf: cluster_vrf.clone(),
            fabric_vrfs: fabric_vrfs.clone(),
            local_vrfs: local_vrfs.clone(),
            host_vlans,
            host_loopbacks: host_loopbacks.clone(),
        };
        self.mirrors.enter(&mut spec);
        spec
    }

    /// Puts in the node's own addresses; routes whose next hop they do not reach are left out.
    fn own(&self, device: &str, addresses: &mut Vec<HostCidr>, routes: &mut Vec<StaticRoute>) {
        let object = self.shared.host_devices.get(device);
        let own = object.and_then(|object| self.addresses.get(object));
        *addresses = own.cloned().unwrap_or_default();
        routes.retain(|route| {
            let next_hop = route.next_hop.as_ref().and_then(|hop| hop.address);
            let reaches = |next_hop| addresses.iter().any(|own| own.net().contains(&next_hop));
            next_hop.is_some_and(reaches)
        });
    }

    /// Whether the router has this device.
    fn is_uplink(&self, device: &IfName) -> bool {
        let underlay = self.underlay.as_ref();
        underlay.is_some_and(|underlay| underlay.nics.contains(device))
    }
}

/// Makes the config of every node, and what is to be known of it the next time. What did not change since `before` is not made again.
pub fn build(
    content: &Content,
    snapshot: &Snapshot,
    addresses: &NodeAddresses,
    before: Option<&Memo>,
    problems: &mut Vec<Problem>,
) -> (BTreeMap<String, NodeConfig>, Memo) {
    let labels: BTreeMap<&str, &Labels> = snapshot
        .nodes
        .iter()
        .map(|(key, node)| (key.name.as_str(), &node.meta.labels))
        .collect();
    let underlays = underlay::assign(content, snapshot, problems);
    let numbers = vrfs::Numbers::resolve(content, problems);
    let broken = peers::check(content, problems);
    if labels.is_empty() {
        // Without nodes there is nothing to build, but what cannot stand together is still said.
        let everything = everything(content);
        layer2::claims(&everything, &numbers.holders, problems);
        Steering::find(&everything, &numbers, problems);
        return (BTreeMap::new(), Memo::default());
    }

    let mut reach = Reach::default();
    let has_vtep = |node: &str| {
        underlays
            .get(node)
            .is_some_and(|underlay| underlay.vtep.is_some())
    };
    let mut memo = Memo::new(content, &numbers);
    let mut groups_of_nodes = Vec::new();
    let indexes = Indexes::new(content);
    for (group_labels, nodes) in groups(
        labels.iter().map(|(name, labels)| (*name, *labels)),
        selectors(content),
    ) {
        let has_overlay = nodes.iter().any(|node| has_vtep(node));
        let mut group = indexes.group(&group_labels, nodes, has_overlay);
        group.bgp.retain(|(name, _)| !broken.contains(*name));
        reach.note(&group);
        let known = before.and_then(|before| before.group(&group_labels, &group, &memo));
        let plan = match known {
            Some(known) => Plan::Known(known),
            None => Plan::New(Steering::of(&group, &numbers)),
        };
        groups_of_nodes.push((group_labels, group, plan));
    }
    let local = groups_of_nodes.iter().flat_map(|(_, _, plan)| plan.vrfs());
    let tables = tables(content, snapshot, local.collect());
    let mut configs = BTreeMap::new();
    for (labels, group, plan) in groups_of_nodes {
        let known = match plan {
            Plan::Known(known) if known.has_tables(&tables) => known.clone(),
            Plan::Known(_) => {
                let steering = Steering::of(&group, &numbers);
                group.build(content, &numbers, steering, &tables)
            }
            Plan::New(steering) => group.build(content, &numbers, steering, &tables),
        };
        problems.extend(known.problems.iter().cloned());
        for node in &group.nodes {
            // A node that got no address, because a pool is used up, can have no overlay.
            let shared = if has_vtep(node) {
                &known.shared
            } else {
                &known.bare
            };
            let config = NodeConfig {
                underlay: underlays.get(*node).cloned(),
                addresses: BTreeMap::new(),
                mirrors: NodeMirrors::default(),
                shared: Arc::clone(shared),
            };
            configs.insert((*node).to_owned(), config);
        }
        memo.groups.insert(labels, known);
    }
    reach.report(problems);
    nowhere(content, &configs, &broken, problems);
    interfaces(content, snapshot, &configs, problems);
    let holders: BTreeSet<&String> = addresses.values().flat_map(BTreeMap::keys).collect();
    for node in holders {
        if let Some(config) = configs.get_mut(node) {
            addresses::place(content, addresses, node, config);
        }
    }
    (configs, memo)
}

/// Says which hand-written peerings are on a segment that no selected node has.
fn nowhere(
    content: &Content,
    configs: &BTreeMap<String, NodeConfig>,
    broken: &BTreeSet<String>,
    problems: &mut Vec<Problem>,
) {
    let in_effect: BTreeSet<&String> = configs
        .values()
        .flat_map(|config| &config.shared.peerings)
        .collect();
    for (name, object) in &content.bgp {
        let said = || {
            problems
                .iter()
                .any(|problem| problem.subject == object.source)
        };
        let idle = !in_effect.contains(name) && !broken.contains(name) && !object.is_generated();
        if let Some(segment) = &object.spec.peering_vlan
            && idle
            && !said()
        {
            let kind = problem::Kind::PeeringNowhere {
                segment: ObjectRef::named(Kind::Layer2NetworkConfiguration, &segment.name),
            };
            let source = object.source.clone();
            problems.push(Problem::new(source, "spec.nodeSelector", kind));
        }
    }
}

/// Checks the devices below the hosts' VLANs against what the nodes report.
fn interfaces(
    content: &Content,
    snapshot: &Snapshot,
    configs: &BTreeMap<String, NodeConfig>,
    problems: &mut Vec<Problem>,
) {
    let mut missing: BTreeMap<(&str, &IfName), Vec<&str>> = BTreeMap::new();
    for (node, config) in configs {
        let report = snapshot.node_network_statuses.get(&Key::named(node));
        let report = report.and_then(|report| report.status.as_ref());
        for (device, vlan) in &config.shared.host_vlans {
            let Some(object) = config.shared.host_devices.get(device) else {
                continue;
            };
            if config.is_uplink(&vlan.parent)
                && let Some(object) = content.layer2.get(object)
            {
                let kind = problem::Kind::InterfaceInUse {
                    interface: vlan.parent.to_string(),
                    why: format!("is an uplink of node {node:?}"),
                };
                let source = object.source.clone();
                problems.push(Problem::new(source, "spec.interfaceRef", kind));
            } else if let Some(report) = report {
                let mut interfaces = report.interfaces.iter();
                if !interfaces.any(|seen| seen.name == vlan.parent.as_str()) {
                    let nodes = missing.entry((object, &vlan.parent)).or_default();
                    nodes.push(node);
                }
            }
        }
    }
    for ((object, interface), nodes) in missing {
        if let (Some(object), Some(node)) = (content.layer2.get(object), nodes.first()) {
            let kind = problem::Kind::InterfaceNotFound {
                interface: interface.to_string(),
                node: (*node).to_owned(),
                others: nodes.len() - 1,
            };
            let source = object.source.clone();
            problems.push(Problem::new(source, "spec.interfaceRef", kind));
        }
    }
}

/// A route table for each VRF name, the same on every node; what a node already uses stays.
fn tables(
    content: &Content,
    snapshot: &Snapshot,
    steered: BTreeSet<&str>,
) -> BTreeMap<String, u32> {
    let local: Vec<IfName> = steered.into_iter().map(names::local_vrf).collect();
    let mut names: BTreeSet<&str> = content
        .vrf
        .values()
        .map(|object| object.spec.vrf.as_str())
        .collect();
    names.insert(content.settings.cluster_vrf.name.as_str());
    names.extend(local.iter().map(IfName::as_str));
    let mut previous = BTreeMap::new();
    for config in snapshot.node_network_configs.values() {
        for vrf in config.spec.vrfs() {
            previous
                .entry(vrf.devices.vrf.to_string())
                .or_insert(vrf.table);
        }
    }
    let range = &content.settings.route_tables;
    // The kernel's own tables, which no range may hand out.
    let usable = |table: &u32| !(253..=255).contains(table);
    allocate::numbers((range.first, range.last), &names, &previous, usable)
}
