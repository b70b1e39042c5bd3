//! VRFs: device, unreachable default, the bridge and VXLAN of an L3 VNI, loopbacks, and the pair of a host session.

use std::collections::BTreeMap;

use api::{
    tcaas::node_network_config::{Loopback, Underlay, Vrf, VrfDevices},
    value::{IfName, InvalidValue, Mtu, Vni},
};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::{Builder, DesiredLink, Timing, endpoint, endpoint_field, nets};
use crate::object::{BridgePort, Domain, Kind, LinkId, Route, RouteId};

/// Metric of the unreachable default in every VRF: the one that the kernel's documentation uses. Any other route wins
/// over it, and without it a packet that finds none would be looked up in the tables behind.
pub(crate) const UNREACHABLE_METRIC: u32 = 4_278_198_272;

/// The VXLAN of a VRF.
#[derive(Clone, Copy)]
struct L3Vni {
    vni: Vni,
    port: u16,
    mtu: Mtu,
    from_other_vtep: bool,
}

impl Builder<'_> {
    pub(super) fn vrfs(&mut self, vrfs: &[(String, &Vrf)]) {
        for (path, vrf) in vrfs {
            self.vrf(path, vrf);
        }
        self.policy_routes();
    }

    fn vrf(&mut self, path: &str, vrf: &Vrf) {
        let Vrf {
            // The operator's.
            source: _,
            vni,
            // Configured in FRR: BGP sessions and filters, and static routes (`staticd`).
            evpn_import_route_targets: _,
            evpn_export_route_targets: _,
            evpn_export_filter: _,
            asn: _,
            bgp_peers: _,
            vrf_imports: _,
            static_routes: _,
            aggregates: _,
            redistribute: _,
            loopbacks,
            host_session,
            // After all VRFs: `policy_routes`.
            policy_routes: _,
            // After all else: `mirrors`.
            mirror_acls: _,
            gres: _,
            table,
            devices,
            mtu,
            vxlan_port,
            from_other_vtep,
        } = vrf;
        let Some(underlay) = &self.config.underlay else {
            self.refuse(path, "a VRF needs an underlay");
            return;
        };
        if matches!(table, 0 | 253..=255) {
            let why = format!("table {table} is the kernel's own");
            self.refuse(format!("{path}.table"), why);
        }
        let device = DesiredLink::new(
            Kind::Vrf { table: *table },
            &format!("vrf {}", devices.vrf),
            Timing::Before,
        );
        self.link(path, LinkId::router(&devices.vrf), device);
        for prefix in [IpNet::V4(Ipv4Net::default()), IpNet::V6(Ipv6Net::default())] {
            let id = RouteId {
                domain: Domain::Router,
                table: *table,
                prefix,
                metric: UNREACHABLE_METRIC,
            };
            if self.desired.routes.insert(id, Route::Unreachable).is_some() {
                let why = format!("table {table} is used twice");
                self.refuse(format!("{path}.table"), why);
                break;
            }
        }
        if let Some(vni) = vni {
            let vxlan = L3Vni {
                vni: *vni,
                port: *vxlan_port,
                mtu: *mtu,
                from_other_vtep: *from_other_vtep,
            };
            self.l3_vni(path, devices, vxlan, underlay);
        }
        self.loopbacks(path, &devices.vrf, loopbacks);
        if let Some(session) = host_session {
            let path = format!("{path}.hostSession");
            self.host_session(&path, session, Some(&devices.vrf));
        }
    }

    fn l3_vni(&mut self, path: &str, devices: &VrfDevices, l3: L3Vni, underlay: &Underlay) {
        let L3Vni {
            vni,
            port,
            mtu,
            from_other_vtep,
        } = l3;
        let Some(vtep) = endpoint(underlay, from_other_vtep) else {
            let field = endpoint_field(from_other_vtep);
            let why = format!("a VNI needs a tunnel endpoint ({field})");
            self.refuse(format!("{path}.vni"), why);
            return;
        };
        let VrfDevices { vrf, bridge, vxlan } = devices;
        let (Some(bridge), Some(vxlan)) = (bridge, vxlan) else {
            self.refuse(
                format!("{path}.devices"),
                "a VNI needs names for its bridge and VXLAN",
            );
            return;
        };
        let what = format!("vrf {vrf} vni {vni}");
        let bridge_link = DesiredLink {
            mtu: Some(mtu.get().into()),
            mac: Some(underlay.router_mac),
            master: Some(vrf.to_string()),
            ..DesiredLink::new(Kind::Bridge, &what, Timing::Split)
        };
        let kind = Kind::Vxlan {
            vni: vni.get(),
            port,
            local: Some(vtep),
            learning: false,
        };
        let vxlan_link = DesiredLink {
            mtu: Some(mtu.get().into()),
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

    fn loopbacks(&mut self, path: &str, vrf: &IfName, loopbacks: &BTreeMap<String, Loopback>) {
        for (name, Loopback { ip_addresses }) in loopbacks {
            let path = format!("{path}.loopbacks.{name}");
            let Some(name) = self.device_name(&path, name) else {
                continue;
            };
            let link = DesiredLink {
                master: Some(vrf.to_string()),
                addresses: nets(ip_addresses),
                ..DesiredLink::new(Kind::Dummy, &format!("loopback of {vrf}"), Timing::Before)
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
