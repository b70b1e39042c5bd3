use api::tcaas::node_network_config::HostRouter;
use serde_json::{Value, json};

use super::*;
use crate::{diff, parse, print, secret::Password};

fn router(value: Value) -> HostRouter {
    serde_json::from_value(value).unwrap()
}

fn made(value: Value) -> Desired {
    desired(&router(value), &Secrets::new(), FrrVersion::NEWEST)
}

fn text(desired: &Desired) -> String {
    print(&desired.config, FrrVersion::NEWEST, "r")
}

/// A router with one neighbor that has these settings besides.
fn with_neighbor(settings: &Value) -> Value {
    let mut neighbor = json!({"address": "192.0.2.1", "remoteAs": {"asn": 64513}, "ipv4": true});
    neighbor
        .as_object_mut()
        .unwrap()
        .extend(settings.as_object().unwrap().clone());
    json!({"routers": {"default": {"asn": 64512, "neighbors": [neighbor]}}})
}

#[test]
fn what_is_printed_parses_to_itself() {
    let router = with_neighbor(&json!({
        "advertise": {"prefixes": ["10.0.0.0/24"], "localPreferences": [{"localPreference": 5, "prefixes": ["10.0.0.0/24"]}]},
        "receive": {"all": true},
    }));
    let desired = made(router);
    let parsed = parse(&text(&desired), FrrVersion::NEWEST);
    assert_eq!(parsed.unknown, []);
    assert_eq!(parsed.config, desired.config);
    assert!(diff(&parsed.config, &desired.config).is_empty());
}

#[test]
fn a_session_waits_for_its_password() {
    let router = router(with_neighbor(
        &json!({"passwordSecret": {"name": "tor", "namespace": "frr"}}),
    ));
    let without = desired(&router, &Secrets::new(), FrrVersion::NEWEST);
    assert_eq!(without.config.bgp[&None].neighbors.len(), 0);
    assert_eq!(without.held_back.len(), 1);
    let secret = without.held_back[0].secret.clone();
    let secrets = Secrets::from([(secret, Password::new("hunter2").unwrap())]);
    let with = desired(&router, &secrets, FrrVersion::NEWEST);
    assert_eq!(with.held_back, []);
    assert!(text(&with).contains("neighbor 192.0.2.1 password hunter2\n"));
}
