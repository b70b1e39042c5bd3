//! From a revision to the config of each node: complete, with no choice left to the node.

mod addresses;
mod group;
mod layer2;
mod memo;
mod mtu;
mod outside;
mod peers;
mod steering;
mod underlay;
mod vrfs;

use std::{
    cell::OnceCell,
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
    group::{Group, Indexes, everything, unreached},
    memo::{Known, Scope},
    steering::Steering,
    underlay::Places,
};
pub use self::{
    memo::Memo,
    steering::{Consumer, Reason, consumers},
    underlay::underlay_of,
};
use crate::{
    allocate,
    changes::Changes,
    lower::{NodeAddresses, Touched},
    mirror::NodeMirrors,
    names,
    problem::{self, Problem},
    revision::Content,
    snapshot::{Key, Kind, ObjectRef, Snapshot},
};

/// The config of one node. What it shares with its like is one value in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// How the node is plugged into the fabric.
    pub underlay: Option<Arc<Underlay>>,
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
            underlay: self.underlay.as_deref().cloned(),
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

/// Brings the config of every node up to date. What no change touches is not made again.
pub(crate) fn update(
    (configs, memo): (&mut BTreeMap<String, NodeConfig>, &mut Memo),
    (content, snapshot): (&Content, &Snapshot),
    addresses: &NodeAddresses,
    (changes, touched): (Changes<'_>, &Touched),
    problems: &mut Vec<Problem>,
) {
    let mut scope = memo.update(content, snapshot, (changes, touched));
    problems.extend(memo.places.problems.iter().cloned());
    problems.extend(memo.numbers.problems.iter().cloned());
    let broken = peers::check(content, problems);
    if broken != memo.broken {
        // A peering may break by what is for other nodes than its own.
        scope = scope.everywhere();
        memo.broken = broken;
    }
    if changes.touch(Kind::Node) {
        configs.retain(|node, _| snapshot.nodes.contains_key(&Key::named(node)));
    }
    if memo.members.is_empty() {
        // Without nodes there is nothing to build, but what cannot stand together is still said.
        let nobody = Arc::default();
        let everything = everything(content, &nobody);
        layer2::claims(&everything, &memo.numbers.holders, problems);
        Steering::find(&everything, &memo.numbers, problems);
        return;
    }
    let rebuilt = rebuild(memo, content, &scope);
    let is_everywhere = matches!(scope, Scope::Everywhere(_));
    for (labels, known) in &memo.groups {
        problems.extend(known.problems.iter().cloned());
        if is_everywhere || rebuilt.contains(labels) {
            hand_out(known, &memo.places, configs);
        }
    }
    let premises = memo.groups.values().map(|known| &known.premises);
    unreached(premises, problems);
    nowhere(content, memo, problems);
    interfaces(content, snapshot, configs, problems);
    mtu::check(content, snapshot, configs, problems);
    outside::note(content, configs, problems);
    let holders: BTreeSet<&String> = addresses.values().flat_map(BTreeMap::keys).collect();
    for (node, config) in configs {
        if !config.addresses.is_empty() || holders.contains(node) {
            addresses::place(content, addresses, node, config);
        }
    }
}

/// Builds the groups anew for which something is different; says which those are.
fn rebuild(memo: &mut Memo, content: &Content, scope: &Scope<'_>) -> BTreeSet<Labels> {
    let nobody = Arc::default();
    let indexes = OnceCell::new();
    let (places, numbers, broken) = (&memo.places, &memo.numbers, &memo.broken);
    let group = |labels: &Labels, nodes| {
        let indexes = indexes.get_or_init(|| Indexes::new(content, &nobody));
        let has_overlay = nodes_of(nodes).any(|node| places.has_vtep(node));
        let mut group = indexes.group(labels, nodes, has_overlay);
        group.bgp.retain(|(name, _)| !broken.contains(*name));
        group
    };
    let mut plans = Vec::new();
    let mut steered: BTreeSet<String> = BTreeSet::new();
    for (labels, nodes) in &memo.members {
        let known = memo.groups.get(labels);
        if let Some(known) = known.filter(|_| scope.passes_by(labels)) {
            steered.extend(known.steered.iter().cloned());
            continue;
        }
        let group = group(labels, nodes);
        if let Some(known) = known.filter(|known| known.fits(&group, scope, numbers)) {
            steered.extend(known.steered.iter().cloned());
            continue;
        }
        let steering = Steering::of(&group, numbers);
        steered.extend(steering.0.vrfs().into_iter().map(str::to_owned));
        plans.push((labels, group, steering));
    }
    let tables = tables(content, &memo.told, &steered);
    let mut built = BTreeMap::new();
    for (labels, group, steering) in plans {
        let known = group.build(content, numbers, steering, &tables);
        built.insert(labels.clone(), known);
    }
    for (labels, known) in &memo.groups {
        if !built.contains_key(labels) && !known.has_tables(&tables) {
            let group = group(labels, &known.premises.nodes);
            let steering = Steering::of(&group, numbers);
            let known = group.build(content, numbers, steering, &tables);
            built.insert(labels.clone(), known);
        }
    }
    let rebuilt = built.keys().cloned().collect();
    memo.groups.extend(built);
    rebuilt
}

fn nodes_of(nodes: &Arc<Vec<String>>) -> impl Iterator<Item = &str> {
    nodes.iter().map(String::as_str)
}

/// Gives each node of a group what the group has, and its own place in the fabric.
fn hand_out(known: &Known, places: &Places, configs: &mut BTreeMap<String, NodeConfig>) {
    for node in nodes_of(&known.premises.nodes) {
        let underlay = places.underlays.get(node);
        // A node that got no address, because a pool is used up, can have no overlay.
        let shared = if places.has_vtep(node) {
            &known.shared
        } else {
            &known.bare
        };
        if let Some(config) = configs.get_mut(node) {
            config.underlay = underlay.cloned();
            config.shared = Arc::clone(shared);
            continue;
        }
        let config = NodeConfig {
            underlay: underlay.cloned(),
            addresses: BTreeMap::new(),
            mirrors: NodeMirrors::default(),
            shared: Arc::clone(shared),
        };
        configs.insert(node.to_owned(), config);
    }
}

/// Says which hand-written peerings are on a segment that no selected node has.
fn nowhere(content: &Content, memo: &Memo, problems: &mut Vec<Problem>) {
    let broken = &memo.broken;
    let groups = memo.groups.values();
    let in_effect: BTreeSet<&String> = groups.flat_map(|known| &known.shared.peerings).collect();
    for (name, object) in &*content.bgp {
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
    told: &BTreeMap<String, u32>,
    steered: &BTreeSet<String>,
) -> BTreeMap<String, u32> {
    let local = steered.iter().map(|vrf| names::local_vrf(vrf));
    let local: Vec<IfName> = local.collect();
    let mut names: BTreeSet<&str> = content
        .vrf
        .values()
        .map(|object| object.spec.vrf.as_str())
        .collect();
    names.insert(content.settings.cluster_vrf.name.as_str());
    names.extend(local.iter().map(IfName::as_str));
    let range = &content.settings.route_tables;
    // The kernel's own tables, which no range may hand out.
    let usable = |table: &u32| !(253..=255).contains(table);
    allocate::numbers((range.first, range.last), &names, told, usable)
}
