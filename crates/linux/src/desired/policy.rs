//! Policy routes: rules that send some of the cluster VRF's traffic to another VRF's table.

use api::{tcaas::TrafficMatch, tcaas::node_network_config::PolicyRoute};

use super::Wish;
use crate::object::{Domain, Family, Rule};

impl Wish<'_> {
    pub(super) fn policy_routes(&mut self) {
        let config = self.config;
        let others = (config.fabric_vrfs.iter().map(|vrf| ("fabricVRFs", vrf)))
            .chain(config.local_vrfs.iter().map(|vrf| ("localVRFs", vrf)));
        for (group, (name, vrf)) in others {
            if !vrf.policy_routes.is_empty() {
                self.refuse(
                    format!("{group}.{name}.policyRoutes"),
                    "only the traffic of the cluster VRF can be steered",
                );
            }
        }
        let (Some(cluster), Some(underlay)) = (&config.cluster_vrf, &config.underlay) else {
            return;
        };
        for (i, policy) in cluster.policy_routes.iter().enumerate() {
            let path = format!("clusterVRF.policyRoutes.{i}");
            // The kernel looks up a packet of a VRF under different names: in IPv4 the link that it came in through, in
            // IPv6 the VRF itself.
            let iif = |family| match family {
                Family::V4 => underlay.trunk.router.to_string(),
                Family::V6 => cluster.devices.vrf.to_string(),
            };
            self.policy_route(&path, policy, iif);
        }
    }

    fn policy_route(&mut self, path: &str, policy: &PolicyRoute, iif: impl Fn(Family) -> String) {
        let next_hop = &policy.next_hop;
        let table = match (&next_hop.vrf, next_hop.address) {
            (Some(name), None) => self.vrf_named(name).map(|vrf| vrf.table),
            _ => None,
        };
        let Some(table) = table else {
            self.refuse(
                format!("{path}.nextHop"),
                "a policy route leads into a VRF of this config, not to an address",
            );
            return;
        };
        // Between the kernel's rule for VRFs and ours the packet would already be routed; at 0 it would precede everything.
        if !(1..1000).contains(&policy.priority) {
            self.refuse(
                format!("{path}.priority"),
                "a rule takes effect only before the kernel's rule for VRFs: 1–999",
            );
            return;
        }
        let Some(protocol) = self.protocol(path, &policy.traffic_match) else {
            return;
        };
        let TrafficMatch {
            src_prefix,
            dst_prefix,
            src_port,
            dst_port,
            protocol: _,
        } = &policy.traffic_match;
        let (src, dst) = (
            src_prefix.map(|net| net.prefix().net()),
            dst_prefix.map(|net| net.prefix().net()),
        );
        let mut families = Family::BOTH.to_vec();
        for net in [src, dst].into_iter().flatten() {
            families.retain(|family| *family == Family::of(net.addr()));
        }
        if families.is_empty() {
            self.refuse(path, "source and destination are of different families");
        }
        for family in families {
            self.desired.rules.insert(Rule {
                iif: Some(iif(family)),
                src,
                dst,
                protocol,
                src_port: *src_port,
                dst_port: *dst_port,
                ..Rule::all(Domain::Router, family, policy.priority, table)
            });
        }
    }

    /// The number of the protocol a match names; `None` if it was refused.
    #[expect(
        clippy::option_option,
        reason = "refused, no protocol and a protocol are three things"
    )]
    fn protocol(&mut self, path: &str, traffic: &TrafficMatch) -> Option<Option<u8>> {
        let Some(name) = &traffic.protocol else {
            return Some(None);
        };
        let number = match name.to_ascii_lowercase().as_str() {
            "icmp" => Some(1),
            "tcp" => Some(6),
            "udp" => Some(17),
            "icmpv6" | "ipv6-icmp" => Some(58),
            "sctp" => Some(132),
            other => other.parse().ok(),
        };
        if number.is_none() {
            let path = format!("{path}.trafficMatch.protocol");
            self.refuse(path, format!("the protocol {name:?} is unknown"));
            return None;
        }
        Some(number)
    }
}
