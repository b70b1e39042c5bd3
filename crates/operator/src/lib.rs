//! The control plane: watch → compile → publish → status. All decisions are the compiler's.
//!
//! ```text
//! watch tasks ──Change──► queue ──► Kinds ──► Compiler ──Pass──► publish ──► API server
//! one per kind            │        which kinds are listed            │
//! JSON is read here       │                                          └─ objects as stored ─► Compiler
//! ```
//!
//! One loop serves the whole cluster. Each watch task reads its objects into the compiler's types and queues them; their JSON is
//! dropped. The loop applies the queue to one incremental compiler and runs a debounced pass, which writes exactly what differs from
//! what is stored. Which nodes get their configs is decided by `compiler::rollout`; `rollout` gives it what is stored, and `leases`
//! which agents are alive. If the operator stops, the nodes keep their configuration.

mod accounts;
mod backoff;
mod clock;
mod election;
mod errors;
mod events;
mod in_cluster_ipam;
mod kinds;
mod leases;
mod list;
mod metrics;
mod pages;
mod pass;
mod passwords;
mod platform;
mod publish;
mod request;
mod resource;
mod rollout;
mod run;
mod status;
mod watch;
mod worker;
mod write;

pub use election::{Election, InvalidElection};
pub use list::{NotListed, objects};
pub use run::{Error, Options, run, watched};

/// Field manager of server-side apply: the owner of every field that the operator writes.
const FIELD_MANAGER: &str = "selvedge";
