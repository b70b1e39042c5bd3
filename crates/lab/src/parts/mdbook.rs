//! The program that renders the documentation as a book, built from crates.io.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cache::{self, Cache};
use crate::Progress;
use crate::process::{self, run};

/// The version that is built. Its dependencies are those of its own lock file.
const VERSION: &str = "0.5.4";
/// What the program is built with: no server, no file watcher, no search index, no optimisation. That takes a tenth of the time.
const OPTIONS: [&str; 4] = ["--locked", "--no-default-features", "--profile", "dev"];

/// What can go wrong when the program is built.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The cache directory cannot be used.
    #[error(transparent)]
    Cache(#[from] cache::Error),
    /// The build failed.
    #[error("failed to build mdbook {VERSION}; cargo needs crates.io for this")]
    Build(#[source] process::Error),
    /// Files of the build cannot be removed.
    #[error("failed to remove {}", path.display())]
    Remove {
        /// The directory.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: std::io::Error,
    },
}

/// mdbook, in the cache directory of the user.
#[derive(Debug)]
pub struct Mdbook {
    program: PathBuf,
}

impl Mdbook {
    /// Builds the program, if it is not in the cache yet.
    pub fn prepare(progress: Progress<'_>) -> Result<Self, Error> {
        let recipe = [&[VERSION][..], &OPTIONS].concat();
        let place = Cache::of_user()?.entry("mdbook", &recipe, |work, _| {
            progress(&format!(
                "building mdbook {VERSION} from crates.io: it renders the documentation (about a minute)"
            ));
            build(work)
        })?;
        let program = place.join("bin/mdbook");
        Ok(Self { program })
    }

    /// Where the program is.
    pub fn program(&self) -> &Path {
        &self.program
    }
}

fn build(work: &Path) -> Result<(), Error> {
    let target = work.join("target");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .arg("install")
        .arg(format!("mdbook@{VERSION}"))
        .args(OPTIONS)
        .arg("--root")
        .arg(work)
        .arg("--target-dir")
        .arg(&target)
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_INCREMENTAL", "0");
    run(&mut command).map_err(Error::Build)?;
    std::fs::remove_dir_all(&target).map_err(|source| Error::Remove {
        path: target,
        source,
    })
}
