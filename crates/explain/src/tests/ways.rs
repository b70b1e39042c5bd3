//! Ring 2: the table of what reaches what agrees with the answer for each pair.

use std::collections::BTreeSet;

use compiler::{Kind, ObjectRef, compile};
use proptest::prelude::*;
use worlds::{everything, laws};

use super::*;
use crate::{
    provenance::Trace,
    query::Query,
    why_not::{reach, ways},
};

proptest! {
    #![proptest_config(laws(64))]

    /// What the table says is reached from a node is what `why-not from A to B` says of it there, and the other way round, for all
    /// attachments that a VRF routes.
    #[test]
    fn what_reaches_what_is_the_same_for_all_pairs_as_for_each(world in everything()) {
        let snapshot = snapshot(&world);
        let compilation = compile(&snapshot);
        let trace = Trace::new(&snapshot, &compilation);
        let targets: BTreeSet<ObjectRef> = snapshot
            .subjects()
            .filter(|one| matches!(one.kind, Kind::Layer2Attachment | Kind::Destination))
            .collect();
        for node in compilation.nodes.keys() {
            for (name, reached) in ways(&trace, Some(node)) {
                let from = ObjectRef::named(Kind::Layer2Attachment, &name);
                for to in targets.iter().filter(|to| **to != from) {
                    let of_table = reached.iter().any(|(known, _)| known == to);
                    let (one, other) = (Query::Object(from.clone()), Query::Object(to.clone()));
                    let answer = reach(&trace, node, &one, &other);
                    prop_assert_eq!(of_table, answer.is_ok(), "from {} to {} on {}: {:?}", from, to, node, answer);
                }
            }
        }
    }
}
