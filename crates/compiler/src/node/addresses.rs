//! The addresses of the nodes on the segments that they have.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use api::value::{HostCidr, Prefix};
use ipnet::IpNet;

use super::NodeConfig;
use crate::{
    lower::{NodeAddresses, networks},
    revision::Content,
};

/// Gives a node its addresses on the segments that are in effect on it, each with the length of its network.
pub(super) fn place(content: &Content, given: &NodeAddresses, node: &str, config: &mut NodeConfig) {
    let objects: BTreeSet<&String> = config.shared.host_devices.values().collect();
    let mut addresses = BTreeMap::new();
    for name in objects {
        let Some(object) = content.layer2.get(name) else {
            continue;
        };
        let own = given.get(&object.source).and_then(|nodes| nodes.get(node));
        let own = own.map_or(&[][..], Vec::as_slice);
        let networks = networks(&object.spec).into_iter();
        let own: Vec<HostCidr> = networks.filter_map(|network| of(network, own)).collect();
        if !own.is_empty() {
            addresses.insert(name.clone(), own);
        }
    }
    config.addresses = addresses;
}

/// The one of the addresses that lies in a network.
fn of(network: Prefix, addresses: &[IpAddr]) -> Option<HostCidr> {
    let net = network.net();
    let own = addresses.iter().find(|address| net.contains(*address))?;
    let net = IpNet::new(*own, net.prefix_len()).ok()?;
    Some(HostCidr::new(net))
}
