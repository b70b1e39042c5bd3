//! Ring 4, a node whose Underlay gets another NIC and another AS number, with an L3VNI, an L2VNI and an L3Passthrough on it: killed
//! anywhere in the change it is at the old or at the new config afterwards, and never between.

use std::time::Duration;

use lab::{
    fabric::Fabric,
    parts::{self, Tree},
};
use serde_json::{Value, json};

use crate::{
    ring4::Node,
    ring4_safety::{NODE, is_at, kill_while_trying, returns_by_itself},
    ring4_silence::settles_in_time,
    support::{SELVEDGE, progress, selvedge},
};

/// A NIC of the node with the leaf that it leads to, and the AS number that the node has there.
#[derive(Clone, Copy)]
struct Side {
    nic: &'static str,
    leaf: &'static str,
    asn: u32,
}

const OLD: Side = Side {
    nic: "eth1",
    leaf: "leaf1",
    asn: 64601,
};
const NEW: Side = Side {
    nic: "eth2",
    leaf: "leaf2",
    asn: 64602,
};

fn start() -> anyhow::Result<Node> {
    parts::prepare_machine(&progress)?;
    let tree = Tree::for_guests(&progress)?;
    let fabric = Fabric::builder()
        .leaf(OLD.leaf, 64512)
        .leaf(NEW.leaf, 64513)
        .node(NODE, &[OLD.leaf, NEW.leaf])
        .start(&tree, &progress)?;
    fabric.hand_in(SELVEDGE.as_ref())?;
    Ok(Node { fabric })
}

/// What the objects come to where the Underlay is on this side.
fn config(fabric: &Fabric, Side { nic, leaf, asn }: Side) -> anyhow::Result<Value> {
    let link = fabric.link(NODE, leaf)?;
    let (_, far) = link.seen_from(NODE).expect("the link has two ends");
    let address = far.ipv4.addr();
    let objects = format!(
        "
apiVersion: v1
kind: Node
metadata: {{name: {NODE}}}
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: Underlay
metadata: {{name: fabric, namespace: default}}
spec:
  asn: {asn}
  nics: [{nic}]
  evpn: {{vtepcidr: 100.65.0.0/24}}
  neighbors: [{{type: external, address: {address}, connectTime: 1s}}]
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: L3VNI
metadata: {{name: tenant, namespace: default}}
spec: {{vrf: tenant, vni: 5001, hostsession: {{asn: {asn}, hostasn: 64700}}}}
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: L2VNI
metadata: {{name: app, namespace: default}}
spec: {{vrf: tenant, vni: 10100, hostmaster: {{autocreate: true}}, l2gatewayip: 10.100.0.1/24}}
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: L3Passthrough
metadata: {{name: edge, namespace: default}}
spec: {{hostsession: {{asn: {asn}, hostasn: 64701}}}}
"
    );
    let arguments = [
        "compile", "-f", "-", "--what", "nodes", "--node", NODE, "-o", "json",
    ];
    let output = selvedge(&arguments, &objects)?;
    anyhow::ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let configs: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    let mut config = configs[0].clone();
    config["spec"]["health"] = json!({"confirmDeadline": "20s", "gateways": false});
    Ok(config)
}

/// The router has the NIC of one side, the host that of the other, each with its address, and the router is in one AS.
fn is_whole(node: &Node, on: Side, off: Side) -> anyhow::Result<()> {
    let show = |wanted: &str, nic| {
        let script = format!("{wanted} -br -4 address show dev {nic} | awk '{{print $NF}}'");
        node.script(&script)
    };
    for (wanted, side) in [("ip -n selvedge", on), ("ip", off)] {
        let link = node.fabric.link(NODE, side.leaf)?;
        let (near, _) = link.seen_from(NODE).expect("the link has two ends");
        assert_eq!(show(wanted, side.nic)?.trim(), near.ipv4.to_string());
    }
    let routers = node.script(
        "vtysh -N router -c 'show running-config' | grep '^router bgp' | awk '{print $3}' | sort -u",
    )?;
    assert_eq!(routers.trim(), on.asn.to_string());
    Ok(())
}

/// Waits until the node has a session with the leaf of a side. The leaf is not asked: it believes in a session of a router that is gone
/// until its hold time is over.
fn speaks_to(node: &Node, side: Side) -> anyhow::Result<()> {
    let link = node.fabric.link(NODE, side.leaf)?;
    let (_, far) = link.seen_from(NODE).expect("the link has two ends");
    let leaf = far.ipv4.addr().to_string();
    let mut last = String::new();
    let is_up = Fabric::eventually(Duration::from_mins(1), || {
        let router = node.fabric.at(NODE).ok()?;
        let summary = router.frr_json("show bgp ipv4 unicast summary json").ok()?;
        last = summary["peers"][&leaf].to_string();
        last.contains("Established").then_some(())
    });
    anyhow::ensure!(is_up.is_some(), "{} has no session: {last}", side.leaf);
    Ok(())
}

#[test]
fn an_agent_killed_while_nic_and_as_number_change_leaves_one_config_and_no_mixture()
-> anyhow::Result<()> {
    let node = start()?;
    let (old, new) = (config(&node.fabric, OLD)?, config(&node.fabric, NEW)?);
    let mut between = 0;
    for (from, to, (on, off), delays) in [
        (&old, &new, (OLD, NEW), ["0", "0.2", "0.5", "0.9"]),
        (&new, &old, (NEW, OLD), ["0.1", "0.3", "0.7", "1.2"]),
    ] {
        node.apply(from)?.ok()?;
        is_at(&node, from)?;
        is_whole(&node, on, off)?;
        for after in delays {
            between += u32::from(kill_while_trying(&node, to, after, from)?);
            returns_by_itself(&node, from)?;
            is_whole(&node, on, off)?;
        }
    }
    eprintln!("{between} of 8 kills met a node between two configs");
    assert!(between >= 3, "only {between} kills hit work");

    // Daemons that are stopped or killed while the NIC is moved.
    node.apply(&old)?.ok()?;
    for (signal, daemon) in [("STOP", "zebra"), ("KILL", "bgpd")] {
        let act = format!(
            "until ip -n selvedge link show eth2 > /dev/null 2>&1; do kill -0 $agent || break; done
kill -{signal} $(pidof {daemon})"
        );
        settles_in_time(&node, (&old, &new), 30, &act)?;
        node.apply(&old)?.ok()?;
        is_whole(&node, OLD, NEW)?;
    }

    // Without a kill the change is made.
    node.apply(&old)?.ok()?;
    is_at(&node, &old)?;
    speaks_to(&node, OLD)?;
    is_whole(&node, OLD, NEW)
}
