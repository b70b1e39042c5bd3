//! Ring 2, laws of provenance on random worlds, and what is said of each kind of element.

mod kinds;
mod known;
mod mutation;
mod sensitivity;

use std::collections::BTreeMap;

use compiler::{Severity, compile};
use proptest::{prelude::*, sample::Index};
use serde_json::{Value, json};
use worlds::{TCAAS, laws, object, with_hand_written};

use self::sensitivity::all_matter;
use super::*;
use crate::{
    element::{Elements, elements},
    tests::snapshot,
};

fn of_node(compilation: &Compilation, node: &str) -> Elements {
    let config = compilation.nodes.get(node);
    config
        .map(|config| elements(&config.content()))
        .unwrap_or_default()
}

/// All elements of all nodes.
fn all(compilation: &Compilation) -> Vec<(String, Element, Value)> {
    let of = |node: &String| {
        let elements = of_node(compilation, node).into_iter();
        let node = node.clone();
        elements
            .map(move |(element, value)| (node.clone(), element, value))
            .collect::<Vec<_>>()
    };
    compilation.nodes.keys().flat_map(of).collect()
}

/// One element of a world, of a kind that is drawn first, so that rare kinds are not drowned by common ones.
fn drawn(
    compilation: &Compilation,
    kind: Index,
    element: Index,
) -> Option<(String, Element, Value)> {
    let mut kinds: BTreeMap<&'static str, Vec<(String, Element, Value)>> = BTreeMap::new();
    for one in all(compilation) {
        kinds.entry((&one.1).into()).or_default().push(one);
    }
    let kinds: Vec<Vec<_>> = kinds.into_values().collect();
    if kinds.is_empty() {
        return None;
    }
    let of_kind: &Vec<_> = kind.get(&kinds);
    Some(element.get(of_kind).clone())
}

/// What is compiled without the objects of other claims.
///
/// An intent that was rejected because of one of them may come into effect, and take what the claim is about, such as the Network as
/// a whole. That says nothing about the claim, so such an intent is left out too.
fn alone(
    mut world: Vec<Value>,
    before: &Compilation,
    claims: &[Claim],
    claim: &Claim,
) -> Compilation {
    let objects = claim.fields().into_iter().map(|field| &field.object);
    let needed: BTreeSet<&ObjectRef> = objects.chain([&claim.by]).collect();
    let is_not_needed = |object: &&ObjectRef| !needed.contains(object);
    let others = claims.iter().map(|other| &other.by).filter(is_not_needed);
    let mut left_out: BTreeSet<ObjectRef> = others.cloned().collect();
    let rejected_before = rejected(before);
    loop {
        world.retain(|document| !left_out.iter().any(|one| mutation::is(document, one)));
        let after = compile(&snapshot(&world));
        let rejected_now = rejected(&after);
        let is_there = |object: &&ObjectRef| world.iter().any(|one| mutation::is(one, object));
        let admitted = rejected_before.difference(&rejected_now).filter(is_there);
        left_out = admitted.filter(is_not_needed).cloned().collect();
        if left_out.is_empty() {
            return after;
        }
    }
}

/// The intents that are not in effect. What they refer to, such as a Network, may still be used by others.
fn rejected(compilation: &Compilation) -> BTreeSet<ObjectRef> {
    let problems = compilation.problems.iter();
    let errors = problems.filter(|problem| problem.severity() == Severity::Error);
    let subjects = errors.map(|problem| &problem.subject);
    let is_intent = |object: &&ObjectRef| {
        matches!(
            object.kind,
            Kind::Layer2Attachment | Kind::Inbound | Kind::Outbound | Kind::PodNetwork
        )
    };
    subjects.filter(is_intent).cloned().collect()
}

/// A neighbor that allows an Inbound, and announces its network.
fn neighborhood() -> Vec<Value> {
    let fabric = "openpe.openperouter.github.io/v1alpha1";
    let named = |name: &str| json!({"name": name});
    let zone = json!({"matchLabels": {"zone": "dc"}});
    let settings =
        json!({"trunk": {"addresses": ["169.254.1.0/31"]}, "bgp": {"workloadAS": 65100}});
    let underlay = json!({
        "asn": 64514, "nics": ["eth1"], "evpn": {"vtepcidr": "100.65.0.0/24"},
        "neighbors": [{"asn": 64512, "address": "192.0.2.1"}],
    });
    let inbound = json!({
        "networkRef": "lb", "count": 2, "destinations": zone,
        "disableLoadBalancer": true, "disableAggregation": true,
    });
    let neighbor = json!({
        "allowedInbounds": [{"name": "lb"}], "advertiseTransferNetwork": true,
        "holdTime": "90s", "keepaliveTime": "30s", "maximumPrefixes": 10,
    });
    let destination = json!({"name": "dc", "labels": {"zone": "dc"}});
    vec![
        json!({"apiVersion": "v1", "kind": "Node", "metadata": named("n0")}),
        object(
            "selvedge.dev/v1alpha1",
            "Settings",
            named("default"),
            settings,
        ),
        object(fabric, "Underlay", named("u"), underlay),
        object(
            TCAAS,
            "VRF",
            named("m2m"),
            json!({"vrf": "m2m", "vni": 10, "routeTarget": "1:10"}),
        ),
        object(
            TCAAS,
            "Destination",
            destination,
            json!({"vrfRef": "m2m", "prefixes": ["10.0.0.0/8"]}),
        ),
        object(
            TCAAS,
            "Network",
            named("lb"),
            json!({"ipv4": {"cidr": "198.51.100.0/28"}}),
        ),
        object(TCAAS, "Inbound", named("lb"), inbound),
        object(TCAAS, "BGPNeighbor", named("lb"), neighbor),
    ]
}

#[test]
fn a_neighbor_is_behind_its_sessions_and_its_network() {
    let world = snapshot(&neighborhood());
    let compilation = compile(&world);
    let trace = Trace::new(&world, &compilation);
    let by = ObjectRef::named(Kind::BgpNeighbor, "lb");
    let of_neighbor = |(node, element, _): &(String, Element, Value)| {
        trace
            .claims(node, element)
            .iter()
            .any(|claim| claim.by == by)
    };
    let kinds: BTreeSet<&'static str> = all(&compilation)
        .iter()
        .filter(|one| of_neighbor(one))
        .map(|(_, element, _)| element.into())
        .collect();
    for kind in [
        "loopback {name} on the host",
        "VRF {vrf} session with {peer}",
        "VRF {vrf} announces {prefix}",
    ] {
        assert!(kinds.contains(kind), "{kinds:?}");
    }
}

#[test]
fn what_a_neighbor_makes_changes_with_every_field_that_is_behind_it() -> Result<(), TestCaseError> {
    let world = neighborhood();
    for one in all(&compile(&snapshot(&world))) {
        all_matter(&world, &one)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(laws(192))]

    #[test]
    fn every_element_comes_from_fields_of_objects(world in with_hand_written()) {
        let snapshot = snapshot(&world);
        let compilation = compile(&snapshot);
        let trace = Trace::new(&snapshot, &compilation);
        for (node, element, _) in all(&compilation) {
            let claims = trace.claims(&node, &element);
            prop_assert!(!claims.is_empty(), "nothing requests {element} on {node}");
            for claim in claims {
                prop_assert!(!claim.fields().is_empty(), "{} says nothing for {element} on {node}", claim.by);
            }
        }
    }

    #[test]
    fn whoever_is_behind_an_element_would_do_alone(
        world in with_hand_written(), kind in any::<Index>(), element in any::<Index>(), choose in any::<Index>()
    ) {
        let before = snapshot(&world);
        let compilation = compile(&before);
        let Some((node, element, _)) = drawn(&compilation, kind, element) else { return Ok(()) };
        let claims = Trace::new(&before, &compilation).claims(&node, &element);
        let claim = choose.get(&claims);
        let after = alone(world, &compilation, &claims, claim);
        prop_assert!(of_node(&after, &node).contains_key(&element), "{} alone does not make {element} on {node}", claim.by);
    }
}

proptest! {
    #![proptest_config(laws(24))]

    #[test]
    fn an_element_changes_with_every_field_that_is_behind_it(world in with_hand_written(), kind in any::<Index>(), element in any::<Index>()) {
        if let Some(drawn) = drawn(&compile(&snapshot(&world)), kind, element) {
            all_matter(&world, &drawn)?;
        }
    }
}
