//! Ring 2: what compiles without an error is accepted by FRR's grammar and by the kernel's model. The node decides nothing, so what it refuses
//! stops its whole config, and with it the changes of everybody else.

use api::tcaas::NodeNetworkConfigSpec;
use compiler::{Severity, Snapshot, compile};
use frr::FrrVersion;
use proptest::prelude::*;
use serde_json::Value;

/// What a node cannot apply of a config.
fn refused(spec: &NodeNetworkConfigSpec, version: FrrVersion) -> Vec<String> {
    let frr = frr::desired(spec, &frr::hidden(spec), version).err();
    let frr = frr.into_iter().flatten().map(|one| format!("frr: {one}"));
    let kernel = linux::desired(spec).err();
    let kernel = kernel.into_iter().flatten();
    frr.chain(kernel.map(|one| format!("linux: {one}")))
        .collect()
}

/// Compiles a world and asks both halves of each node's agent.
fn accepted(world: &[Value]) -> Result<(), TestCaseError> {
    let mut snapshot = Snapshot::default();
    for document in world {
        snapshot.insert(document);
    }
    let compilation = compile(&snapshot);
    for (name, config) in &compilation.nodes {
        let version = world.iter().find_map(|one| {
            let is_its = one["kind"] == "NodeNetworkConfig" && one["metadata"]["name"] == **name;
            let reported = one["status"]["frrVersion"].as_str()?;
            is_its.then(|| reported.parse().ok())?
        });
        let refused = refused(&config.content(), version.unwrap_or(FrrVersion::NEWEST));
        let errors = compilation.problems.iter();
        let errors = errors.filter(|one| one.severity() == Severity::Error);
        let errors: Vec<String> = errors.map(ToString::to_string).collect();
        prop_assert!(refused.is_empty(), "{name}: {refused:#?}\n{errors:#?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(worlds::laws(48))]

    #[test]
    fn nodes_can_apply_what_compiles(world in worlds::everything()) {
        accepted(&world)?;
    }

    #[test]
    fn nodes_can_apply_what_compiles_of_varied_worlds(world in worlds::varied()) {
        accepted(&world)?;
    }
}

proptest! {
    #![proptest_config(worlds::laws(192))]

    #[test]
    fn nodes_can_apply_what_compiles_of_names_and_values_at_the_edge(world in worlds::odd_overlays()) {
        accepted(&world)?;
    }
}
