//! Ring 1: what the page about node selectors says is so, and a cluster is split by rack without touching what nodes forward.

use std::fs;

use crate::{
    ring1_plan::{planned, table},
    support::{repository, selvedge},
};

/// The blocks of a language on the page.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let start = format!("```{language}\n");
    let blocks = page.split(&start).skip(1);
    let blocks = blocks.filter_map(|block| block.split_once("```"));
    blocks.map(|(block, _)| block.to_owned()).collect()
}

#[test]
fn commands_of_the_page_about_selectors_answer_as_it_says() -> anyhow::Result<()> {
    let page = fs::read_to_string(repository("docs/selector-conflicts.md"))?;
    let folder = tempfile::tempdir()?;
    let objects = &blocks(&page, "yaml")[0];
    fs::write(folder.path().join("objects.yaml"), objects)?;
    fs::write(folder.path().join("later.yaml"), LATER)?;
    let mut commands = 0;
    for block in blocks(&page, "console") {
        let (command, answer) = block.split_once('\n').expect("a command and its answer");
        let words = command
            .strip_prefix("$ selvedge ")
            .expect("a command of ours");
        let words: Vec<String> = words
            .split(' ')
            .map(|word| match word.strip_suffix(".yaml") {
                Some(_) => folder.path().join(word).display().to_string(),
                None => word.to_owned(),
            })
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = selvedge(&words, "")?;
        let said = String::from_utf8([output.stderr, output.stdout].concat())?;
        let said = said.replace(&format!("{}/", folder.path().display()), "");
        assert_eq!(said.trim_end(), answer.trim_end(), "{command}");
        commands += 1;
    }
    assert_eq!(commands, 3);
    Ok(())
}

/// Two Underlays that no node fulfils both of.
const LATER: &str = r#"
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {gpu: "true"}}
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: Underlay
metadata: {name: gpu, namespace: net}
spec:
  nodeSelector: {matchLabels: {gpu: "true"}}
  asn: 64512
  nics: [eth1]
  neighbors: [{asn: 64500, address: 192.168.0.254}]
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: Underlay
metadata: {name: rack-2, namespace: net}
spec:
  nodeSelector: {matchLabels: {rack: rack-2}}
  asn: 64512
  nics: [eth1]
  neighbors: [{asn: 64500, address: 192.168.0.254}]
---
apiVersion: v1
kind: Node
metadata: {name: n2, labels: {rack: rack-2}}
"#;

/// A cluster with one Underlay for all nodes.
const WHOLE: &str = r"
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {rack: rack-1}}
---
apiVersion: v1
kind: Node
metadata: {name: n2, labels: {rack: rack-2}}
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: L3VNI
metadata: {name: red, namespace: net}
spec: {vrf: red, vni: 5001, hostsession: {asn: 64512, hostasn: 64600}}
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: Underlay
metadata: {name: everywhere, namespace: net}
spec: {asn: 64512, nics: [eth1], evpn: {vtepcidr: 100.65.0.0/24}, neighbors: [{asn: 64500, address: 192.168.0.254}]}
";

/// The Underlay of a rack, which says the same.
const RACK: &str = r"---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: Underlay
metadata: {name: rack-1, namespace: net}
spec: {nodeSelector: {matchLabels: {rack: rack-1}}, asn: 64512, nics: [eth1], evpn: {vtepcidr: 100.65.0.0/24}, neighbors: [{asn: 64500, address: 192.168.0.254}]}
";

#[test]
fn an_underlay_is_split_by_rack_without_touching_what_nodes_forward() -> anyhow::Result<()> {
    let both = format!("{WHOLE}{RACK}");
    let (text, is_well) = table(WHOLE, &both)?;
    assert!(
        !is_well && text.contains("nothing changes on any node"),
        "{text}"
    );
    let others = "spec: {nodeSelector: {matchExpressions: [{key: rack, operator: NotIn, values: [rack-1]}]}, asn: 64512, nics: [eth1]";
    let split = both.replacen("spec: {asn: 64512, nics: [eth1]", others, 1);
    let (text, is_well) = table(WHOLE, &split)?;
    assert!(is_well, "{text}");
    assert!(
        text.contains("source net/everywhere → net/rack-1"),
        "{text}"
    );
    assert!(text.contains("disrupts nothing that runs (none)"), "{text}");
    let plan = planned(WHOLE, &split)?;
    assert_eq!(plan["waves"].as_array().map_or(0, Vec::len), 0, "{plan:#}");

    // What then changes for one rack is announced, and touches that rack alone.
    let moved = split.replacen(
        "matchLabels: {rack: rack-1}}, asn: 64512, nics: [eth1]",
        "matchLabels: {rack: rack-1}}, asn: 64513, nics: [eth2]",
        1,
    );
    assert_ne!(moved, split);
    let (text, _) = table(&split, &moved)?;
    assert!(text.contains("touches  1 of 2 nodes"), "{text}");
    assert!(
        text.contains("session reset on n1: every BGP session (AS number)"),
        "{text}"
    );
    Ok(())
}
