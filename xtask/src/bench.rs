//! `cargo xtask bench`: measurements, each a table. A missed budget is an error.

use std::{path::Path, process::Command};

use anyhow::Context as _;

/// The benchmarks: two of the compiler, one of many VNIs, one of the router of the host, one of the command line, one of a node, one of rollouts.
const NAMES: [&str; 7] = ["compile", "pass", OVERLAY, FRR, CLI, NODE, ROLLOUT];
const OVERLAY: &str = "overlay";
const FRR: &str = "frr";
const CLI: &str = "cli";
const NODE: &str = "node";
const ROLLOUT: &str = "rollout";

/// Runs a benchmark by its name; further arguments are the benchmark's.
pub(crate) fn run(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<()> {
    let known = NAMES.join(", ");
    let name = arguments
        .next()
        .with_context(|| format!("name a benchmark; there are: {known}"))?;
    anyhow::ensure!(
        NAMES.contains(&name.as_str()),
        "no benchmark {name}; there are: {known}"
    );
    if name == CLI {
        return with_release("bench-cli", "bench_cli");
    }
    if name == NODE {
        return with_release("bench-node", "bench_node");
    }
    if name == ROLLOUT {
        return rollout();
    }
    let package = match name.as_str() {
        OVERLAY | FRR => "selvedge",
        _ => "selvedge-compiler",
    };
    let status = Command::new(env!("CARGO"))
        .args(["bench", "--quiet", "--package", package])
        .args(["--bench", &name, "--"])
        .args(arguments)
        .status()
        .context("failed to run cargo")?;
    anyhow::ensure!(
        status.success(),
        "the benchmark failed, or a budget is missed"
    );
    if name == FRR {
        // The other part: a live FRR, with a peer that counts.
        return with_release("bench-frr", "bench_frr_live");
    }
    Ok(())
}

/// Runs cargo, with another build of the program under test if one is given.
fn cargo(arguments: &[&str], program: Option<&Path>) -> anyhow::Result<()> {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments);
    if let Some(program) = program {
        command.env("SELVEDGE_PROGRAM", program);
    }
    let status = command.status().context("failed to run cargo")?;
    anyhow::ensure!(
        status.success(),
        "the benchmark failed, or a budget is missed"
    );
    Ok(())
}

/// Runs a measurement of the rings with a release build of the program: of a node in a guest, or of the command line.
fn with_release(feature: &str, test: &str) -> anyhow::Result<()> {
    let build = [
        "build",
        "--quiet",
        "--release",
        "--package",
        "selvedge",
        "--bin",
        "selvedge",
    ];
    cargo(&build, None)?;
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/selvedge");
    let measure = [
        "test",
        "--quiet",
        "--package",
        "selvedge",
        "--features",
        feature,
        "--test",
        "rings",
        "--",
        "--nocapture",
        test,
    ];
    cargo(&measure, Some(&program))
}

/// Measures rollouts over simulated nodes. The simulation is a release build too: it reads every config.
fn rollout() -> anyhow::Result<()> {
    let measure = [
        "test",
        "--quiet",
        "--release",
        "--package",
        "selvedge",
        "--features",
        "bench-rollout",
        "--test",
        "rings",
        "--",
        "--nocapture",
        "--test-threads=1",
        "bench_rollout",
    ];
    cargo(&measure, None)
}
