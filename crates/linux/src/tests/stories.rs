use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{base, desired_of, fabric_vrf, host, layer2, parse, plan, settle, texts};
use crate::{
    Conflict, Desired, Disruption, LinkId, Observed, ObservedLink, Step, Unsupported,
    desired::desired,
    diff::diff,
    model::apply_to_model,
    object::{Family, Kind},
    observed::ObservedNamespace,
    owned::Owner,
};

fn two_of_each() -> Value {
    let mut config = base();
    config["fabricVRFs"]["red"] = fabric_vrf("red", 10001, 2000);
    config["layer2s"]["100"] = layer2(100, 5100, Some("red"));
    config["layer2s"]["101"] = layer2(101, 5101, None);
    config
}

fn without(mut config: Value, group: &str, key: &str) -> Value {
    config[group].as_object_mut().unwrap().remove(key);
    config
}

#[test]
fn a_node_is_built_from_nothing_and_given_back() {
    let before = host();
    let mut now = before.clone();
    let first = settle(&desired_of(two_of_each()), &mut now);
    assert_eq!(first.disruption(), Disruption::Rebuild);
    let back = settle(&Desired::default(), &mut now);
    assert_eq!(
        texts(&back).last().map(String::as_str),
        Some("delete namespace selvedge")
    );
    let mut expected = before;
    for link in expected.links.values_mut() {
        link.addresses
            .retain(|address| !crate::owned::is_automatic(address));
    }
    for link in now.links.values_mut() {
        link.addresses
            .retain(|address| !crate::owned::is_automatic(address));
    }
    assert_eq!(now, expected);
}

#[test]
fn an_l3_vni_is_made_before_frr_and_set_up_after() {
    let mut config = base();
    config["fabricVRFs"]["red"] = fabric_vrf("red", 10001, 2000);
    let mut now = host();
    settle(&desired_of(base()), &mut now);
    let plan = settle(&desired_of(config), &mut now);
    let before: Vec<_> = plan.before_frr().iter().map(ToString::to_string).collect();
    let after: Vec<_> = plan.after_frr().iter().map(ToString::to_string).collect();
    assert_eq!(
        before,
        [
            "create link router/red: vrf table 10001",
            "set link router/red up",
            "create link router/br.red: bridge master red",
            "create link router/vx.red: vxlan id 2000 dstport 4789 local 198.51.100.1 master br.red",
            "add route 0.0.0.0/0 table 10001 metric 4278198272 in router: unreachable",
            "add route ::/0 table 10001 metric 4278198272 in router: unreachable",
        ]
    );
    assert_eq!(
        after,
        ["set link router/br.red up", "set link router/vx.red up"]
    );
    assert_eq!(plan.disruption(), Disruption::Additive);
}

#[test]
fn removing_a_segment_touches_only_its_objects() {
    let mut now = host();
    settle(&desired_of(two_of_each()), &mut now);
    let plan = settle(
        &desired_of(without(two_of_each(), "layer2s", "100")),
        &mut now,
    );
    assert_eq!(plan.before_frr(), []);
    assert_eq!(
        texts(&plan),
        [
            "delete link router/vx.5100",
            "delete link router/vlan.100",
            "delete link host/l2.100",
            "delete link router/l2.100",
        ]
    );
}

#[test]
fn removing_a_vrf_touches_only_its_objects_and_waits_for_frr() {
    let mut config = two_of_each();
    config["fabricVRFs"]["blue"] = fabric_vrf("blue", 10005, 2005);
    let mut now = host();
    settle(&desired_of(config), &mut now);
    let plan = settle(&desired_of(two_of_each()), &mut now);
    assert_eq!(plan.before_frr(), []);
    assert_eq!(
        texts(&plan),
        [
            "delete link router/vx.blue",
            "delete link router/br.blue",
            "delete link router/blue",
            "delete route 0.0.0.0/0 table 10005 metric 4278198272 in router: unreachable",
            "delete route ::/0 table 10005 metric 4278198272 in router: unreachable",
        ]
    );
}

#[test]
fn a_link_deleted_by_hand_is_the_only_thing_repaired() {
    let desired = desired_of(two_of_each());
    let mut now = host();
    settle(&desired, &mut now);
    now.links.remove(&LinkId::router("vx.5101"));
    assert_eq!(
        texts(&settle(&desired, &mut now)),
        [
            "create link router/vx.5101: vxlan id 5101 dstport 4789 local 198.51.100.1 master l2.101",
            "set link router/vx.5101 up",
        ]
    );
}

#[test]
fn a_segment_that_changes_its_vni_is_rebuilt_in_one_go() {
    let mut now = host();
    settle(&desired_of(two_of_each()), &mut now);
    let mut config = two_of_each();
    config["layer2s"]["101"] = layer2(101, 5999, None);
    config["layer2s"]["101"]["devices"]["vxlan"] = "vx.5101".into();
    let plan = settle(&desired_of(config), &mut now);
    assert_eq!(
        texts(&plan),
        [
            "delete link router/vx.5101",
            "create link router/vx.5101: vxlan id 5999 dstport 4789 local 198.51.100.1 master l2.101",
            "set link router/vx.5101 up",
        ]
    );
    assert_eq!(plan.disruption(), Disruption::Rebuild);
}

#[test]
fn a_vni_that_moves_to_another_device_frees_the_old_one_first() {
    let mut now = host();
    settle(&desired_of(two_of_each()), &mut now);
    let mut config = two_of_each();
    config["layer2s"]["101"]["devices"]["vxlan"] = "vx.new".into();
    let plan = settle(&desired_of(config), &mut now);
    assert_eq!(
        texts(&plan),
        [
            "delete link router/vx.5101",
            "create link router/vx.new: vxlan id 5101 dstport 4789 local 198.51.100.1 master l2.101",
            "set link router/vx.new up",
        ]
    );
}

#[test]
fn a_segment_that_changes_its_vrf_gets_its_addresses_again_after_the_move() {
    let mut config = two_of_each();
    let mut now = host();
    settle(&desired_of(config.clone()), &mut now);
    config["layer2s"]["100"]["irb"]["vrf"] = "cluster".into();
    assert_eq!(
        texts(&settle(&desired_of(config), &mut now)),
        [
            "set link router/l2.100 master cluster",
            "add address 2001:db8:100::1/64 to router/l2.100",
        ]
    );
}

#[test]
fn a_vni_that_a_vrf_takes_over_from_a_segment_is_freed_before_frr() {
    let mut now = host();
    settle(&desired_of(two_of_each()), &mut now);
    let mut config = two_of_each();
    config["fabricVRFs"]["red"] = fabric_vrf("red", 10001, 5101);
    config["layer2s"]["101"] = layer2(101, 2000, None);
    config["layer2s"]["101"]["devices"]["vxlan"] = "vx.5101".into();
    let plan = settle(&desired_of(config), &mut now);
    let before: Vec<_> = plan.before_frr().iter().map(ToString::to_string).collect();
    assert_eq!(
        before,
        [
            "delete link router/vx.red",
            "delete link router/vx.5101",
            "set link router/br.red alias \"selvedge:vrf red vni 5101\"",
            "create link router/vx.red: vxlan id 5101 dstport 4789 local 198.51.100.1 master br.red",
        ]
    );
}

#[test]
fn a_bridge_whose_addresses_change_keeps_its_mac() {
    let mut config = two_of_each();
    let mut now = host();
    settle(&desired_of(config.clone()), &mut now);
    config["layer2s"]["100"]["irb"]["ipAddresses"] = json!(["10.100.0.2/24"]);
    assert_eq!(
        texts(&settle(&desired_of(config), &mut now)),
        [
            "delete address 10.100.0.1/24 from router/l2.100",
            "delete address 2001:db8:100::1/64 from router/l2.100",
            "add address 10.100.0.2/24 to router/l2.100",
        ]
    );
}

#[test]
fn a_foreign_link_with_a_name_we_need_is_named_and_left_alone() {
    let mut now = host();
    let foreign = ObservedLink::fresh(Owner::Foreign, Kind::Bridge);
    now.links.insert(LinkId::host("hbn"), foreign);
    let conflicts = diff(&desired_of(base()), &now).unwrap_err();
    assert_eq!(
        conflicts,
        [Conflict::LinkTaken {
            id: LinkId::host("hbn"),
            kind: Kind::Bridge
        }]
    );
}

#[test]
fn the_local_rule_is_copied_before_it_is_removed() {
    let plan = plan(&desired_of(base()), &host());
    let rules: Vec<_> = texts(&plan)
        .into_iter()
        .filter(|text| text.contains(" rule ipv4"))
        .collect();
    assert_eq!(
        rules,
        [
            "add rule ipv4 32765: from all lookup 255 in router",
            "delete rule ipv4 0: from all lookup 255 in router",
        ]
    );
}

#[test]
fn a_namespace_of_somebody_else_is_used_and_left_standing() {
    let mut now = host();
    apply_to_model(
        &mut now,
        &Step::CreateNamespace {
            name: "selvedge".into(),
        },
    )
    .unwrap();
    now.namespace = Some(ObservedNamespace {
        name: "selvedge".into(),
        owner: Owner::Foreign,
    });
    settle(&desired_of(two_of_each()), &mut now);
    settle(&Desired::default(), &mut now);
    assert!(now.namespace.is_some());
    assert_eq!(now.ours().count(), 0);
    let first = crate::object::Rule::all(crate::Domain::Router, Family::V4, 0, 255);
    assert!(
        now.rules.contains_key(&first),
        "the local rule is back at its place"
    );
}

#[test]
fn a_member_of_a_bond_and_a_bond_itself_are_not_moved_and_the_reason_is_given() {
    let desired = desired_of(base());
    let mut member = host();
    member.links.get_mut(&LinkId::host("eth1")).unwrap().master = Some("bond0".to_owned());
    let [conflict] = diff(&desired, &member).unwrap_err().try_into().unwrap();
    assert_eq!(
        conflict.to_string(),
        "eth1 is a member of bond0; take it out of bond0 or name another NIC in the Underlay"
    );
    let mut bond = host();
    bond.links.get_mut(&LinkId::host("eth1")).unwrap().kind = Kind::Other("bond".to_owned());
    let [conflict] = diff(&desired, &bond).unwrap_err().try_into().unwrap();
    assert!(
        matches!(conflict, Conflict::NicImmovable { .. }),
        "{conflict}"
    );
}

#[test]
fn a_nic_keeps_its_addresses_through_a_crash_between_move_and_return() {
    let desired = desired_of(base());
    for cut in 0..plan(&desired, &host()).len() {
        let mut now = host();
        for step in plan(&desired, &now).steps().take(cut) {
            apply_to_model(&mut now, step).unwrap();
        }
        settle(&desired, &mut now);
        let nic = &now.links[&LinkId::router("eth1")];
        assert!(nic.up && nic.addresses.contains(&"192.0.2.11/24".parse().unwrap()));
    }
    let mut built = host();
    settle(&desired, &mut built);
    for cut in 0..plan(&Desired::default(), &built).len() {
        let mut now = built.clone();
        for step in plan(&Desired::default(), &now).steps().take(cut) {
            apply_to_model(&mut now, step).unwrap();
        }
        settle(&Desired::default(), &mut now);
        let nic = &now.links[&LinkId::host("eth1")];
        assert_eq!((nic.owner, nic.up), (Owner::Foreign, true));
        assert_eq!(
            nic.addresses,
            BTreeSet::from(["192.0.2.11/24".parse().unwrap()])
        );
    }
}

#[test]
fn what_cannot_be_done_is_said() {
    let mut config = base();
    config["layer2s"]["100"] = layer2(100, 5100, Some("blue"));
    config["layer2s"]["100"]["disableSegmentation"] = true.into();
    config["fabricVRFs"]["red"] = fabric_vrf("red", 254, 2000);
    config["fabricVRFs"]["red"]["devices"] = json!({"vrf": "red"});
    config["underlay"]["trunk"]["mtu"] = 1400.into();
    let mut paths: Vec<String> = desired(&parse(config))
        .unwrap_err()
        .into_iter()
        .map(|Unsupported { path, .. }| path)
        .collect();
    paths.sort();
    assert_eq!(
        paths,
        [
            "fabricVRFs.red.devices",
            "fabricVRFs.red.table",
            "layer2s.100.disableSegmentation",
            "layer2s.100.irb.vrf",
            "layer2s.100.mtu",
        ]
    );
}

#[test]
fn a_segment_too_small_for_ipv6_is_built_without_it() {
    let mut config = base();
    config["layer2s"]["100"] = layer2(100, 5100, Some("cluster"));
    config["layer2s"]["100"]["mtu"] = 1200.into();
    let refused = desired(&parse(config.clone())).unwrap_err();
    assert_eq!(
        refused[0].to_string(),
        "layer2s.100.devices: router/l2.100 has an IPv6 address and an MTU below 1280"
    );
    config["layer2s"]["100"]["irb"]["ipAddresses"] = json!(["10.100.0.1/24"]);
    let links = desired_of(config).links;
    assert_eq!(
        links[&LinkId::router("l2.100")].addr_gen,
        crate::object::AddrGen::None
    );
}

#[test]
fn policy_routes_match_the_link_in_ipv4_and_the_vrf_in_ipv6() {
    let mut config = base();
    config["localVRFs"]["s-red"] =
        json!({"table": 10002, "devices": {"vrf": "s-red"}, "mtu": 1500});
    config["clusterVRF"]["policyRoutes"] = json!([
        {"trafficMatch": {"srcPrefix": "10.1.0.0/16", "protocol": "tcp", "dstPort": 443}, "nextHop": {"vrf": "s-red"}, "priority": 100},
        {"trafficMatch": {"srcPrefix": "2001:db8::/64"}, "nextHop": {"vrf": "s-red"}, "priority": 100, "interfaces": ["l2.100"]},
        {"trafficMatch": {"srcPrefix": "10.2.0.0/16"}, "nextHop": {"vrf": "s-red"}, "priority": 100, "interfaces": ["l2.100"]},
    ]);
    let rules: Vec<_> = desired_of(config)
        .rules
        .iter()
        .filter(|rule| rule.priority == 100)
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        rules,
        [
            "ipv4 100: from 10.1.0.0/16 iif hbn ipproto 6 dport 443 lookup 10002 in router",
            "ipv4 100: from 10.2.0.0/16 iif hbn lookup 10002 in router",
            "ipv4 100: from 10.2.0.0/16 iif l2.100 lookup 10002 in router",
            "ipv6 100: from 2001:db8::/64 iif cluster lookup 10002 in router",
        ]
    );
}

#[test]
fn a_vlan_on_a_device_of_the_host_needs_no_router() {
    let config = json!({"revision": "r", "hostVLANs": {"vlan.500": {
        "parent": "eth0", "vlan": 500, "mtu": 1500, "addresses": ["198.51.100.2/24"],
        "routes": [{"prefix": "0.0.0.0/0", "nextHop": {"address": "198.51.100.1"}}],
    }}});
    let desired = desired_of(config);
    assert_eq!(desired.namespace, None);
    let mut now = host();
    let mut below = ObservedLink::fresh(Owner::Foreign, Kind::Other("ether".into()));
    below.mtu = 1400;
    below.up = true;
    let nothing = plan(&desired, &now);
    assert!(nothing.is_empty(), "nothing can be made");
    assert_eq!(
        nothing.notes()[0].to_string(),
        "host/vlan.500 is not made: there is no eth0 to carry it"
    );
    now.links.insert(LinkId::host("eth0"), below);
    let made = plan(&desired, &now);
    assert_eq!(
        made.notes()[0].to_string(),
        "host/vlan.500 gets the MTU of eth0 below it, 1400"
    );
    let steps = texts(&made);
    assert!(
        steps[0].starts_with("create link host/vlan.500: vlan"),
        "{steps:?}"
    );
    assert!(
        steps.iter().all(|step| !step.contains("host/eth0")),
        "{steps:?}"
    );
    let mut down = now.clone();
    if let Some(below) = down.links.get_mut(&LinkId::host("eth0")) {
        below.up = false;
    }
    settle(&desired, &mut down);
    assert_eq!(
        plan(&desired, &down).notes()[0].to_string(),
        "host/vlan.500 stays down as long as eth0 below it is"
    );
    settle(&desired, &mut now);
    assert!(plan(&desired, &now).is_empty());
}

#[test]
fn a_vlan_on_an_uplink_is_refused() {
    let mut config = base();
    config["hostVLANs"] = json!({"vlan.500": {"parent": "eth1", "vlan": 500, "mtu": 1500}});
    let refused = desired(&parse(config)).unwrap_err();
    assert_eq!(
        refused[0].to_string(),
        "hostVLANs.vlan.500.parent: eth1 belongs to the router"
    );
}

#[test]
fn a_setting_that_the_kernel_lacks_is_noted_and_not_tried_again() {
    let desired = desired_of(base());
    let mut now: Observed = host();
    settle(&desired, &mut now);
    let id = now
        .sysctls
        .keys()
        .find(|id| id.path.ends_with("all/accept_untracked_na"))
        .cloned()
        .unwrap();
    now.sysctls.insert(id.clone(), None);
    let plan = plan(&desired, &now);
    assert!(plan.is_empty());
    assert_eq!(plan.notes(), [crate::Note::SysctlMissing(id)]);
}
