//! Routers of hosts reach their nodes at once, whatever else the nodes wait for.

use std::time::{Duration, Instant};

use super::*;

fn configuration(compiler: &mut Compiler, name: &str, prefix: &str, generation: i64) {
    compiler.insert(&json!({
        "apiVersion": Kind::FrrConfiguration.api_version(), "kind": "FRRConfiguration",
        "metadata": {"name": name, "namespace": "selvedge-system", "generation": generation},
        "spec": {"bgp": {"routers": [{"asn": 64512, "prefixes": [prefix]}]}},
    }));
}

/// Stores what a pass publishes as an API server does: the generation rises with each change. The status stays as it was unless a node reports.
fn store_pass(compiler: &mut Compiler, pass: &Pass, now: Time, report: Option<&str>) {
    let snapshot = compiler.snapshot().clone();
    let writes = crate::write::Writes {
        snapshot: &snapshot,
        kinds: &crate::kinds::Kinds::new([].into_iter()),
        now: &stored::text(now),
    };
    for publication in &pass.step.publish {
        let key = Key::named(&publication.node);
        let before = snapshot.node_network_configs.get(&key);
        let generation = before
            .and_then(|before| before.meta.generation)
            .unwrap_or(0)
            + 1;
        let write = writes.node(publication, &pass.step);
        let crate::request::Operation::Apply(document) = write.operation else {
            panic!("a config is applied");
        };
        let annotations = document["metadata"]["annotations"].clone();
        let status = match (report, before.and_then(|before| before.status.as_deref())) {
            (Some(report), _) => json!({
                "configStatus": report, "observedRevision": publication.spec.revision, "observedGeneration": generation,
                "errorMessage": report,
            }),
            (None, Some(status)) => serde_json::to_value(status).expect("a status is JSON"),
            (None, None) => Value::Null,
        };
        let metadata =
            json!({"name": publication.node, "generation": generation, "annotations": annotations});
        let parts = json!({"metadata": metadata, "spec": publication.spec, "status": status});
        put(compiler, Kind::NodeNetworkConfig, &publication.node, &parts);
    }
}

/// Passes until every node has what it must have.
fn settle(compiler: &mut Compiler, now: &mut Time) {
    for _ in 0..20 {
        *now += 20;
        let pass = pass_at(compiler, *now);
        if pass.step.status.phase.as_deref() == Some("Complete") && pass.step.publish.is_empty() {
            return;
        }
        store_pass(compiler, &pass, *now, Some("provisioned"));
    }
    panic!("the rollout does not end");
}

fn prefixes(publication: &Publication) -> Vec<String> {
    let router = publication.spec.host_router.iter();
    let networks = router
        .flat_map(|one| one.routers.values())
        .flat_map(|one| &one.networks);
    networks.map(ToString::to_string).collect()
}

/// From the event to the list of writes; no wave, no new revision, and no other status becomes another.
#[test]
fn a_configuration_reaches_all_nodes_in_the_pass_after_its_event() {
    let (mut compiler, mut now) = (three_nodes(), 100);
    underlay(&mut compiler, 64514);
    settle(&mut compiler, &mut now);
    let revision = compiler.compile().1.revision.fingerprint.clone();

    let event = Instant::now();
    configuration(&mut compiler, "a", "198.51.100.1/32", 1);
    let pass = Pass::compute(&mut compiler, |_| Agent::ALIVE, BTreeMap::new(), now + 1);
    let time = event.elapsed();
    assert_eq!(pass.nodes(), ["a", "b", "c"]);
    assert!(time < Duration::from_secs(1), "{time:?}");
    for one in &pass.step.publish {
        assert_eq!(one.lane, None);
        assert_eq!(one.spec.revision, revision);
        assert_eq!(prefixes(one), ["198.51.100.1/32"]);
    }
    assert_eq!(compiler.compile().1.revision.fingerprint, revision);
    assert_eq!((pass.step.status.ready, pass.step.status.total), (3, 3));
    let is_configuration = |subject: &ObjectRef| subject.kind == Kind::FrrConfiguration;
    let others: Vec<&ObjectRef> = pass
        .writes
        .statuses
        .keys()
        .filter(|one| !is_configuration(one))
        .collect();
    let before: Vec<_> = others.into_iter().cloned().collect();

    // The nodes have not answered yet: what they said of the same forwarding still counts.
    store_pass(&mut compiler, &pass, now + 1, None);
    let pass = pass_at(&mut compiler, now + 2);
    assert_eq!((pass.nodes().len(), pass.step.status.ready), (0, 3));
    assert_eq!(pass.step.status.phase.as_deref(), Some("Complete"));
    let others: Vec<&ObjectRef> = pass
        .writes
        .statuses
        .keys()
        .filter(|one| !is_configuration(one))
        .collect();
    assert_eq!(others, before.iter().collect::<Vec<_>>());

    // And once more, one after another.
    configuration(&mut compiler, "a", "198.51.100.2/32", 2);
    let pass = pass_at(&mut compiler, now + 3);
    assert_eq!(pass.nodes().len(), 3);
    store_pass(&mut compiler, &pass, now + 3, None);
    let pass = pass_at(&mut compiler, now + 4);
    assert_eq!((pass.nodes().len(), pass.step.status.ready), (0, 3));
}

#[test]
fn a_node_that_waits_for_its_wave_gets_the_router_of_its_host_beside_its_old_config() {
    let (mut compiler, mut now) = (three_nodes(), 100);
    underlay(&mut compiler, 64514);
    settle(&mut compiler, &mut now);
    let pause = json!({"spec": {"rollout": {"pause": true}}});
    put(&mut compiler, Kind::Settings, "default", &pause);
    settle(&mut compiler, &mut now);

    underlay(&mut compiler, 64999);
    configuration(&mut compiler, "a", "198.51.100.1/32", 1);
    let pass = pass_at(&mut compiler, now + 1);
    assert_eq!(
        pass.nodes(),
        ["a", "b", "c"],
        "no wave begins, and no router waits"
    );
    for one in &pass.step.publish {
        let asn = one
            .spec
            .underlay
            .as_ref()
            .map(|underlay| underlay.asn.get());
        assert_eq!((one.lane, asn), (None, Some(64514)));
        assert_eq!(prefixes(one), ["198.51.100.1/32"]);
    }
    store_pass(&mut compiler, &pass, now + 1, None);
    let pass = pass_at(&mut compiler, now + 2);
    assert!(pass.nodes().is_empty(), "{:?}", pass.nodes());
    assert_eq!(pass.step.status.queued, 3);
}

#[test]
fn a_node_in_a_wave_that_fails_has_failed_whatever_its_host_got_meanwhile() {
    let (mut compiler, mut now) = (three_nodes(), 100);
    underlay(&mut compiler, 64514);
    settle(&mut compiler, &mut now);
    underlay(&mut compiler, 64999);
    let pass = pass_at(&mut compiler, now + 1);
    assert_eq!(pass.nodes(), ["a"], "the canary");
    store_pass(&mut compiler, &pass, now + 1, Some("provisioning"));
    configuration(&mut compiler, "x", "198.51.100.1/32", 1);
    let pass = pass_at(&mut compiler, now + 2);
    assert_eq!(pass.nodes(), ["a", "b", "c"]);
    store_pass(&mut compiler, &pass, now + 2, None);
    let stored = &compiler.snapshot().node_network_configs[&Key::named("a")];
    assert_eq!(
        stored::published_at(stored),
        Some(now + 1),
        "its deadline stays"
    );
    let mut document = serde_json::to_value(&*stored.spec).expect("a spec is JSON");
    document["revision"] = json!(stored.spec.revision);
    let annotations = json!(stored.meta.annotations);
    let generation = stored.meta.generation;
    let parts = json!({
        "metadata": {"name": "a", "generation": generation, "annotations": annotations}, "spec": document,
        "status": {"configStatus": "invalid", "observedRevision": stored.spec.revision, "observedGeneration": generation,
                   "errorMessage": "invalid"},
    });
    put(&mut compiler, Kind::NodeNetworkConfig, "a", &parts);
    let pass = pass_at(&mut compiler, now + 3);
    assert!(pass.step.status.is_invalid);
    assert_eq!(pass.step.status.failed_node.as_deref(), Some("a"));
    // It goes back to the last valid revision, with the router that its host has now.
    let back = pass
        .step
        .publish
        .iter()
        .find(|one| one.node == "a")
        .expect("it goes back");
    let asn = back
        .spec
        .underlay
        .as_ref()
        .map(|underlay| underlay.asn.get());
    assert_eq!(asn, Some(64514));
    assert_eq!(prefixes(back), ["198.51.100.1/32"]);
}

#[test]
fn the_last_configuration_that_goes_takes_the_router_of_the_host_with_it() {
    let (mut compiler, mut now) = (three_nodes(), 100);
    configuration(&mut compiler, "a", "198.51.100.1/32", 1);
    settle(&mut compiler, &mut now);
    let key = Key {
        namespace: Some("selvedge-system".into()),
        name: "a".into(),
    };
    compiler.remove(&ObjectRef {
        kind: Kind::FrrConfiguration,
        key,
    });
    let pass = pass_at(&mut compiler, now + 1);
    assert_eq!(pass.nodes(), ["a", "b", "c"]);
    assert!(
        pass.step
            .publish
            .iter()
            .all(|one| one.spec.host_router.is_none())
    );
}
