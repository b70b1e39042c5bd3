//! Layer 2 segments: bridge with the gateway, VXLAN, access port, and the host's own interface.

use api::{
    tcaas::node_network_config::{Irb, Layer2, StaticRoute, Underlay},
    value::IfName,
};

use super::{Builder, DesiredLink, Timing, nets};
use crate::{
    object::{AddrGen, BridgePort, Domain, Kind, LinkId, Route, RouteId, TABLE_MAIN},
    sysctl,
};

/// Metric of our routes in the host's main table: what the kernel gives IPv6 routes by itself, in both families. The
/// host's own routes to the same network, which usually have a lower one, win.
const HOST_ROUTE_METRIC: u32 = 1024;

impl Builder<'_> {
    pub(super) fn layer2s(&mut self) {
        let config = self.config;
        for (key, layer2) in &config.layer2s {
            let path = format!("layer2s.{key}");
            match &config.underlay {
                Some(underlay) => self.layer2(&path, layer2, underlay),
                None => self.refuse(path, "a segment needs an underlay"),
            }
        }
    }

    fn layer2(&mut self, path: &str, layer2: &Layer2, underlay: &Underlay) {
        if layer2.disable_segmentation {
            self.refuse(
                format!("{path}.disableSegmentation"),
                "switching offloads is not implemented yet",
            );
        }
        if layer2.mtu > underlay.trunk.mtu {
            let why = format!("exceeds the trunk's {}", underlay.trunk.mtu);
            self.refuse(format!("{path}.mtu"), why);
        }
        let what = format!("l2 {}", layer2.vlan);
        let link = |kind| DesiredLink {
            mtu: Some(layer2.mtu.get().into()),
            ..DesiredLink::new(kind, &what, Timing::After)
        };
        let mut bridge = link(Kind::Bridge);
        if let Some(irb) = &layer2.irb {
            self.gateway(path, layer2, irb, &mut bridge);
        }
        let at = format!("{path}.devices");
        self.link(&at, LinkId::router(&layer2.devices.bridge), bridge);
        self.vxlan(&at, layer2, underlay, link(Kind::Bridge));
        let port = DesiredLink {
            master: Some(layer2.devices.bridge.to_string()),
            ..link(Kind::Vlan {
                parent: Some(underlay.trunk.router.to_string()),
                id: layer2.vlan.get(),
            })
        };
        self.link(&at, LinkId::router(&layer2.devices.access_port), port);
        if let Some(interface) = &layer2.host_interface {
            let device = DesiredLink {
                addresses: nets(&interface.addresses),
                addr_gen: AddrGen::Kernel,
                ..link(Kind::Vlan {
                    parent: Some(underlay.trunk.host.to_string()),
                    id: layer2.vlan.get(),
                })
            };
            let path = format!("{path}.hostInterface");
            self.link(&path, LinkId::host(&interface.name), device);
            self.host_routes(&path, &interface.name, &interface.routes);
        }
    }

    fn gateway(&mut self, path: &str, layer2: &Layer2, irb: &Irb, bridge: &mut DesiredLink) {
        bridge.mac = Some(irb.mac_address);
        bridge.addresses = nets(&irb.ip_addresses);
        bridge.addr_gen = AddrGen::Kernel;
        match self.vrf_named(&irb.vrf) {
            Some(vrf) => bridge.master = Some(vrf.devices.vrf.to_string()),
            None => self.refuse(
                format!("{path}.irb.vrf"),
                format!("there is no VRF {:?}", irb.vrf),
            ),
        }
        let sysctls = sysctl::gateway(layer2.devices.bridge.as_str());
        self.desired.sysctls.extend(sysctls);
    }

    fn vxlan(&mut self, path: &str, layer2: &Layer2, underlay: &Underlay, base: DesiredLink) {
        let Some(vtep) = underlay.vtep else {
            self.refuse(path, "a segment needs a tunnel endpoint (underlay.vtep)");
            return;
        };
        let vxlan = DesiredLink {
            kind: Kind::Vxlan {
                vni: layer2.vni.get(),
                port: layer2.vxlan_port,
                local: Some(vtep),
                learning: false,
            },
            master: Some(layer2.devices.bridge.to_string()),
            port: Some(BridgePort {
                neigh_suppress: layer2.neigh_suppression,
                learning: false,
                hairpin: false,
            }),
            ..base
        };
        self.link(path, LinkId::router(&layer2.devices.vxlan), vxlan);
    }

    pub(super) fn host_routes(&mut self, path: &str, device: &IfName, routes: &[StaticRoute]) {
        for (i, route) in routes.iter().enumerate() {
            let path = format!("{path}.routes.{i}");
            if let Some(target) = self.host_route(&path, device, route) {
                let id = RouteId {
                    domain: Domain::Host,
                    table: TABLE_MAIN,
                    prefix: route.prefix.net(),
                    metric: HOST_ROUTE_METRIC,
                };
                if self.desired.routes.insert(id, target).is_some() {
                    let why = format!("the host has two routes to {}", route.prefix);
                    self.refuse(path, why);
                }
            }
        }
    }

    fn host_route(&mut self, path: &str, device: &IfName, route: &StaticRoute) -> Option<Route> {
        if route.bfd_profile.is_some() {
            self.refuse(
                format!("{path}.bfdProfile"),
                "a host's route has no BFD session",
            );
        }
        let Some(next_hop) = &route.next_hop else {
            return Some(Route::Blackhole);
        };
        match (next_hop.address, &next_hop.vrf) {
            (Some(gateway), None) if gateway.is_ipv4() == route.prefix.is_ipv4() => {
                Some(Route::Via {
                    gateway,
                    device: device.to_string(),
                })
            }
            (Some(_), None) => {
                self.refuse(path, "prefix and next hop are of different families");
                None
            }
            _ => {
                self.refuse(
                    format!("{path}.nextHop"),
                    "a host's route goes to an address",
                );
                None
            }
        }
    }
}
