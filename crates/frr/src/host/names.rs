//! Names and numbers of the host's route maps and lists. Users hook raw configuration into them, so they never change.
//!
//! # Names
//! `<ID>` is the address or device of the peer, and in a VRF also `-<vrf>`: `192.0.2.1-red`. See [`Names`].
//!
//! # Numbers
//! An entry keeps its number while others come and go.
//! * Route maps: 1–3999 are generated, 4000 and above belong to raw configuration.
//! * Prefix lists: 1,000,000 and above are generated, the numbers below belong to raw configuration.

use std::fmt::Display;

use api::{frrk8s::FrrCommunity, value::IfName};

use crate::config::{IpFamily, Name};

/// The first number of a route map's entry that is not generated.
pub const FIRST_RAW_ENTRY: u16 = 4000;
/// The first number of a prefix list's entry that is generated.
pub const FIRST_GENERATED_RULE: u32 = 1_000_000;

/// The last entry that gives a route a preference or communities.
pub(super) const LAST_PROPERTY: u16 = 2999;
/// Entries that decide, by family.
pub(super) const DECIDES: [(IpFamily, u16); 2] = [(IpFamily::V4, 3000), (IpFamily::V6, 3001)];
/// Entries that deny what is blocked for all neighbors, by family.
pub(super) const DENIES: [(IpFamily, u16); 2] = [(IpFamily::V4, 10), (IpFamily::V6, 11)];
/// The rule that matches all prefixes.
pub(super) const ANY: u32 = u32::MAX;

/// The name of a VRF's router, as the API writes it, that is FRR's default VRF.
pub(super) const DEFAULT_VRF: &str = "default";

/// What the names of lists of prefixes with a local preference, or with a community, end with.
const PROPERTIES: [&str; 2] = ["-localpref-prefixes", "-community-prefixes"];

/// Whether an entry of a route map gives the prefixes of this list a preference or communities.
pub(crate) fn is_property(number: u16, list: &Name) -> bool {
    let name = list.as_str();
    number <= LAST_PROPERTY && PROPERTIES.iter().any(|end| name.ends_with(end))
}

/// The families of a neighbor in the names of its lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Families {
    /// IPv4 alone.
    Ipv4,
    /// IPv6 alone.
    Ipv6,
    /// Both.
    Dual,
}

impl Families {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::Dual => "dual",
        }
    }
}

/// The names of one neighbor's filters.
pub(super) struct Names {
    peer: String,
    id: String,
    families: Families,
}

impl Names {
    pub(super) fn new(peer: &dyn Display, vrf: Option<&IfName>, families: Families) -> Self {
        let id = match vrf {
            None => peer.to_string(),
            Some(vrf) => format!("{peer}-{vrf}"),
        };
        let peer = peer.to_string();
        Self { peer, id, families }
    }

    /// The peer that they are for.
    pub(super) fn peer(&self) -> &str {
        &self.peer
    }

    /// Route map of what the peer gets.
    pub(super) fn route_map_out(&self) -> Name {
        Name::of(format_args!("{}-out", self.id))
    }

    /// Route map of what comes from the peer.
    pub(super) fn route_map_in(&self) -> Name {
        Name::of(format_args!("{}-in", self.id))
    }

    /// Prefix list of what the peer gets.
    pub(super) fn allowed_out(&self, family: IpFamily) -> Name {
        Name::of(format_args!("{}-allowed-{}", self.id, family.afi()))
    }

    /// Prefix list, of either family, of what is accepted from the peer.
    pub(super) fn allowed_in(&self) -> Name {
        Name::of(format_args!("{}-inpl-{}", self.id, self.families.as_str()))
    }

    /// Prefix list, of either family, of what is accepted from no peer.
    pub(super) fn denied_in(&self) -> Name {
        let families = self.families.as_str();
        Name::of(format_args!("{}-denied-inpl-{families}", self.id))
    }

    /// Prefix list of what gets a local preference.
    pub(super) fn preferred(&self, preference: u32, family: IpFamily) -> Name {
        let (id, ip, [end, _]) = (&self.id, family.ip(), PROPERTIES);
        Name::of(format_args!("{id}-{preference}-{ip}{end}"))
    }

    /// Prefix list of what gets a community.
    pub(super) fn marked(&self, community: FrrCommunity, family: IpFamily) -> Name {
        let (id, ip, [_, end]) = (&self.id, family.ip(), PROPERTIES);
        Name::of(format_args!("{id}-{community}-{ip}{end}"))
    }
}
