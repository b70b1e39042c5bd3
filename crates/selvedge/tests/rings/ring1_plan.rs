//! Ring 1, plans: what a person reads before a change.

use std::{fs, io::Write as _, process::Output};

use crate::support::{repository, selvedge};

/// The line of a text on which something begins.
fn line(text: &str, what: &str) -> usize {
    let before = text.split(what).next().unwrap_or_default();
    before.lines().count() + 1
}

#[test]
fn a_plan_says_what_changes_where_and_who_is_behind_it() -> anyhow::Result<()> {
    let example = fs::read_to_string(repository("examples/two-tenants.yaml"))?;
    let everywhere = "  destinations: {matchLabels: {zone: secure}}\n  nodeSelector: {matchLabels: {workers: blue}}";
    anyhow::ensure!(
        example.contains(everywhere) && example.contains("mtu: 9000"),
        "the example has changed"
    );
    let changed = example
        .replace(everywhere, "  destinations: {matchLabels: {zone: secure}}")
        .replace("mtu: 9000", "mtu: 8000");
    // The selector stands on the line behind.
    let selector = line(&example, everywhere) + 1;
    let mtu = line(&changed, "  mtu: 8000");
    let mut after = tempfile::Builder::new().suffix(".yaml").tempfile()?;
    after.write_all(changed.as_bytes())?;
    let after = after.path().display().to_string();
    let before = repository("examples/two-tenants.yaml")
        .display()
        .to_string();

    let output = selvedge(&["plan", "-f", &before, "--to", &after], "")?;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(
        String::from_utf8(output.stdout)?,
        format!(
            "~ Layer2Attachment sensors nodeSelector: matchLabels workers blue → none   {before}:{selector}:3
~ Layer2Attachment shop mtu: 9000 → 8000   {after}:{mtu}:3

worker-3
  because of Layer2Attachment sensors (nodeSelector)
    + VRF m2m_enc imports 198.51.100.0/26 from cluster
    + VRF m2m_enc announces 198.51.100.0/26
    + traffic from 198.51.100.0/26 to anywhere is routed by s-m2m_enc
    + VLAN 235
    + VLAN 235 gateway
    + VLAN 235 interface l2.sensors
  because of Layer2Attachment shop (mtu)
    ~ VLAN 300: mtu 9000 → 8000 [data-plane rebuild]

6 to add, 1 to change, 0 to remove; 1 data-plane rebuild
touches  1 of 3 nodes; 2 intents: Layer2Attachment sensors, shop
disrupts data-plane rebuild on worker-3: VLAN 300
rollout  1 wave: worker-3
"
        )
    );
    let exact = selvedge(&["plan", "-f", &before, "--to", &after, "-o", "json"], "")?;
    let exact: serde_json::Value = serde_json::from_slice(&exact.stdout)?;
    let plan = &exact;
    assert_eq!(
        plan["total"],
        serde_json::json!({"added": 6, "changed": 1, "removed": 0, "rebuilds": 1})
    );
    assert_eq!(plan["radius"]["nodes"], 1);
    assert_eq!(plan["waves"], serde_json::json!([["worker-3"]]));
    let changes = plan["groups"][0]["changes"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let mtu = changes.iter().find(|change| change["change"] == "changed");
    let mtu = mtu.ok_or_else(|| anyhow::anyhow!("nothing is changed"))?;
    assert_eq!(
        mtu["element"],
        serde_json::json!({"kind": "segment", "vlan": 300})
    );
    assert_eq!(
        (&mtu["was"]["mtu"], &mtu["becomes"]["mtu"]),
        (&9000.into(), &8000.into())
    );
    let fields = mtu["behind"][0]["fields"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let field = serde_json::json!({"object": "Layer2Attachment/shop", "field": "spec.mtu"});
    assert!(fields.contains(&field), "{fields:?}");
    let same = selvedge(&["plan", "-f", &before, "--to", &before], "")?;
    assert_eq!(
        String::from_utf8(same.stdout)?,
        "nothing changes on any node\n"
    );
    Ok(())
}

/// A cluster of three nodes on two Networks: addresses of nodes, an Inbound and an Outbound on one of them.
pub(crate) const CLUSTER: &str = r#"
{apiVersion: v1, kind: Node, metadata: {name: n1}}
---
{apiVersion: v1, kind: Node, metadata: {name: n2}}
---
{apiVersion: v1, kind: Node, metadata: {name: n3}}
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: Underlay
metadata: {name: fabric, namespace: selvedge-system}
spec: {asn: 64514, nics: [eth1], evpn: {vtepcidr: 100.65.0.0/24}, neighbors: [{asn: 64512, address: 192.168.11.2}]}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: VRF
metadata: {name: m2m}
spec: {vrf: m2m, vni: 10100, routeTarget: "64500:10100"}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Destination
metadata: {name: meters, labels: {zone: m2m}}
spec: {vrfRef: m2m, prefixes: [192.0.2.0/24]}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: a-net}
spec: {ipv4: {cidr: 198.51.100.0/26}, vlan: 101, vni: 10101}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2Attachment
metadata: {name: a}
spec: {networkRef: a-net, interfaceName: a, nodeIPs: {enabled: true}, destinations: {matchLabels: {zone: m2m}}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Inbound
metadata: {name: web}
spec: {networkRef: a-net, count: 2, destinations: {matchLabels: {zone: m2m}}, advertisement: {type: bgp}}
"#;

/// Plans from one set of manifests to another.
pub(crate) fn plan(before: &str, after: &str, more: &[&str]) -> anyhow::Result<Output> {
    let file = |text: &str| -> anyhow::Result<tempfile::NamedTempFile> {
        let mut file = tempfile::Builder::new().suffix(".yaml").tempfile()?;
        file.write_all(text.as_bytes())?;
        Ok(file)
    };
    let (before, after) = (file(before)?, file(after)?);
    let [before, after] = [&before, &after].map(|file| file.path().display().to_string());
    let arguments = ["plan", "-f", &before, "--to", &after];
    selvedge(&[&arguments, more].concat(), "")
}

/// What a person reads, and whether nothing is wrong.
pub(crate) fn table(before: &str, after: &str) -> anyhow::Result<(String, bool)> {
    let output = plan(before, after, &["--all"])?;
    let text = [output.stdout, output.stderr].concat();
    Ok((String::from_utf8(text)?, output.status.success()))
}

/// The plan as JSON.
pub(crate) fn planned(before: &str, after: &str) -> anyhow::Result<serde_json::Value> {
    let output = plan(before, after, &["-o", "json"])?;
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).map_err(|error| {
        let said = String::from_utf8_lossy(&output.stderr);
        anyhow::anyhow!("{error}: {said}")
    })?;
    Ok(plan)
}

/// The nodes that a plan touches.
fn touched(plan: &serde_json::Value) -> Vec<String> {
    let groups = plan["groups"].as_array().into_iter().flatten();
    let nodes = groups.flat_map(|group| group["nodes"].as_array().into_iter().flatten());
    let mut nodes: Vec<String> = nodes
        .filter_map(|node| node.as_str().map(str::to_owned))
        .collect();
    nodes.sort();
    nodes
}

#[test]
fn removing_a_node_touches_that_node_alone() -> anyhow::Result<()> {
    let without = CLUSTER.replacen(
        "{apiVersion: v1, kind: Node, metadata: {name: n1}}\n---",
        "",
        1,
    );
    anyhow::ensure!(without != CLUSTER, "the node is there");
    let plan = planned(CLUSTER, &without)?;
    assert_eq!(touched(&plan), ["n1"], "{plan:#}");
    assert_eq!(plan["total"]["added"], 0, "{plan:#}");
    assert_eq!(plan["total"]["changed"], 0, "{plan:#}");
    Ok(())
}

#[test]
fn adding_an_inbound_moves_no_address() -> anyhow::Result<()> {
    // By its name it would be served before all others if they held nothing.
    let more = format!(
        "{CLUSTER}---\napiVersion: network.t-caas.telekom.com/v1alpha1\nkind: Inbound\nmetadata: {{name: aaa}}\n\
         spec: {{networkRef: a-net, count: 3, destinations: {{matchLabels: {{zone: m2m}}}}, advertisement: {{type: bgp}}}}\n"
    );
    let plan = planned(CLUSTER, &more)?;
    assert_eq!(touched(&plan), ["n1", "n2", "n3"]);
    assert_eq!(plan["total"]["removed"], 0, "{plan:#}");
    assert_eq!(plan["total"]["changed"], 0, "{plan:#}");
    let text = plan.to_string();
    assert!(text.contains("Inbound/aaa"), "{plan:#}");
    for element in ["hostAddress", "underlay"] {
        assert!(
            !text.contains(element),
            "an address of a node moved: {plan:#}"
        );
    }
    Ok(())
}

#[test]
fn a_broken_reference_removes_nothing() -> anyhow::Result<()> {
    for (from, to) in [
        (
            "{networkRef: a-net, interfaceName",
            "{networkRef: gone, interfaceName",
        ),
        (
            "{networkRef: a-net, count: 2",
            "{networkRef: gone, count: 2",
        ),
        ("{vrfRef: m2m,", "{vrfRef: gone,"),
        ("metadata: {name: a-net}", "metadata: {name: renamed}"),
        ("metadata: {name: m2m}", "metadata: {name: renamed}"),
    ] {
        let broken = CLUSTER.replacen(from, to, 1);
        anyhow::ensure!(broken != CLUSTER, "{from} is there");
        let plan = planned(CLUSTER, &broken)?;
        assert_eq!(touched(&plan), Vec::<String>::new(), "{to}: {plan:#}");
    }
    Ok(())
}

#[test]
fn a_plan_names_nodes_whose_config_needs_an_approval() -> anyhow::Result<()> {
    let start = CLUSTER.find("apiVersion: openpe").unwrap_or_default();
    let (nodes, rest) = CLUSTER.split_at(start);
    let end = rest.find("---").unwrap_or_default();
    let without = format!("{nodes}{}", &rest[end + 4..]);
    let plan = planned(CLUSTER, &without)?;
    let all = serde_json::json!({"n1": "underlay", "n2": "underlay", "n3": "underlay"});
    assert_eq!(plan["needsApproval"], all, "{plan:#}");
    assert_eq!(plan["waves"], serde_json::json!([]), "they are in no wave");

    let no_overlay = CLUSTER.replacen("evpn: {vtepcidr: 100.65.0.0/24}, ", "", 1);
    let plan = planned(CLUSTER, &no_overlay)?;
    let all = serde_json::json!({"n1": "allVrfs", "n2": "allVrfs", "n3": "allVrfs"});
    assert_eq!(plan["needsApproval"], all, "{plan:#}");

    // What a tenant takes away on purpose needs none.
    let start = CLUSTER.find("apiVersion: network").unwrap_or_default();
    let plan = planned(CLUSTER, CLUSTER[..start].trim_end().trim_end_matches("---"))?;
    assert_eq!(plan["needsApproval"], serde_json::Value::Null, "{plan:#}");
    Ok(())
}

/// Two tenants that run beside each other. The objects of `a` are the older ones.
const TENANTS: &str = r#"
{apiVersion: v1, kind: Node, metadata: {name: n1}}
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: Underlay
metadata: {name: fabric, namespace: selvedge-system}
spec: {asn: 64514, nics: [eth1], evpn: {vtepcidr: 100.65.0.0/24}, neighbors: [{asn: 64512, address: 192.168.11.2}]}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: VRF
metadata: {name: a-vrf, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {vrf: a, vni: 20101, routeTarget: "64500:20101"}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: VRF
metadata: {name: b-vrf, creationTimestamp: "2026-02-01T00:00:00Z"}
spec: {vrf: b, vni: 20102, routeTarget: "64500:20102"}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: VRF
metadata: {name: mirror}
spec: {vrf: mirror, vni: 20103, routeTarget: "64500:20103", loopbacks: [{name: lo.mir, poolRef: {apiGroup: ipam.cluster.x-k8s.io, kind: InClusterIPPool, name: ips}}]}
---
apiVersion: ipam.cluster.x-k8s.io/v1beta2
kind: IPAddress
metadata: {name: given, namespace: selvedge-system}
spec: {claimRef: {name: mirror-lo.mir-n1}, poolRef: {apiGroup: ipam.cluster.x-k8s.io, kind: InClusterIPPool, name: ips}, address: 10.99.0.1, prefix: 32}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Destination
metadata: {name: behind-a, labels: {zone: a}}
spec: {vrfRef: a-vrf, prefixes: [192.0.2.0/26]}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Destination
metadata: {name: behind-b, labels: {zone: b}}
spec: {vrfRef: b-vrf, prefixes: [192.0.2.64/26]}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: a-net, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {ipv4: {cidr: 198.51.100.0/26}, vlan: 101, vni: 10101}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: b-net, creationTimestamp: "2026-02-01T00:00:00Z"}
spec: {ipv4: {cidr: 198.51.100.64/26}, vlan: 102, vni: 10102}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: shared-net}
spec: {ipv4: {cidr: 203.0.113.0/24}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2Attachment
metadata: {name: a, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {networkRef: a-net, interfaceName: if-a, destinations: {matchLabels: {zone: a}}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2Attachment
metadata: {name: b, creationTimestamp: "2026-02-01T00:00:00Z"}
spec: {networkRef: b-net, interfaceName: if-b, destinations: {matchLabels: {zone: b}}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Inbound
metadata: {name: a, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {networkRef: shared-net, addresses: {ipv4: [203.0.113.5]}, advertisement: {type: bgp}, destinations: {matchLabels: {zone: a}}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Inbound
metadata: {name: b, creationTimestamp: "2026-02-01T00:00:00Z"}
spec: {networkRef: shared-net, addresses: {ipv4: [203.0.113.6]}, advertisement: {type: bgp}, destinations: {matchLabels: {zone: b}}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: BGPPeering
metadata: {name: a, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {peeringVlan: {name: by-hand-a}, remoteASN: 65001}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: BGPPeering
metadata: {name: b, creationTimestamp: "2026-02-01T00:00:00Z"}
spec: {peeringVlan: {name: by-hand-b}, remoteASN: 65002}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2NetworkConfiguration
metadata: {name: by-hand-a, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {id: 201, mtu: 1500, vni: 10201, vrf: cluster, anycastGateways: [192.0.2.129/28], anycastMac: "02:00:5e:00:01:01"}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2NetworkConfiguration
metadata: {name: by-hand-b, creationTimestamp: "2026-02-01T00:00:00Z"}
spec: {id: 202, mtu: 1500, vni: 10202, vrf: cluster, anycastGateways: [192.0.2.145/28], anycastMac: "02:00:5e:00:01:01"}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Collector
metadata: {name: a, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {address: 192.0.2.201, protocol: l3gre, key: 1, mirrorVRF: {name: mirror}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Collector
metadata: {name: b, creationTimestamp: "2026-02-01T00:00:00Z"}
spec: {address: 192.0.2.201, protocol: l3gre, key: 2, mirrorVRF: {name: mirror}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: TrafficMirror
metadata: {name: a}
spec: {source: {kind: Layer2Attachment, name: a}, collector: a, direction: ingress}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: TrafficMirror
metadata: {name: b}
spec: {source: {kind: Layer2Attachment, name: b}, collector: b, direction: ingress}
"#;

#[test]
fn what_runs_keeps_its_number_name_session_tunnel_and_address() -> anyhow::Result<()> {
    // Each time the older object is edited to what the younger one runs.
    for (from, to, said) in [
        (
            "vlan: 101",
            "vlan: 102",
            "VLAN 102 is already used by Layer2Attachment b",
        ),
        (
            "vni: 10101",
            "vni: 10102",
            "VNI 10102 is already used by Network b-net",
        ),
        (
            "vni: 20101",
            "vni: 20102",
            "VNI 20102 is already used by VRF b-vrf",
        ),
        (
            "anycastMac: \"02:00:5e:00:01:01\"}",
            "anycastMac: \"02:00:5e:00:01:01\", interfaceName: if-b}",
            "device name \"l2.if-b\" is already used by Layer2Attachment b",
        ),
        (
            "[203.0.113.5]",
            "[203.0.113.6]",
            "203.0.113.6 is already used by Inbound b",
        ),
        (
            "{name: by-hand-a}, remoteASN",
            "{name: by-hand-b}, remoteASN",
            "BGPPeering b already has the sessions",
        ),
        ("key: 1,", "key: 2,", "Collector b already has a tunnel"),
        (
            "vni: 10201",
            "vni: 10202",
            "VNI 10202 is already used by Layer2NetworkConfiguration by-hand-b",
        ),
        (
            "id: 201",
            "id: 202",
            "VLAN 202 is already used by Layer2NetworkConfiguration by-hand-b",
        ),
    ] {
        let edited = TENANTS.replacen(from, to, 1);
        anyhow::ensure!(edited != TENANTS, "{from} is there");
        let plan = planned(TENANTS, &edited)?;
        assert_eq!(touched(&plan), Vec::<String>::new(), "{to}: {plan:#}");
        let (text, is_fine) = table(TENANTS, &edited)?;
        assert!(text.contains(said) && !is_fine, "{to}: {text}");
        assert!(text.contains("nothing changes on any node"), "{to}: {text}");
    }
    Ok(())
}
