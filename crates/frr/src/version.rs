//! The FRR versions that Selvedge knows, and how they differ: one table.

use std::{fmt, str::FromStr};

use crate::print::Section;

/// A release line of FRR, such as 10.7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrrVersion {
    major: u16,
    minor: u16,
}

/// What a version does differently from the others. Each row was seen on that version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a table of answers to questions that have nothing to do with one another"
)]
pub struct Features {
    /// Sections of the text for a fresh boot: nothing is referred to before it is there, except community lists, of which FRR does not
    /// ask that. Where that leaves a choice, the order is the one in which this version prints its running configuration.
    pub(crate) sections: &'static [Section],
    /// Whether `vni` stands before the static routes of its VRF.
    pub(crate) vni_before_routes: bool,
    /// Whether a multihop of 255 is printed as a number; later versions print none.
    pub(crate) prints_multihop_255: bool,
    /// Whether next hops may be resolved through a default route without a line saying so.
    pub(crate) resolves_via_default: bool,
    /// Whether a VRF can import `*:number`.
    pub(crate) wildcard_route_targets: bool,
    /// Whether a layer 2 VNI can import `*:number`.
    pub(crate) wildcard_l2_route_targets: bool,
    /// Whether a session can have the AS number of the peer as its own.
    pub(crate) local_as_of_peer: bool,
    /// Whether BFD can watch the next hop of a static route.
    pub(crate) static_route_bfd: bool,
    /// Whether a VTEP may be an IPv6 address.
    pub(crate) ipv6_vtep: bool,
    /// Whether the community 0:0 means every community in a list.
    pub(crate) internet_community: bool,
    /// Whether configuration of zebra, staticd and filters goes through `mgmtd`, so that a daemon started with `-f`
    /// would miss it.
    pub needs_mgmtd: bool,
}

/// The table: a version has the features of the last row that is not newer than itself.
const TABLE: [(FrrVersion, Features); 3] = [
    (
        FrrVersion::V8_4,
        Features {
            sections: &[
                Section::Log,
                Section::Vrfs,
                Section::PrefixLists,
                Section::CommunityLists,
                Section::RouteMaps,
                Section::Bgp,
                Section::NextHopTracking,
                Section::Bfd,
            ],
            vni_before_routes: true,
            prints_multihop_255: true,
            resolves_via_default: false,
            wildcard_route_targets: false,
            wildcard_l2_route_targets: false,
            local_as_of_peer: false,
            static_route_bfd: false,
            ipv6_vtep: false,
            internet_community: true,
            needs_mgmtd: false,
        },
    ),
    (
        FrrVersion::V10_3,
        Features {
            sections: SECTIONS_WITH_MGMTD,
            vni_before_routes: false,
            prints_multihop_255: false,
            resolves_via_default: true,
            wildcard_route_targets: true,
            wildcard_l2_route_targets: false,
            local_as_of_peer: true,
            static_route_bfd: true,
            ipv6_vtep: false,
            internet_community: false,
            needs_mgmtd: true,
        },
    ),
    (
        FrrVersion::V10_7,
        Features {
            sections: SECTIONS_WITH_MGMTD,
            vni_before_routes: false,
            prints_multihop_255: false,
            resolves_via_default: true,
            wildcard_route_targets: true,
            wildcard_l2_route_targets: false,
            local_as_of_peer: true,
            static_route_bfd: true,
            ipv6_vtep: true,
            internet_community: false,
            needs_mgmtd: true,
        },
    ),
];

/// What mgmtd holds comes first, then what bgpd and bfdd hold.
const SECTIONS_WITH_MGMTD: &[Section] = &[
    Section::Log,
    Section::NextHopTracking,
    Section::PrefixLists,
    Section::RouteMaps,
    Section::Vrfs,
    Section::Bgp,
    Section::CommunityLists,
    Section::Bfd,
];

impl FrrVersion {
    /// Debian 12.
    pub const V8_4: Self = Self { major: 8, minor: 4 };
    /// Debian 13.
    pub const V10_3: Self = Self {
        major: 10,
        minor: 3,
    };
    /// Debian's next.
    pub const V10_7: Self = Self {
        major: 10,
        minor: 7,
    };
    /// The versions that goldens exist for, oldest first.
    pub const SUPPORTED: [Self; 3] = [Self::V8_4, Self::V10_3, Self::V10_7];
    /// What a node of unknown version is taken for.
    pub const NEWEST: Self = Self::V10_7;

    /// How this version differs from others.
    pub fn features(self) -> Features {
        let [(_, oldest), ..] = TABLE;
        TABLE
            .iter()
            .rev()
            .find(|(since, _)| *since <= self)
            .map_or(oldest, |(_, features)| *features)
    }
}

impl fmt::Display for FrrVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Why a text is not a supported version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownVersion {
    /// There is no version in it.
    #[error("no FRR version in {0:?}")]
    Missing(String),
    /// It is older than the oldest row of the table.
    #[error("FRR {0} is older than {oldest}, the oldest supported", oldest = FrrVersion::V8_4)]
    TooOld(FrrVersion),
}

impl FromStr for FrrVersion {
    type Err = UnknownVersion;

    /// Takes `10.7`, and the first version number in what FRR prints: `FRRouting 10.7.1 (node) on Linux…` of
    /// `show version`, `(version 10.7.1)` of `vtysh -h`, `frr version 10.7.1` of a configuration.
    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        let version = text
            .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')))
            .find_map(number)
            .ok_or_else(|| UnknownVersion::Missing(text.chars().take(80).collect()))?;
        if version < Self::V8_4 {
            return Err(UnknownVersion::TooOld(version));
        }
        Ok(version)
    }
}

fn number(word: &str) -> Option<FrrVersion> {
    let (major, rest) = word.split_once('.')?;
    let minor = rest
        .split(|c: char| !c.is_ascii_digit())
        .next()
        .filter(|digits| !digits.is_empty())?;
    Some(FrrVersion {
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_found_in_what_frr_prints() {
        for (text, version) in [
            ("10.7", FrrVersion::V10_7),
            (
                "FRRouting 10.7.1 (vm) on Linux(6.18.44-fc-v490).\nCopyright 1996-2005",
                FrrVersion::V10_7,
            ),
            (
                "Integrated shell for FRR (version 10.3). ",
                FrrVersion::V10_3,
            ),
            ("frr version 8.4.4", FrrVersion::V8_4),
        ] {
            assert_eq!(text.parse(), Ok(version), "{text}");
        }
        assert_eq!(
            "7.5.1".parse::<FrrVersion>(),
            Err(UnknownVersion::TooOld(FrrVersion { major: 7, minor: 5 }))
        );
        assert!("no version here".parse::<FrrVersion>().is_err());
    }

    #[test]
    fn a_version_between_rows_has_the_features_of_the_older_row() {
        let between: FrrVersion = "10.5.2".parse().unwrap();
        assert_eq!(between.features(), FrrVersion::V10_3.features());
        let newer: FrrVersion = "11.0".parse().unwrap();
        assert_eq!(newer.features(), FrrVersion::NEWEST.features());
    }
}
