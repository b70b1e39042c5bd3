//! `cargo xtask book`: renders the documentation, with the test that also checks its links.

use std::process::Command;

use anyhow::Context as _;

use crate::output::line;

/// Builds mdbook if needed, renders the book, and prints where it is.
pub(crate) fn run() -> anyhow::Result<()> {
    let status = Command::new(env!("CARGO"))
        .args(["test", "--quiet", "--package", "selvedge", "--test"])
        .args(["rings", "--", "--nocapture", "ring3_book"])
        .status()
        .context("failed to run cargo")?;
    anyhow::ensure!(status.success(), "the book has errors");
    line("the book is in target/book; open target/book/index.html");
    Ok(())
}
