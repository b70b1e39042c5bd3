//! One agent on a node: a lock that daemon, command line and pods share.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::FlockOperation;

/// Why this agent may not work on the node.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another agent works on this node.
    #[error("another agent runs on this node (process {holder}, lock {})", path.display())]
    Held {
        /// Its process id, as it wrote it.
        holder: String,
        /// The lock.
        path: PathBuf,
    },
    /// The lock could not be used.
    #[error("failed to lock {}", path.display())]
    Io {
        /// The lock.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

/// The lock, held until this value is dropped or the process ends, however that comes.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock in this directory, or says who has it.
    pub(crate) fn take(directory: &Path) -> Result<Self, Error> {
        let path = directory.join("agent.lock");
        let failed = |source| Error::Io {
            path: path.clone(),
            source,
        };
        DirBuilder::new()
            .recursive(true)
            // FRR's user must reach the log of commands in it.
            .mode(0o711)
            .create(directory)
            .map_err(failed)?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut holder = String::new();
                // Who it is helps, but is not needed.
                let _length = file.read_to_string(&mut holder).unwrap_or_default();
                let holder = holder.trim().to_owned();
                return Err(Error::Held { holder, path });
            }
            Err(error) => return Err(failed(error.into())),
        }
        file.set_len(0)
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(failed)?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_agent_is_refused_and_told_who_the_first_is() {
        let directory = tempfile::TempDir::new().unwrap();
        let runtime = directory.path().join("selvedge");
        let first = Lock::take(&runtime).unwrap();
        let error = Lock::take(&runtime).unwrap_err().to_string();
        let own = format!("process {}", std::process::id());
        assert!(error.contains(&own), "{error}");
        drop(first);
        Lock::take(&runtime).unwrap();
    }
}
