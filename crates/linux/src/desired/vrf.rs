//! VRFs: device, unreachable default, the bridge and VXLAN of an L3 VNI, and loopbacks.

use api::{
    tcaas::node_network_config::Vrf,
    value::{IfName, InvalidValue},
};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::{Builder, DesiredLink, Timing, nets};
use crate::object::{BridgePort, Domain, Kind, LinkId, Route, RouteId};

/// Metric of the unreachable default in every VRF: the one that the kernel's documentation uses. Any other route wins
/// over it, and without it a packet that finds none would be looked up in the tables behind.
pub(crate) const UNREACHABLE_METRIC: u32 = 4_278_198_272;

impl Builder<'_> {
    pub(super) fn vrfs(&mut self) {
        let config = self.config;
        if let Some(vrf) = &config.cluster_vrf {
            self.vrf("clusterVRF", vrf);
        }
        for (group, vrfs) in [
            ("fabricVRFs", &config.fabric_vrfs),
            ("localVRFs", &config.local_vrfs),
        ] {
            for (name, vrf) in vrfs {
                self.vrf(&format!("{group}.{name}"), vrf);
            }
        }
        self.policy_routes();
    }

    fn vrf(&mut self, path: &str, vrf: &Vrf) {
        if self.config.underlay.is_none() {
            self.refuse(path, "a VRF needs an underlay");
            return;
        }
        if matches!(vrf.table, 0 | 253..=255) {
            let why = format!("table {} is the kernel's own", vrf.table);
            self.refuse(format!("{path}.table"), why);
        }
        let device = DesiredLink::new(
            Kind::Vrf { table: vrf.table },
            &format!("vrf {}", vrf.devices.vrf),
            Timing::Before,
        );
        self.link(path, LinkId::router(&vrf.devices.vrf), device);
        for prefix in [IpNet::V4(Ipv4Net::default()), IpNet::V6(Ipv6Net::default())] {
            let id = RouteId {
                domain: Domain::Router,
                table: vrf.table,
                prefix,
                metric: UNREACHABLE_METRIC,
            };
            if self.desired.routes.insert(id, Route::Unreachable).is_some() {
                let why = format!("table {} is used twice", vrf.table);
                self.refuse(format!("{path}.table"), why);
                break;
            }
        }
        self.l3_vni(path, vrf);
        self.loopbacks(path, vrf);
    }

    fn l3_vni(&mut self, path: &str, vrf: &Vrf) {
        let Some(vni) = vrf.vni else { return };
        let Some(underlay) = &self.config.underlay else {
            return;
        };
        let Some(vtep) = underlay.vtep else {
            self.refuse(
                format!("{path}.vni"),
                "a VNI needs a tunnel endpoint (underlay.vtep)",
            );
            return;
        };
        let (Some(bridge), Some(vxlan)) = (&vrf.devices.bridge, &vrf.devices.vxlan) else {
            self.refuse(
                format!("{path}.devices"),
                "a VNI needs names for its bridge and VXLAN",
            );
            return;
        };
        let what = format!("vrf {} vni {vni}", vrf.devices.vrf);
        let bridge_link = DesiredLink {
            mtu: Some(vrf.mtu.get().into()),
            mac: Some(underlay.router_mac),
            master: Some(vrf.devices.vrf.to_string()),
            ..DesiredLink::new(Kind::Bridge, &what, Timing::Split)
        };
        let kind = Kind::Vxlan {
            vni: vni.get(),
            port: vrf.vxlan_port,
            local: Some(vtep),
            learning: false,
        };
        let vxlan_link = DesiredLink {
            mtu: Some(vrf.mtu.get().into()),
            master: Some(bridge.to_string()),
            port: Some(BridgePort {
                neigh_suppress: false,
                learning: false,
                hairpin: false,
            }),
            ..DesiredLink::new(kind, &what, Timing::Split)
        };
        let at = format!("{path}.devices");
        self.link(&at, LinkId::router(bridge), bridge_link);
        self.link(&at, LinkId::router(vxlan), vxlan_link);
    }

    fn loopbacks(&mut self, path: &str, vrf: &Vrf) {
        for (name, loopback) in &vrf.loopbacks {
            let path = format!("{path}.loopbacks.{name}");
            let Some(name) = self.device_name(&path, name) else {
                continue;
            };
            let link = DesiredLink {
                master: Some(vrf.devices.vrf.to_string()),
                addresses: nets(&loopback.ip_addresses),
                ..DesiredLink::new(
                    Kind::Dummy,
                    &format!("loopback of {}", vrf.devices.vrf),
                    Timing::Before,
                )
            };
            self.link(&path, LinkId::router(name), link);
        }
    }

    pub(super) fn device_name(&mut self, path: &str, name: &str) -> Option<IfName> {
        name.parse()
            .map_err(|why: InvalidValue| self.refuse(path, why.to_string()))
            .ok()
    }
}
