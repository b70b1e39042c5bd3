//! `cargo xtask bench node`: what a node costs and how fast it is whole again, beside the budgets.

use std::time::Duration;

use compiler::{Snapshot, compile};
use serde_json::{Value, json};
use worlds::benchmark::overlay;

use crate::{
    ring4::Node,
    ring4_safety::{NODE, repair_time, taken_back},
    ring6_restarts::{World, config},
    support::program,
};

/// A line of the table: what, how much, the budget, and whether it is kept.
struct Line {
    what: &'static str,
    seen: f64,
    unit: &'static str,
    budget: Option<f64>,
}

impl Line {
    fn new(what: &'static str, seen: f64, unit: &'static str, budget: Option<f64>) -> Self {
        Self {
            what,
            seen,
            unit,
            budget,
        }
    }

    fn is_kept(&self) -> bool {
        self.budget.is_none_or(|budget| self.seen <= budget)
    }

    fn print(&self) {
        let Self {
            what, seen, unit, ..
        } = self;
        let budget = match self.budget {
            Some(budget) if self.is_kept() => format!("{budget} {unit}: kept"),
            Some(budget) => format!("{budget} {unit}: MISSED"),
            None => "–".to_owned(),
        };
        eprintln!("| {what} | {seen:.2} {unit} | {budget} |");
    }
}

fn drift(world: &World) -> anyhow::Result<Vec<Line>> {
    let seconds = |breaking: &str, whole: &str| {
        let milliseconds = repair_time(&world.fabric, breaking, whole)?;
        anyhow::Ok(Duration::from_millis(milliseconds).as_secs_f64())
    };
    let link = seconds(
        "ip -n selvedge link delete vx.10234",
        "ip -n selvedge link show vx.10234",
    )?;
    let address = seconds(
        "ip -n selvedge address flush dev lo scope global",
        "ip -n selvedge address show dev lo | grep 100.65.0",
    )?;
    let line = seconds(
        "vtysh -N router -c 'configure terminal' -c 'no route-map fabric-out'",
        "vtysh -N router -c 'show running-config' | grep -q 'route-map fabric-out permit 65535'",
    )?;
    Ok(vec![
        Line::new("drift: a deleted link is back", link, "s", Some(1.0)),
        Line::new("drift: a deleted address is back", address, "s", Some(1.0)),
        Line::new(
            "drift: a deleted route map of FRR is back",
            line,
            "s",
            Some(1.0),
        ),
    ])
}

/// A node with many L3VNIs and as many L2VNIs, and one more of both.
fn many_vnis() -> anyhow::Result<Vec<Line>> {
    let node = Node::start()?;
    node.fabric.hand_in(&program())?;
    let mut lines = Vec::new();
    for (count, all, more) in [
        (50, "50 L3VNIs and 50 L2VNIs come up", "… one more of both"),
        (
            500,
            "500 L3VNIs and 500 L2VNIs come up",
            "… one more of both, with 500",
        ),
    ] {
        let config = vnis(count, None)?;
        let first = timed(&node, &config)?;
        lines.push(Line::new(all, first, "s", None));
        let vrf = timed(&node, &vnis(count + 1, Some(&config))?)?;
        let budget = (count == 500).then_some(2.0);
        lines.push(Line::new(more, vrf, "s", budget));
    }
    Ok(lines)
}

/// The config of the node with so many VNIs, where it runs this one.
fn vnis(count: u32, running: Option<&Value>) -> anyhow::Result<Value> {
    let mut world = overlay::node(count);
    for object in &mut world {
        if object["kind"] == "Node" {
            object["metadata"]["name"] = NODE.into();
        }
    }
    let mut snapshot = Snapshot::default();
    for document in world.iter().chain(running) {
        snapshot.insert(document);
    }
    let compilation = compile(&snapshot);
    let spec = compilation.nodes[NODE].spec(&compilation.revision.fingerprint);
    let mut spec = serde_json::to_value(spec)?;
    spec["health"] = json!({"sessions": false, "confirmDeadline": "300s"});
    Ok(json!({
        "apiVersion": "network.t-caas.telekom.com/v1alpha1", "kind": "NodeNetworkConfig",
        "metadata": {"name": NODE}, "spec": spec,
    }))
}

/// How many seconds an apply takes, until the change is in FRR and the kernel: what it says is printed.
fn timed(node: &Node, config: &Value) -> anyhow::Result<f64> {
    let space = node.fabric.at(NODE)?;
    space.write("/run/config.json", &config.to_string())?;
    let said = space.script(
        "start=$(date +%s%N)
/share/selvedge agent --config /run/config.json > /run/said 2>&1 || { cat /run/said; exit 1; }
echo $(( ($(date +%s%N) - start) / 1000000 ))
cat /run/said",
    )?;
    let (milliseconds, said) = said.split_once('\n').unwrap_or((&said, ""));
    eprintln!("{milliseconds} ms: {}", said.trim());
    Ok(milliseconds.trim().parse::<f64>()? / 1000.0)
}

#[test]
fn bench_node() -> anyhow::Result<()> {
    let world = World::start(false)?;
    let node = world.fabric.at(NODE)?;
    let resident = node.script("awk '/VmRSS/ {print $2}' /proc/$(pidof -s selvedge)/status")?;
    let resident = resident.trim().parse::<f64>()? / 1000.0;
    let mut lines = vec![Line::new(
        "agent, idle, resident memory",
        resident,
        "MB",
        Some(30.0),
    )];
    lines.extend(drift(&world)?);
    for (what, act, budget) in [
        (
            "zebra killed: packets lost for",
            "kill -9 $(pidof zebra)",
            Some(0.0),
        ),
        (
            "bgpd killed: packets lost for",
            "kill -9 $(pidof bgpd)",
            Some(0.0),
        ),
        (
            "agent killed with its control group: packets lost for",
            "echo 1 > /sys/fs/cgroup/agent/cgroup.kill",
            Some(0.0),
        ),
    ] {
        world.whole()?;
        let lost = f64::from(world.lost_by(act)?) / 100.0;
        lines.push(Line::new(what, lost, "s", budget));
    }

    // A config that takes the only session away, with the shortest deadline.
    let mut dead = config(&world.fabric, false)?;
    dead["spec"]["revision"] = "dead".into();
    dead["spec"]["underlay"]["neighbors"][0]["address"] = "192.0.2.99".into();
    dead["spec"]["health"]["confirmDeadline"] = "5s".into();
    let (took, _) = taken_back(&world.fabric, &dead)?;
    lines.push(Line::new(
        "self-rollback with a deadline of 5 s",
        took.as_secs_f64(),
        "s",
        Some(5.0),
    ));

    drop(world);
    lines.extend(many_vnis()?);

    eprintln!("| what | seen | budget |\n|---|--:|---|");
    for line in &lines {
        line.print();
    }
    let missed: Vec<&str> = lines
        .iter()
        .filter(|it| !it.is_kept())
        .map(|it| it.what)
        .collect();
    anyhow::ensure!(missed.is_empty(), "missed: {}", missed.join(", "));
    Ok(())
}
