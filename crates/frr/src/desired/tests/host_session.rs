//! Sessions with the host, aggregates, and a second tunnel endpoint.

use super::*;
use crate::config::{FamilySwitch, IpFamily, RemoteAs, SetCommunity};

const FABRIC: &str = "64512:0:1";
const HOST: &str = "64512:0:2";

fn session(remote_as: &Value) -> Value {
    json!({
        "source": "L3VNI default/red", "devices": {"host": "host-100", "router": "pe-100"}, "mtu": 1450,
        "hostAddresses": ["100.96.0.3/24", "fd00:96::3/64"], "routerAddresses": ["100.96.0.1/24", "fd00:96::1/64"],
        "remoteAs": remote_as,
    })
}

/// The permissive node with a session in its VRF, whose filter lets one network out and whose connected networks are all taken.
fn with_session() -> NodeNetworkConfigSpec {
    let mut spec = permissive();
    let filter = accept(&["10.0.0.0/24"]);
    let vrf = red(&mut spec);
    vrf.evpn_export_filter = serde_json::from_value(filter["evpnExportFilter"].clone()).unwrap();
    vrf.host_session = serde_json::from_value(session(&json!({"asn": 64515}))).unwrap();
    vrf.redistribute = serde_json::from_value(
        json!({"connected": {"defaultAction": {"type": "accept"}}, "static": null}),
    )
    .unwrap();
    spec
}

fn with_passthroughs() -> NodeNetworkConfigSpec {
    let mut spec = permissive();
    for (key, host) in [("a/one", "198.18.1.3/24"), ("b/two", "198.18.2.3/24")] {
        let mut session = session(&json!({"external": true}));
        session["hostAddresses"] = json!([host]);
        session["routerAddresses"] = json!([host.replace(".3/", ".1/")]);
        let session = serde_json::from_value(session).unwrap();
        spec.passthroughs.insert(key.to_owned(), session);
    }
    spec
}

fn address(text: &str) -> Peer {
    Peer::Address(text.parse().unwrap())
}

fn vrf_red(config: &FrrConfig) -> &crate::config::Bgp {
    &config.bgp[&Some("red".parse().unwrap())]
}

#[test]
fn a_host_session_is_one_neighbor_of_each_family_that_carries_its_own_family() {
    let config = made(&with_session());
    let bgp = vrf_red(&config);
    for (family, peer, own) in [
        (IpFamily::V4, "100.96.0.3", "100.96.0.3/32"),
        (IpFamily::V6, "fd00:96::3", "fd00:96::3/128"),
    ] {
        let neighbor = &bgp.neighbors[&address(peer)];
        assert_eq!(
            neighbor.remote_as,
            Some(RemoteAs::Number(64515.try_into().unwrap()))
        );
        assert_eq!(neighbor.connect_time, Some(5));
        assert!(neighbor.description.is_some());
        let networks: Vec<String> = bgp
            .unicast(family)
            .networks
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(networks, [own]);
        for other in IpFamily::BOTH {
            let carried = bgp.unicast(other).neighbors.get(&address(peer));
            assert_eq!(carried.is_some(), family == other, "{peer} in {other:?}");
        }
    }
    // The routing table has no route to the host's address alone.
    assert!(!bgp.network_import_check);
    assert!(config.bgp[&None].network_import_check);
}

#[test]
fn what_the_host_announces_leaves_whatever_the_export_filter_says() {
    let config = made(&with_session());
    let export = "red:evpn";
    assert!(passes(&config, export, "10.0.0.0/24", &[]));
    assert!(!passes(&config, export, "10.0.1.0/24", &[]));
    assert!(passes(&config, export, "10.0.1.0/24", &[HOST]));
    for own in ["100.96.0.3/32", "fd00:96::3/128"] {
        assert!(passes(&config, export, own, &[]), "{own}");
    }
    // Neither the fabric's own routes nor networks of the node alone, not even with the mark.
    assert!(!passes(&config, export, "10.0.1.0/24", &[HOST, FABRIC]));
    assert!(!passes(&config, export, "100.96.0.3/32", &[FABRIC]));
    assert!(!passes(&config, export, "169.254.7.1/32", &[HOST]));
    // A VRF without a session does not know the mark.
    let blue = &config.route_maps[&"blue:evpn".parse::<Name>().unwrap()];
    assert!(blue.keys().all(|number| !(4..10).contains(number)));
}

#[test]
fn the_network_between_router_and_host_never_becomes_a_bgp_route() {
    let config = made(&with_session());
    for map in ["red:connected", "red:host:in"] {
        for network in ["100.96.0.0/24", "100.96.0.128/25", "fd00:96::/64"] {
            assert!(!passes(&config, map, network, &[]), "{network} in {map}");
        }
        for network in ["100.96.0.0/16", "10.0.0.0/24", "2001:db8::/64"] {
            assert!(passes(&config, map, network, &[]), "{network} in {map}");
        }
    }
}

#[test]
fn the_host_may_announce_anything_but_what_is_the_nodes_alone() {
    let config = made(&with_session());
    for network in ["0.0.0.0/0", "::/0", "10.0.0.0/8", "100.96.0.9/32"] {
        assert!(passes(&config, "red:host:in", network, &[]), "{network}");
    }
    for network in ["169.254.7.0/24", "100.65.0.9/32", "fd00:1::/64"] {
        assert!(!passes(&config, "red:host:in", network, &[]), "{network}");
        assert!(!passes(&config, "red:host:out", network, &[]), "{network}");
    }
    assert!(passes(&config, "red:host:out", "10.0.0.0/8", &[FABRIC]));
    let map = &config.route_maps[&"red:host:in".parse::<Name>().unwrap()];
    let (_, first) = map.first_key_value().unwrap();
    assert!(first.on_match_next && first.delete_extended_communities);
    let (_, last) = map.last_key_value().unwrap();
    let marks = SetCommunity::Add([HOST.parse().unwrap()].into());
    assert_eq!(last.set_large_community, Some(marks));
}

#[test]
fn nobody_else_can_attach_the_mark_of_the_host() {
    let config = made(&with_session());
    let marks = |map: &str, number: u16| -> Vec<String> {
        let entry = &config.route_maps[&map.parse::<Name>().unwrap()][&number];
        assert!(entry.on_match_next);
        let list = entry.delete_large_communities.as_ref().unwrap();
        let list = &config.large_community_lists[list];
        list.values().map(ToString::to_string).collect()
    };
    assert_eq!(marks("red:198.51.100.0/24:ipv4:in", 1), [FABRIC, HOST]);
    assert_eq!(marks("red:host:in", 1), [FABRIC, HOST]);
    // A leak takes the mark off, and leaves the fabric's.
    assert_eq!(marks("red:import:blue", 4), [HOST]);
    let mut spec = with_session();
    let item = json!({"matcher": {"bgpCommunity": {"community": HOST, "exactMatch": false}}, "action": {"type": "reject"}});
    let peer = &mut red(&mut spec).bgp_peers[0];
    let filter = peer.ipv4.as_mut().unwrap().import_filter.as_mut().unwrap();
    filter.items = vec![serde_json::from_value(item).unwrap()];
    assert_eq!(
        refused(&spec, FrrVersion::NEWEST),
        ["fabricVRFs[red].bgpPeers[0].ipv4.importFilter.items[0].matcher.bgpCommunity"]
    );
}

#[test]
fn internal_is_judged_by_the_as_of_the_instance_and_gets_us_as_next_hop() {
    let next_hop_self = |asn: Option<u32>, remote_as: &Value| {
        let mut spec = with_session();
        let vrf = red(&mut spec);
        vrf.asn = asn.map(|asn| i64::from(asn).try_into().unwrap());
        vrf.host_session = serde_json::from_value(session(remote_as)).unwrap();
        let config = made(&spec);
        let bgp = vrf_red(&config);
        assert_eq!(bgp.asn.get(), asn.unwrap_or(64512));
        bgp.ipv4.neighbors[&address("100.96.0.3")].next_hop_self
    };
    assert!(!next_hop_self(None, &json!({"asn": 64515})));
    assert!(next_hop_self(Some(64515), &json!({"asn": 64515})));
    assert!(!next_hop_self(Some(64515), &json!({"asn": 64512})));
    assert!(next_hop_self(None, &json!({"asn": 64512})));
    assert!(next_hop_self(None, &json!({"internal": true})));
    assert!(!next_hop_self(None, &json!({"external": true})));
}

/// BGP passes nothing from one internal session to another, except to and from clients of a route reflector.
#[test]
fn an_internal_host_is_a_client_where_the_fabric_is_internal_too() {
    let is_client = |fabric: &Value, host: &Value| {
        let mut spec = with_passthroughs();
        let underlay = spec.underlay.as_mut().unwrap();
        for neighbor in &mut underlay.neighbors {
            neighbor.remote_as = serde_json::from_value(fabric.clone()).unwrap();
        }
        for session in spec.passthroughs.values_mut() {
            session.remote_as = serde_json::from_value(host.clone()).unwrap();
        }
        let config = made(&spec);
        let families = &config.bgp[&None].ipv4.neighbors;
        let clients = ["198.18.1.3", "198.18.2.3"].map(|host| {
            let switches = &families[&address(host)].switches;
            switches.contains(&FamilySwitch::RouteReflectorClient)
        });
        assert_eq!(clients[0], clients[1]);
        let all = families.values();
        let all = all.filter(|one| one.switches.contains(&FamilySwitch::RouteReflectorClient));
        assert_eq!(all.count(), if clients[0] { 2 } else { 0 }, "hosts alone");
        clients[0]
    };
    let (internal, own, external) = (
        json!({"internal": true}),
        json!({"asn": 64512}),
        json!({"external": true}),
    );
    for (fabric, host, wanted) in [
        (&internal, &internal, true),
        (&own, &own, true),
        (&internal, &own, true),
        (&external, &internal, false),
        (&internal, &external, false),
        (&external, &external, false),
    ] {
        assert_eq!(is_client(fabric, host), wanted, "{fabric} {host}");
    }
}

#[test]
fn an_as_of_a_session_is_used_where_frr_can_and_refused_elsewhere() {
    let with = |local_as: u32, remote_as: &Value| {
        let mut spec = with_session();
        let mut session = session(remote_as);
        session["localAs"] = local_as.into();
        red(&mut spec).host_session = serde_json::from_value(session).unwrap();
        spec
    };
    let config = made(&with(64520, &json!({"external": true})));
    let neighbor = &vrf_red(&config).neighbors[&address("100.96.0.3")];
    assert_eq!(neighbor.local_as.map(api::value::Asn::get), Some(64520));
    for (local_as, remote_as) in [
        (64512, json!({"asn": 64515})),
        (64520, json!({"asn": 64520})),
        (64520, json!({"internal": true})),
        (64520, json!({"asn": 64512})),
    ] {
        assert_eq!(
            refused(&with(local_as, &remote_as), FrrVersion::NEWEST),
            ["fabricVRFs[red].hostSession.localAs"]
        );
    }
}

#[test]
fn another_as_of_a_vrf_is_announced_as_a_new_instance() {
    let mut spec = with_session();
    let old = made(&spec);
    red(&mut spec).asn = Some(64520.try_into().unwrap());
    let change = diff(&old, &made(&spec));
    let red: IfName = "red".parse().unwrap();
    let rebuilt: Vec<_> = change.resets.iter().collect();
    assert!(matches!(&rebuilt[..], [one] if one.vrf == Some(red) && one.peer.is_none()));
    assert_eq!(change.router, crate::RouterChange::None);
    // Its routes go for a moment even where it has no session.
    let mut quiet = node(&json!({}));
    let old = made(&quiet);
    super::red(&mut quiet).asn = Some(64520.try_into().unwrap());
    assert_eq!(diff(&old, &made(&quiet)).resets.len(), 1);
}

#[test]
fn hosts_of_passthroughs_and_fabric_see_each_other_and_hosts_do_not() {
    let config = made(&with_passthroughs());
    let bgp = &config.bgp[&None];
    for (peer, own) in [
        ("198.18.1.3", "198.18.1.3/32"),
        ("198.18.2.3", "198.18.2.3/32"),
    ] {
        let family = &bgp.ipv4.neighbors[&address(peer)];
        assert_eq!(
            family.route_map_in.as_ref().unwrap().as_str(),
            "passthrough-in"
        );
        assert_eq!(
            family.route_map_out.as_ref().unwrap().as_str(),
            "passthrough-out"
        );
        assert!(!bgp.ipv6.neighbors.contains_key(&address(peer)));
        assert!(bgp.ipv4.networks.contains(&own.parse().unwrap()));
        // The other host gets neither what this one announces nor its address.
        assert!(!passes(&config, "passthrough-out", own, &[]));
        assert!(passes(&config, "fabric-out", own, &[]));
    }
    assert!(passes(&config, "passthrough-in", "203.0.113.0/24", &[]));
    assert!(!passes(&config, "passthrough-in", "198.18.1.0/24", &[]));
    assert!(passes(&config, "fabric-out", "203.0.113.0/24", &[]));
    assert!(!passes(&config, "passthrough-out", "203.0.113.0/24", &[]));
    assert!(passes(
        &config,
        "passthrough-out",
        "203.0.113.0/24",
        &[FABRIC]
    ));
    assert!(!passes(&config, "fabric-out", "203.0.113.0/24", &[FABRIC]));
    // A host that claims to be the fabric would reach the others.
    let map = &config.route_maps[&"passthrough-in".parse::<Name>().unwrap()];
    let (_, first) = map.first_key_value().unwrap();
    assert!(first.on_match_next && first.delete_large_communities.is_some());
    let mut orphan = with_passthroughs();
    (orphan.underlay, orphan.fabric_vrfs) = (None, BTreeMap::new());
    assert_eq!(refused(&orphan, FrrVersion::NEWEST), ["underlay"]);
}

#[test]
fn the_first_passthrough_resets_no_session() {
    let change = diff(&made(&permissive()), &made(&with_passthroughs()));
    assert!(!change.is_empty());
    assert_eq!(change.resets.len(), 0);
}

#[test]
fn aggregates_stand_in_their_family_and_have_parts() {
    let mut spec = node(&json!({"aggregates": ["10.0.0.0/8", "2001:db8::/32"]}));
    let config = made(&spec);
    assert_eq!(vrf_red(&config).ipv4.aggregates.len(), 1);
    assert_eq!(vrf_red(&config).ipv6.aggregates.len(), 1);
    red(&mut spec).aggregates = vec!["10.0.0.1/32".parse().unwrap()];
    assert_eq!(
        refused(&spec, FrrVersion::NEWEST),
        ["fabricVRFs[red].aggregates"]
    );
}

#[test]
fn the_second_tunnel_endpoint_is_announced_in_its_family() {
    let mut spec = node(&json!({"fromOtherVtep": true}));
    assert_eq!(refused(&spec, FrrVersion::NEWEST), ["underlay.otherVtep"]);
    spec.underlay.as_mut().unwrap().other_vtep = Some("2001:db8::7".parse().unwrap());
    let config = made(&spec);
    let bgp = &config.bgp[&None];
    assert_eq!(
        bgp.ipv6.networks,
        ["2001:db8::7/128".parse().unwrap()].into()
    );
    assert_eq!(bgp.ipv4.networks, ["192.0.2.7/32".parse().unwrap()].into());
    assert_eq!(refused(&spec, FrrVersion::V8_4), ["underlay.otherVtep"]);
}

#[test]
fn a_workload_may_be_a_device_and_a_session_may_start_from_an_address() {
    let peer = |fields: Value| {
        let mut peer = json!({"remoteAsn": 65000, "ipv4": {}});
        peer.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        node(&json!({"bgpPeers": [peer]}))
    };
    let config = made(&peer(json!({"interface": "l2.100"})));
    let device = Peer::Interface("l2.100".parse().unwrap());
    assert!(vrf_red(&config).neighbors.contains_key(&device));
    let config = made(&peer(
        json!({"address": "198.51.100.9", "sourceAddress": "198.51.100.1", "localAs": 64520}),
    ));
    let session = &vrf_red(&config).neighbors[&address("198.51.100.9")];
    let source = UpdateSource::Address("198.51.100.1".parse().unwrap());
    assert_eq!(session.update_source, Some(source));
    assert_eq!(session.local_as.map(api::value::Asn::get), Some(64520));
    let path = "fabricVRFs[red].bgpPeers[0]";
    for (fields, field) in [
        (
            json!({"interface": "l2.100", "address": "198.51.100.9"}),
            "",
        ),
        (
            json!({"interface": "l2.100", "sourceAddress": "198.51.100.1"}),
            ".interface",
        ),
        (json!({"interface": "l2.100", "multihop": 3}), ".interface"),
        (
            json!({"address": "198.51.100.9", "sourceAddress": "2001:db8::1"}),
            ".sourceAddress",
        ),
        (
            json!({"address": "198.51.100.9", "sourceAddress": "198.51.100.1", "updateSource": "lo"}),
            "",
        ),
        (
            json!({"address": "198.51.100.9", "localAs": 64512}),
            ".localAs",
        ),
    ] {
        let refused = refused(&peer(fields), FrrVersion::NEWEST);
        assert_eq!(refused, [format!("{path}{field}")]);
    }
}
