mod host_session;
mod regressions;

use api::tcaas::node_network_config::{self as nnc, NodeNetworkConfigSpec};
use serde_json::{Value, json};

use super::*;
use crate::{
    config::{Peer, UpdateSource},
    diff,
};

/// The node's VRF, to be changed.
fn red(spec: &mut NodeNetworkConfigSpec) -> &mut Vrf {
    Arc::make_mut(spec.fabric_vrfs.get_mut("red").unwrap())
}

/// A node with one VRF that has these fields besides the needed ones.
fn node(fields: &Value) -> NodeNetworkConfigSpec {
    let mut vrf = json!({"table": 1, "devices": {"vrf": "red"}, "mtu": 9000, "vni": 7});
    vrf.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    serde_json::from_value(json!({
        "revision": "r",
        "underlay": {
            "namespace": "selvedge", "asn": 64512, "routerId": "192.0.2.7", "vtep": "192.0.2.7",
            "routerMac": "02:00:00:00:00:01", "trunk": {"host": "hbn", "router": "hbn", "mtu": 9000},
        },
        "fabricVRFs": {"red": vrf},
    }))
    .unwrap()
}

fn made(spec: &NodeNetworkConfigSpec) -> FrrConfig {
    desired(spec, &Secrets::new(), FrrVersion::NEWEST).unwrap()
}

fn refused(spec: &NodeNetworkConfigSpec, version: FrrVersion) -> Vec<String> {
    desired(spec, &Secrets::new(), version)
        .unwrap_err()
        .into_iter()
        .map(|refusal| refusal.path)
        .collect()
}

fn accept(prefixes: &[&str]) -> Value {
    let items: Vec<Value> = prefixes
        .iter()
        .map(|prefix| json!({"matcher": {"prefix": {"prefix": prefix}}, "action": {"type": "accept"}}))
        .collect();
    json!({"evpnExportFilter": {"items": items, "defaultAction": {"type": "reject"}}})
}

#[test]
fn a_prefix_is_one_line_wherever_it_stands_in_its_filter() {
    let few = made(&node(&accept(&["10.0.0.0/24", "10.0.3.0/24"])));
    for more in [
        ["10.0.9.0/24", "10.0.0.0/24", "10.0.3.0/24"],
        ["10.0.0.0/24", "10.0.9.0/24", "10.0.3.0/24"],
        ["10.0.0.0/24", "10.0.3.0/24", "10.0.9.0/24"],
    ] {
        let more = made(&node(&accept(&more)));
        assert_eq!(diff(&few, &more).n_lines(), 1);
        assert_eq!(diff(&more, &few).n_lines(), 1);
    }
}

#[test]
fn numbers_by_content_are_distinct_even_when_two_texts_meet() {
    let numbered = number_by_content(["a", "b", "c", "d", "e"], 5);
    assert_eq!(numbered.len(), 5);
    assert!(numbered.keys().all(|number| (1..=5).contains(number)));
}

#[test]
fn what_the_version_cannot_do_is_refused_with_its_path() {
    let spec = node(&json!({
        "evpnImportRouteTargets": ["*:7"],
        "staticRoutes": [{"prefix": "10.0.0.0/8", "nextHop": {"address": "192.0.2.9"}, "bfdProfile": {"minInterval": 100}}],
    }));
    assert_eq!(
        refused(&spec, FrrVersion::V8_4),
        [
            "fabricVRFs[red].staticRoutes[0].bfdProfile",
            "fabricVRFs[red].evpnImportRouteTargets"
        ]
    );
    made(&spec);
    let mut spec = node(&json!({}));
    spec.underlay.as_mut().unwrap().vtep = Some("2001:db8::7".parse().unwrap());
    assert_eq!(refused(&spec, FrrVersion::V10_3), ["underlay.vtep"]);
    made(&spec);
}

#[test]
fn everything_that_cannot_be_done_is_refused_at_once() {
    let reject = json!({"defaultAction": {"type": "reject"}});
    let spec = node(&json!({
        "evpnExportFilter": {
            "items": [{"matcher": {"prefix": {"prefix": "10.0.0.0/16", "ge": 8}}, "action": {"type": "accept"}}],
            "defaultAction": {"type": "next"},
        },
        "vrfImports": [{"fromVrf": "red", "filter": reject}, {"fromVrf": "default", "filter": reject}],
        "staticRoutes": [
            {"prefix": "10.0.0.0/8"},
            {"prefix": "10.0.0.0/8", "nextHop": {"address": "192.0.2.9"}},
            {"prefix": "10.0.0.0/8", "nextHop": {"address": "2001:db8::9"}},
            {"prefix": "11.0.0.0/8", "nextHop": {}},
        ],
        "bgpPeers": [
            {"remoteAsn": 1, "ipv4": {}},
            {"address": "192.0.2.8", "remoteAsn": 1},
            {"address": "192.0.2.9", "remoteAsn": 1, "ipv4": {"maxPrefixes": 0}, "holdTime": "2s",
             "multihop": 0, "passwordSecret": {"name": "s"}, "bfdProfile": {"minInterval": 5}},
        ],
    }));
    assert_eq!(
        refused(&spec, FrrVersion::NEWEST),
        [
            "fabricVRFs[red].staticRoutes[2].nextHop.address",
            "fabricVRFs[red].staticRoutes[3].nextHop",
            "fabricVRFs[red].staticRoutes",
            "fabricVRFs[red].bgpPeers[0]",
            "fabricVRFs[red].bgpPeers[1]",
            "fabricVRFs[red].bgpPeers[2].multihop",
            "fabricVRFs[red].bgpPeers[2].holdTime",
            "fabricVRFs[red].bgpPeers[2].bfdProfile.minInterval",
            "fabricVRFs[red].bgpPeers[2].passwordSecret",
            "fabricVRFs[red].bgpPeers[2].ipv4.maxPrefixes",
            "fabricVRFs[red].vrfImports[0].fromVrf",
            "fabricVRFs[red].vrfImports[1].fromVrf",
            "fabricVRFs[red].evpnExportFilter.items[0].matcher.prefix",
            "fabricVRFs[red].evpnExportFilter.defaultAction.type",
        ]
    );
}

#[test]
fn a_newer_contract_is_refused() {
    let mut spec = node(&json!({}));
    spec.contract_version = CONTRACT_VERSION + 1;
    assert_eq!(refused(&spec, FrrVersion::NEWEST), ["contractVersion"]);
}

#[test]
fn a_node_without_anything_has_an_empty_config() {
    let config = made(&NodeNetworkConfigSpec {
        contract_version: CONTRACT_VERSION,
        ..NodeNetworkConfigSpec::default()
    });
    assert_eq!(
        config,
        FrrConfig {
            resolve_via_default: true,
            ..FrrConfig::default()
        }
    );
    let mut orphan = node(&json!({}));
    orphan.underlay = None;
    assert_eq!(refused(&orphan, FrrVersion::NEWEST), ["underlay"]);
}

#[test]
fn the_first_vni_resets_no_session() {
    let neighbor = json!({"address": "192.0.2.1", "remoteAs": {"external": true}, "addressFamilies": ["ipv4Unicast", "l2vpnEvpn"]});
    let mut spec = node(&json!({}));
    spec.underlay.as_mut().unwrap().neighbors = vec![serde_json::from_value(neighbor).unwrap()];
    let with = made(&spec);
    spec.fabric_vrfs.clear();
    let change = diff(&made(&spec), &with);
    assert!(!change.is_empty());
    assert_eq!(change.resets.len(), 0);
}

/// What a route map decides on a route, by the rules of FRR: the first entry that matches decides, and none means no.
fn passes(config: &FrrConfig, map: &str, prefix: &str, large: &[&str]) -> bool {
    let prefix: api::value::Prefix = prefix.parse().unwrap();
    let in_list = |(family, name): &(crate::config::IpFamily, Name)| {
        let list = &config.prefix_lists[&(*family, name.clone())];
        list.values().filter_map(|rule| rule.range).any(|range| {
            let text = range.to_string();
            let mut longest = text
                .split(" le ")
                .skip(1)
                .map(|le| le.parse::<u8>().unwrap());
            let outer = range.prefix().net();
            let below = longest
                .next()
                .is_some_and(|le| prefix.net().prefix_len() <= le);
            outer == prefix.net() || (below && outer.contains(&prefix.net()))
        })
    };
    let carries = |matcher: &crate::config::MatchCommunity| {
        let list = &config.large_community_lists[&matcher.list];
        list.values()
            .any(|one| large.contains(&one.to_string().as_str()))
    };
    let map = &config.route_maps[&map.parse::<Name>().unwrap()];
    let decides = |entry: &&RouteMapEntry| {
        entry.match_prefix_list.as_ref().is_none_or(in_list)
            && entry.match_large_community.as_ref().is_none_or(carries)
            && !entry.on_match_next
    };
    let entry = map.values().find(decides);
    entry.is_some_and(|entry| entry.action == RouteMapAction::Permit)
}

/// A node with two leaves, a VRF that permits everything everywhere, and a workload in it.
fn permissive() -> NodeNetworkConfigSpec {
    let everything = json!({"defaultAction": {"type": "accept"}});
    let leaf = |address: &str| {
        json!({"address": address, "remoteAs": {"external": true}, "allowOwnAs": true,
            "addressFamilies": ["ipv4Unicast", "ipv6Unicast", "l2vpnEvpn"]})
    };
    let mut spec = node(&json!({
        "evpnExportFilter": everything,
        "vrfImports": [{"fromVrf": "blue", "filter": everything}],
        "bgpPeers": [{"listenRange": "198.51.100.0/24", "remoteAsn": 65000,
            "ipv4": {"importFilter": everything, "exportFilter": everything}}],
    }));
    let blue = json!({"table": 2, "devices": {"vrf": "blue"}, "mtu": 9000, "vni": 8});
    let blue = serde_json::from_value(blue).unwrap();
    spec.fabric_vrfs.insert("blue".to_owned(), blue);
    let underlay = spec.underlay.as_mut().unwrap();
    underlay.neighbors = ["192.0.2.1", "192.0.2.2"]
        .map(|address| serde_json::from_value(leaf(address)).unwrap())
        .into();
    underlay.trunk.router_addresses = vec!["100.64.0.1/31".parse().unwrap()];
    underlay.workload_networks = vec![
        "100.65.0.0/24".parse().unwrap(),
        "fd00:1::/64".parse().unwrap(),
    ];
    spec
}

#[test]
fn every_family_of_a_fabric_session_marks_what_it_takes_and_keeps_marked_routes_back() {
    let config = made(&permissive());
    let bgp = &config.bgp[&None];
    for (families, out) in [
        (&bgp.ipv4.neighbors, "fabric-out"),
        (&bgp.ipv6.neighbors, "fabric-out"),
        (&bgp.evpn.neighbors, "fabric-evpn-out"),
    ] {
        assert_eq!(families.len(), 2);
        for family in families.values() {
            assert_eq!(family.route_map_in, Some(names::fabric_in()));
            assert_eq!(family.route_map_out.as_ref().unwrap().as_str(), out);
        }
        assert!(!passes(&config, out, "203.0.113.7/32", &["64512:0:1"]));
        assert!(passes(&config, out, "203.0.113.7/32", &["64512:0:2"]));
    }
    let [(_, marks)] = config.route_maps[&names::fabric_in()]
        .iter()
        .collect::<Vec<_>>()[..]
    else {
        panic!("one entry marks everything")
    };
    let mark = "64512:0:1".parse().unwrap();
    assert_eq!(
        marks.set_large_community,
        Some(crate::config::SetCommunity::Add([mark].into()))
    );
    assert_eq!(marks.action, RouteMapAction::Permit);
}

#[test]
fn a_vrf_announces_what_workloads_announce_and_nothing_from_the_fabric() {
    let config = made(&permissive());
    for map in ["red:evpn", "blue:evpn"] {
        assert!(passes(&config, map, "203.0.113.7/32", &[]));
        assert!(!passes(&config, map, "203.0.113.7/32", &["64512:0:1"]));
    }
    // A leak takes over routes of the fabric: that is what it is for.
    assert!(passes(
        &config,
        "red:import:blue",
        "203.0.113.7/32",
        &["64512:0:1"]
    ));
}

#[test]
fn networks_of_the_node_alone_pass_no_export_and_no_leak() {
    let config = made(&permissive());
    let exports = ["fabric-out", "red:evpn", "blue:evpn", "red:import:blue"];
    for map in exports {
        for network in [
            "169.254.0.0/16",
            "169.254.7.1/32",
            "100.64.0.0/31",
            "100.65.0.9/32",
            "fe80::/64",
            "fd00:1::7/128",
        ] {
            assert!(
                !passes(&config, map, network, &[]),
                "{network} passes {map}"
            );
        }
        for network in [
            "0.0.0.0/0",
            "100.64.0.0/16",
            "10.0.0.0/8",
            "::/0",
            "fd00:2::/64",
        ] {
            assert!(
                passes(&config, map, network, &[]),
                "{network} does not pass {map}"
            );
        }
    }
    let to_workload = "red:198.51.100.0/24:ipv4:out";
    assert!(!passes(&config, to_workload, "169.254.7.1/32", &[]));
    assert!(passes(&config, to_workload, "10.0.0.0/8", &["64512:0:1"]));
}

#[test]
fn a_leak_that_takes_the_mark_of_the_fabric_off_is_refused() {
    for modify in [
        json!({"removeAllCommunities": true}),
        json!({"addCommunities": ["1:2:3"]}),
        json!({"removeCommunities": ["64512:0:1"]}),
    ] {
        let mut spec = permissive();
        let filter = json!({"defaultAction": {"type": "accept", "modifyRoute": modify}});
        let import = json!({"fromVrf": "blue", "filter": filter});
        red(&mut spec).vrf_imports = vec![serde_json::from_value(import).unwrap()];
        assert_eq!(
            refused(&spec, FrrVersion::NEWEST),
            ["fabricVRFs[red].vrfImports[0].filter.defaultAction.modifyRoute"]
        );
    }
}

/// The fabric neighbors of a node, as the contract has them.
fn with_neighbors(neighbors: &Value) -> NodeNetworkConfigSpec {
    let mut spec = node(&json!({}));
    spec.underlay.as_mut().unwrap().neighbors = serde_json::from_value(neighbors.clone()).unwrap();
    spec
}

#[test]
fn a_fabric_session_has_the_families_of_its_config_and_no_other() {
    let config = made(&with_neighbors(&json!([
        {"address": "192.0.2.1", "remoteAs": {"external": true}, "addressFamilies": ["ipv4Unicast"]},
        {"address": "192.0.2.2", "remoteAs": {"internal": true}, "addressFamilies": ["l2vpnEvpn"], "fromVtep": true},
    ])));
    let bgp = &config.bgp[&None];
    let leaf = Peer::Address("192.0.2.1".parse().unwrap());
    let reflector = Peer::Address("192.0.2.2".parse().unwrap());
    assert!(!bgp.default_ipv4_unicast);
    assert_eq!(bgp.ipv4.neighbors.keys().collect::<Vec<_>>(), [&leaf]);
    assert_eq!(bgp.ipv6.neighbors.len(), 0);
    assert_eq!(bgp.evpn.neighbors.keys().collect::<Vec<_>>(), [&reflector]);
    let vtep = UpdateSource::Address("192.0.2.7".parse().unwrap());
    assert_eq!(bgp.neighbors[&reflector].update_source, Some(vtep));
    assert_eq!(bgp.neighbors[&leaf].update_source, None);
}

#[test]
fn a_session_that_cannot_start_from_the_vtep_is_refused() {
    let session = |peer: Value| {
        let mut session = json!({"remoteAs": {"internal": true}, "addressFamilies": ["l2vpnEvpn"], "fromVtep": true});
        session
            .as_object_mut()
            .unwrap()
            .extend(peer.as_object().unwrap().clone());
        with_neighbors(&json!([session]))
    };
    for peer in [
        json!({"interface": "eth1"}),
        json!({"address": "2001:db8::1"}),
    ] {
        assert_eq!(
            refused(&session(peer), FrrVersion::NEWEST),
            ["underlay.neighbors[0].fromVtep"]
        );
    }
    made(&session(json!({"address": "192.0.2.1"})));
}

#[test]
fn workloads_lose_extended_and_well_known_communities_before_any_rule() {
    let config = made(&permissive());
    let map = &config.route_maps[&"red:198.51.100.0/24:ipv4:in".parse::<Name>().unwrap()];
    let (_, first) = map.first_key_value().unwrap();
    assert!(first.on_match_next && first.delete_extended_communities);
    assert_eq!(first.match_prefix_list, None);
    let list = |name: &Name| -> Vec<String> {
        let lists = config
            .community_lists
            .get(name)
            .or_else(|| config.large_community_lists.get(name));
        lists.unwrap().values().map(ToString::to_string).collect()
    };
    let standard = list(first.delete_communities.as_ref().unwrap());
    for community in ["65535:65281", "65535:65282", "65535:666", "65535:0"] {
        assert!(
            standard.iter().any(|one| one == community),
            "{community} is kept"
        );
    }
    assert_eq!(
        list(first.delete_large_communities.as_ref().unwrap()),
        ["64512:0:1"]
    );
}

#[test]
fn a_rule_about_a_community_that_workloads_cannot_attach_is_refused() {
    let mut spec = permissive();
    let item = json!({"matcher": {"bgpCommunity": {"community": "65535:666", "exactMatch": false}}, "action": {"type": "reject"}});
    let peer = &mut red(&mut spec).bgp_peers[0];
    let filter = peer.ipv4.as_mut().unwrap().import_filter.as_mut().unwrap();
    filter.items = vec![serde_json::from_value(item).unwrap()];
    assert_eq!(
        refused(&spec, FrrVersion::NEWEST),
        ["fabricVRFs[red].bgpPeers[0].ipv4.importFilter.items[0].matcher.bgpCommunity"]
    );
}

#[test]
fn workloads_have_limits_and_leaves_have_safe_defaults() {
    let mut spec = permissive();
    let underlay = spec.underlay.as_mut().unwrap();
    underlay.neighbors[0].bfd = Some(nnc::Bfd::default());
    let peer = &mut red(&mut spec).bgp_peers[0];
    peer.ipv4.as_mut().unwrap().max_prefixes = Some(7);
    let config = made(&spec);
    let red = &config.bgp[&Some("red".parse().unwrap())];
    let limit = red
        .ipv4
        .neighbors
        .values()
        .next()
        .unwrap()
        .maximum_prefix
        .unwrap();
    assert_eq!((limit.limit, limit.restart.is_some()), (7, true));
    assert!(red.listen_limit.is_some());
    let fabric = &config.bgp[&None];
    let leaf = Peer::Address("192.0.2.1".parse().unwrap());
    assert!(
        fabric.neighbors[&leaf]
            .bfd
            .as_ref()
            .unwrap()
            .check_control_plane
    );
    assert_eq!(fabric.evpn.neighbors[&leaf].allowas_in, Some(1));
    for bgp in config.bgp.values() {
        assert!(
            bgp.neighbors
                .values()
                .all(|session| session.description.is_some())
        );
    }
}
