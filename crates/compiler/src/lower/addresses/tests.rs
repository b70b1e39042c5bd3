//! Who has which address after each change. What others have that the change does not touch is compared with a compile of everything.

use std::net::IpAddr;

use serde_json::{Value, json};
use worlds::{TCAAS, object};

use crate::{
    Compilation, Compiler, compile,
    lower::plain,
    snapshot::{Kind, ObjectRef},
};

/// A cluster whose addresses are brought up to date after each change.
#[derive(Default)]
struct Cluster {
    compiler: Compiler,
}

impl Cluster {
    fn new(documents: &[Value]) -> Self {
        let mut cluster = Self::default();
        cluster.put(documents);
        cluster
    }

    fn put(&mut self, documents: &[Value]) {
        for document in documents {
            self.compiler.insert(document);
        }
        self.update();
    }

    fn remove(&mut self, subject: &ObjectRef) {
        self.compiler.remove(subject);
        self.update();
    }

    /// Brings addresses up to date. They are always those that a first compile gives.
    fn update(&mut self) {
        let (snapshot, compilation) = self.compiler.compile();
        let unreadable = snapshot.unreadable.iter().map(ToString::to_string);
        assert_eq!(unreadable.collect::<Vec<_>>(), Vec::<String>::new());
        assert_eq!(*compilation, compile(snapshot));
    }

    fn compilation(&mut self) -> &Compilation {
        self.compiler.compile().1
    }

    fn has(&mut self, kind: Kind, name: &str) -> Vec<String> {
        let service = self.compilation().service(&ObjectRef::named(kind, name));
        let addresses = service.into_iter().flat_map(|one| plain(&one.addresses));
        addresses.map(|one| one.to_string()).collect()
    }

    fn node_has(&mut self, attachment: &str, node: &str) -> Vec<String> {
        let subject = ObjectRef::named(Kind::Layer2Attachment, attachment);
        let nodes = self.compilation().node_addresses.get(&subject);
        let own = nodes.and_then(|nodes| nodes.get(node)).into_iter();
        own.flatten().map(IpAddr::to_string).collect()
    }

    fn problems(&mut self) -> Vec<&'static str> {
        let problems = self.compilation().problems.iter();
        problems.map(|problem| problem.kind.reason()).collect()
    }
}

fn named(kind: &str, name: &str, spec: Value) -> Value {
    object(TCAAS, kind, json!({"name": name}), spec)
}

fn network(name: &str, cidr: &str) -> Value {
    named("Network", name, json!({"ipv4": {"cidr": cidr}, "vlan": 7}))
}

fn inbound(name: &str, network: &str, count: u32) -> Value {
    let spec = json!({"networkRef": network, "count": count});
    named("Inbound", name, spec)
}

/// The same with addresses in its status.
fn holding(mut document: Value, addresses: &[&str]) -> Value {
    document["status"] = json!({"addresses": {"ipv4": addresses}});
    document
}

/// An attachment on a device of the nodes of a group, whose nodes get addresses.
fn attachment(network: &str, group: &str) -> Value {
    let spec = json!({
        "networkRef": network, "interfaceRef": "bond0", "interfaceName": network, "nodeIPs": {"enabled": true},
        "nodeSelector": {"matchLabels": {"group": group}},
    });
    named("Layer2Attachment", network, spec)
}

fn node(name: &str, group: &str) -> Value {
    let metadata = json!({"name": name, "labels": {"group": group}});
    json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
}

/// The configured addresses of a node on a device.
fn config(node: &str, device: &str, address: &str) -> Value {
    let vlan = json!({"parent": "bond0", "vlan": 7, "mtu": 1500, "addresses": [address]});
    let spec = json!({"contractVersion": 1, "revision": "r", "hostVLANs": {device: vlan}});
    named("NodeNetworkConfig", node, spec)
}

#[test]
fn networks_of_any_length_that_overlap_are_shared_out_together() {
    let mut cluster = Cluster::new(&[
        network("around", "10.0.0.0/16"),
        network("inside", "10.0.0.0/29"),
        network("beside", "10.0.9.0/24"),
        network("apart", "10.1.0.0/16"),
        inbound("around", "around", 2),
        inbound("inside", "inside", 2),
        inbound("beside", "beside", 2),
        inbound("apart", "apart", 2),
    ]);
    cluster.put(&[inbound("inside", "inside", 3)]);
    cluster.put(&[inbound("around", "around", 3)]);
    cluster.put(&[inbound("apart", "apart", 3)]);
    cluster.remove(&ObjectRef::named(Kind::Inbound, "around"));
    cluster.put(&[inbound("inside", "inside", 2)]);
}

#[test]
fn a_network_that_moves_touches_those_it_leaves_and_those_it_comes_to() {
    let mut cluster = Cluster::new(&[
        network("a", "10.0.0.0/29"),
        network("b", "10.0.1.0/29"),
        network("c", "10.0.0.0/29"),
        inbound("a", "a", 4),
        inbound("b", "b", 4),
        inbound("c", "c", 2),
    ]);
    assert_eq!(cluster.has(Kind::Inbound, "c"), ["10.0.0.5", "10.0.0.6"]);
    cluster.put(&[network("c", "10.0.1.0/29")]);
    assert_eq!(cluster.has(Kind::Inbound, "c"), ["10.0.1.5", "10.0.1.6"]);
}

#[test]
fn what_is_held_of_a_network_that_is_not_there_is_in_the_way_of_others() {
    let lost = holding(inbound("lost", "gone", 1), &["10.0.0.1"]);
    let mut cluster = Cluster::new(&[network("a", "10.0.0.0/29"), lost, inbound("one", "a", 1)]);
    assert_eq!(cluster.has(Kind::Inbound, "one"), ["10.0.0.2"]);
    cluster.remove(&ObjectRef::named(Kind::Inbound, "lost"));
    assert_eq!(cluster.has(Kind::Inbound, "one"), ["10.0.0.1"]);
}

#[test]
fn a_next_hop_touches_those_who_need_a_new_address_there() {
    let held = holding(inbound("old", "b", 1), &["10.0.1.1"]);
    let mut cluster = Cluster::new(&[
        network("a", "10.0.0.0/29"),
        network("b", "10.0.1.0/29"),
        network("c", "10.0.2.0/29"),
        inbound("new", "a", 1),
        held,
        inbound("elsewhere", "c", 1),
    ]);
    let next_hop = |address: &str| {
        let spec = json!({"nextHop": {"ipv4": address}, "prefixes": ["192.0.2.0/24"]});
        named("Destination", "router", spec)
    };
    cluster.put(&[next_hop("10.0.0.1")]);
    assert_eq!(cluster.has(Kind::Inbound, "new"), ["10.0.0.2"]);
    cluster.put(&[next_hop("10.0.1.2")]);
}

#[test]
fn what_a_node_was_told_touches_segments_that_remember_nothing_of_it() {
    let mut remembering = attachment("b", "g");
    remembering["status"] = json!({"nodeAddresses": {"n": {"ipv4": ["10.0.1.3"]}}});
    let mut cluster = Cluster::new(&[
        network("a", "10.0.0.0/24"),
        network("b", "10.0.1.0/24"),
        network("c", "10.0.2.0/24"),
        attachment("a", "g"),
        remembering,
        attachment("c", "h"),
        node("n", "g"),
    ]);
    cluster.put(&[config("n", "a", "10.0.0.9/24")]);
    assert_eq!(cluster.node_has("a", "n"), ["10.0.0.9"]);
    cluster.put(&[config("n", "b", "10.0.1.9/24")]);
    assert_eq!(cluster.node_has("b", "n"), ["10.0.1.3"]);
}

#[test]
fn what_nodes_were_told_is_given_to_nobody_new_before_the_last_lets_go_of_it() {
    let mut cluster = Cluster::new(&[network("a", "10.0.0.0/24"), inbound("one", "a", 1)]);
    let has = |cluster: &mut Cluster| cluster.has(Kind::Inbound, "one");
    assert_eq!(has(&mut cluster), ["10.0.0.1"]);
    cluster.put(&[config("m", "x", "10.0.0.1/24")]);
    assert_eq!(has(&mut cluster), ["10.0.0.2"]);
    cluster.put(&[config("n", "x", "10.0.0.1/24")]);
    cluster.remove(&ObjectRef::named(Kind::NodeNetworkConfig, "m"));
    assert_eq!(has(&mut cluster), ["10.0.0.2"]);
    cluster.put(&[config("n", "x", "10.0.0.3/24")]);
    assert_eq!(has(&mut cluster), ["10.0.0.1"]);
}

#[test]
fn a_node_touches_the_segments_that_it_is_on_or_was_on() {
    let mut cluster = Cluster::new(&[
        network("a", "10.0.0.0/24"),
        network("b", "10.0.1.0/24"),
        attachment("a", "g"),
        attachment("b", "h"),
    ]);
    cluster.put(&[node("n", "g")]);
    assert_eq!(cluster.node_has("a", "n"), ["10.0.0.1"]);
    cluster.put(&[node("n", "h")]);
    assert_eq!(cluster.node_has("a", "n"), [""; 0]);
    assert_eq!(cluster.node_has("b", "n"), ["10.0.1.1"]);
    cluster.put(&[node("stranger", "i")]);
    cluster.remove(&ObjectRef::named(Kind::Node, "n"));
    assert_eq!(cluster.node_has("b", "n"), [""; 0]);
}

#[test]
fn a_node_that_goes_touches_a_segment_that_had_nothing_for_another() {
    let mut cluster = Cluster::new(&[
        network("a", "10.0.0.0/32"),
        attachment("a", "g"),
        node("m", "g"),
        node("n", "g"),
    ]);
    assert_eq!(
        cluster.problems(),
        ["PoolExhausted", "InterfaceNotFound"][..1]
    );
    cluster.remove(&ObjectRef::named(Kind::Node, "m"));
    assert_eq!(cluster.node_has("a", "n"), ["10.0.0.0"]);
    assert_eq!(cluster.problems(), [""; 0]);
}

#[test]
fn what_is_announced_touches_services_whose_status_says_nothing() {
    let held = holding(inbound("old", "b", 1), &["10.0.1.1"]);
    let mut cluster = Cluster::new(&[
        network("a", "10.0.0.0/24"),
        network("b", "10.0.1.0/24"),
        inbound("new", "a", 1),
        held,
    ]);
    let announced = |owner: &str, address: &str| {
        let owner = json!({"apiVersion": TCAAS, "kind": "Inbound", "name": owner, "uid": "", "controller": true});
        let item = json!({"cidr": format!("{address}/32"), "action": "permit"});
        let spec = json!({"vrf": "v", "import": [], "export": [item], "seq": 1000});
        let metadata = json!({"name": "routes", "ownerReferences": [owner]});
        object(TCAAS, "VRFRouteConfiguration", metadata, spec)
    };
    cluster.put(&[announced("new", "10.0.0.9")]);
    assert_eq!(cluster.has(Kind::Inbound, "new"), ["10.0.0.9"]);
    cluster.put(&[announced("old", "10.0.1.9")]);
    assert_eq!(cluster.has(Kind::Inbound, "new"), ["10.0.0.1"]);
    assert_eq!(cluster.has(Kind::Inbound, "old"), ["10.0.1.1"]);
    cluster.put(&[announced("gone", "10.0.0.1")]);
}
