//! The kinds of `selvedge.dev/v1alpha1`: Selvedge's own settings.

mod count_or_percent;
mod platform;
mod settings;
#[cfg(test)]
mod tests;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

pub use self::{
    count_or_percent::CountOrPercent,
    platform::{
        Calico, CalicoApiVersion, Namespaced, Platform, SriovKind, SriovPlatform, SriovResource,
    },
    settings::{
        BgpSettings, Canary, ClusterNeighbor, ClusterVrf, FrrConfigurations, HbnFlavour, Health,
        HostSessions, IcmpTarget, ImportMatch, LogLevel, ManagementVrf, OnFailure, Reachability,
        Rollout, RouteTables, Settings, SettingsSpec, SettingsStatus, Trunk, VniRange, VrfNumbers,
    },
};
use crate::crds::Served;

/// API group of these kinds.
pub const GROUP: &str = "selvedge.dev";
/// The one version of these kinds.
pub const VERSION: &str = "v1alpha1";

/// The definitions of all kinds of this group.
pub fn crds() -> Vec<CustomResourceDefinition> {
    served().iter().map(Served::definition).collect()
}

/// These kinds.
pub(crate) fn served() -> Vec<Served> {
    vec![Served::by_people::<Settings>()]
}

/// The namespace in which each node's agent renews a Lease that is named like the node.
pub const AGENT_LEASES: &str = "selvedge-system";

/// The ServiceAccount of the agents' DaemonSet, in the same namespace. That of one node's agent has this name, a hyphen and the node's.
pub const AGENT_ACCOUNT: &str = "selvedge-agent";

/// How long after its last renewal the Lease of an agent counts. Agents renew it every 20 seconds.
pub const AGENT_LEASE_LIFETIME: std::time::Duration = std::time::Duration::from_mins(1);
