//! Ring 2: what exists once on a node has one holder, whatever kinds the objects are of that want it.

use api::tcaas::NodeNetworkConfigSpec;
use worlds::{edit, edited, everything, odd_overlays, varied};

use super::{harm::running, *};

const FABRIC: &str = "openpe.openperouter.github.io/v1alpha1";

/// What a node has twice, and the VRFs that it takes routes from and does not have.
fn twice(config: &NodeNetworkConfigSpec) -> Vec<String> {
    let mut names = BTreeSet::new();
    let mut wrong = Vec::new();
    let mut once = |what: String| {
        if !names.insert(what.clone()) {
            wrong.push(what);
        }
    };
    for vrf in config.vrfs() {
        once(format!("table {}", vrf.table));
        vrf.vni.iter().for_each(|vni| once(format!("VNI {vni}")));
        let devices = [&vrf.devices.bridge, &vrf.devices.vxlan];
        let devices = devices.into_iter().flatten().chain([&vrf.devices.vrf]);
        devices.for_each(|device| once(format!("device {device}")));
    }
    for segment in config.layer2s.values() {
        let devices = &segment.devices;
        once(format!("VNI {}", segment.vni));
        for device in [&devices.bridge, &devices.vxlan, &devices.access_port] {
            once(format!("device {device}"));
        }
    }
    let known: BTreeSet<String> = config
        .vrfs()
        .map(|vrf| vrf.devices.vrf.to_string())
        .collect();
    let imports = config.vrfs().flat_map(|vrf| &vrf.vrf_imports);
    let lacking = imports.filter(|import| !known.contains(&import.from_vrf));
    wrong.extend(lacking.map(|import| format!("import from {}", import.from_vrf)));
    let routes = config.vrfs().flat_map(|vrf| &vrf.policy_routes);
    let to = routes.filter_map(|route| route.next_hop.vrf.clone());
    wrong.extend(
        to.filter(|vrf| !known.contains(vrf))
            .map(|vrf| format!("rule to {vrf}")),
    );
    wrong
}

fn check(compilation: &Compilation) -> Result<(), TestCaseError> {
    for (node, config) in &compilation.nodes {
        let wrong = twice(&config.content());
        prop_assert!(wrong.is_empty(), "{node}: {wrong:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(laws(192))]

    #[test]
    fn no_node_has_two_elements_with_one_vni_table_or_device(
        world in prop_oneof![varied(), everything(), odd_overlays()]
    ) {
        check(&compile(&snapshot(&world)))?;
    }

    #[test]
    fn no_edit_of_a_running_world_gives_a_node_two_elements_with_one_vni_table_or_device(
        world in varied(), other in varied(), edit in edit()
    ) {
        let mut cluster = running(&world);
        let written: Vec<Value> = world.iter().filter_map(|one| cluster.document_like(one)).collect();
        let Some(new) = edited(&edit, &written, &other) else { return Ok(()) };
        cluster.put(&new);
        check(cluster.compiler.compile().1)?;
    }
}

fn created(day: u8, mut document: Value) -> Value {
    document["metadata"]["creationTimestamp"] = json!(format!("2026-01-{day:02}T00:00:00Z"));
    document
}

fn fabric(kind: &str, name: &str, spec: Value) -> Value {
    let metadata = json!({"name": name, "namespace": "default"});
    object(FABRIC, kind, metadata, spec)
}

fn tcaas(kind: &str, name: &str, spec: Value) -> Value {
    object(TCAAS, kind, json!({"name": name}), spec)
}

fn node_with(mut objects: Vec<Value>) -> Vec<Value> {
    let underlay = json!({
        "asn": 64514, "nics": ["eth1"], "evpn": {"vtepcidr": "100.65.0.0/24"},
        "neighbors": [{"asn": 64512, "address": "192.0.2.1"}],
    });
    objects.push(fabric("Underlay", "fabric", underlay));
    objects.push(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}));
    objects
}

/// What the node has, and what is wrong, as `object: reason`.
fn of_node(world: &[Value]) -> (NodeNetworkConfigSpec, Vec<String>) {
    let compilation = compile(&snapshot(world));
    let wrong = compilation.problems.iter();
    let wrong = wrong.filter(|one| one.severity() == Severity::Error);
    let wrong = wrong.map(|one| format!("{}: {}", one.subject, one.kind.reason()));
    (compilation.nodes["n1"].content(), wrong.collect())
}

#[test]
fn the_older_object_has_the_vni_whichever_of_the_two_is_a_segment() {
    let (config, wrong) = of_node(&node_with(vec![
        created(1, fabric("L2VNI", "segment", json!({"vni": 100}))),
        created(2, fabric("L3VNI", "red", json!({"vrf": "red", "vni": 100}))),
    ]));
    assert_eq!(wrong, ["L3VNI default/red: VniTaken"]);
    assert_eq!((config.layer2s.len(), config.fabric_vrfs.len()), (1, 0));
}

#[test]
fn an_object_that_gets_no_vrf_takes_no_vni_of_another() {
    let routing = |name: &str, vni: u32| {
        let spec =
            json!({"vrf": name, "vni": vni, "routeTarget": format!("64500:{vni}"), "seq": 10});
        tcaas("VRFRouteConfiguration", name, spec)
    };
    let (config, wrong) = of_node(&node_with(vec![
        created(1, routing("a", 1)),
        created(2, fabric("L3VNI", "red", json!({"vrf": "a", "vni": 2}))),
        created(3, routing("b", 2)),
    ]));
    assert_eq!(wrong, ["L3VNI default/red: VrfDisagrees"]);
    let vrfs: Vec<&String> = config.fabric_vrfs.keys().collect();
    assert_eq!(vrfs, ["a", "b"]);
}

#[test]
fn an_object_that_gets_no_network_has_no_vni() {
    let session = |cidr: &str| json!({"asn": 64514, "hostasn": 64600, "localcidr": {"ipv4": cidr}});
    let vrf = |name: &str, vni: u32, cidr: &str| {
        let spec = json!({"vrf": name, "vni": vni, "hostsession": session(cidr)});
        fabric("L3VNI", name, spec)
    };
    let (config, wrong) = of_node(&node_with(vec![
        created(1, vrf("red", 1, "192.168.40.0/24")),
        created(2, vrf("blue", 2, "192.168.40.0/25")),
        created(
            3,
            tcaas(
                "Layer2NetworkConfiguration",
                "segment",
                json!({"id": 200, "vni": 2, "mtu": 1500}),
            ),
        ),
    ]));
    assert_eq!(wrong, ["L3VNI default/blue: NetworksOverlap"]);
    assert!(config.layer2s.contains_key("200"));
}

#[test]
fn a_segment_of_a_person_has_no_vni_of_the_settings() {
    let settings = json!({"clusterVRF": {"vni": 7, "routeTarget": "64500:7"}});
    let (config, wrong) = of_node(&node_with(vec![
        object(
            "selvedge.dev/v1alpha1",
            "Settings",
            json!({"name": "default"}),
            settings,
        ),
        tcaas(
            "Layer2NetworkConfiguration",
            "segment",
            json!({"id": 200, "vni": 7, "mtu": 1500}),
        ),
    ]));
    assert_eq!(wrong, ["Layer2NetworkConfiguration segment: VniTaken"]);
    assert!(config.layer2s.is_empty());
}

#[test]
fn a_gateway_that_runs_keeps_its_network_when_an_older_segment_is_edited_into_it() {
    let segment = |gateway: &str| {
        let spec = json!({"id": 200, "vni": 300, "vrf": "red", "mtu": 1500, "anycastGateways": [gateway], "anycastMac": "02:00:00:00:00:01"});
        created(1, tcaas("Layer2NetworkConfiguration", "segment", spec))
    };
    let mut cluster = running(&node_with(vec![
        segment("10.2.0.1/24"),
        created(2, fabric("L3VNI", "red", json!({"vrf": "red", "vni": 100}))),
        created(
            3,
            fabric(
                "L2VNI",
                "seg",
                json!({"vni": 101, "vrf": "red", "l2gatewayip": "10.1.0.1/24"}),
            ),
        ),
    ]));
    let before = cluster.compiler.compile().1.nodes["n1"].content();
    assert_eq!(before.layer2s.len(), 2);
    cluster.put(&segment("10.1.0.9/16"));
    let (_, compilation) = cluster.compiler.compile();
    assert_eq!(compilation.nodes["n1"].content(), before);
    let wrong: Vec<String> = compilation
        .problems
        .iter()
        .map(|one| one.subject.to_string())
        .collect();
    assert_eq!(wrong, ["Layer2NetworkConfiguration segment"]);
}

#[test]
fn a_segment_of_an_intent_is_never_in_a_vrf_of_an_overlay_object_with_the_same_name() {
    let mut cluster = running(&node_with(vec![fabric(
        "L3VNI",
        "red",
        json!({"vrf": "red", "vni": 100}),
    )]));
    let target = json!({"vrf": "red", "vni": 200, "routeTarget": "64500:200"});
    let mut destination = tcaas(
        "Destination",
        "d",
        json!({"vrfRef": "red", "prefixes": ["192.0.2.0/24"]}),
    );
    destination["metadata"]["labels"] = json!({"zone": "z"});
    let network = json!({"ipv4": {"cidr": "198.51.100.0/25"}, "vlan": 200, "vni": 10200});
    let attachment = json!({"networkRef": "net", "destinations": {"matchLabels": {"zone": "z"}}});
    for intent in [
        tcaas("VRF", "red", target),
        destination,
        tcaas("Network", "net", network),
        tcaas("Layer2Attachment", "att", attachment),
    ] {
        cluster.put(&intent);
    }
    let (_, compilation) = cluster.compiler.compile();
    let config = compilation.nodes["n1"].content();
    let source = config.fabric_vrfs["red"].source.as_deref();
    assert_eq!(source, Some("default/red"));
    assert_eq!(config.layer2s.len(), 0);
    let mut wrong = compilation.problems.iter();
    let is_said = |one: &Problem| {
        one.subject.to_string() == "Layer2Attachment att" && one.kind.reason() == "LowLevelConflict"
    };
    assert!(wrong.any(is_said));
}

#[test]
fn a_selector_that_no_node_can_match_is_a_warning_without_any_node() {
    let never = json!({
        "matchLabels": {"rack": "r1"},
        "matchExpressions": [{"key": "rack", "operator": "NotIn", "values": ["r1"]}],
    });
    for (kind, spec) in [
        ("L3VNI", json!({"vrf": "red", "vni": 100})),
        ("L2VNI", json!({"vni": 100})),
        (
            "L3Passthrough",
            json!({"hostsession": {"asn": 64514, "hostasn": 64700}}),
        ),
        (
            "Underlay",
            json!({"asn": 64514, "nics": ["eth1"], "neighbors": [{"asn": 1, "address": "192.0.2.1"}]}),
        ),
    ] {
        let mut object = fabric(kind, "never", spec);
        object["spec"]["nodeSelector"] = never.clone();
        let compilation = compile(&snapshot(&[object]));
        let said: Vec<String> = compilation
            .problems
            .iter()
            .map(ToString::to_string)
            .collect();
        let is_said = said
            .iter()
            .any(|one| one.contains("no node can ever match it"));
        assert!(is_said, "{kind}: {said:?}");
    }
}

#[test]
fn the_status_of_a_rejected_edit_has_the_generation_that_is_in_effect() {
    let vrf = |generation: i64, vni: u32| {
        let mut vrf = created(2, fabric("L3VNI", "red", json!({"vrf": "red", "vni": vni})));
        vrf["metadata"]["generation"] = json!(generation);
        vrf
    };
    let other = created(
        1,
        fabric("L3VNI", "blue", json!({"vrf": "blue", "vni": 200})),
    );
    let mut cluster = running(&node_with(vec![vrf(1, 100), other]));
    let mut last_good = |generation, vni| {
        let mut document = vrf(generation, vni);
        let stored = cluster.document_like(&document).expect("it is stored");
        document["status"] = stored["status"].clone();
        cluster.put(&document);
        cluster.publish();
        let status = cluster.document_like(&document).expect("it is stored")["status"].clone();
        status["lastGoodGeneration"].clone()
    };
    assert_eq!(last_good(2, 200), json!(1));
    assert_eq!(last_good(3, 200), json!(1));
    assert_eq!(last_good(4, 101), Value::Null);
}

/// R18 and R23.
#[test]
fn a_label_that_brings_rivals_of_any_age_and_name_to_a_node_changes_nothing_that_runs() {
    let of = |name: &str, label: &str, day: u8, number: u32| {
        let session =
            |network: &str| json!({"asn": 64514, "hostasn": 64700, "localcidr": {"ipv4": network}});
        let underlay = json!({
            "asn": 64514, "nics": ["eth1"], "evpn": {"vtepcidr": format!("100.{number}.0.0/24")},
            "neighbors": [{"asn": 64512, "address": "192.0.2.1"}],
        });
        let specs = [
            ("Underlay", underlay),
            (
                "L3VNI",
                json!({"vrf": "red", "vni": number, "hostsession": session("192.168.40.0/24")}),
            ),
            (
                "L2VNI",
                json!({"vni": 7, "vrf": "red", "l2gatewayip": "10.1.0.1/24"}),
            ),
            (
                "L3Passthrough",
                json!({"hostsession": session("192.168.50.0/24")}),
            ),
        ];
        specs.map(|(kind, mut spec)| {
            spec["nodeSelector"] = json!({"matchLabels": {label: "yes"}});
            created(day, fabric(kind, name, spec))
        })
    };
    let node = |labels: Value| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": labels}});
    for (runs, rival, day) in [("m", "a", 1), ("m", "a", 3), ("m", "z", 1), ("m", "z", 3)] {
        let mut world = of(runs, "runs", 2, 101).to_vec();
        world.extend(of(rival, "rival", day, 102));
        world.push(node(json!({"runs": "yes"})));
        let mut cluster = running(&world);
        let before = cluster.compiler.compile().1.nodes["n1"].content();
        assert_eq!(
            (
                before.fabric_vrfs.len(),
                before.layer2s.len(),
                before.passthroughs.len()
            ),
            (1, 1, 1)
        );
        cluster.put(&node(json!({"runs": "yes", "rival": "yes"})));
        let (_, compilation) = cluster.compiler.compile();
        assert_eq!(
            compilation.nodes["n1"].content(),
            before,
            "{rival} of day {day}"
        );
        let wrong = compilation.problems.iter();
        let wrong: Vec<String> = wrong
            .filter(|one| one.severity() == Severity::Error)
            .map(|one| one.subject.to_string())
            .collect();
        let expected = ["Underlay", "L3VNI", "L2VNI", "L3Passthrough"];
        let expected = expected.map(|kind| format!("{kind} default/{rival}"));
        assert_eq!(
            wrong.iter().collect::<BTreeSet<_>>(),
            expected.iter().collect()
        );
    }
}

#[test]
fn an_uplink_is_no_bridge_of_a_segment() {
    let segment = |name: &str, vni: u32, bridge: &str| {
        fabric(
            "L2VNI",
            name,
            json!({"vni": vni, "hostmaster": {"type": "bridge", "name": bridge}}),
        )
    };
    let (config, wrong) = of_node(&node_with(vec![
        segment("a", 100, "eth1"),
        segment("b", 101, "br0"),
    ]));
    assert_eq!(wrong, ["L2VNI default/a: DeviceNameReserved"]);
    let segments: Vec<&String> = config.layer2s.keys().collect();
    assert_eq!(segments, ["vni-101"]);
}

#[test]
fn a_rack_has_a_pool_of_its_size_and_one_that_is_exhausted_names_the_nodes() {
    let underlay = |rack: &str, vteps: &str, ids: &str| {
        let spec = json!({
            "asn": 64514, "nics": ["eth1"], "evpn": {"vtepcidr": vteps}, "routeridcidr": ids,
            "nodeSelector": {"matchLabels": {"rack": rack}},
            "neighbors": [{"asn": 64512, "address": "192.0.2.1"}],
        });
        fabric("Underlay", rack, spec)
    };
    let node = |rack: &str, number: u8| {
        let metadata = json!({"name": format!("{rack}-{number}"), "labels": {"rack": rack}});
        json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
    };
    let mut world = vec![
        underlay("r1", "100.65.1.0/24", "10.0.1.0/29"),
        underlay("r2", "100.65.2.0/24", "10.0.2.0/30"),
    ];
    world.extend((1..=6).map(|number| node("r1", number)));
    world.extend((1..=4).map(|number| node("r2", number)));
    let mut cluster = running(&world);
    let ids = |cluster: &mut changes::Cluster| {
        let nodes = &cluster.compiler.compile().1.nodes;
        let underlays = nodes.iter().filter_map(|(name, config)| {
            let id = config.underlay.as_ref()?.router_id;
            Some((name.clone(), id))
        });
        underlays.collect::<BTreeMap<_, _>>()
    };
    let before = ids(&mut cluster);
    assert_eq!(before.len(), 8);
    let said: Vec<String> = cluster
        .compiler
        .compile()
        .1
        .problems
        .iter()
        .map(ToString::to_string)
        .collect();
    let wanted = "10.0.2.0/30 has no address left for nodes \"r2-3\", \"r2-4\"";
    assert!(said.iter().any(|one| one.contains(wanted)), "{said:?}");
    // An address is kept when nodes come that sort before, and by the nodes of another rack.
    cluster.put(&node("r1", 0));
    assert_eq!(ids(&mut cluster), before);
    cluster.remove(&ObjectRef::named(Kind::Node, "r1-6"));
    let after = ids(&mut cluster);
    assert!(
        after.iter().all(|(name, id)| before.get(name) == Some(id)),
        "{after:?}"
    );
}

#[test]
fn a_device_of_the_router_belongs_to_one_object() {
    let routing = |vrf: &str| {
        let spec = json!({"vrf": vrf, "vni": 900, "routeTarget": "64500:900", "seq": 10});
        created(2, tcaas("VRFRouteConfiguration", "routing", spec))
    };
    let segment = |day: u8| {
        created(
            day,
            tcaas(
                "Layer2NetworkConfiguration",
                "segment",
                json!({"id": 70, "vni": 100, "mtu": 1500}),
            ),
        )
    };
    let l2vni = created(1, fabric("L2VNI", "seg", json!({"vni": 101})));
    for vrf in [
        "100",
        "vx.100",
        "l2.70",
        "vlan.70",
        "101",
        "pe-101",
        "br-pe-101",
        "eth1",
        "br.cluster",
    ] {
        let (config, wrong) = of_node(&node_with(vec![routing(vrf), segment(1), l2vni.clone()]));
        assert_eq!(
            wrong,
            ["VRFRouteConfiguration routing: DeviceNameTaken"],
            "{vrf}"
        );
        assert_eq!(
            (config.layer2s.len(), config.fabric_vrfs.len()),
            (2, 0),
            "{vrf}"
        );
    }
    let (config, wrong) = of_node(&node_with(vec![routing("100"), segment(3), l2vni]));
    assert_eq!(
        wrong,
        ["Layer2NetworkConfiguration segment: DeviceNameTaken"]
    );
    assert_eq!((config.layer2s.len(), config.fabric_vrfs.len()), (1, 1));
}
