//! Ring 5, a real API server: what it takes, what it refuses, and what the operator does with it.

#[path = "ring5/definitions.rs"]
mod definitions;

#[path = "ring5/examples.rs"]
mod examples;

#[path = "ring5/operator.rs"]
mod operator;

#[path = "ring5/rollout.rs"]
mod rollout;

#[path = "ring5/rules.rs"]
mod rules;

#[path = "ring5/server.rs"]
mod server;
