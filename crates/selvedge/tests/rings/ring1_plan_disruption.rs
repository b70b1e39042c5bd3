//! Ring 1, plans: the disruption class of a change, as FRR and the kernel take it.

use std::collections::BTreeSet;

use api::tcaas::NodeNetworkConfigSpec;
use frr::{FrrVersion, RouterChange};
use linux::{
    Disruption, LinkId, Observed, ObservedLink, model::apply_to_model, object::Kind, owned::Owner,
};

use crate::{
    ring1_plan::{CLUSTER, planned, table},
    support::selvedge,
};

/// The cluster with a second prefix, a session of workloads, and more to take away.
fn cluster() -> String {
    let cluster = CLUSTER
        .replace("[192.0.2.0/24]", "[192.0.2.0/24, 198.18.0.0/15]")
        .replace("nodeIPs: {enabled: true}, ", "")
        .replace("advertisement: {type: bgp}", "disableLoadBalancer: true")
        .replace(
            "address: 192.168.11.2}",
            "address: 192.168.11.2}, {asn: 64512, address: 192.168.12.2}",
        );
    format!(
        "{cluster}---\napiVersion: network.t-caas.telekom.com/v1alpha1\nkind: Network\nmetadata: {{name: b-net}}\n\
         spec: {{ipv4: {{cidr: 198.51.101.0/24}}, vlan: 102, vni: 10102}}\n\
         ---\napiVersion: selvedge.dev/v1alpha1\nkind: Settings\nmetadata: {{name: default}}\n\
         spec: {{trunk: {{addresses: [169.254.100.1/31, \"2001:db8:ff::1/127\"]}}}}\n\
         ---\napiVersion: network.t-caas.telekom.com/v1alpha1\nkind: BGPNeighbor\nmetadata: {{name: speakers}}\n\
         spec: {{allowedInbounds: [{{name: web}}], workloadAS: \"65100\"}}\n"
    )
}

/// An attachment of the Network that no other uses.
const ATTACHMENT: &str = "---\napiVersion: network.t-caas.telekom.com/v1alpha1\nkind: Layer2Attachment\nmetadata: {name: b}\n\
     spec: {networkRef: b-net, interfaceName: b, destinations: {matchLabels: {zone: m2m}}}\n";

/// An edit, and the classes that the plan names for it beside those that disturb nothing.
const EDITS: [(&str, &str, &[&str]); 16] = [
    ("192.0.2.0/24, 198.18.0.0/15", "192.0.2.0/24", &[]),
    ("198.18.0.0/15", "198.18.0.0/15, 198.20.0.0/16", &[]),
    ("count: 2", "count: 3", &[]),
    (
        "ipv4: {cidr: 198.51.100.0/26}",
        "ipv4: {cidr: 198.51.100.0/26}, ipv6: {cidr: \"2001:db8:1::/64\"}",
        &[],
    ),
    (
        "{asn: 64512, address: 192.168.12.2}",
        "{asn: 64512, address: 192.168.12.2, connectTime: 20s}",
        &[],
    ),
    (
        "{asn: 64512, address: 192.168.12.2}",
        "{asn: 64512, address: 192.168.12.2}, {asn: 64512, address: 192.168.13.2}",
        &[],
    ),
    (
        ", {asn: 64512, address: 192.168.12.2}",
        "",
        &["sessionReset"],
    ),
    (
        "{asn: 64512, address: 192.168.12.2}",
        "{asn: 64513, address: 192.168.12.2}",
        &["sessionReset"],
    ),
    (
        "{asn: 64512, address: 192.168.12.2}",
        "{asn: 64512, address: 192.168.12.2, port: 1790}",
        &["sessionReset"],
    ),
    (
        "asn: 64514",
        "gracefulRestart: {restartTimeSeconds: 130}, asn: 64514",
        &["sessionReset"],
    ),
    ("asn: 64514", "asn: 64515", &["sessionReset"]),
    (
        "evpn: {vtepcidr",
        "routeridcidr: 10.9.0.0/24, evpn: {vtepcidr",
        &["sessionReset"],
    ),
    ("\"65100\"", "\"65101\"", &["sessionReset"]),
    ("100.65.0.0/24", "100.66.0.0/24", &["rebuild"]),
    ("nics: [eth1]", "nics: [eth1, eth2]", &["rebuild"]),
    (
        "interfaceName: a,",
        "interfaceName: a, mtu: 1400,",
        &["rebuild"],
    ),
];

#[test]
fn a_plan_names_the_disruption_of_each_change_as_frr_and_the_kernel_have_it() -> anyhow::Result<()>
{
    let cluster = cluster();
    for (from, to, classes) in EDITS {
        let edited = cluster.replacen(from, to, 1);
        anyhow::ensure!(edited != cluster, "{from} is there");
        compare(&cluster, &edited, classes)?;
    }
    let more = format!("{cluster}{ATTACHMENT}");
    compare(&cluster, &more, &[])?;
    compare(&more, &cluster, &["rebuild"])?;
    Ok(())
}

#[test]
fn a_moved_vtep_resets_the_sessions_that_start_from_it() -> anyhow::Result<()> {
    let from_vtep = cluster().replace(
        "{asn: 64512, address: 192.168.12.2}",
        "{asn: 64512, address: 192.168.12.2, ebgpMultiHop: true, updateSource: vtep}",
    );
    let moved = from_vtep.replace("100.65.0.0/24", "100.66.0.0/24");
    compare(&from_vtep, &moved, &["rebuild", "sessionReset"])?;
    let (text, _) = table(&from_vtep, &moved)?;
    let said = "disrupts session reset on n1, n2, n3: underlay peer 192.168.12.2\n";
    assert!(text.contains(said), "{text}");
    Ok(())
}

#[test]
fn a_plan_shows_the_fields_of_an_underlay_and_values_of_nodes() -> anyhow::Result<()> {
    let cluster = cluster();
    let (text, _) = table(&cluster, &cluster.replace("100.65.0.0/24", "100.66.0.0/24"))?;
    let said = "~ underlay: vtep 100.65.0.1 → 100.66.0.1 on n1, 100.65.0.2 → 100.66.0.2 on n2 and 1 more node, routerMac ";
    assert!(text.contains(said), "{text}");
    let said = "disrupts data-plane rebuild on n1, n2, n3: every VXLAN (VTEP), the bridge of every VRF (router MAC)\n";
    assert!(text.contains(said), "{text}");
    let (text, _) = table(&cluster, &cluster.replace("asn: 64514", "asn: 64515"))?;
    let said = "disrupts session reset on n1, n2, n3: every BGP session (AS number)\n";
    assert!(text.contains(said), "{text}");
    let (text, _) = table(&cluster, &cluster.replace("count: 2", "count: 3"))?;
    let said = "disrupts nothing that runs (additive)\n";
    assert!(text.contains(said), "{text}");
    let (text, _) = table(&cluster, &cluster.replace(", 198.18.0.0/15", ""))?;
    let said = "withdraws routes on n1, n2, n3: VRF cluster imports 198.18.0.0/15 from m2m\n";
    assert!(text.contains(said), "{text}");
    Ok(())
}

/// Compares the grave classes of a plan with these, and with what FRR and the kernel of a node have to do.
fn compare(before: &str, after: &str, classes: &[&str]) -> anyhow::Result<()> {
    let plan = planned(before, after)?;
    let disruptions = plan["disruptions"].as_object().cloned();
    let disruptions = disruptions.unwrap_or_default();
    let grave = disruptions.iter().filter(|(class, _)| {
        let is_quiet = ["none", "additive"].contains(&class.as_str());
        !is_quiet
    });
    let said: BTreeSet<&str> = grave.map(|(class, _)| class.as_str()).collect();
    let expected: BTreeSet<&str> = classes.iter().copied().collect();
    assert_eq!(said, expected, "{plan:#}");
    let done = done(&config(before)?, &config(after)?)?;
    assert_eq!(said, done, "{plan:#}");
    Ok(())
}

fn config(manifests: &str) -> anyhow::Result<NodeNetworkConfigSpec> {
    let arguments = [
        "compile", "-f", "-", "--what", "nodes", "--node", "n1", "-o", "json",
    ];
    let output = selvedge(&arguments, manifests)?;
    let configs: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    Ok(serde_json::from_value(configs[0]["spec"].clone())?)
}

/// The grave classes of what FRR and the kernel have to do from one config to another.
fn done(
    before: &NodeNetworkConfigSpec,
    after: &NodeNetworkConfigSpec,
) -> anyhow::Result<BTreeSet<&'static str>> {
    let mut classes = BTreeSet::new();
    let conf = |spec| {
        frr::desired(spec, &frr::hidden(spec), FrrVersion::NEWEST)
            .map_err(|errors| anyhow::anyhow!("{errors:?}"))
    };
    let change = frr::diff(&conf(before)?, &conf(after)?);
    if change.router == RouterChange::Replaced || !change.resets.is_empty() {
        classes.insert("sessionReset");
    }
    let mut kernel = Observed::default();
    for nic in ["eth1", "eth2"] {
        let mut link = ObservedLink::fresh(Owner::Foreign, Kind::Other("ether".into()));
        link.up = true;
        kernel.links.insert(LinkId::host(nic), link);
    }
    let desired = |spec| linux::desired(spec).map_err(|errors| anyhow::anyhow!("{errors:?}"));
    let steps = linux::diff(&desired(before)?, &kernel);
    let steps = steps.map_err(|conflicts| anyhow::anyhow!("{conflicts:?}"))?;
    for step in steps.steps() {
        apply_to_model(&mut kernel, step)?;
    }
    let steps = linux::diff(&desired(after)?, &kernel);
    let steps = steps.map_err(|conflicts| anyhow::anyhow!("{conflicts:?}"))?;
    if steps.disruption() == Disruption::Rebuild {
        classes.insert("rebuild");
    }
    Ok(classes)
}
