//! The host's VLANs on devices of its own, which are somebody else's and never touched, and its loopbacks.

use super::{Builder, DesiredLink, Timing, nets};
use crate::object::{AddrGen, Kind, LinkId};

impl Builder<'_> {
    pub(super) fn host_loopbacks(&mut self) {
        let config = self.config;
        for (name, loopback) in &config.host_loopbacks {
            let path = format!("hostLoopbacks.{name}");
            let Some(name) = self.device_name(&path, name) else {
                continue;
            };
            let device = DesiredLink {
                addresses: nets(&loopback.addresses),
                ..DesiredLink::new(Kind::Dummy, "loopback of a BGP peer", Timing::After)
            };
            self.link(&path, LinkId::host(&name), device);
        }
    }

    pub(super) fn host_vlans(&mut self) {
        let config = self.config;
        for (name, vlan) in &config.host_vlans {
            let path = format!("hostVLANs.{name}");
            let Some(name) = self.device_name(&path, name) else {
                continue;
            };
            if self.desired.nics.contains(vlan.parent.as_str()) {
                let why = format!("{} is the router's", vlan.parent);
                self.refuse(format!("{path}.parent"), why);
                continue;
            }
            let kind = Kind::Vlan {
                parent: Some(vlan.parent.to_string()),
                id: vlan.vlan.get(),
            };
            let device = DesiredLink {
                mtu: Some(vlan.mtu.get().into()),
                addresses: nets(&vlan.addresses),
                addr_gen: AddrGen::Kernel,
                ..DesiredLink::new(kind, &format!("vlan {}", vlan.vlan), Timing::After)
            };
            self.link(&path, LinkId::host(&name), device);
            self.host_routes(&path, &name, &vlan.routes);
        }
    }
}
