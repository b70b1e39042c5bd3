//! Ring 1: what one more VNI costs a node does not depend on how many it has.

use compiler::{Snapshot, compile};
use frr::FrrVersion;
use linux::{LinkId, Observed, ObservedLink, Step, model::apply_to_model, owned::Owner};
use serde_json::{Value, json};
use worlds::benchmark::overlay;

/// What a node gets of these objects where it runs this config: its FRR configuration, its kernel objects and the config that says so.
fn wanted(world: &[Value], running: Option<&Value>) -> (frr::FrrConfig, linux::Desired, Value) {
    let mut snapshot = Snapshot::default();
    for document in world.iter().chain(running) {
        snapshot.insert(document);
    }
    let compilation = compile(&snapshot);
    assert!(
        compilation.problems.is_empty(),
        "{:?}",
        compilation.problems
    );
    let spec = compilation.nodes["node-0"].content();
    let frr = frr::desired(&spec, &frr::hidden(&spec), FrrVersion::NEWEST);
    let kernel = linux::desired(&spec);
    let config = json!({
        "apiVersion": worlds::TCAAS, "kind": "NodeNetworkConfig", "metadata": {"name": "node-0"}, "spec": spec,
    });
    (
        frr.expect("nothing is refused"),
        kernel.expect("nothing is refused"),
        config,
    )
}

/// A host with its NIC.
fn host() -> Observed {
    let mut host = Observed::default();
    let mut nic = ObservedLink::fresh(Owner::Foreign, linux::Kind::Other("ether".into()));
    nic.up = true;
    host.links.insert(LinkId::host("eth1"), nic);
    host
}

/// The lines of FRR and the kernel's steps that an L3VNI and an L2VNI more cost a node that has as many of both.
fn one_more(count: u32) -> (usize, Vec<String>) {
    let (frr_before, kernel_before, running) = wanted(&overlay::node(count), None);
    let mut now = host();
    let plan = linux::diff(&kernel_before, &now).expect("no conflict");
    for step in plan.steps() {
        apply_to_model(&mut now, step).expect("it is possible");
    }
    let (frr, kernel, _) = wanted(&overlay::node(count + 1), Some(&running));
    let change = frr::diff(&frr_before, &frr);
    let plan = linux::diff(&kernel, &now).expect("no conflict");
    (
        change.n_lines(),
        plan.steps().map(Step::to_string).collect(),
    )
}

#[test]
fn one_more_vni_is_the_same_work_at_fifty_and_at_five_hundred() {
    let (few_lines, few_steps) = one_more(50);
    let (many_lines, many_steps) = one_more(500);
    eprintln!("{many_lines} lines of FRR, {} steps", many_steps.len());
    assert_eq!(many_lines, few_lines);
    assert_eq!(
        many_steps.len(),
        few_steps.len(),
        "{few_steps:?} {many_steps:?}"
    );
    assert!(many_lines < 60 && many_steps.len() < 60);
}
