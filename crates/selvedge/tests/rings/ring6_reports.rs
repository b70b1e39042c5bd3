//! Ring 6, what a node reports: its network, its abilities, its health; and what the cluster can ask of it.

use std::time::Duration;

use anyhow::Context as _;
use lab::fabric::Fabric;
use serde_json::{Value, json};

use crate::{
    ring4_safety::NODE,
    ring6_cut_off::{PATIENCE, World},
};

/// How soon a change must be in the report: much less than the time between two looks without a change.
const SOON: Duration = Duration::from_secs(15);

fn get(world: &World, kind: &str) -> Option<Value> {
    let text = world
        .plane
        .kubectl(&["get", kind, NODE, "--output=json"], "");
    serde_json::from_str(&text.ok()?).ok()
}

fn annotate(world: &World, kind: &str, annotation: &str) -> anyhow::Result<()> {
    world
        .plane
        .kubectl(&["annotate", kind, NODE, annotation], "")?;
    Ok(())
}

fn condition(status: &Value, kind: &str) -> Value {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut own = conditions.filter(|it| it["type"] == kind);
    own.next().cloned().unwrap_or_default()
}

#[test]
fn a_node_reports_what_it_has_and_does_what_its_annotations_say() -> anyhow::Result<()> {
    let world = World::start()?;
    let (good, agent) = world.confirmed()?;

    // The taint of Selvedge goes with the first confirmed config; others stay.
    let taints = Fabric::eventually(PATIENCE, || {
        let taints = get(&world, "node")?["spec"]["taints"].clone();
        (taints.as_array()?.len() == 1).then_some(taints)
    });
    let taints = taints.with_context(|| agent.stderr())?;
    assert_eq!(taints[0]["key"], "other");

    let timings = &world.status()?["timings"];
    let apply = timings["applyMilliseconds"].as_u64().unwrap_or_default();
    let confirm = timings["confirmMilliseconds"].as_u64().unwrap_or_default();
    assert!(0 < apply && apply < confirm, "{timings}");

    the_network_of_the_node_is_reported(&world)?;
    metrics_and_health_are_served(&world)?;
    a_held_node_stays_as_it_is(&world, &good)?;
    a_missing_secret_holds_back_its_session_alone(&world, &good).with_context(|| agent.stderr())
}

fn the_network_of_the_node_is_reported(world: &World) -> anyhow::Result<()> {
    let report = || Some(get(world, "nodenetworkstatus")?["status"].clone());
    let named = |status: &Value, name: &str| {
        let all = status["interfaces"].as_array().into_iter().flatten();
        let mut own = all.filter(|it| it["name"] == name);
        own.next().cloned()
    };
    let has_uplink =
        |status: &Value| named(status, "eth1").is_some_and(|it| it["namespace"] == "selvedge");
    let status = Fabric::eventually(PATIENCE, || report().filter(has_uplink));
    let status = status.with_context(|| format!("the report is {:?}", report()))?;
    assert_eq!(named(&status, "lo").context("lo")?["type"], "loopback");
    let uplink = named(&status, "eth1").context("eth1")?;
    assert_eq!(uplink["state"], "up", "{uplink}");
    let management = world.fabric.management_address(NODE)?.to_string();
    assert!(
        status["interfaces"].to_string().contains(&management),
        "{status}"
    );
    assert_eq!(condition(&status, "Ready")["status"], "True");

    let abilities = &status["capabilities"];
    let kernel = abilities["kernel"].as_array().context("a list")?;
    for kind in [
        "bridge", "vrf", "vxlan", "vlan", "veth", "dummy", "gre", "flower",
    ] {
        assert!(kernel.contains(&json!(kind)), "{kind}: {abilities}");
    }
    assert!(abilities["frrVersion"].is_string(), "{abilities}");
    assert!(abilities["kernelVersion"].is_string(), "{abilities}");

    // A pod's end is not shown; a link of the host is, soon after it was made, with its route.
    world.fabric.at(NODE)?.script(
        "ip netns add pod; ip link add cali1 type veth peer name eth0 netns pod; ip link set cali1 up
        ip link add nic9 type dummy; ip link set nic9 up; ip link add nic9.7 link nic9 type vlan id 7
        ip address add 198.18.9.1/24 dev nic9; ip address add 169.254.1.1/32 dev cali1; ip route add 198.18.10.0/24 via 198.18.9.2
        ip route add 198.18.11.1/32 dev cali1",
    )?;
    let shown = Fabric::eventually(SOON, || {
        report().filter(|status| status["routes"].to_string().contains("198.18.10.0/24"))
    });
    let shown = shown.context("a new link is not in the report")?;
    let vlan = named(&shown, "nic9.7").context("nic9.7")?;
    assert_eq!(
        (&vlan["type"], &vlan["parent"], &vlan["vlanID"]),
        (&json!("vlan"), &json!("nic9"), &json!(7))
    );
    assert_eq!(
        named(&shown, "nic9").context("nic9")?["addresses"],
        json!(["198.18.9.1/24"])
    );
    assert!(!shown.to_string().contains("cali1"), "{shown}");
    Ok(())
}

fn metrics_and_health_are_served(world: &World) -> anyhow::Result<()> {
    let node = world.fabric.at(NODE)?;
    let ask = |path: &str| {
        node.script(&format!(
            "exec 3<>/dev/tcp/127.0.0.1/9717; printf 'GET {path} HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"
        ))
    };
    let metrics = ask("/metrics")?;
    for line in [
        "selvedge_agent_state{state=\"confirmed\"} 1",
        "selvedge_agent_confirmed_total 1",
        "selvedge_agent_taken_back_total 0",
        "confirmed=\"good\"",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    assert!(ask("/healthz")?.starts_with("HTTP/1.1 200"));
    assert!(ask("/readyz")?.starts_with("HTTP/1.1 200"));
    let ports = world
        .fabric
        .at(NODE)?
        .script("ss -Hltn 'sport = :9717' | awk '{print $4}'")?;
    assert_eq!(ports.trim(), "127.0.0.1:9717", "the loopback alone");
    Ok(())
}

fn a_held_node_stays_as_it_is(world: &World, good: &Value) -> anyhow::Result<()> {
    let mut wanted = good.clone();
    wanted["spec"]["hostLoopbacks"]["bgp.01234567"] = json!({"addresses": ["192.0.2.53/32"]});
    for (kind, revision) in [("node", "held-1"), ("nodenetworkconfig", "held-2")] {
        annotate(world, kind, "selvedge.dev/hold=maintenance")?;
        let held = Fabric::eventually(PATIENCE, || {
            let status = world.status().ok()?;
            (condition(&status, "Held")["status"] == "True").then_some(())
        });
        held.with_context(|| format!("the hold of the {kind} is not reported"))?;
        wanted["spec"]["revision"] = revision.into();
        wanted["spec"]["health"]["retries"] = revision.len().into();
        let address = format!("192.0.2.{}/32", if kind == "node" { 53 } else { 54 });
        wanted["spec"]["hostLoopbacks"]["bgp.01234567"] = json!({"addresses": [address]});
        if kind == "nodenetworkconfig" {
            wanted["metadata"]["annotations"] = json!({"selvedge.dev/hold": "maintenance"});
        }
        world.tell(&wanted)?;
        let status = world.answered(revision, "provisioning")?;
        let before = status["confirmedRevision"].clone();
        std::thread::sleep(Duration::from_secs(3));
        let status = world.status()?;
        assert_eq!(status["runningRevision"], before, "{status}");
        assert!(
            condition(&status, "Held")["message"]
                .to_string()
                .contains("maintenance")
        );
        wanted["metadata"] = json!({"name": NODE});
        annotate(world, kind, "selvedge.dev/hold-")?;
        world.answered(revision, "provisioned")?;
    }
    Ok(())
}

fn a_missing_secret_holds_back_its_session_alone(
    world: &World,
    good: &Value,
) -> anyhow::Result<()> {
    let mut secured = good.clone();
    secured["spec"]["revision"] = "secured".into();
    let mut other = secured["spec"]["underlay"]["neighbors"][0].clone();
    other["address"] = "192.0.2.99".into();
    other["passwordSecret"] = json!({"name": "other", "namespace": "default"});
    let neighbors = secured["spec"]["underlay"]["neighbors"].as_array_mut();
    neighbors.context("a list")?.push(other);
    world.tell(&secured)?;
    let status = world.answered("secured", "provisioned")?;
    let degraded = condition(&status, "Degraded");
    assert_eq!(degraded["status"], "True", "{status}");
    let message = degraded["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("192.0.2.99") && message.contains("default/other"),
        "{message}"
    );
    let node = world.fabric.at(NODE)?;
    let running = || node.run(&["vtysh", "-N", "router", "-c", "show running-config"]);
    assert!(
        !running()?.contains("192.0.2.99"),
        "configured without its password"
    );

    let secret = [
        "create",
        "secret",
        "generic",
        "other",
        "--from-literal=password=hunter3",
    ];
    world.plane.kubectl(&secret, "")?;
    let there = Fabric::eventually(PATIENCE, || {
        let running = running().ok()?;
        running
            .contains("neighbor 192.0.2.99 password hunter3")
            .then_some(())
    });
    there.context("the session is not configured after its Secret was made")?;
    let complete = Fabric::eventually(PATIENCE, || {
        let status = world.status().ok()?;
        (condition(&status, "Degraded")["status"] == "False").then_some(())
    });
    complete.context("the node is still degraded")
}
