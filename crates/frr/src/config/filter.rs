//! Prefix lists, community lists and route maps.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::{Ipv4Addr, Ipv6Addr},
};

use api::value::{Asn, Community, IfName, Prefix};

use super::name::Name;

/// The IP version of a list or address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IpFamily {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl IpFamily {
    /// Both, in FRR's order.
    pub const BOTH: [Self; 2] = [Self::V4, Self::V6];

    /// The family of a prefix.
    pub fn of(prefix: Prefix) -> Self {
        if prefix.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// Length of an address in bits.
    pub fn bits(self) -> u8 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }

    /// The word for it in filters and routes.
    pub(crate) fn ip(self) -> &'static str {
        match self {
            Self::V4 => "ip",
            Self::V6 => "ipv6",
        }
    }

    /// The word for it in address families.
    pub(crate) fn afi(self) -> &'static str {
        match self {
            Self::V4 => "ipv4",
            Self::V6 => "ipv6",
        }
    }
}

/// A list of prefixes by sequence number. What no entry matches is denied.
pub type PrefixList = BTreeMap<u32, PrefixRule>;

/// A list of communities by sequence number; all entries permit.
pub type CommunityList = BTreeMap<u32, Community>;

/// A route map: entries by sequence number.
pub type RouteMap = BTreeMap<u16, RouteMapEntry>;

/// An entry of a prefix list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PrefixRule {
    /// Whether a prefix that matches passes.
    pub action: RouteMapAction,
    /// The prefixes that match; absent means all of the family.
    pub range: Option<PrefixRange>,
}

impl PrefixRule {
    /// These prefixes pass.
    pub fn permit(range: PrefixRange) -> Self {
        Self {
            action: RouteMapAction::Permit,
            range: Some(range),
        }
    }

    /// All prefixes of the family pass, or none.
    pub fn any(action: RouteMapAction) -> Self {
        Self {
            action,
            range: None,
        }
    }
}

impl fmt::Display for PrefixRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.range {
            Some(range) => write!(f, "{} {range}", self.action),
            None => write!(f, "{} any", self.action),
        }
    }
}

/// A prefix and the lengths below it that match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PrefixRange {
    prefix: Prefix,
    shortest: u8,
    longest: u8,
}

impl PrefixRange {
    /// A range, if `prefix length ≤ shortest ≤ longest ≤ address length`.
    ///
    /// `ge` alone reaches up to full length, `le` alone starts at the prefix itself, as in FRR; writing the same range
    /// in another way gives an equal value.
    pub fn new(prefix: Prefix, ge: Option<u8>, le: Option<u8>) -> Option<Self> {
        let (length, bits) = (prefix.net().prefix_len(), IpFamily::of(prefix).bits());
        let shortest = ge.unwrap_or(length);
        let longest = le.unwrap_or_else(|| if ge.is_some() { bits } else { length });
        (length <= shortest && shortest <= longest && longest <= bits).then_some(Self {
            prefix,
            shortest,
            longest,
        })
    }

    /// The prefix that every match lies in.
    pub fn prefix(self) -> Prefix {
        self.prefix
    }
}

impl fmt::Display for PrefixRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.prefix.net().prefix_len();
        let bits = IpFamily::of(self.prefix).bits();
        write!(f, "{}", self.prefix)?;
        if self.shortest > length {
            write!(f, " ge {}", self.shortest)?;
        }
        // An open end is written only where nothing else says that the range has one.
        let open = self.shortest > length && self.longest == bits;
        if self.longest > length && !open {
            write!(f, " le {}", self.longest)?;
        }
        Ok(())
    }
}

/// One rule of a route map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteMapEntry {
    /// Whether a route that matches passes.
    pub action: RouteMapAction,
    /// The prefix list that a route must be in, of one family. A route of the other family does not match.
    pub match_prefix_list: Option<(IpFamily, Name)>,
    /// The list of standard communities that a route must carry one of.
    pub match_community: Option<MatchCommunity>,
    /// The list of large communities that a route must carry one of.
    pub match_large_community: Option<MatchCommunity>,
    /// The VRF that a route must come from.
    pub match_source_vrf: Option<IfName>,
    /// Route map that decides on a route that matches.
    pub call: Option<Name>,
    /// Whether the next entry is asked after this one has matched.
    pub on_match_next: bool,
    /// What happens to the standard communities.
    pub set_community: Option<SetCommunity>,
    /// What happens to the large communities.
    pub set_large_community: Option<SetCommunity>,
    /// The BGP local preference that a route gets.
    pub set_local_preference: Option<u32>,
    /// The metric (MED) that a route gets.
    pub set_metric: Option<u32>,
    /// The next hop that an IPv4 route gets.
    pub set_ipv4_next_hop: Option<Ipv4Addr>,
    /// The global next hop that an IPv6 route gets.
    pub set_ipv6_next_hop: Option<Ipv6Addr>,
    /// AS numbers that are put in front of the path.
    pub prepend: Vec<Asn>,
    /// List of the standard communities that are taken off.
    pub delete_communities: Option<Name>,
    /// List of the large communities that are taken off.
    pub delete_large_communities: Option<Name>,
    /// Whether all extended communities are taken off.
    pub delete_extended_communities: bool,
}

impl RouteMapEntry {
    /// An entry that matches every route and changes none.
    pub fn new(action: RouteMapAction) -> Self {
        Self {
            action,
            match_prefix_list: None,
            match_community: None,
            match_large_community: None,
            match_source_vrf: None,
            call: None,
            on_match_next: false,
            set_community: None,
            set_large_community: None,
            set_local_preference: None,
            set_metric: None,
            set_ipv4_next_hop: None,
            set_ipv6_next_hop: None,
            prepend: Vec::new(),
            delete_communities: None,
            delete_large_communities: None,
            delete_extended_communities: false,
        }
    }
}

/// Whether what matches passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RouteMapAction {
    /// It passes.
    Permit,
    /// It does not.
    Deny,
}

impl fmt::Display for RouteMapAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Permit => "permit",
            Self::Deny => "deny",
        })
    }
}

/// A list of communities to match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchCommunity {
    /// The list.
    pub list: Name,
    /// Whether the route may carry no other.
    pub exact: bool,
}

/// What happens to the communities of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetCommunity {
    /// It loses all.
    None,
    /// It carries these instead of its own.
    Replace(BTreeSet<Community>),
    /// It carries these besides its own.
    Add(BTreeSet<Community>),
}
