//! The words of Selvedge: every kind it serves, the contract between control plane and node, and the values they are made of.
//!
//! This room is pure. It holds types and questions a type can answer about itself; it decides nothing,
//! reads nothing and knows no other room. What another room may rely on: a value that exists has been parsed.

pub mod crds;
pub mod frrk8s;
pub mod meta;
pub mod multinetwork;
pub mod openperouter;
mod schema;
pub mod selvedge;
pub mod tcaas;
pub mod value;
