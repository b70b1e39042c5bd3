//! Ring 4, what does not answer and what is lost: daemons that are stopped, a journal that is damaged, commands nobody announces.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use lab::{fabric::Fabric, host::Running};
use serde_json::Value;

use crate::{
    ring4::Node,
    ring4_safety::{NODE, cut_off_agent, end, is_at, plugged, preview, repair_time, while_trying},
};

const PATIENCE: Duration = Duration::from_mins(1);

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
        let mut new = plugged(&node.fabric, &["shop"])?;
        new["spec"]["health"]["confirmDeadline"] = format!("{seconds}s").into();
        let act = format!(
            "start=$(date +%s%N)
sleep 0.1; kill -{signal} $(pidof {daemon})
while grep -q '\"trying\"' /var/lib/selvedge/journal; do kill -0 $agent || break; sleep 0.05; done
echo took $(( ($(date +%s%N) - start) / 1000000 ))
wait $agent || true"
        );
        let what = format!("{signal} {daemon}");
        let said = while_trying(&node, &new, &act)?;
        let took = said.lines().find_map(|line| line.strip_prefix("took "));
        let took: u64 = took.context("no time")?.parse()?;
        let is_old = preview(&node, &good).is_ok_and(|left| left == "nothing to do");
        eprintln!("{what}: settled after {took} ms of {seconds} s, at the old config: {is_old}");
        assert!(
            took <= seconds * 1000,
            "{what}: {took} ms of {seconds} s: {said}"
        );
        let stopped = node.script("grep -l '^State:.*stopped' /proc/[0-9]*/status || true")?;
        assert_eq!(stopped, "", "{what}");
        if !is_old {
            is_at(&node, &new)?;
        }
        node.apply(&good)?.ok()?;
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
    let drops = "vtysh -N router -c 'show bgp summary json' | grep -c Established";
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
    let text = node.script(
        "bash -c 'exec 3<>/dev/tcp/127.0.0.1/9717; printf \"GET /metrics HTTP/1.0\\r\\n\\r\\n\" >&3; cat <&3'",
    )?;
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

    // With lines of others kept, they are reported as long as they are there.
    let agent = reporting_agent(&node)?;
    agent.wait_for("agent starts", PATIENCE)?;
    std::thread::sleep(Duration::from_secs(3));
    let before = metric(&node, "missing_parts")?;
    node.script(
        "vtysh -N router -c 'configure terminal' -c 'access-list typed seq 5 permit 10.0.0.0/8'",
    )?;
    let reported = Fabric::eventually(PATIENCE, || {
        let now = metric(&node, "missing_parts").ok();
        now.filter(|now| *now > before)
    });
    let reported = reported.with_context(|| format!("not reported: {}", agent.stderr()))?;
    // Also after the next comparisons, which find nothing to change.
    node.script("vtysh -N router -c 'configure terminal' -c end")?;
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(metric(&node, "missing_parts")?, reported);
    node.script("vtysh -N router -c 'show running-config' | grep -q 'access-list typed'")?;
    end(&node, &agent)
}
