//! `cargo xtask bench`: measurements, each a table.

use std::process::Command;

use anyhow::Context as _;

/// Runs a benchmark by its name.
pub(crate) fn run(name: Option<&str>) -> anyhow::Result<()> {
    let package = match name {
        Some("compile") => "selvedge-compiler",
        Some(unknown) => anyhow::bail!("no benchmark {unknown}; there is: compile"),
        None => anyhow::bail!("name a benchmark; there is: compile"),
    };
    let status = Command::new(env!("CARGO"))
        .args([
            "bench",
            "--quiet",
            "--package",
            package,
            "--bench",
            "compile",
        ])
        .status()
        .context("failed to run cargo")?;
    anyhow::ensure!(status.success(), "the benchmark failed");
    Ok(())
}
