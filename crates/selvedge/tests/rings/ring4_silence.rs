//! Ring 4, what does not answer and what is lost: daemons that are stopped, a journal that is damaged, commands nobody announces.

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use lab::{fabric::Fabric, host::Running};
use serde_json::{Value, json};

use crate::{
    ring4::Node,
    ring4_safety::{
        NODE, cut_off_agent, end, is_at, metrics, nothing, plugged, preview, repair_time,
        while_trying,
    },
    support::selvedge,
};

const PATIENCE: Duration = Duration::from_mins(1);
/// The longest deadline of a trial, in seconds: the lab ends a script after two minutes.
const LONGEST: u64 = 80;

/// A config that never becomes healthy.
fn dead(good: &Value, deadline: &str) -> Value {
    let mut dead = good.clone();
    dead["spec"]["revision"] = "dead".into();
    dead["spec"]["underlay"]["neighbors"][0]["address"] = "192.0.2.99".into();
    dead["spec"]["health"]["confirmDeadline"] = deadline.into();
    dead
}

#[test]
fn a_daemon_that_is_stopped_or_killed_in_a_trial_costs_no_more_than_its_deadline()
-> anyhow::Result<()> {
    let node = Node::start()?;
    let good = plugged(&node.fabric, &[])?;
    node.apply(&good)?.ok()?;
    let stopped = ["zebra", "mgmtd", "staticd", "bfdd", "bgpd"].map(|daemon| ("STOP", daemon, 10));
    let more = [
        ("STOP", "zebra", 30),
        ("STOP", "bgpd", 30),
        ("KILL", "zebra", 10),
        ("KILL", "bgpd", 10),
    ];
    for (signal, daemon, seconds) in stopped.into_iter().chain(more) {
        let new = plugged(&node.fabric, &["shop"])?;
        let act = format!("sleep 0.1; {}", at_once(signal, daemon));
        settles_in_time(&node, (&good, &new), seconds, &act)?;
        node.apply(&good)?.ok()?;
    }
    Ok(())
}

/// How many processes share each processor of this machine: everything that a guest does takes so many times as long as on an idle one.
fn crowd() -> u64 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let (running, _) = load.split_once('.').unwrap_or(("0", ""));
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let running: usize = running.parse().unwrap_or_default();
    u64::try_from(running / processors).map_or(1, |crowd| crowd.max(1))
}

/// Changes a node and does something as soon as the journal names the new config. When the deadline is over, the node is at the new config
/// or at the old one, which runs already. Returns what was said. On a busy machine the deadline is longer.
pub(crate) fn settles_in_time(
    node: &Node,
    (old, new): (&Value, &Value),
    seconds: u64,
    act: &str,
) -> anyhow::Result<String> {
    let seconds = (seconds * crowd()).min(LONGEST);
    let mut new = new.clone();
    new["spec"]["health"]["confirmDeadline"] = format!("{seconds}s").into();
    let script = format!(
        "start=$(date +%s%N)
{act}
while grep -q '\"trying\"' /var/lib/selvedge/journal; do kill -0 $agent || break; sleep 0.05; done
echo took $(( ($(date +%s%N) - start) / 1000000 ))
wait $agent || true"
    );
    let said = while_trying(node, &new, &script)?;
    let took = said.lines().find_map(|line| line.strip_prefix("took "));
    let took: u64 = took.context("no time")?.parse()?;
    let is_old = preview(node, old).is_ok_and(|left| left == "nothing to do");
    eprintln!("{act}: settled after {took} ms of {seconds} s, at the old config: {is_old}");
    // A config that becomes healthy after a long apply has a quarter of the deadline more, and completes the time for which health must
    // last. A rollback never takes longer than the deadline.
    let most = if is_old {
        seconds * 1000
    } else {
        seconds * 1250 + 2500
    };
    anyhow::ensure!(took <= most, "{act}: {took} ms of {seconds} s: {said}");
    let stopped = node.script("grep -l '^State:.*stopped' /proc/[0-9]*/status || true")?;
    anyhow::ensure!(stopped.is_empty(), "{act}: {stopped} is stopped");
    if !is_old {
        is_at(node, &new).with_context(|| format!("{act}: {said}"))?;
    }
    Ok(said)
}

/// Sends a daemon a signal, as soon as there is one: it may just be started anew.
fn at_once(signal: &str, daemon: &str) -> String {
    format!("until pids=$(pidof {daemon}); do kill -0 $agent || break; done; kill -{signal} $pids")
}

/// What a node becomes with so many tenants, each an L3VNI of its own.
fn tenants(fabric: &Fabric, count: u32) -> anyhow::Result<Value> {
    let link = fabric.link(NODE, "leaf1")?;
    let (_, far) = link.seen_from(NODE).expect("the link has two ends");
    let mut objects = format!(
        "
apiVersion: v1
kind: Node
metadata: {{name: {NODE}}}
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: Underlay
metadata: {{name: fabric, namespace: default}}
spec:
  asn: 64601
  nics: [eth1]
  evpn: {{vtepcidr: 100.65.0.0/24}}
  neighbors: [{{type: external, address: {}, connectTime: 1s}}]
",
        far.ipv4.addr()
    );
    for tenant in 1..=count {
        write!(
            objects,
            "---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: L3VNI
metadata: {{name: tenant{tenant}, namespace: default}}
spec: {{vrf: tenant{tenant}, vni: {}, hostsession: {{asn: 64601, hostasn: 64700}}}}
",
            5000 + tenant
        )?;
    }
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
    config["spec"]["health"] = json!({"confirmDeadline": "60s", "gateways": false});
    Ok(config)
}

#[test]
fn what_is_stopped_in_the_middle_of_many_lines_costs_no_more_than_the_deadline()
-> anyhow::Result<()> {
    let node = Node::start()?;
    let (good, many) = (tenants(&node.fabric, 1)?, tenants(&node.fabric, 21)?);
    node.apply(&good)?.ok()?;
    for (program, after) in [
        ("bgpd", 300),
        ("zebra", 1000),
        ("bgpd", 2000),
        ("vtysh", 500),
    ] {
        stopped_with_lines_to_type(&node, (&good, &many), program, after)?;
        node.apply(&good)?.ok()?;
    }
    Ok(())
}

/// Stops a program while a vtysh has lines to type: the vtysh is stopped first, and goes on when the program has been stopped. One that
/// had ended before proves nothing: the next attempt comes earlier.
fn stopped_with_lines_to_type(
    node: &Node,
    (good, many): (&Value, &Value),
    program: &str,
    after: u32,
) -> anyhow::Result<()> {
    let mut said = String::new();
    for after in [after, after / 2, after / 4, 0] {
        let act = format!(
            "until pidof vtysh > /dev/null; do kill -0 $agent || break; done
sleep {}
if vtysh=$(pidof -s vtysh) && kill -STOP $vtysh; then
  [ {program} = vtysh ] || {{ kill -STOP $(pidof {program}); kill -CONT $vtysh; sleep 0.5; }}
  [ ! -e /proc/$vtysh/stat ] || echo it has lines to type
fi",
            f64::from(after) / 1000.0
        );
        said = settles_in_time(node, (good, many), 30, &act)?;
        if said.contains("it has lines to type") {
            return Ok(());
        }
        eprintln!("{program} was stopped after {after} ms, when all was done");
        node.apply(good)?.ok()?;
    }
    anyhow::bail!("{program} was never stopped before all was done: {said}")
}

#[test]
fn a_daemon_that_is_stopped_or_killed_when_the_router_is_made_costs_no_more_than_the_deadline()
-> anyhow::Result<()> {
    let node = Node::start()?;
    let (none, good) = (nothing(), plugged(&node.fabric, &["shop"])?);
    let mut other_as = good.clone();
    other_as["spec"]["revision"] = "other-as".into();
    other_as["spec"]["underlay"]["asn"] = 64777.into();
    let bare = node.links_of_host()?;
    for (signal, daemon) in [("KILL", "zebra"), ("STOP", "bgpd"), ("KILL", "bgpd")] {
        let act = format!(
            "until pidof {daemon} > /dev/null; do kill -0 $agent || break; done; sleep 0.1
{}",
            at_once(signal, daemon)
        );
        settles_in_time(&node, (&none, &good), 30, &act)?;
        node.apply(&none)?.ok()?;
        assert_eq!(node.links_of_host()?, bare, "{signal} {daemon}");
        assert_eq!(node.daemons()?, "", "{signal} {daemon}");
    }
    node.apply(&good)?.ok()?;
    // The change of the AS starts other daemons.
    for (signal, daemon) in [("STOP", "zebra"), ("KILL", "bgpd"), ("STOP", "bgpd")] {
        let act = format!(
            "old=$(pidof {daemon} || true); until [ \"$(pidof {daemon} || echo $old)\" != \"$old\" ]; do kill -0 $agent || break; done
sleep 0.1; {}",
            at_once(signal, daemon)
        );
        settles_in_time(&node, (&good, &other_as), 30, &act)?;
        node.apply(&good)?.ok()?;
        is_at(&node, &good)?;
    }
    Ok(())
}

#[test]
fn frr_that_is_silent_is_started_anew_without_a_change() -> anyhow::Result<()> {
    let node = Node::start()?;
    let good = plugged(&node.fabric, &[])?;
    node.apply(&good)?.ok()?;
    let agent = cut_off_agent(&node)?;
    agent.wait_for("agent starts", PATIENCE)?;
    std::thread::sleep(Duration::from_secs(3));
    for daemon in ["bgpd", "zebra"] {
        let before = node.script(&format!("pidof {daemon}"))?;
        let start = Instant::now();
        node.script(&format!("kill -STOP $(pidof {daemon})"))?;
        let after = Fabric::eventually(PATIENCE, || {
            let pid = node.script(&format!("pidof {daemon}")).ok();
            pid.filter(|pid| *pid != before)
        });
        let took = start.elapsed().as_secs_f64();
        anyhow::ensure!(
            after.is_some(),
            "{daemon} was not started anew: {}",
            agent.stderr()
        );
        eprintln!("{daemon} stopped outside a trial: another one after {took:.1} s");
        is_at(&node, &good)?;
    }
    Ok(())
}

/// Waits until the router has a session with the leaf.
fn has_session(node: &Node) -> anyhow::Result<()> {
    let router = node.fabric.at(NODE)?;
    let is_up = Fabric::eventually(PATIENCE, || {
        let summary = router.frr_json("show bgp ipv4 unicast summary json").ok()?;
        let is_up = summary["peers"].to_string().contains("Established");
        is_up.then_some(())
    });
    is_up.context("the session is not up")
}

#[test]
fn a_damaged_journal_keeps_no_bad_config() -> anyhow::Result<()> {
    const CUT: &str = "truncate --size 200 /var/lib/selvedge/journal";
    let node = Node::start()?;
    let good = plugged(&node.fabric, &[])?;
    node.apply(&good)?.ok()?;
    let cuts = [
        ("the copy on disk is intact", CUT.to_owned()),
        (
            "both files on disk are damaged",
            format!("{CUT} /var/lib/selvedge/journal.previous"),
        ),
        (
            "the state directory is empty",
            "rm -rf /var/lib/selvedge/*".to_owned(),
        ),
    ];
    for (index, (what, cut)) in cuts.iter().enumerate() {
        node.script(cut)?;
        let mut dead = dead(&good, "6s");
        dead["spec"]["underlay"]["neighbors"][0]["connectTime"] = (10 + index).into();
        // The session of the good config may not be up again since the last rollback. That excuses nothing.
        let refused = node.apply(&dead)?;
        assert_eq!(refused.status, 1, "{what}");
        assert!(
            refused
                .stderr
                .contains("no uplink BGP session is established"),
            "{what}: {}",
            refused.stderr
        );
        is_at(&node, &good).context(*what)?;
    }

    // Nothing is left that says what runs: what differs from it is not tried, until somebody insists.
    node.script("rm -rf /var/lib/selvedge/* /run/selvedge/journal.running")?;
    has_session(&node)?;
    let drops = "vtysh -N router -c 'show bgp neighbors json' | grep connectionsDropped";
    let before = (node.links()?, node.script(drops)?);
    let refused = node.apply(&dead(&good, "6s"))?;
    assert_eq!(refused.status, 1);
    let said = &refused.stderr;
    assert!(said.contains("the journal of this node is lost"), "{said}");
    assert_eq!((node.links()?, node.script(drops)?), before);
    // What runs is confirmed, and from then on there is a way back.
    node.apply(&good)?.ok()?;
    assert_eq!(node.apply(&dead(&good, "5s"))?.status, 1);
    is_at(&node, &good)
}

/// The agent, with lines of others reported and kept.
fn reporting_agent(node: &Node) -> anyhow::Result<Running> {
    let space = node.fabric.at(NODE)?;
    space.write("/run/kubeconfig", "no kubeconfig at all")?;
    Ok(space.start(&[
        "/share/selvedge",
        "agent",
        "--node",
        NODE,
        "--kubeconfig",
        "/run/kubeconfig",
        "--report-unmanaged-lines",
    ])?)
}

/// A value that the agent publishes.
fn metric(node: &Node, name: &str) -> anyhow::Result<u32> {
    let text = metrics(node)?;
    let name = format!("selvedge_agent_{name} ");
    let value = text.lines().find_map(|line| line.strip_prefix(&name));
    Ok(value.context("no such metric")?.trim().parse()?)
}

#[test]
fn a_line_typed_by_hand_is_noticed_however_it_is_typed() -> anyhow::Result<()> {
    let node = Node::start()?;
    let good = plugged(&node.fabric, &[])?;
    node.apply(&good)?.ok()?;
    let agent = cut_off_agent(&node)?;
    agent.wait_for("agent starts", PATIENCE)?;
    std::thread::sleep(Duration::from_secs(3));
    let link = node.fabric.link(NODE, "leaf1")?;
    let (_, far) = link.seen_from(NODE).expect("the link has two ends");
    let line = format!(
        "-c 'router bgp 64514' -c 'neighbor {} description typed'",
        far.ipv4.addr()
    );
    let whole = "! vtysh -N router -c 'show running-config' | grep -q typed";
    // From a vtysh for bgpd alone that stays open, and types later.
    let later = format!(
        "{{ (sleep 3; echo 'configure terminal'; echo 'router bgp 64514'; echo 'neighbor {} description typed'; sleep 60) |
        vtysh -N router -d bgpd; }} > /dev/null 2>&1 < /dev/null & sleep 3.2",
        far.ipv4.addr()
    );
    for (how, typed) in [
        (
            "configure terminal",
            format!("vtysh -N router -c 'configure terminal' {line}"),
        ),
        ("config t", format!("vtysh -N router -c 'config t' {line}")),
        ("conf", format!("vtysh -N router -c conf {line}")),
        (
            "bgpd alone",
            format!("vtysh -N router -d bgpd -c 'configure terminal' {line}"),
        ),
        ("bgpd alone, later", later),
    ] {
        let before = metric(&node, "repaired_total")?;
        let milliseconds = repair_time(&node.fabric, &typed, whole)?;
        let repaired = Fabric::eventually(Duration::from_secs(5), || {
            metric(&node, "repaired_total")
                .ok()
                .filter(|now| *now > before)
        });
        eprintln!(
            "{how}: repaired after {milliseconds} ms: {}",
            repaired.is_some()
        );
        assert!(repaired.is_some(), "{how}: nothing was noticed");
        assert!(milliseconds <= 5000, "{how}: {milliseconds} ms");
        is_at(&node, &good)?;
    }
    node.script("kill $(pidof vtysh) 2> /dev/null || true")?;
    end(&node, &agent)?;

    lines_of_others_are_reported_and_kept(&node)
}

/// They are reported as long as they are there.
fn lines_of_others_are_reported_and_kept(node: &Node) -> anyhow::Result<()> {
    let agent = reporting_agent(node)?;
    agent.wait_for("agent starts", PATIENCE)?;
    std::thread::sleep(Duration::from_secs(3));
    let before = metric(node, "missing_parts")?;
    node.script(
        "vtysh -N router -c 'configure terminal' -c 'access-list typed seq 5 permit 10.0.0.0/8'",
    )?;
    let reported = Fabric::eventually(PATIENCE, || {
        let now = metric(node, "missing_parts").ok();
        now.filter(|now| *now > before)
    });
    let reported = reported.with_context(|| format!("not reported: {}", agent.stderr()))?;
    // Also after the next comparisons, which find nothing to change.
    node.script("vtysh -N router -c 'configure terminal' -c end")?;
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(metric(node, "missing_parts")?, reported);
    let still = "vtysh -N router -c 'show running-config' | grep -q 'access-list typed'";
    node.script(still)?;

    // They keep no other difference from being repaired at once, nor from being put off when it comes back again and again.
    let mut times = Vec::new();
    for _ in 0..8 {
        let (breaking, whole) = (
            "ip -n selvedge link delete vx.10300",
            "ip -n selvedge link show vx.10300",
        );
        times.push(repair_time(&node.fabric, breaking, whole)?);
        std::thread::sleep(Duration::from_millis(300));
    }
    eprintln!(
        "with lines of others, a link that is deleted again and again is back after {times:?} ms"
    );
    assert!(times[0] <= 1000, "{times:?}");
    assert!(times[7] >= 1500, "it was not put off: {times:?}");
    node.script(still)?;
    end(node, &agent)
}
