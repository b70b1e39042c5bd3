//! The store beneath API servers.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use rustix::process::Signal;

use tempfile::TempDir;

use super::Error;
use super::start::free_address;
use crate::namespace::Namespace;
use crate::parts::Kubernetes;
use crate::process::{self, Daemon};
use crate::scratch;

/// One etcd that may carry several API servers, each under a prefix of its own.
#[derive(Debug)]
pub struct Etcd {
    daemon: Daemon,
    url: String,
    // Removed after the daemon has been stopped.
    folder: TempDir,
}

/// What an etcd had stored at some time.
#[derive(Debug)]
pub struct Backup {
    folder: TempDir,
}

impl Etcd {
    /// Starts one on loopback, of this machine or of a namespace. What it stores may be lost in a crash of the machine.
    pub fn start(kubernetes: &Kubernetes, namespace: Option<&Namespace>) -> Result<Self, Error> {
        let folder = new_folder()?;
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
            folder,
        })
    }

    /// Where API servers find it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Copies all that is stored. While that lasts, nothing is written.
    pub(super) fn back_up(&self) -> Result<Backup, Error> {
        let folder = new_folder()?;
        process::signal(self.pid(), Signal::STOP, false);
        let copied = copy(&self.data(), folder.path());
        process::signal(self.pid(), Signal::CONT, false);
        copied?;
        Ok(Backup { folder })
    }

    /// Starts anew with what was stored then.
    pub(super) fn restore(&mut self, backup: &Backup) -> Result<(), Error> {
        self.daemon.stop();
        let data = self.data();
        fs::remove_dir_all(&data).map_err(|source| Error::File {
            what: "remove",
            path: data,
            source,
        })?;
        copy(&backup.folder.path().join("data"), self.folder.path())?;
        self.daemon.start_again().map_err(|source| Error::Step {
            step: "start etcd",
            source,
        })
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(super) fn pid(&self) -> u32 {
        self.daemon.pid()
    }
}

fn new_folder() -> Result<TempDir, Error> {
    scratch::folder("etcd").map_err(|source| Error::File {
        what: "create a folder in",
        path: std::env::temp_dir(),
        source,
    })
}

/// Copies a folder with all that is in it into another folder.
fn copy(folder: &Path, into: &Path) -> Result<(), Error> {
    let mut command = Command::new("cp");
    command.arg("--archive").args([folder, into]);
    process::run(&mut command)
        .map(drop)
        .map_err(|source| Error::Step {
            step: "copy what etcd has stored",
            source,
        })
}
