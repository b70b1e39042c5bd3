//! Ring 2, laws of configs as nodes get them, on worlds with everything in them: intents, what people write by hand, mirrors, both
//! families.

use worlds::everything;

use super::*;
use crate::tests::sound;

fn published(compilation: &Compilation) -> BTreeMap<&str, api::tcaas::NodeNetworkConfigSpec> {
    let nodes = compilation.nodes.iter();
    nodes
        .map(|(node, config)| (node.as_str(), config.spec("")))
        .collect()
}

proptest! {
    #![proptest_config(laws(256))]

    #[test]
    fn configs_can_be_carried_out_and_do_not_contradict_themselves(world in everything()) {
        let compilation = compile(&snapshot(&world));
        prop_assert_eq!(sound::complaints(&published(&compilation)), Vec::<String>::new());
        let again = compile(&remembering(&world, &compilation));
        prop_assert_eq!(sound::complaints(&published(&again)), Vec::<String>::new());
    }

    #[test]
    fn a_stored_revision_compiles_into_the_configs_that_nodes_have_in_it(world in everything()) {
        let first = compile(&snapshot(&world));
        let running = remembering(&world, &first);
        let first = compile(&running);
        let running = remembering(&world, &first);
        let stored = first.revision.spec(&first.objects);
        let restored = revision::stored::nodes(&stored, &running, &first);
        for (node, config) in &first.nodes {
            let restored = restored.get(node).map(|config| config.content());
            prop_assert_eq!(restored, Some(config.content()), "node {}", node);
        }
    }

    #[test]
    fn a_snapshot_written_as_documents_is_read_as_the_same(world in everything()) {
        let original = remembering(&world, &compile(&snapshot(&world)));
        let documents: Vec<Value> = original.documents().collect();
        let again = snapshot(&documents);
        prop_assert_eq!(bytes(&compile(&again)), bytes(&compile(&original)));
        prop_assert_eq!(statuses(&again), statuses(&original));
        prop_assert!(original.subjects().eq(again.subjects()));
    }

    #[test]
    fn an_intent_that_is_not_in_effect_says_why(world in everything()) {
        let snapshot = snapshot(&world);
        let compilation = compile(&snapshot);
        let says: BTreeSet<&ObjectRef> = compilation
            .problems
            .iter()
            .filter(|problem| problem.severity() == Severity::Error)
            .map(|problem| &problem.subject)
            .collect();
        let held_back = compilation.intents.iter().filter(|(_, one)| one.is_held_back);
        for (subject, _) in held_back {
            prop_assert!(says.contains(subject), "nothing is said on {}", subject);
        }
    }
}
