//! Ring 4, what the daemons and the agent stand on: a control group, a namespace with a name, capabilities.

use std::time::Duration;

use anyhow::Context as _;
use lab::fabric::Fabric;
use serde_json::{Value, json};

use crate::{
    ring4::{Node, config},
    ring4_safety::{
        NODE, agent_in_a_group_of_its_own, cut_off_agent, end, is_at, nothing, plugged, repair_time,
    },
};

const PATIENCE: Duration = Duration::from_mins(1);
const DOCS: &str = include_str!("../../../../docs/node-agent.md");
const MANIFEST: &str = include_str!("../../../../deploy/agent.yaml");

#[test]
fn daemons_in_the_agents_control_group_are_moved_out_of_it_and_outlive_it() -> anyhow::Result<()> {
    let node = Node::start()?;
    let good = plugged(&node.fabric, &[])?;
    node.apply(&good)?.ok()?;
    let agent = agent_in_a_group_of_its_own(&node.fabric)?;
    agent.wait_for("agent starts", PATIENCE)?;
    is_at(&node, &good)?;
    let daemons = node.daemons()?;
    assert!(daemons.split(' ').count() >= 5, "{daemons}");
    let own = "sort /sys/fs/cgroup/selvedge-frr/cgroup.procs";
    let before = node.script(own)?;
    node.script(&format!(
        "for pid in {daemons}; do echo $pid > /sys/fs/cgroup/agent/cgroup.procs; done
[ -z \"$(cat /sys/fs/cgroup/selvedge-frr/cgroup.procs)\" ]
ip -n selvedge link delete vx.10300"
    ))?;
    let moved = Fabric::eventually(PATIENCE, || {
        node.script(own).ok().filter(|procs| *procs == before)
    });
    moved.with_context(|| format!("they stay in the agent's group: {}", agent.stderr()))?;
    node.script(
        "echo 1 > /sys/fs/cgroup/agent/cgroup.kill; flock --timeout 30 /run/selvedge/agent.lock true",
    )?;
    assert!(agent.wait(PATIENCE)?.status >= 128, "it was killed");
    assert_eq!(node.daemons()?, daemons);
    is_at(&node, &good)
}

#[test]
fn a_namespace_that_loses_its_name_is_noticed_within_a_second_and_frr_runs_in_the_new_one()
-> anyhow::Result<()> {
    let node = Node::start()?;
    let good = plugged(&node.fabric, &[])?;
    node.apply(&good)?.ok()?;
    let agent = cut_off_agent(&node)?;
    agent.wait_for("agent starts", PATIENCE)?;
    std::thread::sleep(Duration::from_secs(3));
    // The NIC would be lost with its namespace: the lab's is a veth. This process keeps both.
    let space = node.fabric.at(NODE)?;
    let keeper = space.start(&["ip", "netns", "exec", "selvedge", "sleep", "600"])?;
    std::thread::sleep(Duration::from_secs(1));
    let milliseconds = repair_time(
        &node.fabric,
        "old=$(stat -Lc %i /run/netns/selvedge); ip netns del selvedge",
        "[ $(stat -Lc %i /run/netns/selvedge) != $old ]",
    )?;
    eprintln!("there is a namespace of that name again after {milliseconds} ms");
    assert!(
        milliseconds <= 1500,
        "{milliseconds} ms: {}",
        agent.stderr()
    );
    let in_place = "
named=$(stat -Lc %i /run/netns/selvedge)
for daemon in mgmtd zebra staticd bfdd bgpd; do
  [ $(pidof $daemon | wc -w) = 1 ] && [ $(stat -Lc %i /proc/$(pidof $daemon)/ns/net) = $named ]
done";
    let moved = Fabric::eventually(PATIENCE, || node.script(in_place).ok());
    moved.with_context(|| format!("FRR is elsewhere: {}", agent.stderr()))?;
    node.script("nsenter --net=/proc/$(pidof sleep)/ns/net ip link set eth1 netns 1")?;
    is_at(&node, &good).with_context(|| agent.stderr())?;
    drop(keeper);
    end(&node, &agent)
}

/// The paragraph of the docs that lists what the agent needs.
fn privileges() -> anyhow::Result<&'static str> {
    let (_, after) = DOCS
        .split_once("## Privileges")
        .context("no such heading")?;
    let (section, _) = after.split_once("\n## ").context("no next heading")?;
    Ok(section)
}

/// The words in backquotes of which every letter passes.
fn words(text: &str, is_part: impl Fn(char) -> bool) -> Vec<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|word| word.chars().all(&is_part)).collect()
}

#[test]
fn the_capabilities_of_the_docs_are_enough_to_configure_a_node_and_give_it_back()
-> anyhow::Result<()> {
    let section = privileges()?;
    let names = words(section, |it| it.is_ascii_uppercase() || it == '_');
    assert!(names.contains(&"NET_ADMIN"), "{names:?}");
    let names: Vec<String> = names
        .iter()
        .map(|it| format!("+{}", it.to_lowercase()))
        .collect();
    let bounding = format!("--bounding-set=-all,{}", names.join(","));
    let node = Node::start()?;
    let space = node.fabric.at(NODE)?;
    let limited = |config: &Value| -> anyhow::Result<String> {
        space.write("/run/limited.json", &config.to_string())?;
        let agent = ["/share/selvedge", "agent", "--config", "/run/limited.json"];
        let command = [&["setpriv", &bounding, "--inh-caps=-all"], &agent[..]].concat();
        Ok(space.run(&command)?)
    };
    let mut good = plugged(&node.fabric, &[])?;
    good["spec"]["health"]["icmp"] = json!([{"host": "127.0.0.1"}]);
    let mut other_as = good.clone();
    other_as["spec"]["underlay"]["asn"] = 64777.into();
    for wanted in [&good, &other_as, &good, &nothing()] {
        limited(wanted)?;
        let again = limited(wanted)?;
        assert_eq!(again.trim(), "nothing to do");
    }
    // Without one of them it is not.
    node.apply(&config(&[])?)?.ok()?;
    let without = bounding.replace(",+net_admin", "");
    let refused = space.output(
        &["setpriv", &without, "/share/selvedge", "agent", "cleanup"],
        "",
    )?;
    assert_ne!(refused.status, 0, "{}", refused.stdout);
    Ok(())
}

#[test]
fn the_directories_of_the_docs_are_those_that_the_pod_has_from_the_host() -> anyhow::Result<()> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(MANIFEST)?;
    let pod = objects
        .iter()
        .find(|object| object["kind"] == "DaemonSet")
        .and_then(|object| object.pointer("/spec/template/spec"))
        .context("no DaemonSet")?;
    assert_eq!(
        (&pod["hostNetwork"], &pod["hostPID"]),
        (&true.into(), &true.into())
    );
    let volumes = pod["volumes"].as_array().context("no volumes")?;
    let mut mounted: Vec<&str> = volumes
        .iter()
        .filter_map(|volume| volume.pointer("/hostPath/path")?.as_str())
        .collect();
    let (_, of_pod) = privileges()?.split_once("In a pod:").context("no pod")?;
    let (of_pod, _) = of_pod.split_once("\n\n").context("no end")?;
    let mut listed = words(of_pod, |it| it == '/' || it.is_ascii_lowercase());
    listed.retain(|word| word.starts_with('/'));
    mounted.sort_unstable();
    listed.sort_unstable();
    assert_eq!(listed, mounted);
    Ok(())
}
