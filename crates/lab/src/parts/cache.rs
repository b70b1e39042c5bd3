//! The folder that keeps what took long to make.
//!
//! An entry is named after the hash of what makes it, is made beside its place and then renamed into it: an entry that
//! exists is whole. A lock file keeps two processes from making the same thing at once.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// What can go wrong with the cache itself.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no home to put the cache in.
    #[error("no cache directory: set HOME or XDG_CACHE_HOME")]
    NoHome,
    /// The file system refused.
    #[error("failed to {what} {}", path.display())]
    File {
        /// The operation.
        what: &'static str,
        /// Its object.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// The folder `selvedge` in the user's cache directory.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// `$XDG_CACHE_HOME/selvedge`, or `~/.cache/selvedge`.
    pub fn of_user() -> Result<Self, Error> {
        let set = |name| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let base = set("XDG_CACHE_HOME")
            .or_else(|| set("HOME").map(|home| home.join(".cache")))
            .ok_or(Error::NoHome)?;
        Ok(Self {
            root: base.join("selvedge"),
        })
    }

    /// The entry `name` that `recipe` makes; `make` fills the folder that it is given, if the entry is not there yet.
    ///
    /// `make` gets the folder to fill and the place where it will be in the end, for what has to know its own path.
    pub(super) fn entry<E: From<Error>>(
        &self,
        name: &str,
        recipe: &[&str],
        make: impl FnOnce(&Path, &Path) -> Result<(), E>,
    ) -> Result<PathBuf, E> {
        let mut hash = Sha256::new();
        for part in recipe {
            hash.update(part.len().to_be_bytes());
            hash.update(part.as_bytes());
        }
        let digest = hash
            .finalize()
            .iter()
            .take(6)
            .fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        let digest = format!("{digest:012x}");
        let place = self.root.join(format!("{name}-{digest}"));
        if place.is_dir() {
            return Ok(place);
        }
        let file = |what, path: &Path| {
            let path = path.to_owned();
            move |source| Error::File { what, path, source }
        };
        fs::create_dir_all(&self.root).map_err(file("create", &self.root))?;
        let lock_path = self.root.join(format!("{name}.lock"));
        let lock = File::create(&lock_path).map_err(file("create", &lock_path))?;
        lock.lock().map_err(file("lock", &lock_path))?;
        if place.is_dir() {
            return Ok(place);
        }
        let work = self.root.join(format!("{name}-{digest}.part"));
        if work.exists() {
            fs::remove_dir_all(&work).map_err(file("remove the unfinished", &work))?;
        }
        fs::create_dir(&work).map_err(file("create", &work))?;
        make(&work, &place)?;
        fs::rename(&work, &place).map_err(file("rename into place", &work))?;
        Ok(place)
    }
}
