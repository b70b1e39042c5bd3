//! The measurement behind `cargo xtask bench cli`: time and peak memory of each command on clusters of three sizes.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;
use worlds::benchmark;

use crate::support::{program, progress};

/// Groups of 50 nodes: 300, 2,500 and 10,000 nodes.
const SIZES: [u32; 3] = [6, 50, 200];
/// Peak memory that a command may take at full size.
const MEMORY: u64 = 256 << 20;

/// The commands with the time that each may take at full size.
const COMMANDS: [(&str, Duration); 10] = [
    ("validate -f world.yaml", Duration::from_millis(500)),
    ("validate -f world.json", Duration::from_millis(500)),
    ("compile -f world.yaml", Duration::from_millis(500)),
    (
        "compile -f world.yaml --what nodes -o json",
        Duration::from_secs(10),
    ),
    (
        "render -f world.yaml --node node-0-0",
        Duration::from_millis(500),
    ),
    (
        "plan -f world.yaml --to changed.yaml",
        Duration::from_secs(1),
    ),
    (
        "explain -f world.yaml Destination/v0",
        Duration::from_millis(500),
    ),
    ("why-not -f world.yaml vlan 999", Duration::from_millis(500)),
    ("reach -f world.yaml", Duration::from_millis(500)),
    ("where -f world.yaml vlan 3", Duration::from_millis(500)),
];

#[test]
fn bench_cli() -> anyhow::Result<()> {
    progress("nodes   time       peak       budget     command");
    let mut missed = Vec::new();
    for groups in SIZES {
        let directory = tempfile::tempdir()?;
        let world = benchmark::intents(groups);
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
        let nodes = groups * benchmark::NODES_PER_GROUP;
        for (line, budget) in COMMANDS {
            let (took, memory) = measured(directory.path(), line)?;
            progress(&format!(
                "{nodes:<7} {:>7.3} s {:>6} MiB {:>7.3} s  selvedge {line}",
                took.as_secs_f64(),
                memory >> 20,
                budget.as_secs_f64(),
            ));
            if took > budget || memory > MEMORY {
                missed.push(format!("{line} at {nodes} nodes"));
            }
        }
    }
    assert!(missed.is_empty(), "over budget: {}", missed.join(", "));
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

/// Runs a command, the best of three, and gives its time and its peak memory.
fn measured(directory: &Path, line: &str) -> anyhow::Result<(Duration, u64)> {
    let mut best = Duration::MAX;
    let mut peak = 0;
    for _ in 0..3 {
        let start = Instant::now();
        let mut child = Command::new(program())
            .args(line.split_whitespace())
            .current_dir(directory)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let status = format!("/proc/{}/status", child.id());
        // The highest value so far is kept by the kernel: what is missed is the last moment only.
        while child.try_wait()?.is_none() {
            let text = fs::read_to_string(&status).unwrap_or_default();
            peak = peak.max(high_water(&text));
            std::thread::sleep(Duration::from_millis(1));
        }
        best = best.min(start.elapsed());
    }
    Ok((best, peak))
}

fn high_water(status: &str) -> u64 {
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() << 10
}
