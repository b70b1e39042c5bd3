//! Ring 2, laws of the whole compile, on random worlds.

mod regressions;

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use worlds::{TCAAS, Tenant, laws, object, objects, tenant, world};

use super::*;

mod changes;
mod claims;
mod harm;
mod long;
mod mirrors;
mod overlay;
mod removals;
mod review;
mod sound;
mod whole;

pub(crate) fn snapshot(world: &[Value]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for document in world {
        snapshot.insert(document);
    }
    snapshot
}

/// Everything that a compile says, as bytes.
fn bytes(compilation: &Compilation) -> String {
    let revision = &compilation.revision.fingerprint;
    let nodes: BTreeMap<&String, _> = compilation
        .nodes
        .iter()
        .map(|(node, config)| (node, config.spec(revision)))
        .collect();
    let platform: Vec<Value> = compilation
        .platform
        .values()
        .map(|object| object.manifest())
        .collect();
    let services: BTreeMap<String, _> = services_of(compilation)
        .map(|(subject, service)| (subject.to_string(), &service.addresses))
        .collect();
    let objects: BTreeMap<String, Value> = compilation
        .objects
        .iter()
        .map(|one| {
            let name = format!("{} {}", one.kind(), one.name());
            (name, json!({"source": one.source(), "spec": one.spec()}))
        })
        .collect();
    let parts = json!({
        "platform": platform,
        "keeps": compilation.platform_keeps,
        "services": services,
        "objects": objects,
        "vnis": compilation.network_vnis,
        "revision": compilation.revision.spec(&compilation.objects),
        "nodes": nodes,
        "problems": *compilation.problems,
    });
    parts.to_string()
}

/// The objects that configure nodes.
fn told(compilation: &Compilation) -> Vec<Value> {
    let config = |(node, config): (&String, &Arc<NodeConfig>)| {
        let spec = config.spec(&compilation.revision.fingerprint);
        let spec = serde_json::to_value(spec).expect("a spec is JSON");
        object(TCAAS, "NodeNetworkConfig", json!({"name": node}), spec)
    };
    compilation.nodes.iter().map(config).collect()
}

/// Where two compiles differ, each place with both values.
fn differences(one: &Compilation, other: &Compilation) -> Vec<String> {
    fn walk(path: &str, one: &Value, other: &Value, found: &mut Vec<String>) {
        match (one, other) {
            (Value::Object(a), Value::Object(b)) => {
                for key in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
                    let of = |map: &serde_json::Map<String, Value>| {
                        map.get(key).cloned().unwrap_or(Value::Null)
                    };
                    walk(&format!("{path}.{key}"), &of(a), &of(b), found);
                }
            }
            _ if one == other => {}
            _ => found.push(format!("{path}: {one} | {other}")),
        }
    }
    let parse = |text: String| serde_json::from_str(&text).expect("JSON");
    let (one, other): (Value, Value) = (parse(bytes(one)), parse(bytes(other)));
    let mut found = Vec::new();
    walk("", &one, &other, &mut found);
    found
}

#[test]
fn a_service_without_addresses_is_told_the_same_holder_today_and_tomorrow() {
    let tenant = |services| Tenant {
        vrf: 1,
        vlan: 1,
        vni: None,
        subnet: 0,
        group: None,
        services,
        ways: (false, false, false),
        missing: Vec::new(),
    };
    let mut world = objects(0, &tenant((0, 0, false)));
    world.extend(objects(1, &tenant((1, 0, true))));
    world.extend(objects(2, &tenant((0, 1, false))));
    let first = compile(&snapshot(&world));
    let second = compile(&remembering(&world, &first));
    assert_eq!(differences(&first, &second), Vec::<String>::new());
}

proptest! {
    #![proptest_config(laws(256))]

    #[test]
    fn the_order_of_the_input_never_matters(
        (world, shuffled) in world().prop_flat_map(|world| (Just(world.clone()), Just(world).prop_shuffle()))
    ) {
        prop_assert_eq!(bytes(&compile(&snapshot(&world))), bytes(&compile(&snapshot(&shuffled))));
    }

    #[test]
    fn an_object_that_cannot_be_read_changes_nothing_else(world in world()) {
        let before = compile(&snapshot(&world));
        let mut with_broken = world;
        with_broken.push(object(TCAAS, "Network", json!({"name": "broken"}), json!({"vlan": "many"})));
        with_broken.push(object(TCAAS, "Layer2Attachment", json!({"name": "zz-broken"}), json!({"networkRef": "broken", "interfaceName": "x"})));
        let after = compile(&snapshot(&with_broken));
        prop_assert_eq!(&before.nodes, &after.nodes);
        prop_assert_eq!(&before.revision, &after.revision);
        for problem in before.problems.iter() {
            prop_assert!(after.problems.contains(problem), "{} is gone", problem);
        }
    }

    #[test]
    fn addresses_of_nodes_are_unique_and_stay(world in world(), newcomer in tenant()) {
        let first = compile(&snapshot(&world));
        let mut grown = world;
        grown.extend(objects(90, &newcomer));
        let mut again = snapshot(&grown);
        for (node, config) in &first.nodes {
            let spec = serde_json::to_value(config.spec("r")).expect("a spec is JSON");
            again.insert(&object(TCAAS, "NodeNetworkConfig", json!({"name": node}), spec));
        }
        let second = compile(&again);
        let given = || second.nodes.values().flat_map(|config| config.addresses.values().flatten());
        prop_assert_eq!(given().collect::<BTreeSet<_>>().len(), given().count());
        for (node, config) in &first.nodes {
            for (object, addresses) in &config.addresses {
                if let Some(now) = second.nodes[node].addresses.get(object) {
                    prop_assert_eq!(now, addresses);
                }
            }
        }
    }

    #[test]
    fn rules_by_source_lead_into_vrfs_of_the_node(world in world()) {
        for config in compile(&snapshot(&world)).nodes.values() {
            let spec = config.spec("");
            let routes = spec.cluster_vrf.iter().flat_map(|vrf| &vrf.policy_routes);
            for route in routes {
                let vrf = route.next_hop.vrf.as_ref().expect("a rule leads into a VRF");
                prop_assert!(spec.local_vrfs.contains_key(vrf), "{} is not there", vrf);
                prop_assert!((1..1000).contains(&route.priority));
            }
        }
    }

    #[test]
    fn a_second_compile_moves_nothing(world in world()) {
        let first = compile(&snapshot(&world));
        let second = compile(&remembering(&world, &first));
        prop_assert_eq!(moved(&first, &second), Vec::<String>::new());
    }

    #[test]
    fn no_address_is_anybody_elses(world in world()) {
        let compilation = compile(&snapshot(&world));
        let mut holders = BTreeMap::new();
        for (subject, service) in services_of(&compilation) {
            for address in lower::plain(&service.addresses) {
                prop_assert_eq!(holders.insert(address, subject), None);
            }
        }
        let mut names = BTreeSet::new();
        for object in compilation.platform.values() {
            prop_assert!(names.insert((object.kind, &object.namespace, &object.name)));
            prop_assert!(!compilation.platform_keeps.contains(&object.owner));
        }
    }

    #[test]
    fn a_service_that_goes_moves_no_other(world in world(), gone in any::<prop::sample::Index>()) {
        let first = compile(&snapshot(&world));
        let subjects: Vec<&ObjectRef> = services_of(&first).map(|(subject, _)| subject).collect();
        if subjects.is_empty() {
            return Ok(());
        }
        let gone = *gone.get(&subjects);
        let mut after = remembering(&world, &first);
        after.inbounds.retain(|key, _| gone.kind != Kind::Inbound || *key != gone.key);
        after.outbounds.retain(|key, _| gone.kind != Kind::Outbound || *key != gone.key);
        after.pod_networks.retain(|key, _| gone.kind != Kind::PodNetwork || *key != gone.key);
        let second = compile(&after);
        for (subject, service) in services_of(&second) {
            let before = first.service(subject).expect("it was there");
            let before = lower::plain(&before.addresses);
            let now: Vec<_> = lower::plain(&service.addresses).collect();
            for address in before {
                prop_assert!(now.contains(&address), "{} lost {}", subject, address);
            }
        }
    }
}

/// The world after a compile has been published and reported.
fn remembering(world: &[Value], compilation: &Compilation) -> Snapshot {
    let statuses = statuses(&snapshot(world));
    let mut again = Snapshot::default();
    for document in world {
        let mut document = document.clone();
        let of = |(subject, _): &(&ObjectRef, &Arc<Status>)| {
            document["kind"] == subject.kind.to_string()
                && document["metadata"]["name"] == *subject.key.name
        };
        if let Some((_, status)) = statuses.iter().find(of) {
            document["status"] = status.to_value();
        }
        again.insert(&document);
    }
    for document in told(compilation).iter().chain(&generated(compilation)) {
        again.insert(document);
    }
    again
}

/// What a second compile moves. Who waits may wait for more than one reason, and what runs now is one of them: only whether something is wrong
/// with an object counts.
fn moved(first: &Compilation, second: &Compilation) -> Vec<String> {
    let mut moved = differences(first, second);
    moved.retain(|difference| !difference.starts_with(".problems"));
    let wrong = |compilation: &Compilation| -> BTreeSet<String> {
        let problems = compilation.problems.iter();
        problems
            .map(|problem| problem.subject.to_string())
            .collect()
    };
    let (first, second) = (wrong(first), wrong(second));
    moved.extend(first.symmetric_difference(&second).cloned());
    moved
}

/// The objects that are generated from intents.
fn generated(compilation: &Compilation) -> Vec<Value> {
    let made = compilation.objects.iter().filter(|one| one.is_generated());
    let document = |one: &lower::LowLevelObject| {
        let source = one.source();
        let owner = json!({
            "apiVersion": source.kind.api_version(), "kind": source.kind.to_string(), "name": source.key.name,
            "uid": "", "controller": true,
        });
        let metadata = json!({"name": one.name(), "ownerReferences": [owner]});
        object(TCAAS, &one.kind().to_string(), metadata, one.spec())
    };
    made.map(document).collect()
}

/// What each service comes to.
fn services_of(compilation: &Compilation) -> impl Iterator<Item = (&ObjectRef, &lower::Service)> {
    let intents = compilation.intents.iter();
    intents.filter_map(|(subject, merged)| Some((subject, merged.service.as_ref()?)))
}
