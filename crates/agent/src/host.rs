//! The host's router: FRR in the host's own network namespace, beside everything else that the agent does.
//!
//! ```text
//!                       ┌─ router domain ─► machine: baseline, trial, confirmation
//! NodeNetworkConfig ────┤
//!                       └─ hostRouter ────► host::machine: apply at once, watch, keep or take back
//! ```
//!
//! A change of `hostRouter` alone is no trial of the node: it takes the least change of one FRR instance, within a second. The config that
//! ran before stays the last good one until the API server has been reached for a while; it is restored when a change makes that worse.

mod apply;
mod config;
mod events;
mod machine;
pub(crate) mod metrics;
mod missing;
pub(crate) mod once;
mod report;
mod sessions;
mod store;
mod task;

pub(crate) use self::{
    apply::{Limits, Router},
    config::{Assigned, HostConfig, split},
    machine::Status,
    report::{Change, Report, cut, without_passwords},
    sessions::Session,
    store::Store,
    task::{Task, Way},
};
