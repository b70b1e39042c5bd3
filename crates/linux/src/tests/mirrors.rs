//! Stories of mirrors.

use serde_json::{Value, json};

use super::{base, desired_of, fabric_vrf, host, layer2, plan, settle, texts};
use crate::{
    Desired, Filter, FilterId, Hook, LinkId, Observed, ObservedFilter, ObservedLink,
    model::apply_to_model,
    object::{Family, Kind},
    owned::{FILTER_PRIORITIES, Owner},
    plan::Note,
};

fn acl(direction: &str, packets: &Value) -> Value {
    json!({"trafficMatch": packets, "mirrorDestination": "gre.c", "direction": direction})
}

/// A segment and a VRF, and a tunnel in a VRF of its own.
fn config(of_segment: &[Value], of_vrf: &[Value]) -> Value {
    let mut config = base();
    config["fabricVRFs"]["red"] = fabric_vrf("red", 10001, 2000);
    config["fabricVRFs"]["red"]["mirrorAcls"] = json!(of_vrf);
    let mut mirror = fabric_vrf("mir", 10002, 2001);
    mirror["loopbacks"] = json!({"lo.mir": {"ipAddresses": ["203.0.113.1/32"]}});
    mirror["gres"] = json!({"gre.c": {
        "sourceAddress": "203.0.113.1", "destinationAddress": "203.0.113.9", "sourceInterface": "lo.mir", "layer": "layer3",
    }});
    config["fabricVRFs"]["mir"] = mirror;
    config["layer2s"]["100"] = layer2(100, 5100, Some("red"));
    config["layer2s"]["100"]["mirrorAcls"] = json!(of_segment);
    config
}

fn filters(config: Value) -> Vec<String> {
    let desired = desired_of(config);
    assert_eq!(desired.unmirrored, []);
    desired.filters.iter().map(Filter::to_string).collect()
}

fn foreign(now: &mut Observed, priority: u16) -> FilterId {
    let id = FilterId {
        link: LinkId::router("vlan.100"),
        hook: Hook::Egress,
        priority,
    };
    now.filters.insert(id.clone(), ObservedFilter::Foreign);
    id
}

#[test]
fn a_mirror_of_everything_copies_both_families() {
    assert_eq!(
        filters(config(&[acl("ingress", &json!({}))], &[])),
        [
            "router/vlan.100 egress ipv4 into gre.c",
            "router/vlan.100 egress ipv6 into gre.c",
        ]
    );
}

#[test]
fn directions_are_the_workloads_on_ports_and_towards_the_fabric() {
    let icmp = json!({"protocol": "icmp"});
    let both = [acl("ingress", &icmp), acl("egress", &icmp)];
    assert_eq!(
        filters(config(&both, &both)),
        [
            "router/vlan.100 ingress ipv4 ipproto 1 into gre.c",
            "router/vlan.100 egress ipv4 ipproto 1 into gre.c",
            "router/vx.red ingress ipv4 ipproto 1 into gre.c",
            "router/vx.red egress ipv4 ipproto 1 into gre.c",
        ]
    );
}

#[test]
fn a_rule_is_of_the_families_and_protocols_that_it_can_be_of() {
    let of = |packets| filters(config(&[acl("egress", &packets)], &[]));
    let at = "router/vlan.100 ingress";
    let tcp = of(json!({"protocol": "tcp", "dstPort": 443, "srcPrefix": "10.0.0.0/8"}));
    let expected = format!("{at} ipv4 from 10.0.0.0/8 ipproto 6 dport 443 into gre.c");
    assert_eq!(tcp, [expected]);
    let v6 = of(json!({"dstPrefix": "2001:db8::1"}));
    assert_eq!(v6, [format!("{at} ipv6 to 2001:db8::1/128 into gre.c")]);
    let all_v4 = of(json!({"dstPrefix": "0.0.0.0/0"}));
    assert_eq!(all_v4, [format!("{at} ipv4 into gre.c")]);
    assert_eq!(of(json!({"protocol": "icmpv6"})).len(), 1);
    assert_eq!(
        of(json!({"srcPort": 53})).len(),
        6,
        "three protocols have ports"
    );
}

#[test]
fn tunnels_come_before_filters_and_go_after_them() {
    let mut now = host();
    settle(&desired_of(config(&[], &[])), &mut now);
    let mirrored = config(&[acl("ingress", &json!({"protocol": "icmp"}))], &[]);
    let mut bare = config(&[], &[]);
    bare["fabricVRFs"]["mir"]["gres"] = json!({});
    settle(&desired_of(bare.clone()), &mut now);
    let come = settle(&desired_of(mirrored), &mut now);
    assert_eq!(come.essential().count(), 0);
    assert_eq!(
        texts(&come),
        [
            "create link router/gre.c: gre from 203.0.113.1 to 203.0.113.9 master mir",
            "set link router/gre.c up",
            "add hook for filters to router/vlan.100",
            "add filter router/vlan.100 egress ipv4 ipproto 1 into gre.c priority 32768",
        ]
    );
    let go = settle(&desired_of(bare), &mut now);
    assert_eq!(go.essential().count(), 0);
    assert_eq!(
        texts(&go),
        [
            "delete filter router/vlan.100 egress priority 32768",
            "delete link router/gre.c",
        ]
    );
}

#[test]
fn another_rule_leaves_the_others_where_they_are() {
    let mut now = host();
    let (tcp, udp) = (json!({"protocol": "tcp"}), json!({"protocol": "udp"}));
    settle(&desired_of(config(&[acl("ingress", &udp)], &[])), &mut now);
    let both = [acl("ingress", &tcp), acl("ingress", &udp)];
    let plan = settle(&desired_of(config(&both, &[])), &mut now);
    assert_eq!(
        texts(&plan),
        [
            "add filter router/vlan.100 egress ipv4 ipproto 6 into gre.c priority 32770",
            "add filter router/vlan.100 egress ipv6 ipproto 6 into gre.c priority 32771",
        ]
    );
}

#[test]
fn a_tunnel_that_changes_takes_its_filters_along() {
    let mut now = host();
    let acls = [acl("ingress", &json!({"protocol": "icmp"}))];
    settle(&desired_of(config(&acls, &[])), &mut now);
    let mut moved = config(&acls, &[]);
    moved["fabricVRFs"]["mir"]["gres"]["gre.c"]["destinationAddress"] = "203.0.113.10".into();
    let plan = settle(&desired_of(moved), &mut now);
    assert_eq!(
        texts(&plan),
        [
            "delete filter router/vlan.100 egress priority 32768",
            "delete link router/gre.c",
            "create link router/gre.c: gre from 203.0.113.1 to 203.0.113.10 master mir",
            "set link router/gre.c up",
            "add filter router/vlan.100 egress ipv4 ipproto 1 into gre.c priority 32768",
        ]
    );
}

#[test]
fn filters_and_hooks_of_others_are_left_alone() {
    let mut now = host();
    settle(&desired_of(config(&[], &[])), &mut now);
    now.hooks.insert(LinkId::router("vlan.100"));
    let low = foreign(&mut now, 10);
    let ours = foreign(&mut now, *FILTER_PRIORITIES.start());
    let acls = [acl("ingress", &json!({"protocol": "icmp"}))];
    let come = settle(&desired_of(config(&acls, &[])), &mut now);
    assert_eq!(
        texts(&come),
        ["add filter router/vlan.100 egress ipv4 ipproto 1 into gre.c priority 32769"]
    );
    let go = settle(&desired_of(config(&[], &[])), &mut now);
    assert_eq!(
        texts(&go),
        ["delete filter router/vlan.100 egress priority 32769"]
    );
    assert_eq!(now.filters.keys().collect::<Vec<_>>(), [&low, &ours]);
    assert!(now.hooks.contains(&LinkId::router("vlan.100")));
}

#[test]
fn a_filter_that_somebody_spoils_or_doubles_is_mended() {
    let mut now = host();
    let acls = [acl("ingress", &json!({"protocol": "icmp"}))];
    let desired = desired_of(config(&acls, &[]));
    settle(&desired, &mut now);
    let (id, seen) = now.filters.iter().next().unwrap();
    let (id, seen) = (id.clone(), seen.clone());
    let second = FilterId {
        priority: id.priority + 5,
        ..id.clone()
    };
    now.filters.insert(second, seen);
    settle(&desired, &mut now);
    assert_eq!(now.filters.len(), 1);
    let spoiled = ObservedFilter::Ours {
        family: Family::V4,
        copies: None,
    };
    now.filters.insert(id, spoiled);
    assert_eq!(settle(&desired, &mut now).len(), 2);
}

#[test]
fn a_mirror_that_cannot_be_had_is_noted_and_all_else_is_made() {
    let mut wrong = config(
        &[acl("ingress", &json!({})), {
            let mut nowhere = acl("ingress", &json!({}));
            nowhere["mirrorDestination"] = "gre.none".into();
            nowhere
        }],
        &[],
    );
    wrong["clusterVRF"]["mirrorAcls"] = json!([acl("ingress", &json!({}))]);
    wrong["fabricVRFs"]["mir"]["gres"]["gre.bad"] = json!({
        "sourceAddress": "203.0.113.1", "destinationAddress": "2001:db8::9", "layer": "layer3",
    });
    let mut now = host();
    let notes = settle(&desired_of(wrong), &mut now);
    let notes: Vec<String> = notes.notes().iter().map(Note::to_string).collect();
    assert_eq!(
        notes,
        [
            "fabricVRFs.mir.gres.gre.bad: sourceAddress and destinationAddress are of different families",
            "layer2s.100.mirrorAcls.1.mirrorDestination: there is no tunnel gre.none",
            "clusterVRF.mirrorAcls: the VRF has no VXLAN to mirror from",
        ]
    );
    assert_eq!(now.filters.len(), 2);
}

#[test]
fn a_tunnel_whose_name_is_taken_is_noted_and_all_else_is_made() {
    let mut now = host();
    let taken = LinkId::router("gre.c");
    let bare = config(&[], &[]);
    let mut without = bare.clone();
    without["fabricVRFs"]["mir"]["gres"] = json!({});
    settle(&desired_of(without), &mut now);
    let dummy = ObservedLink::fresh(Owner::Foreign, Kind::Dummy);
    now.links.insert(taken.clone(), dummy.clone());
    let mut more = config(&[acl("ingress", &json!({}))], &[]);
    more["layer2s"]["101"] = layer2(101, 5101, None);
    let plan = settle(&desired_of(more), &mut now);
    assert!(matches!(plan.notes(), [note] if note.is_of_mirror()));
    assert_eq!(plan.mirrors().count(), 0);
    assert!(now.links.contains_key(&LinkId::router("vlan.101")));
    assert_eq!(now.links[&taken], dummy);
}

#[test]
fn all_else_is_as_it_should_be_when_no_step_of_a_mirror_could_be_done() {
    let mut now = host();
    let acls = [acl("ingress", &json!({})), acl("egress", &json!({}))];
    let desired = desired_of(config(&acls, &acls));
    let first = plan(&desired, &now);
    for step in first.essential() {
        apply_to_model(&mut now, step).unwrap();
    }
    let second = plan(&desired, &now);
    assert_eq!(second.essential().count(), 0);
    assert!(second.mirrors().count() > 0);
    for step in plan(&Desired::default(), &now).essential() {
        apply_to_model(&mut now, step).unwrap();
    }
    assert_eq!(now.ours().count(), 0);
}
