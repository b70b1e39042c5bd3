//! Ring 1: what is rarely meant in a running cluster, and says so in a plan.

use crate::{
    ring1_harm::{RUNNING, changes_nothing, edited, plan},
    ring1_harm_others::BESIDE,
};

fn running() -> String {
    [RUNNING, BESIDE].concat()
}

#[test]
fn a_hand_written_segment_does_not_move_into_the_vrf_of_an_intent() -> anyhow::Result<()> {
    changes_nothing(
        &running(),
        &[(
            "mtu: 1500, vrf: hand, anycastGateways",
            "mtu: 1500, vrf: red, anycastGateways",
            "Layer2NetworkConfiguration hl spec.vrf: VRF \"red\" is configured by Layer2Attachment ips",
        )],
    )
}

#[test]
fn a_hand_written_vrf_with_the_route_target_of_another_says_so() -> anyhow::Result<()> {
    let running = running();
    let new = edited(
        &running,
        "routeTarget: \"64500:1700\"",
        "routeTarget: \"64500:1001\"",
    )?;
    let plan = plan(&running, &new)?;
    let said = "warning: ";
    assert!(plan.contains(said), "{plan}");
    let said = "VRFRouteConfiguration h spec.routeTarget: VRF red has route target 64500:1001 too";
    assert!(plan.contains(said), "{plan}");
    Ok(())
}

#[test]
fn of_contradicting_lines_at_one_place_those_that_run_stay() -> anyhow::Result<()> {
    let running = running();
    // It is older, and would come first by its name.
    let rival = r#"
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: VRFRouteConfiguration
metadata: {name: a, creationTimestamp: "2020-01-01T00:00:00Z"}
spec: {vrf: hand, vni: 1700, routeTarget: "64500:1700", seq: 10, import: [{cidr: 10.81.0.0/16, action: deny}], export: []}
"#;
    let text = plan(&running, &[&*running, rival].concat())?;
    let said = "VRFRouteConfiguration a spec.import[0]: seq 10 is also used by VRFRouteConfiguration h (spec.import[0])";
    assert!(text.contains(said), "{text}");
    assert!(text.ends_with("nothing changes on any node\n"), "{text}");
    // A number of its own says where it stands.
    let rival = rival.replace("seq: 10", "seq: 11");
    let text = plan(&running, &[&*running, &rival].concat())?;
    assert!(!text.contains("is also used by"), "{text}");
    Ok(())
}

#[test]
fn a_loopback_that_runs_keeps_its_pool_beside_an_older_object() -> anyhow::Result<()> {
    let running = edited(
        &running(),
        "import: [{cidr: 10.81.0.0/16, action: permit}], export: []}",
        "import: [{cidr: 10.81.0.0/16, action: permit}], export: [], loopbacks: [{name: lo.hand, poolRef: {apiGroup: ipam.cluster.x-k8s.io, kind: InClusterIPPool, name: sources}}]}",
    )?;
    let rival = r#"
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: VRFRouteConfiguration
metadata: {name: a, creationTimestamp: "2020-01-01T00:00:00Z"}
spec: {vrf: hand, vni: 1700, routeTarget: "64500:1700", seq: 11, import: [], export: [], loopbacks: [{name: lo.hand, poolRef: {apiGroup: ipam.cluster.x-k8s.io, kind: InClusterIPPool, name: others}}]}
"#;
    let text = plan(&running, &[&*running, rival].concat())?;
    let said = "VRFRouteConfiguration a spec.loopbacks[0].poolRef: VRFRouteConfiguration h already takes the addresses of loopback \"lo.hand\" from another pool";
    assert!(text.contains(said), "{text}");
    assert!(text.ends_with("nothing changes on any node\n"), "{text}");
    Ok(())
}

#[test]
fn entries_that_do_nothing_are_said() -> anyhow::Result<()> {
    let running = running();
    for (from, to, said) in [
        (
            "routeTables: {first: 5000, last: 5099}",
            "routeTables: {first: 5000, last: 5099}, vrfs: {red: {vni: 9999, routeTarget: \"64500:1001\"}}",
            "Settings default spec.vrfs.red.vni: VRF red sets vni 1001 for \"red\", which takes precedence",
        ),
        (
            "routeTables: {first: 5000, last: 5099}",
            "routeTables: {first: 5000, last: 5099}, vrfs: {unused: {vni: 1001, routeTarget: \"64500:1\"}}",
            "Settings default spec.vrfs.unused.vni: VNI 1001 is that of VRF red, so VRF \"unused\" cannot have it",
        ),
        (
            "prefixes: [10.101.0.0/16]",
            "prefixes: [10.101.0.0/16, 10.101.0.0/16]",
            "Destination red-dc spec.prefixes[1]: 10.101.0.0/16 is in the list already",
        ),
        (
            "interfaceName: blue, ",
            "interfaceName: blue, routes: [{prefixes: []}], ",
            "Layer2Attachment blue spec.routes[0].prefixes: the entry has no prefixes and no effect",
        ),
    ] {
        let plan = plan(&running, &edited(&running, from, to)?)?;
        assert!(plan.contains(said), "{to}: {plan}");
        assert!(
            plan.ends_with("nothing changes on any node\n"),
            "{to}: {plan}"
        );
    }
    let empty = edited(&running, "prefixes: [10.101.0.0/16]", "prefixes: []")?;
    let plan = plan(&running, &empty)?;
    let said =
        "Destination red-dc spec.prefixes: it has no prefixes, so nothing is imported from the VRF";
    assert!(plan.contains(said), "{plan}");
    Ok(())
}

#[test]
fn a_session_that_a_node_has_stays_when_an_older_peering_comes_to_select_the_node()
-> anyhow::Result<()> {
    let peerings = r#"
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: BGPPeering
metadata: {name: old, creationTimestamp: "2020-01-01T00:00:00Z"}
spec: {peeringVlan: {name: hl}, remoteASN: 65101, import: [], export: [], nodeSelector: {matchLabels: {old: "yes"}}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: BGPPeering
metadata: {name: young, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {peeringVlan: {name: hl}, remoteASN: 65102, import: [], export: [], nodeSelector: {matchLabels: {rack: r2}}}
"#;
    let running = [&*running(), peerings].concat();
    let running = edited(
        &running,
        "labels: {rack: r1}",
        "labels: {rack: r1, old: \"yes\"}",
    )?;
    let new = edited(
        &running,
        "labels: {rack: r2}",
        "labels: {rack: r2, old: \"yes\"}",
    )?;
    let text = plan(&running, &new)?;
    let said = "BGPPeering old spec.peeringVlan: BGPPeering young already has the sessions with 10.82.0.0/24";
    assert!(text.contains(said), "{text}");
    assert!(text.ends_with("nothing changes on any node\n"), "{text}");
    Ok(())
}
