//! Ring 1: what new objects with a mistake, edits of hand-written mirrors, and deletions cost in a running cluster, as a plan shows it:
//! nothing.

use crate::{
    ring1_harm::{RUNNING, changes_nothing, edited, plan},
    ring1_harm_others::{BESIDE, without},
};

/// Hand-written mirrors of a hand-written segment.
const MIRRORS: &str = r"
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: MirrorTarget
metadata: {name: hand-target}
spec: {type: l3gre, destinationIP: 10.250.0.77, destinationVrf: mir, sourceLoopback: lo.mir}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: MirrorSelector
metadata: {name: hand-copies}
spec: {direction: ingress, mirrorSource: {kind: Layer2NetworkConfiguration, name: hl}, mirrorTarget: {kind: MirrorTarget, name: hand-target}}
";

/// An attachment that never ran, since its VRF is a hand-written one, and an Inbound on its Network.
const NEVER_RAN: &str = r#"
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: VRF
metadata: {name: hand}
spec: {vrf: hand, vni: 1700, routeTarget: "64500:1700"}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Destination
metadata: {name: hand-dc, labels: {zone: hand}}
spec: {vrfRef: hand, prefixes: [10.83.0.0/16]}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: late-net}
spec: {ipv4: {cidr: 10.20.9.0/24}, vlan: 109, vni: 20109}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2Attachment
metadata: {name: late}
spec: {networkRef: late-net, interfaceName: late, destinations: {matchLabels: {zone: hand}}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Inbound
metadata: {name: part}
spec: {networkRef: late-net, count: 1, destinations: {matchLabels: {zone: red}}}
"#;

fn running() -> String {
    [RUNNING, BESIDE, MIRRORS].concat()
}

/// A new low-level object of a kind with a spec.
fn new_object(kind: &str, spec: &str) -> String {
    let metadata = r#"{name: new, creationTimestamp: "2025-03-01T00:00:00Z"}"#;
    format!(
        "\n---\napiVersion: network.t-caas.telekom.com/v1alpha1\nkind: {kind}\nmetadata: {metadata}\nspec: {spec}\n"
    )
}

#[test]
fn a_new_hand_written_object_that_ends_in_an_error_is_on_no_node() -> anyhow::Result<()> {
    let running = running();
    for (kind, spec, said) in [
        (
            "VRFRouteConfiguration",
            r#"{vrf: tap, vni: 1801, routeTarget: "64500:1801", seq: 1, import: [], export: [], loopbacks: [{name: lo.tap, poolRef: {kind: InClusterIPPool, name: sources}}]}"#,
            "VRFRouteConfiguration new spec.loopbacks[0].poolRef: InClusterIPPool sources is not an address pool: apiGroup is missing",
        ),
        // Another VLAN with the VNI of a segment.
        (
            "Layer2NetworkConfiguration",
            "{id: 171, vni: 1701, mtu: 1500, vrf: hand, anycastGateways: [10.84.0.1/24]}",
            "Layer2NetworkConfiguration new spec.vni: VNI 1701 is already used by Layer2NetworkConfiguration hl",
        ),
        // An object that is older than what runs, such as one from a backup, with the VNI of a VRF and of a segment.
        (
            "VRFRouteConfiguration",
            r#"{vrf: tap, vni: 1700, routeTarget: "64500:1801", seq: 1, import: [], export: []}"#,
            "VRFRouteConfiguration new spec.vrf: VNI 1700 is already used by VRFRouteConfiguration h",
        ),
        (
            "VRFRouteConfiguration",
            r#"{vrf: tap, vni: 1701, routeTarget: "64500:1801", seq: 1, import: [], export: []}"#,
            "VRFRouteConfiguration new spec.vrf: VNI 1701 is already used by Layer2NetworkConfiguration hl",
        ),
        (
            "BGPPeering",
            "{peeringVlan: {name: hl-typo}, remoteASN: 65100}",
            "BGPPeering new spec.peeringVlan",
        ),
    ] {
        let plan = plan(&running, &[&running, &*new_object(kind, spec)].concat())?;
        assert!(plan.contains(said), "{spec}: {plan}");
        assert!(plan.ends_with("nothing changes on any node\n"), "{plan}");
    }
    Ok(())
}

#[test]
fn an_edit_of_a_hand_written_mirror_that_ends_in_an_error_changes_no_copy() -> anyhow::Result<()> {
    changes_nothing(
        &running(),
        &[
            (
                "{kind: MirrorTarget, name: hand-target}",
                "{kind: MirrorTarget, name: hand-traget}",
                "MirrorSelector hand-copies spec.mirrorTarget: MirrorTarget hand-traget does not exist",
            ),
            (
                "{kind: Layer2NetworkConfiguration, name: hl}",
                "{kind: Layer2NetworkConfiguration, name: lh}",
                "MirrorSelector hand-copies spec.mirrorSource: Layer2NetworkConfiguration lh does not exist",
            ),
            (
                "destinationVrf: mir, sourceLoopback: lo.mir",
                "destinationVrf: mri, sourceLoopback: lo.mir",
                "MirrorTarget hand-target spec.destinationVrf: ",
            ),
            (
                "destinationVrf: mir, sourceLoopback: lo.mir",
                "destinationVrf: mir, sourceLoopback: lo.rim",
                "MirrorTarget hand-target spec.sourceLoopback: ",
            ),
        ],
    )
}

#[test]
fn a_hand_written_object_that_is_deleted_stays_for_the_objects_that_need_it() -> anyhow::Result<()>
{
    let running = running();
    let without_vrf = without(&running, "kind: VRFRouteConfiguration\nmetadata: {name: h}")?;
    let without_segment = without(
        &running,
        "kind: Layer2NetworkConfiguration\nmetadata: {name: hl}",
    )?;
    let plan_without_vrf = plan(&running, &without_vrf)?;
    let said = "Layer2NetworkConfiguration hl spec.vrf: VRF \"hand\" is not on node \"n1\"";
    assert!(plan_without_vrf.contains(said), "{plan_without_vrf}");
    assert!(
        plan_without_vrf.ends_with("nothing changes on any node\n"),
        "{plan_without_vrf}"
    );
    // A mirror keeps nothing alive.
    let plan_without_segment = plan(&running, &without_segment)?;
    for said in [
        "MirrorSelector hand-copies spec.mirrorSource: Layer2NetworkConfiguration hl does not exist",
        "- VLAN 170 ",
    ] {
        assert!(
            plan_without_segment.contains(said),
            "{plan_without_segment}"
        );
    }
    // With what needs it, it goes.
    let without_both = without(
        &without(&without_vrf, "metadata: {name: hl}")?,
        "metadata: {name: hand-copies}",
    )?;
    let plan = plan(&running, &without_both)?;
    assert!(!plan.contains("error:"), "{plan}");
    assert!(plan.contains("- VRF hand "), "{plan}");
    assert!(plan.contains("- VLAN 170 "), "{plan}");
    Ok(())
}

#[test]
fn a_new_destination_that_cannot_be_read_changes_nothing() -> anyhow::Result<()> {
    let running = edited(
        &[RUNNING, BESIDE, NEVER_RAN].concat(),
        "metadata: {name: h}",
        "metadata: {name: h, creationTimestamp: \"2026-01-01T00:00:00Z\"}",
    )?;
    let new = r"
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Destination
metadata: {name: new, labels: {zone: hand}}
spec: {vrfRef: hand, prefixes: [no-such]}
";
    let plan = plan(&running, &[&running, new].concat())?;
    let said = "Destination new spec.prefixes[0]: \"no-such\" is not a network";
    assert!(plan.contains(said), "{plan}");
    assert!(plan.ends_with("nothing changes on any node\n"), "{plan}");
    Ok(())
}

#[test]
fn an_edit_stops_no_other_object_where_no_node_can_run_it_either() -> anyhow::Result<()> {
    let running = [RUNNING, BESIDE].concat();
    let running = edited(
        &running,
        "{asn: 64514, nics",
        "{nodeSelector: {matchLabels: {rack: r9}}, asn: 64514, nics",
    )?;
    let of_outbound = r"
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: out}
spec: {ipv4: {cidr: 10.31.0.0/24}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Outbound
metadata: {name: out}
spec: {networkRef: out, count: 2, destinations: {matchLabels: {zone: blue}}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: TrafficMirror
metadata: {name: out}
spec: {source: {kind: Outbound, name: out}, collector: tap, direction: ingress}
";
    changes_nothing(
        &[&running, of_outbound].concat(),
        &[(
            "count: 2, destinations: {matchLabels: {zone: blue}}",
            "count: 2, destinations: {matchLabels: {zone: bule}}",
            "Outbound out spec.destinations: selects no Destination",
        )],
    )
}
