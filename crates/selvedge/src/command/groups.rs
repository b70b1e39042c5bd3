//! Nodes that have the same, and so the same answer to a question: one of them is asked for all.

use std::collections::BTreeMap;

use compiler::{Compilation, NodeConfig};
use explain::query::Query;
use ipnet::IpNet;

use crate::{names, output::counted};

/// Groups of nodes that have the same answer to a question. Only a question about an address can have another answer on each of them.
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
    let mut groups: BTreeMap<(usize, usize), Vec<String>> = BTreeMap::new();
    for (node, config) in &compilation.nodes {
        let shared = std::sync::Arc::as_ptr(&config.shared).addr();
        let fabric = config.underlay.as_ref();
        let fabric = fabric.map_or(0, |underlay| {
            std::sync::Arc::as_ptr(&underlay.fabric).addr()
        });
        groups
            .entry((shared, fabric))
            .or_default()
            .push(node.clone());
    }
    let mut groups: Vec<Vec<String>> = groups.into_values().collect();
    groups.sort();
    groups
}

/// Whether a node has an address that no other one has.
fn has_address(config: &NodeConfig, net: IpNet) -> bool {
    if net.prefix_len() != net.max_prefix_len() {
        return false;
    }
    let address = net.addr();
    let of_segments = config.addresses.values().flatten();
    let of_sessions = config.sessions.iter().flatten();
    let mut own = of_segments.chain(of_sessions).map(|own| own.addr());
    own.any(|own| own == address)
        || config.underlay.as_ref().is_some_and(|underlay| {
            let vteps = [underlay.vtep, underlay.other_vtep];
            vteps.contains(&Some(address)) || std::net::IpAddr::from(underlay.router_id) == address
        })
}

/// Nodes in a few words: `n1`, or `n[1-3] (3 nodes)`.
pub(super) fn named(nodes: &[String]) -> String {
    match nodes {
        [one] => one.clone(),
        nodes => format!(
            "{} ({})",
            names::folded(nodes),
            counted(nodes.len(), "node")
        ),
    }
}
