//! What settings mean when little is said.

use kube::Resource;
use serde_json::json;

use super::*;

fn settings(spec: serde_json::Value) -> SettingsSpec {
    serde_json::from_value(spec).expect("settings")
}

#[test]
fn an_empty_object_means_the_defaults() {
    assert_eq!(settings(json!({})), SettingsSpec::default());
}

#[test]
fn empty_parts_mean_the_defaults_too() {
    let spec = json!({
        "clusterVRF": {}, "trunk": {}, "routeTables": {}, "bgp": {}, "hostSessions": {}, "frrConfigurations": {},
        "rollout": {"canary": {}}, "health": {}, "platform": {},
    });
    assert_eq!(settings(spec), SettingsSpec::default());
}

#[test]
fn the_defaults_are_the_documented_ones() {
    let spec = SettingsSpec::default();
    assert_eq!(spec.cluster_vrf.name.as_str(), "cluster");
    assert_eq!(spec.trunk.name.as_str(), "hbn");
    assert_eq!(
        (spec.route_tables.first, spec.route_tables.last),
        (10_000, 19_999)
    );
    assert_eq!(spec.anycast_mac.to_string(), "02:00:5e:00:01:01");
    assert_eq!(spec.rollout.history_limit, 10);
    assert_eq!(spec.rollout.max_removal, CountOrPercent::Percent(30));
    assert_eq!(spec.rollout.on_failure, OnFailure::Rollback);
    assert_eq!(spec.health.confirm_deadline.get(), 30);
}

/// The API server fills in what is missing, and must mean the same by it.
#[test]
fn the_defaults_of_the_schema_are_those_of_the_type() {
    let definition = crds().pop().expect("Settings");
    let schema = definition
        .spec
        .versions
        .into_iter()
        .next()
        .and_then(|version| version.schema);
    let schema = schema
        .and_then(|validation| validation.open_api_v3_schema)
        .expect("a schema");
    let schema = serde_json::to_value(schema).expect("a schema is JSON");
    let spec = &schema["properties"]["spec"]["properties"];
    let filled: serde_json::Map<_, _> = spec
        .as_object()
        .expect("properties")
        .iter()
        .filter_map(|(name, property)| Some((name.clone(), property.get("default")?.clone())))
        .collect();
    assert_eq!(settings(filled.into()), SettingsSpec::default());
}

#[test]
fn a_full_object_round_trips() {
    let spec = json!({
        "clusterVRF": {"name": "cluster", "vni": 30, "routeTarget": "64497:30"},
        "managementVRF": {"name": "mgmt", "vni": 20, "routeTarget": "64497:20"},
        "clusterNeighbors": [{
            "address": "fd00:7:caa5::1", "updateSource": "fd00:7:caa5:1::", "remoteASN": 65170, "localASN": 65169,
            "holdTime": "1m30s", "keepaliveTime": "30s", "bfdMinTimer": 333, "ipv4": false, "ipv6": true,
            "passwordSecret": {"name": "bgp", "namespace": "selvedge"},
        }],
        "exportCIDRs": ["10.100.0.0/24", "fdcb:f93c:3a3e::/64"],
        "vrfs": {"m2m_enc": {"vni": 10100, "routeTarget": "64500:10100"}, "internet": {}},
        "trunk": {"name": "hbn", "addresses": ["169.254.100.100/31"]},
        "l2VniRange": {"first": 20000, "last": 29999},
        "routeTables": {"first": 1000, "last": 1999},
        "anycastMAC": "02:00:5e:00:01:02",
        "bgp": {"workloadAS": 64512, "workloadCIDRs": ["198.18.0.0/24"]},
        "hostSessions": {"cidrs": ["192.0.2.0/24"]},
        "importMatch": "OrLonger",
        "hbnFlavour": "legacy-frr",
        "frrConfigurations": {"namespaces": ["metallb-system"]},
        "rollout": {
            "maxUnavailable": 3, "canary": {"size": "5%", "nodeSelector": {"matchLabels": {"canary": "true"}}},
            "failureDomainLabel": "rack", "order": ["a", "b"], "soakTime": "30s", "pause": true, "progressDeadline": "10m", "onFailure": "halt",
            "historyLimit": 5, "maxRemoval": "50%",
        },
        "health": {
            "confirmDeadline": "5s", "apiServer": false, "sessions": false, "interfaces": ["bond0"],
            "reachability": [{"host": "192.0.2.1", "port": 443, "timeout": "2s"}], "icmp": [{"host": "192.0.2.2", "timeout": "4s"}],
            "gateways": false, "timeout": "1s", "retries": 0,
        },
        "platform": {"metallb": {"namespace": "a"}, "coil": {"namespace": "b"}, "calico": {"namespace": "c", "apiVersion": "crd.projectcalico.org/v1"},
            "sriov": {
                "kind": "NetworkAttachmentDefinition", "namespace": "d", "networkNamespace": "e", "resourceName": "vfs",
                "resourcePrefix": "example.com",
                "resources": [{"resourceName": "bond1", "interfaceRef": "bond1", "nodeSelector": {"matchLabels": {"a": "b"}}}],
            }},
        "ipamNamespace": "ipam",
    });
    assert_eq!(
        serde_json::to_value(settings(spec.clone())).expect("JSON"),
        spec
    );
}

#[test]
fn the_kind_is_in_its_group() {
    assert_eq!(Settings::group(&()), GROUP);
    assert_eq!(Settings::version(&()), VERSION);
}

#[test]
fn shares_and_numbers_are_told_apart() {
    for (text, value) in [
        ("3", CountOrPercent::Count(3)),
        ("\"30%\"", CountOrPercent::Percent(30)),
    ] {
        assert_eq!(
            serde_json::from_str::<CountOrPercent>(text).expect(text),
            value
        );
        assert_eq!(serde_json::to_string(&value).expect(text), text);
    }
    for text in [
        "-1",
        "4294967296",
        "\"3\"",
        "\"101%\"",
        "\"%\"",
        "\"+1%\"",
        "\"\"",
        "1.5",
        "null",
    ] {
        assert!(
            serde_json::from_str::<CountOrPercent>(text).is_err(),
            "{text}"
        );
    }
}
