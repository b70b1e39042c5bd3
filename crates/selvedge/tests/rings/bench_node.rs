//! `cargo xtask bench node`: what a node costs and how fast it is whole again, beside the budgets.

use std::time::Duration;

use crate::{
    ring4_safety::{NODE, repair_time, taken_back},
    ring6_restarts::{World, config},
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
