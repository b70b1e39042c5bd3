//! The kernel of a node: what it should hold, what it holds, and the ordered steps between the two.
//!
//! ```text
//! NodeNetworkConfig ─desired─► Desired ─┐
//!                                       ├─diff─► Plan (steps before FRR, after FRR, of mirrors) ─apply─► kernel
//! kernel ──────────── observe ► Observed ┘
//! ```
//!
//! Everything up to the plan is pure. `observe` and `apply` are in [`netlink`], behind the feature of that name.
//! The law that holds it together: a second plan after apply is empty, or the apply has failed. It is tested on a model
//! kernel here ([`model`]) and on a real one by the example `apply`.

pub mod desired;
pub mod diff;
pub mod filter;
pub mod learned;
pub mod model;
#[cfg(feature = "netlink")]
pub mod netlink;
pub mod nic;
pub mod object;
pub mod observed;
pub mod owned;
pub mod plan;
pub mod sysctl;
#[cfg(test)]
mod tests;

pub use self::{
    desired::{Desired, DesiredLink, Unsupported, desired},
    diff::{Conflict, diff},
    filter::{Filter, FilterId, Hook, ObservedFilter},
    nic::{HostAddress, HostHop, HostRoute, NicMemory},
    object::{Domain, Kind, LinkId},
    observed::{Observed, ObservedLink},
    plan::{Disruption, Note, Plan, Step},
};
