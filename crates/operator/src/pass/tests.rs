//! Passes over a stored cluster, one after another.

mod agents;
mod host_router;
mod laws;
mod mirrors;
mod regressions;
mod removals;
mod repeated;

use compiler::snapshot::Key;
use compiler::{Kind, ObjectRef, revision, rollout::stored};
use serde_json::{Value, json};

use super::*;
use crate::rollout::Publication;

impl Pass {
    /// The nodes whose config is written now, in this order.
    fn nodes(&self) -> Vec<&str> {
        let publish = self.step.publish.iter();
        publish.map(|one| one.node.as_str()).collect()
    }
}

fn put(compiler: &mut Compiler, kind: Kind, name: &str, parts: &Value) {
    let mut document = json!({
        "apiVersion": kind.api_version(), "kind": kind.to_string(), "metadata": {"name": name},
    });
    for (part, value) in parts.as_object().into_iter().flatten() {
        document[part] = value.clone();
    }
    compiler.insert(&document);
}

/// Stores the config of a node that was published at this time, with what the node reports about it.
fn store_at(compiler: &mut Compiler, node: &str, time: Time, report: &str) {
    let (_, compilation) = compiler.compile();
    let config = compilation.nodes.get(node).expect("a config");
    let spec = config.spec(&compilation.revision.fingerprint);
    let status = json!({
        "configStatus": report, "observedRevision": spec.revision, "errorMessage": report,
    });
    let annotations = json!({stored::PUBLISHED_AT: stored::text(time)});
    let metadata = json!({"name": node, "annotations": annotations});
    let parts = json!({"metadata": metadata, "spec": spec, "status": status});
    put(compiler, Kind::NodeNetworkConfig, node, &parts);
}

fn store(compiler: &mut Compiler, node: &str, report: &str) {
    store_at(compiler, node, 0, report);
}

/// A pass at this time, with the revision and its status stored.
fn pass_at(compiler: &mut Compiler, now: Time) -> Pass {
    let pass = Pass::compute(compiler, |_| Agent::ALIVE, BTreeMap::new(), now);
    let (_, compilation) = compiler.compile();
    let revision = &compilation.revision;
    let name = revision::object_name(&revision.fingerprint);
    let spec = revision.spec(&compilation.objects);
    let stored = &compiler.snapshot().network_config_revisions;
    let stored = stored.get(&Key::named(&name));
    let annotations = stored.map(|stored| stored.meta.annotations.clone());
    let metadata = json!({"name": name, "annotations": annotations.unwrap_or_default()});
    let parts = json!({"metadata": metadata, "spec": spec, "status": pass.step.status});
    put(compiler, Kind::NetworkConfigRevision, &name, &parts);
    pass
}

fn three_nodes() -> Compiler {
    let mut compiler = Compiler::default();
    for node in ["a", "b", "c"] {
        put(&mut compiler, Kind::Node, node, &json!({}));
    }
    compiler
}

#[test]
fn a_canary_confirms_and_soaks_before_others_follow_until_one_fails() {
    let mut compiler = three_nodes();
    let pass = pass_at(&mut compiler, 100);
    assert_eq!(pass.nodes(), ["a"]);
    assert_eq!((pass.step.status.queued, pass.step.status.total), (3, 3));
    assert_eq!(pass.step.status.wave.as_deref(), Some("canary"));

    store_at(&mut compiler, "a", 100, "provisioning");
    let pass = pass_at(&mut compiler, 101);
    assert!(pass.nodes().is_empty(), "{:?}", pass.nodes());
    assert_eq!((pass.step.status.ongoing, pass.step.status.queued), (1, 2));
    assert_eq!(pass.step.again_at, Some(400), "then it is late");

    store_at(&mut compiler, "a", 100, "provisioned");
    let pass = pass_at(&mut compiler, 105);
    assert!(pass.nodes().is_empty(), "{:?}", pass.nodes());
    assert_eq!(pass.step.status.phase.as_deref(), Some("Soaking"));
    assert_eq!(pass.step.again_at, Some(115));
    let pass = pass_at(&mut compiler, 115);
    assert_eq!(pass.nodes(), ["b"]);
    assert_eq!((pass.step.status.ready, pass.step.status.queued), (1, 2));

    store_at(&mut compiler, "b", 115, "invalid");
    let pass = pass_at(&mut compiler, 116);
    assert!(pass.nodes().is_empty(), "{:?}", pass.nodes());
    assert!(pass.step.status.is_invalid);
    assert_eq!(pass.step.status.failed_node.as_deref(), Some("b"));
    assert_eq!(pass.step.status.failed_message.as_deref(), Some("invalid"));
    let ready = pass.step.status.conditions.get("Ready");
    let ready = ready.expect("a condition");
    assert_eq!(
        (&*ready.reason, &*ready.message),
        ("Failed", "node b: invalid")
    );
    // The same input is not tried again, whatever the node says later.
    store_at(&mut compiler, "b", 115, "provisioned");
    let pass = pass_at(&mut compiler, 200);
    assert!(pass.step.status.is_invalid && pass.nodes().is_empty());
    assert_eq!(pass.step.status.failed_message.as_deref(), Some("invalid"));
}

#[test]
fn the_counts_of_nodes_add_up_at_every_moment() {
    let mut compiler = three_nodes();
    let check = |pass: &Pass| {
        let status = &pass.step.status;
        let parts = [status.ready, status.ongoing, status.queued, status.failed];
        let sum = parts.iter().sum::<u32>() + status.unapproved;
        assert_eq!((sum, status.total), (3, 3), "{status:?}");
    };
    check(&pass_at(&mut compiler, 100));
    for (node, report) in [("a", ""), ("a", "provisioned"), ("b", ""), ("b", "invalid")] {
        store_at(&mut compiler, node, 100, report);
        check(&pass_at(&mut compiler, 111));
    }
}

#[test]
fn a_node_that_never_answers_fails_the_revision_at_the_deadline_and_not_before() {
    let mut compiler = three_nodes();
    pass_at(&mut compiler, 100);
    store_at(&mut compiler, "a", 100, "provisioning");
    assert!(!pass_at(&mut compiler, 399).step.status.is_invalid);
    let pass = pass_at(&mut compiler, 400);
    assert!(pass.step.status.is_invalid);
    let message = pass.step.status.failed_message.expect("a message");
    assert!(message.contains("progressDeadline"), "{message}");
}

#[test]
fn a_revision_that_was_complete_stays_valid_when_a_node_fails_later() {
    let mut compiler = three_nodes();
    for (node, time) in [("a", 100), ("b", 120), ("c", 140)] {
        pass_at(&mut compiler, time);
        store_at(&mut compiler, node, time, "provisioned");
    }
    let pass = pass_at(&mut compiler, 150);
    assert_eq!(pass.step.status.phase.as_deref(), Some("Complete"));
    store_at(&mut compiler, "c", 140, "invalid");
    let pass = pass_at(&mut compiler, 1000);
    assert!(!pass.step.status.is_invalid);
    assert_eq!((pass.step.status.ready, pass.step.status.failed), (2, 1));
}

/// An Underlay of all nodes with this AS number.
fn underlay(compiler: &mut Compiler, asn: u32) {
    let spec = json!({
        "asn": asn, "nics": ["eth1"], "evpn": {"vtepcidr": "100.65.0.0/24"},
        "neighbors": [{"asn": 64512, "address": "192.168.11.2"}],
    });
    let metadata = json!({"name": "fabric", "namespace": "default"});
    let parts = json!({"metadata": metadata, "spec": spec});
    put(compiler, Kind::Underlay, "fabric", &parts);
}

/// Stores what a pass publishes, with what each node reports about it.
fn publish(compiler: &mut Compiler, pass: &Pass, now: Time, report: &str) {
    for publication in &pass.step.publish {
        let Publication {
            node,
            spec,
            lane,
            published_at,
        } = publication;
        let published_at = published_at.clone().unwrap_or_else(|| stored::text(now));
        let status = json!({
            "configStatus": report, "observedRevision": spec.revision, "errorMessage": report,
        });
        let lane = lane
            .expect("no router of a host is in these worlds")
            .to_string();
        let annotations = json!({stored::PUBLISHED_AT: published_at, stored::LANE: lane});
        let metadata = json!({"name": node, "annotations": annotations});
        let parts = json!({"metadata": metadata, "spec": spec, "status": status});
        put(compiler, Kind::NodeNetworkConfig, node, &parts);
    }
}

/// Passes until nothing is left to do, on nodes that all take what they get.
fn complete(compiler: &mut Compiler, now: &mut Time) {
    for _ in 0..20 {
        *now += 20;
        let pass = pass_at(compiler, *now);
        if pass.step.status.phase.as_deref() == Some("Complete") {
            return;
        }
        publish(compiler, &pass, *now, "provisioned");
    }
    panic!("the rollout does not end");
}

/// The AS number in each node's config.
fn asns(compiler: &Compiler) -> Vec<(String, u32)> {
    let configs = compiler.snapshot().node_network_configs.iter();
    let asn = |(key, config): (&Key, &stored::NodeNetworkConfig)| {
        let underlay = config.spec.underlay.as_ref().expect("an Underlay");
        (key.name.to_string(), underlay.asn.get())
    };
    configs.map(asn).collect()
}

fn all(asn: u32) -> Vec<(String, u32)> {
    ["a", "b", "c"].map(|node| (node.to_owned(), asn)).into()
}

#[test]
fn a_failed_revision_is_rolled_back_kept_from_joining_nodes_and_tried_again_on_request() {
    let (mut compiler, mut now) = (three_nodes(), 100);
    underlay(&mut compiler, 64514);
    complete(&mut compiler, &mut now);
    assert_eq!(asns(&compiler), all(64514));

    underlay(&mut compiler, 64999);
    now += 20;
    let pass = pass_at(&mut compiler, now);
    assert_eq!(pass.nodes(), ["a"]);
    publish(&mut compiler, &pass, now, "invalid");
    let pass = pass_at(&mut compiler, now + 1);
    assert!(pass.step.status.is_invalid);
    assert_eq!(pass.nodes(), ["a"], "it goes back");
    publish(&mut compiler, &pass, now + 1, "provisioned");
    assert_eq!(asns(&compiler), all(64514));
    assert!(pass_at(&mut compiler, now + 2).nodes().is_empty());

    // A node that joins gets the last valid revision at once, unless it is held.
    put(&mut compiler, Kind::Node, "d", &json!({}));
    let hold = json!({"selvedge.dev/hold": "being repaired"});
    let held = json!({"metadata": {"name": "e", "annotations": hold}});
    put(&mut compiler, Kind::Node, "e", &held);
    let pass = pass_at(&mut compiler, now + 3);
    assert_eq!(pass.nodes(), ["d"]);
    publish(&mut compiler, &pass, now + 3, "provisioned");
    assert_eq!(asns(&compiler).last(), Some(&("d".to_owned(), 64514)));
    assert!(pass_at(&mut compiler, now + 4).nodes().is_empty());

    // On request the same revision is tried again, from its canary.
    let pass = pass_at(&mut compiler, now + 5);
    annotate(&mut compiler, &pass, stored::RETRY, "2026-01-01T00:00:00Z");
    let pass = Pass::compute(&mut compiler, |_| Agent::ALIVE, BTreeMap::new(), now + 6);
    assert_eq!(pass.nodes(), ["a"]);
    assert!(!pass.step.status.is_invalid);
}

#[test]
fn a_halted_revision_stays_where_it_is() {
    let (mut compiler, mut now) = (three_nodes(), 100);
    let halt = json!({"spec": {"rollout": {"onFailure": "halt"}}});
    put(&mut compiler, Kind::Settings, "default", &halt);
    underlay(&mut compiler, 64514);
    complete(&mut compiler, &mut now);
    underlay(&mut compiler, 64999);
    let pass = pass_at(&mut compiler, now + 20);
    publish(&mut compiler, &pass, now + 20, "invalid");
    let pass = pass_at(&mut compiler, now + 21);
    assert!(pass.step.status.is_invalid && pass.nodes().is_empty());
}

#[test]
fn going_back_to_an_earlier_input_uses_its_revision_and_old_ones_are_deleted() {
    let (mut compiler, mut now) = (three_nodes(), 100);
    let few = json!({"spec": {"rollout": {"historyLimit": 2}}});
    put(&mut compiler, Kind::Settings, "default", &few);
    for asn in [64514, 64515, 64514, 64516] {
        underlay(&mut compiler, asn);
        complete(&mut compiler, &mut now);
        assert_eq!(asns(&compiler), all(asn));
    }
    let pass = pass_at(&mut compiler, now + 1);
    let revisions = &compiler.snapshot().network_config_revisions;
    let sequence = |key: &Key| revisions[key].status.as_ref().map(|status| status.sequence);
    let mut sequences: Vec<_> = revisions.keys().filter_map(sequence).collect();
    sequences.sort_unstable();
    assert_eq!(sequences, [2, 3, 4], "three inputs, one of them twice");
    let outdated = pass.step.outdated.iter();
    let outdated: Vec<_> = outdated.filter_map(|one| sequence(&one.key)).collect();
    assert_eq!(outdated, [2]);
}

#[test]
fn a_config_that_would_empty_its_node_is_not_written_and_holds_up_no_other_node() {
    let mut compiler = Compiler::default();
    let underlay = |selects: &str| {
        json!({"spec": {
            "nodeSelector": {"matchLabels": {"rack": selects}},
            "asn": 64514, "nics": ["eth1"], "evpn": {"vtepcidr": "100.65.0.0/24"},
            "neighbors": [{"asn": 64512, "address": "192.168.11.2"}],
        }})
    };
    let put_underlay = |compiler: &mut Compiler, selects: &str| {
        let mut document = json!({
            "apiVersion": Kind::Underlay.api_version(), "kind": "Underlay",
            "metadata": {"name": "fabric", "namespace": "default"},
        });
        document["spec"] = underlay(selects)["spec"].clone();
        compiler.insert(&document);
    };
    let labels = json!({"metadata": {"name": "a", "labels": {"rack": "1"}}});
    put(&mut compiler, Kind::Node, "a", &labels);
    put_underlay(&mut compiler, "1");
    store(&mut compiler, "a", "provisioned");
    assert!(pass_at(&mut compiler, 100).nodes().is_empty());

    // The selector is edited, and a new node comes.
    put_underlay(&mut compiler, "2");
    let labels = json!({"metadata": {"name": "b", "labels": {"rack": "2"}}});
    put(&mut compiler, Kind::Node, "b", &labels);
    let pass = pass_at(&mut compiler, 100);
    assert_eq!(
        pass.nodes(),
        ["b"],
        "a keeps its config, and b does not wait for it"
    );
    assert!(!pass.writes.nodes.contains_key("a"));
    assert_eq!(
        (pass.step.status.unapproved, pass.step.status.queued),
        (1, 1)
    );
    assert_eq!(
        pass.step.status.unapproved_message.as_deref(),
        Some("the new config of node a would remove its Underlay")
    );

    approve(&mut compiler, &pass);
    let pass = Pass::compute(&mut compiler, |_| Agent::ALIVE, BTreeMap::new(), 100);
    assert_eq!(
        (pass.nodes(), pass.step.status.unapproved),
        (vec!["a", "b"], 0)
    );
    assert_eq!(pass.step.status.unapproved_message, None);
}

/// Approves the newest revision.
fn approve(compiler: &mut Compiler, pass: &Pass) {
    annotate(compiler, pass, stored::APPROVED, "2026-01-01T00:00:00Z");
}

/// Sets an annotation of the newest revision.
fn annotate(compiler: &mut Compiler, pass: &Pass, annotation: &str, value: &str) {
    let (_, compilation) = compiler.compile();
    let revision = &compilation.revision;
    let name = revision::object_name(&revision.fingerprint);
    let annotations = json!({annotation: value});
    let parts = json!({
        "metadata": {"name": name, "annotations": annotations},
        "spec": revision.spec(&compilation.objects), "status": pass.step.status,
    });
    put(compiler, Kind::NetworkConfigRevision, &name, &parts);
}

#[test]
fn a_revision_that_no_node_may_have_without_an_approval_is_not_complete() {
    let (mut compiler, mut now) = (three_nodes(), 100);
    underlay(&mut compiler, 64514);
    complete(&mut compiler, &mut now);
    let mut fabric = ObjectRef::named(Kind::Underlay, "fabric");
    fabric.key.namespace = Some("default".into());
    compiler.remove(&fabric);
    let pass = pass_at(&mut compiler, now + 1);
    assert!(pass.nodes().is_empty(), "{:?}", pass.nodes());
    assert_eq!(pass.step.status.phase.as_deref(), Some("Unapproved"));
    assert_eq!(pass.step.status.completed_at, None);
    assert_eq!(pass.step.status.unapproved, 3);
    // It stays so, and a node that joins gets what the others have.
    put(&mut compiler, Kind::Node, "d", &json!({}));
    let pass = pass_at(&mut compiler, now + 1000);
    assert_eq!(pass.nodes(), ["d"]);
    assert!(pass.step.publish[0].spec.underlay.is_some());

    approve(&mut compiler, &pass);
    now += 1001;
    let pass = Pass::compute(&mut compiler, |_| Agent::ALIVE, BTreeMap::new(), now);
    assert_eq!(pass.nodes().first(), Some(&"a"));
}

/// A segment of all nodes.
fn segment(compiler: &mut Compiler, vlan: u32) {
    let spec = json!({"id": vlan, "vni": 10_000 + vlan, "mtu": 1500});
    let name = format!("vlan{vlan}");
    let parts = json!({"spec": spec});
    put(compiler, Kind::Layer2NetworkConfiguration, &name, &parts);
}

#[test]
fn a_revision_that_removes_more_than_max_removal_reaches_no_node_before_it_is_approved() {
    let (mut compiler, mut now) = (three_nodes(), 100);
    underlay(&mut compiler, 64514);
    for vlan in 1..=10 {
        segment(&mut compiler, vlan);
    }
    complete(&mut compiler, &mut now);
    let remove = |compiler: &mut Compiler, vlan: u32| {
        let name = format!("vlan{vlan}");
        compiler.remove(&ObjectRef::named(Kind::Layer2NetworkConfiguration, name));
    };
    for vlan in 1..=3 {
        remove(&mut compiler, vlan);
    }
    assert_eq!(pass_at(&mut compiler, now + 1).nodes(), ["a"], "30 % of 10");
    remove(&mut compiler, 4);
    let pass = pass_at(&mut compiler, now + 2);
    assert!(pass.nodes().is_empty(), "{:?}", pass.nodes());
    assert_eq!(pass.step.status.phase.as_deref(), Some("Unapproved"));
    assert_eq!(
        pass.step.status.unapproved_message.as_deref(),
        Some("it removes 4 of 10 layer 2 segments; rollout.maxRemoval allows 3")
    );
    // What is approved is this revision, and no other.
    approve(&mut compiler, &pass);
    let pass = Pass::compute(&mut compiler, |_| Agent::ALIVE, BTreeMap::new(), now + 3);
    assert_eq!(pass.nodes(), ["a"]);
    remove(&mut compiler, 5);
    assert!(pass_at(&mut compiler, now + 4).nodes().is_empty());

    let generous = json!({"spec": {"rollout": {"maxRemoval": 5}}});
    put(&mut compiler, Kind::Settings, "default", &generous);
    assert_eq!(pass_at(&mut compiler, now + 5).nodes(), ["a"]);
}

#[test]
fn the_last_of_a_few_is_removed_without_an_approval_unless_none_is_allowed() {
    for (allowed, expected) in [
        (json!("30%"), &["a"][..]),
        (json!("0%"), &[]),
        (json!(0), &[]),
    ] {
        let (mut compiler, mut now) = (three_nodes(), 100);
        let settings = json!({"spec": {"rollout": {"maxRemoval": allowed}}});
        put(&mut compiler, Kind::Settings, "default", &settings);
        underlay(&mut compiler, 64514);
        segment(&mut compiler, 1);
        complete(&mut compiler, &mut now);
        compiler.remove(&ObjectRef::named(Kind::Layer2NetworkConfiguration, "vlan1"));
        assert_eq!(
            pass_at(&mut compiler, now + 1).nodes(),
            expected,
            "{allowed}"
        );
    }
}

#[test]
fn nothing_new_is_published_while_settings_are_deleted_or_cannot_be_read() {
    let default = ObjectRef::named(Kind::Settings, "default");
    let unreadable = json!({"spec": {"rollout": {"pause": "maybe"}}});
    for (settings, pauses) in [
        (json!({"rollout": {"pause": true}}), true),
        (json!({"clusterVRF": {"name": "cluster2"}}), true),
        // What is deleted said nothing but how fast.
        (json!({"rollout": {"maxUnavailable": 2}}), false),
    ] {
        let (mut compiler, mut now) = (three_nodes(), 100);
        underlay(&mut compiler, 64514);
        let mut others = settings.clone();
        others.as_object_mut().expect("fields").remove("rollout");
        let others = json!({"spec": others});
        put(&mut compiler, Kind::Settings, "default", &others);
        complete(&mut compiler, &mut now);
        put(
            &mut compiler,
            Kind::Settings,
            "default",
            &json!({"spec": settings}),
        );
        pass_at(&mut compiler, now + 1);
        underlay(&mut compiler, 64515);
        let mut after = Compiler::new(compiler.snapshot().clone());
        put(&mut after, Kind::Settings, "default", &unreadable);
        assert!(
            pass_at(&mut after, now + 2).nodes().is_empty(),
            "{settings}"
        );
        let mut after = compiler;
        if settings.pointer("/rollout/pause").is_some() {
            pass_at(&mut after, now + 2);
        }
        after.remove(&default);
        let is_paused = pass_at(&mut after, now + 3).nodes().is_empty();
        assert_eq!(is_paused, pauses, "{settings}");
    }
}

#[test]
fn a_status_that_was_stored_is_not_written_again() {
    let mut compiler = Compiler::default();
    let spec = json!({"vrf": "m2m", "vni": 7, "routeTarget": "64500:7"});
    put(&mut compiler, Kind::Vrf, "m2m", &json!({"spec": spec}));
    let pass = pass_at(&mut compiler, 100);
    let subject = ObjectRef::named(Kind::Vrf, "m2m");
    let status = pass.writes.statuses.get(&subject).expect("a status");
    let status = crate::status::timed(status.to_value(), &Value::Null, "2026-01-01T00:00:00Z");
    let stored = json!({"spec": spec, "status": status});
    put(&mut compiler, Kind::Vrf, "m2m", &stored);
    assert!(pass_at(&mut compiler, 100).writes.statuses.is_empty());
    // The event of the watch about the write changes nothing.
    put(&mut compiler, Kind::Vrf, "m2m", &stored);
    assert!(!compiler.has_changed());
}
