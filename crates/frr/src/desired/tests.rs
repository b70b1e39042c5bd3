use api::tcaas::node_network_config::NodeNetworkConfigSpec;
use serde_json::{Value, json};

use super::*;
use crate::diff;

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
    let neighbor = json!({"address": "192.0.2.1", "remoteAs": {"external": true}, "addressFamilies": ["ipv4Unicast"]});
    let mut spec = node(&json!({}));
    spec.underlay.as_mut().unwrap().neighbors = vec![serde_json::from_value(neighbor).unwrap()];
    let with = made(&spec);
    spec.fabric_vrfs.clear();
    let change = diff(&made(&spec), &with);
    assert!(!change.is_empty());
    assert_eq!(change.resets.len(), 0);
}
