//! What is said of a pool that has no address left: once for each pool and user, with the nodes that lack an address.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::problem::{self, Problem};

/// Problems of nodes that lack an address, each with its node.
pub(crate) type Lacking = Vec<(Problem, Arc<str>)>;

/// Nodes that a message names.
const NAMED_NODES: usize = 5;

/// The problems of one pool as one, which names its first nodes and counts the others.
pub(crate) fn of_pools<'a>(lacking: impl Iterator<Item = &'a (Problem, Arc<str>)>) -> Vec<Problem> {
    let mut by_pool: BTreeMap<Problem, BTreeSet<&str>> = BTreeMap::new();
    for (problem, node) in lacking {
        let nodes = by_pool.entry(with(problem, String::new())).or_default();
        nodes.insert(node);
    }
    let problems = by_pool.iter();
    problems
        .map(|(problem, nodes)| with(problem, named(nodes)))
        .collect()
}

/// The problem of a pool that lacks an address for others.
fn with(problem: &Problem, others: String) -> Problem {
    let mut problem = problem.clone();
    if let problem::Kind::PoolExhausted { wanted, .. } = &mut problem.kind {
        *wanted = others;
    }
    problem
}

fn named(nodes: &BTreeSet<&str>) -> String {
    let word = if nodes.len() == 1 { "node" } else { "nodes" };
    let shown = nodes.iter().take(NAMED_NODES);
    let shown: Vec<String> = shown.map(|node| format!("{node:?}")).collect();
    let more = match nodes.len().saturating_sub(NAMED_NODES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{word} {}{more}", shown.join(", "))
}
