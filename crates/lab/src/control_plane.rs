//! A real control plane: etcd, kube-apiserver, kube-controller-manager, and kube-scheduler where it is asked for.

mod etcd;
mod kubeconfig;
mod start;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

pub use etcd::{Backup, Etcd};
pub use kubeconfig::User;
pub use start::Builder;

use crate::parts::Kubernetes;
use crate::process::{self, Daemon};
use crate::report;

/// What can go wrong with a control plane.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be touched.
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
    /// No free port on loopback.
    #[error("failed to find a free port")]
    FindPort {
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A program could not be started, or a step of the set-up failed.
    #[error("failed to {step}")]
    Step {
        /// The step.
        step: &'static str,
        /// What went wrong.
        #[source]
        source: process::Error,
    },
    /// The API server did not get ready.
    #[error("the API server was not ready after {seconds} s; its last words:\n{log}")]
    NotReady {
        /// How long we waited.
        seconds: u64,
        /// The end of its log.
        log: String,
    },
    /// Others store in the same etcd.
    #[error("other control planes use the same etcd")]
    SharedEtcd,
    /// A user was asked for that the control plane was not started with.
    #[error("the control plane knows no user {name}")]
    UnknownUser {
        /// The name.
        name: String,
    },
}

/// A running control plane; dropping it stops and removes all of it.
#[derive(Debug)]
pub struct ControlPlane {
    // The order matters: controllers, then the API server, then etcd, then the files.
    servers: Vec<Daemon>,
    etcd: Arc<Etcd>,
    folder: TempDir,
    kubectl: PathBuf,
    prefix: Vec<String>,
    url: String,
    users: Vec<User>,
    ready_after: Duration,
}

impl ControlPlane {
    /// A control plane on loopback with an etcd of its own and one user, the administrator.
    pub fn builder(kubernetes: &Kubernetes) -> Builder<'_> {
        Builder::new(kubernetes)
    }

    /// Where the API server is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// How long the start took.
    pub fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// The kubeconfig file of a user; it holds everything needed and may be copied elsewhere.
    pub fn kubeconfig(&self, user: &str) -> Result<PathBuf, Error> {
        let known = self.users.iter().find(|known| known.name == user);
        let known = known.ok_or_else(|| Error::UnknownUser {
            name: user.to_owned(),
        })?;
        Ok(self.folder.path().join(known.file_name()))
    }

    /// Runs kubectl as the administrator.
    pub fn kubectl(&self, arguments: &[&str], stdin: &str) -> Result<String, Error> {
        self.kubectl_as("admin", arguments, stdin)
    }

    /// Runs kubectl as one of the users.
    pub fn kubectl_as(&self, user: &str, arguments: &[&str], stdin: &str) -> Result<String, Error> {
        let mut command = self.kubectl_command();
        command
            .arg("--kubeconfig")
            .arg(self.kubeconfig(user)?)
            .args(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let step = |source| Error::Step {
            step: "run kubectl",
            source,
        };
        let failed = |command: &Command, source| {
            step(process::Error::Start {
                command: process::line(command),
                source,
            })
        };
        let mut child = command.spawn().map_err(|source| failed(&command, source))?;
        if let Some(mut pipe) = child.stdin.take() {
            // A kubectl that does not read its input says what it has to say on its output.
            drop(pipe.write_all(stdin.as_bytes()));
        }
        let output = child
            .wait_with_output()
            .map_err(|source| failed(&command, source))?;
        process::checked(&command, &output).map_err(step)
    }

    /// The process ids of everything that belongs to it.
    pub fn pids(&self) -> Vec<u32> {
        self.servers
            .iter()
            .map(Daemon::pid)
            .chain([self.etcd.pid()])
            .collect()
    }

    /// Copies everything that is stored.
    pub fn back_up(&self) -> Result<Backup, Error> {
        self.etcd.back_up()
    }

    /// Puts everything back as it was stored then. All servers are started again. An etcd that others use as well stays as it is.
    pub fn restore(&mut self, backup: &Backup) -> Result<(), Error> {
        let etcd = Arc::get_mut(&mut self.etcd).ok_or(Error::SharedEtcd)?;
        for server in &mut self.servers {
            server.stop();
        }
        etcd.restore(backup)?;
        let step = |source| Error::Step {
            step: "start a server",
            source,
        };
        // The API server is the last; controllers would end without it.
        let others = self.servers.len().saturating_sub(1);
        let mut controllers: Vec<Daemon> = self.servers.drain(..others).collect();
        for server in &mut self.servers {
            server.start_again().map_err(step)?;
        }
        self.wait_until_ready()?;
        for server in &mut controllers {
            server.start_again().map_err(step)?;
        }
        self.servers.splice(0..0, controllers);
        Ok(())
    }

    fn kubectl_command(&self) -> Command {
        let mut command = self.inside(&self.kubectl);
        command
            .arg("--cache-dir")
            .arg(self.folder.path().join("cache"));
        command
    }

    fn inside(&self, program: &Path) -> Command {
        let mut words = self.prefix.iter();
        match words.next() {
            None => Command::new(program),
            Some(first) => {
                let mut command = Command::new(first);
                command.args(words).arg(program);
                command
            }
        }
    }

    fn certificate(&self) -> PathBuf {
        self.folder.path().join("apiserver.crt")
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        report::logs_if_panicking(self.folder.path());
    }
}
