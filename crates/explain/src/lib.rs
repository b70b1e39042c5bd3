//! Questions about a [`compiler::Compilation`]: which elements the config of a node has, which fields they come from, what changes
//! between two compilations, and why something is not on a node.
//!
//! The compile carries nothing for these questions, and the operator does not link them: an answer is found when it is asked for,
//! from the snapshot and what the compiler made of it.

pub mod element;
pub mod plan;
pub mod provenance;
pub mod query;
pub mod running;
pub mod why_not;

#[cfg(test)]
mod tests;
