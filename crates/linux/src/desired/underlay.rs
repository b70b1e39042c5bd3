//! Namespace, uplinks, tunnel endpoint and trunk.

use api::tcaas::node_network_config::{Trunk, Underlay};
use ipnet::IpNet;

use super::{Builder, DesiredLink, Timing, nets};
use crate::{
    object::{Domain, Family, Kind, LinkId, Rule, TABLE_LOCAL},
    sysctl,
};

/// Where the rule for local addresses goes: behind the rule that the kernel makes for VRFs (1000), so that an address
/// of one VRF is not taken for local in another, and before the main table (32766).
pub(crate) const LOCAL_RULE_PRIORITY: u32 = 32765;

impl Builder<'_> {
    pub(super) fn underlay(&mut self, underlay: &Underlay) {
        let Underlay {
            // The operator's.
            source: _,
            namespace,
            // FRR's: AS number, router id, what is not announced, sessions and their restart.
            asn: _,
            workload_networks: _,
            router_id: _,
            neighbors: _,
            graceful_restart: _,
            nics,
            vtep,
            vtep_interface,
            other_vtep,
            // The bridge of each L3 VNI has it: `l3_vni`.
            router_mac: _,
            trunk,
        } = underlay;
        if !is_file_name(namespace) {
            let why = format!("{namespace:?} cannot name a namespace");
            self.refuse("underlay.namespace", why);
            return;
        }
        self.desired.namespace = Some(namespace.clone());
        self.desired.nics = nics.iter().map(ToString::to_string).collect();
        // The address of a device is there already.
        let vtep_here = vtep.filter(|_| vtep_interface.is_none());
        let endpoints = [vtep_here, *other_vtep].into_iter().flatten();
        self.desired.loopback = endpoints.map(IpNet::from).collect();
        if let (Some(vtep), Some(other)) = (vtep, other_vtep)
            && vtep.is_ipv4() == other.is_ipv4()
        {
            self.refuse("underlay.otherVtep", "is of the same family as vtep");
        }
        self.desired.sysctls.extend(sysctl::router());
        let local = Family::BOTH
            .map(|family| Rule::all(Domain::Router, family, LOCAL_RULE_PRIORITY, TABLE_LOCAL));
        self.desired.rules.extend(local);
        self.trunk(trunk);
    }

    /// The pair that joins the two namespaces. Its router's end lies in the cluster VRF when it has addresses.
    fn trunk(&mut self, trunk: &Trunk) {
        let Trunk {
            host,
            router,
            mtu,
            host_addresses,
            router_addresses,
        } = trunk;
        let (host, router) = (LinkId::host(host), LinkId::router(router));
        let end = |peer: &LinkId| DesiredLink {
            mtu: Some(mtu.get().into()),
            ..DesiredLink::new(
                Kind::Veth {
                    peer: Some(peer.clone()),
                },
                "trunk",
                Timing::Before,
            )
        };
        let mut host_end = end(&router);
        host_end.addresses = nets(host_addresses);
        let mut router_end = end(&host);
        router_end.addresses = nets(router_addresses);
        for end in [&mut host_end, &mut router_end] {
            if !end.addresses.is_empty() {
                end.addr_gen = crate::object::AddrGen::Kernel;
            }
        }
        if !router_end.addresses.is_empty() {
            router_end.master = self
                .config
                .cluster_vrf
                .as_ref()
                .map(|vrf| vrf.devices.vrf.to_string());
        }
        self.link("underlay.trunk.host", host, host_end);
        self.link("underlay.trunk.router", router, router_end);
    }
}

/// Whether a text can name a file below `/run/netns` and nothing else.
fn is_file_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    (1..=64).contains(&text.len()) && !text.starts_with(['.', '-']) && text.bytes().all(plain)
}
