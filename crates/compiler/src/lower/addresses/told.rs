//! What nodes were told to have or to announce.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use api::{tcaas::NodeNetworkConfigSpec, value::Prefix};

use super::memory::host;
use crate::{
    changes::Changes,
    snapshot::{Key, Kind, Snapshot},
};

/// The addresses that nodes were told to have or to announce. Most nodes are told to announce the same, so it is counted by list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    by_node: BTreeMap<Key, Vec<Arc<[IpAddr]>>>,
    /// How often each list was told.
    lists: BTreeMap<Arc<[IpAddr]>, usize>,
    /// In how many lists each address is.
    addresses: BTreeMap<IpAddr, usize>,
}

/// What nodes were told, kept from the first question on: then a question needs no look at every node. It is no part of what anybody
/// has, so all are equal.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept(pub(super) Option<Told>);

impl PartialEq for Kept {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Kept {}

impl Told {
    pub(super) fn new(snapshot: &Snapshot) -> Self {
        let mut told = Self::default();
        for (node, config) in &snapshot.node_network_configs {
            told.insert(node, &config.spec);
        }
        told
    }

    pub(super) fn update(&mut self, snapshot: &Snapshot, changes: Changes<'_>) {
        for node in changes.of(Kind::NodeNetworkConfig) {
            let before = self.by_node.remove(node).unwrap_or_default();
            if let Some(config) = snapshot.node_network_configs.get(node) {
                self.insert(node, &config.spec);
            }
            for list in before {
                self.remove(&list);
            }
        }
    }

    /// The addresses that lie in one of the prefixes.
    pub(super) fn within(&self, prefixes: &[Prefix]) -> impl Iterator<Item = IpAddr> {
        let range = |prefix: &Prefix| {
            let net = prefix.net();
            let range = net.network()..=net.broadcast();
            self.addresses.range(range).map(|(address, _)| *address)
        };
        prefixes.iter().flat_map(range)
    }

    fn insert(&mut self, node: &Key, config: &NodeNetworkConfigSpec) {
        let mut own = Vec::new();
        for list in lists(config) {
            let list = match self.lists.get_key_value(&*list) {
                Some((known, _)) => Arc::clone(known),
                None => Arc::from(list),
            };
            let count = self.lists.entry(Arc::clone(&list)).or_default();
            *count += 1;
            if *count == 1 {
                for address in &*list {
                    *self.addresses.entry(*address).or_default() += 1;
                }
            }
            own.push(list);
        }
        self.by_node.insert(node.clone(), own);
    }

    fn remove(&mut self, list: &Arc<[IpAddr]>) {
        if is_last(&mut self.lists, list) {
            for address in &**list {
                is_last(&mut self.addresses, address);
            }
        }
    }
}

/// Takes one away; whether it was the last.
fn is_last<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) -> bool {
    let Some(count) = counts.get_mut(key) else {
        return false;
    };
    *count -= 1;
    let is_last = *count == 0;
    if is_last {
        counts.remove(key);
    }
    is_last
}

/// What a node was told: the addresses that it has itself, and those that it announces in each VRF.
fn lists(config: &NodeNetworkConfigSpec) -> Vec<Vec<IpAddr>> {
    let segments = config.layer2s.values();
    let interfaces = segments.filter_map(|segment| segment.host_interface.as_ref());
    let over_the_fabric = interfaces.flat_map(|interface| &interface.addresses);
    let on_devices = config.host_vlans.values().flat_map(|one| &one.addresses);
    let own = over_the_fabric.chain(on_devices).map(|one| one.addr());
    let mut lists = vec![own.collect()];
    let vrfs = config.fabric_vrfs.values();
    for filter in vrfs.filter_map(|vrf| vrf.evpn_export_filter.as_ref()) {
        let prefixes = filter.items.iter().filter_map(|item| item.matcher.prefix);
        let hosts = prefixes.filter_map(|matcher| host(matcher.prefix));
        lists.push(hosts.collect());
    }
    lists.retain(|list: &Vec<IpAddr>| !list.is_empty());
    for list in &mut lists {
        list.sort_unstable();
        list.dedup();
    }
    lists
}
