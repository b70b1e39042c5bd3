//! Stories and laws of the pure part, on the model kernel.

mod host_ports;
mod laws;
mod mirrors;
mod regressions;
mod stories;
mod underlay;

use std::collections::BTreeSet;

use api::tcaas::node_network_config::NodeNetworkConfigSpec;
use serde_json::{Value, json};

use crate::{
    Desired, LinkId, Observed, ObservedLink, Plan, Step, desired::desired, diff::diff,
    model::apply_to_model, object::Kind, owned::Owner,
};

/// A host with two NICs and a bridge of another program.
pub(crate) fn host() -> Observed {
    let mut host = Observed::default();
    for (name, address) in [("eth1", "192.0.2.11/24"), ("eth2", "2001:db8:2::11/64")] {
        let mut nic = ObservedLink::fresh(Owner::Foreign, Kind::Other("ether".into()));
        nic.up = true;
        nic.addresses = BTreeSet::from([address.parse().unwrap(), "fe80::1/64".parse().unwrap()]);
        host.links.insert(LinkId::host(name), nic);
    }
    let docker = ObservedLink::fresh(Owner::Foreign, Kind::Bridge);
    host.links.insert(LinkId::host("docker0"), docker);
    host
}

/// The base of a node: an underlay with a cluster VRF.
pub(crate) fn base() -> Value {
    json!({
        "revision": "r",
        "underlay": {
            "namespace": "selvedge", "asn": 65000, "routerId": "192.0.2.1", "nics": ["eth1"], "vtep": "198.51.100.1",
            "routerMac": "02:54:c6:33:64:01",
            "trunk": {
                "host": "hbn", "router": "hbn", "mtu": 9000,
                "hostAddresses": ["fd00:7:caa5::1/127"], "routerAddresses": ["fd00:7:caa5::/127"],
            },
        },
        "clusterVRF": {"table": 10000, "devices": {"vrf": "cluster"}, "mtu": 1500},
        "fabricVRFs": {}, "localVRFs": {}, "layer2s": {},
    })
}

/// A VRF with a VNI.
pub(crate) fn fabric_vrf(name: &str, table: u32, vni: u32) -> Value {
    json!({
        "vni": vni, "table": table, "mtu": 1500,
        "devices": {"vrf": name, "bridge": format!("br.{name}"), "vxlan": format!("vx.{name}")},
    })
}

/// A segment with a gateway and a host interface.
pub(crate) fn layer2(vlan: u16, vni: u32, vrf: Option<&str>) -> Value {
    let mut layer2 = json!({
        "vni": vni, "vlan": vlan, "mtu": 1450, "neighSuppression": true,
        "devices": {"bridge": format!("l2.{vlan}"), "vxlan": format!("vx.{vni}"), "accessPort": format!("vlan.{vlan}")},
        "hostInterface": {
            "name": format!("l2.{vlan}"), "addresses": [format!("10.{vlan}.0.9/24")],
            "routes": [{"prefix": format!("10.{vlan}.128.0/17"), "nextHop": {"address": format!("10.{vlan}.0.1")}}],
        },
    });
    if let Some(vrf) = vrf {
        layer2["irb"] = json!({
            "vrf": vrf, "macAddress": "02:00:5e:00:01:01",
            "ipAddresses": [format!("10.{vlan}.0.1/24"), format!("2001:db8:{vlan}::1/64")],
        });
    }
    layer2
}

pub(crate) fn parse(config: Value) -> NodeNetworkConfigSpec {
    serde_json::from_value(config).unwrap()
}

pub(crate) fn desired_of(config: Value) -> Desired {
    desired(&parse(config)).unwrap()
}

pub(crate) fn plan(desired: &Desired, observed: &Observed) -> Plan {
    diff(desired, observed).unwrap()
}

/// Applies a plan as a strict kernel would, and checks that nothing is left to do.
pub(crate) fn settle(desired: &Desired, observed: &mut Observed) -> Plan {
    let first = plan(desired, observed);
    for step in first.steps() {
        apply_to_model(observed, step).unwrap();
    }
    let second: Vec<String> = texts(&plan(desired, observed));
    assert_eq!(second, Vec::<String>::new(), "the second plan is not empty");
    first
}

pub(crate) fn texts(plan: &Plan) -> Vec<String> {
    plan.steps().map(Step::to_string).collect()
}
