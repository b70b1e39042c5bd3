//! VLANs of the host on existing devices, which are never modified, and loopbacks of the host.

use std::collections::BTreeMap;

use api::tcaas::node_network_config::{HostLoopback, HostVlan};

use super::{Builder, DesiredLink, Timing, nets};
use crate::object::{AddrGen, Kind, LinkId};

impl Builder<'_> {
    pub(super) fn host_loopbacks(&mut self, loopbacks: &BTreeMap<String, HostLoopback>) {
        for (name, HostLoopback { addresses }) in loopbacks {
            let path = format!("hostLoopbacks.{name}");
            let Some(name) = self.device_name(&path, name) else {
                continue;
            };
            let device = DesiredLink {
                addresses: nets(addresses),
                ..DesiredLink::new(Kind::Dummy, "loopback of a BGP peer", Timing::After)
            };
            self.link(&path, LinkId::host(&name), device);
        }
    }

    pub(super) fn host_vlans(&mut self, vlans: &BTreeMap<String, HostVlan>) {
        for (name, host_vlan) in vlans {
            let HostVlan {
                parent,
                vlan,
                mtu,
                addresses,
                routes,
            } = host_vlan;
            let path = format!("hostVLANs.{name}");
            let Some(name) = self.device_name(&path, name) else {
                continue;
            };
            if self.desired.nics.contains(parent.as_str()) {
                let why = format!("{parent} belongs to the router");
                self.refuse(format!("{path}.parent"), why);
                continue;
            }
            let kind = Kind::Vlan {
                parent: Some(parent.to_string()),
                id: vlan.get(),
            };
            let device = DesiredLink {
                mtu: Some(mtu.get().into()),
                addresses: nets(addresses),
                addr_gen: AddrGen::Kernel,
                ..DesiredLink::new(kind, &format!("vlan {vlan}"), Timing::After)
            };
            self.link(&path, LinkId::host(&name), device);
            self.host_routes(&path, &name, routes);
        }
    }
}
