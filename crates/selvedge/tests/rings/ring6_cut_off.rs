//! Ring 6, a change that takes the API server away: a real API server, a real agent, and a config that cuts the two apart.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use lab::{
    control_plane::{ControlPlane, User},
    fabric::Fabric,
    host::Running,
    parts::{self, Kubernetes, Tree},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    ring4_safety::{NODE, plugged, repair_time},
    ring6_restarts::nothing_is_held,
    support::{SELVEDGE, agent_role, install_crds, preview, progress, start_agent},
};

pub(crate) const PATIENCE: Duration = Duration::from_mins(1);
/// Taints of the Node when the agent starts: that of Selvedge, and another.
const TAINTS: &str =
    "[{key: selvedge.dev/not-ready, effect: NoSchedule}, {key: other, effect: NoSchedule}]";
/// What a config is given to be confirmed.
const DEADLINE: Duration = Duration::from_secs(15);

/// A node behind a leaf, in a cluster without an operator: the test itself writes the node's config.
pub(crate) struct World {
    pub(crate) plane: ControlPlane,
    pub(crate) fabric: Fabric,
}

impl World {
    pub(crate) fn start() -> anyhow::Result<Self> {
        parts::prepare_machine(&progress)?;
        let tree = Tree::for_guests(&progress)?;
        let kubernetes = Kubernetes::prepare(&progress)?;
        let fabric = Fabric::builder()
            .leaf("leaf1", 64512)
            .node(NODE, &["leaf1"])
            .start(&tree, &progress)?;
        let plane = ControlPlane::builder(&kubernetes)
            .user(User::new("agent", &[]))
            .inside(fabric.namespace(), fabric.control_plane_address())
            .start()?;
        install_crds(&plane)?;
        let role = agent_role(NODE, "agent", &["leaf", "other"]);
        let node = format!(
            "{{apiVersion: v1, kind: Node, metadata: {{name: {NODE}}}, spec: {{taints: {TAINTS}}}}}"
        );
        plane.kubectl(&["apply", "-f", "-"], &format!("{node}\n---{role}"))?;
        fabric.hand_in(SELVEDGE.as_ref())?;
        Ok(Self { plane, fabric })
    }

    pub(crate) fn tell(&self, config: &Value) -> anyhow::Result<()> {
        self.plane
            .kubectl(&["apply", "-f", "-"], &config.to_string())?;
        Ok(())
    }

    pub(crate) fn status(&self) -> anyhow::Result<Value> {
        let text = self
            .plane
            .kubectl(&["get", "nodenetworkconfig", NODE, "--output=json"], "")?;
        let object: Value = serde_json::from_str(&text)?;
        Ok(object["status"].clone())
    }

    /// Waits until the node has answered this revision in this way.
    pub(crate) fn answered(&self, revision: &str, how: &str) -> anyhow::Result<Value> {
        let mut last = Value::Null;
        let answer = Fabric::eventually(PATIENCE, || {
            last = self.status().ok()?;
            let is_it = last["observedRevision"] == revision && last["configStatus"] == how;
            is_it.then(|| last.clone())
        });
        answer.with_context(|| format!("the node says {last}"))
    }

    /// The config that the node runs in these tests, with the agent that keeps it there.
    pub(crate) fn confirmed(&self) -> anyhow::Result<(Value, Running)> {
        let mut good = plugged(&self.fabric, &[])?;
        good["metadata"] = json!({"name": NODE});
        good["spec"]["revision"] = "good".into();
        good["spec"]["health"] = json!({"confirmDeadline": format!("{}s", DEADLINE.as_secs())});
        self.tell(&good)?;
        let agent = start_agent(&self.fabric, &self.plane, NODE, "agent")?;
        let status = self
            .answered("good", "provisioned")
            .with_context(|| agent.stderr())?;
        assert_eq!(status["confirmedRevision"], "good");
        assert_eq!(status["runningRevision"], "good");
        Ok((good, agent))
    }

    /// Whether packets pass between the API server's machine and the node: a connection is answered, if only by a refusal.
    fn packets_pass(&self) -> anyhow::Result<bool> {
        let address = self.fabric.management_address(NODE)?;
        let refused = |error: lab::namespace::Error| {
            let lab::namespace::Error::Connect { source, .. } = &error else {
                return Err(error);
            };
            Ok(source.kind() == std::io::ErrorKind::ConnectionRefused)
        };
        let patience = Duration::from_millis(300);
        let attempt = self
            .fabric
            .namespace()
            .connect((address, 9).into(), patience);
        Ok(attempt.map(|_open| true).or_else(refused)?)
    }
}

#[test]
fn a_change_that_takes_the_api_server_away_is_taken_back_without_it() -> anyhow::Result<()> {
    let world = World::start()?;
    let (good, agent) = world.confirmed()?;
    assert!(world.packets_pass()?, "packets pass before the change");

    // The address of the API server, on the node itself.
    let mut cut = good.clone();
    cut["spec"]["revision"] = "cut".into();
    let address = format!("{}/32", world.fabric.control_plane_address());
    cut["spec"]["hostLoopbacks"]["bgp.01234567"] = json!({"addresses": [address]});
    world.tell(&cut)?;
    let gone = Fabric::eventually(PATIENCE, || world.packets_pass().ok().filter(|pass| !pass));
    assert!(gone.is_some(), "the node was never cut off");
    let start = Instant::now();
    let back = Fabric::eventually(PATIENCE, || world.packets_pass().ok().filter(|pass| *pass));
    let took = start.elapsed();
    assert!(back.is_some(), "{}", agent.stderr());
    eprintln!("back after {:.1} s", took.as_secs_f64());
    assert!(took >= DEADLINE / 4, "it was given its time: {took:?}");
    assert!(took <= DEADLINE, "{took:?}");

    let status = world.answered("cut", "invalid")?;
    assert_eq!(status["confirmedRevision"], "good");
    assert_eq!(status["runningRevision"], "good");
    let why = status["errorMessage"].as_str().unwrap_or_default();
    assert!(why.contains("API server"), "{why}");

    a_config_that_comes_during_a_hold_is_applied_and_nothing_is_left(&world, &agent)?;

    // Another change of the same kind harms nobody, and is kept.
    let mut harmless = good.clone();
    harmless["spec"]["revision"] = "harmless".into();
    harmless["spec"]["hostLoopbacks"]["bgp.01234567"] = json!({"addresses": ["192.0.2.53/32"]});
    world.tell(&harmless)?;
    let status = world.answered("harmless", "provisioned")?;
    assert_eq!(status["confirmedRevision"], "harmless");
    a_newer_contract_is_answered(&world, &harmless)?;
    a_session_with_a_password_comes_back_without_the_api_server(world, &good, &cut, &agent)
}

/// Servers that accept connections and never answer, until it is dropped.
struct Stopped<'a>(&'a ControlPlane);

impl<'a> Stopped<'a> {
    fn new(plane: &'a ControlPlane) -> anyhow::Result<Self> {
        let stopped = Self(plane);
        stopped.signal(Signal::STOP)?;
        Ok(stopped)
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        for pid in self.0.pids() {
            let pid = Pid::from_raw(pid.try_into()?).context("a process id")?;
            kill_process(pid, signal)?;
        }
        Ok(())
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        // A server that has ended needs no signal.
        self.signal(Signal::CONT).unwrap_or_default();
    }
}

#[test]
fn an_api_server_that_never_answers_delays_neither_a_rollback_nor_a_repair() -> anyhow::Result<()> {
    let world = World::start()?;
    let (good, agent) = world.confirmed()?;
    let node = world.fabric.at(NODE)?;
    let mut dead = good.clone();
    dead["spec"]["revision"] = "dead".into();
    dead["spec"]["underlay"]["neighbors"][0]["address"] = "192.0.2.99".into();
    world.tell(&dead)?;
    let is_trying = "grep -q '\"trying\"' /var/lib/selvedge/journal";
    let trying = Fabric::eventually(PATIENCE, || node.script(is_trying).ok());
    trying.with_context(|| agent.stderr())?;
    let start = Instant::now();
    let stopped = Stopped::new(&world.plane)?;
    node.script(is_trying)
        .context("the API server was stopped after the trial")?;

    let is_over = format!("! {is_trying}");
    let over = Fabric::eventually(PATIENCE, || node.script(&is_over).ok());
    let took = start.elapsed();
    over.with_context(|| agent.stderr())?;
    eprintln!("rolled back after {:.1} s", took.as_secs_f64());
    assert!(took <= DEADLINE, "{took:?}: {}", agent.stderr());
    let left = preview(&world.fabric, NODE, &good.to_string())?;
    assert_eq!(left, "nothing to do");

    // The report waits for an answer; the node is watched meanwhile, and the log says what is not reported.
    let milliseconds = repair_time(
        &world.fabric,
        "ip -n selvedge link delete vx.10300",
        "ip -n selvedge link show vx.10300",
    )?;
    assert!(milliseconds <= 5000, "{milliseconds} ms");
    let said = Fabric::eventually(PATIENCE, || {
        let said = agent.stderr().contains("failed to report");
        said.then_some(())
    });
    said.with_context(|| agent.stderr())?;

    drop(stopped);
    let status = world.answered("dead", "invalid")?;
    assert_eq!(status["runningRevision"], "good");
    Ok(())
}

/// bgpd dies, and the config that comes before it is back takes a segment and its VRF away.
fn a_config_that_comes_during_a_hold_is_applied_and_nothing_is_left(
    world: &World,
    agent: &Running,
) -> anyhow::Result<()> {
    let mut less = plugged(&world.fabric, &["shop"])?;
    less["metadata"] = json!({"name": NODE});
    less["spec"]["revision"] = "less".into();
    let node = world.fabric.at(NODE)?;
    node.script("kill -9 $(pidof bgpd)")?;
    world.tell(&less)?;
    world
        .answered("less", "provisioned")
        .with_context(|| agent.stderr())?;
    let said = agent.stderr();
    assert!(said.contains("bgpd has exited unexpectedly"), "{said}");
    nothing_is_held(&world.fabric).with_context(|| agent.stderr())?;
    let left = preview(&world.fabric, NODE, &less.to_string())?;
    assert_eq!(left, "nothing to do");
    Ok(())
}

/// The password is read from its Secret once; after that the node does not need the API server for it, nor shows it.
fn a_session_with_a_password_comes_back_without_the_api_server(
    world: World,
    good: &Value,
    cut: &Value,
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

    // The change that took the API server away is confirmed where health is measured elsewhere: without a cluster, the
    // uplink session decides.
    again.signal(Signal::TERM);
    node.script("flock --timeout 30 /run/selvedge/agent.lock true")?;
    let mut elsewhere = cut.clone();
    elsewhere["spec"]["underlay"] = secured["spec"]["underlay"].clone();
    elsewhere["spec"]["underlay"]["neighbors"][0]["passwordSecret"].take();
    elsewhere["spec"]["health"]["confirmDeadline"] = "40s".into();
    fabric.at("leaf1")?.script(&format!(
        "vtysh -N router -c 'configure terminal' -c 'router bgp 64512' -c 'no neighbor {} password hunter2'",
        near.ipv4.addr()
    ))?;
    node.write("/run/config.json", &elsewhere.to_string())?;
    let said = node.output(
        &["/share/selvedge", "agent", "--config", "/run/config.json"],
        "",
    )?;
    assert_eq!(said.status, 0, "{}", said.stderr);
    let address = fabric.control_plane_address();
    let route = node.script(&format!("ip route get {address}"))?;
    assert!(route.starts_with("local"), "{route}");
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
