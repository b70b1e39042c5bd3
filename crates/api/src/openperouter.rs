//! `openpe.openperouter.github.io/v1alpha1`: connection of nodes to the fabric, and the overlay on it.

mod contradiction;
mod host_session;
mod isis;
mod l2vni;
mod l3passthrough;
mod l3vni;
mod neighbor;
pub(crate) mod schema;
mod status;
#[cfg(test)]
mod tests;
mod underlay;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::crds::Served;
pub use contradiction::Contradiction;
pub use host_session::{HostSession, LocalCidr};
pub use isis::{IpFamily, Isis, IsisFeature, IsisInterface, IsisInterfaceFeature};
pub use l2vni::{
    Bridge, BridgeKind, BridgeSource, HostMaster, HostMasterType, L2Vni, L2VniSpec, NamedBridge,
};
pub use l3passthrough::{L3Passthrough, L3PassthroughSpec};
pub use l3vni::{L3Vni, L3VniSpec, UnderlayAddressFamily};
pub use neighbor::{Bfd, Neighbor, NeighborAddressFamily, NeighborFamily, Timers, UpdateSource};
pub use status::{NodeCounts, OverlayStatus};
pub use underlay::{
    Evpn, GracefulRestart, InterfaceType, NetworkDevice, Srv6, Srv6Format, Srv6Locator,
    TunnelEndpoint, Underlay, UnderlayInterface, UnderlaySpec, VtepSource,
};

/// The group of these kinds.
pub const GROUP: &str = "openpe.openperouter.github.io";
/// The version of these kinds.
pub const VERSION: &str = "v1alpha1";

/// The definitions of all kinds of this group.
pub fn crds() -> Vec<CustomResourceDefinition> {
    served().iter().map(Served::definition).collect()
}

/// All kinds of this group.
pub(crate) fn served() -> Vec<Served> {
    vec![
        Served::by_people::<Underlay>(),
        Served::by_people::<L3Vni>(),
        Served::by_people::<L2Vni>(),
        Served::by_people::<L3Passthrough>(),
    ]
}
