//! The addresses of the nodes on the segments that they have.

use std::{collections::BTreeMap, net::IpAddr};

use api::{
    tcaas::Layer2NetworkConfigurationSpec,
    value::{HostCidr, Prefix},
};
use ipnet::IpNet;

use super::Shared;
use crate::{
    lower::{addresses::node_share, networks, object},
    view::View,
};

/// The addresses of a node on the segments that are in effect on it, each with the length of its network.
pub(super) fn of_node(
    view: &View<'_>,
    node: &str,
    shared: &Shared,
) -> BTreeMap<String, Vec<HostCidr>> {
    let mut addresses = BTreeMap::new();
    for name in &shared.addressed {
        let Some(object) = object::<Layer2NetworkConfigurationSpec>(view, name) else {
            continue;
        };
        let share = node_share(view, &object.source);
        let own = share.addresses.get(node).map_or(&[][..], Vec::as_slice);
        let networks = networks(&object.spec).into_iter();
        let own: Vec<HostCidr> = networks.filter_map(|network| of(network, own)).collect();
        if !own.is_empty() {
            addresses.insert(name.clone(), own);
        }
    }
    addresses
}

/// The one of the addresses that lies in a network.
fn of(network: Prefix, addresses: &[IpAddr]) -> Option<HostCidr> {
    let net = network.net();
    let own = addresses.iter().find(|address| net.contains(*address))?;
    let net = IpNet::new(*own, net.prefix_len()).ok()?;
    Some(HostCidr::new(net))
}
