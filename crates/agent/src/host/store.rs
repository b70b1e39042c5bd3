//! The last good config of the host's router on disk, with passwords: a node that is rebooted without an API server has its sessions.
//!
//! One file, replaced as a whole ([`file::replace`]), which only root can read. Its first line has the format and the SHA-256 of the rest.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::machine::Stored;
use crate::{config::hex, file};

/// Name and format version in the first line.
const MAGIC: &str = "selvedge-host-router 1";

/// The place of the file.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    path: PathBuf,
    boot_id: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    boot_id: String,
    stored: Stored,
}

impl Store {
    /// The file in this directory; `boot_id` is that of the running kernel.
    pub(crate) fn new(directory: &Path, boot_id: &str) -> Self {
        Self {
            path: directory.join("host-router"),
            boot_id: boot_id.to_owned(),
        }
    }

    /// What is on disk, and whether the machine was rebooted since. A file that cannot be read is like none: the node's config comes
    /// again.
    pub(crate) fn load(&self) -> (Stored, bool) {
        match file::read(&self.path) {
            Ok(None) => (Stored::default(), false),
            Ok(Some(bytes)) => self.parse(&bytes).unwrap_or_else(|| {
                tracing::error!(path = %self.path.display(), "damaged; the host's router waits for the node's config");
                (Stored::default(), false)
            }),
            Err(error) => {
                tracing::error!(%error, "the host's router waits for the node's config");
                (Stored::default(), false)
            }
        }
    }

    fn parse(&self, bytes: &[u8]) -> Option<(Stored, bool)> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let (head, rest) = bytes.split_at(end);
        let checksum = std::str::from_utf8(head).ok()?.strip_prefix(MAGIC)?.trim();
        let body = rest.strip_prefix(b"\n")?;
        if hex(&Sha256::digest(body)) != checksum {
            return None;
        }
        let Body { boot_id, stored } = serde_json::from_slice(body).ok()?;
        Some((stored, boot_id != self.boot_id))
    }

    /// Replaces the file.
    pub(crate) fn save(&self, stored: &Stored) -> Result<(), file::Error> {
        let body = Body {
            boot_id: self.boot_id.clone(),
            stored: stored.clone(),
        };
        // Maps of the contract have text for keys, so this cannot fail.
        let body = serde_json::to_vec(&body).unwrap_or_default();
        let head = format!("{MAGIC} {}\n", hex(&Sha256::digest(&body)));
        file::replace(&self.path, &[head.as_bytes(), &body].concat())
    }

    /// Removes the file: the node has no such router any more.
    pub(crate) fn remove(&self) -> Result<(), file::Error> {
        file::remove(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::PermissionsExt as _, sync::Arc};

    use super::*;
    use crate::{config::ResolvedSecret, host::HostConfig};

    #[test]
    fn what_is_on_disk_is_read_back_and_is_roots_alone_and_damage_is_no_config() {
        let directory = tempfile::TempDir::new().unwrap();
        let store = Store::new(directory.path(), "boot-1");
        assert_eq!(store.load(), (Stored::default(), false));
        let stored = Stored {
            good: Arc::new(HostConfig {
                router: Some(Arc::default()),
                secrets: vec![ResolvedSecret {
                    reference: api::meta::SecretReference {
                        name: Some("peer".to_owned()),
                        namespace: None,
                    },
                    password: "hunter2".to_owned(),
                }],
            }),
            ..Stored::default()
        };
        store.save(&stored).unwrap();
        assert_eq!(store.load(), (stored.clone(), false));
        let later = Store::new(directory.path(), "boot-2");
        assert_eq!(later.load(), (stored, true));
        let path = directory.path().join("host-router");
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.truncate(bytes.len() - 3);
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(store.load(), (Stored::default(), false));
        store.remove().unwrap();
        assert!(!path.exists());
    }
}
