//! Ring 2, laws of plans.

use api::tcaas::node_network_config::CONTRACT_VERSION;
use compiler::compile;
use proptest::prelude::*;
use worlds::{laws, world};

use std::sync::Arc;

use super::*;
use crate::tests::snapshot;

proptest! {
    #![proptest_config(laws(128))]

    #[test]
    fn a_plan_speaks_of_all_nodes_that_change_and_of_no_other(one in world(), other in world()) {
        let (one, other) = (snapshot(&one), snapshot(&other));
        let (before, after) = (compile(&one), compile(&other));
        let (before, after) = (Trace::new(&one, &before), Trace::new(&other, &after));
        let forth = plan(&before, &after);
        let planned: BTreeSet<&String> = forth.groups.iter().flat_map(|group| &group.nodes).collect();
        let (old, new) = (&before.compilation.nodes, &after.compilation.nodes);
        let nothing = || NodeNetworkConfigSpec { contract_version: CONTRACT_VERSION, ..NodeNetworkConfigSpec::default() };
        let spec = |config: Option<&Arc<NodeConfig>>| config.map_or_else(nothing, |config| config.content());
        let differs = |node: &&String| spec(old.get(*node)) != spec(new.get(*node));
        let changing: BTreeSet<&String> = old.keys().chain(new.keys()).filter(differs).collect();
        prop_assert_eq!(&planned, &changing);
        prop_assert_eq!(forth.waves.iter().flatten().chain(&forth.at_once).collect::<BTreeSet<_>>(), planned);
        prop_assert!(plan(&after, &after).is_empty());
        let back = plan(&after, &before);
        prop_assert_eq!(forth.total.added, back.total.removed);
        prop_assert_eq!(forth.total.changed, back.total.changed);
        prop_assert_eq!(forth.radius.nodes, back.radius.nodes);
    }
}
