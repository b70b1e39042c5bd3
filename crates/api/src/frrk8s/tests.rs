//! Each kind of this group keeps what it reads, and what Go programs write for "nothing" is nothing.

use serde_json::{Value, json};

use super::*;
use crate::openperouter::{Contradiction, schema::checks};

fn spec(spec: Value) -> FrrConfigurationSpec {
    serde_json::from_value(spec).expect("a readable FRRConfiguration")
}

fn router(fields: Value) -> Router {
    serde_json::from_value(fields).expect("a readable router")
}

#[test]
fn definitions_are_well_formed() {
    checks::are_well_formed(&crds());
}

#[test]
fn an_frr_configuration_is_kept_as_it_was_written() {
    let neighbor = json!({
        "asn": 64512, "dynamicASN": "external", "sourceaddress": "lo", "address": "192.168.1.2", "interface": "eth1",
        "port": 1790, "password": "(hidden)", "passwordSecret": {"name": "tor", "namespace": "metallb-system"},
        "holdTime": "3m", "keepaliveTime": "1m", "connectTime": "10s", "ebgpMultiHop": true, "bfdProfile": "fast",
        "enableGracefulRestart": true, "disableMP": false, "dualStackAddressFamily": true, "localASN": 64999,
        "addressFamilies": ["unicast", "evpn"],
        "toAdvertise": {
            "allowed": {"prefixes": ["100.64.0.1/32"], "mode": "filtered"},
            "nextHop": {"ipv4": "192.0.2.9", "ipv6": "2001:db8::9"},
            "withLocalPref": [{"prefixes": ["100.64.0.1/32"], "localPref": 200}],
            "withCommunity": [
                {"prefixes": ["100.64.0.1/32"], "community": "64512:100"},
                {"prefixes": ["100.64.0.1/32"], "community": "large:64512:1:2"},
            ],
        },
        "toReceive": {"allowed": {"prefixes": [{"prefix": "10.0.0.0/8", "le": 32, "ge": 24}], "mode": "all"}},
    });
    let default = json!({
        "asn": 64512, "id": "192.0.2.1", "neighbors": [neighbor], "prefixes": ["100.64.0.1/32"], "imports": [{"vrf": "red"}],
        "evpn": {
            "advertiseVNIs": "All", "advertiseSVI": true,
            "l2vnis": [{"vni": 1000, "rd": "64512:1000", "importRTs": ["64512:1000"], "exportRTs": ["64512:1000"]}],
        },
    });
    let red = json!({
        "asn": 64512, "vrf": "red", "prefixes": ["10.0.1.0/24"],
        "evpn": {"l3vni": {
            "vni": 2000, "rd": "64512:2000", "importRTs": ["64512:2000", "*:999"], "exportRTs": ["64512:2000"],
            "advertisePrefixes": ["unicast"],
        }},
    });
    let profile = json!({
        "name": "fast", "receiveInterval": 60, "transmitInterval": 60, "detectMultiplier": 3, "echoInterval": 50,
        "echoMode": true, "passiveMode": false, "minimumTtl": 250,
    });
    checks::examples_use_every_field::<FrrConfiguration>(&[json!({
        "spec": {
            "bgp": {"routers": [default, red], "bfdProfiles": [profile]},
            "raw": {"priority": 5, "rawConfig": "ip nht resolve-via-default"},
            "nodeSelector": {
                "matchLabels": {"kubernetes.io/hostname": "n1"},
                "matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}],
            },
        },
        "status": {
            "observedGeneration": 4,
            "conditions": [{
                "type": "Applied", "status": "True", "observedGeneration": 4,
                "lastTransitionTime": "2026-01-31T18:38:01Z", "reason": "Applied", "message": "on 2 of 3 nodes",
            }],
            "nodes": {"matched": 3, "applied": 2},
            "inEffect": {"bgp": {"routers": [{"asn": 64512}]}},
            "inEffectGeneration": 3,
            "problems": [{
                "reason": "AsnMismatch", "message": "different asns", "field": "spec.bgp.routers[0].asn",
                "other": "metallb-system/other", "nodes": ["n1"],
            }],
        },
    })]);
}

#[test]
fn states_are_kept_as_they_were_written() {
    checks::examples_use_every_field::<FrrNodeState>(&[json!({"spec": {}, "status": {
        "runningConfig": "frr version 10.3", "lastConversionResult": "success", "lastReloadResult": "failed: line 3",
        "configurations": [{"namespace": "metallb-system", "name": "evpn", "generation": 2}],
        "configHash": "ab12", "lastReloadTime": "2026-01-31T18:38:01Z", "lastReloadMilliseconds": 110,
        "refusedLines": ["neighbor 192.0.2.1 port 0"],
    }})]);
    checks::examples_use_every_field::<BgpSessionState>(&[json!({"spec": {}, "status": {
        "bgpStatus": "Established", "bfdStatus": "N/A", "node": "n1", "peer": "192.0.2.1", "vrf": "red",
    }})]);
}

#[test]
fn a_file_has_the_defaults_that_the_api_server_fills_in() {
    let spec = spec(
        json!({"bgp": {"routers": [{"asn": 1, "neighbors": [{"asn": 2, "address": "192.0.2.1"}]}]}}),
    );
    let bgp = spec.bgp.expect("BGP is given");
    let neighbor = bgp
        .routers
        .iter()
        .flat_map(|router| &router.neighbors)
        .next()
        .expect("one neighbor");
    assert!(neighbor.carries(AddressFamily::Unicast) && !neighbor.carries(AddressFamily::Evpn));
    assert!(!neighbor.is_dual_stack());
    assert_eq!(neighbor.to_advertise.allowed.mode, FilterMode::Filtered);
    assert_eq!(neighbor.timers(), Ok(None));
}

#[test]
fn empty_texts_and_zeros_are_absent() {
    let router = router(json!({"asn": 1, "id": "", "vrf": "", "neighbors": [{
        "asn": 0, "dynamicASN": "internal", "address": "", "interface": "eth1", "password": "", "sourceaddress": "",
        "bfdProfile": "", "addressFamilies": [],
    }]}));
    assert_eq!(router.vrf(), Vrf::Default);
    let neighbor = router.neighbors.first().expect("one neighbor");
    assert_eq!(
        neighbor.remote_as().expect("one AS").to_string(),
        "internal"
    );
    assert_eq!(neighbor.peer().expect("one peer").to_string(), "eth1");
    assert!(neighbor.carries(AddressFamily::Unicast) && neighbor.is_dual_stack());
    assert_eq!(
        (
            &neighbor.password,
            &neighbor.source_address,
            &neighbor.bfd_profile
        ),
        (&None, &None, &None)
    );
}

#[test]
fn the_default_vrf_has_several_spellings() {
    assert_eq!(router(json!({"asn": 1})).vrf(), Vrf::Default);
    assert_eq!(
        router(json!({"asn": 1, "vrf": "default"})).vrf(),
        Vrf::Default
    );
    assert!(matches!(
        router(json!({"asn": 1, "vrf": "red"})).vrf(),
        Vrf::Named(_)
    ));
    let import: Import =
        serde_json::from_value(json!({"vrf": "default"})).expect("a readable import");
    assert_eq!(import.vrf(), Vrf::Default);
}

#[test]
fn a_neighbor_is_one_peer_in_one_as() {
    let neighbor: Neighbor =
        serde_json::from_value(json!({"holdTime": "3s"})).expect("a readable neighbor");
    assert_eq!(
        neighbor.remote_as(),
        Err(Contradiction::Neither("asn", "dynamicASN"))
    );
    assert_eq!(
        neighbor.peer(),
        Err(Contradiction::Neither("address", "interface"))
    );
    assert_eq!(
        neighbor.timers(),
        Err(Contradiction::Needs("holdTime", "keepaliveTime"))
    );
}

#[test]
fn communities_say_whether_they_are_large() {
    for text in ["64500:999", "large:4200000000:1:2"] {
        assert_eq!(text.parse::<FrrCommunity>().expect(text).to_string(), text);
    }
    for text in [
        "65536:1",
        "1:2:3",
        "large:1:2",
        "large:1:2:4294967296",
        "no-export",
        "",
        "large:1:1:1\n",
    ] {
        let error = text.parse::<FrrCommunity>().expect_err(text).to_string();
        assert!(error.contains(&format!("{text:?}")), "{error}");
    }
}

#[test]
fn a_source_is_an_address_or_a_device() {
    assert!(matches!(
        "2001:db8::1".parse(),
        Ok(UpdateSource::Address(_))
    ));
    assert!(matches!("lo".parse(), Ok(UpdateSource::Interface(_))));
    for text in ["", "lo 1", "2001:db8::1::", "sixteen-letters-"] {
        assert!(text.parse::<UpdateSource>().is_err(), "{text}");
    }
}
