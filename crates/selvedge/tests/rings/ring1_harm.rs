//! Ring 1: what a mistake in a running cluster costs, as a plan shows it: nothing.

use crate::ring1_plan;

pub(crate) const RUNNING: &str = r#"
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {rack: r1}}
---
apiVersion: v1
kind: Node
metadata: {name: n2, labels: {rack: r2}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: NodeNetworkStatus
metadata: {name: n1}
spec: {}
status: {interfaces: [{name: eth1, type: physical, state: up, mtu: 9100}, {name: bond1, type: bond, state: up, mtu: 1500}, {name: ens9, type: physical, state: down, mtu: 1500}]}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: NodeNetworkStatus
metadata: {name: n2}
spec: {}
status: {interfaces: [{name: eth1, type: physical, state: up, mtu: 9100}, {name: bond1, type: bond, state: up, mtu: 1500}, {name: ens9, type: physical, state: down, mtu: 1500}]}
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: Underlay
metadata: {name: fabric, namespace: selvedge-system, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {asn: 64514, nics: [eth1], evpn: {vtepcidr: 100.65.0.0/24}, neighbors: [{asn: 64512, address: 192.168.11.2}]}
---
apiVersion: selvedge.dev/v1alpha1
kind: Settings
metadata: {name: default}
spec: {clusterVRF: {name: cluster, vni: 4000, routeTarget: "64500:4000"}, routeTables: {first: 5000, last: 5099}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: VRF
metadata: {name: red}
spec: {vrf: red, vni: 1001, routeTarget: "64500:1001"}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: VRF
metadata: {name: blue}
spec: {vrf: blue, vni: 1002, routeTarget: "64500:1002"}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Destination
metadata: {name: red-dc, labels: {zone: red}}
spec: {vrfRef: red, prefixes: [10.101.0.0/16]}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Destination
metadata: {name: blue-dc, labels: {zone: blue}}
spec: {vrfRef: blue, prefixes: [10.102.0.0/16]}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: red-net}
spec: {ipv4: {cidr: 10.20.1.0/24}, vlan: 101, vni: 20101}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: blue-net}
spec: {ipv4: {cidr: 10.20.2.0/24}, vlan: 101, vni: 20102}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: store-net}
spec: {ipv4: {cidr: 10.20.6.0/24}, vlan: 106}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2Attachment
metadata: {name: red, creationTimestamp: "2026-02-01T00:00:00Z"}
spec: {networkRef: red-net, interfaceName: red, destinations: {matchLabels: {zone: red}}, nodeSelector: {matchLabels: {rack: r1}}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2Attachment
metadata: {name: blue, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {networkRef: blue-net, interfaceName: blue, destinations: {matchLabels: {zone: blue}}, nodeSelector: {matchLabels: {rack: r2}}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2Attachment
metadata: {name: store}
spec: {networkRef: store-net, interfaceName: store, interfaceRef: bond1, mtu: 1500}
"#;

/// What `plan` says, errors first, about the way from one set of documents to another.
pub(crate) fn plan(old: &str, new: &str) -> anyhow::Result<String> {
    let output = ring1_plan::plan(old, new, &["--all"])?;
    let text = [output.stderr, output.stdout].concat();
    Ok(String::from_utf8(text)?)
}

pub(crate) fn edited(text: &str, from: &str, to: &str) -> anyhow::Result<String> {
    anyhow::ensure!(text.matches(from).count() == 1, "{from} is there once");
    Ok(text.replace(from, to))
}

/// Each edit ends in its message and changes nothing.
pub(crate) fn changes_nothing(running: &str, edits: &[(&str, &str, &str)]) -> anyhow::Result<()> {
    for (from, to, said) in edits {
        let plan = plan(running, &edited(running, from, to)?)?;
        assert!(plan.contains(said), "{from} → {to}: {plan}");
        assert!(
            plan.ends_with("nothing changes on any node\n"),
            "{from} → {to}: {plan}"
        );
    }
    Ok(())
}

/// Mistakes in objects of tenants and of the fabric: the text, what it is replaced by, and the expected message.
const OF_TENANTS: &[(&str, &str, &str)] = &[
    // An older tenant comes to a node on which a younger one runs the VLAN.
    (
        ", nodeSelector: {matchLabels: {rack: r2}}",
        "",
        "Layer2Attachment blue spec.networkRef: VLAN 101 is already used by Layer2Attachment red",
    ),
    (
        "interfaceRef: bond1",
        "interfaceRef: bond9",
        "Layer2Attachment store spec.interfaceRef: node \"n1\" has no interface \"bond9\"",
    ),
    (
        "mtu: 1500}\n",
        "mtu: 9000}\n",
        "Layer2Attachment store spec.mtu: packets of 9000 bytes do not fit \"bond1\"",
    ),
    (
        "interfaceName: red, destinations: {matchLabels: {zone: red}}",
        "interfaceName: red, destinations: {matchLabels: {zone: rde}}",
        "Layer2Attachment red spec.destinations: selects no Destination",
    ),
    (
        "networkRef: blue-net",
        "networkRef: blu-net",
        "Layer2Attachment blue spec.networkRef: Network blu-net does not exist",
    ),
    ("vlan: 106}", "vlan: 5000}", "Network store-net spec.vlan"),
    (
        "vrf: blue, vni: 1002",
        "vrf: blue, vni: 1001",
        "VRF blue spec.vni",
    ),
    (
        "name: red-dc, labels: {zone: red}",
        "name: red-dc, labels: {zone: 7}",
        "Destination red-dc metadata.labels[\"zone\"]: must be text, not a number (7)",
    ),
    (
        "name: n1, labels: {rack: r1}",
        "name: n1, labels: {rack: 1}",
        "Node n1 metadata.labels[\"rack\"]: must be text, not a number (1)",
    ),
    (
        "vtepcidr: 100.65.0.0/24",
        "vtepcidr: 192.168.11.0/24",
        "Underlay selvedge-system/fabric",
    ),
];

/// Mistakes that concern the settings of the cluster.
const OF_SETTINGS: &[(&str, &str, &str)] = &[
    (
        "vni: 4000",
        "vni: 1001",
        "Settings default spec.clusterVRF.vni: VNI 1001 is already used by VRF red",
    ),
    (
        "vni: 4000",
        "vni: 20101",
        "Settings default spec.clusterVRF.vni: VNI 20101 is already used by Network red-net",
    ),
    (
        "name: cluster,",
        "name: blue,",
        "Settings default spec.clusterVRF.name: VRF blue already uses \"blue\"",
    ),
    (
        "last: 5099",
        "last: 5000",
        "Settings default spec.routeTables",
    ),
    (
        "vrf: red, vni: 1001",
        "vrf: red, vni: 4000",
        "VRF red spec.vni: VNI 4000 is already used by Settings default",
    ),
    (
        "vni: 20102",
        "vni: 4000",
        "Network blue-net spec.vni: VNI 4000 is already used by Settings default",
    ),
];

#[test]
fn an_edit_with_an_error_changes_no_node_and_is_named() -> anyhow::Result<()> {
    changes_nothing(RUNNING, OF_TENANTS)?;
    changes_nothing(RUNNING, OF_SETTINGS)
}

#[test]
fn a_destination_that_is_relabelled_is_withdrawn_even_beside_a_mistake() -> anyhow::Result<()> {
    let relabelled = edited(
        RUNNING,
        "name: red-dc, labels: {zone: red}",
        "name: red-dc, labels: {zone: gone}",
    )?;
    let both = relabelled.replace("interfaceName: red,", "interfaceName: red, mtu: 99999,");
    for new in [relabelled, both] {
        let plan = plan(RUNNING, &new)?;
        assert!(
            plan.contains("- VRF cluster imports 10.101.0.0/16 from red"),
            "{plan}"
        );
        assert!(plan.contains("touches  1 of 2 nodes"), "{plan}");
    }
    Ok(())
}

#[test]
fn no_plan_is_made_of_documents_that_cannot_be_read_or_of_none() -> anyhow::Result<()> {
    let broken = plan(RUNNING, &edited(RUNNING, "vlan: 106}", "vlan: 106")?)?;
    assert!(
        broken.ends_with("no plan: some documents cannot be read; correct the errors above\n"),
        "{broken}"
    );
    let other_version = plan(
        RUNNING,
        &RUNNING.replacen(
            "openpe.openperouter.github.io/v1alpha1",
            "openpe.openperouter.github.io/v1",
            1,
        ),
    )?;
    // It names its object, which stays.
    assert!(
        other_version.ends_with("nothing changes on any node\n")
            && other_version.contains("is ignored, and the object keeps its last state"),
        "{other_version}"
    );
    let empty = plan(RUNNING, "")?;
    assert!(
        empty.starts_with("error: no object in ") || empty == "error: standard input is empty\n",
        "{empty}"
    );
    Ok(())
}
