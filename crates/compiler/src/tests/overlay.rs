//! Ring 2: the kinds of `openpe.openperouter.github.io`, property by property of the list in `docs/regressions-openperouter.md`.

use super::{harm::running, *};

const GROUP: &str = "openpe.openperouter.github.io/v1alpha1";

fn named(kind: &str, name: &str, spec: Value) -> Value {
    object(
        GROUP,
        kind,
        json!({"name": name, "namespace": "default"}),
        spec,
    )
}

fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"rack": "r1"}}})
}

fn underlay(pool: &str) -> Value {
    let spec = json!({
        "asn": 64514, "nics": ["eth1"], "evpn": {"vtepcidr": pool},
        "neighbors": [{"asn": 64512, "address": "192.0.2.1"}],
    });
    named("Underlay", "fabric", spec)
}

fn problems(world: &[Value]) -> Vec<String> {
    let compilation = compile(&snapshot(world));
    compilation
        .problems
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// What the node `n1` gets.
fn config(world: &[Value]) -> Value {
    let compilation = compile(&snapshot(world));
    let errors = compilation.problems.iter();
    let errors: Vec<_> = errors
        .filter(|one| one.severity() == Severity::Error)
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    serde_json::to_value(compilation.nodes["n1"].content()).expect("a config is JSON")
}

/// R2.
#[test]
fn every_spelling_of_a_thing_gives_the_same_config() {
    let older = json!({
        "asn": 64514, "nics": ["eth1", "eth2"], "evpn": {"vtepcidr": "100.65.0.0/24"},
        "neighbors": [{"asn": 64512, "address": "2001:db8::1", "holdTime": "1m30s", "keepaliveTime": "30s", "connectTime": "5s",
                       "ebgpMultiHop": true, "bfd": {"minimumTtl": 250}}],
    });
    let newer = json!({
        "asn": 64514, "tunnelEndpoint": {"cidrs": ["100.65.0.9/24"]},
        "interfaces": [
            {"type": "NetworkDevice", "networkDevice": {"interfaceName": "eth1"}},
            {"type": "NetworkDevice", "networkDevice": {"interfaceName": "eth2"}},
        ],
        "neighbors": [{"asn": 64512, "address": "2001:DB8:0::1", "holdTimeSeconds": 90, "keepaliveTimeSeconds": 30,
                       "connectTimeSeconds": 5, "ebgpMultiHop": true, "bfd": {"minimumTTL": 250}}],
    });
    let segment = |gateway: Value, master: Value| {
        let mut spec = json!({"vni": 100, "vrf": "red", "hostmaster": master});
        if let (Some(spec), Some(gateway)) = (spec.as_object_mut(), gateway.as_object()) {
            spec.extend(gateway.clone());
        }
        named("L2VNI", "segment", spec)
    };
    let one = segment(
        json!({"l2gatewayip": "10.0.0.1/24"}),
        json!({"type": "bridge", "name": "br0"}),
    );
    let other = segment(
        json!({"l2gatewayips": ["10.0.0.1/24"]}),
        json!({"type": "linux-bridge", "linuxBridge": {"name": "br0"}}),
    );
    let before = config(&[node("n1"), named("Underlay", "fabric", older), one]);
    let after = config(&[node("n1"), named("Underlay", "fabric", newer), other]);
    assert_eq!(before, after);
}

/// R8.
#[test]
fn a_session_needs_the_side_of_its_speaker_or_its_number() {
    for side in ["external", "internal"] {
        let session = json!({"asn": 64514, "hosttype": side});
        let world = [
            node("n1"),
            underlay("100.65.0.0/24"),
            named(
                "L3VNI",
                "red",
                json!({"vrf": "red", "vni": 1, "hostsession": session}),
            ),
            named("L3Passthrough", "edge", json!({"hostsession": session})),
        ];
        let config = config(&world);
        let wanted = json!({side: true});
        for path in [
            "/fabricVRFs/red/hostSession/remoteAs",
            "/passthroughs/default~1edge/remoteAs",
        ] {
            assert_eq!(config.pointer(path), Some(&wanted), "{path}");
        }
    }
}

/// R14.
#[test]
fn no_selector_and_an_empty_one_select_every_node() {
    let of = |selector: Option<Value>| {
        let mut objects = [
            underlay("100.65.0.0/24"),
            named("L3VNI", "red", json!({"vrf": "red", "vni": 1})),
            named("L2VNI", "segment", json!({"vni": 2})),
            named(
                "L3Passthrough",
                "edge",
                json!({"hostsession": {"asn": 64514, "hostasn": 64700}}),
            ),
        ];
        for object in &mut objects {
            if let Some(selector) = &selector {
                object["spec"]["nodeSelector"] = selector.clone();
            }
        }
        let mut world = vec![
            node("n1"),
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2"}}),
        ];
        world.extend(objects);
        compile(&snapshot(&world))
    };
    let (nil, empty) = (of(None), of(Some(json!({}))));
    for name in ["n1", "n2"] {
        let config = nil.nodes[name].content();
        assert!(config.underlay.is_some() && config.passthroughs.len() == 1);
        assert_eq!((config.fabric_vrfs.len(), config.layer2s.len()), (1, 1));
        assert_eq!(config, empty.nodes[name].content());
    }
}

/// R15.
#[test]
fn a_broken_selector_costs_its_object_alone() {
    let broken =
        json!({"matchExpressions": [{"key": "rack", "operator": "Near", "values": ["r1"]}]});
    let session = json!({"asn": 64514, "hostasn": 64700});
    for (kind, spec) in [
        ("Underlay", underlay("100.66.0.0/24")["spec"].clone()),
        ("L3VNI", json!({"vrf": "blue", "vni": 7})),
        ("L2VNI", json!({"vni": 7})),
        ("L3Passthrough", json!({"hostsession": session})),
    ] {
        let mut object = named(kind, "broken", spec);
        object["spec"]["nodeSelector"] = broken.clone();
        let mut world = vec![
            node("n1"),
            underlay("100.65.0.0/24"),
            named(
                "L3VNI",
                "red",
                json!({"vrf": "red", "vni": 1, "hostsession": session}),
            ),
        ];
        let before = compile(&snapshot(&world)).nodes["n1"].content();
        world.push(object);
        let after = compile(&snapshot(&world));
        assert_eq!(after.nodes["n1"].content(), before, "{kind}");
        let named: Vec<String> = after
            .problems
            .iter()
            .map(|one| one.subject.to_string())
            .collect();
        assert_eq!(named, [format!("{kind} default/broken")]);
    }
}

/// R16.
#[test]
fn an_object_that_selects_no_node_is_checked_like_any_other() {
    let nobody = json!({"matchLabels": {"rack": "none"}});
    for (kind, mut spec, reason) in [
        (
            "L2VNI",
            json!({"vni": 7, "l2gatewayip": "10.0.0.255/24"}),
            "RuleBroken",
        ),
        ("L3VNI", json!({"vrf": "default", "vni": 7}), "VrfNameTaken"),
        (
            "L3Passthrough",
            json!({"hostsession": {"asn": 64514, "hostasn": 64700, "localcidr": {"ipv4": "224.0.0.0/24"}}}),
            "SpecialAddress",
        ),
        (
            "Underlay",
            json!({"asn": 64514, "nics": ["eth1"], "neighbors": [{"asn": 1, "address": "224.0.0.1"}]}),
            "SpecialAddress",
        ),
    ] {
        spec["nodeSelector"] = nobody.clone();
        let world = [
            node("n1"),
            underlay("100.65.0.0/24"),
            named(kind, "wrong", spec),
        ];
        let found = compile(&snapshot(&world));
        let mut of = found.problems.iter();
        let is_found =
            of.any(|one| one.subject.key.name.as_ref() == "wrong" && one.kind.reason() == reason);
        assert!(is_found, "{kind}: {:?}", problems(&world));
    }
}

/// R29 and R30.
#[test]
fn neighbors_are_told_apart_by_what_their_addresses_mean() {
    let neighbors = |neighbors: Value| {
        let mut underlay = underlay("100.65.0.0/24");
        underlay["spec"]["nics"] = json!(["eth1", "eth2"]);
        underlay["spec"]["neighbors"] = neighbors;
        vec![node("n1"), underlay]
    };
    let behind = neighbors(
        json!([{"type": "external", "interface": "eth1"}, {"type": "external", "interface": "eth2"}]),
    );
    let made = config(&behind);
    let made = made["underlay"]["neighbors"].as_array().map(Vec::len);
    assert_eq!(made, Some(2));
    let twice = neighbors(
        json!([{"asn": 1, "address": "2001:db8::1"}, {"asn": 1, "address": "2001:DB8:0:0::1"}]),
    );
    let said = problems(&twice);
    assert!(
        said.iter().any(|one| one.contains("same address")),
        "{said:?}"
    );
}

/// R46.
#[test]
fn a_pool_begins_where_its_network_does() {
    let world = [node("n1"), underlay("100.65.0.64/26")];
    assert_eq!(config(&world)["underlay"]["vtep"], "100.65.0.65");
}

/// R47.
#[test]
fn a_new_node_has_all_its_addresses_in_its_first_config() {
    let session = json!({"asn": 64514, "hostasn": 64700});
    let world = [
        node("n1"),
        underlay("100.65.0.0/24"),
        named(
            "L3VNI",
            "red",
            json!({"vrf": "red", "vni": 1, "hostsession": session}),
        ),
        named("L3Passthrough", "edge", json!({"hostsession": session})),
    ];
    let mut cluster = running(&world);
    cluster.put(&node("n2"));
    let (_, compilation) = cluster.compiler.compile();
    let config = serde_json::to_value(compilation.nodes["n2"].content()).expect("JSON");
    for path in [
        "/underlay/vtep",
        "/underlay/routerId",
        "/fabricVRFs/red/hostSession/hostAddresses/0",
        "/fabricVRFs/red/hostSession/routerAddresses/0",
        "/passthroughs/default~1edge/hostAddresses/0",
    ] {
        assert!(config.pointer(path).is_some(), "{path} of {config:#}");
    }
}

/// R48 and R68.
#[test]
fn a_thousand_vrfs_have_tables_of_the_private_range_and_devices_with_short_names_of_their_own() {
    let mut world = vec![node("n1"), underlay("100.65.0.0/24")];
    let vrfs = |count: u32| {
        let vrf = |vni| json!({"vrf": format!("tenant-of15-{vni:03}"), "vni": 16_000_000 + vni});
        (0..count).map(move |vni| named("L3VNI", &format!("l3-{vni}"), vrf(vni)))
    };
    world.extend(vrfs(1000));
    let compilation = compile(&snapshot(&world));
    assert_eq!(problems(&world), [""; 0]);
    let config = compilation.nodes["n1"].content();
    assert_eq!(config.fabric_vrfs.len(), 1000);
    let mut tables = BTreeSet::new();
    let mut devices = BTreeSet::new();
    for (name, vrf) in &config.fabric_vrfs {
        assert!(
            (10_000..20_000).contains(&vrf.table),
            "{name}: {}",
            vrf.table
        );
        assert!(tables.insert(vrf.table), "{name}");
        let of_vrf = serde_json::to_value(&vrf.devices).expect("JSON");
        for device in of_vrf.as_object().into_iter().flat_map(|one| one.values()) {
            let device = device.as_str().expect("a name").to_owned();
            assert!(
                device.len() <= 15 && devices.insert(device.clone()),
                "{device}"
            );
        }
    }
    // They stay when others go.
    world.truncate(2);
    world.extend(vrfs(1));
    let alone = compile(&snapshot(&world)).nodes["n1"].content();
    let (name, vrf) = alone.fabric_vrfs.first_key_value().expect("a VRF");
    assert_eq!(vrf.devices, config.fabric_vrfs[name].devices);
}

/// R38.
#[test]
fn a_message_of_a_status_is_never_too_long_to_be_stored() {
    let selector = |name: &str| {
        let labels = (0..900).map(|number| (format!("{name}-{number:050}"), json!("")));
        json!({"matchLabels": labels.collect::<serde_json::Map<_, _>>()})
    };
    let mut first = underlay("100.65.0.0/24");
    first["spec"]["nodeSelector"] = selector("a");
    let mut second = underlay("100.66.0.0/24");
    second["metadata"]["name"] = json!("second");
    second["spec"]["nodeSelector"] = selector("b");
    let statuses = statuses(&snapshot(&[first, second]));
    let mut longest = 0;
    for status in statuses.values() {
        let conditions = &status.to_value()["conditions"];
        for condition in conditions.as_array().into_iter().flatten() {
            longest = longest.max(condition["message"].as_str().unwrap_or_default().len());
        }
    }
    assert!((30_000..=32_768).contains(&longest), "{longest}");
}

#[test]
fn a_passthrough_has_no_network_with_a_neighbor_of_the_fabric() {
    let session = json!({"asn": 64514, "hostasn": 64700, "localcidr": {"ipv4": "192.0.2.128/24"}});
    let world = [
        node("n1"),
        underlay("100.65.0.0/24"),
        named("L3Passthrough", "edge", json!({"hostsession": session})),
        // In a VRF it conflicts with no other.
        named(
            "L3VNI",
            "red",
            json!({"vrf": "red", "vni": 1, "hostsession": {"asn": 64514, "hostasn": 64600, "localcidr": {"ipv4": "192.0.3.0/24"}}}),
        ),
    ];
    let compilation = compile(&snapshot(&world));
    let said = problems(&world).join("\n");
    assert!(
        said.contains("192.0.2.0/24 has 192.0.2.1, a neighbor of Underlay default/fabric"),
        "{said}"
    );
    let config = compilation.nodes["n1"].content();
    assert_eq!(
        (config.passthroughs.len(), config.fabric_vrfs.len()),
        (0, 1)
    );
}

#[test]
fn no_message_shows_what_stands_in_the_place_of_a_password() {
    for wrong in [
        json!(12_345_678),
        json!(["12345678"]),
        json!({"12345678": 1}),
        json!("1234 5678"),
        json!("12345678ä"),
    ] {
        let mut underlay = underlay("100.65.0.0/24");
        underlay["spec"]["neighbors"][0]["password"] = wrong;
        let said = problems(&[node("n1"), underlay]).join("\n");
        assert!(
            said.contains("password") && !said.contains("5678"),
            "{said}"
        );
    }
}

#[test]
fn objects_that_are_written_down_have_no_password() {
    let mut underlay = underlay("100.65.0.0/24");
    underlay["spec"]["neighbors"][0]["password"] = json!("not-to-be-seen");
    let world = snapshot(&[node("n1"), underlay]);
    let compilation = compile(&world);
    let revision = compilation.revision.spec(&compilation.objects);
    let mut text = format!("{world:?} {compilation:?} {}", json!(revision));
    for document in world.documents() {
        text += &document.to_string();
    }
    assert!(text.contains("(hidden)") && !text.contains("not-to-be-seen"));
    let moved = compilation.nodes["n1"].moved_passwords(&world);
    let known = moved[0].password.as_ref().map(api::value::Password::reveal);
    assert_eq!(
        (moved.len(), known, moved[0].is_in_effect),
        (1, Some("not-to-be-seen"), true)
    );
}

/// What a world with these objects beside an Underlay, on the node `n1`, has wrong, as `object: field: text`.
fn wrong(objects: &[Value]) -> Vec<String> {
    let mut world = vec![node("n1"), underlay("100.65.0.0/24")];
    world.extend(objects.iter().cloned());
    problems(&world)
}

fn l3vni(name: &str, vrf: &str, vni: u32, cidr: &str) -> Value {
    let session = json!({"asn": 64514, "hostasn": 64600, "localcidr": {"ipv4": cidr}});
    named(
        "L3VNI",
        name,
        json!({"vrf": vrf, "vni": vni, "hostsession": session}),
    )
}

fn l2vni(name: &str, vni: u32, gateway: &str) -> Value {
    named("L2VNI", name, json!({"vni": vni, "l2gatewayip": gateway}))
}

fn settings(spec: Value) -> Value {
    object(
        "selvedge.dev/v1alpha1",
        "Settings",
        json!({"name": "default"}),
        spec,
    )
}

/// A segment whose VRF has no name of its own never has one that something else has.
#[test]
fn a_vrf_named_after_a_segment_has_a_name_that_is_free() {
    for name in [
        "lo",
        "hbn",
        "cluster",
        "default",
        "s-a",
        "host-10",
        "br-pe-10",
        "s-0123456789",
    ] {
        let world = [
            node("n1"),
            underlay("100.65.0.0/24"),
            l2vni(name, 20, "10.60.0.1/24"),
        ];
        let config = config(&world);
        let vrfs = config["fabricVRFs"]
            .as_object()
            .expect("the VRF of the gateway");
        let vrf = vrfs.keys().next().expect("one VRF");
        assert_ne!(vrf, name);
        let device = vrf.parse().expect("the name of a device");
        assert!(!names::is_reserved_device(&device), "{name} becomes {vrf}");
    }
    let named_like_a_nic = wrong(&[l2vni("eth1", 20, "10.60.0.1/24")]);
    assert!(
        named_like_a_nic
            .iter()
            .any(|one| one.contains("metadata.name")),
        "{named_like_a_nic:?}"
    );
}

#[test]
fn a_cluster_neighbor_is_named_once() {
    let speaker = json!({"address": "169.254.100.100", "remoteASN": 64700, "ipv4": true});
    let found = wrong(&[settings(json!({"clusterNeighbors": [speaker, speaker]}))]);
    assert!(
        found
            .iter()
            .any(|one| one.contains("spec.clusterNeighbors[1].address")),
        "{found:?}"
    );
}

#[test]
fn multihop_over_a_device_is_named_and_left_out() {
    let mut fabric = underlay("100.65.0.0/24");
    fabric["spec"]["neighbors"] =
        json!([{"asn": 64512, "interface": "eth1", "ebgpMultiHop": true}]);
    let world = [node("n1"), fabric];
    let found = problems(&world);
    assert!(
        found
            .iter()
            .any(|one| one.contains("spec.neighbors[0].ebgpMultiHop")),
        "{found:?}"
    );
    let neighbors = &config(&world)["underlay"]["neighbors"];
    assert_ne!(neighbors[0]["ebgpMultiHop"], json!(true));
}

/// A node whose FRR cannot have its tunnel endpoint has nothing over the fabric, and the others have.
#[test]
fn an_old_frr_has_no_ipv6_tunnel_endpoint_and_costs_its_node_alone() {
    let mut old = object(
        TCAAS,
        "NodeNetworkConfig",
        json!({"name": "n1"}),
        json!({"revision": ""}),
    );
    old["status"] = json!({"frrVersion": "8.4.4"});
    let world = [
        node("n1"),
        node("n2"),
        old,
        underlay("fd00:65::/64"),
        named("L2VNI", "a", json!({"vni": 20})),
    ];
    let compilation = compile(&snapshot(&world));
    let found: Vec<String> = compilation
        .problems
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(
        found
            .iter()
            .any(|one| one.contains("\"n1\" runs FRR 8.4.4")),
        "{found:?}"
    );
    assert_eq!(compilation.nodes["n1"].content().layer2s.len(), 0);
    assert_eq!(compilation.nodes["n2"].content().layer2s.len(), 1);
}

#[test]
fn a_session_and_a_gateway_in_one_vrf_do_not_overlap() {
    let segment = object(
        TCAAS,
        "Layer2NetworkConfiguration",
        json!({"name": "seg"}),
        json!({"id": 50, "vni": 5050, "mtu": 1500, "vrf": "a", "anycastGateways": ["10.50.0.1/24"]}),
    );
    let found = wrong(&[segment, l3vni("x", "a", 100, "10.50.0.0/24")]);
    assert!(
        found
            .iter()
            .any(|one| one.contains("spec.hostsession.localcidr") && one.contains("10.50.0.0/24")),
        "{found:?}"
    );
}

/// What is inside another network, and between, hides no overlap.
#[test]
fn an_overlap_is_found_behind_networks_in_between() {
    let around = object(
        TCAAS,
        "Layer2NetworkConfiguration",
        json!({"name": "around"}),
        json!({"id": 50, "vni": 5050, "mtu": 1500, "vrf": "a", "anycastGateways": ["10.50.0.1/16"]}),
    );
    let inside = named(
        "L2VNI",
        "inside",
        json!({"vni": 22, "vrf": "a", "l2gatewayip": "10.50.7.1/24"}),
    );
    let between = l3vni("between", "a", 100, "10.50.3.0/24");
    let found = wrong(&[around, between, inside]);
    let overlaps: Vec<&String> = found
        .iter()
        .filter(|one| one.contains("overlaps"))
        .collect();
    assert_eq!(overlaps.len(), 2, "{found:#?}");
    let pool = named(
        "L3VNI",
        "from-the-pool",
        json!({"vrf": "c", "vni": 102, "hostsession": {"asn": 64514, "hostasn": 64600}}),
    );
    let mut wide = l3vni("wide", "a", 100, "100.96.0.0/16");
    wide["spec"]["nodeSelector"] = json!({"matchLabels": {"rack": "r1"}});
    let mut narrow = l3vni("narrow", "b", 101, "100.96.1.0/24");
    narrow["spec"]["nodeSelector"] = json!({"matchLabels": {"rack": "r2"}});
    let world = [node("n1"), underlay("100.65.0.0/24"), wide, narrow, pool];
    let found = problems(&world);
    assert!(
        !found.iter().any(|one| one.contains("overlaps")),
        "{found:#?}"
    );
}

#[test]
fn a_gateway_attracts_no_special_addresses() {
    for gateway in ["10.5.0.1/0", "126.255.255.1/7"] {
        let found = wrong(&[l2vni("a", 20, gateway)]);
        assert!(
            found.iter().any(|one| one.contains("spec.l2gatewayip")),
            "{gateway}: {found:?}"
        );
    }
}

#[test]
fn networks_of_the_settings_are_fit_and_used() {
    let session = named(
        "L3VNI",
        "x",
        json!({"vrf": "a", "vni": 100, "hostsession": {"asn": 64514, "hostasn": 64600}}),
    );
    let found = wrong(&[
        settings(json!({"hostSessions": {"cidrs": ["127.0.0.0/8"]}})),
        session,
    ]);
    assert!(
        found
            .iter()
            .any(|one| one.contains("spec.hostSessions.cidrs[0]")),
        "{found:?}"
    );
    let cluster = json!({"vni": 901, "routeTarget": "64512:901"});
    let export = |cidr| settings(json!({"clusterVRF": cluster, "exportCIDRs": [cidr]}));
    for cidr in ["127.0.0.0/8", "fe80::/64", "0.0.0.0/0"] {
        let found = wrong(&[export(cidr)]);
        assert!(
            found.iter().any(|one| one.contains("spec.exportCIDRs[0]")),
            "{cidr}: {found:?}"
        );
    }
    let found = wrong(&[settings(json!({"exportCIDRs": ["10.200.0.0/16"]}))]);
    assert!(
        found.iter().any(|one| one.contains("spec.exportCIDRs")),
        "{found:?}"
    );
}

/// A VNI is a number of the whole fabric, whichever kinds use it.
#[test]
fn a_vni_that_means_two_things_to_two_groups_of_kinds_is_named() {
    let on = |rack: &str| json!({"matchLabels": {"rack": rack}});
    let other = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2", "labels": {"rack": "r2"}}});
    let routing = object(
        TCAAS,
        "VRFRouteConfiguration",
        json!({"name": "x"}),
        json!({"vrf": "x", "vni": 77, "routeTarget": "64512:77", "seq": 1, "nodeSelector": on("r1")}),
    );
    let segment = object(
        TCAAS,
        "Layer2NetworkConfiguration",
        json!({"name": "seg"}),
        json!({"id": 50, "vni": 6060, "mtu": 1500, "vrf": "x", "anycastGateways": ["10.50.0.1/24"], "nodeSelector": on("r1")}),
    );
    let l3 = named(
        "L3VNI",
        "y",
        json!({"vrf": "y", "vni": 77, "nodeSelector": on("r2")}),
    );
    let l2 = named("L2VNI", "z", json!({"vni": 6060, "nodeSelector": on("r2")}));
    let found = wrong(&[other, routing, segment, l3, l2]);
    for (object, vni) in [
        ("L3VNI default/y", "VNI 77 is"),
        ("L2VNI default/z", "VNI 6060 is"),
    ] {
        assert!(
            found
                .iter()
                .any(|one| one.contains(object) && one.contains(vni)),
            "{object}: {found:#?}"
        );
    }
}

/// R36.
#[test]
fn a_bridge_that_a_node_lacks_is_a_condition_that_names_both() {
    let segment = named(
        "L2VNI",
        "a",
        json!({"vni": 20, "hostmaster": {"type": "bridge", "name": "br-storage"}}),
    );
    let world = [node("n1"), underlay("100.65.0.0/24"), segment];
    let mut cluster = running(&world);
    let config = object(
        TCAAS,
        "NodeNetworkConfig",
        json!({"name": "n1"}),
        json!({"revision": ""}),
    );
    let mut config = cluster
        .document_like(&config)
        .expect("the config of the node");
    config["status"]["unattached"] = json!([{
        "port": "host-20", "bridge": "br-storage", "message": "host-20 is not attached: there is no bridge br-storage",
    }]);
    cluster.put(&config);
    let statuses = cluster.compiler.statuses();
    let status = statuses
        .iter()
        .find(|(subject, _)| subject.kind == Kind::L2Vni);
    let status = status.expect("a status").1.to_value();
    let conditions = status["conditions"].as_array().expect("conditions");
    let of = |kind: &str| {
        conditions
            .iter()
            .find(|one| one["type"] == kind)
            .expect("a condition")
    };
    let degraded = of("Degraded");
    assert_eq!(
        (&degraded["status"], &degraded["reason"]),
        (&json!("True"), &json!("BridgeMissing"))
    );
    let message = degraded["message"].as_str().expect("a text");
    assert!(
        message.contains("\"n1\"") && message.contains("br-storage"),
        "{message}"
    );
    assert_eq!(of("Ready")["status"], json!("False"));
}
