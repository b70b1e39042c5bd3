//! Nodes outside the fabric that objects for all nodes would be on.

use std::collections::BTreeMap;

use super::NodeConfig;
use crate::{
    problem::{self, Problem},
    revision::Content,
    snapshot::{Kind, ObjectRef},
};

/// Notes each node that has no Underlay with a VTEP, where something over the fabric is for all nodes and others have one. Where no
/// node has one, that is said on the object.
pub(super) fn note(
    content: &Content,
    configs: &BTreeMap<String, NodeConfig>,
    problems: &mut Vec<Problem>,
) {
    let is_inside = |config: &NodeConfig| {
        let underlay = config.underlay.as_ref();
        underlay.is_some_and(|underlay| underlay.vtep.is_some())
    };
    let mut segments = content.layer2.values().map(|object| &object.spec);
    let mut routing = content.vrf.values().map(|object| &object.spec);
    let is_for_all = segments
        .any(|spec| spec.interface_ref.is_none() && spec.node_selector.is_none())
        || routing.any(|spec| spec.node_selector.is_none());
    if !is_for_all || !configs.values().any(is_inside) {
        return;
    }
    for (node, _) in configs.iter().filter(|(_, config)| !is_inside(config)) {
        let what =
            "no Underlay gives this node a VTEP: what is over the fabric for all nodes is not here";
        let what = what.to_owned();
        let kind = problem::Kind::NoEffect { what };
        problems.push(Problem::new(ObjectRef::named(Kind::Node, node), "", kind));
    }
}
