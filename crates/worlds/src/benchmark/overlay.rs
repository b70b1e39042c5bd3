//! Many `L3VNI`s and `L2VNI`s.

use serde_json::{Value, json};

use crate::object;

const GROUP: &str = "openpe.openperouter.github.io/v1alpha1";

/// Nodes, and `L3VNI`s with host sessions that are for all of them.
pub fn sessions(nodes: u32, count: u32) -> Vec<Value> {
    let mut world = cluster(nodes);
    world.extend((1..=count).map(|vni| l3vni(&format!("l3-{vni}"), vni)));
    world
}

/// One node with as many `L3VNI`s as `L2VNI`s, each segment with a gateway in a VRF.
pub fn node(count: u32) -> Vec<Value> {
    let mut world = sessions(1, count);
    world.extend((1..=count).map(|number| l2vni(&format!("l2-{number}"), number)));
    world
}

/// An `L3VNI` with a host session, in a VRF of its own.
pub fn l3vni(name: &str, vni: u32) -> Value {
    let spec = json!({
        "vrf": format!("v{vni}"), "vni": vni, "hostsession": {"asn": 64514, "hostasn": 64600},
    });
    object(GROUP, "L3VNI", metadata(name), spec)
}

/// An `L2VNI` with a gateway in the VRF of the `L3VNI` with this number.
pub fn l2vni(name: &str, number: u32) -> Value {
    let gateway = format!("10.{}.{}.1/24", number / 256, number % 256);
    let spec = json!({
        "vrf": format!("v{number}"), "vni": 100_000 + number, "l2gatewayip": gateway,
        "hostmaster": {"type": "bridge", "autocreate": true},
    });
    object(GROUP, "L2VNI", metadata(name), spec)
}

fn metadata(name: &str) -> Value {
    json!({"name": name, "namespace": "default"})
}

fn cluster(nodes: u32) -> Vec<Value> {
    let underlay = json!({
        "asn": 64514, "routeridcidr": "10.240.0.0/16", "nics": ["eth1"], "evpn": {"vtepcidr": "100.65.0.0/16"},
        "neighbors": [{"asn": 64512, "address": "192.0.2.1"}],
    });
    let mut world = vec![object(GROUP, "Underlay", metadata("fabric"), underlay)];
    world.extend((0..nodes).map(
        |node| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("node-{node}")}}),
    ));
    world
}
