//! Sessions with a BGP speaker on the host: a pair of devices between the two namespaces.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    tcaas::node_network_config::{HostDevices, HostSession},
    value::{HostCidr, IfName},
};

use super::{Builder, DesiredLink, Timing, nets};
use crate::object::{AddrGen, Kind, LinkId};

impl Builder<'_> {
    pub(super) fn passthroughs(&mut self, passthroughs: &BTreeMap<String, HostSession>) {
        for (key, session) in passthroughs {
            let path = format!("passthroughs.{key}");
            if self.config.underlay.is_some() {
                self.host_session(&path, session, None);
            } else {
                self.refuse(path, "a passthrough needs an underlay");
            }
        }
    }

    /// The pair of a session. FRR binds to the router end, so it is created before FRR is configured.
    pub(super) fn host_session(&mut self, path: &str, session: &HostSession, vrf: Option<&IfName>) {
        let HostSession {
            // For people.
            source,
            devices: HostDevices { host, router },
            mtu,
            host_addresses,
            router_addresses,
            // FRR's.
            remote_as: _,
            local_as: _,
        } = session;
        let networks = |addresses: &[HostCidr]| -> BTreeSet<_> {
            addresses.iter().map(|address| address.prefix()).collect()
        };
        if host_addresses.is_empty() || networks(host_addresses) != networks(router_addresses) {
            let why = "needs an address of the host and one of the router in each of its networks";
            self.refuse(path, why);
        }
        let (host, router) = (LinkId::host(host), LinkId::router(router));
        let end = |peer: &LinkId, addresses| DesiredLink {
            mtu: Some(mtu.get().into()),
            addresses: nets(addresses),
            addr_gen: AddrGen::Kernel,
            ..DesiredLink::new(
                Kind::Veth {
                    peer: Some(peer.clone()),
                },
                source,
                Timing::Before,
            )
        };
        let host_end = end(&router, host_addresses);
        let router_end = DesiredLink {
            master: vrf.map(ToString::to_string),
            ..end(&host, router_addresses)
        };
        let at = format!("{path}.devices");
        self.link(&at, host, host_end);
        self.link(&at, router, router_end);
    }
}
