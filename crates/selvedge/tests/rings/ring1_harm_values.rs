//! Ring 1: values that are well formed and cannot work, in a running cluster and in a new one.

use crate::{
    ring1_harm::{RUNNING, changes_nothing, edited, plan},
    ring1_harm_addresses::running,
};

/// What `plan` says of objects in a cluster that has nothing but its nodes.
fn new_cluster(objects: &str) -> anyhow::Result<String> {
    let nodes = objects
        .split("\n---\n")
        .filter(|one| one.contains("kind: Node\n"));
    let nodes: Vec<&str> = nodes.collect();
    plan(&nodes.join("\n---\n"), objects)
}

const NEIGHBOR: &str = "address: 192.168.11.2";
const POOL: &str = "vtepcidr: 100.65.0.0/24";

#[test]
fn an_underlay_with_values_that_cannot_work_stays_as_it_was() -> anyhow::Result<()> {
    let underlay = "Underlay selvedge-system/fabric";
    let neighbors = [
        ("0.0.0.0", "0.0.0.0/8: unspecified"),
        ("127.0.0.1", "127.0.0.0/8: loopback"),
        ("224.0.0.1", "224.0.0.0/4: multicast"),
        ("255.255.255.255", "240.0.0.0/4: reserved"),
        ("\"::\"", "::/128: unspecified"),
        ("\"::1\"", "::1/128: loopback"),
        ("\"ff02::1\"", "ff00::/8: multicast"),
        ("\"fe80::1\"", "fe80::/10: link-local"),
    ];
    for (address, said) in neighbors {
        let said = format!(
            "{underlay} spec.neighbors[0].address: {} is in {said}",
            address.trim_matches('"')
        );
        let new = format!("address: {address}");
        changes_nothing(RUNNING, &[(NEIGHBOR, &new, &said)])?;
    }
    let pools = [
        ("224.0.0.0/24", "is in 224.0.0.0/4: multicast"),
        ("127.0.0.0/24", "is in 127.0.0.0/8: loopback"),
        ("169.254.0.0/24", "is in 169.254.0.0/16: link-local"),
        ("0.0.0.0/0", "overlaps 0.0.0.0/8: unspecified"),
        ("\"ff00::/64\"", "is in ff00::/8: multicast"),
    ];
    for (pool, said) in pools {
        let pool = format!("vtepcidr: {pool}");
        let said =
            format!("{underlay} spec.evpn.vtepcidr: {} {said}", &pool[10..]).replace('"', "");
        changes_nothing(RUNNING, &[(POOL, &pool, &said)])?;
    }
    changes_nothing(
        RUNNING,
        &[
            (
                "asn: 64514,",
                "asn: 64514, routeridcidr: 224.0.0.0/24,",
                "Underlay selvedge-system/fabric spec.routeridcidr: 224.0.0.0/24 is in 224.0.0.0/4",
            ),
            (
                "nics: [eth1]",
                "nics: [lo]",
                "Underlay selvedge-system/fabric spec.nics: \"lo\" is kept for other devices",
            ),
            (
                "nics: [eth1]",
                "interfaces: [{type: NetworkDevice, networkDevice: {interfaceName: vx.red}}]",
                "Underlay selvedge-system/fabric spec.nics: \"vx.red\" is kept for other devices",
            ),
        ],
    )
}

#[test]
fn a_link_of_the_fabric_may_have_link_local_ipv4_addresses() -> anyhow::Result<()> {
    let plan = plan(RUNNING, &edited(RUNNING, NEIGHBOR, "address: 169.254.7.2")?)?;
    assert!(plan.contains("+ underlay peer 169.254.7.2"), "{plan}");
    assert!(!plan.contains("error"), "{plan}");
    Ok(())
}

#[test]
fn an_underlay_with_vteps_keeps_a_neighbor_that_exchanges_evpn_routes() -> anyhow::Result<()> {
    let without_evpn = format!("{NEIGHBOR}, addressFamilies: [{{type: ipv4unicast}}]");
    let said = "Underlay selvedge-system/fabric spec.neighbors: no neighbor exchanges EVPN routes";
    changes_nothing(RUNNING, &[(NEIGHBOR, &without_evpn, said)])?;
    let one_of_two = edited(
        RUNNING,
        "neighbors: [{asn: 64512, address: 192.168.11.2}]",
        "neighbors: [{asn: 64512, address: 192.168.11.2, addressFamilies: [{type: ipv4unicast}]}, {asn: 64512, address: 192.168.12.2}]",
    )?;
    let plan = plan(RUNNING, &one_of_two)?;
    assert!(plan.contains("+ underlay peer 192.168.12.2"), "{plan}");
    assert!(!plan.contains("error"), "{plan}");
    Ok(())
}

#[test]
fn a_field_that_is_not_compiled_takes_nothing_away_that_runs() -> anyhow::Result<()> {
    changes_nothing(
        RUNNING,
        &[(
            POOL,
            "vtepInterface: lo1",
            "Underlay selvedge-system/fabric spec.evpn.vtepInterface: a VTEP that is an existing device's address is not compiled by this version, so the spec before this edit stays in effect",
        )],
    )?;
    let two = edited(
        RUNNING,
        "neighbors: [{asn: 64512, address: 192.168.11.2}]",
        "neighbors: [{asn: 64512, address: 192.168.11.2}, {asn: 64512, address: \"2001:db8::2\"}]",
    )?;
    changes_nothing(
        &two,
        &[(
            "address: \"2001:db8::2\"",
            "address: \"2001:db8::2\", addressFamilies: [{type: ipv6vpn}]",
            "Underlay selvedge-system/fabric spec.neighbors[1].addressFamilies: a session with VPN address families alone is not compiled by this version",
        )],
    )?;
    let new = new_cluster(&edited(RUNNING, POOL, "vtepInterface: lo1")?)?;
    let said = "Underlay selvedge-system/fabric spec.evpn.vtepInterface: a VTEP that is an existing device's address is accepted but not compiled by this version";
    assert!(new.contains(said), "{new}");
    assert!(new.contains("+ underlay"), "{new}");
    Ok(())
}

#[test]
fn the_addresses_of_a_trunk_are_of_networks_of_two() -> anyhow::Result<()> {
    let trunk = "addresses: [169.254.100.0/31]";
    let said = "Settings default spec.trunk.addresses[0]: 169.254.100.";
    changes_nothing(
        &running()?,
        &[
            (trunk, "addresses: [169.254.100.1/24]", said),
            (trunk, "addresses: [169.254.100.1/32]", said),
            (trunk, "addresses: [169.254.100.3/30]", said),
            (
                trunk,
                "addresses: [127.0.0.2/31]",
                "Settings default spec.trunk.addresses[0]: 127.0.0.2 is in 127.0.0.0/8",
            ),
        ],
    )?;
    let plan = plan(
        &running()?,
        &edited(&running()?, trunk, "addresses: [169.254.100.1/30]")?,
    )?;
    assert!(plan.contains("+169.254.100.2/30"), "{plan}");
    Ok(())
}
