//! The typed configuration of one FRR instance.
//!
//! Lists are sorted by their type and values stand in the form FRR gives back, so that two configurations are equal
//! exactly when FRR would behave the same. The defaults are those of `frr defaults traditional`.

mod bfd;
mod bgp;
mod evpn;
mod filter;
mod name;
mod vrf;

use std::collections::BTreeMap;

use api::value::IfName;

pub use self::{
    bfd::BfdProfile,
    bgp::{
        Bgp, GracefulRestart, MaximumPrefix, Neighbor, NeighborBfd, NeighborFamily, Peer,
        RedistributeSource, RemoteAs, Timers, Unicast, UpdateSource,
    },
    evpn::{Advertise, Evpn, VniTargets},
    filter::{
        CommunityList, IpFamily, MatchCommunity, PrefixList, PrefixRange, RouteMap, RouteMapAction,
        RouteMapEntry, SetCommunity,
    },
    name::{Description, InvalidDescription, InvalidName, Name},
    vrf::{StaticRoute, Via, Vrf},
};

/// The complete configuration of one FRR instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrrConfig {
    /// Whether next hops may be resolved through a default route: a fabric may announce nothing else.
    pub resolve_via_default: bool,
    /// Prefix lists; IPv4 and IPv6 have namespaces of their own.
    pub prefix_lists: BTreeMap<(IpFamily, Name), PrefixList>,
    /// Lists of standard communities.
    pub community_lists: BTreeMap<Name, CommunityList>,
    /// Lists of large communities.
    pub large_community_lists: BTreeMap<Name, CommunityList>,
    /// Route maps.
    pub route_maps: BTreeMap<Name, RouteMap>,
    /// VRFs in the configuration of FRR.
    pub vrfs: BTreeMap<IfName, Vrf>,
    /// BGP instances; `None` is that of the default VRF.
    pub bgp: BTreeMap<Option<IfName>, Bgp>,
    /// Profiles of BFD sessions.
    pub bfd_profiles: BTreeMap<Name, BfdProfile>,
}
