//! Ring 1: names, addresses and VLANs that are in use in a running cluster stay with the object that uses them, as a plan shows it; what an
//! author takes away goes, whatever mirrors it.

use crate::{
    ring1_harm::{RUNNING, edited, plan},
    ring1_harm_others::{BESIDE, without},
};

/// A PodNetwork, and a mirror of an Inbound.
const MORE: &str = r"
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: pods-net}
spec: {ipv4: {cidr: 10.40.0.0/24}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: PodNetwork
metadata: {name: pods}
spec: {networkRef: pods-net, destinations: {matchLabels: {zone: red}}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: TrafficMirror
metadata: {name: of-inbound}
spec: {source: {kind: Inbound, name: b}, collector: tap, direction: ingress}
";

fn running() -> String {
    [RUNNING, BESIDE, MORE].concat()
}

/// A new object of a kind.
fn object(kind: &str, name: &str, spec: &str) -> String {
    let metadata = format!(r#"{{name: {name}, creationTimestamp: "2026-06-01T00:00:00Z"}}"#);
    format!(
        "\n---\napiVersion: network.t-caas.telekom.com/v1alpha1\nkind: {kind}\nmetadata: {metadata}\nspec: {spec}\n"
    )
}

fn assert_nothing_changes(plan: &str, said: &str) {
    assert!(plan.contains(said), "{plan}");
    assert!(plan.ends_with("nothing changes on any node\n"), "{plan}");
}

#[test]
fn an_object_written_over_a_generated_one_stops_no_intent() -> anyhow::Result<()> {
    let running = running();
    for (kind, name, spec, by) in [
        (
            "Layer2NetworkConfiguration",
            "layer2attachment-red-101",
            "{id: 999, vni: 88888, mtu: 1450}",
            "Layer2Attachment red",
        ),
        (
            "VRFRouteConfiguration",
            "inbound-b-red",
            "{vrf: red, seq: 11, import: [{cidr: 10.9.0.0/16, action: permit}], export: []}",
            "Inbound b",
        ),
        (
            "MirrorTarget",
            "tap",
            "{type: l3gre, destinationIP: 10.1.1.1, destinationVrf: mir, sourceLoopback: lo.mir}",
            "Collector tap",
        ),
    ] {
        let new = [&*running, &object(kind, name, spec)].concat();
        let plan = plan(&running, &new)?;
        let said =
            format!("{kind} {name} metadata.name: {by} already generates an object with this name");
        assert_nothing_changes(&plan, &said);
        assert!(!plan.contains(&format!("): {by} ")), "{plan}");
    }
    Ok(())
}

#[test]
fn an_address_of_a_segment_or_a_service_is_given_to_no_other_in_any_vrf() -> anyhow::Result<()> {
    let running = running();
    let moved = |cidr: &str| edited(&running, "cidr: 10.20.2.0/24", &format!("cidr: {cidr}"));
    // The gateway would be an address of an Inbound, or of pods, in another VRF.
    let said = "this edit would stop Layer2Attachment blue, so the spec before it stays in effect: 10.30.0.1 is already used by Inbound a";
    assert_nothing_changes(&plan(&running, &moved("10.30.0.0/28")?)?, said);
    let said = "10.40.0.1 is already used by PodNetwork pods";
    assert_nothing_changes(&plan(&running, &moved("10.40.0.0/28")?)?, said);
    // A service would have the gateway, or a node's address, of a segment in another VRF.
    let network = object("Network", "other", "{ipv4: {cidr: 10.20.8.0/28}}");
    for (address, by) in [
        ("10.20.8.1", "Layer2Attachment ips"),
        ("10.20.8.2", "Layer2Attachment ips"),
    ] {
        let spec = format!(
            "{{networkRef: other, addresses: {{ipv4: [{address}]}}, destinations: {{matchLabels: {{zone: blue}}}}}}"
        );
        let new = [&*running, &network, &object("Inbound", "other", &spec)].concat();
        let said =
            format!("Inbound other spec.addresses.ipv4[0]: {address} is already used by {by}");
        assert_nothing_changes(&plan(&running, &new)?, &said);
    }
    // One that counts goes round them.
    let spec = "{networkRef: other, count: 1, destinations: {matchLabels: {zone: blue}}}";
    let new = [&*running, &network, &object("Inbound", "other", spec)].concat();
    let plan = plan(&running, &new)?;
    assert!(!plan.contains("error:"), "{plan}");
    assert!(plan.contains("VRF blue announces 10.20.8.4/32"), "{plan}");
    Ok(())
}

#[test]
fn a_network_of_pods_does_not_move_over_a_segment() -> anyhow::Result<()> {
    let running = running();
    let new = edited(&running, "cidr: 10.40.0.0/24", "cidr: 10.20.0.0/20")?;
    let said = "Network pods-net spec.ipv4.cidr: this edit would stop Layer2Attachment";
    assert_nothing_changes(&plan(&running, &new)?, said);
    Ok(())
}

#[test]
fn a_mirror_keeps_nothing_that_its_author_takes_away() -> anyhow::Result<()> {
    let running = running();
    let withdrawn = edited(
        &running,
        "addresses: {ipv4: [10.30.0.100]}, destinations: {matchLabels: {zone: red}}",
        "addresses: {ipv4: [10.30.0.100]}",
    )?;
    let plan_of_inbound = plan(&running, &withdrawn)?;
    let said = "TrafficMirror of-inbound spec.source";
    assert!(plan_of_inbound.contains(said), "{plan_of_inbound}");
    let said = "- VRF red announces 10.30.0.100/32";
    assert!(plan_of_inbound.contains(said), "{plan_of_inbound}");
    Ok(())
}

#[test]
fn of_two_edits_for_one_vlan_that_of_the_older_object_is_taken() -> anyhow::Result<()> {
    let rivals = |a: &str, b: &str, vlans: (u16, u16)| {
        let network = |name: &str, created: &str, third: u8, vlan: u16| {
            format!(
                "\n---\napiVersion: network.t-caas.telekom.com/v1alpha1\nkind: Network\nmetadata: {{name: {name}-net, creationTimestamp: {created:?}}}\nspec: {{ipv4: {{cidr: 10.21.{third}.0/24}}, vlan: {vlan}, vni: {third}}}\n---\napiVersion: network.t-caas.telekom.com/v1alpha1\nkind: Layer2Attachment\nmetadata: {{name: {name}, creationTimestamp: {created:?}}}\nspec: {{networkRef: {name}-net, interfaceName: {name}, destinations: {{matchLabels: {{zone: red}}}}}}\n"
            )
        };
        let (first, second) = (network("aa", a, 51, vlans.0), network("bb", b, 52, vlans.1));
        [RUNNING, &first, &second].concat()
    };
    let (old, young) = ("2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z");
    for (a, b, winner, loser) in [(old, young, "aa", "bb"), (young, old, "bb", "aa")] {
        let plan = plan(&rivals(a, b, (300, 301)), &rivals(a, b, (555, 555)))?;
        let said = format!("Network {loser}-net spec.vlan: this edit would stop Layer2Attachment");
        assert!(plan.contains(&said), "{plan}");
        assert_eq!(plan.matches("error:").count(), 1, "{plan}");
        assert!(
            plan.contains(&format!("+ VLAN 555 interface l2.{winner}")),
            "{plan}"
        );
        assert!(
            !plan.contains(&format!("VLAN 555 interface l2.{loser}")),
            "{plan}"
        );
    }
    Ok(())
}

#[test]
fn an_object_that_is_deleted_and_stays_says_for_which_other_it_stays() -> anyhow::Result<()> {
    let running = running();
    let new = without(&running, "kind: VRFRouteConfiguration\nmetadata: {name: h}")?;
    let said = "VRFRouteConfiguration h: was deleted: its last spec stays in effect, because Layer2NetworkConfiguration hl needs it";
    assert_nothing_changes(&plan(&running, &new)?, said);
    Ok(())
}
