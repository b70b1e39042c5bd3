//! Ring 1: what goes when a Destination is taken away in a running cluster, and that a Destination with a mistake harms no other author,
//! as a plan shows it.

use crate::{
    ring1_harm::{RUNNING, edited, plan},
    ring1_harm_others::{BESIDE, without},
};

/// A segment in the VRF of [`RUNNING`] that is red, with sessions of workloads.
const SPEAKERS: &str = r#"
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: speakers-net}
spec: {ipv4: {cidr: 10.20.10.0/24}, vlan: 110, vni: 20110}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2Attachment
metadata: {name: speakers}
spec: {networkRef: speakers-net, interfaceName: speakers, bgp: {enabled: true, workloadAS: "65100"}, destinations: {matchLabels: {zone: red}}}
"#;

/// Destinations of another author with the labels of a running tenant, each with something that the tenant cannot use.
const STRANGERS: &[(&str, &str)] = &[
    (
        "labels: {zone: red}}\nspec: {vrfRef: no-such, prefixes: [10.66.0.0/16]}",
        "Destination stranger is left out: it is not in effect",
    ),
    (
        "labels: {zone: red}}\nspec: {vrfRef: blue, prefixes: [10.101.0.0/16]}",
        "Destination stranger is left out: 10.101.0.0/16 is behind VRF \"blue\" (Destination stranger) and behind VRF \"red\"",
    ),
    (
        "labels: {zone: hop}}\nspec: {vrfRef: blue, prefixes: [10.66.0.0/16]}",
        "Destination stranger is left out: Destination stranger is behind a VRF",
    ),
    (
        "labels: {zone: hop}}\nspec: {nextHop: {ipv4: 10.99.99.99}, prefixes: [10.66.0.0/16]}",
        "Destination stranger is left out: 10.99.99.99, the next hop to 10.66.0.0/16",
    ),
    (
        "labels: {zone: hop}}\nspec: {nextHop: {ipv4: 10.20.7.10}, prefixes: [10.60.0.0/16]}",
        "Destination stranger is left out: Destination stranger and Destination hop lead to 10.60.0.0/16",
    ),
];

fn stranger(rest: &str) -> String {
    format!(
        "\n---\napiVersion: network.t-caas.telekom.com/v1alpha1\nkind: Destination\nmetadata: {{name: stranger, {rest}\n"
    )
}

fn running() -> String {
    [RUNNING, BESIDE, SPEAKERS].concat()
}

fn relabelled(text: &str, name: &str) -> anyhow::Result<String> {
    let zone = name.trim_end_matches("-dc");
    let from = format!("name: {name}, labels: {{zone: {zone}}}");
    edited(
        text,
        &from,
        &format!("name: {name}, labels: {{zone: gone}}"),
    )
}

fn has_lines(plan: &str, lines: &[&str]) {
    for line in lines {
        assert!(plan.contains(line), "{line}: {plan}");
    }
}

#[test]
fn routes_by_a_next_hop_that_is_taken_away_go_and_the_vlan_stays() -> anyhow::Result<()> {
    let running = running();
    let deleted = without(&running, "name: hop, labels")?;
    for new in [deleted, relabelled(&running, "hop")?] {
        let plan = plan(&running, &new)?;
        let said = "Layer2Attachment hop spec.destinations: selects no Destination";
        has_lines(
            &plan,
            &[
                said,
                "- hop route 10.60.0.0/16",
                "0 to add, 0 to change, 2 to remove",
            ],
        );
    }
    Ok(())
}

#[test]
fn a_segment_whose_last_destination_is_taken_away_stays_in_its_vrf_without_imports()
-> anyhow::Result<()> {
    let running = running();
    let deleted = without(&running, "name: red-dc")?;
    for new in [deleted, relabelled(&running, "red-dc")?] {
        let plan = plan(&running, &new)?;
        has_lines(
            &plan,
            &[
                "Layer2Attachment speakers spec.destinations: selects no Destination",
                "- VRF cluster imports 10.101.0.0/16 from red",
                "- VRF red announces 10.30.0.1/32",
                "~ VRF red session with 10.20.10.0/24",
                "- l2.ips route 10.101.0.0/16",
            ],
        );
        for stays in [
            "- VRF red route target",
            "- VRF red announces 10.20.10.0/24",
            "- VRF red session",
            "- VLAN 110",
            "- VLAN 108 gateway",
            "- l2.ips address",
        ] {
            assert!(!plan.contains(stays), "{stays}: {plan}");
        }
        // What is left is the same at the next compile, and in effect again with the Destination.
        let again = self::plan(&new, &new)?;
        assert!(again.ends_with("nothing changes on any node\n"), "{again}");
    }
    Ok(())
}

#[test]
fn a_destination_of_another_author_that_cannot_be_used_changes_nothing() -> anyhow::Result<()> {
    let running = running();
    for (rest, said) in STRANGERS {
        let plan = plan(&running, &[&*running, &stranger(rest)].concat())?;
        assert!(plan.contains(said), "{rest}: {plan}");
        let errors = plan.lines().filter(|line| line.starts_with("error"));
        for error in errors {
            assert!(
                error.contains("Destination stranger spec"),
                "{rest}: {plan}"
            );
        }
        assert!(
            plan.ends_with("nothing changes on any node\n"),
            "{rest}: {plan}"
        );
    }
    Ok(())
}

#[test]
fn a_destination_of_another_author_that_cannot_be_used_holds_up_no_edit_and_no_withdrawal()
-> anyhow::Result<()> {
    let running = running();
    for (rest, said) in STRANGERS {
        let beside = [&*running, &stranger(rest)].concat();
        let (name, goes) = if rest.contains("zone: red") {
            ("red-dc", "- VRF cluster imports 10.101.0.0/16 from red")
        } else {
            ("hop", "hop route 10.60.0.0/16")
        };
        // What the stranger has is not in the way of what is taken away, and may be used from then on.
        let plan = plan(&running, &relabelled(&beside, name)?)?;
        assert!(plan.contains(goes), "{rest}: {plan}");
        let attachment = if name == "hop" { "hop" } else { "red" };
        let to = format!("interfaceName: {attachment}, mtu: 1400,");
        let edited = edited(&beside, &format!("interfaceName: {attachment},"), &to)?;
        let plan = self::plan(&running, &edited)?;
        has_lines(&plan, &[said, "mtu 1500 → 1400"]);
    }
    Ok(())
}

#[test]
fn a_destination_whose_vrf_is_gone_keeps_what_came_from_it_and_holds_up_no_other()
-> anyhow::Result<()> {
    let more = r"
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Destination
metadata: {name: more, labels: {zone: red}}
spec: {vrfRef: blue, prefixes: [10.103.0.0/16]}
";
    let running = [&*running(), more].concat();
    let gone = without(&running, "kind: VRF\nmetadata: {name: red}")?;
    let kept = plan(&running, &gone)?;
    let said = "Destination red-dc is rejected: the configuration from its last valid spec is kept";
    assert!(kept.contains(said), "{kept}");
    assert!(kept.ends_with("nothing changes on any node\n"), "{kept}");
    let both = plan(&running, &without(&gone, "metadata: {name: more,")?)?;
    has_lines(
        &both,
        &[said, "- VRF cluster imports 10.103.0.0/16 from blue"],
    );
    assert!(!both.contains("10.101.0.0/16"), "{both}");
    Ok(())
}

#[test]
fn an_intent_that_keeps_what_it_was_loses_what_is_taken_away() -> anyhow::Result<()> {
    let running = running();
    for (network, destination, goes) in [
        (
            "speakers-net",
            "red-dc",
            "- VRF cluster imports 10.101.0.0/16 from red",
        ),
        (
            "speakers-net",
            "red-dc",
            "~ VRF red session with 10.20.10.0/24",
        ),
        ("hop-net", "hop", "- hop route 10.60.0.0/16"),
        ("lb", "red-dc", "- VRF red announces 10.30.0.100/32"),
    ] {
        let new = without(
            &running,
            &format!("kind: Network\nmetadata: {{name: {network}}}"),
        )?;
        let plan = plan(&running, &relabelled(&new, destination)?)?;
        let said = format!("spec.networkRef: Network {network} does not exist");
        has_lines(&plan, &[&said, goes]);
    }
    Ok(())
}
