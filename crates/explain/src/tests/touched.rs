//! Ring 2: an intent that goes changes only the nodes that one of its fields is behind.

use std::collections::BTreeSet;

use compiler::{Kind, ObjectRef, compile};
use proptest::prelude::*;
use worlds::{everything, laws};

use super::*;
use crate::{
    element::elements,
    provenance::{self, Trace},
};

proptest! {
    #![proptest_config(laws(256))]

    /// An intent that goes touches a node if something there was made of one of its fields, or if something comes there of an object
    /// that something was wrong with before: the address, number or name that it waited for may be what has become free. An attachment
    /// touches whatever comes of its Network too: services announce a Network as a whole where nothing is attached to it. All other nodes
    /// keep their configs to the byte.
    #[test]
    fn an_intent_that_goes_changes_only_nodes_that_it_touched(world in everything(), one in any::<prop::sample::Index>()) {
        let is_intent = |object: &ObjectRef| {
            matches!(object.kind, Kind::Vrf | Kind::Network | Kind::Destination) || object.kind.intent().is_some()
        };
        let intents: Vec<ObjectRef> = snapshot(&world).subjects().filter(is_intent).collect();
        if intents.is_empty() {
            return Ok(());
        }
        let gone = one.get(&intents).clone();
        let before = compile(&snapshot(&world));
        let settled = published(&world, &before);
        let mut smaller = settled.clone();
        smaller.remove(&gone);
        let after = compile(&smaller);
        let (was, is) = (Trace::new(&settled, &before), Trace::new(&smaller, &after));
        let waited = before.problems.iter().map(|problem| &problem.subject);
        let waited: BTreeSet<&ObjectRef> = waited.chain(&before.platform_keeps).collect();
        let network = (gone.kind == Kind::Layer2Attachment).then(|| {
            ObjectRef::named(Kind::Network, &settled.layer2_attachments[&gone.key].spec.network_ref)
        });
        let attachments = waited.iter().filter(|one| one.kind == Kind::Layer2Attachment);
        let networks: BTreeSet<ObjectRef> = attachments
            .filter_map(|one| settled.layer2_attachments.get(&one.key))
            .map(|one| ObjectRef::named(Kind::Network, &one.spec.network_ref))
            .collect();
        let is_of_it = |object: &ObjectRef| *object == gone || Some(object) == network.as_ref();
        let names = |claim: &provenance::Claim, whom: &dyn Fn(&ObjectRef) -> bool| {
            whom(&claim.by) || claim.fields().iter().any(|field| whom(&field.object))
        };
        for (node, config) in &before.nodes {
            let now = after.nodes[node].content();
            if config.content() == now {
                continue;
            }
            let had = elements(&config.content());
            let touched = had.keys().any(|element| {
                was.claims(node, element).iter().any(|claim| names(claim, &is_of_it))
            });
            let let_in = elements(&now).iter().any(|(element, value)| {
                had.get(element) != Some(value)
                    && is.claims(node, element).iter().any(|claim| names(claim, &|object| {
                        waited.contains(object) || Some(object) == network.as_ref()
                    }))
            });
            // What an attachment that was let in takes out: services announce its Network as a whole no longer.
            let taken_out = had.iter().any(|(element, value)| {
                elements(&now).get(element) != Some(value)
                    && was.claims(node, element).iter().any(|claim| names(claim, &|object| networks.contains(object)))
            });
            prop_assert!(touched || let_in || taken_out, "{} was not on {}: {:?} became {:?}", gone, node, had, elements(&now));
        }
    }
}
