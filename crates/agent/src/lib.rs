//! The node loop: the node's own NodeNetworkConfig → kernel and FRR → verified → confirmed → reported. It knows no intents.
//!
//! [`machine`] decides and does nothing itself; everything else does what it says. Kernel and FRR outlive the agent: it
//! starts FRR's daemons but is not their parent, and holds nothing open that the data plane needs. Killing it at any
//! instruction and starting it again restores the config that was confirmed last.

mod cluster;
mod command_log;
pub mod config;
mod daemons;
pub mod file;
mod frr_shell;
pub mod health;
mod hold;
mod host;
mod inventory;
pub mod journal;
mod lock;
pub mod machine;
mod metrics;
mod nics;
mod node;
mod once;
mod pages;
mod patience;
mod probe;
mod program;
mod reconcile;
mod refresh;
mod report;
mod run;
mod tail;
mod vtysh;
mod watchdog;

pub use cluster::{Connect, own_account};
pub use config::{Config, ResolvedSecret};
pub use daemons::Paths;
pub use once::{Done, apply, cleanup, preview};
pub use reconcile::{Applied, Failure, Reconciler};
pub use run::{Error, Options, Source, run};
