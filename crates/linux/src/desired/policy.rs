//! Policy routes: rules that send some of the cluster VRF's traffic to another VRF's table.

use api::tcaas::{
    Protocol, TrafficMatch,
    node_network_config::{NextHop, PolicyRoute},
};

use super::Builder;
use crate::object::{Domain, Family, Rule};

impl Builder<'_> {
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
            let trunk = underlay.trunk.router.to_string();
            let inputs = |family| match family {
                Family::V4 => {
                    let others = policy.interfaces.iter().map(ToString::to_string);
                    others.chain([trunk.clone()]).collect()
                }
                Family::V6 => vec![cluster.devices.vrf.to_string()],
            };
            self.policy_route(&path, policy, inputs);
        }
    }

    fn policy_route(
        &mut self,
        path: &str,
        policy: &PolicyRoute,
        inputs: impl Fn(Family) -> Vec<String>,
    ) {
        let PolicyRoute {
            traffic_match,
            next_hop: NextHop { address, vrf },
            priority,
            // Part of `inputs`.
            interfaces: _,
        } = policy;
        let table = match (vrf, address) {
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
        if !(1..1000).contains(priority) {
            self.refuse(
                format!("{path}.priority"),
                "a rule takes effect only before the kernel's rule for VRFs: 1–999",
            );
            return;
        }
        let TrafficMatch {
            src_prefix,
            dst_prefix,
            src_port,
            dst_port,
            protocol,
        } = traffic_match;
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
            let rules = inputs(family).into_iter().map(|input| Rule {
                iif: Some(input),
                src,
                dst,
                protocol: protocol.map(number),
                src_port: *src_port,
                dst_port: *dst_port,
                ..Rule::all(Domain::Router, family, *priority, table)
            });
            self.desired.rules.extend(rules);
        }
    }
}

/// The number that IP gives a protocol.
pub(super) fn number(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Icmp => 1,
        Protocol::Tcp => 6,
        Protocol::Udp => 17,
        Protocol::Icmpv6 => 58,
        Protocol::Sctp => 132,
    }
}
