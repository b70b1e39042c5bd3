//! Ring 2, known regressions; the numbers are those of `docs/regressions.md`.

use api::tcaas::{Layer2NetworkConfigurationSpec, VrfRouteConfigurationSpec};

use super::*;

proptest! {
    #![proptest_config(laws(128))]

    /// R19.
    #[test]
    fn another_node_changes_no_config_of_the_others(world in world(), group in 0_u8..3) {
        // Where several wait for one address, a world may need a few compiles to settle.
        let (mut after, before) = settled(&world);
        let labels = json!({"group": format!("g{group}"), "host": "more"});
        let metadata = json!({"name": "more", "labels": labels});
        after.insert(&json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata}));
        let after = compile(&after);
        for (node, config) in &before.nodes {
            prop_assert_eq!(config.content(), after.nodes[node].content(), "{}", node);
        }
    }

    /// R26.
    #[test]
    fn every_session_has_either_an_address_or_a_range(world in world()) {
        for config in compile(&snapshot(&world)).nodes.values() {
            for vrf in config.content().vrfs() {
                for peer in &vrf.bgp_peers {
                    prop_assert!(peer.address.is_some() != peer.listen_range.is_some());
                }
            }
        }
    }

    /// R34.
    #[test]
    fn nobody_gets_the_gateway_or_an_end_of_a_network(world in world()) {
        let snapshot = snapshot(&world);
        let compilation = compile(&snapshot);
        let attachments = || compilation.intents.iter().filter_map(|(subject, one)| Some((subject, one.attachment.as_ref()?)));
        let mut nobodys: BTreeMap<&str, BTreeSet<_>> = BTreeMap::new();
        for (key, network) in &snapshot.networks {
            let families = [&network.spec.ipv4, &network.spec.ipv6];
            for net in families.into_iter().flatten().map(|family| family.cidr.net()) {
                if net.max_prefix_len() - net.prefix_len() > 1 {
                    let ends = nobodys.entry(&*key.name).or_default();
                    ends.insert(net.network());
                    ends.extend(net.network().is_ipv4().then(|| net.broadcast()));
                }
            }
        }
        for (subject, attachment) in attachments() {
            let network = network(&snapshot, subject);
            let gateways = attachment.anycast.iter().flat_map(|one| [one.gatewayv4, one.gateway]);
            let gateways = gateways.flatten().map(api::value::HostCidr::addr);
            nobodys.entry(network).or_default().extend(gateways);
        }
        let services = services_of(&compilation).map(|(subject, one)| (subject, lower::plain(&one.addresses).collect()));
        let nodes = compilation.node_addresses.iter();
        let nodes = nodes.map(|(subject, nodes)| (subject, nodes.values().flatten().copied().collect()));
        for (subject, addresses) in services.chain(nodes) {
            let addresses: BTreeSet<_> = addresses;
            let vrfs: BTreeSet<_> = compilation.service(subject).into_iter().flat_map(|one| one.matched.iter().map(|one| &one.vrf)).collect();
            for (_, attachment) in attachments() {
                let gateways = attachment.anycast.iter().flat_map(|one| [one.gatewayv4, one.gateway]);
                let mut gateways = gateways.flatten().map(api::value::HostCidr::addr);
                let in_one_vrf = attachment.matched.iter().any(|one| one.vrf.is_some() && vrfs.contains(&one.vrf));
                let has_one = gateways.any(|gateway| addresses.contains(&gateway));
                prop_assert!(!in_one_vrf || !has_one, "{} has a gateway of its VRF", subject);
            }
            if let Some(nobodys) = nobodys.get(network(&snapshot, subject)) {
                prop_assert!(addresses.is_disjoint(nobodys), "{} of {}", subject, network(&snapshot, subject));
            }
        }
    }
}

/// Hand-written objects, which conflict with those of tenants.
fn by_hand() -> impl Strategy<Value = Vec<Value>> {
    let one = (any::<bool>(), 1_u16..5, prop::option::of(0_u8..3));
    prop::collection::vec(one, 0..4).prop_map(|all| {
        let made = all
            .into_iter()
            .enumerate()
            .map(|(place, (routing, number, group))| {
                let (kind, mut spec) = if routing {
                    let target = format!("1:{number}");
                    let spec = json!({"vrf": format!("v{number}"), "vni": number, "routeTarget": target, "seq": 10});
                    ("VRFRouteConfiguration", spec)
                } else {
                    let spec = json!({"id": number, "mtu": 1500, "vni": 200 + number});
                    ("Layer2NetworkConfiguration", spec)
                };
                if let Some(group) = group {
                    spec["nodeSelector"] = json!({"matchLabels": {"group": format!("g{group}")}});
                }
                object(TCAAS, kind, json!({"name": format!("hand{place}")}), spec)
            });
        made.collect()
    })
}

proptest! {
    #![proptest_config(laws(128))]

    /// R87.
    #[test]
    fn intents_and_hand_written_objects_share_no_scope(world in world(), by_hand in by_hand()) {
        let world = [world, by_hand].concat();
        let first = compile(&snapshot(&world));
        let layer2 = || first.objects.of::<Layer2NetworkConfigurationSpec>().map(|(_, one)| one);
        for hand in layer2().filter(|one| !one.is_generated()) {
            for made in layer2().filter(|one| one.is_generated() && one.spec.interface_ref.is_none()) {
                let meet = select::may_meet(hand.spec.node_selector.as_ref(), made.spec.node_selector.as_ref());
                prop_assert!(!meet || hand.spec.id != made.spec.id, "{} and {}", hand.source, made.source);
            }
        }
        let vrf = || first.objects.of::<VrfRouteConfigurationSpec>().map(|(_, one)| one);
        for hand in vrf().filter(|one| !one.is_generated()) {
            for made in vrf().filter(|one| one.is_generated()) {
                let meet = select::may_meet(hand.spec.node_selector.as_ref(), made.spec.node_selector.as_ref());
                prop_assert!(!meet || hand.spec.vrf != made.spec.vrf, "{} and {}", hand.source, made.source);
            }
        }
        let mut again = remembering(&world, &first);
        let revision = serde_json::to_value(first.revision.spec(&first.objects)).expect("a revision is JSON");
        again.insert(&object(TCAAS, "NetworkConfigRevision", json!({"name": "last"}), revision));
        prop_assert_eq!(moved(&first, &compile(&again)), Vec::<String>::new());
    }
}

/// The Network that an object has its addresses from.
fn network<'a>(snapshot: &'a Snapshot, subject: &ObjectRef) -> &'a str {
    match subject.kind {
        Kind::Layer2Attachment => &snapshot.layer2_attachments[&subject.key].spec.network_ref,
        Kind::Inbound => &snapshot.inbounds[&subject.key].spec.network_ref,
        Kind::Outbound => &snapshot.outbounds[&subject.key].spec.network_ref,
        _ => &snapshot.pod_networks[&subject.key].spec.network_ref,
    }
}

/// R30.
#[test]
fn what_is_removed_from_the_settings_is_gone_at_the_next_compile() {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
    let underlay = object(
        "openpe.openperouter.github.io/v1alpha1",
        "Underlay",
        json!({"name": "u", "namespace": "default"}),
        json!({
            "asn": 64514, "nics": ["eth1"], "evpn": {"vtepcidr": "100.65.0.0/29"},
            "neighbors": [{"asn": 64512, "address": "192.0.2.1"}],
        }),
    );
    let routing = object(
        TCAAS,
        "VRFRouteConfiguration",
        json!({"name": "red"}),
        json!({"vrf": "red", "seq": 10}),
    );
    let settings = |spec| {
        let name = json!({"name": "default"});
        object("selvedge.dev/v1alpha1", "Settings", name, spec)
    };
    let full = json!({
        "vrfs": {"red": {"vni": 100, "routeTarget": "64500:100"}},
        "trunk": {"addresses": ["169.254.1.1/31"]},
    });
    let mut world = vec![node, underlay, routing, settings(full)];
    let before = compile(&snapshot(&world));
    assert!(before.nodes["n"].shared.fabric_vrfs.contains_key("red"));
    world.pop();
    world.push(settings(json!({})));
    let after = compile(&remembering(&world, &before));
    let spec = after.nodes["n"].content();
    assert!(spec.fabric_vrfs.is_empty(), "its numbers are gone");
    let underlay = spec.underlay.expect("an underlay");
    assert!(underlay.trunk.host_addresses.is_empty());
    assert!(!after.problems.is_empty(), "and a problem is reported");
}

/// A world that has been published and reported until nothing changed any more, and what it compiles into.
fn settled(world: &[Value]) -> (Snapshot, Compilation) {
    let mut snapshot = snapshot(world);
    let mut compilation = compile(&snapshot);
    for _ in 0..5 {
        snapshot = remembering(world, &compilation);
        let next = compile(&snapshot);
        if bytes(&next) == bytes(&compilation) {
            return (snapshot, next);
        }
        compilation = next;
    }
    panic!("{} does not settle", json!(world));
}

/// The default pool has 254 router ids: it is not set by the user, so the 255th node has its VTEP as router id, and keeps it.
#[test]
fn the_default_pool_of_router_ids_limits_no_cluster() {
    let name = |number: usize| format!("n{number:03}");
    let node =
        |number| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name(number)}});
    let underlay = json!({
        "apiVersion": "openpe.openperouter.github.io/v1alpha1", "kind": "Underlay", "metadata": {"name": "fabric"},
        "spec": {"asn": 64514, "nics": ["eth1"], "evpn": {"vtepcidr": "100.65.0.0/16"}, "neighbors": [{"asn": 64512, "address": "192.0.2.1"}]},
    });
    let mut world: Vec<Value> = (0..256).map(node).collect();
    world.push(underlay);
    let first = compile(&snapshot(&world));
    let router_ids = |compilation: &Compilation| -> BTreeMap<String, String> {
        let nodes = compilation.nodes.iter();
        let nodes = nodes.filter_map(|(name, config)| Some((name, config.underlay.as_ref()?)));
        nodes
            .map(|(name, underlay)| (name.clone(), underlay.router_id.to_string()))
            .collect()
    };
    let ids = router_ids(&first);
    assert!(first.problems.is_empty(), "{:?}", first.problems);
    assert_eq!(ids[&name(253)], "10.0.0.254");
    assert_eq!(ids[&name(254)], "100.65.0.255");
    assert_eq!(ids.values().collect::<BTreeSet<_>>().len(), 256);

    // Nodes that run keep what they have, also when others leave.
    world.retain(|object| object["metadata"]["name"] != name(3));
    let mut running = remembering(&world, &first);
    running
        .node_network_configs
        .remove(&snapshot::Key::named(name(3)));
    let after = router_ids(&compile(&running));
    for (node, id) in &after {
        assert_eq!(id, &ids[node], "{node}");
    }
}
