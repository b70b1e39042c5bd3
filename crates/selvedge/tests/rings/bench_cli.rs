//! The measurement behind `cargo xtask bench cli`: time and peak memory of each command on clusters of three sizes.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;
use worlds::{benchmark, racks::Names};

use crate::support::{program, progress};

/// Groups of 50 nodes: 300, 2,500 and 10,000 nodes.
const SIZES: [u32; 3] = [6, 50, 200];
/// Peak memory that a command may take at full size.
const MEMORY: u64 = 256 << 20;

/// A command with its exit code, and the time that it may take on the smallest and on the other worlds.
struct Case {
    line: &'static str,
    code: i32,
    small: Duration,
    large: Duration,
}

impl Case {
    /// A command that a user waits for.
    const fn new(line: &'static str) -> Self {
        Self {
            line,
            code: 0,
            small: Duration::from_millis(200),
            large: Duration::from_millis(500),
        }
    }

    /// The same with another exit code.
    const fn ending_with(self, code: i32) -> Self {
        Self { code, ..self }
    }

    /// The same with another time on large worlds.
    const fn large(self, milliseconds: u64) -> Self {
        Self {
            large: Duration::from_millis(milliseconds),
            ..self
        }
    }

    /// The same with another time on the smallest world.
    const fn small(self, milliseconds: u64) -> Self {
        Self {
            small: Duration::from_millis(milliseconds),
            ..self
        }
    }

    fn budget(&self, groups: u32) -> Duration {
        if Some(&groups) == SIZES.first() {
            self.small
        } else {
            self.large
        }
    }
}

/// The last two write the whole config of every node, so their time grows with the output.
const CASES: [Case; 12] = [
    Case::new("validate -f world.yaml"),
    Case::new("validate -f world.json"),
    Case::new("compile -f world.yaml"),
    Case::new("plan -f world.yaml --to changed.yaml").large(1000),
    Case::new("explain -f world.yaml Destination/v0"),
    // There is no such VLAN, which is exit code 1.
    Case::new("why-not -f world.yaml vlan 999").ending_with(1),
    Case::new("reach -f world.yaml"),
    Case::new("where -f world.yaml vlan 3"),
    Case::new("ipam -f world.yaml"),
    Case::new("render -f world.yaml --node node-0-0"),
    Case::new("compile -f world.yaml --what nodes -o json")
        .small(1000)
        .large(10_000),
    Case::new("render -f world.yaml --all -d rendered")
        .small(2000)
        .large(60_000),
];

/// Commands on the world of the screens in `tests/screens`: 300 nodes in six racks.
const OF_RACKS: [Case; 3] = [
    Case::new("validate -f world.yaml"),
    Case::new("plan -f world.yaml --to changed.yaml"),
    Case::new("explain -f world.yaml Destination/billing-backbone"),
];

#[test]
fn bench_cli() -> anyhow::Result<()> {
    progress("nodes      time       peak       budget     command");
    let mut missed = Vec::new();
    let objects = worlds::racks::racks(6, 50, Names::Numbered).into_iter();
    let racks = objects.flat_map(|(_, objects)| objects).collect();
    measure("300, racks", racks, &OF_RACKS, SIZES[0], &mut missed)?;
    for groups in SIZES {
        let nodes = (groups * benchmark::NODES_PER_GROUP).to_string();
        let world = benchmark::intents(groups);
        measure(&nodes, world, &CASES, groups, &mut missed)?;
    }
    assert!(missed.is_empty(), "over budget: {}", missed.join(", "));
    Ok(())
}

/// Measures commands on one world; adds those over their budget to `missed`.
fn measure(
    nodes: &str,
    world: Vec<Value>,
    cases: &[Case],
    groups: u32,
    missed: &mut Vec<String>,
) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    write(directory.path(), "world", &world)?;
    let mut changed = world;
    for object in &mut changed {
        if object["kind"] == "Layer2Attachment" && object["metadata"]["name"] == "n0" {
            object["spec"]["mtu"] = 9000.into();
        }
        if object["kind"] == "Underlay" {
            object["spec"]["asn"] = 64_515.into();
        }
    }
    write(directory.path(), "changed", &changed)?;
    for case in cases {
        let (took, memory) = measured(directory.path(), case)?;
        let budget = case.budget(groups);
        progress(&format!(
            "{nodes:<10} {:>7.3} s {:>6} MiB {:>7.3} s  selvedge {}",
            took.as_secs_f64(),
            memory >> 20,
            budget.as_secs_f64(),
            case.line,
        ));
        if took > budget || memory > MEMORY {
            missed.push(format!("{} at {nodes} nodes", case.line));
        }
    }
    Ok(())
}

#[test]
fn bench_cli_fails_with_a_failing_command() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let error = measured(directory.path(), &Case::new("validate -f missing.yaml"));
    let error = error.expect_err("there is no such file").to_string();
    assert!(error.contains("missing.yaml"), "{error}");
    Ok(())
}

/// Writes a world as YAML and as JSON.
fn write(directory: &Path, name: &str, objects: &[Value]) -> anyhow::Result<()> {
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n");
        text.push_str(serde_saphyr::to_string(object)?.trim_end());
        text.push('\n');
    }
    fs::write(directory.join(format!("{name}.yaml")), text)?;
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": objects});
    fs::write(
        directory.join(format!("{name}.json")),
        serde_json::to_vec_pretty(&list)?,
    )?;
    Ok(())
}

/// Runs a command, the best of three, and gives its time and its peak memory. One that fails is an error.
fn measured(directory: &Path, case: &Case) -> anyhow::Result<(Duration, u64)> {
    let mut best = Duration::MAX;
    let mut peak = 0;
    let messages = directory.join("messages");
    for _ in 0..3 {
        let start = Instant::now();
        let mut child = Command::new(program())
            .args(case.line.split_whitespace())
            .current_dir(directory)
            .stdout(Stdio::null())
            .stderr(fs::File::create(&messages)?)
            .spawn()?;
        let status = format!("/proc/{}/status", child.id());
        // The highest value so far is kept by the kernel: what is missed is the last moment only.
        let ended = loop {
            if let Some(ended) = child.try_wait()? {
                break ended;
            }
            let text = fs::read_to_string(&status).unwrap_or_default();
            peak = peak.max(high_water(&text));
            std::thread::sleep(Duration::from_millis(1));
        };
        best = best.min(start.elapsed());
        anyhow::ensure!(
            ended.code() == Some(case.code),
            "selvedge {} ended with {ended}:\n{}",
            case.line,
            fs::read_to_string(&messages)?
        );
    }
    Ok((best, peak))
}

fn high_water(status: &str) -> u64 {
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() << 10
}
