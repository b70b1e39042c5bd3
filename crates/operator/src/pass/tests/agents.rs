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
