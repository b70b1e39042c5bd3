//! Nodes that have the same, and so the same answer to a question: one of them is asked for all.
//!
//! Nodes of one group differ in their own addresses: those on segments and host sessions, tunnel endpoints, router IDs, sources of
//! tunnels. An answer for several nodes has none of these values; it says that each node has its own.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use api::value::HostCidr;
use compiler::{Compilation, NodeConfig};
use explain::{
    element::{Element, elements},
    query::Query,
};
use ipnet::IpNet;
use serde_json::{Map, Value};

use crate::{names, output::counted};

/// Groups of nodes with the same answer to a question. Nodes that alone have an address that is asked about are groups of their own, and
/// then the only ones.
pub(super) fn groups(compilation: &Compilation, query: Option<&Query>) -> Vec<Vec<String>> {
    if let Some(Query::Prefix(net)) = query {
        let own = compilation.nodes.iter();
        let own: Vec<Vec<String>> = own
            .filter(|(_, config)| has_address(config, *net))
            .map(|(node, _)| vec![node.clone()])
            .collect();
        if !own.is_empty() {
            return own;
        }
    }
    let mut groups: BTreeMap<(usize, usize, String), Vec<String>> = BTreeMap::new();
    for (node, config) in &compilation.nodes {
        let shared = Arc::as_ptr(&config.shared).addr();
        let fabric = config.underlay.as_ref();
        let fabric = fabric.map_or(0, |underlay| Arc::as_ptr(&underlay.fabric).addr());
        let rest = without_addresses(config);
        let group = groups.entry((shared, fabric, rest)).or_default();
        group.push(node.clone());
    }
    let mut groups: Vec<Vec<String>> = groups.into_values().collect();
    groups.sort();
    groups
}

/// The first word of a line that is an address which a single node has for itself.
pub(super) fn own_address(compilation: &Compilation, line: &str) -> Option<Query> {
    let net = |word: &str| -> Option<IpNet> {
        let net = word.parse().ok();
        net.or_else(|| word.parse::<IpAddr>().ok().map(IpNet::from))
    };
    let mut nets = line.split_whitespace().filter_map(net);
    let is_own = |net: &IpNet| {
        let mut nodes = compilation.nodes.values();
        nodes.any(|config| has_address(config, *net))
    };
    nets.find(is_own).map(Query::Prefix)
}

/// What a config has beside what it shares with others, without the node's own addresses.
fn without_addresses(config: &NodeConfig) -> String {
    let NodeConfig {
        underlay: _,
        addresses,
        mirrors,
        vrf_mtu,
        uplink_mtu,
        sessions,
        host_router,
        shared: _,
        revision: _,
    } = config;
    // Nodes with the same router share one value.
    let router = host_router.as_ref();
    let router = router.map(|one| Arc::as_ptr(&one.router).addr());
    let networks = |own: &Vec<HostCidr>| -> Vec<String> {
        let networks = own.iter().map(|own| own.prefix().to_string());
        networks.collect()
    };
    let addresses = addresses.iter().map(|(name, own)| (name, networks(own)));
    let addresses: Vec<_> = addresses.collect();
    let sessions = sessions.iter().map(Vec::is_empty);
    let sessions: Vec<bool> = sessions.collect();
    let tunnels: Vec<_> = mirrors.tunnels.keys().collect();
    let loopbacks: Vec<_> = mirrors.loopbacks.keys().collect();
    let (rules, missing) = (&mirrors.rules, &mirrors.missing);
    format!(
        "{addresses:?} {sessions:?} {vrf_mtu:?} {uplink_mtu:?} {rules:?} {tunnels:?} {loopbacks:?} {missing:?} {router:?}"
    )
}

/// Whether a node has an address, or the network of a host session, that no other node has.
fn has_address(config: &NodeConfig, net: IpNet) -> bool {
    let mut sessions = config.sessions.iter().flatten();
    if sessions.any(|own| own.net().trunc() == net.trunc() || own.net().contains(&net)) {
        return true;
    }
    if net.prefix_len() != net.max_prefix_len() {
        return false;
    }
    let address = net.addr();
    let mut of_segments = config.addresses.values().flatten();
    let mut of_tunnels = config.mirrors.tunnels.values();
    let mut of_loopbacks = config.mirrors.loopbacks.values();
    of_segments.any(|own| own.addr() == address)
        || of_tunnels.any(|(_, tunnel)| tunnel.source_address == address)
        || of_loopbacks.any(|own| *own == address)
        || config.underlay.as_ref().is_some_and(|underlay| {
            let vteps = [underlay.vtep, underlay.other_vtep];
            vteps.contains(&Some(address)) || IpAddr::from(underlay.router_id) == address
        })
}

/// The most columns that the names of nodes take in a heading.
const NAMES: usize = 60;

/// Nodes in a few words: `n1`, or `n[1-3] (3 nodes)`.
pub(super) fn named(nodes: &[String]) -> String {
    match nodes {
        [one] => one.clone(),
        nodes => format!(
            "{} ({})",
            names::brief(nodes, NAMES),
            counted(nodes.len(), "node")
        ),
    }
}

/// An element in words, as so many nodes have it: of addresses the first and the last.
pub(super) fn text(compilation: &Compilation, element: &Element, nodes: &[String]) -> String {
    let Element::HostAddress { device, address } = element else {
        return element.to_string();
    };
    let own: BTreeSet<HostCidr> = nodes
        .iter()
        .flat_map(|node| addresses(compilation, node, device, address))
        .collect();
    match (own.first(), own.last()) {
        (Some(first), Some(last)) if first != last => format!(
            "{device} addresses {}–{} of {address}, one per node",
            first.addr(),
            last.addr()
        ),
        (Some(one), _) => format!("{device} address {one}"),
        (None, _) => element.to_string(),
    }
}

/// The addresses of a node on a device, in a network.
pub(super) fn addresses(
    compilation: &Compilation,
    node: &str,
    device: &str,
    network: &str,
) -> Vec<HostCidr> {
    let Some(config) = compilation.nodes.get(node) else {
        return Vec::new();
    };
    let object = config.shared.host_devices.get(device);
    let own = object.and_then(|object| config.addresses.get(object));
    let own = own.into_iter().flatten().copied();
    let in_network =
        own.filter(|own| own.prefix().to_string() == network || own.to_string() == network);
    in_network.collect()
}

/// What each of several nodes has for itself of an element, for programs; nothing where they have all of it in common.
pub(super) fn own_values(
    compilation: &Compilation,
    element: &Element,
    nodes: &[String],
) -> Option<Map<String, Value>> {
    let own_fields = element.own_fields();
    let of_node = |node: &String| -> Option<Value> {
        if let Element::HostAddress { device, address } = element {
            let own = addresses(compilation, node, device, address).into_iter();
            return Some(own.map(|own| Value::from(own.to_string())).collect());
        }
        let config = compilation.nodes.get(node)?;
        let value = elements(&config.content()).remove(element)?;
        let fields = value.as_object()?.iter();
        let own = fields.filter(|(name, _)| own_fields.contains(&name.as_str()));
        let own = own.map(|(name, value)| (name.clone(), value.clone()));
        Some(Value::Object(own.collect()))
    };
    if own_fields.is_empty() && !matches!(element, Element::HostAddress { .. }) {
        return None;
    }
    let of_nodes = nodes.iter();
    Some(
        of_nodes
            .filter_map(|node| Some((node.clone(), of_node(node)?)))
            .collect(),
    )
}

/// The value of an element without what each node has for itself.
pub(super) fn in_common(element: &Element, value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|name, _| !element.own_fields().contains(&name.as_str()));
    }
    value
}
