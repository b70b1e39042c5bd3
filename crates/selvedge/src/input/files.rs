//! The files that hold manifests, and their bytes.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

/// The most bytes that are read from one place. A device such as `/dev/zero` has no end.
const MOST: u64 = 1 << 30;

/// The bytes of a file.
pub(super) fn bytes_of(file: &Path) -> anyhow::Result<Vec<u8>> {
    let failed = || format!("failed to read {}", file.display());
    bytes(fs::File::open(file).with_context(failed)?, MOST).with_context(failed)
}

/// What standard input has.
pub(super) fn standard_input() -> anyhow::Result<Vec<u8>> {
    bytes(std::io::stdin(), MOST).context("failed to read standard input")
}

fn bytes(from: impl Read, most: u64) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes)?;
    anyhow::ensure!(
        bytes.len() as u64 <= most,
        "it is larger than {} MiB",
        most >> 20
    );
    Ok(bytes)
}

/// The manifests below a path, in order of their names.
pub(crate) fn files(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    Files::default().below(path)
}

/// Files that were found. Each is found once, under whatever names and through whatever links it is there.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// By their path without links: which of the paths that were given leads there first.
    known: BTreeMap<PathBuf, usize>,
    /// How many paths were given.
    given: usize,
    /// Directories below the path that is given now.
    directories: BTreeSet<PathBuf>,
    /// Files to which another path has led before.
    pub(super) again: Vec<PathBuf>,
}

impl Files {
    /// The manifests below a path that no path before it has led to, in order of their names.
    pub(super) fn below(&mut self, path: &Path) -> anyhow::Result<Vec<PathBuf>> {
        let text = path.to_string_lossy();
        anyhow::ensure!(
            !text.starts_with("https://") && !text.starts_with("http://"),
            "{text} is not a file; pass what it has to -f - instead, such as with curl"
        );
        self.given += 1;
        self.directories.clear();
        let mut found = Vec::new();
        self.walk(path, &mut found)?;
        Ok(found)
    }

    fn walk(&mut self, path: &Path, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
        let kind =
            fs::metadata(path).with_context(|| format!("failed to read {}", path.display()))?;
        // A pipe has no path without links.
        let place = fs::canonicalize(path).ok();
        if !kind.is_dir() {
            if place.is_none_or(|place| self.is_new(place, path)) {
                found.push(path.to_owned());
            }
            return Ok(());
        }
        // A link may lead back to a directory that it is in.
        if place.is_some_and(|place| !self.directories.insert(place)) {
            return Ok(());
        }
        let failed = || format!("failed to list {}", path.display());
        let mut entries = Vec::new();
        for entry in fs::read_dir(path).with_context(failed)? {
            entries.push(entry.with_context(failed)?.path());
        }
        entries.sort();
        for entry in entries {
            let is_manifest = entry
                .extension()
                .is_some_and(|end| end == "yaml" || end == "yml" || end == "json");
            if entry.is_dir() || is_manifest {
                self.walk(&entry, found)?;
            }
        }
        Ok(())
    }

    fn is_new(&mut self, place: PathBuf, file: &Path) -> bool {
        match self.known.entry(place) {
            Entry::Vacant(place) => {
                place.insert(self.given);
                true
            }
            Entry::Occupied(first) => {
                if *first.get() != self.given {
                    self.again.push(file.to_owned());
                }
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_read_up_to_a_limit() {
        let error = bytes(std::io::repeat(0), 2 << 20).unwrap_err().to_string();
        assert_eq!(error, "it is larger than 2 MiB");
        assert_eq!(bytes(&b"kind: Node"[..], 10).unwrap(), b"kind: Node");
    }

    #[test]
    fn a_link_to_a_directory_around_it_is_followed_once() {
        let place = tempfile::tempdir().unwrap();
        let (inner, file) = (place.path().join("inner"), place.path().join("a.yaml"));
        fs::create_dir(&inner).unwrap();
        fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink("..", inner.join("outer")).unwrap();
        std::os::unix::fs::symlink("../a.yaml", inner.join("b.yaml")).unwrap();
        let mut files = Files::default();
        assert_eq!(files.below(place.path()).unwrap(), [file]);
        assert!(files.below(place.path()).unwrap().is_empty());
    }

    #[test]
    fn a_file_to_which_two_paths_lead_is_found_once_and_named() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("a.yaml");
        fs::write(&file, "").unwrap();
        let mut files = Files::default();
        assert_eq!(
            files.below(place.path()).unwrap(),
            std::slice::from_ref(&file)
        );
        assert!(files.again.is_empty());
        assert!(files.below(&file).unwrap().is_empty());
        assert!(files.below(place.path()).unwrap().is_empty());
        assert_eq!(files.again, [file.clone(), file]);
    }
}
