//! The node loop: the node's own NodeNetworkConfig → kernel and FRR → verified → reported. It knows no intents.
//!
//! Kernel and FRR outlive the agent: it starts FRR's daemons but is not their parent, and holds nothing open that the
//! data plane needs. Killing it at any instruction and starting it again converges.

pub mod config;
mod daemons;
pub mod health;
pub mod journal;
pub mod machine;
mod reconcile;
mod report;
mod run;
mod vtysh;

pub use config::{Config, ResolvedSecret};
pub use daemons::Paths;
pub use reconcile::{Applied, Failure, Reconciler};
pub use run::{Error, run};
