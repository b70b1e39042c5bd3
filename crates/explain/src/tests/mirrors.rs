//! Ring 2, laws of mirrors in terms of elements.

use compiler::{NodeConfig, compile, problem};
use proptest::prelude::*;
use worlds::{
    laws,
    mirrors::{mirrors, with},
    world,
};

use super::*;
use crate::{
    element::{Element, elements},
    provenance,
};

proptest! {
    #![proptest_config(laws(96))]

    #[test]
    fn mirrors_change_no_revision_and_no_other_element(world in world(), mirrors in mirrors()) {
        let before = compile(&snapshot(&with(&world, &[])));
        let after = compile(&snapshot(&with(&world, &mirrors)));
        prop_assert_eq!(&before.revision, &after.revision);
        for (node, config) in &after.nodes {
            let of = |config: &NodeConfig| elements(&config.content());
            let (before, after) = (of(&before.nodes[node]), of(config));
            for (element, what) in &before {
                prop_assert_eq!(after.get(element), Some(what), "{} on {}", element, node);
            }
            for element in after.keys().filter(|element| !before.contains_key(*element)) {
                let of_mirrors = matches!(
                    element,
                    Element::Loopback { .. } | Element::Tunnel { .. } | Element::Mirror { .. } | Element::Export { .. }
                );
                prop_assert!(of_mirrors, "{}", element);
            }
        }
        for problem in before.problems.iter() {
            let unused = matches!(problem.kind, problem::Kind::NoEffect { .. });
            prop_assert!(unused || after.problems.contains(problem), "{} is gone", problem);
        }
    }

    #[test]
    fn every_element_of_a_mirror_comes_from_fields_of_objects(world in world(), mirrors in mirrors()) {
        let snapshot = snapshot(&with(&world, &mirrors));
        let compilation = compile(&snapshot);
        let trace = provenance::Trace::new(&snapshot, &compilation);
        for (node, config) in &compilation.nodes {
            for element in elements(&config.content()).keys() {
                let claims = trace.claims(node, element);
                prop_assert!(!claims.is_empty(), "nothing requests {}", element);
                prop_assert!(claims.iter().all(|claim| !claim.fields().is_empty()), "{}", element);
            }
        }
    }
}
