//! Changes of the Underlay of a node, in place.

use super::{base, desired_of, fabric_vrf, host, layer2, settle, texts};
use crate::{LinkId, object::Kind};

#[test]
fn another_tunnel_endpoint_takes_the_place_of_the_old_one_everywhere() {
    let mut config = base();
    config["fabricVRFs"]["red"] = fabric_vrf("red", 10001, 2000);
    config["layer2s"]["210"] = layer2(210, 10210, Some("red"));
    let mut now = host();
    settle(&desired_of(config.clone()), &mut now);
    config["underlay"]["vtep"] = "198.51.100.77".into();
    let done = texts(&settle(&desired_of(config), &mut now));
    let lo: Vec<String> = now.links[&LinkId::router("lo")]
        .addresses
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(lo, ["198.51.100.77/32"]);
    for name in ["vx.red", "vx.10210"] {
        let Kind::Vxlan { local, .. } = now.links[&LinkId::router(name)].kind else {
            panic!("{name} is no VXLAN");
        };
        assert_eq!(
            local.map(|local| local.to_string()).as_deref(),
            Some("198.51.100.77"),
            "{name}: {done:?}"
        );
    }
}

#[test]
fn another_nic_comes_and_the_old_one_goes_back_as_it_was_and_nothing_else_is_touched() {
    let mut config = base();
    config["fabricVRFs"]["red"] = fabric_vrf("red", 10001, 2000);
    let mut now = host();
    settle(&desired_of(config.clone()), &mut now);
    config["underlay"]["nics"] = serde_json::json!(["eth2"]);
    let done = texts(&settle(&desired_of(config), &mut now));
    assert!(now.links.contains_key(&LinkId::host("eth1")));
    assert!(now.links.contains_key(&LinkId::router("eth2")));
    let own: Vec<String> = now.links[&LinkId::host("eth1")]
        .addresses
        .iter()
        .map(ToString::to_string)
        .filter(|one| !one.starts_with("fe80"))
        .collect();
    assert_eq!(own, ["192.0.2.11/24"], "{done:?}");
    let others = ["red", "hbn", "vx.", "br.", "cluster"];
    for step in &done {
        assert!(!others.iter().any(|other| step.contains(other)), "{done:?}");
    }
}

#[test]
fn a_workload_that_moved_is_learned_from_what_it_announces() {
    let mut config = base();
    config["fabricVRFs"]["red"] = fabric_vrf("red", 10001, 2000);
    config["layer2s"]["210"] = layer2(210, 10210, Some("red"));
    let desired = desired_of(config);
    let has = |path: &str, wanted: &str| {
        let mut settings = desired.sysctls.iter();
        settings.any(|(id, value)| id.path == path && value == wanted)
    };
    for path in [
        "net/ipv4/conf/all/arp_accept",
        "net/ipv4/conf/l2.210/arp_accept",
    ] {
        assert!(has(path, "1"), "{path}");
    }
    assert!(has("net/ipv6/conf/l2.210/accept_untracked_na", "2"));
}
