//! Ring 1, answers: what `reach`, `plan`, `explain`, `where`, `ipam`, `compile` and `render` say of a small cluster.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::Value;

use crate::support::selvedge;

/// Four nodes of two racks, with attachments of all forms and a service.
const CLUSTER: &str = r#"
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {rack: r1, hw: new}}}
---
{apiVersion: v1, kind: Node, metadata: {name: n2, labels: {rack: r1, hw: old}}}
---
{apiVersion: v1, kind: Node, metadata: {name: n3, labels: {rack: r2, hw: new}}}
---
{apiVersion: v1, kind: Node, metadata: {name: n4, labels: {rack: r2, hw: old}}}
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: Underlay
metadata: {name: r1, namespace: selvedge-system}
spec:
  nodeSelector: {matchLabels: {rack: r1}}
  asn: 65101
  nics: [eth1]
  tunnelEndpoint: {cidrs: [100.65.1.0/29]}
  routeridcidr: 10.255.1.0/29
  neighbors:
  - {asn: 65001, address: 192.168.11.254, bfd: {}}
  - {asn: 65001, address: 192.168.12.254, bfd: {}}
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: Underlay
metadata: {name: r2, namespace: selvedge-system}
spec:
  nodeSelector: {matchLabels: {rack: r2}}
  asn: 65102
  nics: [eth1]
  tunnelEndpoint: {cidrs: [100.65.2.0/29]}
  routeridcidr: 10.255.2.0/29
  neighbors: [{asn: 65002, address: 192.168.21.254, bfd: {}}]
---
apiVersion: selvedge.dev/v1alpha1
kind: Settings
metadata: {name: default}
spec: {l2VniRange: {first: 20000, last: 20999}, rollout: {maxUnavailable: 1}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: VRF
metadata: {name: red}
spec: {vrf: red, vni: 10100, routeTarget: "64500:10100"}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Destination
metadata: {name: backbone, labels: {tenant: red}}
spec: {vrfRef: red, prefixes: [172.16.0.0/16]}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Destination
metadata: {name: filers, labels: {reach: storage}}
spec: {nextHop: {ipv4: 198.51.100.1}, prefixes: [10.80.0.0/16]}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: app}
spec: {ipv4: {cidr: 10.10.0.0/24}, vlan: 200}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2Attachment
metadata: {name: app}
spec: {networkRef: app, interfaceName: app, destinations: {matchLabels: {tenant: red}}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: cache}
spec: {ipv4: {cidr: 10.10.1.0/24}, vlan: 201}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2Attachment
metadata: {name: cache}
spec:
  networkRef: cache
  interfaceName: cache
  destinations: {matchLabels: {tenant: red}}
  nodeSelector: {matchLabels: {hw: new}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: sync}
spec: {vlan: 204}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2Attachment
metadata: {name: sync}
spec: {networkRef: sync, interfaceName: sync, disableAnycast: true, disableNeighborSuppression: true}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: storage}
spec: {ipv4: {cidr: 198.51.100.0/24}, vlan: 530}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2Attachment
metadata: {name: storage}
spec:
  networkRef: storage
  interfaceRef: bond2
  interfaceName: storage
  destinations: {matchLabels: {reach: storage}}
  nodeIPs: {enabled: true}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: lb}
spec: {ipv4: {cidr: 203.0.113.0/29}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Inbound
metadata: {name: lb}
spec: {networkRef: lb, destinations: {matchLabels: {tenant: red}}, count: 2, advertisement: {type: bgp}}
"#;

/// Runs a command on the cluster in a directory, and gives what it prints to standard output, to standard error, and the exit code.
fn run(directory: &Path, line: &str) -> anyhow::Result<(String, String, i32)> {
    let before = directory.join("before.yaml");
    fs::write(&before, CLUSTER)?;
    let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
    let before = before.display().to_string();
    let mut arguments = vec![command, "-f", before.as_str()];
    arguments.extend(rest.split('|').filter(|word| !word.is_empty()));
    let output = selvedge(&arguments, "")?;
    Ok((
        String::from_utf8(output.stdout)?,
        String::from_utf8(output.stderr)?,
        output.status.code().unwrap_or(-1),
    ))
}

fn told(line: &str) -> anyhow::Result<(String, String, i32)> {
    let directory = tempfile::tempdir()?;
    run(directory.path(), line)
}

/// The plan from the cluster to one in which texts are replaced.
fn planned(edits: &[(&str, &str)], options: &str) -> anyhow::Result<(String, String, i32)> {
    let directory = tempfile::tempdir()?;
    let mut text = CLUSTER.to_owned();
    for (from, to) in edits {
        anyhow::ensure!(text.contains(from), "the cluster has no {from:?}");
        text = text.replace(from, to);
    }
    let after = directory.path().join("after.yaml");
    fs::write(&after, text)?;
    run(
        directory.path(),
        &format!("plan --to|{}|{options}", after.display()),
    )
}

#[test]
fn reach_has_next_hops_and_services_and_says_what_reaches_nothing() -> anyhow::Result<()> {
    let (text, errors, code) = told("reach")?;
    assert_eq!((errors.as_str(), code), ("", 0));
    assert_eq!(
        text,
        "FROM        VIA       REACHES
app, cache  red       Destination backbone; Layer2Attachment app, cache
storage     next hop  Destination filers
Inbound lb  red       Destination backbone
only inside their own segment: sync
"
    );
    let (json, ..) = told("reach -o|json")?;
    let ways: Value = serde_json::from_str(&json)?;
    let of = |kind: &str, name: &str| -> Vec<&Value> {
        let all = ways.as_array().into_iter().flatten();
        let own = all.filter(|one| one["fromKind"] == kind && one["from"] == name);
        own.flat_map(|one| one["reaches"].as_array().into_iter().flatten())
            .collect()
    };
    let filers = serde_json::json!({"kind": "Destination", "name": "filers", "vrf": "next hop"});
    assert_eq!(of("Layer2Attachment", "storage"), [&filers]);
    assert_eq!(of("Inbound", "lb").len(), 1, "{json}");
    assert!(json.contains("\"sync\""), "{json}");
    // What is listed is what why-not says.
    for (from, to, is_there) in [
        ("storage", "filers", true),
        ("lb", "backbone", true),
        ("lb", "app", false),
    ] {
        let (text, ..) = told(&format!("why-not from|{from}|to|{to}"))?;
        assert_eq!(!text.contains("does not reach"), is_there, "{text}");
    }
    Ok(())
}

#[test]
fn a_change_that_other_objects_request_on_other_nodes_is_one_group() -> anyhow::Result<()> {
    let edit = [("vni: 10100", "vni: 10777")];
    let (text, ..) = planned(&edit, "")?;
    assert_eq!(
        text.matches("~ VRF red: vni 10100 → 10777").count(),
        1,
        "{text}"
    );
    assert!(text.contains("n[1-4] (4 nodes)\n"), "{text}");
    let (json, ..) = planned(&edit, "-o|json")?;
    let plan: Value = serde_json::from_str(&json)?;
    let groups = plan["groups"].as_array().map(Vec::as_slice);
    assert_eq!(groups.map(<[Value]>::len), Some(1), "{json}");
    // The objects of all its nodes are behind it.
    let behind = plan["groups"][0]["changes"][0]["behind"].as_array();
    let by = behind.into_iter().flatten().map(|one| one["by"].as_str());
    let by: Vec<&str> = by.flatten().collect();
    assert!(
        by.contains(&"Layer2Attachment/app") && by.contains(&"Layer2Attachment/cache"),
        "{by:?}"
    );
    Ok(())
}

#[test]
fn an_edit_inside_a_list_is_shown_at_its_place() -> anyhow::Result<()> {
    let of_rack = "{asn: 65001, address: 192.168.12.254, bfd: {}}";
    let (text, ..) = planned(
        &[(of_rack, "{asn: 65009, address: 192.168.12.254, bfd: {}}")],
        "",
    )?;
    let first = text.lines().next().unwrap_or_default();
    assert!(
        first.starts_with("~ Underlay selvedge-system/r1 neighbors[1].asn: 65001 → 65009 "),
        "{text}"
    );
    assert!(
        text.contains("~ underlay peer 192.168.12.254: remote AS 65001 → 65009 [session reset]"),
        "{text}"
    );
    // Entries that come and go are named whole.
    let (text, ..) = planned(&[(&format!("  - {of_rack}\n"), "")], "")?;
    assert!(
        text.contains("neighbors: -address 192.168.12.254, asn 65001, bfd "),
        "{text}"
    );
    Ok(())
}

#[test]
fn groups_with_what_disturbs_come_first() -> anyhow::Result<()> {
    // The Destination changes all nodes; the session is reset on those of the second rack.
    let edits = [
        ("asn: 65002", "asn: 65003"),
        ("[172.16.0.0/16]", "[172.16.0.0/16, 172.17.0.0/16]"),
    ];
    let (text, ..) = planned(&edits, "")?;
    let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
    assert!(place("\nn[3-4]\n") < place("\nn[1-2]\n"), "{text}");
    Ok(())
}

#[test]
fn an_edit_that_changes_no_node_is_a_change_for_scripts() -> anyhow::Result<()> {
    let edit = [("maxUnavailable: 1", "maxUnavailable: 2")];
    let (text, _, code) = planned(&edit, "--detailed-exitcode")?;
    assert!(text.contains("nothing changes on any node"), "{text}");
    assert_eq!(code, 2, "{text}");
    let (_, _, code) = planned(&[], "--detailed-exitcode")?;
    assert_eq!(code, 0);
    Ok(())
}

#[test]
fn an_answer_shows_all_fields_of_an_element_or_marks_what_it_leaves_out() -> anyhow::Result<()> {
    let (text, ..) = told("explain neighbor|192.168.11.254|remote-as|65001")?;
    let fields = text
        .lines()
        .find(|line| line.contains("address 192.168.11.254,"));
    let fields = fields.unwrap_or_default();
    for field in ["remoteAs asn 65001", "bfd"] {
        assert!(
            fields.split(", ").any(|one| one.trim() == field),
            "{field}: {text}"
        );
    }
    Ok(())
}

#[test]
fn every_line_of_a_configuration_can_be_explained() -> anyhow::Result<()> {
    let (conf, ..) = told("render --node|n1")?;
    // One line of each statement: every question compiles the cluster.
    let mut lines: BTreeMap<&str, &str> = BTreeMap::new();
    for line in conf.lines().map(str::trim) {
        if !line.starts_with('!') && !line.is_empty() {
            lines.insert(line.split(' ').next().unwrap_or_default(), line);
        }
    }
    assert!(lines.len() > 12, "{conf}");
    let mut wrong = Vec::new();
    for line in lines.into_values() {
        let (text, errors, code) = told(&format!("explain --node|n1|{line}"))?;
        let of_no_object = errors.contains("is in every frr.conf: it comes from no object");
        if code != 0 || text.is_empty() != of_no_object {
            wrong.push(format!("{line}: {code} {text}{errors}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let line = "ip prefix-list none seq 5 permit 10.0.0.0/8";
    let (_, errors, code) = told(&format!("explain {line}"))?;
    assert_eq!(code, 1);
    assert_eq!(
        errors,
        format!("{line:?} is no line of frr.conf on any node\n")
    );
    Ok(())
}

#[test]
fn an_element_can_be_asked_for_as_it_is_printed() -> anyhow::Result<()> {
    let (json, ..) = told("explain --node|n1|-o|json|l2a/app")?;
    let answers: Value = serde_json::from_str(&json)?;
    let elements = answers[0]["elements"].as_array();
    let texts = elements
        .into_iter()
        .flatten()
        .map(|one| one["text"].as_str());
    let texts: Vec<&str> = texts.flatten().collect();
    assert!(texts.len() > 5, "{json}");
    for text in texts {
        for question in [text.to_owned(), text.to_lowercase()] {
            let (answer, errors, code) = told(&format!("explain --node|n1|{question}"))?;
            assert_eq!(code, 0, "{question}: {errors}");
            assert!(
                answer.lines().any(|line| line.eq_ignore_ascii_case(text)),
                "{question}: {answer}"
            );
        }
    }
    Ok(())
}

#[test]
fn an_address_that_some_nodes_have_comes_before_routes_around_it() -> anyhow::Result<()> {
    for command in ["explain", "where"] {
        let (text, ..) = told(&format!("{command} 192.168.21.254"))?;
        let place = |what: &str| text.find(what).unwrap_or(usize::MAX);
        let peer = place("underlay peer 192.168.21.254");
        assert!(peer < usize::MAX, "{text}");
        assert!(peer < place("VRF"), "{text}");
    }
    Ok(())
}

#[test]
fn an_answer_about_a_requester_has_only_what_it_requests() -> anyhow::Result<()> {
    for command in ["explain", "where"] {
        let (text, ..) = told(&format!("{command} l2a/app"))?;
        assert!(text.contains("VLAN 200"), "{text}");
        assert!(!text.contains("203.0.113."), "{text}");
    }
    Ok(())
}

#[test]
fn a_pool_has_only_addresses_that_can_be_given() -> anyhow::Result<()> {
    let (json, ..) = told("ipam -o|json")?;
    let pools: Value = serde_json::from_str(&json)?;
    let pool = |prefix: &str| {
        let mut pools = pools.as_array().into_iter().flatten();
        let pool = pools.find(|one| one["prefix"] == prefix);
        pool.map(|one| {
            (
                one["size"].clone(),
                one["used"].clone(),
                one["free"].clone(),
            )
        })
    };
    let numbers = |size: u32, used: u32| Some((size.into(), used.into(), (size - used).into()));
    assert_eq!(pool("100.65.1.0/29"), numbers(6, 2));
    assert_eq!(pool("10.255.2.0/29"), numbers(6, 2));
    assert_eq!(pool("203.0.113.0/29"), numbers(6, 2));
    let (text, ..) = told("ipam")?;
    assert!(text.contains("Underlay r[1-2]"), "{text}");
    Ok(())
}

#[test]
fn a_list_without_anything_says_so() -> anyhow::Result<()> {
    let (text, ..) = told("compile --what|problems")?;
    assert_eq!(text, "no errors and no warnings\n");
    let (text, ..) = told("compile --what|revision")?;
    assert!(!text.contains("STATE"), "{text}");
    Ok(())
}

#[test]
fn files_of_all_nodes_are_not_selected_by_part() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let to = directory.path().display();
    for option in ["--what|linux", "--domain|host"] {
        let (_, errors, code) = told(&format!("render --all|-d|{to}|{option}"))?;
        assert_eq!(code, 2, "{errors}");
        assert!(errors.contains("cannot be used with"), "{errors}");
    }
    Ok(())
}

#[test]
fn a_pool_without_addresses_names_the_nodes_of_all_groups() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let text = CLUSTER.replace("100.65.1.0/29", "100.65.1.8/32");
    let file = directory.path().join("small.yaml");
    fs::write(
        &file,
        format!(
            "{text}---\n{{apiVersion: v1, kind: Node, metadata: {{name: n5, labels: {{rack: r1, hw: new}}}}}}\n"
        ),
    )?;
    let file = file.display().to_string();
    let output = selvedge(&["validate", "-f", &file, "-o", "json"], "")?;
    let problems: Value = serde_json::from_slice(&output.stdout)?;
    let errors = problems.as_array().into_iter().flatten();
    let errors = errors.filter(|one| one["reason"] == "PoolExhausted");
    let errors: Vec<_> = errors
        .map(|one| (one["field"].as_str(), one["message"].as_str()))
        .collect();
    let message = "100.65.1.8/32 has no address left for nodes \"n2\", \"n5\"";
    assert_eq!(errors.len(), 1, "{problems:#}");
    let (field, text) = errors.first().copied().unwrap_or_default();
    assert_eq!(field, Some("spec.tunnelEndpoint.cidrs[0]"));
    assert!(text.is_some_and(|text| text.contains(message)), "{text:?}");
    Ok(())
}
