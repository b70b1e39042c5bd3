//! `multinetwork.networking.x-k8s.io/v1alpha1`: networks that pods can be attached to.

mod pod_network;
mod provider;
#[cfg(test)]
mod tests;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

pub use pod_network::{PodNetwork, PodNetworkCondition, PodNetworkSpec, PodNetworkStatus};
pub use provider::Provider;

use crate::crds::Served;

/// The group of these kinds.
pub const GROUP: &str = "multinetwork.networking.x-k8s.io";
/// The version of these kinds.
pub const VERSION: &str = "v1alpha1";
/// The spelling of group and version in the examples of the proposal; it is read from files, never written or watched.
pub const FILE_API_VERSION: &str = "multinetwork.networking.k8s.io/v1";

/// The definitions of all kinds of this group.
pub fn crds() -> Vec<CustomResourceDefinition> {
    served().iter().map(Served::definition).collect()
}

/// All kinds of this group.
pub(crate) fn served() -> Vec<Served> {
    vec![Served::by_people::<PodNetwork>()]
}
