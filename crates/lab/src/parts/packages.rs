//! Programs that this machine itself must have.

use std::path::PathBuf;
use std::process::Command;

use crate::Progress;
use crate::process::{self, run};

/// A program and the Debian package that brings it.
pub(super) type Needed = (&'static str, &'static str);

/// What can go wrong when programs of this machine are missing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// We may not install packages.
    #[error("missing programs; install the packages as root: apt-get install {packages}")]
    NotRoot {
        /// The packages that bring them.
        packages: String,
    },
    /// The package manager was not content.
    #[error("failed to install {packages}; install them by hand")]
    Install {
        /// The packages.
        packages: String,
        /// What it said.
        #[source]
        source: process::Error,
    },
}

/// Makes sure that programs are there: installs their packages where we are root, and says so.
pub(super) fn ensure(needed: &[Needed], progress: Progress<'_>) -> Result<(), Error> {
    let missing: Vec<_> = needed
        .iter()
        .filter(|(program, _)| find(program).is_none())
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages = missing.join(" ");
    if !rustix::process::geteuid().is_root() {
        return Err(Error::NotRoot { packages });
    }
    progress(&format!("installing packages on this machine: {packages}"));
    let apt = |arguments: &[&str]| {
        run(Command::new("apt-get")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(arguments))
    };
    let mut install = vec!["install", "--yes", "--no-install-recommends"];
    install.extend(missing);
    apt(&install)
        .or_else(|_stale_lists| apt(&["update"]).and_then(|_| apt(&install)))
        .map_err(|source| Error::Install { packages, source })?;
    Ok(())
}

/// Where a program is, looking also where only root's path usually looks.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin"), PathBuf::from("/sbin")])
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}
