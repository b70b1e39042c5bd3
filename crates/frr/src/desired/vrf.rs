//! VRFs → `vrf` blocks and their BGP instances.

use std::collections::BTreeSet;

use api::{
    tcaas::node_network_config::{
        self as nnc, ActionType, Filter, NextHop, Redistribute, StaticRoute, Underlay, VrfDevices,
        VrfImport,
    },
    value::IfName,
};

use super::{Build, filter::Purpose, underlay};
use crate::{
    config::{self, Advertise, Bgp, IpFamily, RedistributeSource, Via},
    names,
};

impl Build<'_> {
    pub(super) fn vrf(&mut self, path: &str, vrf: &nnc::Vrf, underlay: &Underlay) {
        // Loopbacks, policy routes, mirrors, tunnels, table and MTU are the kernel's; `evpn` has what EVPN announces and takes.
        let nnc::Vrf {
            source: _,
            vni,
            evpn_import_route_targets: _,
            evpn_export_route_targets: _,
            evpn_export_filter: _,
            loopbacks: _,
            asn,
            // With all of the VRF: `vrf_host_session`.
            host_session: _,
            bgp_peers,
            vrf_imports,
            static_routes,
            aggregates,
            policy_routes: _,
            mirror_acls: _,
            redistribute,
            gres: _,
            table: _,
            devices:
                VrfDevices {
                    vrf: device,
                    bridge: _,
                    vxlan: _,
                },
            mtu: _,
            vxlan_port: _,
            from_other_vtep,
        } = vrf;
        let mut zebra = config::Vrf {
            vni: *vni,
            ..config::Vrf::default()
        };
        for (position, route) in static_routes.iter().enumerate() {
            let path = format!("{path}.staticRoutes[{position}]");
            self.static_route(&path, device, route, &mut zebra);
        }
        for prefix in zebra.contradictions() {
            let why = format!("{prefix} is both dropped and routed");
            self.refuse(&format_args!("{path}.staticRoutes"), why);
        }
        // A VRF without settings for zebra needs no block, and FRR 8.4 would not show one.
        if zebra != config::Vrf::default() {
            self.config.vrfs.insert(device.clone(), zebra);
        }

        let mut bgp = underlay::instance(underlay);
        bgp.asn = asn.unwrap_or(bgp.asn);
        for prefix in aggregates {
            let family = IpFamily::of(*prefix);
            if prefix.net().prefix_len() == family.bits() {
                let why = format!("{prefix} is a single address, which has no parts");
                self.refuse(&format_args!("{path}.aggregates"), why);
            }
            bgp.unicast_mut(family).aggregates.insert(*prefix);
        }
        for (position, peer) in bgp_peers.iter().enumerate() {
            self.bgp_peer(
                &format!("{path}.bgpPeers[{position}]"),
                device,
                peer,
                &mut bgp,
            );
        }
        if let Some(redistribute) = redistribute {
            self.redistribute(path, device, redistribute, &mut bgp);
        }
        self.imports(path, device, vrf_imports, &mut bgp);
        let endpoint = if *from_other_vtep {
            underlay.other_vtep
        } else {
            underlay.vtep
        };
        self.evpn(path, vrf, endpoint.is_some(), &mut bgp);
        self.vrf_host_session(path, vrf, &mut bgp);
        self.config.bgp.insert(Some(device.clone()), bgp);
    }

    fn static_route(
        &mut self,
        path: &str,
        own: &IfName,
        route: &StaticRoute,
        vrf: &mut config::Vrf,
    ) {
        let StaticRoute {
            prefix,
            next_hop,
            bfd_profile,
        } = route;
        let via = match next_hop {
            None => Via::Blackhole,
            Some(NextHop {
                address: None,
                vrf: None,
            }) => {
                let why = "needs an address or a VRF; leave it out to drop packets";
                return self.refuse(&format_args!("{path}.nextHop"), why);
            }
            Some(NextHop {
                address: None,
                vrf: Some(name),
            }) => match self.vrf_device(&format_args!("{path}.nextHop.vrf"), name) {
                Some(device) => Via::Vrf(device),
                None => return,
            },
            Some(NextHop {
                address: Some(address),
                vrf,
            }) => {
                if address.is_ipv4() != prefix.is_ipv4() {
                    let why = "is of another family than the prefix, which FRR does not route";
                    return self.refuse(&format_args!("{path}.nextHop.address"), why);
                }
                let vrf = match vrf {
                    None => None,
                    Some(name) => {
                        let device = self.vrf_device(&format_args!("{path}.nextHop.vrf"), name);
                        if device.is_none() {
                            return;
                        }
                        device
                    }
                };
                // FRR does not show the route's own VRF.
                Via::Address(*address, vrf.filter(|vrf| vrf != own))
            }
        };
        let bfd = bfd_profile.and_then(|nnc::BfdProfile { min_interval }| {
            let path = format!("{path}.bfdProfile");
            if !matches!(via, Via::Address(..)) {
                self.refuse(&path, "needs a next hop with an address to watch");
            }
            if !self.features.static_route_bfd {
                let why = format!("FRR {} has no BFD on static routes", self.version);
                self.refuse(&path, why);
                return None;
            }
            Some(self.interval_profile(&path, min_interval))
        });
        let route = config::StaticRoute {
            prefix: *prefix,
            via,
        };
        if vrf
            .static_routes
            .get(&route)
            .is_some_and(|other| *other != bfd)
        {
            self.refuse(&path, "is there twice, with different BFD");
        }
        vrf.static_routes.insert(route, bfd);
    }

    /// One filter for both families: each rule matches its own family.
    fn redistribute(&mut self, path: &str, device: &IfName, from: &Redistribute, bgp: &mut Bgp) {
        let Redistribute { connected, statics } = from;
        for (source, filter) in [
            (RedistributeSource::Connected, connected),
            (RedistributeSource::Static, statics),
        ] {
            let Some(filter) = filter else { continue };
            let word = source.as_str();
            let name = names::redistribution(device, source);
            let path = format!("{path}.redistribute.{word}");
            let map = self.filter(&path, name, filter, Purpose::Redistribution);
            for family in IpFamily::BOTH {
                bgp.unicast_mut(family)
                    .redistribute
                    .insert(source, Some(map.clone()));
            }
        }
    }

    fn imports(&mut self, path: &str, device: &IfName, imports: &[VrfImport], bgp: &mut Bgp) {
        let mut filters = Vec::new();
        let mut sources = BTreeSet::new();
        for (position, VrfImport { from_vrf, filter }) in imports.iter().enumerate() {
            let path = format!("{path}.vrfImports[{position}]");
            let Some(source) = self.vrf_device(&format_args!("{path}.fromVrf"), from_vrf) else {
                continue;
            };
            if source == *device {
                self.refuse(
                    &format_args!("{path}.fromVrf"),
                    "a VRF cannot import from itself",
                );
                continue;
            }
            if !sources.insert(source.clone()) {
                let why = format!("{from_vrf} is imported twice; put the rules into one filter");
                self.refuse(&format_args!("{path}.fromVrf"), why);
                continue;
            }
            let name = names::import_from(device, &source);
            let map = self.filter(&format!("{path}.filter"), name, filter, Purpose::Leak);
            filters.push((source, map));
        }
        if filters.is_empty() {
            return;
        }
        let map = self.import_map(names::imports(device), &filters);
        for family in IpFamily::BOTH {
            let unicast = bgp.unicast_mut(family);
            unicast.import_route_map = Some(map.clone());
            unicast.import_vrfs.clone_from(&sources);
        }
    }

    fn evpn(&mut self, path: &str, vrf: &nnc::Vrf, has_vtep: bool, bgp: &mut Bgp) {
        let (imports, exports) = (
            &vrf.evpn_import_route_targets,
            &vrf.evpn_export_route_targets,
        );
        if vrf.vni.is_none() {
            let said =
                !imports.is_empty() || !exports.is_empty() || vrf.evpn_export_filter.is_some();
            if said {
                self.refuse(
                    &path,
                    "has route targets or an EVPN filter, but no vni to carry it",
                );
            }
            return;
        }
        if !has_vtep {
            let field = underlay::endpoint_field(vrf.from_other_vtep);
            self.refuse(&field, format!("is missing, but {path} has a VNI"));
        }
        let wildcard =
            |target: &_| matches!(target, api::value::ImportRouteTarget::AnyAdministrator(_));
        if !self.features.wildcard_route_targets && imports.iter().any(wildcard) {
            let why = format!("FRR {} cannot import *:number", self.version);
            self.refuse(&format_args!("{path}.evpnImportRouteTargets"), why);
        }
        let name = names::evpn_export(&vrf.devices.vrf);
        // Without a filter everything goes that may go at all.
        let everything = Filter::default_to(ActionType::Accept);
        let filter = vrf.evpn_export_filter.as_ref().unwrap_or(&everything);
        let path = format!("{path}.evpnExportFilter");
        let route_map = Some(self.filter(&path, name, filter, Purpose::FabricExport));
        bgp.evpn.advertise_ipv4 = Some(Advertise {
            route_map: route_map.clone(),
        });
        bgp.evpn.advertise_ipv6 = Some(Advertise { route_map });
        bgp.evpn.import_targets = imports.iter().copied().collect();
        bgp.evpn.export_targets = exports.iter().copied().collect();
    }
}
