//! What went wrong elsewhere: the order of revisions and of nodes, and how far a bad change goes.

use super::*;

/// Status, reason and message of the condition Ready of the attachment.
fn ready(compiler: &mut Compiler) -> String {
    let attachment = ObjectRef::named(Kind::Layer2Attachment, "blue");
    let status = compiler.statuses().get(&attachment).expect("a status");
    let status = status.to_value();
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut ready = conditions.filter(|one| one["type"] == "Ready");
    let ready = ready.next().expect("a condition");
    let text = |field: &str| ready[field].as_str().unwrap_or_default().to_owned();
    [text("status"), text("reason"), text("message")].join(" ")
}

#[test]
fn an_intent_names_the_failed_node_until_another_change_is_compiled() {
    let mut compiler = three_nodes();
    let attach = |compiler: &mut Compiler, mtu: u32| {
        let spec = json!({"networkRef": "blue", "interfaceName": "blue", "mtu": mtu});
        put(
            compiler,
            Kind::Layer2Attachment,
            "blue",
            &json!({"spec": spec}),
        );
    };
    let neighbors = json!([{"asn": 64512, "address": "192.0.2.1"}]);
    let underlay = json!({"asn": 64514, "nics": ["eth1"], "evpn": {"vtepcidr": "100.65.0.0/24"}, "neighbors": neighbors});
    put(
        &mut compiler,
        Kind::Underlay,
        "all",
        &json!({"spec": underlay}),
    );
    let network = json!({"vlan": 5, "vni": 10005});
    put(
        &mut compiler,
        Kind::Network,
        "blue",
        &json!({"spec": network}),
    );
    attach(&mut compiler, 1500);
    for (node, time) in [("a", 100), ("b", 120), ("c", 140)] {
        pass_at(&mut compiler, time);
        store_at(&mut compiler, node, time, "provisioned");
    }
    pass_at(&mut compiler, 150);
    assert_eq!(ready(&mut compiler), "True Applied applied on 3 nodes");
    let (snapshot, _) = compiler.compile();
    let before = &snapshot.node_network_configs[&Key::named("a")];
    let before = serde_json::to_value(&before.spec).expect("a config");

    attach(&mut compiler, 1400);
    assert_eq!(pass_at(&mut compiler, 200).nodes(), ["a"]);
    store_at(&mut compiler, "a", 200, "invalid");
    let pass = pass_at(&mut compiler, 201);
    assert_eq!(pass.nodes(), ["a"], "it gets what it had");
    let failed = "False NodeFailed apply failed on node a";
    assert_eq!(ready(&mut compiler), failed);
    let status = json!({"configStatus": "provisioned", "observedRevision": before["revision"]});
    let parts = json!({"spec": before, "status": status});
    put(&mut compiler, Kind::NodeNetworkConfig, "a", &parts);
    pass_at(&mut compiler, 202);
    assert_eq!(ready(&mut compiler), failed, "also when the node is back");

    attach(&mut compiler, 1300);
    let pending = "False Pending applied on 0 of 3 nodes";
    assert_eq!(ready(&mut compiler), pending, "before it is stored");
    attach(&mut compiler, 1400);
    assert_eq!(ready(&mut compiler), failed, "the failed one again");
}

/// Gives all stored revisions these times of creation, in the order of their sequence.
fn created_at(compiler: &mut Compiler, time: impl Fn(u64) -> Time) {
    let revisions = compiler.snapshot().network_config_revisions.clone();
    for (key, revision) in revisions {
        let status = revision.status.expect("a status");
        let created = stored::text(time(status.sequence.into()));
        let parts = json!({
            "metadata": {"name": key.name, "creationTimestamp": created},
            "spec": revision.spec, "status": status,
        });
        put(compiler, Kind::NetworkConfigRevision, &key.name, &parts);
    }
}

#[test]
fn the_last_valid_revision_is_the_last_one_whatever_clocks_say() {
    let clocks: [fn(u64) -> Time; 3] = [|sequence| sequence, |_| 7, |sequence| 1000 - sequence];
    for (number, clock) in clocks.iter().enumerate() {
        let (mut compiler, mut now) = (three_nodes(), 100);
        for asn in [64514, 64515, 64516] {
            underlay(&mut compiler, asn);
            complete(&mut compiler, &mut now);
        }
        created_at(&mut compiler, clock);
        underlay(&mut compiler, 64999);
        let pass = pass_at(&mut compiler, now + 20);
        assert_eq!(pass.nodes(), ["a"]);
        publish(&mut compiler, &pass, now + 20, "invalid");
        let pass = pass_at(&mut compiler, now + 21);
        publish(&mut compiler, &pass, now + 21, "provisioned");
        assert_eq!(asns(&compiler), all(64516), "clock {number}");
    }
}

#[test]
fn the_same_nodes_change_in_the_same_order_however_they_came() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let rollout = |order: &[&str]| {
        let mut compiler = Compiler::default();
        for node in order {
            let zone = if *node < "d" { "z1" } else { "z0" };
            let labels = json!({"topology.kubernetes.io/zone": zone});
            let metadata = json!({"metadata": {"name": node, "labels": labels}});
            put(&mut compiler, Kind::Node, node, &metadata);
        }
        let two = json!({"spec": {"rollout": {"maxUnavailable": 2, "soakTime": "0s"}}});
        put(&mut compiler, Kind::Settings, "default", &two);
        underlay(&mut compiler, 64514);
        let mut waves = Vec::new();
        for now in 100..120 {
            let pass = pass_at(&mut compiler, now);
            publish(&mut compiler, &pass, now, "provisioned");
            waves.push(pass.nodes().join(" "));
        }
        waves.retain(|wave| !wave.is_empty());
        waves
    };
    let waves = rollout(&names);
    assert_eq!(waves, ["d", "e f", "a b", "c"]);
    for turn in 1..names.len() {
        let mut other = names;
        other.rotate_left(turn);
        other.swap(0, 3);
        assert_eq!(rollout(&other), waves, "{other:?}");
    }
}

#[test]
fn a_bad_change_of_an_intent_or_of_a_low_level_object_reaches_one_canary() {
    let by_intent: fn(&mut Compiler) = |compiler| {
        let network = json!({"spec": {"vlan": 5, "vni": 10005}});
        put(compiler, Kind::Network, "blue", &network);
        let attachment = json!({"spec": {"networkRef": "blue", "interfaceName": "blue"}});
        put(compiler, Kind::Layer2Attachment, "blue", &attachment);
    };
    for change in [by_intent, |compiler| segment(compiler, 500)] {
        let (mut compiler, mut now) = (three_nodes(), 100);
        underlay(&mut compiler, 64514);
        complete(&mut compiler, &mut now);
        let before = compiler.snapshot().node_network_configs.clone();
        change(&mut compiler);
        let mut told = Vec::new();
        // The canary refuses the change and takes back what it had.
        for later in 20..400 {
            let pass = pass_at(&mut compiler, now + later);
            told.extend(pass.nodes().iter().map(|node| (*node).to_owned()));
            let report = if told.len() == 1 {
                "invalid"
            } else {
                "provisioned"
            };
            publish(&mut compiler, &pass, now + later, report);
        }
        assert_eq!(told, ["a", "a"]);
        let after = &compiler.snapshot().node_network_configs;
        for (node, config) in before {
            assert_eq!(after[&node].spec, config.spec, "{node:?}");
        }
    }
}
