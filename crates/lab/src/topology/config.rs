//! The FRR configuration of leaves and spines: plain eBGP for the underlay, EVPN over the same sessions.
//!
//! These are the fabric's own routers, not nodes: what Selvedge makes for nodes comes from its compiler, and must get on
//! with a router that is configured independently.

use ipnet::IpNet;

use super::{LeafVrf, Router, Topology, transfer};

impl Topology {
    /// The configuration of a router.
    pub fn frr_conf(&self, router: &Router) -> String {
        let mut lines = vec![
            "frr defaults datacenter".to_owned(),
            format!("hostname {}", router.name),
        ];
        for (index, vrf) in (0..).zip(&router.vrfs) {
            static_routes(&mut lines, index, vrf);
        }
        self.underlay(&mut lines, router);
        for vrf in &router.vrfs {
            overlay(&mut lines, router, vrf);
        }
        lines.join("\n") + "\n"
    }

    fn underlay(&self, lines: &mut Vec<String>, router: &Router) {
        let Router { asn, loopback, .. } = router;
        lines.push(format!("router bgp {asn}"));
        lines.push(format!(" bgp router-id {loopback}"));
        for setting in [
            "no bgp default ipv4-unicast",
            "no bgp ebgp-requires-policy",
            "no bgp network import-check",
            "bgp bestpath as-path multipath-relax",
            // Tests are short: a dead neighbor is gone after three seconds, a new one is tried every second.
            "timers bgp 1 3",
            "neighbor fabric peer-group",
            "neighbor fabric remote-as external",
            "neighbor fabric timers connect 1",
            "neighbor fabric advertisement-interval 0",
            "neighbor fabric bfd",
        ] {
            lines.push(format!(" {setting}"));
        }
        for link in self.links() {
            if let Some((_, peer)) = link.seen_from(&router.name) {
                lines.push(format!(" neighbor {} peer-group fabric", peer.ipv4.addr()));
                lines.push(format!(
                    " neighbor {} description {}",
                    peer.ipv4.addr(),
                    peer.machine
                ));
                // Nodes may also connect over IPv6.
                lines.push(format!(
                    " bgp listen range {} peer-group fabric",
                    peer.ipv6.trunc()
                ));
            }
        }
        for (family, settings) in [
            ("ipv4 unicast", vec![format!("network {loopback}/32")]),
            ("ipv6 unicast", Vec::new()),
            // What crosses a router on its way keeps the VTEP that it came from.
            (
                "l2vpn evpn",
                vec![
                    "neighbor fabric attribute-unchanged next-hop".to_owned(),
                    "advertise-all-vni".to_owned(),
                ],
            ),
        ] {
            lines.push(format!(" address-family {family}"));
            lines.push("  neighbor fabric activate".to_owned());
            lines.extend(settings.iter().map(|setting| format!("  {setting}")));
            lines.push(" exit-address-family".to_owned());
        }
        lines.push("exit".to_owned());
    }
}

fn static_routes(lines: &mut Vec<String>, index: u8, vrf: &LeafVrf) {
    let [_, (host4, host6)] = transfer(index);
    lines.push(format!("vrf {}", vrf.name));
    lines.push(format!(" vni {}", vrf.vni));
    for prefix in &vrf.prefixes {
        lines.push(match prefix {
            IpNet::V4(prefix) => format!(" ip route {prefix} {}", host4.addr()),
            IpNet::V6(prefix) => format!(" ipv6 route {prefix} {}", host6.addr()),
        });
    }
    lines.push("exit-vrf".to_owned());
}

fn overlay(lines: &mut Vec<String>, router: &Router, vrf: &LeafVrf) {
    let Router { asn, loopback, .. } = router;
    let LeafVrf {
        name,
        vni,
        route_target,
        ..
    } = vrf;
    lines.push(format!("router bgp {asn} vrf {name}"));
    lines.push(format!(" bgp router-id {loopback}"));
    let rd = vni % 65536;
    for (family, settings) in [
        ("ipv4 unicast", vec!["redistribute static".to_owned()]),
        ("ipv6 unicast", vec!["redistribute static".to_owned()]),
        (
            "l2vpn evpn",
            vec![
                format!("rd {loopback}:{rd}"),
                format!("route-target import {route_target}"),
                format!("route-target export {route_target}"),
                "advertise ipv4 unicast".to_owned(),
                "advertise ipv6 unicast".to_owned(),
            ],
        ),
    ] {
        lines.push(format!(" address-family {family}"));
        lines.extend(settings.iter().map(|setting| format!("  {setting}")));
        lines.push(" exit-address-family".to_owned());
    }
    lines.push("exit".to_owned());
}
