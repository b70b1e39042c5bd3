//! The kinds of `selvedge.dev/v1alpha1`: Selvedge's own settings.

mod count_or_percent;
mod settings;
#[cfg(test)]
mod tests;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

pub use self::{
    count_or_percent::CountOrPercent,
    settings::{
        BgpSettings, Canary, ClusterNeighbor, ClusterVrf, FrrConfigurations, HbnFlavour, Health,
        HostSessions, ManagementVrf, Namespaced, OnFailure, Platform, Reachability, Rollout,
        RouteTables, Settings, SettingsSpec, SettingsStatus, Trunk, VniRange, VrfNumbers,
    },
};
use crate::crds::definition;

/// API group of these kinds.
pub const GROUP: &str = "selvedge.dev";
/// The one version of these kinds.
pub const VERSION: &str = "v1alpha1";

/// The definitions of these kinds.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![definition::<Settings>()]
}
