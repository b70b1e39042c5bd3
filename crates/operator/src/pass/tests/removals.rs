//! What a revision takes away: from the cluster, and from nodes.

use super::*;

/// An `L3VNI` with a VRF of its own.
fn l3vni(compiler: &mut Compiler, number: u32) {
    let name = format!("red{number}");
    let metadata = json!({"name": name, "namespace": "default"});
    let spec = json!({"vrf": name, "vni": 5000 + number});
    let parts = json!({"metadata": metadata, "spec": spec});
    put(compiler, Kind::L3Vni, &name, &parts);
}

/// The same with a BGP session of the host.
fn l3vni_with_session(compiler: &mut Compiler, number: u32) {
    let name = format!("red{number}");
    let metadata = json!({"name": name, "namespace": "default"});
    let cidr = json!({"ipv4": format!("192.168.{number}.0/24")});
    let session = json!({"asn": 64514, "hostasn": 64600, "localcidr": cidr});
    let spec = json!({"vrf": name, "vni": 5000 + number, "hostsession": session});
    let parts = json!({"metadata": metadata, "spec": spec});
    put(compiler, Kind::L3Vni, &name, &parts);
}

/// A VRF that reaches so many prefixes.
fn vrf_reaching(compiler: &mut Compiler, number: u32, prefixes: u32) {
    let import: Vec<Value> = (0..prefixes)
        .map(|prefix| json!({"cidr": format!("10.{number}.{prefix}.0/24"), "action": "permit"}))
        .collect();
    let vni = 20_000 + number;
    let name = format!("ext{number}");
    let spec = json!({
        "vrf": name, "vni": vni, "routeTarget": format!("65000:{vni}"), "seq": 10, "import": import,
    });
    let parts = json!({"spec": spec});
    put(compiler, Kind::VrfRouteConfiguration, &name, &parts);
}

/// A segment of the nodes in these racks.
fn segment_in(compiler: &mut Compiler, vlan: u32, racks: &[&str]) {
    let selector =
        json!({"matchExpressions": [{"key": "rack", "operator": "In", "values": racks}]});
    let spec = json!({"id": vlan, "vni": 10_000 + vlan, "mtu": 1500, "nodeSelector": selector});
    let name = format!("vlan{vlan}");
    let parts = json!({"spec": spec});
    put(compiler, Kind::Layer2NetworkConfiguration, &name, &parts);
}

/// Three nodes in racks of their own, on a fabric with ten segments.
fn racks() -> Compiler {
    let mut compiler = Compiler::default();
    for node in ["a", "b", "c"] {
        let labels = json!({"metadata": {"name": node, "labels": {"rack": node}}});
        put(&mut compiler, Kind::Node, node, &labels);
    }
    underlay(&mut compiler, 64514);
    for vlan in 1..=10 {
        segment_in(&mut compiler, vlan, &["a", "b", "c"]);
    }
    compiler
}

#[test]
fn objects_of_the_fabric_count_as_what_a_revision_removes() {
    let (mut compiler, mut now) = (three_nodes(), 100);
    underlay(&mut compiler, 64514);
    for number in 1..=10 {
        l3vni(&mut compiler, number);
    }
    complete(&mut compiler, &mut now);
    let remove = |compiler: &mut Compiler, number: u32| {
        let mut one = ObjectRef::named(Kind::L3Vni, format!("red{number}"));
        one.key.namespace = Some("default".into());
        compiler.remove(&one);
    };
    for number in 1..=3 {
        remove(&mut compiler, number);
    }
    assert_eq!(pass_at(&mut compiler, now + 1).nodes(), ["a"]);
    remove(&mut compiler, 4);
    let pass = pass_at(&mut compiler, now + 2);
    assert!(pass.nodes().is_empty(), "{:?}", pass.nodes());
    assert_eq!(
        pass.step.status.unapproved_message.as_deref(),
        Some("it removes 4 of 10 L3VNIs; rollout.maxRemoval allows 3")
    );
}

#[test]
fn selectors_that_match_no_node_any_more_count_as_removals() {
    let (mut compiler, mut now) = (racks(), 100);
    complete(&mut compiler, &mut now);
    for vlan in 1..=3 {
        segment_in(&mut compiler, vlan, &["gone"]);
    }
    let pass = pass_at(&mut compiler, now + 1);
    assert_eq!(pass.nodes(), ["a"], "{:?}", pass.step.status);
    segment_in(&mut compiler, 4, &["gone"]);
    let pass = pass_at(&mut compiler, now + 2);
    assert!(pass.nodes().is_empty(), "{:?}", pass.nodes());
    assert_eq!(pass.step.status.phase.as_deref(), Some("Unapproved"));
    let message = "it takes as much from nodes as 4 of their 10 layer 2 segments; rollout.maxRemoval allows 3";
    assert_eq!(
        pass.step.status.unapproved_message.as_deref(),
        Some(message)
    );
    approve(&mut compiler, &pass);
    let pass = Pass::compute(&mut compiler, |_| Agent::ALIVE, BTreeMap::new(), now + 3);
    assert_eq!(pass.nodes(), ["a"]);
}

#[test]
fn what_a_part_of_the_nodes_loses_counts_in_part_and_what_has_begun_goes_on() {
    let (mut compiler, mut now) = (racks(), 100);
    complete(&mut compiler, &mut now);
    // Each of ten loses a third of its nodes.
    for vlan in 1..=10 {
        segment_in(&mut compiler, vlan, &["a", "b"]);
    }
    now += 20;
    let pass = pass_at(&mut compiler, now);
    assert_eq!(pass.nodes(), ["c"], "{:?}", pass.step.status);
    publish(&mut compiler, &pass, now, "provisioned");
    complete(&mut compiler, &mut now);
    // Each of ten loses half of what it has left.
    for vlan in 1..=10 {
        segment_in(&mut compiler, vlan, &["a"]);
    }
    let pass = pass_at(&mut compiler, now + 20);
    assert!(pass.nodes().is_empty(), "{:?}", pass.nodes());
    let message = pass.step.status.unapproved_message.expect("a message");
    assert!(
        message.contains("5 of their 10 layer 2 segments"),
        "{message}"
    );
}

#[test]
fn prefixes_that_a_vrf_reaches_no_more_count_as_a_part_of_it() {
    let (mut compiler, mut now) = (three_nodes(), 100);
    underlay(&mut compiler, 64514);
    for number in 1..=10 {
        vrf_reaching(&mut compiler, number, 4);
    }
    complete(&mut compiler, &mut now);
    for number in 1..=3 {
        vrf_reaching(&mut compiler, number, 0);
    }
    let pass = pass_at(&mut compiler, now + 1);
    assert_eq!(pass.nodes(), ["a"], "{:?}", pass.step.status);
    // Each of two more loses a half.
    for number in 4..=5 {
        vrf_reaching(&mut compiler, number, 2);
    }
    let pass = pass_at(&mut compiler, now + 2);
    assert!(pass.nodes().is_empty(), "{:?}", pass.nodes());
    let message = "it takes as much from nodes as 4 of their 10 VRFs; rollout.maxRemoval allows 3";
    let status = &pass.step.status;
    assert_eq!(status.unapproved_message.as_deref(), Some(message));
    let ready = status.conditions.get("Ready").expect("a condition");
    assert_eq!(ready.reason, "Unapproved");
    assert!(ready.message.starts_with(message), "{ready:?}");
}

#[test]
fn prefixes_that_are_added_need_no_approval() {
    let (mut compiler, mut now) = (three_nodes(), 100);
    underlay(&mut compiler, 64514);
    for number in 1..=10 {
        vrf_reaching(&mut compiler, number, 2);
    }
    complete(&mut compiler, &mut now);
    for number in 1..=10 {
        vrf_reaching(&mut compiler, number, 4);
    }
    assert_eq!(pass_at(&mut compiler, now + 1).nodes(), ["a"]);
}

#[test]
fn bgp_sessions_of_vrfs_that_stay_count_as_what_is_taken_from_nodes() {
    let (mut compiler, mut now) = (three_nodes(), 100);
    underlay(&mut compiler, 64514);
    for number in 1..=10 {
        l3vni_with_session(&mut compiler, number);
    }
    complete(&mut compiler, &mut now);
    for number in 1..=3 {
        l3vni(&mut compiler, number);
    }
    let pass = pass_at(&mut compiler, now + 1);
    assert_eq!(pass.nodes(), ["a"], "{:?}", pass.step.status);
    l3vni(&mut compiler, 4);
    let pass = pass_at(&mut compiler, now + 2);
    assert!(pass.nodes().is_empty(), "{:?}", pass.nodes());
    assert_eq!(
        pass.step.status.unapproved_message.as_deref(),
        Some(
            "it takes as much from nodes as 4 of their 10 BGP sessions; rollout.maxRemoval allows 3"
        )
    );
}
