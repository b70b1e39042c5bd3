//! Addresses of the nodes on segments: lowest free first, and what a node has it keeps.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use api::{
    tcaas::{AddressLists, Layer2NetworkConfigurationSpec, NodeNetworkConfigSpec},
    value::{HostCidr, Prefix},
};
use ipnet::IpNet;

use super::layer2::host_device;
use crate::{
    allocate::Pool,
    lower::LowLevel,
    problem::{self, Problem},
    revision::Content,
    snapshot::{Key, Kind, Snapshot, age},
};

type Segment = LowLevel<Layer2NetworkConfigurationSpec>;

/// The addresses of each node, by node and by the name of the segment's object.
pub(super) type NodeAddresses = BTreeMap<String, BTreeMap<String, Vec<HostCidr>>>;

/// Gives every node that has a segment with node addresses one of each of its networks, or none at all.
///
/// `holders` says on which nodes each object is in effect. Those that already hold an address are served first.
pub(super) fn assign(
    content: &Content,
    snapshot: &Snapshot,
    services: &BTreeSet<IpAddr>,
    holders: &BTreeMap<&str, BTreeSet<&str>>,
    problems: &mut Vec<Problem>,
) -> NodeAddresses {
    let mut pools = Pools::new(content, services);
    let mut objects: Vec<(&str, &Segment)> = content
        .layer2
        .iter()
        .filter(|(_, object)| object.spec.node_ips.as_ref().is_some_and(|ips| ips.enabled))
        .map(|(name, object)| (name.as_str(), object))
        .collect();
    objects.sort_by_key(|(name, object)| (age(&object.meta), *name));
    let mut given = NodeAddresses::new();
    let mut wanting = Vec::new();
    for (name, object) in objects {
        let networks = networks(&object.spec);
        let fixed: BTreeSet<IpAddr> = fixed(&object.spec).collect();
        let remembered = remembered(snapshot, name, object);
        for node in holders.get(name).into_iter().flatten() {
            let recovered = snapshot
                .node_network_configs
                .get(&Key::named(*node))
                .map(|config| of_config(&config.spec, &object.spec));
            let before = remembered.get(*node).cloned().or(recovered);
            let mut before = before.unwrap_or_default();
            before.retain(|address| !fixed.contains(address));
            match pools.keep(&networks, &before) {
                Some(kept) => {
                    let of_node = given.entry((*node).to_owned()).or_default();
                    of_node.insert(name.to_owned(), kept);
                }
                None => wanting.push((name, object, networks.clone(), *node)),
            }
        }
    }
    // Another segment's gateway is nobody's new address, but it moves no node that is there already.
    for object in content.layer2.values() {
        for address in fixed(&object.spec) {
            pools.reserve(address);
        }
    }
    for (name, object, networks, node) in wanting {
        let reserved = object.spec.node_ips.as_ref();
        let reserved = reserved.and_then(|ips| ips.reserved_for_pods).unwrap_or(0);
        match pools.take(&networks, reserved) {
            Ok(taken) => {
                let of_node = given.entry(node.to_owned()).or_default();
                of_node.insert(name.to_owned(), taken);
            }
            Err(network) => {
                let kind = problem::Kind::PoolExhausted {
                    pool: network.to_string(),
                    wanted: format!("node {node}"),
                };
                let source = object.source.clone();
                problems.push(Problem::new(source, "spec.nodeIPs", kind));
            }
        }
    }
    given
}

/// The networks that the nodes' addresses come from; none where nodes get none.
pub(super) fn networks(spec: &Layer2NetworkConfigurationSpec) -> Vec<Prefix> {
    let Some(node_ips) = spec.node_ips.as_ref().filter(|ips| ips.enabled) else {
        return Vec::new();
    };
    if node_ips.networks.is_empty() {
        let gateways = spec.anycast_gateways.iter();
        return gateways.map(|gateway| gateway.prefix()).collect();
    }
    node_ips.networks.clone()
}

/// What the status of the segment's author remembers: addresses by node.
fn remembered(snapshot: &Snapshot, name: &str, object: &Segment) -> BTreeMap<String, Vec<IpAddr>> {
    let lists: BTreeMap<String, AddressLists> = if object.source.kind == Kind::Layer2Attachment {
        let intent = snapshot.layer2_attachments.get(&object.source.key);
        let status = intent.and_then(|intent| intent.status.as_ref());
        status.map(|status| status.node_addresses.clone())
    } else {
        let written = snapshot
            .layer2_network_configurations
            .get(&Key::named(name));
        let status = written.and_then(|written| written.status.as_ref());
        let addresses = status
            .and_then(|status| status.get("nodeAddresses"))
            .cloned();
        addresses.and_then(|addresses| serde_json::from_value(addresses).ok())
    }
    .unwrap_or_default();
    lists
        .iter()
        .map(|(node, lists)| (node.clone(), flat(lists)))
        .collect()
}

/// What the node was told last: the memory that is left when a status is lost.
fn of_config(config: &NodeNetworkConfigSpec, spec: &Layer2NetworkConfigurationSpec) -> Vec<IpAddr> {
    let addresses = match &spec.interface_ref {
        Some(_) => host_device(spec)
            .and_then(|device| config.host_vlans.get(device.as_str()))
            .map(|vlan| &vlan.addresses),
        None => config
            .layer2s
            .get(&spec.id.to_string())
            .and_then(|segment| segment.host_interface.as_ref())
            .map(|interface| &interface.addresses),
    };
    let addresses = addresses.into_iter().flatten();
    addresses.map(|address| address.addr()).collect()
}

/// Addresses of a segment that are somebody's whatever nodes have: its gateways, and those of its routes.
fn fixed(spec: &Layer2NetworkConfigurationSpec) -> impl Iterator<Item = IpAddr> {
    let gateways = spec.anycast_gateways.iter().map(|gateway| gateway.addr());
    gateways.chain(spec.static_routes.iter().map(|route| route.next_hop))
}

/// One pool for each network, whoever uses it.
struct Pools(BTreeMap<Prefix, Pool>);

impl Pools {
    /// All networks of which nodes get addresses, without what others have of them.
    fn new(content: &Content, services: &BTreeSet<IpAddr>) -> Self {
        let segments = content.layer2.values().map(|object| &object.spec);
        let enabled = segments.filter(|spec| spec.node_ips.as_ref().is_some_and(|ips| ips.enabled));
        let pools = enabled.flat_map(networks).map(|net| (net, Pool::new(net)));
        let mut pools = Self(pools.collect());
        for address in services {
            pools.reserve(*address);
        }
        pools
    }

    fn reserve(&mut self, address: IpAddr) {
        for (network, pool) in &mut self.0 {
            if network.net().contains(&address) {
                pool.take(address);
            }
        }
    }

    /// Takes the addresses that are held already: one of each network, or none.
    fn keep(&mut self, networks: &[Prefix], held: &[IpAddr]) -> Option<Vec<HostCidr>> {
        let mut kept = Vec::new();
        for network in networks {
            let own = held
                .iter()
                .find(|address| network.net().contains(*address))?;
            let pool = self.0.get(network)?;
            if !pool.is_free(*own) {
                return None;
            }
            kept.push((*network, *own));
        }
        if kept.is_empty() {
            return None;
        }
        for (network, address) in &kept {
            if let Some(pool) = self.0.get_mut(network) {
                pool.take(*address);
            }
        }
        Some(kept.into_iter().filter_map(in_network).collect())
    }

    /// Takes the lowest free address of each network, but for the last `reserved`; or says which network has none left.
    fn take(&mut self, networks: &[Prefix], reserved: u32) -> Result<Vec<HostCidr>, Prefix> {
        for network in networks {
            let room = self
                .0
                .get_mut(network)
                .is_some_and(|pool| pool.has_room(reserved));
            if !room {
                return Err(*network);
            }
        }
        let mut taken = Vec::new();
        for network in networks {
            let address = self.0.get_mut(network).and_then(Pool::take_lowest);
            taken.extend(address.and_then(|address| in_network((*network, address))));
        }
        Ok(taken)
    }
}

fn in_network((network, address): (Prefix, IpAddr)) -> Option<HostCidr> {
    let net = IpNet::new(address, network.net().prefix_len()).ok()?;
    Some(HostCidr::new(net))
}

fn flat(lists: &AddressLists) -> Vec<IpAddr> {
    let ipv4 = lists.ipv4.iter().copied().map(IpAddr::V4);
    let ipv6 = lists.ipv6.iter().copied().map(IpAddr::V6);
    ipv4.chain(ipv6).collect()
}
