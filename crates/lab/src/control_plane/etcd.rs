//! The store beneath API servers.

use std::time::Duration;

use tempfile::TempDir;

use super::Error;
use super::start::free_address;
use crate::namespace::Namespace;
use crate::parts::Kubernetes;
use crate::process::Daemon;
use crate::scratch;

/// One etcd that may carry several API servers, each under a prefix of its own.
#[derive(Debug)]
pub struct Etcd {
    daemon: Daemon,
    url: String,
    // Removed after the daemon has been stopped.
    _folder: TempDir,
}

impl Etcd {
    /// Starts one on loopback, of this machine or of a namespace. What it stores may be lost in a crash of the machine.
    pub fn start(kubernetes: &Kubernetes, namespace: Option<&Namespace>) -> Result<Self, Error> {
        let folder = scratch::folder("etcd").map_err(|source| Error::File {
            what: "create a folder in",
            path: std::env::temp_dir(),
            source,
        })?;
        let (clients, peers) = match namespace {
            Some(_) => (
                "http://127.0.0.1:2379".to_owned(),
                "http://127.0.0.1:2380".to_owned(),
            ),
            None => (
                format!("http://{}", free_address()?),
                format!("http://{}", free_address()?),
            ),
        };
        let mut argv: Vec<String> = namespace.map(|ns| ns.prefix().into()).unwrap_or_default();
        argv.push(kubernetes.program("etcd").display().to_string());
        for (flag, value) in [
            ("data-dir", folder.path().join("data").display().to_string()),
            ("listen-client-urls", clients.clone()),
            ("advertise-client-urls", clients.clone()),
            ("listen-peer-urls", peers.clone()),
            ("initial-advertise-peer-urls", peers.clone()),
            ("initial-cluster", format!("default={peers}")),
            ("log-level", "error".to_owned()),
            // Four times the default: every version of an object that a large cluster has written lately is kept.
            ("quota-backend-bytes", (8_u64 << 30).to_string()),
        ] {
            argv.push(format!("--{flag}={value}"));
        }
        argv.push("--unsafe-no-fsync".to_owned());
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        let daemon = Daemon::start(
            &argv,
            &folder.path().join("etcd.log"),
            Duration::from_secs(2),
        )
        .map_err(|source| Error::Step {
            step: "start etcd",
            source,
        })?;
        Ok(Self {
            daemon,
            url: clients,
            _folder: folder,
        })
    }

    /// Where API servers find it.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn pid(&self) -> u32 {
        self.daemon.pid()
    }
}
