//! Ring 1, EVPN on the host: the reference for its devices has what the example of FRRConfigurations needs, and what is rendered for the
//! host is what the node runs.

use std::fs;

use anyhow::Context as _;
use api::tcaas::node_network_config::{HostRouter, MissingKind};
use frr::{FrrVersion, Secrets, host, parse};
use serde_json::Value;

use crate::support::{repository, selvedge};

const EXAMPLE: &str = "examples/host-evpn";

/// The arguments that the page gives the script on `metal-1`.
fn arguments() -> anyhow::Result<Vec<String>> {
    let page = fs::read_to_string(repository(EXAMPLE).join("README.md"))?;
    let mut lines = page.lines();
    let words = lines
        .find_map(|line| line.strip_prefix("sh host-evpn.sh up "))
        .context("the page runs the script")?;
    Ok(words.split_whitespace().map(str::to_owned).collect())
}

fn output(arguments: &[&str]) -> anyhow::Result<String> {
    let folder = repository(EXAMPLE).display().to_string();
    let output = selvedge(
        &[&arguments[..1], &["-f", &folder], &arguments[1..]].concat(),
        "",
    )?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    anyhow::ensure!(output.status.success(), "{said}");
    Ok(String::from_utf8(output.stdout)?)
}

fn router(node: &str) -> anyhow::Result<HostRouter> {
    let nodes = output(&["compile", "--what", "nodes", "--node", node, "-o", "json"])?;
    let nodes: Vec<Value> = serde_json::from_str(&nodes)?;
    Ok(serde_json::from_value(
        nodes[0]["spec"]["hostRouter"].clone(),
    )?)
}

#[test]
fn the_reference_devices_are_those_that_the_example_needs() -> anyhow::Result<()> {
    let arguments = arguments()?;
    let router = router("metal-1")?;
    let made = host::desired(&router, &Secrets::new(), FrrVersion::NEWEST);
    assert_eq!(made.unsupported, []);
    assert_eq!(made.needs.len(), 3);
    for need in &made.needs {
        let wanted = match need.kind {
            MissingKind::Vrf => format!(":{}:", need.name),
            MissingKind::L2vni => format!("l2:{}:", need.name),
            MissingKind::L3vni => format!("l3:{}:{}:", need.name, need.vrf),
            MissingKind::Interface => continue,
        };
        let has = arguments.iter().any(|it| it.contains(&wanted));
        assert!(has, "{wanted} in {arguments:?}");
    }
    // The VTEP is announced to the fabric.
    let vtep = arguments[0].as_str();
    let networks = made.config.bgp[&None].ipv4.networks.iter();
    assert_eq!(
        networks.map(ToString::to_string).collect::<Vec<_>>(),
        [format!("{vtep}/32")]
    );
    Ok(())
}

#[test]
fn what_is_rendered_for_the_host_is_what_its_frr_is_to_run() -> anyhow::Result<()> {
    let router = router("metal-2")?;
    for version in FrrVersion::SUPPORTED {
        let number = version.to_string();
        let text = output(&[
            "render",
            "--node",
            "metal-2",
            "--what",
            "frr",
            "--domain",
            "host",
            "--frr-version",
            &number,
        ])?;
        let parsed = parse(&text, version);
        assert_eq!(parsed.unknown, []);
        let wanted = host::desired(&router, &Secrets::new(), version).config;
        assert_eq!(parsed.config, wanted, "{text}");
    }
    let folder = tempfile::tempdir()?;
    let directory = folder.path().display().to_string();
    output(&["render", "--all", "-d", &directory])?;
    let file = folder.path().join("metal-2/frr-host.conf");
    assert!(fs::read_to_string(file)?.contains("router bgp 64512 vrf tenant-red\n"));
    Ok(())
}

/// What `validate` refuses of raw configuration is what the agent refuses: with its line, before an object reaches a node.
#[test]
fn validation_knows_raw_configuration_as_nodes_do() -> anyhow::Result<()> {
    const OBJECTS: &str = r"
apiVersion: selvedge.dev/v1alpha1
kind: Settings
metadata: {name: default}
spec: {frrConfigurations: {allowRaw: true}}
---
apiVersion: frrk8s.metallb.io/v1beta1
kind: FRRConfiguration
metadata: {name: a, namespace: selvedge-system}
spec:
  bgp: {routers: [{asn: 64512, id: 192.0.2.9, neighbors: [{address: 192.0.2.1, asn: 64500, passwordSecret: {name: s}}]}]}
  raw:
    rawConfig: |
      ! a comment with a password
      router bgp 64512
       neighbor 192.0.2.1 wings
       neighbor 192.0.2.1 timers 3 9
      line vty
";
    const NODE: &str = "---\napiVersion: v1\nkind: Node\nmetadata: {name: n1}\n";
    for objects in [OBJECTS.to_owned(), format!("{OBJECTS}{NODE}")] {
        let output = selvedge(&["validate", "-f", "-"], &objects)?;
        let said = String::from_utf8(output.stdout)? + &String::from_utf8(output.stderr)?;
        let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
        for line in [
            "line 3 is not applied: neighbor 192.0.2.1 wings: the grammar",
            "line 5 is not applied: line vty: raw configuration is of BGP",
        ] {
            assert!(words.contains(line), "{line}: {said}");
        }
        assert_eq!(words.matches("is not applied").count(), 2, "{said}");
        assert_eq!(output.status.code(), Some(0), "{said}");
    }
    Ok(())
}
