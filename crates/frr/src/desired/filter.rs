//! Filters → route maps with their lists.
//!
//! # Shape
//! Rules that follow one another and differ only in their prefix become **one** entry per family that matches a prefix
//! list: whichever of them matches first, the same happens. Inside such a list order does not matter, so its entries
//! are numbered by their content, and adding a prefix to a filter is one line, wherever it stands. Entries of the route
//! map itself are numbered by position in steps of ten (IPv6 five behind IPv4); the default is always the last number.
//! The numbers below ten belong to what no filter can permit ([`Purpose`]).

use std::{collections::BTreeSet, fmt};

use api::{
    tcaas::node_network_config::{
        Action, ActionType, CommunityMatcher, Filter, FilterItem, Matcher, ModifyRoute,
        PrefixMatcher,
    },
    value::{Community, IfName},
};

use super::{Build, number_by_content, permits, stable_number};
use crate::{
    config::{
        IpFamily, MatchCommunity, Name, PrefixRange, RouteMapAction, RouteMapEntry, SetCommunity,
    },
    names,
};

/// Number of the entry that holds the default.
pub(super) const LAST: u16 = u16::MAX;
/// Distance of two groups of rules.
const STEP: u16 = 10;
/// Distance of a group's IPv6 entry from its IPv4 entry.
const V6: u16 = 5;

/// Rules in a row that differ only in their prefix.
struct Group<'a> {
    action: &'a Action,
    community: Option<CommunityMatcher>,
    /// Absent where a rule matches whatever the prefix.
    prefixes: Option<BTreeSet<PrefixRange>>,
}

/// Where the routes of a filter go. It decides what comes before the filter's own rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Routes of the kernel become BGP routes of the VRF.
    Redistribution,
    /// From a workload into the VRF. Communities that mean something to the fabric or to this node are taken off first.
    WorkloadImport,
    /// From the VRF to a workload. Networks of the node alone do not pass.
    WorkloadExport(IpFamily),
    /// From one VRF into another. Networks of the node alone do not pass, and routes keep the mark of the fabric.
    Leak,
    /// From the VRF into the fabric. Neither networks of the node alone nor routes from the fabric pass.
    FabricExport,
}

impl Build<'_> {
    /// The route map of a filter, under this name. What cannot be done is refused and left out.
    pub(super) fn filter(
        &mut self,
        path: &str,
        name: Name,
        filter: &Filter,
        purpose: Purpose,
    ) -> Name {
        let Filter {
            items,
            default_action,
        } = filter;
        match purpose {
            Purpose::Leak => self.refuse_unmarking(path, filter),
            Purpose::WorkloadImport => self.refuse_scrubbed(path, filter),
            Purpose::Redistribution | Purpose::WorkloadExport(_) | Purpose::FabricExport => {}
        }
        let mut map = self.head(purpose);
        let mut number = 0_u16;
        for group in self.groups(&path, items) {
            let Some(next) = number.checked_add(STEP).filter(|next| *next < LAST - STEP) else {
                self.refuse(&path, "has more rules than FRR has numbers for");
                break;
            };
            number = next;
            let entry = self.entry(&path, group.action, group.community);
            let Some(prefixes) = group.prefixes else {
                map.insert(number, entry);
                continue;
            };
            for (family, number) in [(IpFamily::V4, number), (IpFamily::V6, number + V6)] {
                let prefixes = prefixes.iter().copied();
                let members: Vec<PrefixRange> = prefixes
                    .filter(|range| IpFamily::of(range.prefix()) == family)
                    .collect();
                if members.is_empty() {
                    continue;
                }
                let list = (family, names::entry_list(&name, number));
                let entry = RouteMapEntry {
                    match_prefix_list: Some(list.clone()),
                    ..entry.clone()
                };
                map.insert(number, entry);
                let members = permits(members);
                self.config.prefix_lists.insert(list, members);
            }
        }
        match default_action.kind {
            ActionType::Accept | ActionType::Reject => {
                map.insert(LAST, self.entry(&path, default_action, None));
            }
            ActionType::Next => {
                let path = format!("{path}.defaultAction.type");
                self.refuse(
                    &path,
                    "next has no effect after the last rule; use accept or reject",
                );
            }
        }
        self.config.route_maps.insert(name.clone(), map);
        name
    }

    fn groups<'f>(&mut self, path: &dyn fmt::Display, items: &'f [FilterItem]) -> Vec<Group<'f>> {
        let mut groups: Vec<Group<'f>> = Vec::new();
        for (position, FilterItem { matcher, action }) in items.iter().enumerate() {
            let Matcher {
                prefix,
                bgp_community,
            } = matcher;
            let range = match prefix {
                None => None,
                Some(PrefixMatcher { prefix, ge, le }) => {
                    let range = PrefixRange::new(*prefix, *ge, *le);
                    if range.is_none() {
                        let path = format!("{path}.items[{position}].matcher.prefix");
                        let why = "needs prefix length ≤ ge ≤ le ≤ length of an address";
                        self.refuse(&path, why);
                        continue;
                    }
                    range
                }
            };
            match (groups.last_mut(), range) {
                (
                    Some(Group {
                        action: same,
                        community,
                        prefixes: Some(prefixes),
                    }),
                    Some(range),
                ) if *same == action && *community == *bgp_community => {
                    prefixes.insert(range);
                }
                _ => groups.push(Group {
                    action,
                    community: *bgp_community,
                    prefixes: range.map(|range| BTreeSet::from([range])),
                }),
            }
        }
        groups
    }

    /// An entry without its prefix list.
    fn entry(
        &mut self,
        path: &dyn fmt::Display,
        action: &Action,
        community: Option<CommunityMatcher>,
    ) -> RouteMapEntry {
        let Action { kind, modify_route } = action;
        let mut entry = RouteMapEntry::new(match kind {
            ActionType::Accept | ActionType::Next => RouteMapAction::Permit,
            ActionType::Reject => RouteMapAction::Deny,
        });
        entry.on_match_next = *kind == ActionType::Next;
        if let Some(CommunityMatcher {
            community,
            exact_match,
        }) = community
        {
            let list = self.community_list(path, &BTreeSet::from([community]));
            let matcher = Some(MatchCommunity {
                list,
                exact: exact_match,
            });
            match community {
                Community::Standard(..) => entry.match_community = matcher,
                Community::Large(..) => entry.match_large_community = matcher,
            }
        }
        // A rejected route is not changed.
        if let (Some(modify), ActionType::Accept | ActionType::Next) = (modify_route, kind) {
            self.modify(path, &mut entry, modify);
        }
        entry
    }

    /// Standard and large communities are two attributes, and each is changed by what is said of its own kind;
    /// `removeAllCommunities` applies to both. Removing comes before adding, so what is added is never removed: that
    /// also makes FRR's own order of the lines of no account.
    fn modify(&mut self, path: &dyn fmt::Display, entry: &mut RouteMapEntry, modify: &ModifyRoute) {
        let ModifyRoute {
            add_communities,
            additive_communities,
            remove_communities,
            remove_all_communities,
        } = modify;
        let all = remove_all_communities.unwrap_or_default();
        let additive = additive_communities.unwrap_or_default();
        for large in [false, true] {
            let kind = |community: &&Community| matches!(community, Community::Large(..)) == large;
            let add: BTreeSet<Community> = add_communities.iter().filter(kind).copied().collect();
            let remove: BTreeSet<Community> = remove_communities
                .iter()
                .filter(kind)
                .filter(|community| !add.contains(community))
                .copied()
                .collect();
            let set = match (add.is_empty(), all) {
                (true, true) => Some(SetCommunity::None),
                (true, false) => None,
                (false, false) if additive => Some(SetCommunity::Add(add)),
                (false, _) => Some(SetCommunity::Replace(add)),
            };
            let keeps = matches!(set, None | Some(SetCommunity::Add(_)));
            let delete = (keeps && !remove.is_empty()).then(|| self.community_list(path, &remove));
            if large {
                (entry.set_large_community, entry.delete_large_communities) = (set, delete);
            } else {
                (entry.set_community, entry.delete_communities) = (set, delete);
            }
        }
    }

    /// The list of these communities, all of one kind. It is named by its content and so never changes.
    pub(super) fn community_list(
        &mut self,
        path: &dyn fmt::Display,
        communities: &BTreeSet<Community>,
    ) -> Name {
        let words: Vec<String> = communities.iter().map(ToString::to_string).collect();
        let text = words.join("_");
        let name = if words.len() <= 3 {
            Name::of(format_args!("{text}"))
        } else {
            let (first, count) = (words.first().map_or("", String::as_str), words.len());
            Name::of(format_args!("{first}_{count}_{:08x}", stable_number(&text)))
        };
        if self.features.internet_community && communities.contains(&Community::Standard(0, 0)) {
            let why = format!(
                "FRR {} takes 0:0 in a list for every community",
                self.version
            );
            self.refuse(path, why);
        }
        let list = (1_u32..)
            .map(|n| n * 5)
            .zip(communities.iter().copied())
            .collect();
        match communities.first() {
            Some(Community::Large(..)) => {
                self.config.large_community_lists.insert(name.clone(), list);
            }
            _ => {
                self.config.community_lists.insert(name.clone(), list);
            }
        }
        name
    }

    /// The route map of everything a VRF takes over from others: one entry for each source, which calls the filter of
    /// that source. Sources exclude one another, so entries are numbered by the source's name.
    pub(super) fn import_map(&mut self, name: Name, filters: &[(IfName, Name)]) -> Name {
        let sources: BTreeSet<String> = filters.iter().map(|(vrf, _)| vrf.to_string()).collect();
        let numbers = number_by_content(sources, u32::from(LAST) - 1);
        let map = numbers
            .into_iter()
            .filter_map(|(number, source)| {
                let (vrf, filter) = filters.iter().find(|(vrf, _)| vrf.as_str() == source)?;
                let entry = RouteMapEntry {
                    match_source_vrf: Some(vrf.clone()),
                    call: Some(filter.clone()),
                    ..RouteMapEntry::new(RouteMapAction::Permit)
                };
                Some((u16::try_from(number).ok()?, entry))
            })
            .collect();
        self.config.route_maps.insert(name.clone(), map);
        name
    }
}
