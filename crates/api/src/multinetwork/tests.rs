//! A network is kept as it was written, and its provider is a domain and a path.

use serde_json::json;

use super::*;
use crate::openperouter::schema::checks;

#[test]
fn definitions_are_well_formed() {
    checks::are_well_formed(&crds());
}

#[test]
fn a_pod_network_is_kept_as_it_was_written() {
    checks::examples_use_every_field::<PodNetwork>(&[json!({
        "spec": {
            "enabled": false,
            "provider": "example.dra.x-k8s.io/network",
            "parameters": {"master": "eth0", "ipam": {"routes": [{"dst": "0.0.0.0/0"}], "gateway": "192.168.1.1"}},
        },
        "status": {"conditions": [{
            "type": "Ready", "status": "True", "observedGeneration": 1,
            "lastProbeTime": "2025-01-31T18:38:02Z", "lastTransitionTime": "2025-01-31T18:38:01Z",
            "reason": "Ready", "message": "7/9 nodes",
        }]},
    })]);
}

#[test]
fn a_network_is_enabled_unless_it_says_otherwise() {
    let spec: PodNetworkSpec =
        serde_json::from_value(json!({"provider": "foo.io/bar"})).expect("a readable network");
    assert!(spec.enabled && !spec.provider.is_selvedge());
}

#[test]
fn a_status_of_the_proposal_is_readable() {
    let status =
        json!({"conditions": [{"lastProbeTime": null, "status": "True", "type": "Ready"}]});
    let status: PodNetworkStatus = serde_json::from_value(status).expect("a readable status");
    let kinds: Vec<&str> = status
        .conditions
        .iter()
        .map(|condition| condition.kind.as_str())
        .collect();
    assert_eq!(kinds, ["Ready"]);
}

#[test]
fn nobody_has_looked_at_a_new_network() {
    let definition = serde_json::to_value(crds()).expect("a writable definition");
    let path =
        "/0/spec/versions/0/schema/openAPIV3Schema/properties/status/default/conditions/0/status";
    assert_eq!(definition.pointer(path), Some(&json!("Unknown")));
}

#[test]
fn a_provider_is_a_domain_and_a_path() {
    for text in [
        "foo.io/bar",
        "example.dra.x-k8s.io/network",
        Provider::SELVEDGE,
        "a/b/c",
    ] {
        assert_eq!(text.parse::<Provider>().expect(text).as_str(), text);
    }
    for text in [
        "",
        "foo.io",
        "foo.io/",
        "/bar",
        "Foo.io/bar",
        "-a/b",
        "a..b/c",
        "a/b c",
        "a/ü",
    ] {
        assert!(text.parse::<Provider>().is_err(), "{text}");
    }
}
