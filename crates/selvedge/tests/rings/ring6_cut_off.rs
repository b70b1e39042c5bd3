//! Ring 6, a change that takes the API server away: a real API server, a real agent, and a config that cuts the two apart.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use lab::{
    control_plane::{ControlPlane, User},
    fabric::Fabric,
    host::Running,
    parts::{self, Kubernetes, Tree},
};
use serde_json::{Value, json};

use crate::{
    ring4_safety::plugged,
    support::{SELVEDGE, install_crds, progress},
};

const NODE: &str = "worker-3";
const PATIENCE: Duration = Duration::from_mins(1);
/// What a config is given to be confirmed.
const DEADLINE: Duration = Duration::from_secs(8);

struct World {
    plane: ControlPlane,
    fabric: Fabric,
}

impl World {
    fn start() -> anyhow::Result<Self> {
        parts::prepare_machine(&progress)?;
        let tree = Tree::for_guests(&progress)?;
        let kubernetes = Kubernetes::prepare(&progress)?;
        let fabric = Fabric::builder()
            .leaf("leaf1", 64512)
            .node(NODE, &["leaf1"])
            .start(&tree, &progress)?;
        let plane = ControlPlane::builder(&kubernetes)
            .user(User::new("agent", &["system:masters"]))
            .inside(fabric.namespace(), fabric.control_plane_address())
            .start()?;
        install_crds(&plane)?;
        fabric.hand_in(SELVEDGE.as_ref())?;
        Ok(Self { plane, fabric })
    }

    fn tell(&self, config: &Value) -> anyhow::Result<()> {
        self.plane
            .kubectl(&["apply", "-f", "-"], &config.to_string())?;
        Ok(())
    }

    fn status(&self) -> anyhow::Result<Value> {
        let text = self
            .plane
            .kubectl(&["get", "nodenetworkconfig", NODE, "--output=json"], "")?;
        let object: Value = serde_json::from_str(&text)?;
        Ok(object["status"].clone())
    }

    /// Waits until the node has answered this revision in this way.
    fn answered(&self, revision: &str, how: &str) -> anyhow::Result<Value> {
        let mut last = Value::Null;
        let answer = Fabric::eventually(PATIENCE, || {
            last = self.status().ok()?;
            let is_it = last["observedRevision"] == revision && last["configStatus"] == how;
            is_it.then(|| last.clone())
        });
        answer.with_context(|| format!("the node says {last}"))
    }

    /// Whether a packet to the API server would leave the node.
    fn has_a_way_out(&self) -> anyhow::Result<bool> {
        let address = self.fabric.control_plane_address();
        let route = self
            .fabric
            .at(NODE)?
            .script(&format!("ip route get {address}"))?;
        Ok(!route.starts_with("local"))
    }
}

#[test]
fn a_change_that_takes_the_api_server_away_is_taken_back_without_it() -> anyhow::Result<()> {
    let world = World::start()?;
    let mut good = plugged(&world.fabric, &[])?;
    good["metadata"] = json!({"name": NODE});
    good["spec"]["revision"] = "good".into();
    good["spec"]["health"] = json!({"confirmDeadline": format!("{}s", DEADLINE.as_secs())});
    world.tell(&good)?;
    let kubeconfig = world.fabric.hand_in(&world.plane.kubeconfig("agent")?)?;
    let agent = world.fabric.at(NODE)?.start(&[
        "/share/selvedge",
        "agent",
        "--node",
        NODE,
        "--kubeconfig",
        &kubeconfig,
    ])?;
    let status = world
        .answered("good", "provisioned")
        .with_context(|| agent.stderr())?;
    assert_eq!(status["confirmedRevision"], "good");
    assert_eq!(status["runningRevision"], "good");

    // The address of the API server, on the node itself.
    let mut cut = good.clone();
    cut["spec"]["revision"] = "cut".into();
    let address = format!("{}/32", world.fabric.control_plane_address());
    cut["spec"]["hostLoopbacks"]["bgp.01234567"] = json!({"addresses": [address]});
    let start = Instant::now();
    world.tell(&cut)?;
    let gone = Fabric::eventually(PATIENCE, || world.has_a_way_out().ok().filter(|out| !out));
    assert!(gone.is_some(), "the node was never cut off");
    let back = Fabric::eventually(PATIENCE, || world.has_a_way_out().ok().filter(|out| *out));
    let took = start.elapsed();
    assert!(back.is_some(), "{}", agent.stderr());
    eprintln!("back after {:.1} s", took.as_secs_f64());
    assert!(took >= DEADLINE, "it was given its time");
    assert!(took <= DEADLINE + Duration::from_secs(15), "{took:?}");

    let status = world.answered("cut", "invalid")?;
    assert_eq!(status["confirmedRevision"], "good");
    assert_eq!(status["runningRevision"], "good");
    let why = status["errorMessage"].as_str().unwrap_or_default();
    assert!(why.contains("API server"), "{why}");

    // Another change of the same kind harms nobody, and is kept.
    let mut harmless = good.clone();
    harmless["spec"]["revision"] = "harmless".into();
    harmless["spec"]["hostLoopbacks"]["bgp.01234567"] = json!({"addresses": ["192.0.2.53/32"]});
    world.tell(&harmless)?;
    let status = world.answered("harmless", "provisioned")?;
    assert_eq!(status["confirmedRevision"], "harmless");
    a_newer_contract_is_answered(&world, &harmless)?;
    a_session_with_a_password_comes_back_without_the_api_server(world, &good, &agent)
}

/// The password is read from its Secret once; after that the node does not need the API server for it, nor shows it.
fn a_session_with_a_password_comes_back_without_the_api_server(
    world: World,
    good: &Value,
    agent: &Running,
) -> anyhow::Result<()> {
    let mut secured = good.clone();
    secured["spec"]["revision"] = "secured".into();
    secured["spec"]["underlay"]["neighbors"][0]["passwordSecret"] =
        json!({"name": "leaf", "namespace": "default"});
    // Long enough for a session that is closed and opened again.
    secured["spec"]["health"]["confirmDeadline"] = "40s".into();
    world.plane.kubectl(
        &[
            "create",
            "secret",
            "generic",
            "leaf",
            "--from-literal=password=hunter2",
        ],
        "",
    )?;
    let link = world.fabric.link(NODE, "leaf1")?;
    let (near, _) = link.seen_from(NODE).expect("the link has two ends");
    world.tell(&secured)?;
    world.fabric.at("leaf1")?.script(&format!(
        "vtysh -N router -c 'configure terminal' -c 'router bgp 64512' -c 'neighbor {} password hunter2'",
        near.ipv4.addr()
    ))?;
    let status = world
        .answered("secured", "provisioned")
        .with_context(|| agent.stderr())?;
    assert!(!status.to_string().contains("hunter2"), "{status}");
    assert!(!agent.stderr().contains("hunter2"), "{}", agent.stderr());

    // Neither API server nor agent nor FRR: a new agent has nothing but its journal.
    let World { plane, fabric } = world;
    drop(plane);
    let node = fabric.at(NODE)?;
    node.script("pkill -9 -x selvedge; pkill -9 -x bgpd; pkill -9 -x zebra; stat -c %a /var/lib/selvedge/journal /var/lib/selvedge/frr.conf | sort -u | grep -x 600")?;
    let again = node.start(&[
        "/share/selvedge",
        "agent",
        "--node",
        NODE,
        "--kubeconfig",
        "/none",
    ])?;
    let protected = Fabric::eventually(PATIENCE, || {
        let text = node
            .run(&["vtysh", "-N", "router", "-c", "show running-config"])
            .ok()?;
        let summary = fabric
            .frr_json("leaf1", "show bgp ipv4 unicast summary json")
            .ok()?;
        let peer = summary["peers"].as_object()?.values().next()?.clone();
        (text.contains("password hunter2") && peer["state"] == "Established").then_some(())
    });
    assert!(protected.is_some(), "{}", again.stderr());
    Ok(())
}

fn a_newer_contract_is_answered(world: &World, running: &Value) -> anyhow::Result<()> {
    let mut newer = running.clone();
    newer["spec"]["revision"] = "newer".into();
    newer["spec"]["contractVersion"] = 99.into();
    world.tell(&newer)?;
    let status = world.answered("newer", "invalid")?;
    let why = status["errorMessage"].as_str().unwrap_or_default();
    assert!(why.contains("contract version 99"), "{why}");
    assert_eq!(status["runningRevision"], "harmless");
    Ok(())
}
