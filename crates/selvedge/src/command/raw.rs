//! What FRR refuses of raw configuration. The function that decides is that of the agent.

use std::{collections::BTreeSet, sync::Arc};

use api::tcaas::node_network_config::{HostRouter, RefusedLine};
use compiler::{
    Compilation, host_router,
    names::OWN_NAMESPACE,
    problem::{self, Problem},
    snapshot::{Key, Kind, ObjectRef},
};
use frr::{FrrVersion, Password, Secrets};

use crate::input::World;

/// The problems of a compilation, and those of raw configuration that only FRR's grammar knows of.
pub(super) fn with_refused_lines(world: &World, compilation: &Compilation) -> Vec<Problem> {
    let mut seen = BTreeSet::new();
    let mut refused = BTreeSet::new();
    let mut judge = |router: &HostRouter, version: FrrVersion| {
        let sources: Vec<String> = router.raw.iter().map(|it| it.source.clone()).collect();
        // Most nodes have the same.
        if !router.raw.is_empty() && seen.insert((sources, router.configurations.clone(), version))
        {
            let made = frr::host::desired(router, &secrets(router), version);
            let lines = made.refused_raw.iter();
            refused.extend(lines.filter_map(|line| problem_of(world, line)));
        }
    };
    let mut has_router = false;
    for (node, config) in &compilation.nodes {
        if let Some(of_host) = &config.host_router {
            has_router = true;
            judge(&of_host.router, version_of(world, node));
        }
    }
    if !has_router && compilation.nodes.is_empty() {
        let objects = world.snapshot.frr_configurations.iter();
        let objects = objects.map(|(key, object)| {
            let (kind, key) = (Kind::FrrConfiguration, key.clone());
            (ObjectRef { kind, key }, Arc::clone(&object.spec))
        });
        let objects: Vec<_> = objects.collect();
        let (router, problems) = host_router::merge_all(&objects, &world.snapshot.settings());
        // Without nodes it is not known which of them meet.
        let are_together = problems
            .iter()
            .all(|one| one.severity() != problem::Severity::Error);
        if are_together {
            judge(&router, FrrVersion::NEWEST);
        }
    }
    let mut all = compilation.problems.to_vec();
    all.extend(refused);
    all.sort();
    all
}

fn version_of(world: &World, node: &str) -> FrrVersion {
    let reported = world.snapshot.frr_version(node);
    let version = reported.and_then(|text| text.parse().ok());
    version.unwrap_or(FrrVersion::NEWEST)
}

/// A session waits for its password on a node; here it counts as known.
fn secrets(router: &HostRouter) -> Secrets {
    let neighbors = router.routers.values().flat_map(|bgp| &bgp.neighbors);
    let known = neighbors.filter_map(|one| {
        let secret = one.password_secret.clone()?;
        Some((secret, Password::new("(hidden)").ok()?))
    });
    known.collect()
}

fn problem_of(world: &World, line: &RefusedLine) -> Option<Problem> {
    // An object in a file may have no namespace.
    let is_source = |key: &&Key| {
        let namespace = key.namespace.as_deref().unwrap_or(OWN_NAMESPACE);
        line.source == format!("{namespace}/{}", key.name)
    };
    let key = world.snapshot.frr_configurations.keys().find(is_source)?;
    let (kind, key) = (Kind::FrrConfiguration, key.clone());
    let what = format!("line {} is not applied: {}", line.line, line.message);
    let what = problem::Kind::NoEffect { what };
    Some(Problem::new(
        ObjectRef { kind, key },
        "spec.raw.rawConfig",
        what,
    ))
}
