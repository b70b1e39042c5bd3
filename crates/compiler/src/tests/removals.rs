//! Ring 2: what a revision takes from nodes is noticed, whatever takes it.

use std::collections::BTreeSet;

use api::selvedge::CountOrPercent;
use worlds::varied;

use super::*;
use crate::rollout::guard::too_much_between;

/// The VRFs and segments of a node.
fn carried(config: &NodeConfig) -> BTreeSet<String> {
    let spec = config.content();
    let vrfs = spec.fabric_vrfs.keys().chain(spec.local_vrfs.keys());
    let segments = spec.layer2s.values().map(|one| one.vni.to_string());
    vrfs.cloned().chain(segments).collect()
}

/// Whether a node that stays loses a VRF or a segment.
fn takes(before: &Compilation, after: &Compilation) -> bool {
    before.nodes.iter().any(|(node, before)| {
        let after = after.nodes.get(node);
        after.is_some_and(|after| !carried(before).is_subset(&carried(after)))
    })
}

proptest! {
    #![proptest_config(laws(96))]

    /// Where nothing may be removed, nothing is; where everything may be, nothing waits for an approval. The same again removes nothing.
    #[test]
    fn what_nodes_lose_is_noticed_whatever_takes_it(world in varied(), gone in any::<prop::sample::Index>()) {
        let before = compile(&snapshot(&world));
        let same = compile(&snapshot(&world));
        let [none, all] = [0, 100].map(CountOrPercent::Percent);
        prop_assert!(too_much_between(none, &before, &same).is_none());
        if world.is_empty() {
            return Ok(());
        }
        let mut less = world.clone();
        let gone = less.remove(gone.index(world.len()));
        let after = compile(&snapshot(&less));
        let held = too_much_between(none, &before, &after);
        prop_assert!(!takes(&before, &after) || held.is_some(), "without {gone}");
        prop_assert!(too_much_between(all, &before, &after).is_none(), "without {gone}");
    }
}
