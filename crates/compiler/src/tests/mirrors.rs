//! Ring 2, laws of mirrors, and what their statuses say.

use rollout::Progress;
use worlds::mirrors::{address, collector, mirror_vrfs, mirrors, with};

use super::*;

proptest! {
    #![proptest_config(laws(96))]

    #[test]
    fn a_tunnel_is_where_something_is_copied_into_it_and_starts_at_a_loopback_that_is_announced(
        world in world(), mirrors in mirrors()
    ) {
        for config in compile(&snapshot(&with(&world, &mirrors))).nodes.values() {
            let spec = config.spec("");
            let segments = spec.layer2s.values().flat_map(|segment| &segment.mirror_acls);
            let acls = segments.chain(spec.vrfs().flat_map(|vrf| &vrf.mirror_acls));
            let used: BTreeSet<&str> = acls.map(|acl| acl.mirror_destination.as_str()).collect();
            let made: BTreeSet<&str> = spec.vrfs().flat_map(|vrf| vrf.gres.keys().map(String::as_str)).collect();
            prop_assert_eq!(used, made);
            for vrf in spec.vrfs() {
                for gre in vrf.gres.values() {
                    let source = gre.source_interface.as_ref().expect("a tunnel starts on a loopback");
                    let addresses = &vrf.loopbacks[source.as_str()].ip_addresses;
                    prop_assert_eq!(addresses.iter().map(|one| one.addr()).collect::<Vec<_>>(), vec![gre.source_address]);
                    prop_assert_eq!(addresses[0].net().prefix_len(), addresses[0].net().max_prefix_len());
                    let filter = vrf.evpn_export_filter.as_ref().expect("a mirror VRF announces");
                    let first = filter.items.iter().position(|item| {
                        item.matcher.prefix.as_ref().is_some_and(|one| one.prefix == addresses[0].prefix())
                    });
                    prop_assert!(first.is_some_and(|first| first < vrf.loopbacks.len()));
                }
                // Another loopback than one of a tunnel comes from routing, which a Collector's VRF never is.
                let is_of_tunnel = |name: &String| vrf.gres.values().any(|gre| {
                    gre.source_interface.as_ref().is_some_and(|source| source.as_str() == name)
                });
                prop_assert!(vrf.loopbacks.keys().all(|name| name == "lo.tap" || is_of_tunnel(name)));
            }
        }
    }

    #[test]
    fn the_order_of_mirrors_never_matters_and_a_second_compile_moves_nothing(
        (world, shuffled) in (world(), mirrors())
            .prop_map(|(world, mirrors)| with(&world, &mirrors))
            .prop_flat_map(|world| (Just(world.clone()), Just(world).prop_shuffle()))
    ) {
        let first = compile(&snapshot(&world));
        prop_assert_eq!(bytes(&first), bytes(&compile(&snapshot(&shuffled))));
        let second = compile(&remembering(&world, &first));
        prop_assert_eq!(moved(&first, &second), Vec::<String>::new());
    }
}

/// Two nodes with an attachment that is mirrored.
fn mirrored() -> Vec<Value> {
    let node = |name: &str| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
    let underlay = json!({"asn": 64514, "nics": ["eth1"], "evpn": {"vtepcidr": "100.65.0.0/29"}, "neighbors": [{"asn": 64512, "address": "192.0.2.1"}]});
    let mut world = vec![
        node("n0"),
        node("n1"),
        object(
            "openpe.openperouter.github.io/v1alpha1",
            "Underlay",
            json!({"name": "u", "namespace": "default"}),
            underlay,
        ),
    ];
    world.extend(objects(
        0,
        &Tenant {
            vrf: 1,
            vlan: 1,
            vni: Some(1),
            subnet: 0,
            group: None,
            services: (0, 0, false),
            ways: (false, false, false),
            missing: Vec::new(),
        },
    ));
    let mirror = json!({"source": {"kind": "Layer2Attachment", "name": "t0"}, "collector": "c", "direction": "ingress"});
    world.extend(mirror_vrfs());
    world.push(object(TCAAS, "TrafficMirror", json!({"name": "m"}), mirror));
    world
}

/// `Applied` of the mirror and `Ready` of the collector, each with its reason, and the nodes that both count.
fn said(world: &[Value], progress: &[(&str, Progress)]) -> (String, String, u64) {
    let mut snapshot = snapshot(world);
    let compilation = compile(&snapshot);
    for (node, progress) in progress {
        let spec = json!(compilation.nodes[*node].spec("r"));
        let mut config = object(TCAAS, "NodeNetworkConfig", json!({"name": node}), spec);
        config["status"] = match progress {
            Progress::Ready => json!({"configStatus": "provisioned", "observedRevision": "r"}),
            Progress::Failed => json!({"configStatus": "invalid", "observedRevision": "r"}),
            Progress::Ongoing => json!(null),
            Progress::Queued | Progress::Unapproved => continue,
        };
        let subject = ObjectRef::named(Kind::NodeNetworkConfig, *node);
        let said = snapshot.node_network_configs.get(&subject.key);
        let said = said.and_then(|one| one.status.as_ref());
        if let (Some(said), true) = (said, config["status"].is_object()) {
            config["status"]["conditions"] = json!(said.conditions);
        }
        snapshot.remove(&subject);
        snapshot.insert(&config);
    }
    let statuses = statuses(&snapshot);
    let of = |kind, name, condition: &str| {
        let status = statuses[&ObjectRef::named(kind, name)].to_value();
        let conditions = status["conditions"].as_array().expect("conditions");
        let found = conditions
            .iter()
            .find(|one| one["type"] == *condition)
            .expect("the condition");
        let text = format!(
            "{} {}: {}",
            found["status"].as_str().unwrap(),
            found["reason"].as_str().unwrap(),
            found["message"].as_str().unwrap()
        );
        (text, status["activeNodes"].as_u64().expect("a number"))
    };
    let (applied, nodes) = of(Kind::TrafficMirror, "m", "Applied");
    let (ready, of_collector) = of(Kind::Collector, "c", "Ready");
    assert_eq!(nodes, of_collector);
    (applied, ready, nodes)
}

#[test]
fn a_mirror_is_applied_when_all_nodes_with_its_source_carry_it() {
    let mut world = mirrored();
    world.push(address(0, "mirror", 1));
    let (applied, ready, nodes) = said(&world, &[("n0", Progress::Ready), ("n1", Progress::Ready)]);
    let waiting =
        "False Pending: IPAddressClaim selvedge-system/mirror-lo.mir-n1 has no address yet";
    assert_eq!(
        (applied.as_str(), ready.as_str(), nodes),
        (waiting, waiting, 1)
    );
    world.push(address(1, "mirror", 2));
    let (applied, ready, nodes) = said(
        &world,
        &[("n0", Progress::Ready), ("n1", Progress::Ongoing)],
    );
    assert_eq!(
        applied,
        "False Pending: MirrorACLs programmed on 1 of 2 nodes"
    );
    assert_eq!(
        (ready.as_str(), nodes),
        ("False Pending: tunnel configured on 1 of 2 nodes", 1)
    );
    let (applied, ready, nodes) = said(&world, &[("n0", Progress::Ready), ("n1", Progress::Ready)]);
    assert_eq!(applied, "True Applied: MirrorACLs programmed on 2 nodes");
    assert_eq!(
        (ready.as_str(), nodes),
        ("True Configured: tunnel configured on 2 nodes", 2)
    );
    let (applied, _, nodes) = said(&world, &[("n0", Progress::Ready), ("n1", Progress::Failed)]);
    assert_eq!(
        (applied.as_str(), nodes),
        ("False NodeFailed: apply failed on node n1", 1)
    );
}

#[test]
fn a_node_that_could_not_make_its_mirrors_carries_none_and_is_ready() {
    let mut world = mirrored();
    world.push(address(0, "mirror", 1));
    world.push(address(1, "mirror", 2));
    world.push(json!({
        "apiVersion": "network.t-caas.telekom.com/v1alpha1", "kind": "NodeNetworkConfig", "metadata": {"name": "n1"},
        "spec": {"revision": "r"},
        "status": {"configStatus": "provisioned", "conditions": [{
            "type": "MirrorsApplied", "status": "False", "reason": "Failed", "message": "the kernel refused",
        }]},
    }));
    let ready = [("n0", Progress::Ready), ("n1", Progress::Ready)];
    let (applied, _, nodes) = said(&world, &ready);
    let failed = "False NodeFailed: apply failed on node n1";
    assert_eq!((applied.as_str(), nodes), (failed, 1));
}

#[test]
fn a_change_of_the_collector_changes_configs_and_no_revision() {
    let mut world = mirrored();
    world.push(address(0, "mirror", 1));
    let before = compile(&snapshot(&world));
    world.retain(|document| document["kind"] != "Collector");
    world.push(collector("192.0.2.77"));
    let after = compile(&snapshot(&world));
    assert_eq!(before.revision, after.revision);
    assert_ne!(before.nodes["n0"].spec("r"), after.nodes["n0"].spec("r"));
    assert_eq!(
        before.nodes["n1"].spec("r"),
        after.nodes["n1"].spec("r"),
        "nothing is mirrored there yet"
    );
}
