use serde_json::{Value, json};
use worlds::{TCAAS, object};

use super::*;
use crate::{
    lower::{vrf, written::Written},
    snapshot::Insertion,
};

/// A cluster whose addresses are brought up to date after each change.
#[derive(Default)]
struct Cluster {
    snapshot: Snapshot,
    addresses: Addresses,
}

/// Brings addresses up to date.
fn update(addresses: &mut Addresses, snapshot: &Snapshot, changes: Changes<'_>) -> Differing {
    let mut destinations = Destinations::default();
    destinations.update(snapshot, Changes::All);
    let mut written = Written::default();
    written.update(snapshot, Changes::All);
    let input = Input {
        snapshot,
        destinations: &destinations,
        vrfs: &vrf::resolve(snapshot, &snapshot.settings(), &mut Vec::new()),
        written: &written.layer2,
    };
    addresses.update(input, changes)
}

impl Cluster {
    fn new(documents: &[Value]) -> Self {
        let mut cluster = Self::default();
        cluster.put(documents);
        cluster
    }

    fn put(&mut self, documents: &[Value]) -> Differing {
        let mut changed = BTreeSet::new();
        for document in documents {
            let Insertion::Object(subject) = Snapshot::default().insert(document) else {
                panic!("no object: {document}");
            };
            self.snapshot.remove(&subject);
            self.snapshot.insert(document);
            changed.insert(subject);
        }
        self.update(&changed)
    }

    fn remove(&mut self, subject: ObjectRef) -> Differing {
        assert!(self.snapshot.remove(&subject), "{subject} is not there");
        self.update(&[subject].into())
    }

    /// Brings addresses up to date. They are always those that a first share-out gives.
    fn update(&mut self, changed: &BTreeSet<ObjectRef>) -> Differing {
        let unreadable = self.snapshot.unreadable.iter().map(ToString::to_string);
        assert_eq!(unreadable.collect::<Vec<_>>(), Vec::<String>::new());
        let differing = update(&mut self.addresses, &self.snapshot, Changes::These(changed));
        let mut anew = Addresses::default();
        update(&mut anew, &self.snapshot, Changes::All);
        assert_eq!(self.addresses, anew);
        if let Some(told) = &self.addresses.told.0 {
            assert_eq!(*told, told::Told::new(&self.snapshot));
        }
        differing
    }

    fn has(&self, kind: Kind, name: &str) -> Vec<String> {
        let share = self.addresses.of(&ObjectRef::named(kind, name));
        plain(&share.addresses).map(|one| one.to_string()).collect()
    }

    fn node_has(&self, attachment: &str, node: &str) -> Vec<String> {
        let subject = ObjectRef::named(Kind::Layer2Attachment, attachment);
        let nodes = self.addresses.nodes().get(&subject);
        let own = nodes.and_then(|nodes| nodes.get(node)).into_iter();
        own.flatten().map(ToString::to_string).collect()
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

/// What a node was told to have on a device.
fn config(node: &str, device: &str, address: &str) -> Value {
    let vlan = json!({"parent": "bond0", "vlan": 7, "mtu": 1500, "addresses": [address]});
    let spec = json!({"contractVersion": 1, "revision": "r", "hostVLANs": {device: vlan}});
    named("NodeNetworkConfig", node, spec)
}

fn names(differing: &Differing) -> Vec<String> {
    let consumers = differing.consumers.iter();
    consumers.map(ToString::to_string).collect()
}

#[test]
fn a_change_touches_its_own_network_alone() {
    let mut cluster = Cluster::new(&[
        network("a", "10.0.0.0/24"),
        network("b", "10.0.1.0/24"),
        inbound("one", "a", 2),
        inbound("two", "b", 2),
    ]);
    let differing = cluster.put(&[inbound("one", "a", 3)]);
    assert_eq!(differing.grounds, 1);
    assert_eq!(names(&differing), ["Inbound one"]);
    assert_eq!(differing.networks, ["a".to_owned()].into());
    let differing = cluster.put(&[holding(inbound("two", "b", 2), &["10.0.1.1", "10.0.1.2"])]);
    assert_eq!(differing.grounds, 1);
    assert_eq!(names(&differing), [""; 0], "it has what it had");
    assert_eq!(differing.networks, BTreeSet::new());
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
    assert_eq!(cluster.put(&[inbound("inside", "inside", 3)]).grounds, 3);
    assert_eq!(cluster.put(&[inbound("around", "around", 3)]).grounds, 3);
    assert_eq!(cluster.put(&[inbound("apart", "apart", 3)]).grounds, 1);
    let gone = ObjectRef::named(Kind::Inbound, "around");
    assert_eq!(cluster.remove(gone).grounds, 3, "it was between them");
    assert_eq!(cluster.put(&[inbound("inside", "inside", 2)]).grounds, 1);
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
    let differing = cluster.put(&[network("c", "10.0.1.0/29")]);
    assert_eq!(differing.grounds, 3);
    assert_eq!(cluster.has(Kind::Inbound, "c"), ["10.0.1.5", "10.0.1.6"]);
}

#[test]
fn what_is_held_of_a_network_that_is_not_there_is_in_the_way_of_others() {
    let lost = holding(inbound("lost", "gone", 1), &["10.0.0.1"]);
    let mut cluster = Cluster::new(&[network("a", "10.0.0.0/29"), lost, inbound("one", "a", 1)]);
    assert_eq!(cluster.has(Kind::Inbound, "one"), ["10.0.0.2"]);
    let differing = cluster.remove(ObjectRef::named(Kind::Inbound, "lost"));
    assert_eq!(names(&differing), ["Inbound lost", "Inbound one"]);
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
    let differing = cluster.put(&[next_hop("10.0.0.1")]);
    assert_eq!(
        (differing.grounds, &*names(&differing)),
        (1, &["Inbound new".to_owned()][..])
    );
    assert_eq!(cluster.has(Kind::Inbound, "new"), ["10.0.0.2"]);
    let differing = cluster.put(&[next_hop("10.0.1.2")]);
    assert_eq!(
        names(&differing),
        ["Inbound new"],
        "the old one needs no address"
    );
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
    let differing = cluster.put(&[config("n", "a", "10.0.0.9/24")]);
    assert_eq!(differing.grounds, 1);
    assert_eq!(cluster.node_has("a", "n"), ["10.0.0.9"]);
    assert_eq!(cluster.put(&[config("n", "b", "10.0.1.9/24")]).grounds, 1);
    assert_eq!(cluster.node_has("b", "n"), ["10.0.1.3"]);
}

#[test]
fn what_nodes_were_told_is_given_to_nobody_new_before_the_last_lets_go_of_it() {
    let mut cluster = Cluster::new(&[network("a", "10.0.0.0/24"), inbound("one", "a", 1)]);
    let has = |cluster: &Cluster| cluster.has(Kind::Inbound, "one");
    assert_eq!(has(&cluster), ["10.0.0.1"]);
    cluster.put(&[config("m", "x", "10.0.0.1/24")]);
    assert_eq!(has(&cluster), ["10.0.0.2"]);
    let same = cluster.put(&[config("n", "x", "10.0.0.1/24")]);
    assert_eq!(same.grounds, 0, "it was spoken for already");
    cluster.remove(ObjectRef::named(Kind::NodeNetworkConfig, "m"));
    assert_eq!(has(&cluster), ["10.0.0.2"]);
    cluster.put(&[config("n", "x", "10.0.0.3/24")]);
    assert_eq!(has(&cluster), ["10.0.0.1"]);
}

#[test]
fn a_node_touches_the_segments_that_it_is_on_or_was_on() {
    let mut cluster = Cluster::new(&[
        network("a", "10.0.0.0/24"),
        network("b", "10.0.1.0/24"),
        attachment("a", "g"),
        attachment("b", "h"),
    ]);
    assert_eq!(cluster.put(&[node("n", "g")]).grounds, 1);
    assert_eq!(cluster.node_has("a", "n"), ["10.0.0.1"]);
    assert_eq!(cluster.put(&[node("n", "h")]).grounds, 2);
    assert_eq!(cluster.node_has("a", "n"), [""; 0]);
    assert_eq!(cluster.node_has("b", "n"), ["10.0.1.1"]);
    assert_eq!(
        cluster.put(&[node("stranger", "i")]).grounds,
        1,
        "b remembers nothing"
    );
    cluster.remove(ObjectRef::named(Kind::Node, "n"));
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
    assert_eq!(cluster.addresses.node_problems().count(), 1);
    cluster.remove(ObjectRef::named(Kind::Node, "m"));
    assert_eq!(cluster.node_has("a", "n"), ["10.0.0.0"]);
    assert_eq!(cluster.addresses.node_problems().count(), 0);
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
    assert_eq!(cluster.put(&[announced("new", "10.0.0.9")]).grounds, 1);
    assert_eq!(cluster.has(Kind::Inbound, "new"), ["10.0.0.9"]);
    assert_eq!(cluster.put(&[announced("old", "10.0.1.9")]).grounds, 1);
    assert_eq!(cluster.has(Kind::Inbound, "new"), ["10.0.0.1"]);
    assert_eq!(cluster.has(Kind::Inbound, "old"), ["10.0.1.1"]);
    let gone = cluster.put(&[announced("gone", "10.0.0.1")]);
    assert_eq!(names(&gone), ["Inbound new"], "nobody else gets it yet");
}

#[test]
fn vrfs_that_reach_a_gateway_and_a_service_touch_the_service() {
    let reaching = |mut document: Value, zone: &str| {
        document["spec"]["destinations"] = json!({"matchLabels": {"zone": zone}});
        document
    };
    let destination = |zone: &str, vrf: &str| {
        let metadata = json!({"name": zone, "labels": {"zone": zone}});
        let spec = json!({"vrfRef": vrf, "prefixes": ["192.0.2.0/24"]});
        object(TCAAS, "Destination", metadata, spec)
    };
    let vrf = |name: &str, number: u32| {
        let spec = json!({"vrf": name, "vni": number, "routeTarget": format!("1:{number}")});
        named("VRF", name, spec)
    };
    let gateway = json!({"networkRef": "a", "interfaceName": "a"});
    let mut cluster = Cluster::new(&[
        network("a", "10.0.0.0/24"),
        network("b", "10.0.0.0/28"),
        network("c", "10.0.1.0/24"),
        reaching(named("Layer2Attachment", "a", gateway), "x"),
        reaching(inbound("b", "b", 1), "y"),
        reaching(inbound("c", "c", 1), "y"),
        vrf("v", 1),
        vrf("w", 2),
        destination("x", "v"),
        destination("y", "w"),
    ]);
    assert_eq!(cluster.has(Kind::Inbound, "b"), ["10.0.0.1"]);
    assert_eq!(cluster.put(&[destination("y", "v")]).grounds, 2);
    assert_eq!(cluster.has(Kind::Inbound, "b"), ["10.0.0.2"]);
    assert_eq!(cluster.put(&[vrf("v", 3)]).grounds, 2);
}

#[test]
fn a_network_is_attached_as_long_as_one_attachment_has_it_over_the_fabric() {
    let over_fabric = |name: &str| {
        let spec = json!({"networkRef": "a", "interfaceName": name});
        named("Layer2Attachment", name, spec)
    };
    let mut cluster = Cluster::new(&[network("a", "10.0.0.0/24"), over_fabric("one")]);
    cluster.put(&[over_fabric("two")]);
    let differing = cluster.remove(ObjectRef::named(Kind::Layer2Attachment, "one"));
    assert!(cluster.addresses.is_attached("a"));
    assert_eq!(differing.networks, BTreeSet::new());
    let differing = cluster.remove(ObjectRef::named(Kind::Layer2Attachment, "two"));
    assert!(!cluster.addresses.is_attached("a"));
    assert_eq!(differing.networks, ["a".to_owned()].into());
}

#[test]
fn nothing_is_left_of_those_who_have_gone() {
    let own = json!({"id": 7, "vni": 7, "mtu": 1500, "anycastGateways": ["10.0.0.1/24"], "nodeIPs": {"enabled": true}});
    let own = named("Layer2NetworkConfiguration", "own", own);
    let mut cluster = Cluster::new(&[
        network("a", "10.0.0.0/24"),
        inbound("one", "a", 300),
        attachment("a", "g"),
        own,
        node("n", "g"),
    ]);
    assert!(!cluster.addresses.nodes().is_empty());
    cluster.remove(ObjectRef::named(Kind::Inbound, "one"));
    cluster.remove(ObjectRef::named(Kind::Layer2Attachment, "a"));
    cluster.remove(ObjectRef::named(Kind::Layer2NetworkConfiguration, "own"));
    assert_eq!(cluster.addresses, Addresses::default());
}
