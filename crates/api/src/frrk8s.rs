//! `frrk8s.metallb.io/v1beta1`: configuration and state of the router in the host namespace.

mod absent;
mod bfd_profile;
mod bgp_session_state;
mod community;
mod evpn;
mod frr_configuration;
mod frr_node_state;
mod neighbor;
mod policy;
mod router;
mod schema;
#[cfg(test)]
mod tests;
mod update_source;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

pub use bfd_profile::BfdProfile;
pub use bgp_session_state::{
    BgpSessionState, BgpSessionStateSpec, BgpSessionStateStatus, BgpState,
};
pub use community::FrrCommunity;
pub use evpn::{AdvertisedPrefixes, Evpn, L2Vni, L3Vni, VniAdvertisement};
pub use frr_configuration::{
    AppliedNodes, Bgp, ConfigurationProblem, FrrConfiguration, FrrConfigurationSpec,
    FrrConfigurationStatus, RawConfig,
};
pub use frr_node_state::{
    FrrNodeState, FrrNodeStateSpec, FrrNodeStateStatus, ObservedConfiguration,
};
pub use neighbor::{AddressFamily, Neighbor, SessionTimers};
pub use policy::{
    Advertise, AllowedIn, AllowedOut, CommunityPrefixes, FilterMode, LocalPrefPrefixes, NextHop,
    PrefixSelector, Receive,
};
pub use router::{Import, Router, Vrf};
pub use update_source::UpdateSource;

use crate::crds::Served;

/// The group of these kinds.
pub const GROUP: &str = "frrk8s.metallb.io";
/// The version of these kinds.
pub const VERSION: &str = "v1beta1";

/// Label of a `BgpSessionState` with the node's name.
pub const NODE_LABEL: &str = "frrk8s.metallb.io/node";
/// Label of a `BgpSessionState` with the peer.
pub const PEER_LABEL: &str = "frrk8s.metallb.io/peer";
/// Label of a `BgpSessionState` with the VRF.
pub const VRF_LABEL: &str = "frrk8s.metallb.io/vrf";

/// The definitions of all kinds of this group.
pub fn crds() -> Vec<CustomResourceDefinition> {
    served().iter().map(Served::definition).collect()
}

/// All kinds of this group.
pub(crate) fn served() -> Vec<Served> {
    vec![
        Served::by_people::<FrrConfiguration>(),
        Served::by_people::<FrrNodeState>(),
        Served::by_people::<BgpSessionState>(),
    ]
}
