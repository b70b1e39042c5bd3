//! Layer 2 segments: bridge with the gateway, VXLAN, and their end in the host: a VLAN of the trunk with the host's own interface, or a
//! pair of devices with the host's bridge.

use std::collections::BTreeMap;

use api::{
    tcaas::node_network_config::{
        HostInterface, HostMaster, HostMasterKind, HostPort, Irb, Layer2, Layer2Devices, NextHop,
        StaticRoute, Underlay,
    },
    value::{IfName, VlanId},
};

use super::{Builder, DesiredLink, Timing, Unsupported, endpoint, endpoint_field, nets};
use crate::{
    object::{AddrGen, BridgePort, Domain, Kind, LinkId, Route, RouteId, TABLE_MAIN},
    owned, sysctl,
};

/// Metric of our routes in the host's main table: what the kernel gives IPv6 routes by itself, in both families. The
/// host's own routes to the same network, which usually have a lower one, win.
const HOST_ROUTE_METRIC: u32 = 1024;

impl Builder<'_> {
    pub(super) fn layer2s(&mut self, layer2s: &BTreeMap<String, Layer2>) {
        let config = self.config;
        for (key, layer2) in layer2s {
            let path = format!("layer2s.{key}");
            match &config.underlay {
                Some(underlay) => self.layer2(&path, layer2, underlay),
                None => self.refuse(path, "a segment needs an underlay"),
            }
        }
    }

    fn layer2(&mut self, path: &str, layer2: &Layer2, underlay: &Underlay) {
        let Layer2 {
            // The operator's.
            source: _,
            vni,
            vlan,
            // FRR's: EVPN announces the segment with it.
            route_target: _,
            mtu,
            irb,
            // After all else: `mirrors`.
            mirror_acls: _,
            disable_segmentation,
            neigh_suppression,
            devices:
                Layer2Devices {
                    bridge,
                    vxlan,
                    access_port: _,
                },
            vxlan_port,
            from_other_vtep,
            // With the VLAN: `access_port`.
            host_port: _,
            host_interface: _,
        } = layer2;
        if *disable_segmentation {
            self.refuse(
                format!("{path}.disableSegmentation"),
                "switching offloads is not implemented yet",
            );
        }
        let what = vlan.map_or_else(|| format!("l2 vni {vni}"), |vlan| format!("l2 {vlan}"));
        let link = |kind| DesiredLink {
            mtu: Some(mtu.get().into()),
            ..DesiredLink::new(kind, &what, Timing::After)
        };
        let mut bridge_link = link(Kind::Bridge);
        if let Some(irb) = irb {
            self.gateway(path, bridge, irb, &mut bridge_link);
        }
        let at = format!("{path}.devices");
        self.link(&at, LinkId::router(bridge), bridge_link);
        if let Some(vtep) = endpoint(underlay, *from_other_vtep) {
            let kind = Kind::Vxlan {
                vni: vni.get(),
                port: *vxlan_port,
                local: Some(vtep),
                learning: false,
            };
            let vxlan_link = DesiredLink {
                master: Some(bridge.to_string()),
                port: Some(BridgePort {
                    neigh_suppress: *neigh_suppression,
                    learning: false,
                    hairpin: false,
                }),
                ..link(kind)
            };
            self.link(&at, LinkId::router(vxlan), vxlan_link);
        } else {
            let field = endpoint_field(*from_other_vtep);
            let why = format!("a segment needs a tunnel endpoint ({field})");
            self.refuse(&at, why);
        }
        self.access_port(path, layer2, underlay, &what);
    }

    /// The port towards the host, and the host's end of it.
    fn access_port(&mut self, path: &str, layer2: &Layer2, underlay: &Underlay, what: &str) {
        let mtu = layer2.mtu;
        let Layer2Devices {
            bridge,
            vxlan: _,
            access_port,
        } = &layer2.devices;
        let link = |kind| DesiredLink {
            mtu: Some(mtu.get().into()),
            ..DesiredLink::new(kind, what, Timing::After)
        };
        let port = |kind| DesiredLink {
            master: Some(bridge.to_string()),
            ..link(kind)
        };
        let at = format!("{path}.devices");
        match (layer2.vlan, &layer2.host_port) {
            (Some(vlan), None) => {
                if mtu > underlay.trunk.mtu {
                    let why = format!("exceeds the trunk's {}", underlay.trunk.mtu);
                    self.refuse(format!("{path}.mtu"), why);
                }
                let port = port(access(&underlay.trunk.router, vlan));
                self.link(&at, LinkId::router(access_port), port);
                if let Some(interface) = &layer2.host_interface {
                    let device = link(access(&underlay.trunk.host, vlan));
                    self.host_interface(path, interface, device);
                }
            }
            (None, Some(host_port)) => {
                let (host, router) = (LinkId::host(&host_port.device), LinkId::router(access_port));
                let router_end = port(Kind::Veth { peer: Some(host) });
                let host_end = link(Kind::Veth {
                    peer: Some(router.clone()),
                });
                self.link(&at, router, router_end);
                self.host_port(path, what, host_port, host_end);
                if layer2.host_interface.is_some() {
                    let why = "is a VLAN of the trunk, which the segment does not have";
                    self.refuse(format!("{path}.hostInterface"), why);
                }
            }
            (None, None) | (Some(_), Some(_)) => {
                self.refuse(path, "needs exactly one of vlan and hostPort");
            }
        }
    }

    fn host_interface(&mut self, path: &str, interface: &HostInterface, device: DesiredLink) {
        let HostInterface {
            name,
            addresses,
            routes,
        } = interface;
        let device = DesiredLink {
            addresses: nets(addresses),
            addr_gen: AddrGen::Kernel,
            ..device
        };
        let path = format!("{path}.hostInterface");
        self.link(&path, LinkId::host(name), device);
        self.host_routes(&path, name, routes);
    }

    /// The host's end of a pair, and the bridge that it is a port of where that is made with it. The alias of a port names the bridge
    /// that we put it into, to distinguish it from one that another program chose.
    fn host_port(&mut self, path: &str, what: &str, port: &HostPort, end: DesiredLink) {
        let HostPort { device, master } = port;
        let path = format!("{path}.hostPort");
        let mut end = DesiredLink {
            shared: true,
            ..end
        };
        match master {
            None => end.addr_gen = AddrGen::Kernel,
            Some(HostMaster {
                name,
                kind: HostMasterKind::LinuxBridge,
                create,
            }) => {
                end.alias = owned::port_alias(what, name.as_str());
                end.master = Some(name.to_string());
                if *create {
                    let bridge = DesiredLink {
                        mtu: end.mtu,
                        addr_gen: AddrGen::Kernel,
                        shared: true,
                        ..DesiredLink::new(Kind::Bridge, what, Timing::After)
                    };
                    self.link(&path, LinkId::host(name), bridge);
                }
            }
            Some(HostMaster {
                name,
                kind: HostMasterKind::OvsBridge,
                create: _,
            }) => {
                let why = format!(
                    "{device} is not attached: {name} is a bridge of Open vSwitch, which is not supported on this node"
                );
                let path = format!("{path}.master");
                self.desired.unattached.push(Unsupported { path, why });
            }
        }
        self.link(&path, LinkId::host(device), end);
    }

    fn gateway(&mut self, path: &str, bridge: &IfName, irb: &Irb, link: &mut DesiredLink) {
        let Irb {
            vrf,
            mac_address,
            ip_addresses,
        } = irb;
        link.mac = Some(*mac_address);
        link.addresses = nets(ip_addresses);
        link.addr_gen = AddrGen::Kernel;
        match self.vrf_named(vrf) {
            Some(vrf) => link.master = Some(vrf.devices.vrf.to_string()),
            None => self.refuse(
                format!("{path}.irb.vrf"),
                format!("there is no VRF {vrf:?}"),
            ),
        }
        let sysctls = sysctl::gateway(bridge.as_str());
        self.desired.sysctls.extend(sysctls);
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
        let StaticRoute {
            prefix,
            next_hop,
            bfd_profile,
        } = route;
        if bfd_profile.is_some() {
            self.refuse(
                format!("{path}.bfdProfile"),
                "a host's route has no BFD session",
            );
        }
        let Some(NextHop { address, vrf }) = next_hop else {
            return Some(Route::Blackhole);
        };
        match (*address, vrf) {
            (Some(gateway), None) if gateway.is_ipv4() == prefix.is_ipv4() => Some(Route::Via {
                gateway,
                device: device.to_string(),
            }),
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

/// A VLAN of the trunk.
fn access(trunk: &IfName, vlan: VlanId) -> Kind {
    Kind::Vlan {
        parent: Some(trunk.to_string()),
        id: vlan.get(),
    }
}
