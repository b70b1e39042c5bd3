//! Ring 6, the host's router on a node of a cluster: from the write of its config to the peer, and back into the objects that tell of it.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use lab::{fabric::Fabric, host::Running};
use serde_json::{Value, json};

use crate::{
    ring4_host_router::{HOST, PEER, config, neighbor, peer, prefixes_arrive, start_peer},
    ring4_safety::NODE,
    ring6_cut_off::{PATIENCE, World},
    support::start_agent,
};

/// How soon a change must be at the peer, in a guest that is an emulated CPU: a second on a machine.
const SOON: Duration = Duration::from_secs(3);
const PASSWORD: &str = "hunter2";

/// A config of this node, with more in its router.
fn told(world: &World, mut config: Value, edit: impl FnOnce(&mut Value)) -> anyhow::Result<Value> {
    config["spec"]["health"] =
        json!({"confirmDeadline": "10s", "gateways": false, "sessions": false});
    edit(&mut config["spec"]["hostRouter"]);
    world.tell(&config)?;
    Ok(config)
}

fn get(world: &World, arguments: &[&str]) -> anyhow::Result<Value> {
    let get = ["get", "-n", "selvedge-system", "-o", "json"];
    let text = world.plane.kubectl(&[&get[..], arguments].concat(), "")?;
    Ok(serde_json::from_str(&text)?)
}

/// The states of the node's sessions, by peer.
fn sessions(world: &World) -> anyhow::Result<Vec<(String, String)>> {
    let label = format!("frrk8s.metallb.io/node={NODE}");
    let found = get(world, &["bgpsessionstates", "-l", &label])?;
    let items = found["items"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let one = |it: &Value| {
        assert_eq!(it["metadata"]["ownerReferences"][0]["kind"], "Node", "{it}");
        assert_eq!(
            it["metadata"]["labels"]["frrk8s.metallb.io/peer"],
            it["status"]["peer"]
        );
        (
            text(&it["status"]["peer"]),
            text(&it["status"]["bgpStatus"]),
        )
    };
    Ok(items.iter().map(one).collect())
}

/// Waits until this holds, and says what was seen last.
fn until(
    what: &str,
    agent: &Running,
    patience: Duration,
    mut seen: impl FnMut() -> anyhow::Result<(bool, String)>,
) -> anyhow::Result<Duration> {
    let start = Instant::now();
    let mut last = String::new();
    let done = Fabric::eventually(patience, || {
        let (holds, now) = seen().unwrap_or_else(|error| (false, format!("{error:#}")));
        last = now;
        holds.then_some(())
    });
    anyhow::ensure!(done.is_some(), "{what}: {last}\n{}", agent.stderr());
    Ok(start.elapsed())
}

fn session_is(world: &World, agent: &Running, peer: &str, state: &str) -> anyhow::Result<Duration> {
    until(&format!("{peer} is {state}"), agent, PATIENCE, || {
        let seen = sessions(world)?;
        let is_it = seen.contains(&(peer.to_owned(), state.to_owned()));
        Ok((is_it, format!("{seen:?}")))
    })
}

#[test]
fn a_change_of_the_hosts_router_is_at_the_peer_at_once_and_told_in_its_objects()
-> anyhow::Result<()> {
    let world = World::start()?;
    start_peer(&world.fabric, None)?;
    told(&world, config(3), |_| {})?;
    let agent = start_agent(&world.fabric, &world.plane, NODE, "agent")?;
    prefixes_arrive(&world.fabric, 3).with_context(|| agent.stderr())?;

    let mut slowest = Duration::ZERO;
    for count in 4..10 {
        told(&world, config(count), |_| {})?;
        let start = Instant::now();
        prefixes_arrive(&world.fabric, count as u64).with_context(|| agent.stderr())?;
        slowest = slowest.max(start.elapsed());
    }
    eprintln!(
        "a prefix is at the peer after at most {:.2} s",
        slowest.as_secs_f64()
    );
    assert!(slowest <= SOON, "{slowest:?}: {}", agent.stderr());
    assert_eq!(peer(&world.fabric)?["connectionsEstablished"], 1);

    the_state_is_told(&world, &agent)?;
    a_session_is_told_as_it_changes(&world, &agent)?;
    what_the_host_lacks_is_told_and_heals(&world, &agent)?;
    what_does_not_stay_leaves_nothing(&world, &agent)
}

fn the_state_is_told(world: &World, agent: &Running) -> anyhow::Result<()> {
    session_is(world, agent, PEER, "Established")?;
    let wanted = json!([{"namespace": "selvedge-system", "name": "a", "generation": 1}]);
    until("the config is told to run", agent, PATIENCE, || {
        let status = world.status()?["hostRouter"].clone();
        let holds = status["configurations"] == wanted && status.get("error").is_none();
        Ok((holds, status.to_string()))
    })?;
    until("the state of the node is told", agent, PATIENCE, || {
        let state = get(world, &["frrnodestate", NODE])?;
        let status = &state["status"];
        let running = status["runningConfig"].as_str().unwrap_or_default();
        let holds = status["lastReloadResult"] == "success"
            && status["lastConversionResult"] == "success"
            && running.contains("router bgp 64600")
            && running.contains("network 203.0.113.8/32")
            && state["metadata"]["ownerReferences"][0]["name"] == NODE;
        Ok((holds, state.to_string()))
    })?;
    let metrics = world.fabric.at(NODE)?.script(
        "exec 3<>/dev/tcp/127.0.0.1/9717; printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3",
    )?;
    let labels = format!("{{peer=\"{PEER}\",vrf=\"default\"}}");
    for line in [
        format!("frrk8s_bgp_session_up{labels} 1"),
        format!("frrk8s_bgp_announced_prefixes_total{labels} 9"),
        "frrk8s_k8s_client_config_stale_bool 0".to_owned(),
    ] {
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }
    Ok(())
}

fn a_session_is_told_as_it_changes(world: &World, agent: &Running) -> anyhow::Result<()> {
    let node = world.fabric.at(NODE)?;
    node.script("ip link set uplink down")?;
    let label = format!("frrk8s.metallb.io/node={NODE}");
    let down = until("the session is told to be down", agent, PATIENCE, || {
        let seen = sessions(world)?;
        let is_up = seen.iter().any(|(_, state)| state == "Established");
        Ok((!is_up && !seen.is_empty(), format!("{label}: {seen:?}")))
    })?;
    node.script("ip link set uplink up")?;
    let up = session_is(world, agent, PEER, "Established")?;
    let (down, up) = (down.as_secs_f64(), up.as_secs_f64());
    eprintln!("a session is told to be down after {down:.1} s, and to be up after {up:.1} s");
    assert!(down <= 10.0, "{down}: the hold time is three seconds");
    Ok(())
}

fn what_the_host_lacks_is_told_and_heals(world: &World, agent: &Running) -> anyhow::Result<()> {
    let red = json!({"asn": 64600, "routerId": HOST, "networks": ["198.51.100.0/24"]});
    told(world, config(9), |router| router["routers"]["red"] = red)?;
    let missing = |is_meant: &dyn Fn(&Value) -> bool| {
        until("what is missing is told", agent, PATIENCE, || {
            let missing = world.status()?["hostRouter"]["missing"].clone();
            Ok((is_meant(&missing), missing.to_string()))
        })
    };
    missing(&|it| it[0]["kind"] == "vrf" && it[0]["name"] == "red")?;
    let node = world.fabric.at(NODE)?;
    node.script("ip link add red type vrf table 77; ip link set red up")?;
    missing(&Value::is_null)?;
    until("the VRF works", agent, PATIENCE, || {
        let said = node.script("vtysh -N host -c 'show bgp vrf red ipv4 unicast json'")?;
        Ok((said.contains("198.51.100.0/24"), said))
    })?;
    told(world, config(9), |_| {})?;
    until("its router is gone", agent, PATIENCE, || {
        let said = node.script("vtysh -N host -c 'show running-config'")?;
        Ok((
            !said.contains("vrf red\n neighbor") && !said.contains("bgp 64600 vrf"),
            said,
        ))
    })?;
    node.script("ip link delete red")?;
    Ok(())
}

fn what_does_not_stay_leaves_nothing(world: &World, agent: &Running) -> anyhow::Result<()> {
    // A second session waits for its password, and the first goes on.
    let secret = json!({"name": "leaf", "namespace": "default"});
    let mut other = neighbor("198.19.0.3", &[]);
    other["passwordSecret"] = secret;
    let two = |router: &mut Value| {
        let neighbors = &mut router["routers"]["default"]["neighbors"];
        neighbors.as_array_mut().expect("a list").push(other);
    };
    told(world, config(9), two)?;
    until("the session waits", agent, PATIENCE, || {
        let status = world.status()?["hostRouter"].clone();
        let error = status["error"].as_str().unwrap_or_default();
        Ok((error.contains("default/leaf"), status.to_string()))
    })?;
    session_is(world, agent, PEER, "Established")?;
    assert_eq!(sessions(world)?.len(), 1);
    let literal = format!("--from-literal=password={PASSWORD}");
    let create = [
        "create", "secret", "generic", "leaf", "-n", "default", &literal,
    ];
    world.plane.kubectl(&create, "")?;
    until("there are two sessions", agent, PATIENCE, || {
        let seen = sessions(world)?;
        Ok((seen.len() == 2, format!("{seen:?}")))
    })?;
    let state = get(world, &["frrnodestate", NODE])?.to_string();
    assert!(!state.contains(PASSWORD), "{state}");
    assert!(!agent.stderr().contains(PASSWORD));

    told(world, config(9), |_| {})?;
    until("one session is left", agent, PATIENCE, || {
        let seen = sessions(world)?;
        Ok((seen.len() == 1, format!("{seen:?}")))
    })?;
    world.plane.kubectl(&["delete", "node", NODE], "")?;
    until("nothing of the node is left", agent, PATIENCE, || {
        let seen = sessions(world)?;
        let state = get(world, &["frrnodestate", NODE]);
        Ok((
            seen.is_empty() && state.is_err(),
            format!("{seen:?} {state:?}"),
        ))
    })?;
    Ok(())
}

#[test]
fn a_change_that_cuts_off_the_api_server_is_taken_back_by_the_node_itself() -> anyhow::Result<()> {
    let world = World::start()?;
    start_peer(&world.fabric, None)?;
    let address = world.fabric.control_plane_address();
    // The peer says that the API server is behind it.
    world.fabric.at(NODE)?.script(&format!(
        "ip -n peer route add blackhole {address}/32
vtysh -N peer -c 'configure terminal' -c 'router bgp 64601' -c 'no bgp network import-check' -c 'address-family ipv4 unicast' -c 'network {address}/32'"
    ))?;
    let deaf = |router: &mut Value| {
        router["routers"]["default"]["neighbors"][0]["receive"] = json!({});
    };
    told(&world, config(3), deaf)?;
    let agent = start_agent(&world.fabric, &world.plane, NODE, "agent")?;
    prefixes_arrive(&world.fabric, 3).with_context(|| agent.stderr())?;
    // It becomes the good one.
    std::thread::sleep(Duration::from_secs(14));
    let start = Instant::now();
    told(&world, config(4), |_| {})?;
    let node = world.fabric.at(NODE)?;
    let route = format!("ip route show {address}/32");
    until("the node is cut off", &agent, PATIENCE, || {
        let seen = node.script(&route)?;
        Ok((seen.contains("via"), seen))
    })?;
    until("the change is taken back", &agent, PATIENCE, || {
        let seen = node.script(&route)?;
        Ok((!seen.contains("via"), seen))
    })?;
    let took = start.elapsed();
    eprintln!("taken back after {:.1} s", took.as_secs_f64());
    assert!(took <= Duration::from_secs(15), "{took:?}");
    prefixes_arrive(&world.fabric, 3).with_context(|| agent.stderr())?;
    until("the node says so", &agent, PATIENCE, || {
        let status = world.status()?["hostRouter"].clone();
        let error = status["error"].as_str().unwrap_or_default();
        Ok((error.contains("API server"), status.to_string()))
    })?;
    // Another change is tried.
    told(&world, config(5), deaf)?;
    prefixes_arrive(&world.fabric, 5).with_context(|| agent.stderr())
}
