//! What went wrong elsewhere, and must not here: NICs that are given back, segments without a gateway, attributes that change, many
//! VRFs.

use super::{base, desired_of, fabric_vrf, host, layer2, plan, settle, texts};
use crate::{
    Desired, HostAddress, HostHop, HostRoute, LinkId, NicMemory, Step, model::apply_to_model,
};

#[test]
fn a_nic_gets_back_what_it_had_in_the_host_also_after_a_crash() {
    let desired = desired_of(base());
    let route = |destination: &str, gateway: Option<&str>| HostRoute {
        gateway: gateway.map(|gateway| gateway.parse().unwrap()),
        destination: destination.parse().unwrap(),
        device: "eth1".to_owned(),
        table: 254,
        metric: 100,
        protocol: 4,
        source: None,
        on_link: false,
        mtu: None,
        weight: 0,
        more: Vec::new(),
    };
    let two_ways = HostRoute {
        more: vec![HostHop {
            gateway: Some("192.0.2.2".parse().unwrap()),
            device: "eth1".to_owned(),
            on_link: false,
            weight: 1,
        }],
        ..route("198.51.100.0/24", Some("192.0.2.1"))
    };
    let labelled = HostAddress {
        address: "192.0.2.7/32".parse().unwrap(),
        peer: Some("192.0.2.8".parse().unwrap()),
        label: Some("eth1:old".to_owned()),
        no_prefix_route: true,
        no_dad: true,
        valid: Some(600),
        preferred: None,
    };
    let memory = NicMemory {
        alias: Some("uplink to leaf1".to_owned()),
        mtu: Some(9000),
        routes: vec![
            route("203.0.113.0/24", None),
            route("0.0.0.0/0", Some("192.0.2.1")),
            two_ways,
        ],
        addresses: vec![labelled],
        settings: [("net/ipv4/conf/eth1/rp_filter".to_owned(), "2".to_owned())].into(),
    };
    let mut built = host();
    settle(&desired, &mut built);
    built.nic_memory.insert("eth1".to_owned(), memory);
    assert_eq!(texts(&plan(&desired, &built)), Vec::<String>::new());

    let return_it = plan(&Desired::default(), &built);
    let last: Vec<String> = return_it
        .nic_restore()
        .iter()
        .map(Step::to_string)
        .collect();
    assert_eq!(
        last,
        [
            "set link host/eth1 alias \"uplink to leaf1\"",
            "set link host/eth1 mtu 9000",
            "set net/ipv4/conf/eth1/rp_filter in host to 2",
            "restore address 192.0.2.7/32 peer 192.0.2.8 label eth1:old noprefixroute nodad for 600 s of nic eth1",
            "restore route 203.0.113.0/24 dev eth1 table 254",
            "restore route 0.0.0.0/0 via 192.0.2.1 dev eth1 table 254",
            "restore route 198.51.100.0/24 via 192.0.2.1 dev eth1 and via 192.0.2.2 dev eth1 table 254",
        ]
    );
    for cut in 0..return_it.len() {
        let mut now = built.clone();
        for step in return_it.steps().take(cut) {
            apply_to_model(&mut now, step).unwrap();
        }
        settle(&Desired::default(), &mut now);
        let nic = &now.links[&LinkId::host("eth1")];
        assert_eq!(nic.alias.as_deref(), Some("uplink to leaf1"));
        assert_eq!(nic.mtu, 9000);
        let left = &now.nic_memory["eth1"];
        assert!(left.routes.is_empty() && left.addresses.is_empty() && left.settings.is_empty());
    }
}

#[test]
fn a_segment_without_gateway_and_mac_is_built() {
    let mut config = base();
    config["layer2s"]["100"] = layer2(100, 5100, None);
    let mut now = host();
    settle(&desired_of(config), &mut now);
    let bridge = &now.links[&LinkId::router("l2.100")];
    assert!(bridge.up);
    assert!(bridge.addresses.iter().all(crate::owned::is_automatic));
    let vxlan = &now.links[&LinkId::router("vx.5100")];
    assert_eq!(vxlan.master.as_deref(), Some("l2.100"));
}

#[test]
fn a_changed_attribute_of_a_link_is_a_change() {
    let mut config = base();
    config["fabricVRFs"]["blue"] = fabric_vrf("blue", 10001, 4001);
    config["layer2s"]["100"] = layer2(100, 5100, Some("blue"));
    let mut built = host();
    settle(&desired_of(config.clone()), &mut built);
    for (pointer, value) in [
        ("/layer2s/100/mtu", 1400.into()),
        ("/layer2s/100/vni", 5101.into()),
        ("/layer2s/100/neighSuppression", false.into()),
        ("/layer2s/100/irb/macAddress", "02:00:5e:00:01:02".into()),
        ("/layer2s/100/irb/ipAddresses/0", "10.100.0.2/24".into()),
        (
            "/layer2s/100/hostInterface/addresses/0",
            "10.100.0.8/24".into(),
        ),
        ("/fabricVRFs/blue/table", 10002.into()),
        ("/fabricVRFs/blue/vni", 4002.into()),
        ("/underlay/vtep", "198.51.100.2".into()),
        ("/underlay/trunk/mtu", 8000.into()),
    ] {
        let mut changed = config.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        let desired = desired_of(changed);
        let steps = texts(&plan(&desired, &built));
        assert!(!steps.is_empty(), "{pointer} is no change");
        settle(&desired, &mut built.clone());
    }
}

#[test]
fn a_node_has_many_vrfs() {
    let mut config = base();
    for number in 0..200_u32 {
        let name = format!("vrf{number}");
        config["fabricVRFs"][&name] = fabric_vrf(&name, 10100 + number, 4000 + number);
    }
    let mut now = host();
    settle(&desired_of(config), &mut now);
    let is_vrf = |id: &&LinkId| id.name.starts_with("vrf");
    assert_eq!(now.links.keys().filter(is_vrf).count(), 200);
}
