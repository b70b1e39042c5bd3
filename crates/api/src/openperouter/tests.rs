//! Each kind of this group keeps what it reads, and many spellings give one meaning.

use serde_json::{Value, json};

use super::{schema::checks, *};
use crate::value::{PeerType, RemoteAs, Seconds};

fn status() -> Value {
    json!({
        "observedGeneration": 3,
        "conditions": [{
            "type": "Accepted", "status": "False", "observedGeneration": 3,
            "lastTransitionTime": "2026-01-31T18:38:01Z", "reason": "DuplicateVni", "message": "vni is taken",
        }],
        "nodes": {"matched": 3, "ready": 2, "failed": 1},
        "lastGoodGeneration": 2,
    })
}

fn selector() -> Value {
    json!({
        "matchLabels": {"topology.kubernetes.io/rack": "rack-1"},
        "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}],
    })
}

fn underlay(spec: &Value) -> UnderlaySpec {
    serde_json::from_value(spec.clone()).expect("a readable Underlay")
}

fn neighbor(spec: &Value) -> Neighbor {
    serde_json::from_value(spec.clone()).expect("a readable neighbor")
}

fn segment(spec: &Value) -> L2VniSpec {
    serde_json::from_value(spec.clone()).expect("a readable L2VNI")
}

#[test]
fn definitions_are_well_formed() {
    checks::are_well_formed(&crds());
}

#[test]
fn an_underlay_is_kept_as_it_was_written() {
    let older = json!({"spec": {
        "nodeSelector": selector(),
        "asn": 64512,
        "routeridcidr": "10.1.0.0/16",
        "nics": ["eno1", "eno2"],
        "evpn": {"vtepcidr": "100.65.1.0/24", "vtepInterface": "eth2"},
        "neighbors": [{
            "asn": 64500, "hostasn": 64501, "address": "192.168.1.254", "port": 1790,
            "password": "(hidden)", "passwordSecret": "tor",
            "holdTime": "1m30s", "keepaliveTime": "30s", "connectTime": "10s", "ebgpMultiHop": true, "updateSource": "vtep",
            "bfd": {
                "receiveInterval": 300, "transmitInterval": 300, "detectMultiplier": 3, "echoInterval": 50,
                "echoMode": false, "passiveMode": true, "minimumTtl": 250,
            },
        }],
    }, "status": status()});
    let newer = json!({"spec": {
        "asn": 64512,
        "routeridcidr": "10.0.0.0/24",
        "interfaces": [{"type": "NetworkDevice", "networkDevice": {"interfaceName": "eth1"}}],
        "tunnelEndpoint": {"cidrs": ["100.65.0.0/24", "2001:db8:100::/64"]},
        "gracefulRestart": {"restartTimeSeconds": 120, "stalePathTimeSeconds": 360},
        "isis": {
            "baseNet": "49.0001.0000.0000.0001.00", "features": ["advertisePassiveOnly"], "level": 2,
            "interfaces": [{"name": "eth1", "ipFamily": "dualstack", "features": ["passive"]}],
        },
        "srv6": {"locator": {"basePrefix": "fd00:1::/48", "format": "usid-f3216"}},
        "neighbors": [{
            "type": "external", "interface": "eth1", "holdTimeSeconds": 90, "keepaliveTimeSeconds": 30,
            "connectTimeSeconds": 10, "bfd": {"minimumTTL": 250}, "addressFamilies": [{"type": "ipv4unicast"}, {"type": "evpn"}],
        }],
    }});
    checks::examples_use_every_field::<Underlay>(&[older, newer]);
}

#[test]
fn an_l3vni_is_kept_as_it_was_written() {
    checks::examples_use_every_field::<L3Vni>(&[json!({"spec": {
        "nodeSelector": selector(), "vrf": "tenant-a", "vni": 5001, "vxlanport": 4790, "underlayAddressFamily": "ipv6",
        "hostsession": {
            "asn": 64512, "hostasn": 64600, "hosttype": "external",
            "localcidr": {"ipv4": "192.169.10.0/24", "ipv6": "2001:db8:10::/64"},
        },
        "exportRTs": ["64512:5001"], "importRTs": ["64512:5001", "192.0.2.1:7"],
    }, "status": status()})]);
}

#[test]
fn an_l2vni_is_kept_as_it_was_written() {
    checks::examples_use_every_field::<L2Vni>(&[json!({"spec": {
        "nodeSelector": selector(), "vni": 10200, "vxlanport": 4789, "underlayAddressFamily": "ipv4", "vrf": "storage",
        "l2gatewayip": "10.200.1.1/24", "l2gatewayips": ["10.200.1.1/24", "2001:db8::1/64"],
        "hostmaster": {
            "type": "linux-bridge", "name": "br-storage", "autocreate": true,
            "linuxBridge": {"name": "br-a", "autoCreate": true}, "ovsBridge": {"name": "br-b", "autoCreate": false},
        },
    }, "status": status()})]);
}

#[test]
fn an_l3passthrough_is_kept_as_it_was_written() {
    checks::examples_use_every_field::<L3Passthrough>(&[json!({"spec": {
        "nodeSelector": selector(),
        "hostsession": {
            "asn": 64512, "hostasn": 64700, "hosttype": "internal",
            "localcidr": {"ipv4": "192.169.10.0/24", "ipv6": "2001:db8:10::/64"},
        },
    }, "status": status()})]);
}

#[test]
fn devices_are_nics_then_interfaces() {
    let spec = underlay(&json!({
        "asn": 1, "nics": ["eno1"], "neighbors": [],
        "interfaces": [{"type": "NetworkDevice", "networkDevice": {"interfaceName": "eth1"}}],
    }));
    assert_eq!(
        spec.devices().map(ToString::to_string).collect::<Vec<_>>(),
        ["eno1", "eth1"]
    );
    assert_eq!(spec.routeridcidr.to_string(), "10.0.0.0/24");
    assert_eq!(spec.vtep(), Ok(None));
}

#[test]
fn a_tunnel_endpoint_has_one_source() {
    let with = |fields: Value| {
        let mut spec = json!({"asn": 1, "neighbors": []});
        spec.as_object_mut()
            .expect("an object")
            .extend(fields.as_object().expect("an object").clone());
        underlay(&spec)
    };
    let pool = "100.65.0.0/24".parse().expect("a network");
    let older = with(json!({"evpn": {"vtepcidr": "100.65.0.0/24"}}));
    let newer = with(json!({"tunnelEndpoint": {"cidrs": ["100.65.0.0/24"]}}));
    assert_eq!(older.vtep(), Ok(Some(VtepSource::Pools(&[pool]))));
    assert_eq!(older.vtep(), newer.vtep());
    let both =
        with(json!({"evpn": {"vtepcidr": "100.65.0.0/24"}, "tunnelEndpoint": {"cidrs": []}}));
    assert_eq!(
        both.vtep(),
        Err(Contradiction::Both("evpn", "tunnelEndpoint"))
    );
    let neither = with(json!({"evpn": {}}));
    assert_eq!(
        neither.vtep(),
        Err(Contradiction::Neither(
            "evpn.vtepcidr",
            "evpn.vtepInterface"
        ))
    );
}

#[test]
fn timers_mean_the_same_in_either_spelling() {
    let older =
        neighbor(&json!({"holdTime": "1m30s", "keepaliveTime": "30s", "connectTime": "10s"}));
    let newer = neighbor(
        &json!({"holdTimeSeconds": 90, "keepaliveTimeSeconds": 30, "connectTimeSeconds": 10}),
    );
    let expected = Timers {
        hold: Seconds::new(90),
        keepalive: Seconds::new(30),
    };
    assert_eq!(older.timers(), Ok(Some(expected)));
    assert_eq!(older.timers(), newer.timers());
    assert_eq!(older.connect_time(), newer.connect_time());
    let twice =
        neighbor(&json!({"holdTime": "90s", "holdTimeSeconds": 90, "keepaliveTime": "30s"}));
    assert_eq!(
        twice.timers(),
        Err(Contradiction::Both("holdTime", "holdTimeSeconds"))
    );
    let half = neighbor(&json!({"holdTime": "90s"}));
    assert_eq!(
        half.timers(),
        Err(Contradiction::Needs("holdTime", "keepaliveTime"))
    );
}

#[test]
fn a_neighbor_is_one_peer_in_one_as() {
    let both = neighbor(
        &json!({"asn": 1, "type": "internal", "address": "192.0.2.1", "interface": "eth1"}),
    );
    assert_eq!(both.remote_as(), Err(Contradiction::Both("asn", "type")));
    assert_eq!(
        both.peer(),
        Err(Contradiction::Both("address", "interface"))
    );
    let internal = neighbor(&json!({"type": "internal", "interface": "eth1"}));
    assert_eq!(internal.remote_as(), Ok(RemoteAs::Type(PeerType::Internal)));
    assert_eq!(internal.peer().expect("one peer").to_string(), "eth1");
}

#[test]
fn a_password_is_not_shown() {
    let text = format!(
        "{:?}",
        neighbor(&json!({"asn": 1, "address": "192.0.2.1", "password": "s3cret"}))
    );
    assert!(
        text.contains("(hidden)") && !text.contains("s3cret"),
        "{text}"
    );
}

#[test]
fn a_gateway_is_a_list_of_one() {
    let older = segment(&json!({"vni": 1, "l2gatewayip": "10.0.0.1/24"}));
    let newer = segment(&json!({"vni": 1, "l2gatewayips": ["10.0.0.1/24"]}));
    assert_eq!(older.gateways(), newer.gateways());
    assert_eq!(segment(&json!({"vni": 1})).gateways(), Ok([].as_slice()));
    let both =
        segment(&json!({"vni": 1, "l2gatewayip": "10.0.0.1/24", "l2gatewayips": ["10.0.0.1/24"]}));
    assert_eq!(
        both.gateways(),
        Err(Contradiction::Both("l2gatewayip", "l2gatewayips"))
    );
}

#[test]
fn a_host_master_is_one_bridge_in_any_spelling() {
    let read = |master: Value| {
        serde_json::from_value::<HostMaster>(master).expect("a readable host master")
    };
    let older = read(json!({"type": "bridge", "name": "br-storage"}));
    let newer = read(json!({"type": "linux-bridge", "linuxBridge": {"name": "br-storage"}}));
    assert_eq!(older.bridge(), newer.bridge());
    let own = read(json!({"autocreate": true}));
    assert_eq!(
        own.bridge(),
        Ok(Bridge {
            kind: BridgeKind::Linux,
            source: BridgeSource::Own
        })
    );
    let ovs = read(json!({"type": "ovs-bridge", "ovsBridge": {"autoCreate": true}}));
    assert_eq!(
        ovs.bridge(),
        Ok(Bridge {
            kind: BridgeKind::OpenVSwitch,
            source: BridgeSource::Own
        })
    );
    let none = read(json!({"type": "bridge"}));
    assert_eq!(
        none.bridge(),
        Err(Contradiction::Neither(
            "hostmaster.name",
            "hostmaster.autocreate"
        ))
    );
    let both = read(json!({"name": "br-storage", "linuxBridge": {"autoCreate": true}}));
    assert_eq!(
        both.bridge(),
        Err(Contradiction::Both(
            "hostmaster.name",
            "hostmaster.autocreate"
        ))
    );
    let wrong = read(json!({"type": "bridge", "ovsBridge": {"autoCreate": true}}));
    assert_eq!(
        wrong.bridge(),
        Err(Contradiction::Needs(
            "hostmaster.ovsBridge",
            "hostmaster.type: ovs-bridge"
        ))
    );
}
