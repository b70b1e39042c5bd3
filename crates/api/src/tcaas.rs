//! Group `network.t-caas.telekom.com/v1alpha1`: intents, low-level objects and what machines write.

pub mod node_network_config;
mod traffic_match;

pub use node_network_config::{NodeNetworkConfig, NodeNetworkConfigSpec, NodeNetworkConfigStatus};
pub use traffic_match::{PrefixOrHost, TrafficMatch};
