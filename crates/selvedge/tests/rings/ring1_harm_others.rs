//! Ring 1: what an edit in a running cluster costs objects of other authors, as a plan shows it: nothing.

use crate::ring1_harm::{RUNNING, changes_nothing, edited, plan};

/// What runs beside the objects of [`RUNNING`].
pub(crate) const BESIDE: &str = r#"
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: ips-net}
spec: {ipv4: {cidr: 10.20.8.0/24}, vlan: 108, vni: 20108}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2Attachment
metadata: {name: ips}
spec: {networkRef: ips-net, interfaceName: ips, nodeIPs: {enabled: true}, destinations: {matchLabels: {zone: red}}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Destination
metadata: {name: hop, labels: {zone: hop}}
spec: {nextHop: {ipv4: 10.20.7.9}, prefixes: [10.60.0.0/16]}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: hop-net}
spec: {ipv4: {cidr: 10.20.7.0/24}, vlan: 107}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2Attachment
metadata: {name: hop}
spec: {networkRef: hop-net, interfaceRef: bond1, interfaceName: hop, nodeIPs: {enabled: true}, destinations: {matchLabels: {zone: hop}}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: lb}
spec: {ipv4: {cidr: 10.30.0.0/24}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Inbound
metadata: {name: a}
spec: {networkRef: lb, count: 2, destinations: {matchLabels: {zone: red}}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Inbound
metadata: {name: b}
spec: {networkRef: lb, addresses: {ipv4: [10.30.0.100]}, destinations: {matchLabels: {zone: red}}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: VRFRouteConfiguration
metadata: {name: h}
spec: {vrf: hand, vni: 1700, routeTarget: "64500:1700", seq: 10, import: [{cidr: 10.81.0.0/16, action: permit}], export: []}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2NetworkConfiguration
metadata: {name: hl}
spec: {id: 170, vni: 1701, mtu: 1500, vrf: hand, anycastGateways: [10.82.0.1/24]}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: VRF
metadata: {name: mir}
spec: {vrf: mir, vni: 1009, routeTarget: "64500:1009", loopbacks: [{name: lo.mir, poolRef: {apiGroup: ipam.cluster.x-k8s.io, kind: InClusterIPPool, name: sources}}]}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Collector
metadata: {name: tap}
spec: {address: 10.250.0.10, protocol: l3gre, mirrorVRF: {name: mir}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: TrafficMirror
metadata: {name: tm}
spec: {source: {kind: Layer2Attachment, name: red}, collector: tap, direction: ingress}
---
apiVersion: ipam.cluster.x-k8s.io/v1beta2
kind: IPAddress
metadata: {name: given, namespace: selvedge-system}
spec: {address: 10.99.0.1, prefix: 32, claimRef: {name: mir-lo.mir-n1}, poolRef: {apiGroup: ipam.cluster.x-k8s.io, kind: InClusterIPPool, name: sources}}
"#;

fn running() -> String {
    [RUNNING, BESIDE].concat()
}

/// The documents without the one that has this text.
pub(crate) fn without(text: &str, part: &str) -> anyhow::Result<String> {
    let documents: Vec<&str> = text.split("\n---\n").collect();
    let rest: Vec<&str> = documents
        .iter()
        .copied()
        .filter(|one| !one.contains(part))
        .collect();
    anyhow::ensure!(
        rest.len() + 1 == documents.len(),
        "{part} is in one document"
    );
    Ok(rest.join("\n---\n"))
}

#[test]
fn an_edit_that_would_stop_what_another_author_runs_is_not_taken() -> anyhow::Result<()> {
    changes_nothing(
        &running(),
        &[
            (
                "routeTables: {first: 5000, last: 5099}",
                "routeTables: {first: 5000, last: 5099}, trunk: {name: bond1}",
                "Settings default spec.trunk.name: this edit would stop Layer2Attachment hop and 1 more, so the spec before it stays in effect: \"bond1\" is the trunk",
            ),
            (
                "routeTables: {first: 5000, last: 5099}",
                "routeTables: {first: 5000, last: 5099}, trunk: {name: store}",
                "Settings default spec.trunk.name: this edit would stop Layer2Attachment store",
            ),
            (
                "routeTables: {first: 5000, last: 5099}",
                "routeTables: {first: 5000, last: 5099}, trunk: {addresses: [10.20.8.1/31]}",
                "Settings default spec.trunk.addresses: this edit would stop Layer2Attachment ips",
            ),
            (
                "nics: [eth1]",
                "nics: [bond1]",
                "Underlay selvedge-system/fabric spec.nics: this edit would stop ",
            ),
            (
                "cidr: 10.20.8.0/24",
                "cidr: 10.20.8.0/30",
                "Network ips-net spec.ipv4.cidr: this edit would stop Layer2Attachment ips",
            ),
            (
                "cidr: 10.30.0.0/24",
                "cidr: 10.30.0.0/26",
                "Network lb spec.ipv4.cidr: this edit would stop Inbound b",
            ),
            // It is the address of a node.
            (
                "nextHop: {ipv4: 10.20.7.9}",
                "nextHop: {ipv4: 10.20.7.2}",
                "Destination hop spec.nextHop.ipv4: this edit would stop Layer2Attachment hop",
            ),
            (
                "{vrf: hand, vni: 1700",
                "{vrf: hnad, vni: 1700",
                "VRFRouteConfiguration h spec.vrf: this edit would stop Layer2NetworkConfiguration hl",
            ),
        ],
    )
}

#[test]
fn an_interface_has_no_name_of_a_device_that_is_there() -> anyhow::Result<()> {
    // The name of one that runs cannot be changed: it is a new one that has it.
    let store = "interfaceName: store, interfaceRef: bond1, mtu: 1500}\n";
    let new = |name: &str| {
        format!(
            r"{store}---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {{name: new-net}}
spec: {{vlan: 109}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2Attachment
metadata: {{name: new}}
spec: {{networkRef: new-net, interfaceName: {name}, interfaceRef: bond1}}
"
        )
    };
    let said = |what: &str| format!("Layer2Attachment new spec.interfaceName: {what}");
    for (name, what) in [
        ("lo", "\"lo\" is the loopback of every node"),
        ("hbn", "\"hbn\" is the trunk to the router"),
        ("eth1", "\"eth1\" is an uplink of node \"n1\""),
        ("bond1", "\"bond1\" is the device that the VLAN is on"),
        ("ens9", "\"ens9\" is a device of node \"n1\""),
    ] {
        changes_nothing(&running(), &[(store, &new(name), &said(what))])?;
    }
    Ok(())
}

#[test]
fn a_label_without_a_value_and_one_that_cannot_be_are_refused() -> anyhow::Result<()> {
    changes_nothing(
        &running(),
        &[
            (
                "nodeSelector: {matchLabels: {rack: r1}}",
                "nodeSelector: {matchLabels: {rack: null}}",
                "Layer2Attachment red spec.nodeSelector.matchLabels.rack: must be text, not empty",
            ),
            (
                "nodeSelector: {matchLabels: {rack: r1}}",
                "nodeSelector: {matchLabels: {a b: r1}}",
                "Layer2Attachment red spec.nodeSelector: \"a b\" is not the key of a label",
            ),
            (
                "nodeSelector: {matchLabels: {rack: r1}}",
                "nodeSelector: {matchLabels: {rack: r 1}}",
                "Layer2Attachment red spec.nodeSelector: \"r 1\", the value for \"rack\", is not the value of a label",
            ),
            (
                "name: red-dc, labels: {zone: red}",
                "name: red-dc, labels: {zone: null}",
                "Destination red-dc metadata.labels[\"zone\"]: has no value",
            ),
        ],
    )
}

#[test]
fn addresses_that_leave_nothing_or_lead_back_are_refused() -> anyhow::Result<()> {
    changes_nothing(
        &running(),
        &[
            (
                "interfaceName: ips, nodeIPs: {enabled: true}",
                "interfaceName: ips, nodeIPs: {enabled: true, reservedForPods: 300}",
                "Layer2Attachment ips spec.nodeIPs.reservedForPods: 300 addresses are reserved for pods, so 10.20.8.0/24 has none for the nodes",
            ),
            (
                "address: 10.250.0.10",
                "address: 10.99.0.1",
                "Collector tap spec.address: 10.99.0.1 is the address that the tunnel starts at on node \"n1\"",
            ),
            (
                "address: 10.250.0.10",
                "address: nowhere",
                "Collector tap spec.address: \"nowhere\" is not an IP address",
            ),
        ],
    )
}

#[test]
fn a_mirror_stays_while_its_claim_is_open_or_its_collector_is_gone() -> anyhow::Result<()> {
    let running = running();
    let without_address = without(&running, "kind: IPAddress")?;
    let other_pool = edited(
        &running,
        "InClusterIPPool, name: sources}}]}",
        "InClusterIPPool, name: others}}]}",
    )?;
    let other_loopback = edited(&running, "{name: lo.mir,", "{name: lo.new,")?;
    for new in [without_address, other_pool, other_loopback] {
        let plan = plan(&running, &new)?;
        assert!(plan.ends_with("nothing changes on any node\n"), "{plan}");
    }
    let plan = plan(&running, &without(&running, "kind: Collector")?)?;
    let said = "TrafficMirror tm spec.collector: Collector tap does not exist";
    assert!(plan.contains(said), "{plan}");
    assert_eq!(plan.matches("error:").count(), 1, "{plan}");
    assert!(plan.ends_with("nothing changes on any node\n"), "{plan}");
    Ok(())
}

#[test]
fn a_relabelled_node_keeps_what_it_runs() -> anyhow::Result<()> {
    let running = edited(
        RUNNING,
        "{matchLabels: {rack: r2}}",
        "{matchLabels: {b: x}}",
    )?;
    let running = edited(&running, "labels: {rack: r2}", "labels: {rack: r2, b: x}")?;
    // Blue is older, and comes to the node on which red runs the VLAN.
    let new = edited(&running, "labels: {rack: r1}", "labels: {rack: r1, b: x}")?;
    let plan = plan(&running, &new)?;
    let said = "Layer2Attachment blue spec.networkRef: VLAN 101 is already used by Layer2Attachment red on node \"n1\"";
    assert!(plan.contains(said), "{plan}");
    assert!(!plan.contains("VLAN 101:"), "{plan}");
    assert!(plan.contains("0 to change, 0 to remove"), "{plan}");
    Ok(())
}

#[test]
fn a_moved_range_of_vnis_renumbers_nothing_that_runs() -> anyhow::Result<()> {
    let running = edited(RUNNING, ", vni: 20101}", "}")?;
    let running = edited(
        &running,
        "routeTables: {first: 5000, last: 5099}",
        "l2VniRange: {first: 50000, last: 50010}",
    )?;
    for to in [
        "l2VniRange: {first: 51000, last: 51010}",
        "importMatch: Exact",
    ] {
        let new = edited(&running, "l2VniRange: {first: 50000, last: 50010}", to)?;
        let plan = plan(&running, &new)?;
        assert!(plan.contains("warning: "), "{plan}");
        assert!(
            plan.contains("Network red-net spec.vni: it keeps VNI 500"),
            "{plan}"
        );
        assert!(plan.ends_with("nothing changes on any node\n"), "{plan}");
    }
    Ok(())
}

#[test]
fn a_card_that_a_node_does_not_report_and_what_is_passed_over_are_said() -> anyhow::Result<()> {
    let new = edited(RUNNING, "nics: [eth1]", "nics: [eth1, eth9]")?;
    let text = plan(RUNNING, &new)?;
    let said = "Underlay selvedge-system/fabric spec.nics: node \"n1\" has no interface \"eth9\"";
    assert!(text.contains(said), "{text}");
    let new = edited(
        RUNNING,
        "kind: Node\nmetadata: {name: n2,",
        "kind: node\nmetadata: {name: n2,",
    )?;
    let text = plan(RUNNING, &new)?;
    let said = "Node n2 apiVersion: node of \"v1\" is ignored, and the object keeps its last state";
    assert!(text.contains(said), "{text}");
    assert!(text.ends_with("nothing changes on any node\n"), "{text}");
    let new = format!("{RUNNING}---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}}}\n");
    let text = plan(RUNNING, &new)?;
    let said = "skipped 1 object of other kinds: 1 v1/ConfigMap";
    assert!(text.contains(said), "{text}");
    Ok(())
}
