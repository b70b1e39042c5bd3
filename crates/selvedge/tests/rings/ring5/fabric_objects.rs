//! Underlays, L3VNIs, L2VNIs and L3Passthroughs on a real API server. Nodes are simulated.

use std::{thread, time::Duration};

use anyhow::Context as _;
use serde_json::{Value, json};

use super::{
    cluster::start_operator,
    fleet::{Behaviour, Fleet},
    server::{Server, with_server, within},
};
use crate::data;

pub(super) const PATIENCE: Duration = Duration::from_mins(1);
const GROUP: &str = "openpe.openperouter.github.io/v1alpha1";
pub(super) const TCAAS: &str = "network.t-caas.telekom.com/v1alpha1";

fn named(kind: &str, name: &str) -> Value {
    json!({"apiVersion": GROUP, "kind": kind, "metadata": {"name": name, "namespace": "default"}})
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    let mut object = named(kind, name);
    object["spec"] = spec;
    object
}

pub(super) fn node(name: &str, rack: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"rack": rack}}})
}

pub(super) fn underlay(name: &str, selector: &Value, pool: &str, peer: &str) -> Value {
    let spec = json!({
        "nodeSelector": selector, "asn": 64512, "nics": ["eth1"], "evpn": {"vtepcidr": pool},
        "neighbors": [{"asn": 64500, "address": peer}],
    });
    object("Underlay", name, spec)
}

fn rack(number: &str) -> Value {
    json!({"matchLabels": {"rack": number}})
}

pub(super) fn settings() -> Value {
    json!({
        "apiVersion": "selvedge.dev/v1alpha1", "kind": "Settings", "metadata": {"name": "default"},
        "spec": {"rollout": {"soakTime": "0s", "maxUnavailable": 10}},
    })
}

/// Waits until a condition of an object has a status, and gives the object.
fn until(server: &Server, object: &Value, condition: &str, status: &str) -> anyhow::Result<Value> {
    let mut seen = Value::Null;
    within(PATIENCE, condition, || {
        let stored = server.get(object)?.context("it is gone")?;
        seen = stored["status"].clone();
        let conditions = stored["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let is_so = conditions.any(|one| one["type"] == condition && one["status"] == status);
        Ok(is_so.then_some(stored))
    })
    .with_context(|| format!("{}: {seen}", data::name(object)))
}

pub(super) fn config(server: &Server, node: &str) -> anyhow::Result<Value> {
    let config =
        json!({"apiVersion": TCAAS, "kind": "NodeNetworkConfig", "metadata": {"name": node}});
    server.get(&config)?.context("no config")
}

pub(super) fn fleet(server: &Server, nodes: &[&str]) -> anyhow::Result<Fleet> {
    let nodes = nodes.iter();
    Fleet::start(
        server,
        nodes.map(|node| ((*node).to_owned(), Behaviour::Healthy)),
    )
}

/// The addresses of a node's host on the session of the VRF `red`.
fn hosts(config: &Value) -> &Value {
    &config["spec"]["fabricVRFs"]["red"]["hostSession"]["hostAddresses"]
}

/// The node `n3` moves from one rack's Underlay to the other's, and gets what that rack has.
fn relabels(server: &Server, before: &[Value; 3], pass: &Value) -> anyhow::Result<()> {
    server.edit(
        &node("n3", "2"),
        &json!({"metadata": {"labels": {"rack": "1"}}}),
    )?;
    let after = within(
        PATIENCE,
        "the node has the Underlay of the other rack",
        || {
            let config = config(server, "n3")?;
            let is_there = config["spec"]["underlay"]["source"] == "default/rack-1";
            Ok(is_there.then_some(config))
        },
    )?;
    assert_eq!(
        hosts(&after),
        hosts(&before[2]),
        "its address on the session stays"
    );
    assert!(after["spec"]["passthroughs"].get("default/pass").is_some());
    until(server, pass, "Ready", "True")?;
    for (node, before) in ["n1", "n2"].iter().zip(before) {
        let now = config(server, node)?;
        assert_eq!(
            now["metadata"]["generation"], before["metadata"]["generation"],
            "{node}"
        );
    }
    Ok(())
}

#[test]
fn objects_of_the_fabric_become_ready_and_a_relabelled_node_changes_alone() -> anyhow::Result<()> {
    with_server(|server| {
        let (one, two) = (
            underlay("rack-1", &rack("1"), "100.65.1.0/24", "192.168.1.254"),
            underlay("rack-2", &rack("2"), "100.65.2.0/24", "192.168.2.254"),
        );
        let session = json!({"asn": 64512, "hostasn": 64600});
        let red = object(
            "L3VNI",
            "red",
            json!({"vrf": "red", "vni": 100, "hostsession": session}),
        );
        let gateway = json!({"vni": 210, "vrf": "red", "l2gatewayip": "10.2.0.1/24", "hostmaster": {"autocreate": true}});
        let segment = object("L2VNI", "segment", gateway);
        let pass =
            json!({"nodeSelector": rack("1"), "hostsession": {"asn": 64512, "hostasn": 64700}});
        let pass = object("L3Passthrough", "pass", pass);
        let all = [one, two, red.clone(), segment.clone(), pass.clone()];
        server.create_all(&[
            settings(),
            node("n1", "1"),
            node("n2", "2"),
            node("n3", "2"),
        ])?;
        let agents = fleet(server, &["n1", "n2", "n3"])?;
        let operator = start_operator(server.operator_kubeconfig(), &[])?;
        server.create_all(&all)?;
        for object in &all {
            until(server, object, "Ready", "True")?;
        }
        let stored = until(server, &red, "Ready", "True")?;
        let counts = json!({"matched": 3, "ready": 3, "failed": 0});
        assert_eq!(stored["status"]["nodes"], counts);
        assert_eq!(stored["status"]["observedGeneration"], 1);
        let before = [
            config(server, "n1")?,
            config(server, "n2")?,
            config(server, "n3")?,
        ];
        assert_eq!(
            before[0]["spec"]["passthroughs"]["default/pass"]["remoteAs"]["asn"],
            64700
        );
        assert_eq!(before[1]["spec"].get("passthroughs"), None);
        assert_ne!(
            hosts(&before[0]),
            hosts(&before[1]),
            "each host has an address of its own"
        );

        relabels(server, &before, &pass)?;

        server.delete(&red)?;
        within(PATIENCE, "the VRF has no VNI any more", || {
            let vrf = config(server, "n1")?["spec"]["fabricVRFs"]["red"].clone();
            Ok(vrf["vni"].is_null().then_some(()))
        })?;
        let vrf = config(server, "n1")?["spec"]["fabricVRFs"]["red"].clone();
        assert!(!vrf.is_null(), "the gateway of the segment is still in it");
        drop((operator, agents));
        Ok(())
    })
}

#[test]
fn of_two_underlays_written_at_the_same_moment_one_is_applied_and_nothing_changes_again()
-> anyhow::Result<()> {
    with_server(|server| {
        server.create_all(&[settings(), node("n1", "1"), node("n2", "1")])?;
        let agents = fleet(server, &["n1", "n2"])?;
        let operator = start_operator(server.operator_kubeconfig(), &[])?;
        let (one, two) = (
            underlay("one", &rack("1"), "100.65.1.0/24", "192.168.1.254"),
            underlay("two", &json!({}), "100.65.2.0/24", "192.168.2.254"),
        );
        thread::scope(|scope| {
            let first = scope.spawn(|| server.create_all(std::slice::from_ref(&one)));
            let second = scope.spawn(|| server.create_all(std::slice::from_ref(&two)));
            first.join().expect("no panic")?;
            second.join().expect("no panic")
        })?;
        let configs = || anyhow::Ok([config(server, "n1")?, config(server, "n2")?]);
        within(PATIENCE, "both nodes have an Underlay", || {
            let configs = [config(server, "n1"), config(server, "n2")];
            let has = |config: &anyhow::Result<Value>| {
                let config = config.as_ref().ok();
                config.is_some_and(|config| !config["spec"]["underlay"].is_null())
            };
            Ok(configs.iter().all(has).then_some(()))
        })?;
        let before = configs()?;
        let source = &before[0]["spec"]["underlay"]["source"];
        assert_eq!(
            before[1]["spec"]["underlay"]["source"], *source,
            "both have the same"
        );
        let (applied, refused) = if *source == "default/one" {
            (&one, &two)
        } else {
            (&two, &one)
        };
        until(server, applied, "Ready", "True")?;
        let stored = until(server, refused, "Accepted", "False")?;
        let said = stored["status"]["conditions"].to_string();
        assert!(
            said.contains("SecondUnderlay") && said.contains("n1"),
            "{said}"
        );
        thread::sleep(Duration::from_secs(3));
        let after = configs()?;
        for (before, after) in before.iter().zip(&after) {
            let generation = |config: &Value| config["metadata"]["generation"].clone();
            assert_eq!(generation(after), generation(before));
        }
        drop((operator, agents));
        Ok(())
    })
}
