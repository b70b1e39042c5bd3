//! Ring 2, laws of configs as nodes get them, on worlds with everything in them: intents, what people write by hand, mirrors, both
//! families.

use super::*;
use crate::{
    element::elements,
    provenance::{Trace, tests::worlds},
    tests::{mirrors, sound},
};

/// A world with everything in it.
pub(super) fn everything() -> impl Strategy<Value = Vec<Value>> {
    let families = prop::collection::vec(0_u8..3, 6);
    let mirrors = prop::option::of(mirrors::mirrors());
    (worlds(), mirrors, families, any::<bool>()).prop_map(
        |(mut world, mirrors, families, apart)| {
            let networks = world.iter_mut().filter(|one| one["kind"] == "Network");
            for (network, family) in networks.zip(families) {
                let cidr = network["spec"]["ipv4"]["cidr"].as_str().unwrap_or_default();
                let subnet = cidr.split('.').nth(1).unwrap_or_default().to_owned();
                if family > 0 {
                    network["spec"]["ipv6"] = json!({"cidr": format!("fd00:{subnet}::/124")});
                }
                if family > 1 {
                    network["spec"]
                        .as_object_mut()
                        .expect("a spec")
                        .remove("ipv4");
                }
            }
            let mut underlays = world.iter_mut().filter(|one| one["kind"] == "Underlay");
            if let Some(underlay) = underlays.next().filter(|_| apart) {
                underlay["spec"]["evpn"]["vtepcidr"] = json!("100.66.0.0/30");
                underlay["spec"]["nics"] = json!(["eth1", "eth2"]);
            }
            match mirrors {
                Some(mirrors) => mirrors::with(&world, &mirrors),
                None => world,
            }
        },
    )
}

fn published(compilation: &Compilation) -> BTreeMap<&str, api::tcaas::NodeNetworkConfigSpec> {
    let nodes = compilation.nodes.iter();
    nodes
        .map(|(node, config)| (node.as_str(), config.spec("")))
        .collect()
}

const INTENTS: [&str; 10] = [
    "VRF",
    "Network",
    "Destination",
    "Layer2Attachment",
    "Inbound",
    "Outbound",
    "PodNetwork",
    "BGPNeighbor",
    "Collector",
    "TrafficMirror",
];

proptest! {
    #![proptest_config(laws(256))]

    #[test]
    fn configs_can_be_carried_out_and_do_not_contradict_themselves(world in everything()) {
        let compilation = compile(&snapshot(&world));
        prop_assert_eq!(sound::complaints(&published(&compilation)), Vec::<String>::new());
        let again = compile(&remembering(&world, &compilation));
        prop_assert_eq!(sound::complaints(&published(&again)), Vec::<String>::new());
    }

    /// An intent that goes touches a node if something there was made of one of its fields, or if something comes there of an object
    /// that something was wrong with before: the address, number or name that it waited for may be what has become free. An attachment
    /// touches whatever comes of its Network too: services announce a Network as a whole where nothing is attached to it. All other nodes
    /// keep their configs to the byte.
    #[test]
    fn an_intent_that_goes_changes_only_nodes_that_it_touched(world in everything(), one in any::<prop::sample::Index>()) {
        let is_intent = |one: &&Value| INTENTS.iter().any(|kind| one["kind"] == *kind);
        let intents: Vec<Value> = world.iter().filter(is_intent).cloned().collect();
        if intents.is_empty() {
            return Ok(());
        }
        let Insertion::Object(gone) = Snapshot::default().insert(one.get(&intents)) else { return Ok(()) };
        let before = compile(&snapshot(&world));
        let settled = remembering(&world, &before);
        let mut smaller = settled.clone();
        smaller.remove(&gone);
        let after = compile(&smaller);
        let (was, is) = (Trace::new(&settled, &before), Trace::new(&smaller, &after));
        let waited = before.problems.iter().map(|problem| &problem.subject);
        let waited: BTreeSet<&ObjectRef> = waited.chain(&before.platform_keeps).collect();
        let network = (gone.kind == Kind::Layer2Attachment).then(|| {
            ObjectRef::named(Kind::Network, &settled.layer2_attachments[&gone.key].spec.network_ref)
        });
        let is_of_it = |object: &ObjectRef| *object == gone || Some(object) == network.as_ref();
        let names = |claim: &provenance::Claim, whom: &dyn Fn(&ObjectRef) -> bool| {
            whom(&claim.by) || claim.fields().iter().any(|field| whom(&field.object))
        };
        for (node, config) in &before.nodes {
            let now = after.nodes[node].spec("");
            if config.spec("") == now {
                continue;
            }
            let had = elements(&config.spec(""));
            let touched = had.keys().any(|element| {
                was.claims(node, element).iter().any(|claim| names(claim, &is_of_it))
            });
            let let_in = elements(&now).iter().any(|(element, value)| {
                had.get(element) != Some(value)
                    && is.claims(node, element).iter().any(|claim| names(claim, &|object| waited.contains(object)))
            });
            prop_assert!(touched || let_in, "{} was not on {}: {:?}", gone, node, differences(&before, &after));
        }
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
        for subject in compilation.lowered.held_back() {
            prop_assert!(says.contains(subject), "nothing is said on {}", subject);
        }
    }
}
