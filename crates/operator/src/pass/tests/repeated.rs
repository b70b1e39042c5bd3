//! Content that becomes the newest again, and revisions that are tried again.

use super::*;

/// Three nodes with ten segments, of which four can be removed and put back.
fn ten_segments() -> (Compiler, Time) {
    let (mut compiler, mut now) = (three_nodes(), 100);
    underlay(&mut compiler, 64514);
    (1..=10).for_each(|vlan| segment(&mut compiler, vlan));
    complete(&mut compiler, &mut now);
    (compiler, now)
}

fn remove_four(compiler: &mut Compiler) {
    for vlan in 1..=4 {
        let name = format!("vlan{vlan}");
        compiler.remove(&ObjectRef::named(Kind::Layer2NetworkConfiguration, name));
    }
}

#[test]
fn content_that_was_approved_once_needs_an_approval_again_when_it_returns() {
    let (mut compiler, mut now) = ten_segments();
    remove_four(&mut compiler);
    let pass = pass_at(&mut compiler, now);
    assert_eq!(pass.step.status.phase.as_deref(), Some("Unapproved"));
    let first = pass.step.status.sequence;
    approve(&mut compiler, &pass);
    complete(&mut compiler, &mut now);
    (1..=4).for_each(|vlan| segment(&mut compiler, vlan));
    complete(&mut compiler, &mut now);

    remove_four(&mut compiler);
    let pass = pass_at(&mut compiler, now + 1);
    assert!(pass.nodes().is_empty(), "{:?}", pass.nodes());
    assert_eq!(pass.step.status.phase.as_deref(), Some("Unapproved"));
    assert_eq!(pass.step.status.sequence, first + 2, "a rollout of its own");
    let pass = pass_at(&mut compiler, now + 2);
    assert!(pass.nodes().is_empty(), "{:?}", pass.nodes());
    annotate(&mut compiler, &pass, stored::APPROVED, "once more");
    let pass = pass_at(&mut compiler, now + 3);
    assert_eq!(pass.nodes(), ["a"], "from its canary");
    complete(&mut compiler, &mut now);
}

#[test]
fn content_that_worked_once_is_tried_from_its_canary_when_it_returns() {
    let (mut compiler, mut now) = (three_nodes(), 100);
    for asn in [64514, 64515] {
        underlay(&mut compiler, asn);
        complete(&mut compiler, &mut now);
    }
    underlay(&mut compiler, 64514);
    let pass = pass_at(&mut compiler, now + 1);
    assert_eq!(pass.nodes(), ["a"]);
    publish(&mut compiler, &pass, now + 1, "invalid");
    let pass = pass_at(&mut compiler, now + 2);
    assert!(pass.step.status.is_invalid, "this time it did not");
    assert_eq!(pass.nodes(), ["a"]);
    publish(&mut compiler, &pass, now + 2, "provisioned");
    assert_eq!(asns(&compiler), all(64515));
    assert!(pass_at(&mut compiler, now + 3).nodes().is_empty());
}

#[test]
fn a_retry_is_any_new_value_of_its_annotation_whatever_clock_it_comes_from() {
    let (mut compiler, mut now) = (three_nodes(), 1_800_000_000);
    underlay(&mut compiler, 64514);
    complete(&mut compiler, &mut now);
    underlay(&mut compiler, 64999);
    for value in ["1999-01-01T00:00:00Z", "2999-01-01T00:00:00Z", "please"] {
        now += 20;
        let pass = pass_at(&mut compiler, now);
        assert_eq!(pass.nodes(), ["a"]);
        publish(&mut compiler, &pass, now, "invalid");
        let pass = pass_at(&mut compiler, now + 1);
        assert!(pass.step.status.is_invalid);
        publish(&mut compiler, &pass, now + 1, "provisioned");
        let pass = pass_at(&mut compiler, now + 2);
        assert!(pass.nodes().is_empty(), "{:?}", pass.nodes());
        annotate(&mut compiler, &pass, stored::RETRY, value);
    }
    assert_eq!(pass_at(&mut compiler, now + 20).nodes(), ["a"]);
}

#[test]
fn a_node_that_failed_after_its_revision_was_complete_gets_it_again_on_request() {
    let (mut compiler, mut now) = (three_nodes(), 100);
    underlay(&mut compiler, 64514);
    complete(&mut compiler, &mut now);
    store_at(&mut compiler, "c", 120, "invalid");
    let pass = pass_at(&mut compiler, now + 1);
    assert_eq!(pass.step.status.failed, 1);
    assert!(pass.nodes().is_empty());
    annotate(&mut compiler, &pass, stored::RETRY, "1");
    let pass = pass_at(&mut compiler, now + 2);
    assert_eq!(pass.nodes(), ["c"]);
    publish(&mut compiler, &pass, now + 2, "provisioned");
    let pass = pass_at(&mut compiler, now + 3);
    assert_eq!(pass.step.status.phase.as_deref(), Some("Complete"));
    assert_eq!(pass.step.status.failed, 0);
}
