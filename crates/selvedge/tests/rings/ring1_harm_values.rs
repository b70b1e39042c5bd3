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
                "Underlay selvedge-system/fabric spec.nics: \"lo\" is reserved for other devices",
            ),
            (
                "nics: [eth1]",
                "interfaces: [{type: NetworkDevice, networkDevice: {interfaceName: vx.red}}]",
                "Underlay selvedge-system/fabric spec.nics: \"vx.red\" is reserved for other devices",
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
fn a_field_of_an_underlay_that_nothing_comes_of_takes_nothing_away_that_runs() -> anyhow::Result<()>
{
    changes_nothing(
        RUNNING,
        &[(
            POOL,
            "vtepInterface: lo1",
            "Underlay selvedge-system/fabric spec.evpn.vtepInterface: node \"n1\" has reported no IPv4 address on \"lo1\"",
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
    let said = "Underlay selvedge-system/fabric spec.evpn.vtepInterface: node \"n1\" has reported no IPv4 address on \"lo1\"";
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

/// Hand-written objects that run beside [`running`]: sessions with a loopback of the node, and a target of mirrors.
const BY_HAND: &str = "
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: BGPPeering
metadata: {name: by-hand}
spec: {loopbackPeer: {ips: [169.254.150.1]}, remoteASN: 64666, import: [{cidr: 10.9.0.0/24, action: permit}], export: []}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: MirrorTarget
metadata: {name: by-hand}
spec: {type: l3gre, destinationIP: 10.250.0.77, destinationVrf: mir, sourceLoopback: lo.mir}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: MirrorSelector
metadata: {name: by-hand}
spec: {trafficMatch: {protocol: TCP}, mirrorTarget: {kind: MirrorTarget, name: by-hand}, mirrorSource: {kind: Layer2NetworkConfiguration, name: layer2attachment-ips-108}, direction: egress}
";

fn running_by_hand() -> anyhow::Result<String> {
    Ok([running()?, BY_HAND.to_owned()].concat())
}

#[test]
fn a_network_of_special_addresses_is_used_by_nothing() -> anyhow::Result<()> {
    let networks = [
        ("0.0.0.0/24", "is in 0.0.0.0/8: unspecified"),
        ("127.0.0.0/24", "is in 127.0.0.0/8: loopback"),
        ("224.1.0.0/24", "is in 224.0.0.0/4: multicast"),
        ("240.1.0.0/24", "is in 240.0.0.0/4: reserved"),
        ("0.0.0.0/0", "overlaps 0.0.0.0/8: unspecified"),
    ];
    let running = running_by_hand()?;
    // An attachment over the fabric, one on a device of the node, and a service.
    let users = [
        ("cidr: 10.20.1.0/24", "red-net"),
        ("cidr: 10.20.7.0/24", "hop-net"),
        ("cidr: 10.30.0.0/24", "lb"),
    ];
    for ((special, said), (old, name)) in networks.into_iter().zip(users.into_iter().cycle()) {
        let said = format!("Network {name} spec.ipv4.cidr: {special} {said}");
        let new = format!("cidr: {special}");
        changes_nothing(&running, &[(old, &new, &said)])?;
    }
    for (special, said) in [
        ("fe80::/64", "is in fe80::/10: link-local"),
        ("ff00::/8", "is in ff00::/8: multicast"),
        ("::/64", "overlaps ::/128: unspecified"),
    ] {
        let said = format!("Network red-net spec.ipv6.cidr: {special} {said}");
        let new = format!("spec: {{ipv6: {{cidr: \"{special}\"}}, vlan: 101, vni: 20101}}");
        let old = "spec: {ipv4: {cidr: 10.20.1.0/24}, vlan: 101, vni: 20101}";
        changes_nothing(&running, &[(old, &new, &said)])?;
    }
    Ok(())
}

#[test]
fn a_network_that_no_node_announces_reaches_no_vrf() -> anyhow::Result<()> {
    changes_nothing(
        &running_by_hand()?,
        &[
            (
                "cidr: 10.20.1.0/24",
                "cidr: 169.254.7.0/24",
                "Network red-net spec.ipv4.cidr: this edit would stop Layer2Attachment red, so the spec before it stays in effect: 169.254.7.0/24 is in 169.254.0.0/16: link-local addresses",
            ),
            (
                "cidr: 10.30.0.0/24",
                "cidr: 169.254.7.0/24",
                "Network lb spec.ipv4.cidr: this edit would stop Inbound a",
            ),
            (
                "spec: {ipv4: {cidr: 10.20.1.0/24}, vlan: 101, vni: 20101}",
                "spec: {ipv6: {cidr: \"fd00:5e1f:ed6e::/80\"}, vlan: 101, vni: 20101}",
                "fd00:5e1f:ed6e::/80 is inside of fd00:5e1f:ed6e::/64 (Settings.spec.bgp.workloadCIDRs), which no node announces",
            ),
            (
                TABLES,
                "routeTables: {first: 5000, last: 5099}, bgp: {workloadCIDRs: [10.20.0.0/16, 169.254.128.0/24]}",
                "Settings default spec.bgp.workloadCIDRs: this edit would stop Layer2Attachment ",
            ),
            (
                "interfaceName: red,",
                "interfaceName: red, routes: [{prefixes: [169.254.9.0/24]}],",
                "Layer2Attachment red spec.routes[0].prefixes[0]: 169.254.9.0/24 is in 169.254.0.0/16",
            ),
        ],
    )?;
    let by_hand = edited(
        &running()?,
        "export: []}\n---\napiVersion: network.t-caas.telekom.com/v1alpha1\nkind: Layer2NetworkConfiguration",
        "export: [{cidr: 0.0.0.0/0, le: 32, action: permit}, {cidr: 169.254.9.0/24, action: permit}]}\n---\napiVersion: network.t-caas.telekom.com/v1alpha1\nkind: Layer2NetworkConfiguration",
    )?;
    let lines = plan(&running()?, &by_hand)?;
    let said = "VRFRouteConfiguration h spec.export[1].cidr: the line has no effect: 169.254.9.0/24 is in 169.254.0.0/16";
    assert!(lines.contains(said), "{lines}");
    assert!(!lines.contains("spec.export[0]"), "{lines}");
    // On a device of the node nothing is announced.
    let plan = plan(
        &running()?,
        &edited(&running()?, "cidr: 10.20.6.0/24", "cidr: 169.254.7.0/24")?,
    )?;
    assert!(!plan.contains("error"), "{plan}");
    Ok(())
}

#[test]
fn a_peer_or_a_collector_with_a_special_address_is_not_taken() -> anyhow::Result<()> {
    let running = running_by_hand()?;
    for (address, range) in [
        ("127.0.0.1", "127.0.0.0/8"),
        ("224.0.0.9", "224.0.0.0/4"),
        ("0.0.0.0", "0.0.0.0/8"),
    ] {
        let is_in = format!("{address} is in {range}");
        changes_nothing(
            &running,
            &[
                (
                    "ips: [169.254.150.1]",
                    &format!("ips: [{address}]"),
                    &format!("BGPPeering by-hand spec.loopbackPeer.ips[0]: {is_in}"),
                ),
                (
                    "address: 10.250.0.10",
                    &format!("address: {address}"),
                    &format!("Collector tap spec.address: {is_in}"),
                ),
                (
                    "destinationIP: 10.250.0.77",
                    &format!("destinationIP: {address}"),
                    &format!("MirrorTarget by-hand spec.destinationIP: {is_in}"),
                ),
                (
                    "address: 10.98.0.1",
                    &format!("address: {address}"),
                    &format!("IPAddress selvedge-system/loop1 spec.address: {is_in}"),
                ),
            ],
        )?;
    }
    let link_local = "169.254.1.1 is in 169.254.0.0/16";
    changes_nothing(
        &running,
        &[
            (
                "address: 10.250.0.10",
                "address: 169.254.1.1",
                &format!("Collector tap spec.address: {link_local}"),
            ),
            (
                TABLES,
                "routeTables: {first: 5000, last: 5099}, bgp: {workloadCIDRs: [169.254.128.0/24, \"ff00::/64\"]}",
                "Settings default spec.bgp.workloadCIDRs[1]: ff00::/64 is in ff00::/8",
            ),
        ],
    )
}

const TABLES: &str = "routeTables: {first: 5000, last: 5099}";
const GATEWAY: &str = "anycastGateways: [10.82.0.1/24]";

#[test]
fn a_gateway_is_a_host_of_its_network_with_a_unicast_mac_address() -> anyhow::Result<()> {
    let of_gateway = "Layer2NetworkConfiguration hl spec.anycastGateways[0]: 10.82.0.";
    let mac = |mac: &str| format!("{GATEWAY}, anycastMac: \"{mac}\"");
    let said = |field: &str, mac: &str, what: &str| format!("{field}: {mac} is {what}");
    let segment = "Layer2NetworkConfiguration hl spec.anycastMac";
    let [broadcast, multicast, null] = [
        "ff:ff:ff:ff:ff:ff",
        "01:00:5e:00:00:01",
        "00:00:00:00:00:00",
    ];
    changes_nothing(
        &running()?,
        &[
            (GATEWAY, "anycastGateways: [10.82.0.0/24]", of_gateway),
            (GATEWAY, "anycastGateways: [10.82.0.255/24]", of_gateway),
            (GATEWAY, "anycastGateways: [10.82.0.1/32]", of_gateway),
            (
                GATEWAY,
                "anycastGateways: [127.0.0.1/24]",
                "Layer2NetworkConfiguration hl spec.anycastGateways[0]: 127.0.0.1 is in 127.0.0.0/8",
            ),
            (
                GATEWAY,
                &mac(broadcast),
                &said(segment, broadcast, "the broadcast address"),
            ),
            (
                GATEWAY,
                &mac(multicast),
                &said(segment, multicast, "a multicast address"),
            ),
            (
                GATEWAY,
                &mac(null),
                &said(segment, null, "the null address"),
            ),
            (
                TABLES,
                &format!("{TABLES}, anycastMAC: \"{null}\""),
                &said("Settings default spec.anycastMAC", null, "the null address"),
            ),
        ],
    )?;
    let pair = edited(&running()?, GATEWAY, "anycastGateways: [10.82.0.0/31]")?;
    let plan = plan(&running()?, &pair)?;
    assert!(plan.contains("+10.82.0.0/31"), "{plan}");
    Ok(())
}

#[test]
fn a_segment_without_a_gateway_says_that_its_destinations_have_no_effect() -> anyhow::Result<()> {
    let new = edited(
        RUNNING,
        "interfaceName: red,",
        "interfaceName: red, disableAnycast: true, disableNeighborSuppression: true,",
    )?;
    let plan = plan(RUNNING, &new)?;
    let said = "Layer2Attachment red spec.destinations: with disableAnycast the segment has no gateway in VRF red: destinations have no effect";
    assert!(plan.contains(said), "{plan}");
    Ok(())
}

#[test]
fn vteps_of_two_families_that_share_a_vni_are_said() -> anyhow::Result<()> {
    let spec = "spec: {asn: 64514, nics: [eth1], evpn: {vtepcidr: 100.65.0.0/24},";
    let of_rack = |rack: &str, pool: &str| {
        format!(
            "spec: {{nodeSelector: {{matchLabels: {{rack: {rack}}}}}, asn: 64514, nics: [eth1], evpn: {{vtepcidr: {pool}}},"
        )
    };
    let second = format!(
        "
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: Underlay
metadata: {{name: second, namespace: selvedge-system}}
{} neighbors: [{{asn: 64512, address: 192.168.11.2}}]}}
",
        of_rack("r2", "100.66.0.0/24")
    );
    let first = edited(&running()?, spec, &of_rack("r1", "100.65.0.0/24"))?;
    let running = [first, second].concat();
    let same = plan(&running, &running)?;
    assert!(!same.contains("address family"), "{same}");
    let mixed = edited(&running, "100.66.0.0/24", "\"2001:db8:66::/64\"")?;
    let plan = plan(&running, &mixed)?;
    for (one, other) in [("fabric", "second"), ("second", "fabric")] {
        let said = format!(
            "Underlay selvedge-system/{one} spec: nodes of Underlay selvedge-system/{other} have VTEPs of the other address family, and both have VNI 1001"
        );
        assert!(plan.contains(&said), "{plan}");
    }
    assert!(plan.contains("warning"), "{plan}");
    Ok(())
}

#[test]
fn an_address_of_the_wrong_family_leaves_the_tunnel_as_it_is() -> anyhow::Result<()> {
    changes_nothing(
        &running()?,
        &[
            (
                "address: 10.99.0.1",
                "address: \"2001:db8::1\"",
                "Collector tap spec.address: the tunnel would start at 2001:db8::1 and end at 10.250.0.10",
            ),
            (
                "address: 10.99.0.1",
                "address: 10.250.0.10",
                "Collector tap spec.address: 10.250.0.10 is the address that the tunnel starts at",
            ),
        ],
    )
}
