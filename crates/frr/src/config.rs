//! The typed configuration of one FRR instance.
//!
//! Lists are sorted by their type and values stand in the form FRR gives back, so that two configurations are equal
//! exactly when FRR would behave the same. The defaults are those of `frr defaults traditional`.

/// An enumeration of words of FRR.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The words for it.
            pub(crate) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }
    };
}

mod bfd;
mod bgp;
mod evpn;
mod filter;
mod log;
mod name;
mod vrf;

use std::collections::BTreeMap;

use api::value::IfName;

pub use self::{
    bfd::BfdProfile,
    bgp::{
        Bgp, FamilySwitch, GracefulRestart, MaximumPrefix, Neighbor, NeighborBfd, NeighborFamily,
        Peer, RedistributeSource, RemoteAs, SessionSwitch, Timers, Unicast, UpdateSource,
    },
    evpn::{Advertise, Evpn, VniTargets, derived_target},
    filter::{
        CommunityList, IpFamily, MatchCommunity, PrefixList, PrefixRange, PrefixRule, RouteMap,
        RouteMapAction, RouteMapEntry, SetCommunity,
    },
    log::{Debug, Log, LogLevel},
    name::{Description, InvalidDescription, InvalidName, Name},
    vrf::{StaticRoute, Via, Vrf},
};

/// The complete configuration of one FRR instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrrConfig {
    /// What goes into the log.
    pub log: Log,
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

impl FrrConfig {
    /// Brings the VNIs into the form that FRR gives back: the target that it derives by itself does not stand alone.
    pub(crate) fn forget_derived_targets(&mut self) {
        for bgp in self.bgp.values_mut() {
            for (vni, targets) in &mut bgp.evpn.vnis {
                targets.forget_derived(bgp.asn, *vni);
            }
        }
    }
}
