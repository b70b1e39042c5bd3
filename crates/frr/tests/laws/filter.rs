//! Lists and route maps.

use std::collections::BTreeSet;

use api::value::Community;
use proptest::{
    collection::{btree_map, btree_set, vec},
    option,
    prelude::*,
    sample::select,
};
use selvedge_frr::config::{
    CommunityList, IpFamily, MatchCommunity, PrefixList, PrefixRange, PrefixRule, RouteMap,
    RouteMapAction, RouteMapEntry, SetCommunity,
};

use super::{asn, name, one, vrf_name};

pub(super) fn prefix_list(family: IpFamily) -> impl Strategy<Value = PrefixList> {
    let prefixes: &[&str] = match family {
        IpFamily::V4 => &["10.0.0.0/8", "0.0.0.0/0", "192.0.2.1/32"],
        IpFamily::V6 => &["2001:db8::/32", "::/0", "2001:db8::1/128"],
    };
    let prefixes: Vec<_> = prefixes
        .iter()
        .map(|prefix| prefix.parse().unwrap())
        .collect();
    let range = (
        select(prefixes),
        option::of(0_u8..=128),
        option::of(0_u8..=128),
    );
    let range = range.prop_filter_map("a range", |(prefix, ge, le)| {
        PrefixRange::new(prefix, ge, le).or_else(|| PrefixRange::new(prefix, None, None))
    });
    let action = prop_oneof![Just(RouteMapAction::Permit), Just(RouteMapAction::Deny)];
    let rule = (action, option::weighted(0.9, range));
    let rule = rule.prop_map(|(action, range)| PrefixRule { action, range });
    // A value stands in a list once, at any number.
    (btree_set(rule, 1..3), 1_u32..3).prop_map(|(set, first)| (first..).zip(set).collect())
}

fn communities(large: bool) -> impl Strategy<Value = BTreeSet<Community>> {
    let some: &[&str] = if large {
        &["1:2:3", "4:5:6"]
    } else {
        &["1:2", "65535:65281", "3:4"]
    };
    let some: Vec<Community> = some.iter().map(|text| text.parse().unwrap()).collect();
    btree_set(select(some), 1..3)
}

pub(super) fn community_list(large: bool) -> impl Strategy<Value = CommunityList> {
    (communities(large), 1_u32..3).prop_map(|(set, first)| (first..).zip(set).collect())
}

fn set_community(large: bool) -> impl Strategy<Value = Option<SetCommunity>> {
    option::of(prop_oneof![
        Just(SetCommunity::None),
        communities(large).prop_map(SetCommunity::Replace),
        communities(large).prop_map(SetCommunity::Add),
    ])
}

fn match_community() -> impl Strategy<Value = Option<MatchCommunity>> {
    option::of((name(), any::<bool>()).prop_map(|(list, exact)| MatchCommunity { list, exact }))
}

pub(super) fn route_map() -> impl Strategy<Value = RouteMap> {
    let action = prop_oneof![Just(RouteMapAction::Permit), Just(RouteMapAction::Deny)];
    let family = select(IpFamily::BOTH.to_vec());
    let matches = (
        option::of((family, name())),
        match_community(),
        match_community(),
        option::of(vrf_name()),
    );
    let sets = (
        set_community(false),
        set_community(true),
        option::of(name()),
        option::of(name()),
        any::<bool>(),
    );
    let more = (
        option::of(1_u32..3),
        option::of(1_u32..3),
        option::of(one(&["192.0.2.1", "192.0.2.2"])),
        option::of(one(&["2001:db8::1", "2001:db8::2"])),
        vec(asn(), 0..3),
    );
    let entry = (
        action,
        matches,
        option::of(name()),
        any::<bool>(),
        (sets, more),
    );
    let entry =
        entry.prop_map(
            |(action, matches, call, on_match_next, (sets, more))| RouteMapEntry {
                action,
                match_prefix_list: matches.0,
                match_community: matches.1,
                match_large_community: matches.2,
                match_source_vrf: matches.3,
                call,
                // A route that is denied is asked about no further.
                on_match_next: on_match_next && action == RouteMapAction::Permit,
                set_community: sets.0,
                set_large_community: sets.1,
                set_local_preference: more.0,
                set_metric: more.1,
                set_ipv4_next_hop: more.2,
                set_ipv6_next_hop: more.3,
                prepend: more.4,
                delete_communities: sets.2,
                delete_large_communities: sets.3,
                delete_extended_communities: sets.4,
            },
        );
    btree_map(1_u16..4, entry, 1..3)
}
