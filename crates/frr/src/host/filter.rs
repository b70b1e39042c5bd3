//! What a neighbor gets and what is accepted from it → route maps with their prefix lists.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    tcaas::node_network_config::{
        AcceptedPrefix, HostAdvertise, HostNeighbor, HostReceive, MarkedPrefixes, PreferredPrefixes,
    },
    value::{Community, MatchLength, Prefix},
};

use super::{
    Build,
    names::{ANY, DECIDES, DENIES, FIRST_GENERATED_RULE, LAST_PROPERTY, Names},
};
use crate::{
    config::{
        IpFamily, Name, PrefixList, PrefixRange, PrefixRule, RouteMap, RouteMapAction,
        RouteMapEntry, SetCommunity,
    },
    desired::number_by_content,
};

impl Build<'_> {
    /// The filters of a neighbor. They are there for every neighbor, whatever its families: raw configuration may refer to them.
    pub(super) fn filters(
        &mut self,
        names: &Names,
        neighbor: &HostNeighbor,
        blocked: &BTreeSet<Prefix>,
    ) {
        let out = self.out(names, &neighbor.advertise);
        self.route_map(names.route_map_out(), out);
        let map = self.accept(names, &neighbor.receive, blocked);
        self.route_map(names.route_map_in(), map);
    }

    fn out(&mut self, names: &Names, advertise: &HostAdvertise) -> RouteMap {
        let HostAdvertise {
            prefixes,
            next_hop_ipv4,
            next_hop_ipv6,
            local_preferences,
            communities,
        } = advertise;
        let mut properties: BTreeMap<Name, RouteMapEntry> = BTreeMap::new();
        for family in IpFamily::BOTH {
            for PreferredPrefixes {
                local_preference,
                prefixes,
            } in local_preferences
            {
                let name = names.preferred(local_preference.get(), family);
                if let Some(entry) = self.property(&name, family, prefixes) {
                    let entry = RouteMapEntry {
                        set_local_preference: Some(local_preference.get()),
                        ..entry
                    };
                    properties.insert(name, entry);
                }
            }
            for MarkedPrefixes {
                community,
                prefixes,
            } in communities
            {
                let name = names.marked(*community, family);
                let Some(mut entry) = self.property(&name, family, prefixes) else {
                    continue;
                };
                let community = community.community();
                let added = Some(SetCommunity::Add([community].into()));
                match community {
                    Community::Standard(..) => entry.set_community = added,
                    Community::Large(..) => entry.set_large_community = added,
                }
                properties.insert(name, entry);
            }
        }
        let mut map = self.numbered_properties(names, &properties);
        for (family, number) in DECIDES {
            let name = names.allowed_out(family);
            let of_family = ranges_of(prefixes, family);
            let mut list = rules(of_family.filter_map(|it| PrefixRange::new(it, None, None)));
            if list.is_empty() {
                list.insert(ANY, PrefixRule::any(RouteMapAction::Deny));
            }
            let mut entry = self.matching(RouteMapAction::Permit, family, name, list);
            match family {
                IpFamily::V4 => entry.set_ipv4_next_hop = *next_hop_ipv4,
                IpFamily::V6 => entry.set_ipv6_next_hop = *next_hop_ipv6,
            }
            map.insert(number, entry);
        }
        map
    }

    /// The list of the prefixes that get a property, and the entry that matches them; none for a family without prefixes.
    fn property(
        &mut self,
        name: &Name,
        family: IpFamily,
        prefixes: &BTreeSet<Prefix>,
    ) -> Option<RouteMapEntry> {
        let of_family = ranges_of(prefixes, family);
        let list = rules(of_family.filter_map(|it| PrefixRange::new(it, None, None)));
        if list.is_empty() {
            return None;
        }
        let entry = self.matching(RouteMapAction::Permit, family, name.clone(), list);
        Some(RouteMapEntry {
            on_match_next: true,
            ..entry
        })
    }

    fn accept(
        &mut self,
        names: &Names,
        receive: &HostReceive,
        blocked: &BTreeSet<Prefix>,
    ) -> RouteMap {
        let HostReceive { all, prefixes } = receive;
        let mut map = RouteMap::new();
        for (family, number) in DENIES {
            let parts = ranges_of(blocked, family);
            let parts = rules(
                parts.filter_map(|it| PrefixRange::new(it, None, Some(IpFamily::of(it).bits()))),
            );
            if !parts.is_empty() {
                let name = names.denied_in();
                let entry = self.matching(RouteMapAction::Deny, family, name, parts);
                map.insert(number, entry);
            }
        }
        for (family, number) in DECIDES {
            let accepted = prefixes.iter().filter_map(|accepted| {
                let AcceptedPrefix { prefix, ge, le } = *accepted;
                let (ge, le) = (ge.map(MatchLength::get), le.map(MatchLength::get));
                PrefixRange::new(prefix, ge, le).filter(|_| IpFamily::of(prefix) == family)
            });
            let list = if *all {
                PrefixList::from([(ANY, PrefixRule::any(RouteMapAction::Permit))])
            } else {
                let mut list = rules(accepted);
                if list.is_empty() {
                    list.insert(ANY, PrefixRule::any(RouteMapAction::Deny));
                }
                list
            };
            let entry = self.matching(RouteMapAction::Permit, family, names.allowed_in(), list);
            map.insert(number, entry);
        }
        map
    }

    /// The order of properties is of no account: each sets something else, and the next entry is asked after each.
    fn numbered_properties(
        &mut self,
        names: &Names,
        properties: &BTreeMap<Name, RouteMapEntry>,
    ) -> RouteMap {
        let numbers = number_by_content(properties.keys().cloned(), LAST_PROPERTY.into());
        if numbers.len() < properties.len() {
            let why = format!(
                "{} has {} local preferences and communities, by family of addresses, and those after {LAST_PROPERTY} are left out: use fewer",
                names.route_map_out(),
                properties.len()
            );
            self.unsupported_of(names.peer(), why);
        }
        let entries = numbers.into_iter().filter_map(|(number, name)| {
            let entry = properties.get(&name)?.clone();
            Some((u16::try_from(number).ok()?, entry))
        });
        entries.collect()
    }

    /// A prefix list, and an entry that matches it.
    fn matching(
        &mut self,
        action: RouteMapAction,
        family: IpFamily,
        name: Name,
        list: PrefixList,
    ) -> RouteMapEntry {
        let key = (family, name);
        self.generated.lists.insert(key.clone());
        self.config.prefix_lists.insert(key.clone(), list);
        RouteMapEntry {
            match_prefix_list: Some(key),
            ..RouteMapEntry::new(action)
        }
    }

    fn route_map(&mut self, name: Name, map: RouteMap) {
        self.generated.maps.insert(name.clone());
        self.config.route_maps.insert(name, map);
    }
}

fn ranges_of(prefixes: &BTreeSet<Prefix>, family: IpFamily) -> impl Iterator<Item = Prefix> {
    let of_family = move |prefix: &Prefix| IpFamily::of(*prefix) == family;
    prefixes.iter().copied().filter(of_family)
}

/// Rules that permit these ranges. A number depends on nothing but the range, unless two ranges meet on it.
fn rules(ranges: impl Iterator<Item = PrefixRange>) -> PrefixList {
    let free = ANY - FIRST_GENERATED_RULE - 1;
    let ranges: BTreeSet<PrefixRange> = ranges.collect();
    let numbered = number_by_content(ranges, free).into_iter();
    numbered
        .map(|(number, range)| (FIRST_GENERATED_RULE + number, PrefixRule::permit(range)))
        .collect()
}
