//! `cargo xtask bench`: measurements, each a table. A missed budget is an error.

use std::process::Command;

use anyhow::Context as _;

/// The benchmarks of the compiler.
const NAMES: [&str; 2] = ["compile", "pass"];

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
    let status = Command::new(env!("CARGO"))
        .args(["bench", "--quiet", "--package", "selvedge-compiler"])
        .args(["--bench", &name, "--"])
        .args(arguments)
        .status()
        .context("failed to run cargo")?;
    anyhow::ensure!(
        status.success(),
        "the benchmark failed, or a budget is missed"
    );
    Ok(())
}
