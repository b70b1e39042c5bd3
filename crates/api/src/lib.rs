//! The words of Selvedge: every kind it serves, the contract between control plane and node, and the values they are made of.
//!
//! This crate is pure: it has types and their methods, no decisions, no IO and no dependency on other crates of the workspace.
//! Other crates can rely on this: every value that exists has been validated.

pub mod crds;
pub mod frrk8s;
pub mod meta;
pub mod multinetwork;
pub mod openperouter;
mod schema;
pub mod selvedge;
pub mod tcaas;
pub mod value;
