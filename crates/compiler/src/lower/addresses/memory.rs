//! What is left to know of addresses that were given before.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use api::value::Prefix;

use super::nodes;
use crate::snapshot::{Kind, ObjectRef, Objects, Snapshot};

/// The host routes that each intent's generated objects announce.
pub(super) fn remembered(snapshot: &Snapshot) -> BTreeMap<ObjectRef, Vec<IpAddr>> {
    let mut remembered: BTreeMap<ObjectRef, Vec<IpAddr>> = BTreeMap::new();
    for object in snapshot.vrf_route_configurations.values() {
        let Some(owner) = &object.meta.owner else {
            continue;
        };
        let hosts = object.spec.export.iter().filter_map(|item| host(item.cidr));
        remembered.entry(owner.clone()).or_default().extend(hosts);
    }
    remembered
}

/// Addresses that nodes were told to have or to announce, or that objects announce whose owner cannot be read or is going: they are not
/// given to the next before they are gone. Nor are next hops, which routers have that nobody declared.
pub(super) fn spoken_for(snapshot: &Snapshot) -> BTreeSet<IpAddr> {
    let mut hosts = BTreeSet::new();
    for (owner, announced) in remembered(snapshot) {
        if !is_present(snapshot, &owner) {
            hosts.extend(announced);
        }
    }
    for destination in snapshot.destinations.values() {
        if let Some(next_hop) = &destination.spec.next_hop {
            hosts.extend(next_hop.ipv4.map(IpAddr::V4));
            hosts.extend(next_hop.ipv6.map(IpAddr::V6));
        }
    }
    // Most nodes are told the same; what was seen just before need not be read again.
    let mut seen = BTreeMap::new();
    for config in snapshot.node_network_configs.values() {
        nodes::all_told(&config.spec, &mut hosts);
        for (name, vrf) in &config.spec.fabric_vrfs {
            let Some(filter) = &vrf.evpn_export_filter else {
                continue;
            };
            if seen.insert(name, filter) == Some(filter) {
                continue;
            }
            let prefixes = filter.items.iter().filter_map(|item| item.matcher.prefix);
            hosts.extend(prefixes.filter_map(|matcher| host(matcher.prefix)));
        }
    }
    hosts
}

fn is_present(snapshot: &Snapshot, subject: &ObjectRef) -> bool {
    fn has<S, T>(objects: &Objects<S, T>, subject: &ObjectRef) -> bool {
        objects.contains_key(&subject.key)
    }
    match subject.kind {
        Kind::Inbound => has(&snapshot.inbounds, subject),
        Kind::Outbound => has(&snapshot.outbounds, subject),
        _ => true,
    }
}

/// The one address of a host route.
fn host(prefix: Prefix) -> Option<IpAddr> {
    let net = prefix.net();
    (net.prefix_len() == net.max_prefix_len()).then(|| net.addr())
}
