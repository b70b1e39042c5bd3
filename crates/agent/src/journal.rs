//! The journal: what the node returns to, written before anything is changed.
//!
//! One file, replaced as a whole ([`file::replace`]). Its first line carries the format and the SHA-256 of the rest. It
//! holds passwords, so only root can read it.
//!
//! A second file beside it, `journal.previous`, holds the latest journal without a trial. It is used when the journal itself is
//! damaged, so that a node with a confirmed config always has a config to return to. A third one, in the directory that a reboot
//! empties, is used when the disk has lost both under a running node.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{
    config::{Config, hex},
    file,
};

/// Name and format version in the first line.
const MAGIC: &str = "selvedge-journal 1";

/// How many rejected configs are remembered.
const REJECTED: usize = 32;

/// What is remembered across restarts and reboots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Journal {
    /// The last config that was confirmed by health.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<Arc<Config>>,
    /// The checks that it passed then. A change begins when they pass again: what fails before a change need not work after it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub passed: BTreeSet<String>,
    /// The config that is being tried. Present from before the first change until it is confirmed or taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trying: Option<Arc<Config>>,
    /// Whether the node had objects of Selvedge when the journal was begun, so that without a confirmed config there is
    /// nothing known to return to. A config is then accepted if it is what runs; another is not tried.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
    /// Configs that were rolled back, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<Rejected>,
    /// The value of the retry annotation that was acted on last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried: Option<String>,
}

/// A config that was rolled back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rejected {
    /// Fingerprint of its content.
    pub fingerprint: String,
    /// Why it was rolled back.
    pub reason: String,
}

impl Journal {
    /// Why this config was rolled back, if it was.
    pub fn rejection(&self, fingerprint: &str) -> Option<&str> {
        let found = self
            .rejected
            .iter()
            .find(|one| one.fingerprint == fingerprint);
        found.map(|rejected| rejected.reason.as_str())
    }

    /// Remembers that a config was rolled back.
    pub fn reject(&mut self, rejected: Rejected) {
        self.accept(&rejected.fingerprint);
        self.rejected.push(rejected);
        let excess = self.rejected.len().saturating_sub(REJECTED);
        self.rejected.drain(..excess);
    }

    /// Forgets that a config was rolled back.
    pub fn accept(&mut self, fingerprint: &str) {
        self.rejected.retain(|one| one.fingerprint != fingerprint);
    }
}

/// A journal as it was found, with the boot in which it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The journal.
    pub journal: Journal,
    /// Boot id of the kernel when it was written.
    pub boot_id: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    boot_id: String,
    journal: Journal,
}

/// Why the journal could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory could not be used.
    #[error(transparent)]
    File(#[from] file::Error),
    /// The file is not a journal of a format that this version reads.
    #[error("{} is not a journal in the format {MAGIC:?}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
    },
    /// The content does not match its checksum.
    #[error("{} is damaged: its checksum does not match", path.display())]
    Checksum {
        /// The file.
        path: PathBuf,
    },
    /// The content matches its checksum and still cannot be read.
    #[error("failed to decode {}", path.display())]
    Decode {
        /// The file.
        path: PathBuf,
        /// The error of the decoder.
        #[source]
        source: serde_json::Error,
    },
}

/// The place of the journal on disk.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
    /// A directory that a reboot empties.
    runtime: Option<PathBuf>,
    boot_id: String,
}

impl Store {
    /// A journal in this directory, which is made when it is first written.
    pub fn new(directory: &Path, boot_id: &str) -> Self {
        Self {
            directory: directory.to_owned(),
            runtime: None,
            boot_id: boot_id.to_owned(),
        }
    }

    /// The same, with one more copy in a directory that a reboot empties.
    pub fn with_copy_in(mut self, runtime: &Path) -> Self {
        self.runtime = Some(runtime.to_owned());
        self
    }

    /// The boot id of the running kernel.
    pub fn boot_id() -> Result<String, Error> {
        let path = Path::new("/proc/sys/kernel/random/boot_id");
        let text = fs::read_to_string(path).map_err(file::failed("read", path))?;
        Ok(text.trim().to_owned())
    }

    fn file(&self) -> PathBuf {
        self.directory.join("journal")
    }

    fn previous(&self) -> PathBuf {
        self.directory.join("journal.previous")
    }

    fn aside(&self) -> PathBuf {
        self.directory.join("journal.damaged")
    }

    /// Reads the journal; `None` if it does not exist.
    pub fn load(&self) -> Result<Option<Found>, Error> {
        Self::read(self.file())
    }

    fn running(&self) -> Option<PathBuf> {
        let runtime = self.runtime.as_ref()?;
        Some(runtime.join("journal.running"))
    }

    /// The copies of the latest journal without a trial, the one on disk first: each is read, or why it cannot be.
    pub fn copies(&self) -> impl Iterator<Item = Result<Found, Error>> {
        let paths = [Some(self.previous()), self.running()];
        let found = paths.into_iter().flatten().map(Self::read);
        found.filter_map(Result::transpose)
    }

    fn read(path: PathBuf) -> Result<Option<Found>, Error> {
        let Some(bytes) = file::read(&path)? else {
            return Ok(None);
        };
        let format = || Error::Format { path: path.clone() };
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let (head, rest) = bytes.split_at(end.ok_or_else(format)?);
        let head = std::str::from_utf8(head).map_err(|_not_text| format())?;
        let checksum = head
            .strip_prefix(MAGIC)
            .and_then(|rest| rest.strip_prefix(' '))
            .ok_or_else(format)?;
        let body = rest.strip_prefix(b"\n").unwrap_or_default();
        if hex(&Sha256::digest(body)) != checksum {
            return Err(Error::Checksum { path });
        }
        let Body { boot_id, journal } =
            serde_json::from_slice(body).map_err(|source| Error::Decode { path, source })?;
        Ok(Some(Found { journal, boot_id }))
    }

    /// Replaces the journal. When this returns, it is on disk; when it fails, the old one or the new one is.
    ///
    /// A journal that confirms a config and names no trial is also kept as the copy. The copy is written second: at every
    /// instant one of the two files is intact. While a config is tried, the copy is the state to return to.
    pub fn save(&self, journal: &Journal) -> Result<(), Error> {
        let path = self.file();
        let body = Body {
            boot_id: self.boot_id.clone(),
            journal: journal.clone(),
        };
        let body = serde_json::to_vec(&body).map_err(|source| Error::Decode {
            path: path.clone(),
            source,
        })?;
        let head = format!("{MAGIC} {}\n", hex(&Sha256::digest(&body)));
        let bytes = [head.as_bytes(), &body].concat();
        file::replace(&path, &bytes)?;
        if journal.confirmed.is_some() && journal.trying.is_none() {
            if let Some(Err(error)) = self.running().map(|path| file::replace(&path, &bytes)) {
                // Two others are on disk, or will be.
                tracing::warn!(%error, "a copy of the journal cannot be written");
            }
            file::replace(&self.previous(), &bytes)?;
        }
        Ok(())
    }

    /// Moves a journal aside that cannot be read, so that it can be examined and a new one be begun.
    pub fn set_aside(&self) -> Result<(), Error> {
        let path = self.file();
        Ok(fs::rename(&path, self.aside()).map_err(file::failed("move", &path))?)
    }

    /// Removes the journal, its copies and a damaged one: the node has been given back. The journal is the last: a copy without a
    /// journal is one that was lost.
    pub fn remove(&self) -> Result<(), Error> {
        let on_disk = [self.previous(), self.aside(), self.file()];
        for path in self.running().into_iter().chain(on_disk) {
            file::remove(&path)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
