//! One Linux kernel on which namespaces are made: this machine's, or a guest's.
//!
//! Everything above this trait is the same code for both.

mod local;
mod running;

use std::fmt;
use std::path::Path;
use std::time::Duration;

pub use local::LocalHost;
pub(crate) use running::Record;
pub use running::{Output, Running};
pub use rustix::process::Signal;

use crate::{namespace, process};

/// How long a command that should end may take.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// What can go wrong with a command on a host.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be started on this machine.
    #[error("failed to start a command")]
    Start(#[from] process::Error),
    /// The guest could not be reached.
    #[error("failed to reach the guest")]
    Reach(#[from] namespace::Error),
    /// The connection to the guest broke.
    #[error("failed to communicate with the guest about `{command}`")]
    Speak {
        /// The command.
        command: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The host went away before the command ended.
    #[error("`{command}` was cut off: its host is gone")]
    CutOff {
        /// The command.
        command: String,
    },
    /// The command did not end in time.
    #[error("`{command}` did not end within {} s", patience.as_secs())]
    Timeout {
        /// The command.
        command: String,
        /// How long it had.
        patience: Duration,
    },
    /// The command ran and was not content.
    #[error("`{command}` ended with {status}: {output}")]
    End {
        /// The command.
        command: String,
        /// Its exit status; 128 and more for a signal.
        status: i32,
        /// What it printed.
        output: String,
    },
}

/// A kernel on which namespaces are made, and on which commands run in a namespace that belongs to the lab.
pub trait Host: fmt::Debug + Send + Sync {
    /// Starts a command with the given standard input.
    fn start(&self, argv: &[&str], stdin: &str) -> Result<Running, Error>;

    /// Where the Debian tree lies, seen from a command on this host.
    fn tree(&self) -> &str;

    /// The folder of this machine that every space on the host sees as `/share`.
    fn share(&self) -> &Path;

    /// Where that folder lies, seen from a command on this host.
    fn share_seen(&self) -> &str;

    /// Runs a command to its end, whatever its status.
    fn run(&self, argv: &[&str], stdin: &str) -> Result<Output, Error> {
        self.start(argv, stdin)?.wait(PATIENCE)
    }
}
