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

/// A node with one router of its host in this AS, with this prefix and these further fields of its neighbor.
fn with_router(asn: u32, prefix: &str, neighbor: &Value) -> Vec<Value> {
    let mut peer = serde_json::json!({"address": "192.0.2.1", "asn": 64500, "toAdvertise": {"allowed": {"mode": "all"}}});
    for (field, value) in neighbor.as_object().into_iter().flatten() {
        peer[field] = value.clone();
    }
    let router = serde_json::json!({"asn": asn, "prefixes": [prefix], "neighbors": [peer]});
    vec![
        serde_json::json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}),
        serde_json::json!({
            "apiVersion": "frrk8s.metallb.io/v1beta1", "kind": "FRRConfiguration",
            "metadata": {"name": "a", "namespace": "selvedge-system"}, "spec": {"bgp": {"routers": [router]}},
        }),
    ]
}

fn planned(one: &[Value], other: &[Value]) -> Plan {
    let (one, other) = (snapshot(one), snapshot(other));
    let (before, after) = (compile(&one), compile(&other));
    plan(&Trace::new(&one, &before), &Trace::new(&other, &after))
}

#[test]
fn another_as_of_a_router_of_the_host_resets_its_sessions() {
    let plain = serde_json::json!({});
    let before = with_router(64512, "198.51.100.1/32", &plain);
    let as_of_router = planned(&before, &with_router(64513, "198.51.100.1/32", &plain));
    assert!(
        as_of_router
            .disruptions
            .contains_key(&Disruption::SessionReset)
    );
    let port = planned(
        &before,
        &with_router(64512, "198.51.100.1/32", &serde_json::json!({"port": 1790})),
    );
    assert!(port.disruptions.contains_key(&Disruption::SessionReset));
}

#[test]
fn a_change_of_a_router_of_the_host_waits_for_no_wave_and_names_its_object() {
    let plain = serde_json::json!({});
    let before = with_router(64512, "198.51.100.1/32", &plain);
    let after = with_router(64512, "198.51.100.2/32", &plain);
    let plan = planned(&before, &after);
    assert_eq!((plan.at_once.len(), plan.waves.len()), (1, 0));
    assert!(
        !plan.disruptions.contains_key(&Disruption::SessionReset),
        "{:?}",
        plan.disruptions
    );
    let changes = plan.groups.iter().flat_map(|group| group.on("n1"));
    let changes: Vec<(ChangeKind, String, Vec<String>)> = changes
        .map(|change| {
            let fields = change.behind.iter().flat_map(|one| &one.fields);
            let fields = fields.map(ToString::to_string);
            (change.kind, change.text.clone(), fields.collect())
        })
        .collect();
    let of = |text: &str| {
        changes
            .iter()
            .find(|(_, known, _)| known == text)
            .cloned()
            .expect(text)
    };
    let (kind, _, fields) = of("host router default network 198.51.100.2/32");
    assert_eq!(kind, ChangeKind::Added);
    assert_eq!(
        fields,
        ["FRRConfiguration selvedge-system/a spec.bgp.routers[0].prefixes[0]"]
    );
    let (kind, _, fields) = of("host router default session with 192.0.2.1");
    assert_eq!(kind, ChangeKind::Changed);
    assert_eq!(
        fields,
        ["FRRConfiguration selvedge-system/a spec.bgp.routers[0].neighbors[0]"]
    );
    assert_eq!(changes.len(), 3, "{changes:?}");
}

#[test]
fn another_password_in_clear_text_resets_its_session_and_is_not_shown() {
    let with = |password: &str| {
        let neighbors = serde_json::json!([
            {"asn": 64512, "address": "192.0.2.1", "password": password},
            {"asn": 64512, "address": "192.0.2.2", "password": "stays-as-it-is"},
        ]);
        vec![
            serde_json::json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}),
            serde_json::json!({
                "apiVersion": "openpe.openperouter.github.io/v1alpha1", "kind": "Underlay",
                "metadata": {"name": "fabric", "namespace": "default"},
                "spec": {"asn": 64514, "nics": ["eth1"], "evpn": {"vtepcidr": "100.65.0.0/24"}, "neighbors": neighbors},
            }),
        ]
    };
    let plan = planned(&with("before-0815"), &with("after-4711"));
    let changes: Vec<&Change> = plan
        .groups
        .iter()
        .flat_map(|group| group.on("n1"))
        .collect();
    let elements: Vec<String> = changes.iter().map(|one| one.element.to_string()).collect();
    assert_eq!(elements, ["underlay peer 192.0.2.1"]);
    assert_eq!(plan.total.session_resets, 1);
    let text = serde_json::to_string(&plan).expect("a plan is JSON");
    let is_shown = ["before-0815", "after-4711", "stays-as-it-is"];
    assert!(!is_shown.iter().any(|one| text.contains(one)), "{text}");
    assert!(text.contains("(hidden, changed)"), "{text}");
    assert!(planned(&with("before-0815"), &with("before-0815")).is_empty());
}
