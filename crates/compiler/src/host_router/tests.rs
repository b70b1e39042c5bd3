//! Laws of the merge, and what only a compile as a whole shows.

use proptest::{prelude::*, sample::subsequence};
use serde_json::{Value, json};

use super::*;
use crate::{Change, Compiler, Prepared, Snapshot, compile};

fn object(name: &str, created: u32, spec: &Value) -> Value {
    let time = format!("2026-01-{created:02}T00:00:00Z");
    let metadata = json!({
        "name": name, "namespace": "selvedge-system", "creationTimestamp": time, "generation": 1,
    });
    json!({"apiVersion": "frrk8s.metallb.io/v1beta1", "kind": "FRRConfiguration", "metadata": metadata, "spec": spec})
}

fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"name": name}}})
}

fn snapshot(world: &[Value]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for document in world {
        snapshot.insert(document);
    }
    snapshot
}

/// The router of the host of `n1`, and all that is wrong.
fn compiled(objects: &[Value]) -> (HostRouter, Vec<String>) {
    let mut world = vec![node("n1")];
    world.extend(objects.iter().cloned());
    let compilation = compile(&snapshot(&world));
    let config = compilation.nodes["n1"].host_router.as_ref();
    let router = config.map(|one| HostRouter::clone(&one.router));
    let problems = compilation.problems.iter().map(ToString::to_string);
    (router.unwrap_or_default(), problems.collect())
}

/// The same without the names of its objects.
fn content(mut router: HostRouter) -> HostRouter {
    router.configurations.clear();
    router
}

fn three_objects() -> [Value; 3] {
    let peer = json!([{"address": "192.168.1.1", "asn": 64512, "addressFamilies": ["evpn"]}]);
    let all = json!({"advertiseVNIs": "All"});
    let vnis = json!({"l2vnis": [{"vni": 1000, "rd": "64512:1000", "importRTs": ["64512:1000"]}]});
    let targets =
        json!({"l2vnis": [{"vni": 1000, "importRTs": ["64512:7"], "exportRTs": ["64512:7"]}]});
    [
        json!({"bgp": {"routers": [{"asn": 64512, "neighbors": peer, "evpn": all}]}}),
        json!({"bgp": {"routers": [{"asn": 64512, "evpn": vnis}]}}),
        json!({"bgp": {"routers": [{"asn": 64512, "evpn": targets}]}}),
    ]
}

/// R14, R18.
#[test]
fn the_three_objects_of_the_source_merge_in_every_order_of_creation() {
    let specs = three_objects();
    let orders = [
        [1, 2, 3],
        [1, 3, 2],
        [2, 1, 3],
        [2, 3, 1],
        [3, 1, 2],
        [3, 2, 1],
    ];
    let names = ["a", "b", "c"];
    let merged = orders.map(|order| {
        let objects: Vec<Value> = (0..3)
            .map(|place| object(names[place], order[place], &specs[place]))
            .collect();
        let (router, problems) = compiled(&objects);
        assert_eq!(problems, Vec::<String>::new());
        router
    });
    assert!(merged.iter().all(|one| *one == merged[0]));
    let vni = &merged[0].routers.values().next().expect("a router").l2vnis[0];
    assert_eq!((vni.import_rts.len(), vni.export_rts.len()), (2, 1));
}

/// A router with these internal neighbors, communities and local preferences.
fn whole(prefixes: u8, neighbors: u8, marks: &BTreeMap<(u8, u8), (u8, u8)>) -> Value {
    let all: Vec<String> = (0..prefixes)
        .map(|one| format!("198.51.100.{one}/32"))
        .collect();
    let neighbor = |peer: u8| {
        let of = |wanted: &dyn Fn(&(u8, u8)) -> Option<u8>| {
            let mut entries: BTreeMap<u8, Vec<String>> = BTreeMap::new();
            for ((_, prefix), mark) in marks.iter().filter(|((one, _), _)| *one == peer) {
                if *prefix < prefixes
                    && let Some(value) = wanted(mark)
                {
                    entries
                        .entry(value)
                        .or_default()
                        .push(format!("198.51.100.{prefix}/32"));
                }
            }
            entries
        };
        let communities = of(&|(community, _)| (*community > 0).then_some(*community));
        let preferences = of(&|(_, preference)| (*preference > 0).then_some(*preference));
        let communities: Vec<Value> = (communities.into_iter())
            .map(|(value, prefixes)| json!({"community": format!("1:{value}"), "prefixes": prefixes}))
            .collect();
        let preferences: Vec<Value> = (preferences.into_iter())
            .map(|(value, prefixes)| json!({"localPref": value, "prefixes": prefixes}))
            .collect();
        json!({
            "address": format!("192.0.2.{}", peer + 1), "asn": 64512,
            "toAdvertise": {"allowed": {"mode": "all"}, "withCommunity": communities, "withLocalPref": preferences},
        })
    };
    let neighbors: Vec<Value> = (0..neighbors).map(neighbor).collect();
    json!({"bgp": {"routers": [{"asn": 64512, "prefixes": all, "neighbors": neighbors}]}})
}

/// The objects that a whole is split into: by neighbor, and each by community and local preference.
fn split(whole: &Value) -> Vec<Value> {
    let router = &whole["bgp"]["routers"][0];
    let mut parts = Vec::new();
    let part = |neighbor: &Value| {
        let mut part = router.clone();
        part["neighbors"] = json!([neighbor]);
        json!({"bgp": {"routers": [part]}})
    };
    for neighbor in router["neighbors"].as_array().into_iter().flatten() {
        let lists = ["withCommunity", "withLocalPref"];
        let mut plain = neighbor.clone();
        for list in lists {
            plain["toAdvertise"][list] = json!([]);
        }
        parts.push(part(&plain));
        for list in lists {
            for entry in neighbor["toAdvertise"][list]
                .as_array()
                .into_iter()
                .flatten()
            {
                let mut one = plain.clone();
                one["toAdvertise"][list] = json!([entry]);
                parts.push(part(&one));
            }
        }
    }
    parts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// R17, R18: a configuration that is split by neighbor, community and local preference is the same for the node, in every order.
    #[test]
    fn a_configuration_split_into_objects_is_the_same_configuration(
        prefixes in 1..5_u8, neighbors in 1..4_u8,
        marks in proptest::collection::btree_map((0..4_u8, 0..5_u8), (0..3_u8, 0..3_u8), 0..10),
        ages in Just((1..28_u32).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let whole = whole(prefixes, neighbors, &marks);
        let (one, problems) = compiled(&[object("whole", 1, &whole)]);
        prop_assert_eq!(problems, Vec::<String>::new());
        let parts = split(&whole);
        let parts: Vec<Value> = (parts.iter().zip(ages.iter().cycle()).enumerate())
            .map(|(place, (spec, age))| object(&format!("part-{place}"), *age, spec))
            .collect();
        let (several, problems) = compiled(&parts);
        prop_assert_eq!(problems, Vec::<String>::new());
        prop_assert_eq!(content(several), content(one));
    }

    /// R18, R55: what each object brings depends on no order of the input, and a broken object changes nothing of the others.
    #[test]
    fn one_bad_object_changes_nothing_for_the_others_of_its_node(
        chosen in subsequence((0..8_usize).collect::<Vec<_>>(), 1..8), fault in 0..5_u8,
    ) {
        let good: Vec<Value> = chosen.iter().map(|number| {
            let spec = json!({"bgp": {"routers": [{
                "asn": 64512, "prefixes": [format!("198.51.100.{number}/32")],
                "neighbors": [{"address": "192.0.2.1", "asn": 64500, "toAdvertise": {"allowed": {"mode": "all"}}}],
            }]}});
            object(&format!("good-{number}"), 1, &spec)
        }).collect();
        let spec = match fault {
            0 => json!({"bgp": {"routers": [{"asn": 64513}]}}),
            1 => json!({"bgp": {"routers": [{"asn": 64512, "neighbors": [{"address": "192.0.2.1", "asn": 64501}]}]}}),
            2 => json!({"bgp": {"routers": [{"asn": 64512, "imports": [{"vrf": "red"}]}]}}),
            3 => json!({"nodeSelector": {"matchLabels": {"a": "@"}}, "bgp": {"routers": [{"asn": 64512, "prefixes": ["203.0.113.0/24"]}]}}),
            _ => json!({"bgp": {"routers": [{"asn": 64512, "evpn": {"advertiseVNIs": "All"}}]}}),
        };
        let mut with = good.clone();
        with.push(object("bad", 2, &spec));
        let (alone, _) = compiled(&good);
        let (beside, problems) = compiled(&with);
        prop_assert!(!problems.is_empty());
        prop_assert!(problems.iter().all(|one| one.contains("/bad ")), "{problems:?}");
        prop_assert_eq!(HostRouter { problems: Vec::new(), ..beside }, alone.clone());
        let mut reversed = with.clone();
        reversed.reverse();
        let (other, said) = compiled(&reversed);
        prop_assert_eq!(said, problems);
        prop_assert_eq!(HostRouter { problems: Vec::new(), ..other }, alone);
    }
}

/// R23.
#[test]
fn two_receive_selectors_whose_texts_run_together_stay_two() {
    let selectors = json!([{"prefix": "::/1", "le": 128}, {"prefix": "::/11", "le": 28}]);
    let neighbor = json!({"address": "2001:db8::1", "asn": 1, "toReceive": {"allowed": {"prefixes": selectors}}});
    let spec = json!({"bgp": {"routers": [{"asn": 2, "neighbors": [neighbor]}]}});
    let (router, problems) = compiled(&[object("a", 1, &spec)]);
    assert_eq!(problems, Vec::<String>::new());
    let bgp = router.routers.values().next().expect("a router");
    assert_eq!(bgp.neighbors[0].receive.prefixes.len(), 2);
}

/// R03: no string of an object can add a line to the configuration of FRR.
#[test]
fn no_string_field_takes_a_line_break() {
    let text = "x\nrouter bgp 1";
    let neighbors = [
        json!({"address": text, "asn": 1}),
        json!({"interface": text, "asn": 1}),
        json!({"address": "192.0.2.1", "asn": 1, "sourceaddress": text}),
        json!({"address": "192.0.2.1", "asn": 1, "password": text}),
        json!({"address": "192.0.2.1", "asn": 1, "bfdProfile": text}),
        json!({"address": "192.0.2.1", "asn": 1, "dynamicASN": text}),
        json!({"address": "192.0.2.1", "asn": 1, "toAdvertise": {"withCommunity": [{"community": text, "prefixes": ["192.0.2.0/24"]}]}}),
    ];
    let mut specs: Vec<Value> = neighbors
        .into_iter()
        .map(|one| json!({"bgp": {"routers": [{"asn": 2, "neighbors": [one]}], "bfdProfiles": [{"name": text}]}}))
        .collect();
    for router in [
        json!({"asn": 2, "vrf": text}),
        json!({"asn": 2, "id": text}),
        json!({"asn": 2, "prefixes": [text]}),
        json!({"asn": 2, "imports": [{"vrf": text}]}),
        json!({"asn": 2, "evpn": {"l2vnis": [{"vni": 1, "rd": text}]}}),
        json!({"asn": 2, "evpn": {"l2vnis": [{"vni": 1, "importRTs": [text]}]}}),
    ] {
        specs.push(json!({"bgp": {"routers": [router]}}));
    }
    for spec in specs {
        let (router, problems) = compiled(&[object("a", 1, &spec)]);
        assert!(!problems.is_empty(), "{spec}");
        assert_eq!(router.routers.len(), 0, "{spec}");
    }
}

/// R37.
#[test]
fn more_than_ten_vnis_and_fifty_routers_of_one_object_are_accepted() {
    let vnis: Vec<Value> = (1..=40).map(|vni| json!({"vni": vni})).collect();
    let peer = json!([{"address": "192.168.1.1", "asn": 64512, "addressFamilies": ["evpn"]}]);
    let mut routers = vec![
        json!({"asn": 64512, "neighbors": peer, "evpn": {"advertiseVNIs": "All", "l2vnis": vnis}}),
    ];
    routers.extend((0..60).map(|vrf| json!({"asn": 64512, "vrf": format!("v{vrf}")})));
    let (router, problems) = compiled(&[object("a", 1, &json!({"bgp": {"routers": routers}}))]);
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(router.routers.len(), 61);
}

/// R27.
#[test]
fn numbers_and_names_are_unique_on_a_node_and_not_in_the_cluster() {
    let on = |node: &str, asn: u32| {
        let evpn = json!({"l3vni": {"vni": 7, "advertisePrefixes": ["unicast"]}});
        let routers = json!([{"asn": asn}, {"asn": asn, "vrf": format!("v-{node}"), "evpn": evpn}]);
        object(
            node,
            1,
            &json!({"bgp": {"routers": routers}, "nodeSelector": {"matchLabels": {"name": node}}}),
        )
    };
    let world = [node("n1"), node("n2"), on("n1", 64512), on("n2", 64513)];
    let compilation = compile(&snapshot(&world));
    assert!(!compilation.has_errors(), "{:?}", compilation.problems);
}

/// R64, R66: admission is the compile on the objects with the change; only what the change adds speaks against it.
#[test]
fn a_review_judges_every_change_of_configurations_as_the_compile_does() {
    let selecting = |asn: u32| json!({"bgp": {"routers": [{"asn": asn}]}});
    let mut compiler = Compiler::new(snapshot(&[node("n1"), object("a", 1, &selecting(64512))]));
    compiler.compile();
    let review = |compiler: &mut Compiler, document: &Value| {
        let prepared = Prepared::read(document).expect("an object of ours");
        compiler.review(Change::Put(Box::new(prepared)))
    };
    let conflicting = object("b", 2, &selecting(64513));
    let found = review(&mut compiler, &conflicting);
    let said = found.own.first().expect("a problem").to_string();
    assert!(
        said.contains("different asns") && said.contains("selvedge-system/a"),
        "{said}"
    );
    assert_eq!(found.others, []);
    let mut foreign = conflicting.clone();
    foreign["metadata"]["namespace"] = json!("tenant");
    let found = review(&mut compiler, &foreign);
    assert!(
        found
            .own
            .iter()
            .all(|one| one.severity() == Severity::Warning),
        "{:?}",
        found.own
    );
    assert_eq!(
        found.others,
        [],
        "an object that no node would apply stops no other"
    );

    let [neighbor, vnis, _] = three_objects();
    let mut compiler = Compiler::new(snapshot(&[
        node("n1"),
        object("neighbor", 1, &neighbor),
        object("vnis", 2, &vnis),
    ]));
    compiler.compile();
    let subject = ObjectRef {
        kind: Kind::FrrConfiguration,
        key: Key {
            namespace: Some("selvedge-system".into()),
            name: "neighbor".into(),
        },
    };
    let found = compiler.review(Change::Delete(subject));
    let said = found
        .others
        .first()
        .expect("what depends on it")
        .to_string();
    assert!(said.contains("family evpn"), "{said}");
}

/// What nodes report about the routers of their hosts.
fn reported(name: &str, host_router: &Value, report: &Value) -> Value {
    json!({
        "apiVersion": "network.t-caas.telekom.com/v1alpha1", "kind": "NodeNetworkConfig", "metadata": {"name": name, "generation": 1},
        "spec": {"revision": "r", "hostRouter": host_router}, "status": {"configStatus": "provisioned", "hostRouter": report},
    })
}

/// R51, R55.
#[test]
fn what_a_node_refuses_of_a_session_is_said_of_the_objects_that_have_the_session() {
    let of = |address: &str| {
        let neighbors = json!([{"address": address, "asn": 64500}]);
        json!({"bgp": {"routers": [{"asn": 64512, "neighbors": neighbors}]}})
    };
    let refused = json!({"unsupported": [
        {"vrf": "default", "peer": "192.0.2.1", "message": "FRR refuses \"neighbor 192.0.2.1 remote-as 64500\": % no"},
    ]});
    let world = [
        node("n1"),
        object("a", 1, &of("192.0.2.1")),
        object("b", 1, &of("192.0.2.2")),
        reported("n1", &json!({}), &refused),
    ];
    let statuses = crate::statuses(&snapshot(&world));
    let of_objects = statuses.iter();
    let of_objects = of_objects.filter(|(subject, _)| subject.kind == Kind::FrrConfiguration);
    let fields: Vec<Value> = of_objects
        .map(|(_, status)| status.to_value()["problems"][0]["field"].clone())
        .collect();
    assert_eq!(
        fields,
        [json!("spec.bgp.routers[0].neighbors[0]"), Value::Null]
    );
}

/// R51, R58.
#[test]
fn a_status_says_what_nodes_say_of_the_object() {
    let settings = json!({
        "apiVersion": "selvedge.dev/v1alpha1", "kind": "Settings", "metadata": {"name": "default"},
        "spec": {"frrConfigurations": {"allowRaw": true}},
    });
    let neighbors = json!([
        {"address": "192.0.2.1", "asn": 64500, "addressFamilies": ["evpn"]},
        {"interface": "eth9", "dynamicASN": "external"},
    ]);
    let evpn = json!({"advertiseVNIs": "All", "l2vnis": [{"vni": 1000, "importRTs": ["*:7"]}]});
    let spec = json!({
        "bgp": {"routers": [{"asn": 64512, "neighbors": neighbors, "evpn": evpn}]}, "raw": {"rawConfig": "foo"},
    });
    let runs = json!([{"namespace": "selvedge-system", "name": "a", "generation": 1}]);
    let complete = json!({"configurations": runs});
    let report = json!({
        "configurations": [], "error": "bgpd does not answer",
        "refusedRaw": [{"source": "selvedge-system/a", "line": 1, "message": "unknown command"}],
        "unsupported": [{"vrf": "default", "vni": 1000, "message": "FRR 8.4 has no wildcard"}],
        "missing": [
            {"vrf": "default", "kind": "l2vni", "name": "1000"}, {"vrf": "default", "kind": "interface", "name": "eth9"},
            {"vrf": "default", "kind": "l2vni", "name": "77"},
        ],
    });
    let world = [
        node("n1"),
        node("n2"),
        settings,
        object("a", 1, &spec),
        reported("n1", &json!({}), &complete),
        reported("n2", &json!({}), &report),
    ];
    let statuses = crate::statuses(&snapshot(&world));
    let status = statuses
        .iter()
        .find(|(subject, _)| subject.kind == Kind::FrrConfiguration);
    let status = status.expect("a status").1.to_value();
    assert_eq!(status["nodes"], json!({"matched": 2, "applied": 1}));
    let of = |kind: &str| {
        let conditions = status["conditions"].as_array().expect("conditions");
        let one = conditions.iter().find(|one| one["type"] == kind);
        one.map(|one| format!("{} {} {}", one["status"], one["reason"], one["message"]))
            .unwrap_or_default()
    };
    assert!(of("Accepted").contains("True"), "{status}");
    assert!(
        of("Applied").contains("1 of 2 nodes; node n2: bgpd does not answer"),
        "{status}"
    );
    assert!(
        of("RawApplied").contains("node n2: line 1: unknown command"),
        "{status}"
    );
    assert!(
        of("Supported").contains("node n2: FRR 8.4 has no wildcard"),
        "{status}"
    );
    assert!(
        of("DevicesMissing").contains("node n2: the host has no"),
        "{status}"
    );
    let missing = status["problems"].as_array().expect("problems").iter();
    let missing: Vec<&Value> = missing
        .filter(|one| one["reason"] == "DeviceMissing")
        .map(|one| &one["field"])
        .collect();
    assert_eq!(
        missing,
        [
            "spec.bgp.routers[0].evpn.l2vnis[0]",
            "spec.bgp.routers[0].neighbors[1].interface"
        ]
    );
}

/// R62.
#[test]
fn a_password_in_clear_text_is_in_a_secret_of_each_node_and_nowhere_else() {
    let neighbor = json!({"address": "192.0.2.1", "asn": 64500, "password": "not-to-be-seen"});
    let spec = json!({"bgp": {"routers": [{"asn": 64512, "neighbors": [neighbor]}]}});
    let world = snapshot(&[node("n1"), node("n2"), object("a", 1, &spec)]);
    let compilation = compile(&world);
    let mut names = BTreeSet::new();
    for (node, config) in &compilation.nodes {
        let moved = config.moved_passwords(&world);
        let [one] = moved.as_slice() else {
            panic!("{moved:?}");
        };
        assert_eq!(
            one.password.as_ref().map(api::value::Password::reveal),
            Some("not-to-be-seen")
        );
        assert!(one.is_in_effect);
        let name = one.secret.name.clone().expect("a name");
        assert!(name.starts_with(&names::moved_passwords_of(node)), "{name}");
        assert!(config.password_secrets().any(|secret| secret == one.secret));
        names.insert(name);
        let written = serde_json::to_string(&config.spec("r")).expect("JSON");
        assert!(!written.contains("not-to-be-seen"), "{written}");
    }
    assert_eq!(names.len(), 2);
    for status in crate::statuses(&world).values() {
        let written = status.to_value().to_string();
        assert!(!written.contains("not-to-be-seen"), "{written}");
    }
    let problems = format!("{:?}", compilation.problems);
    assert!(
        problems.contains("InlinePassword") && !problems.contains("not-to-be-seen"),
        "{problems}"
    );
}

/// A status that was written is the one that there must be: nothing is written again.
#[test]
fn a_stored_status_of_an_object_with_a_password_is_not_written_again() {
    let neighbor = json!({"address": "192.0.2.1", "asn": 64500, "password": "not-to-be-seen"});
    let spec = json!({"bgp": {"routers": [{"asn": 64512, "neighbors": [neighbor]}]}});
    let mut document = object("a", 1, &spec);
    let mut compiler = Compiler::new(snapshot(&[node("n1"), document.clone()]));
    let statuses = compiler.writes().statuses.clone();
    let (_, status) = statuses
        .iter()
        .find(|(one, _)| one.kind == Kind::FrrConfiguration)
        .expect("a status");
    document["status"] = status.to_value();
    compiler.insert(&document);
    let writes = &compiler.writes().statuses;
    assert!(
        writes.keys().all(|one| one.kind != Kind::FrrConfiguration),
        "{writes:?}"
    );
}

/// Mistakes name the field that has them, whatever the place of the object in a list is.
#[test]
fn the_merge_of_plain_objects_is_that_of_a_compile() {
    let specs = three_objects();
    let objects: Vec<(ObjectRef, Arc<FrrConfigurationSpec>)> = (specs.iter().enumerate())
        .map(|(place, spec)| {
            let key = Key {
                namespace: Some("selvedge-system".into()),
                name: format!("o{place}").into(),
            };
            let spec = serde_json::from_value(spec.clone()).expect("a spec");
            (
                ObjectRef {
                    kind: Kind::FrrConfiguration,
                    key,
                },
                Arc::new(spec),
            )
        })
        .collect();
    let (router, problems) = merge_all(&objects, &SettingsSpec::default());
    assert_eq!(problems, []);
    let documents: Vec<Value> = (specs.iter().enumerate())
        .map(|(place, spec)| {
            object(
                &format!("o{place}"),
                u32::try_from(place + 1).expect("small"),
                spec,
            )
        })
        .collect();
    let (compiled, _) = compiled(&documents);
    assert_eq!(content(router), content(compiled));
}

/// R60.
#[test]
fn a_problem_leaves_the_config_of_a_node_with_its_object() {
    let of = |asn: u32| json!({"bgp": {"routers": [{"asn": asn}]}});
    let (good, bad) = (object("a", 1, &of(64512)), object("b", 2, &of(64513)));
    let (router, _) = compiled(&[good.clone(), bad]);
    assert!(router.problems[0].contains("asn"), "{:?}", router.problems);
    let (router, _) = compiled(&[good]);
    assert_eq!(router.problems, Vec::<String>::new());
}

/// R69.
#[test]
fn nodes_that_the_same_objects_select_share_one_router() {
    let world = [
        node("n1"),
        node("n2"),
        node("n3"),
        object("all", 1, &json!({"bgp": {"routers": [{"asn": 64512}]}})),
        object(
            "one",
            2,
            &json!({"bgp": {"routers": [{"asn": 64512, "vrf": "red"}]}, "nodeSelector": {"matchLabels": {"name": "n3"}}}),
        ),
    ];
    let compilation = compile(&snapshot(&world));
    let router = |node: &str| {
        let config = compilation.nodes[node].host_router.as_ref();
        Arc::clone(&config.expect("a router").router)
    };
    assert!(Arc::ptr_eq(&router("n1"), &router("n2")));
    assert_eq!(
        (router("n1").routers.len(), router("n3").routers.len()),
        (1, 2)
    );
    let forwarding = |node: &str| Arc::clone(&compilation.nodes[node].shared);
    assert!(
        Arc::ptr_eq(&forwarding("n1"), &forwarding("n3")),
        "they take no forwarding apart"
    );
}
