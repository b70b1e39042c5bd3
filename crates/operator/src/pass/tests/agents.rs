//! Agents that were away: they get the whole time to answer from when they could.

use super::*;

/// Passes in which the agent of `a` is as it is told, and all others were always alive.
fn pass_with(compiler: &mut Compiler, a: Agent, now: Time) -> Pass {
    let agent = |node: &str| if node == "a" { a } else { Agent::ALIVE };
    let pass = Pass::compute(compiler, agent, BTreeMap::new(), now);
    let (_, compilation) = compiler.compile();
    let revision = &compilation.revision;
    let name = revision::object_name(&revision.fingerprint);
    let spec = revision.spec(&compilation.objects);
    let parts = json!({"spec": spec, "status": pass.step.status});
    put(compiler, Kind::NetworkConfigRevision, &name, &parts);
    pass
}

fn back_since(time: Option<Time>) -> Agent {
    Agent {
        is_alive: true,
        answers_since: time,
    }
}

const SILENT: Agent = Agent {
    is_alive: false,
    answers_since: None,
};

/// The canary has got its config at 100, and has not answered.
fn told() -> Compiler {
    let mut compiler = three_nodes();
    pass_at(&mut compiler, 100);
    store_at(&mut compiler, "a", 100, "provisioning");
    compiler
}

#[test]
fn a_node_that_was_away_past_its_deadline_has_the_whole_time_from_its_return() {
    let mut compiler = told();
    let pass = pass_with(&mut compiler, SILENT, 401);
    assert_eq!(pass.nodes(), ["b"], "another one is tried");
    store_at(&mut compiler, "b", 401, "provisioning");
    let pass = pass_with(&mut compiler, back_since(Some(500)), 500);
    assert!(!pass.step.status.is_invalid, "it has just come back");
    assert!(pass.nodes().is_empty(), "it may be changing");
    assert_eq!(pass.step.again_at, Some(701), "b has its own deadline");
    store_at(&mut compiler, "b", 401, "provisioned");
    let pass = pass_with(&mut compiler, back_since(Some(500)), 799);
    assert!(!pass.step.status.is_invalid);
    assert_eq!(pass.step.again_at, Some(800));
    let pass = pass_with(&mut compiler, back_since(Some(500)), 800);
    assert!(pass.step.status.is_invalid, "it could have answered");
    assert_eq!(pass.step.status.failed_node.as_deref(), Some("a"));
}

#[test]
fn a_node_whose_lease_was_only_listed_fails_nothing() {
    // The operator has started anew, and the node may be gone for long.
    let mut compiler = told();
    let pass = pass_with(&mut compiler, back_since(None), 1000);
    assert!(!pass.step.status.is_invalid);
    assert_eq!(pass.step.again_at, Some(1300), "it is looked at again");
    let pass = pass_with(&mut compiler, SILENT, 1060);
    assert_eq!(pass.nodes(), ["b"], "it was gone");
}

/// A change that its canary has got, with what that reports about it, and when.
fn changed(report: &str) -> (Compiler, Time) {
    let (mut compiler, mut now) = (three_nodes(), 100);
    underlay(&mut compiler, 64514);
    complete(&mut compiler, &mut now);
    underlay(&mut compiler, 64999);
    now += 20;
    let pass = pass_at(&mut compiler, now);
    assert_eq!(pass.nodes(), ["a"]);
    publish(&mut compiler, &pass, now, report);
    (compiler, now)
}

#[test]
fn a_canary_that_a_revision_silences_fails_it_and_no_other_node_is_tried() {
    let (mut compiler, now) = changed("provisioning");
    for at in [now + 100, now + 299] {
        let pass = pass_with(&mut compiler, SILENT, at);
        assert!(pass.nodes().is_empty(), "{:?}", pass.nodes());
        assert!(!pass.step.status.is_invalid, "it may come back");
        assert_eq!(pass.step.again_at, Some(now + 300));
    }
    let pass = pass_with(&mut compiler, SILENT, now + 300);
    let status = &pass.step.status;
    assert!(status.is_invalid);
    assert_eq!(status.failed_node.as_deref(), Some("a"));
    let message = status.failed_message.as_deref().unwrap_or_default();
    assert!(message.contains("has fallen silent"), "{message}");
    assert_eq!(pass.nodes(), ["a"], "it goes back");
    assert_eq!(
        pass.step.publish[0]
            .spec
            .underlay
            .as_ref()
            .map(|one| one.asn.get()),
        Some(64514)
    );
}

#[test]
fn a_canary_that_confirms_and_falls_silent_stops_the_next_wave() {
    let (mut compiler, now) = changed("provisioned");
    let pass = pass_with(&mut compiler, Agent::ALIVE, now + 1);
    assert_eq!(pass.step.status.phase.as_deref(), Some("Soaking"));
    let pass = pass_with(&mut compiler, SILENT, now + 60);
    assert!(pass.nodes().is_empty(), "{:?}", pass.nodes());
    let mut back = Compiler::new(compiler.snapshot().clone());
    let pass = pass_with(&mut back, back_since(Some(now + 70)), now + 70);
    assert!(pass.nodes() == ["b"] || pass.step.status.phase.as_deref() == Some("Soaking"));
    let pass = pass_with(&mut back, back_since(Some(now + 70)), now + 90);
    assert_eq!(pass.nodes(), ["b"], "it is back");
    let pass = pass_with(&mut compiler, SILENT, now + 300);
    assert!(pass.step.status.is_invalid);
}

#[test]
fn no_node_takes_the_place_of_a_canary_that_is_held_after_it_got_the_revision() {
    let (mut compiler, now) = changed("provisioning");
    let hold = json!({"metadata": {"name": "a", "annotations": {"selvedge.dev/hold": "odd"}}});
    put(&mut compiler, Kind::Node, "a", &hold);
    let pass = pass_at(&mut compiler, now + 1000);
    assert!(pass.nodes().is_empty(), "{:?}", pass.nodes());
    assert!(!pass.step.status.is_invalid, "it may be looked at");
    put(&mut compiler, Kind::Node, "a", &json!({}));
    let since = back_since(Some(now + 1001));
    let pass = pass_with(&mut compiler, since, now + 1001);
    assert!(pass.nodes().is_empty() && !pass.step.status.is_invalid);
    let pass = pass_with(&mut compiler, since, now + 1301);
    assert!(pass.step.status.is_invalid, "it could have answered");
}

#[test]
fn one_that_was_held_or_silent_before_is_no_canary() {
    let (mut compiler, mut now) = (three_nodes(), 100);
    underlay(&mut compiler, 64514);
    complete(&mut compiler, &mut now);
    let hold = json!({"metadata": {"name": "b", "annotations": {"selvedge.dev/hold": "odd"}}});
    put(&mut compiler, Kind::Node, "b", &hold);
    underlay(&mut compiler, 64999);
    let pass = pass_with(&mut compiler, SILENT, now + 20);
    assert_eq!(pass.nodes(), ["c"]);
    assert_eq!(pass.step.publish[0].lane, Some(Lane::Canary));
}

#[test]
fn nodes_of_the_control_plane_go_back_last_and_one_at_a_time() {
    let (mut compiler, mut now) = (three_nodes(), 100);
    let control_plane = json!({"node-role.kubernetes.io/control-plane": ""});
    for node in ["0", "1"] {
        let labels = json!({"metadata": {"name": node, "labels": control_plane}});
        put(&mut compiler, Kind::Node, node, &labels);
    }
    let settings = json!({"spec": {"rollout": {"maxUnavailable": 5}}});
    put(&mut compiler, Kind::Settings, "default", &settings);
    underlay(&mut compiler, 64514);
    complete(&mut compiler, &mut now);
    underlay(&mut compiler, 64999);
    for last in [&["a"][..], &["b", "c"], &["0"], &["1"]] {
        now += 20;
        let mut pass = pass_at(&mut compiler, now);
        if pass.nodes().is_empty() {
            now += 20;
            pass = pass_at(&mut compiler, now);
        }
        assert_eq!(pass.nodes(), last);
        let report = if last == ["1"] {
            "invalid"
        } else {
            "provisioned"
        };
        publish(&mut compiler, &pass, now, report);
    }
    for back in [&["a", "b", "c"][..], &["1"], &["0"]] {
        now += 1;
        let pass = pass_at(&mut compiler, now);
        assert!(pass.step.status.is_invalid);
        assert_eq!(pass.nodes(), back);
        publish(&mut compiler, &pass, now, "provisioning");
        now += 1;
        let pass = pass_at(&mut compiler, now);
        assert!(
            pass.nodes().is_empty(),
            "{:?} before {back:?} is back",
            pass.nodes()
        );
        for node in back {
            let config = &compiler.snapshot().node_network_configs[&Key::named(node)];
            let (spec, annotations) = (json!(config.spec), config.meta.annotations.clone());
            let status =
                json!({"configStatus": "provisioned", "observedRevision": spec["revision"]});
            let metadata = json!({"name": node, "annotations": annotations});
            let parts = json!({"metadata": metadata, "spec": spec, "status": status});
            put(&mut compiler, Kind::NodeNetworkConfig, node, &parts);
        }
    }
    assert!(pass_at(&mut compiler, now + 1).nodes().is_empty());
}
