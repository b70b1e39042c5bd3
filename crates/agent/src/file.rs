//! Files that only root can read, replaced as a whole.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

/// A file or directory that could not be used.
#[derive(Debug, thiserror::Error)]
#[error("failed to {operation} {}", path.display())]
pub struct Error {
    /// What was attempted.
    operation: &'static str,
    /// The file or directory.
    path: PathBuf,
    /// The error of the system.
    #[source]
    source: io::Error,
}

/// Turns an error of the system into one that names the operation and the file.
pub(crate) fn failed(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error {
        operation,
        path,
        source,
    }
}

/// Reads a file; `None` if it does not exist.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(failed("read", path)(source)),
    }
}

/// Replaces a file: temporary file, fsync, rename, fsync of the directory, which is made if it is missing. When this
/// returns, the new content is on disk; when it fails, the old or the new content is.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let directory = path.parent().unwrap_or_else(|| Path::new("/"));
    let new = path.with_extension("new");
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(failed("make", directory))?;
    // An older file may have other rights; a new one has these from its first byte.
    remove(&new)?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)
        .map_err(failed("create", &new))?;
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .map_err(failed("write", &new))?;
    fs::rename(&new, path).map_err(failed("replace", path))?;
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(failed("sync", directory))
}

/// Removes a file, if it is there.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path)(error)),
        _ => Ok(()),
    }
}
