//! Temporary folders that say whose they are.

use std::fs;
use std::io;
use std::path::Path;

use tempfile::TempDir;

const PREFIX: &str = "selvedge-lab-";

/// A new folder, removed when dropped; it carries our process id, so that a later run can remove it if we cannot.
pub(crate) fn folder(what: &str) -> io::Result<TempDir> {
    remove_orphans(&std::env::temp_dir());
    tempfile::Builder::new()
        .prefix(&format!("{PREFIX}{}-{what}-", std::process::id()))
        .tempdir()
}

/// Removes folders of runs that ended without doing so themselves.
fn remove_orphans(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX))
            .and_then(|rest| rest.split('-').next());
        if owner
            .is_some_and(|pid| pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists())
        {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}
