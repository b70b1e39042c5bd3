//! Regressions of other projects: communities, `next`, lists that do not exist, timers, hops, sessions without filters.

use std::collections::BTreeSet;

use super::*;
use crate::config::{IpFamily, RouteMap, SetCommunity};

/// The filter of what the VRF announces, with these rules.
fn export(items: &Value) -> FrrConfig {
    made(&node(&json!({
        "evpnExportFilter": {"items": items, "defaultAction": {"type": "reject"}},
    })))
}

/// The entries of that filter that are made of its rules.
fn rules(config: &FrrConfig) -> Vec<RouteMapEntry> {
    let map: &RouteMap = &config.route_maps[&"red:evpn".parse::<Name>().unwrap()];
    let rules = map.range(10..u16::MAX);
    rules.map(|(_, entry)| entry.clone()).collect()
}

/// The entry of a rule that does this.
fn rule(action: &Value) -> (FrrConfig, RouteMapEntry) {
    let config = export(&json!([{"matcher": {}, "action": action}]));
    let [entry] = rules(&config).try_into().unwrap();
    (config, entry)
}

fn communities<const N: usize>(texts: [&str; N]) -> BTreeSet<Community> {
    texts.map(|text| text.parse().unwrap()).into()
}

#[test]
fn communities_are_matched_added_replaced_and_removed_as_the_rule_says() {
    for exact in [false, true] {
        let matcher = json!({"bgpCommunity": {"community": "65000:1", "exactMatch": exact}});
        let config = export(&json!([{"matcher": matcher, "action": {"type": "accept"}}]));
        let matched = rules(&config)[0].match_community.clone().unwrap();
        assert_eq!(matched.exact, exact);
        let list: BTreeSet<_> = config.community_lists[&matched.list]
            .values()
            .copied()
            .collect();
        assert_eq!(list, communities(["65000:1"]));
    }

    let modify = |modify: Value| rule(&json!({"type": "accept", "modifyRoute": modify}));
    let added = Some(SetCommunity::Add(communities(["65000:1"])));
    let replaced = Some(SetCommunity::Replace(communities(["65000:1"])));
    for (how, expected) in [
        (
            json!({"addCommunities": ["65000:1"], "additiveCommunities": true}),
            &added,
        ),
        (
            json!({"addCommunities": ["65000:1"], "additiveCommunities": false}),
            &replaced,
        ),
        (json!({"addCommunities": ["65000:1"]}), &replaced),
        (
            json!({"removeAllCommunities": true}),
            &Some(SetCommunity::None),
        ),
        (json!({"removeAllCommunities": false}), &None),
    ] {
        let (_, entry) = modify(how.clone());
        assert_eq!(entry.set_community, *expected, "{how}");
        assert_eq!(entry.delete_communities, None, "{how}");
    }
    let (config, entry) = modify(json!({"removeCommunities": ["65000:2", "65000:1:3"]}));
    assert_eq!(
        (entry.set_community, entry.set_large_community),
        (None, None)
    );
    let standard = &config.community_lists[&entry.delete_communities.unwrap()];
    let large = &config.large_community_lists[&entry.delete_large_communities.unwrap()];
    let all = standard.values().chain(large.values()).copied();
    assert_eq!(
        all.collect::<BTreeSet<_>>(),
        communities(["65000:2", "65000:1:3"])
    );
    // What one rule both adds and removes is there afterwards.
    let (_, entry) = modify(json!({
        "addCommunities": ["65000:1"], "additiveCommunities": true, "removeCommunities": ["65000:1"],
    }));
    assert_eq!(
        (entry.set_community, entry.delete_communities),
        (added, None)
    );
}

#[test]
fn next_goes_on_with_the_next_entry_with_and_without_a_change() {
    let (_, plain) = rule(&json!({"type": "next"}));
    assert!(plain.on_match_next);
    let modify = json!({"addCommunities": ["65000:1"], "additiveCommunities": true});
    let (_, changing) = rule(&json!({"type": "next", "modifyRoute": modify}));
    assert!(changing.on_match_next);
    assert!(changing.set_community.is_some());
    for entry in [plain, changing] {
        assert_eq!(entry.action, RouteMapAction::Permit, "a deny would end it");
    }
    for kind in ["accept", "reject"] {
        assert!(!rule(&json!({"type": kind})).1.on_match_next);
    }
}

#[test]
fn everything_that_a_route_map_or_a_session_names_exists_in_its_kind() {
    let mut spec = permissive();
    let modify = json!({"removeCommunities": ["65000:2", "65000:1:3"]});
    let items = json!([
        {"matcher": {"prefix": {"prefix": "10.0.0.0/8"}}, "action": {"type": "accept", "modifyRoute": modify}},
        {"matcher": {"prefix": {"prefix": "fd00::/16"}}, "action": {"type": "next"}},
        {"matcher": {"bgpCommunity": {"community": "65000:1:2", "exactMatch": false}}, "action": {"type": "reject"}},
        {"matcher": {"bgpCommunity": {"community": "65000:1", "exactMatch": true}}, "action": {"type": "reject"}},
    ]);
    let filter = json!({"items": items, "defaultAction": {"type": "accept"}});
    red(&mut spec).evpn_export_filter = Some(serde_json::from_value(filter).unwrap());
    let config = made(&spec);

    let (mut lists, mut maps) = (0, Vec::new());
    for entry in config.route_maps.values().flat_map(BTreeMap::values) {
        if let Some(list) = &entry.match_prefix_list {
            assert!(config.prefix_lists.contains_key(list), "{list:?}");
            lists += 1;
        }
        let standard = entry.match_community.iter().map(|it| &it.list);
        for list in standard.chain(&entry.delete_communities) {
            assert!(config.community_lists.contains_key(list), "{list:?}");
            lists += 1;
        }
        let large = entry.match_large_community.iter().map(|it| &it.list);
        for list in large.chain(&entry.delete_large_communities) {
            assert!(config.large_community_lists.contains_key(list), "{list:?}");
            lists += 1;
        }
        maps.extend(entry.call.clone());
    }
    for bgp in config.bgp.values() {
        let unicast = IpFamily::BOTH.map(|family| match family {
            IpFamily::V4 => &bgp.ipv4.neighbors,
            IpFamily::V6 => &bgp.ipv6.neighbors,
        });
        for families in unicast.into_iter().chain([&bgp.evpn.neighbors]) {
            for family in families.values() {
                maps.extend(family.route_map_in.clone());
                maps.extend(family.route_map_out.clone());
            }
        }
    }
    assert!(lists >= 8 && maps.len() >= 10, "{lists} lists, {maps:?}");
    for map in maps {
        assert!(config.route_maps.contains_key(&map), "{map:?}");
    }
}

/// The session with a workload that has these fields besides the needed ones.
fn session(fields: &Value) -> (FrrConfig, crate::config::Neighbor) {
    let mut peer = json!({"address": "192.0.2.9", "remoteAsn": 65000, "ipv4": {}});
    let fields = fields.as_object().unwrap().clone();
    peer.as_object_mut().unwrap().extend(fields);
    let config = made(&node(&json!({"bgpPeers": [peer]})));
    let vrf = Some("red".parse().unwrap());
    let [session] = config.bgp[&vrf].neighbors.values().collect::<Vec<_>>()[..] else {
        panic!("there is one session");
    };
    let session = session.clone();
    (config, session)
}

#[test]
fn a_timer_that_is_set_alone_has_an_effect() {
    let timers = |fields: Value| session(&fields).1.timers;
    let both = timers(json!({"keepaliveTime": "10s", "holdTime": "30s"}));
    assert!(both.is_some());
    assert_eq!(timers(json!({"holdTime": "30s"})), both);
    assert_eq!(timers(json!({"keepaliveTime": "10s"})), both);
    assert_eq!(timers(json!({})), None);
}

#[test]
fn multihop_is_multihop_and_no_check_of_hops() {
    let (config, session) = session(&json!({"multihop": 4}));
    assert_eq!(session.ebgp_multihop, Some(4));
    let text = crate::print(&config, FrrVersion::NEWEST, "r");
    assert!(text.contains("ebgp-multihop 4"), "{text}");
    assert!(!text.contains("ttl-security"), "{text}");
}

#[test]
fn a_session_of_a_user_without_filters_exchanges_nothing() {
    let (config, _) = session(&json!({}));
    let bgp = &config.bgp[&Some("red".parse().unwrap())];
    let [family] = bgp.ipv4.neighbors.values().collect::<Vec<_>>()[..] else {
        panic!("there is one session");
    };
    for map in [&family.route_map_in, &family.route_map_out] {
        let map = &config.route_maps[map.as_ref().unwrap()];
        let permits = |entry: &RouteMapEntry| entry.action == RouteMapAction::Permit;
        assert!(!map.values().any(permits), "{map:?}");
    }
}

#[test]
fn every_name_in_the_text_is_one_of_the_config_or_of_this_program() {
    let config = made(&permissive());
    let known = [
        "red",
        "blue",
        "fabric",
        "node-only",
        "nothing",
        "passthrough",
        "well-known",
        "listen",
    ];
    let names = config.route_maps.keys();
    let lists = config.prefix_lists.keys().map(|(_, name)| name);
    let communities = config
        .community_lists
        .keys()
        .chain(config.large_community_lists.keys());
    for name in names.chain(lists).chain(communities) {
        let first = name.as_str().split([':', '-']).next().unwrap_or_default();
        let is_number = name
            .as_str()
            .starts_with(|letter: char| letter.is_ascii_digit());
        let is_known = known
            .iter()
            .any(|word| name.as_str() == *word || first == *word);
        assert!(is_number || is_known, "{name:?} has no origin");
    }
    let vrfs: Vec<&str> = config.vrfs.keys().map(AsRef::as_ref).collect();
    assert_eq!(vrfs, ["blue", "red"]);
}
