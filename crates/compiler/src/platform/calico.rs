//! Calico gives pods their addresses and says where they may send.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use api::{
    selvedge::Platform,
    value::{HostCidr, Prefix},
};
use ipnet::IpNet;
use serde::Serialize;
use serde_json::{Value, json};

use super::{PlatformObject, coil};
use crate::{
    allocate,
    lower::{Service, plain},
    names,
    snapshot::ObjectRef,
};

const API_VERSION: &str = "projectcalico.org/v3";
const STORED_API_VERSION: &str = "crd.projectcalico.org/v1";

const OWN_KINDS: &[(&str, &str)] = &[
    ("IPPool", "ippools"),
    ("IPReservation", "ipreservations"),
    ("NetworkPolicy", "networkpolicies"),
    ("GlobalNetworkPolicy", "globalnetworkpolicies"),
];

pub(super) const KINDS: [super::Kinds; 2] =
    [(API_VERSION, OWN_KINDS), (STORED_API_VERSION, OWN_KINDS)];

/// The tier of policies that name none.
const DEFAULT_TIER: &str = "default";

/// Selects no node: pods get addresses of the pool only where their annotation asks for it.
const NO_NODE: &str = "!all()";

/// How many bits of an address lie within the block that a node takes, where nothing prevents Calico's own choice.
const BLOCK_BITS: u8 = 6;

/// Label of the pods of a PodNetwork, which its policy selects.
const POD_NETWORK_LABEL: &str = "selvedge.dev/pod-network";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct IpPool {
    cidr: Prefix,
    block_size: u8,
    node_selector: &'static str,
    allowed_uses: [&'static str; 1],
    ipip_mode: &'static str,
    vxlan_mode: &'static str,
    nat_outgoing: bool,
}

#[derive(Serialize)]
struct Policy {
    selector: String,
    types: [&'static str; 1],
    egress: Vec<Value>,
}

/// An object as Calico stores it, for clusters without its API server: a policy's tier is part of its name there.
pub(super) fn as_stored(mut object: PlatformObject) -> PlatformObject {
    if object.api_version != API_VERSION {
        return object;
    }
    object.api_version = STORED_API_VERSION;
    if matches!(object.kind, "NetworkPolicy" | "GlobalNetworkPolicy") {
        object.name = format!("{DEFAULT_TIER}.{}", object.name);
        if let Some(spec) = object.body.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("tier".to_owned(), json!(DEFAULT_TIER));
        }
    }
    object
}

/// The annotations by which a pod gets its addresses from a service's pools, and from no other.
pub(super) fn pool_annotations(service: &Service) -> BTreeMap<&'static str, String> {
    let families = families(service);
    let mut annotations = BTreeMap::new();
    for (subnet, pool) in families {
        let annotation = if subnet.is_ipv4() {
            "cni.projectcalico.org/ipv4pools"
        } else {
            "cni.projectcalico.org/ipv6pools"
        };
        annotations.insert(annotation, json!([pool]).to_string());
    }
    annotations
}

/// The subnets that a service has pools in, IPv4 first, each with the pool's name.
fn families(service: &Service) -> impl Iterator<Item = (Prefix, &String)> {
    let has_addresses = |subnet: &&Prefix| {
        let mut addresses = plain(&service.addresses);
        addresses.any(|address| address.is_ipv4() == subnet.is_ipv4())
    };
    let subnets = service.subnets.iter().filter(has_addresses).copied();
    subnets.zip(&service.pools)
}

/// The pools of an Outbound's gateways, from which exactly its addresses are given, and where the gateways may send.
pub(crate) fn outbound(
    settings: &Platform,
    subject: &ObjectRef,
    service: &Service,
) -> Vec<PlatformObject> {
    let mut objects = Vec::new();
    for (subnet, pool) in families(service) {
        let ours = plain(&service.addresses);
        let ours: Vec<IpAddr> = ours
            .filter(|one| one.is_ipv4() == subnet.is_ipv4())
            .collect();
        let cidr = pool_cidr(subnet, &ours);
        // A block is what a node takes as a whole: with one address in it, any address can go to any node.
        let block_size = cidr.net().max_prefix_len();
        objects.push(ip_pool(subject, pool, cidr, block_size));
        objects.push(reservation(subject, pool, &without(cidr, &ours)));
    }
    let name = names::label(&subject.key.name);
    let policy = Policy {
        selector: format!(
            "app.kubernetes.io/name == 'coil' && app.kubernetes.io/component == 'egress' && \
             app.kubernetes.io/instance == '{name}'"
        ),
        types: ["Egress"],
        egress: egress_rules(&service.reached),
    };
    objects.push(PlatformObject {
        api_version: API_VERSION,
        kind: "NetworkPolicy",
        // A policy selects pods of its own namespace, and the gateways are in it.
        namespace: Some(settings.coil.namespace.clone()),
        name,
        owner: subject.clone(),
        body: json!({ "spec": policy }),
        annotations: json!({}),
    });
    objects
}

/// The pools of a PodNetwork, from which all of its Network is given but what others have, and where its pods may send.
pub(crate) fn pod_network(subject: &ObjectRef, service: &Service) -> Vec<PlatformObject> {
    let mut objects = Vec::new();
    for (subnet, pool) in service.subnets.iter().zip(&service.pools) {
        let net = subnet.net();
        let usual = net.max_prefix_len() - BLOCK_BITS;
        objects.push(ip_pool(subject, pool, *subnet, net.prefix_len().max(usual)));
        let reserved = not_for_pods(*subnet, &service.reserved);
        if !reserved.is_empty() {
            objects.push(reservation(subject, pool, &reserved));
        }
    }
    if !service.reached.is_empty() {
        let name = names::label(&subject.key.name);
        let policy = Policy {
            selector: format!("{POD_NETWORK_LABEL} == '{name}'"),
            types: ["Egress"],
            egress: pod_rules(&service.reached),
        };
        let body = json!({ "spec": policy });
        objects.push(cluster_wide(
            subject,
            "GlobalNetworkPolicy",
            &subject.key.name,
            body,
        ));
    }
    objects
}

/// A pod of the network may send to what the network reaches, to other pods, and to the API server.
fn pod_rules(reached: &[Prefix]) -> Vec<Value> {
    let mut rules = rules_to(reached);
    rules.push(json!({
        "action": "Allow",
        "destination": {"namespaceSelector": "all()", "selector": "all()"},
    }));
    rules.push(to_the_api_server());
    rules
}

/// The network and broadcast addresses, the gateway, which an attachment may need any time, and what others have.
fn not_for_pods(subnet: Prefix, taken: &[IpAddr]) -> Vec<Prefix> {
    let net = subnet.net();
    let mut reserved: BTreeSet<IpAddr> = taken
        .iter()
        .copied()
        .filter(|address| net.contains(address))
        .collect();
    if net.max_prefix_len() - net.prefix_len() > 1 {
        reserved.extend(allocate::gateway(subnet).map(HostCidr::addr));
        reserved.insert(net.network());
        if subnet.is_ipv4() {
            reserved.insert(net.broadcast());
        }
    }
    reserved.into_iter().map(Prefix::host).collect()
}

/// A gateway may send to what lies behind it, back to its clients, and to the API server, where it learns of them.
fn egress_rules(destinations: &[Prefix]) -> Vec<Value> {
    let mut rules = rules_to(destinations);
    rules.push(json!({
        "action": "Allow",
        "protocol": "UDP",
        "destination": {
            "namespaceSelector": "all()",
            "selector": "all()",
            "ports": [coil::TUNNEL_PORT],
        },
    }));
    rules.push(to_the_api_server());
    rules
}

fn to_the_api_server() -> Value {
    json!({
        "action": "Allow",
        "destination": {"services": {"name": "kubernetes", "namespace": "default"}},
    })
}

/// One rule for each family: Calico takes no rule of both.
fn rules_to(destinations: &[Prefix]) -> Vec<Value> {
    let of_family = |ipv4: bool| -> Vec<Prefix> {
        let of_family = destinations
            .iter()
            .filter(|prefix| prefix.is_ipv4() == ipv4);
        of_family.copied().collect()
    };
    [of_family(true), of_family(false)]
        .iter()
        .filter(|nets| !nets.is_empty())
        .map(|nets| json!({"action": "Allow", "destination": {"nets": nets}}))
        .collect()
}

fn ip_pool(subject: &ObjectRef, name: &str, cidr: Prefix, block_size: u8) -> PlatformObject {
    let pool = IpPool {
        cidr,
        block_size,
        node_selector: NO_NODE,
        allowed_uses: ["Workload"],
        ipip_mode: "Never",
        vxlan_mode: "Never",
        nat_outgoing: false,
    };
    cluster_wide(subject, "IPPool", name, json!({ "spec": pool }))
}

/// Addresses of a pool that Calico does not give.
fn reservation(subject: &ObjectRef, name: &str, reserved: &[Prefix]) -> PlatformObject {
    let body = json!({"spec": {"reservedCIDRs": reserved}});
    cluster_wide(subject, "IPReservation", name, body)
}

fn cluster_wide(
    subject: &ObjectRef,
    kind: &'static str,
    name: &str,
    body: Value,
) -> PlatformObject {
    PlatformObject {
        api_version: API_VERSION,
        kind,
        namespace: None,
        name: name.to_owned(),
        owner: subject.clone(),
        body,
        annotations: json!({}),
    }
}

/// What the pool of single addresses spans: the whole network, or, where that is so large that Calico would search it in vain for the
/// few that are not reserved, the smallest part of it that contains them all and some thousand more addresses.
fn pool_cidr(subnet: Prefix, addresses: &[IpAddr]) -> Prefix {
    let longest = subnet.net().max_prefix_len() - 12;
    let has_all = |net: &IpNet| addresses.iter().all(|address| net.contains(address));
    let first = addresses.first().copied();
    let around = |length| first.and_then(|first| IpNet::new(first, length).ok());
    (subnet.net().prefix_len()..=longest)
        .rev()
        .filter_map(around)
        .map(|net| net.trunc())
        .find(has_all)
        .map_or(subnet, Prefix::of)
}

/// A network without some addresses, in the fewest parts.
fn without(network: Prefix, addresses: &[IpAddr]) -> Vec<Prefix> {
    let net = network.net();
    let inside: Vec<IpAddr> = addresses
        .iter()
        .copied()
        .filter(|one| net.contains(one))
        .collect();
    if inside.is_empty() {
        return vec![network];
    }
    match net.subnets(net.prefix_len() + 1) {
        Ok(halves) if net.prefix_len() < net.max_prefix_len() => halves
            .flat_map(|half| without(Prefix::of(half), &inside))
            .collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().expect("a network")
    }

    fn addresses(texts: &[&str]) -> Vec<IpAddr> {
        let parse = |text: &&str| text.parse().expect("an address");
        texts.iter().map(parse).collect()
    }

    #[test]
    fn a_pool_spans_its_network_unless_that_is_huge() {
        let ours = addresses(&["203.0.113.17"]);
        let small = prefix("203.0.113.16/28");
        assert_eq!(pool_cidr(small, &ours), small);
        let ours = addresses(&["2001:db8::1", "2001:db8::2"]);
        let huge = prefix("2001:db8::/64");
        assert_eq!(pool_cidr(huge, &ours), prefix("2001:db8::/116"));
        let ours = addresses(&["2001:db8::1", "2001:db8::1:0"]);
        assert_eq!(pool_cidr(huge, &ours), prefix("2001:db8::/111"));
    }

    #[test]
    fn what_is_left_of_a_network_is_everything_but_the_addresses() {
        let left = without(prefix("192.0.2.0/30"), &addresses(&["192.0.2.1"]));
        assert_eq!(left, [prefix("192.0.2.0/32"), prefix("192.0.2.2/31")]);
        assert_eq!(
            without(prefix("192.0.2.1/32"), &addresses(&["192.0.2.1"])),
            []
        );
        let whole = prefix("2001:db8::/64");
        assert_eq!(without(whole, &addresses(&["192.0.2.1"])), [whole]);
    }
}
