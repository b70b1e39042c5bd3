//! Ring 1: addresses and names that run, and edits that would take them from what has them, as a plan shows it.

use crate::{
    ring1_harm::{RUNNING, changes_nothing, edited, plan},
    ring1_harm_others::{BESIDE, without},
};

/// What runs beside the objects of [`RUNNING`] and [`BESIDE`]: sessions over the trunk, and a loopback on both nodes.
const SESSIONS: &str = r#"
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Inbound
metadata: {name: anycast}
spec: {networkRef: lb, addresses: {ipv4: [10.30.0.200]}, disableLoadBalancer: true, destinations: {matchLabels: {zone: red}}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: BGPNeighbor
metadata: {name: speaker}
spec: {allowedInbounds: [{name: anycast}], workloadAS: "65200"}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: VRFRouteConfiguration
metadata: {name: pooled}
spec: {vrf: pooled, vni: 1800, routeTarget: "64500:1800", seq: 10, loopbacks: [{name: lo.pool, poolRef: {apiGroup: ipam.cluster.x-k8s.io, kind: InClusterIPPool, name: loops}}]}
---
apiVersion: ipam.cluster.x-k8s.io/v1beta2
kind: IPAddress
metadata: {name: loop1, namespace: selvedge-system}
spec: {address: 10.98.0.1, prefix: 32, claimRef: {name: pooled-lo.pool-n1}, poolRef: {apiGroup: ipam.cluster.x-k8s.io, kind: InClusterIPPool, name: loops}}
---
apiVersion: ipam.cluster.x-k8s.io/v1beta2
kind: IPAddress
metadata: {name: loop2, namespace: selvedge-system}
spec: {address: 10.98.0.2, prefix: 32, claimRef: {name: pooled-lo.pool-n2}, poolRef: {apiGroup: ipam.cluster.x-k8s.io, kind: InClusterIPPool, name: loops}}
"#;

/// The settings of [`RUNNING`], with a trunk that sessions run over.
const TABLES: &str = "routeTables: {first: 5000, last: 5099}";
const TRUNK: &str = "trunk: {name: hbn, addresses: [169.254.100.0/31]}";

pub(crate) fn running() -> anyhow::Result<String> {
    let all = [RUNNING, BESIDE, SESSIONS].concat();
    edited(&all, TABLES, &format!("{TABLES}, {TRUNK}"))
}

#[test]
fn settings_that_are_deleted_or_renamed_stay_in_effect() -> anyhow::Result<()> {
    let running = running()?;
    let deleted = without(&running, "kind: Settings")?;
    let renamed = edited(
        &running,
        "kind: Settings\nmetadata: {name: default}",
        "kind: Settings\nmetadata: {name: defualt}",
    )?;
    for new in [&deleted, &renamed] {
        let plan = plan(&running, new)?;
        let said = "warning: Settings default: was deleted: its last spec stays in effect";
        assert!(plan.contains(said), "{plan}");
        assert!(plan.ends_with("nothing changes on any node\n"), "{plan}");
    }
    let said = "Settings defualt: there is one Settings object, and its name must be default";
    assert!(plan(&running, &renamed)?.contains(said));
    let emptied = edited(
        &running,
        &format!(
            "spec: {{clusterVRF: {{name: cluster, vni: 4000, routeTarget: \"64500:4000\"}}, {TABLES}, {TRUNK}}}"
        ),
        "spec: {}",
    )?;
    let plan = plan(&running, &emptied)?;
    assert!(!plan.contains("was deleted"), "{plan}");
    Ok(())
}

#[test]
fn a_trunk_has_a_name_and_addresses_of_its_own() -> anyhow::Result<()> {
    changes_nothing(
        &running()?,
        &[
            (
                "name: hbn,",
                "name: eth1,",
                "Settings default spec.trunk.name: this edit would stop Underlay selvedge-system/fabric",
            ),
            (
                "name: hbn,",
                "name: lo,",
                "Settings default spec.trunk.name: \"lo\" is reserved for other devices",
            ),
            (
                "name: hbn,",
                "name: l2.red,",
                "Settings default spec.trunk.name: \"l2.red\" is reserved for other devices",
            ),
            (
                "name: hbn,",
                "name: cluster,",
                "Settings default spec.trunk.name: \"cluster\" is the cluster VRF",
            ),
            (
                "name: hbn,",
                "name: red,",
                "Settings default spec.trunk.name: this edit would stop VRF red",
            ),
            (
                "name: hbn,",
                "name: lo.pool,",
                "Settings default spec.trunk.name: this edit would stop VRFRouteConfiguration pooled",
            ),
            (
                "nics: [eth1]",
                "nics: [hbn]",
                "Underlay selvedge-system/fabric spec.nics: \"hbn\" is the trunk to the router",
            ),
            (
                "addresses: [169.254.100.0/31]",
                "addresses: [169.254.128.0/31]",
                "Settings default spec.trunk.addresses: this edit would stop BGPNeighbor speaker, so the spec before it stays in effect: 169.254.128.1 is already used by Settings default",
            ),
        ],
    )
}

#[test]
fn an_address_that_a_node_runs_is_given_to_no_other() -> anyhow::Result<()> {
    let running = running()?;
    let taken = edited(&running, "address: 10.98.0.1", "address: 10.98.0.2")?;
    let swapped = edited(&running, "address: 10.98.0.2", "address: 10.98.0.1")?;
    for (new, said) in [
        (
            taken,
            "IPAddress selvedge-system/loop1 spec.address: 10.98.0.2 is already allocated by IPAddress selvedge-system/loop2",
        ),
        (
            swapped,
            "IPAddress selvedge-system/loop2 spec.address: 10.98.0.1 is already allocated by IPAddress selvedge-system/loop1",
        ),
    ] {
        let plan = plan(&running, &new)?;
        assert!(plan.contains(said), "{plan}");
        assert!(plan.ends_with("nothing changes on any node\n"), "{plan}");
    }
    Ok(())
}

#[test]
fn what_runs_on_after_an_edit_that_no_longer_asks_for_it_is_said() -> anyhow::Result<()> {
    let running = running()?;
    let kept = "VRFRouteConfiguration pooled spec.loopbacks[0].poolRef: node \"n1\" keeps its address 10.98.0.1";
    let new = [
        (edited(&running, "name: loops}}]}", "name: lops}}]}")?, kept),
        (
            edited(
                &running,
                TRUNK,
                &format!("{TRUNK}, ipamNamespace: elsewhere"),
            )?,
            kept,
        ),
        (without(&running, "name: loop1,")?, kept),
        (
            edited(
                &running,
                "interfaceName: ips, nodeIPs: {enabled: true}",
                "interfaceName: ips, nodeIPs: {enabled: true, reservedForPods: 253}",
            )?,
            "Layer2Attachment ips spec.nodeIPs.reservedForPods: node \"n1\" (and 1 more) keeps an address among the last 253",
        ),
    ];
    for (new, said) in new {
        let plan = plan(&running, &new)?;
        assert!(plan.contains(said), "{plan}");
        assert!(plan.ends_with("nothing changes on any node\n"), "{plan}");
    }
    // A claim stays as long as a node runs its address.
    let elsewhere = edited(
        &running,
        TRUNK,
        &format!("{TRUNK}, ipamNamespace: elsewhere"),
    )?;
    let claims = plan(&running, &elsewhere)?;
    let said = "IPAddressClaim elsewhere/pooled-lo.pool-n1";
    assert!(claims.contains(said), "{claims}");
    assert!(!claims.contains("to delete"), "{claims}");
    Ok(())
}

#[test]
fn the_network_of_an_address_that_a_workload_speaks_from_stays() -> anyhow::Result<()> {
    let running = running()?;
    let with = |cidrs: &str| {
        let bgp = format!("{TRUNK}, bgp: {{workloadCIDRs: [{cidrs}]}}");
        edited(&running, TRUNK, &bgp)
    };
    let moved = plan(&running, &with("169.254.200.0/24")?)?;
    let said = "Settings default spec.bgp.workloadCIDRs: BGPNeighbor speaker has 169.254.128.1, which is in none of these networks";
    assert!(moved.contains(said), "{moved}");
    assert!(moved.ends_with("nothing changes on any node\n"), "{moved}");
    let wider = plan(&running, &with("169.254.128.0/17")?)?;
    assert!(!wider.contains("error: "), "{wider}");
    assert!(
        wider.contains("workloadNetworks -169.254.128.0/24"),
        "{wider}"
    );
    Ok(())
}
