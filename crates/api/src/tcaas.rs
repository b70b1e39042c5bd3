//! The kinds of `network.t-caas.telekom.com/v1alpha1`: intents of users, the low-level objects they compile into, and what
//! Selvedge writes down about revisions and nodes. All are cluster-scoped.

mod address_lists;
mod asn_text;
mod bgp_neighbor;
mod bgp_peering;
mod collector;
mod destination;
mod inbound;
mod layer2_attachment;
mod layer2_network_configuration;
mod mirror_selector;
mod mirror_target;
mod network;
mod network_config_revision;
pub mod node_network_config;
pub mod node_network_status;
mod outbound;
mod pod_network;
mod prefix_item;
#[cfg(test)]
mod tests;
mod traffic_match;
mod traffic_mirror;
mod vrf;
mod vrf_route_configuration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

pub use self::{
    address_lists::AddressLists,
    bgp_neighbor::{BgpNeighbor, BgpNeighborSpec, BgpNeighborStatus},
    bgp_peering::{BgpPeering, BgpPeeringSpec, BgpPeeringStatus, LoopbackPeer},
    collector::{Collector, CollectorSpec, CollectorStatus},
    destination::{
        Destination, DestinationSpec, DestinationStatus, ExtraRoute, MatchedDestination, NextHop,
    },
    inbound::{Advertisement, AdvertisementType, Inbound, InboundSpec, InboundStatus},
    layer2_attachment::{
        Anycast, AttachmentBgp, AttachmentBgpStatus, AttachmentNodeIps, Layer2Attachment,
        Layer2AttachmentSpec, Layer2AttachmentStatus, Sriov,
    },
    layer2_network_configuration::{
        Layer2NetworkConfiguration, Layer2NetworkConfigurationSpec,
        Layer2NetworkConfigurationStatus, NodeIps, StaticRoute,
    },
    mirror_selector::{MirrorSelector, MirrorSelectorSpec, MirrorSelectorStatus},
    mirror_target::{GreProtocol, MirrorTarget, MirrorTargetSpec, MirrorTargetStatus},
    network::{AllocatedSlice, AllocationPool, IpNetwork, Network, NetworkSpec, NetworkStatus},
    network_config_revision::{
        BgpRevision, Layer2Revision, NetworkConfigRevision, NetworkConfigRevisionPart,
        NetworkConfigRevisionPartSpec, NetworkConfigRevisionSpec, NetworkConfigRevisionStatus,
        RevisionEntry, RolloutWave, VrfRevision,
    },
    node_network_config::{NodeNetworkConfig, NodeNetworkConfigSpec, NodeNetworkConfigStatus},
    node_network_status::{
        InterfaceType, LinkState, NodeInterface, NodeNetworkStatus, NodeNetworkStatusSpec,
        NodeNetworkStatusStatus, NodeRoute,
    },
    outbound::{Outbound, OutboundSpec, OutboundStatus},
    pod_network::{PodNetwork, PodNetworkSpec, PodNetworkStatus},
    prefix_item::{PrefixAction, PrefixItem},
    traffic_match::{MatchPrefix, MirrorDirection, Protocol, TrafficMatch},
    traffic_mirror::{
        MirrorSource, MirrorSourceKind, TrafficMirror, TrafficMirrorSpec, TrafficMirrorStatus,
    },
    vrf::{Vrf, VrfLoopback, VrfSpec, VrfStatus},
    vrf_route_configuration::{
        MergeOrder, VrfRouteConfiguration, VrfRouteConfigurationSpec, VrfRouteConfigurationStatus,
    },
};
use crate::crds::Served;

/// API group of these kinds.
pub const GROUP: &str = "network.t-caas.telekom.com";
/// The one version of these kinds.
pub const VERSION: &str = "v1alpha1";

/// The definitions of all kinds of this group.
pub fn crds() -> Vec<CustomResourceDefinition> {
    served().iter().map(Served::definition).collect()
}

/// These kinds: intents first, then the low-level kinds, then those that only Selvedge writes.
pub(crate) fn served() -> Vec<Served> {
    vec![
        Served::by_people::<Vrf>(),
        Served::by_people::<Network>(),
        Served::by_people::<Destination>(),
        Served::by_people::<Layer2Attachment>(),
        Served::by_people::<Inbound>(),
        Served::by_people::<Outbound>(),
        Served::by_people::<BgpNeighbor>(),
        Served::by_people::<PodNetwork>(),
        Served::by_people::<Collector>(),
        Served::by_people::<TrafficMirror>(),
        Served::by_people::<Layer2NetworkConfiguration>(),
        Served::by_people::<VrfRouteConfiguration>(),
        Served::by_people::<BgpPeering>(),
        Served::by_people::<MirrorTarget>(),
        Served::by_people::<MirrorSelector>(),
        Served::by_machines::<NetworkConfigRevision>(),
        Served::by_machines::<NetworkConfigRevisionPart>(),
        Served::by_machines::<NodeNetworkConfig>(),
        Served::by_machines::<NodeNetworkStatus>(),
    ]
}
