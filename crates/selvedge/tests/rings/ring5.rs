//! Ring 5, a real API server: what it takes, what it refuses, and what the operator does with it.

#[cfg(feature = "bench-rollout")]
#[path = "ring5/bench_rollout.rs"]
mod bench_rollout;

#[path = "ring5/chaos.rs"]
mod chaos;

#[path = "ring5/cluster.rs"]
mod cluster;

#[path = "ring5/commands.rs"]
mod commands;

#[path = "ring5/definitions.rs"]
mod definitions;

#[path = "ring5/definitions_lost.rs"]
mod definitions_lost;

#[path = "ring5/example_cluster.rs"]
mod example_cluster;

#[path = "ring5/examples.rs"]
mod examples;

#[path = "ring5/fabric_objects.rs"]
mod fabric_objects;

#[path = "ring5/faults.rs"]
mod faults;

#[path = "ring5/fleet.rs"]
mod fleet;

#[path = "ring5/fleet_rollout.rs"]
mod fleet_rollout;

#[path = "ring5/host_router.rs"]
mod host_router;

#[path = "ring5/in_cluster_ipam.rs"]
mod in_cluster_ipam;

#[path = "ring5/intents.rs"]
mod intents;

#[path = "ring5/large.rs"]
mod large;

#[path = "ring5/leader.rs"]
mod leader;

#[path = "ring5/manifests.rs"]
mod manifests;

#[path = "ring5/nodes.rs"]
mod nodes;

#[path = "ring5/operations.rs"]
mod operations;

#[path = "ring5/operator.rs"]
mod operator;

#[path = "ring5/passwords.rs"]
mod passwords;

#[path = "ring5/platform.rs"]
mod platform;

#[path = "ring5/programs.rs"]
pub(crate) mod programs;

#[path = "ring5/proxy.rs"]
mod proxy;

#[path = "ring5/quiet.rs"]
mod quiet;

#[path = "ring5/refused.rs"]
mod refused;

#[path = "ring5/restored.rs"]
mod restored;

#[path = "ring5/rollout.rs"]
mod rollout;

#[path = "ring5/rules.rs"]
mod rules;

#[path = "ring5/server.rs"]
mod server;

#[path = "ring5/undefined.rs"]
mod undefined;
