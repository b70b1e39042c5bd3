//! What no filter of a node can permit: routes that the fabric and other VRFs never learn, and communities that workloads
//! cannot attach.
//!
//! A node is never transit: what it learns from the fabric carries a mark from then on, through VRFs and leaks, and what
//! carries the mark is not announced to the fabric. An empty AS path would not do as a test: routes that workloads announce
//! have one, too, and are to go out.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    tcaas::node_network_config::{ActionType, Filter, FilterItem, Trunk, Underlay},
    value::{Community, Prefix},
};

use super::{
    Build,
    filter::{LAST, Purpose},
    permits,
};
use crate::{
    config::{
        IpFamily, MatchCommunity, Name, PrefixRange, RouteMap, RouteMapAction, RouteMapEntry,
        SetCommunity,
    },
    names,
    parse::WELL_KNOWN,
};

/// Link-local networks of both families: they mean another thing on every link.
const LINK_LOCAL: [&str; 2] = ["169.254.0.0/16", "fe80::/10"];

/// Numbers of the entries before a filter's own rules.
const NODE_ONLY_V4: u16 = 1;
const NODE_ONLY_V6: u16 = 2;
const FROM_FABRIC: u16 = 3;
const UNMARK_HOST: u16 = 4;
const SCRUB: u16 = 1;

/// Communities with a meaning that all networks share. 0:0 is not included: FRR 8.4 reads it as any community.
fn well_known() -> impl Iterator<Item = Community> {
    let all: BTreeSet<Community> = WELL_KNOWN
        .iter()
        .filter(|(_, high, _)| *high == u16::MAX)
        .map(|(_, high, low)| Community::Standard(*high, *low))
        .collect();
    all.into_iter()
}

/// The large community that a node gives to what it learns from the fabric.
pub(super) fn mark(underlay: &Underlay) -> Community {
    Community::Large(underlay.asn.get(), 0, 1)
}

impl Build<'_> {
    /// The prefix lists of networks that no other machine may learn: link-local ones, the trunk's, and those of workloads'
    /// addresses on loopbacks.
    pub(super) fn node_only_networks(&mut self, trunk: &Trunk, workloads: &[Prefix]) {
        let Trunk {
            host: _,
            router: _,
            mtu: _,
            host_addresses,
            router_addresses,
        } = trunk;
        let link_local = LINK_LOCAL.iter().filter_map(|text| text.parse().ok());
        let ends = host_addresses.iter().chain(router_addresses);
        let networks = link_local
            .chain(ends.map(|end| end.prefix()))
            .chain(workloads.iter().copied());
        let ranges: BTreeSet<PrefixRange> = networks
            .filter_map(|network: Prefix| {
                let bits = IpFamily::of(network).bits();
                PrefixRange::new(network, None, Some(bits))
            })
            .collect();
        for family in IpFamily::BOTH {
            let of_family = ranges
                .iter()
                .copied()
                .filter(|range| IpFamily::of(range.prefix()) == family);
            let list = permits(of_family);
            self.config
                .prefix_lists
                .insert((family, names::node_only()), list);
        }
    }

    /// The entries before a filter's own rules.
    pub(super) fn head(&mut self, purpose: Purpose) -> RouteMap {
        if purpose == Purpose::WorkloadImport {
            return BTreeMap::from([(SCRUB, self.scrub())]);
        }
        let (families, from_fabric): (&[IpFamily], bool) = match purpose {
            Purpose::Redistribution | Purpose::WorkloadImport => (&[], false),
            Purpose::WorkloadExport(IpFamily::V4) => (&[IpFamily::V4], false),
            Purpose::WorkloadExport(IpFamily::V6) => (&[IpFamily::V6], false),
            Purpose::Leak => (&IpFamily::BOTH, false),
            Purpose::FabricExport => (&IpFamily::BOTH, true),
        };
        let mut map = node_only(families);
        if purpose == Purpose::Leak {
            map.extend(self.unmark_host().map(|entry| (UNMARK_HOST, entry)));
        }
        if let Some(list) = self.marked().filter(|_| from_fabric) {
            let entry = RouteMapEntry {
                match_large_community: Some(MatchCommunity { list, exact: false }),
                ..RouteMapEntry::new(RouteMapAction::Deny)
            };
            map.insert(FROM_FABRIC, entry);
        }
        map
    }

    /// The entries before what a host may announce: those of workloads, and networks of the node alone do not pass.
    pub(super) fn host_head(&mut self) -> RouteMap {
        let node_only = node_only(&IpFamily::BOTH).into_iter();
        let mut map: RouteMap = node_only
            .map(|(number, entry)| (SCRUB + number, entry))
            .collect();
        map.insert(SCRUB, self.scrub());
        map
    }

    /// What the host of one VRF announces is no more to another VRF than any other route: its filter decides.
    fn unmark_host(&mut self) -> Option<RouteMapEntry> {
        let mark = self.host_mark?;
        let list = self.community_list(&"underlay.asn", &BTreeSet::from([mark]));
        Some(RouteMapEntry {
            on_match_next: true,
            delete_large_communities: Some(list),
            ..RouteMapEntry::new(RouteMapAction::Permit)
        })
    }

    /// Takes off what a workload must not attach: all extended communities, so that it names no route target of another VRF;
    /// well-known communities, which the fabric obeys; and the node's own marks.
    fn scrub(&mut self) -> RouteMapEntry {
        let numbers = (1_u32..).map(|number| number * 5);
        let list = numbers.zip(well_known()).collect();
        let name = names::well_known_communities();
        self.config.community_lists.insert(name.clone(), list);
        RouteMapEntry {
            on_match_next: true,
            delete_communities: Some(name),
            delete_large_communities: self.marks(),
            delete_extended_communities: true,
            ..RouteMapEntry::new(RouteMapAction::Permit)
        }
    }

    /// What is taken off before the rules are asked cannot be matched by them.
    pub(super) fn refuse_scrubbed(&mut self, path: &str, filter: &Filter) {
        for (position, FilterItem { matcher, action: _ }) in filter.items.iter().enumerate() {
            let Some(matcher) = matcher.bgp_community else {
                continue;
            };
            let community = matcher.community;
            let is_mark = [self.fabric_mark, self.host_mark].contains(&Some(community));
            if is_mark || well_known().any(|one| one == community) {
                let why = format!(
                    "{community} is removed from the routes of workloads, so no route has it"
                );
                let path = format!("{path}.items[{position}].matcher.bgpCommunity");
                self.refuse(&path, why);
            }
        }
    }

    /// The list of all marks of the node.
    fn marks(&mut self) -> Option<Name> {
        let marks = [self.fabric_mark, self.host_mark];
        let marks: BTreeSet<Community> = marks.into_iter().flatten().collect();
        (!marks.is_empty()).then(|| self.community_list(&"underlay.asn", &marks))
    }

    /// The list of the fabric's mark.
    pub(super) fn marked(&mut self) -> Option<Name> {
        let mark = self.fabric_mark?;
        Some(self.community_list(&"underlay.asn", &BTreeSet::from([mark])))
    }

    /// The route map that marks what a fabric session receives.
    pub(super) fn fabric_in(&mut self) -> Name {
        let marks = self
            .fabric_mark
            .map(|mark| SetCommunity::Add([mark].into()));
        let entry = RouteMapEntry {
            set_large_community: marks,
            ..RouteMapEntry::new(RouteMapAction::Permit)
        };
        self.route_map(names::fabric_in(), BTreeMap::from([(LAST, entry)]))
    }

    /// The route map of unicast routes that a fabric session sends.
    pub(super) fn fabric_out(&mut self) -> Name {
        let mut map = self.head(Purpose::FabricExport);
        map.insert(LAST, RouteMapEntry::new(RouteMapAction::Permit));
        self.route_map(names::fabric_out(), map)
    }

    /// The route map of EVPN routes that a fabric session sends. What VRFs announce has passed their own route map; a MAC
    /// address with a link-local address is part of a segment and goes out.
    pub(super) fn fabric_evpn_out(&mut self) -> Name {
        let mut map = self.head(Purpose::FabricExport);
        map.retain(|number, _| *number == FROM_FABRIC);
        map.insert(LAST, RouteMapEntry::new(RouteMapAction::Permit));
        self.route_map(names::fabric_evpn_out(), map)
    }

    pub(super) fn route_map(&mut self, name: Name, map: RouteMap) -> Name {
        self.config.route_maps.insert(name.clone(), map);
        name
    }

    /// A leak must not take the fabric's mark off a route, or the next VRF would announce it to the fabric again.
    pub(super) fn refuse_unmarking(&mut self, path: &str, filter: &Filter) {
        let Filter {
            items,
            default_action,
        } = filter;
        let of_items = items.iter().enumerate().map(|(position, item)| {
            let FilterItem { matcher: _, action } = item;
            (format!("{path}.items[{position}].action"), action)
        });
        let of_default = (format!("{path}.defaultAction"), default_action);
        for (path, action) in of_items.chain([of_default]) {
            let modify = match action.kind {
                ActionType::Accept | ActionType::Next => action.modify_route.as_ref(),
                ActionType::Reject => None,
            };
            let Some(modify) = modify else { continue };
            let is_large = |community: &Community| matches!(community, Community::Large(..));
            let replaces = modify.add_communities.iter().any(is_large)
                && !modify.additive_communities.unwrap_or_default();
            let removes = self
                .fabric_mark
                .iter()
                .any(|mark| modify.remove_communities.contains(mark));
            if replaces || removes || modify.remove_all_communities.unwrap_or_default() {
                let why = "would remove the large community that keeps routes of the fabric from \
                           returning to it; name other communities in removeCommunities, and add with additiveCommunities";
                self.refuse(&format_args!("{path}.modifyRoute"), why);
            }
        }
    }
}

/// Entries that deny networks of the node alone, of these families.
pub(super) fn node_only(families: &[IpFamily]) -> RouteMap {
    let deny = |family: &IpFamily| {
        let number = match family {
            IpFamily::V4 => NODE_ONLY_V4,
            IpFamily::V6 => NODE_ONLY_V6,
        };
        let entry = RouteMapEntry {
            match_prefix_list: Some((*family, names::node_only())),
            ..RouteMapEntry::new(RouteMapAction::Deny)
        };
        (number, entry)
    };
    families.iter().map(deny).collect()
}
