//! Ring 2: the table of what reaches what agrees with the answer for each pair.

use std::collections::BTreeSet;

use compiler::{Kind, ObjectRef, compile};
use proptest::prelude::*;
use worlds::{everything, laws};

use super::*;
use crate::{
    provenance::Trace,
    query::Query,
    why_not::{Reached, reach, ways},
};

proptest! {
    #![proptest_config(laws(64))]

    /// What the table says is reached from a node is what `why-not from A to B` says of it there, and the other way round, for all
    /// attachments and services.
    #[test]
    fn what_reaches_what_is_the_same_for_all_pairs_as_for_each(world in everything()) {
        let snapshot = snapshot(&world);
        let compilation = compile(&snapshot);
        let trace = Trace::new(&snapshot, &compilation);
        let targets: BTreeSet<ObjectRef> = snapshot
            .subjects()
            .filter(|one| matches!(one.kind, Kind::Layer2Attachment | Kind::Destination))
            .collect();
        let is_from = |one: &ObjectRef| {
            matches!(one.kind, Kind::Layer2Attachment | Kind::Inbound | Kind::Outbound | Kind::PodNetwork)
        };
        let all: BTreeSet<ObjectRef> = snapshot.subjects().filter(is_from).collect();
        for node in compilation.nodes.keys() {
            let ways = ways(&trace, Some(node));
            let none = Reached::new();
            for from in &all {
                let reached = ways.get(from).unwrap_or(&none);
                for to in targets.iter().filter(|to| *to != from) {
                    let of_table = reached.iter().any(|(known, _)| known == to);
                    let (one, other) = (Query::Object(from.clone()), Query::Object(to.clone()));
                    let answer = reach(&trace, node, &one, &other);
                    prop_assert_eq!(of_table, answer.is_ok(), "from {} to {} on {}: {:?}", from, to, node, answer);
                }
            }
        }
    }
}
