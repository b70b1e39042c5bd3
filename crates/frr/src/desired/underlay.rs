//! The underlay → the BGP instance of the default VRF.

use std::{collections::BTreeMap, fmt, net::IpAddr};

use api::{
    tcaas::node_network_config::{self as nnc, AddressFamilyName, HostSession, Layer2, Underlay},
    value::{Asn, Prefix},
};

use super::Build;
use crate::config::{
    Bgp, Description, GracefulRestart, IpFamily, Neighbor, NeighborFamily, Peer, RemoteAs, Timers,
    UpdateSource, VniTargets, derived_target,
};

/// Longest graceful-restart timer that fits into BGP's capability.
const MAX_RESTART_SECONDS: u16 = 4095;

/// How often our own AS may be in a path: once, for another node of the cluster behind the fabric. More would be a loop.
const OWN_AS_TIMES: u8 = 1;

impl Build<'_> {
    pub(super) fn underlay(
        &mut self,
        underlay: &Underlay,
        layer2s: &BTreeMap<String, Layer2>,
        passthroughs: &BTreeMap<String, HostSession>,
    ) {
        // Namespace, devices and MAC are the kernel's; the router id is part of every `instance`; the source is the operator's.
        let Underlay {
            source: _,
            namespace: _,
            asn,
            router_id: _,
            nics: _,
            vtep,
            vtep_interface,
            other_vtep,
            router_mac: _,
            trunk,
            workload_networks,
            neighbors,
            graceful_restart,
        } = underlay;
        if let Some(nnc::GracefulRestart {
            restart_time,
            stale_path_time,
        }) = graceful_restart
        {
            for (field, seconds) in [
                ("restartTime", *restart_time),
                ("stalePathTime", *stale_path_time),
            ] {
                if !(1..=MAX_RESTART_SECONDS).contains(&seconds) {
                    let path = format!("underlay.gracefulRestart.{field}");
                    self.refuse(&path, format!("must be 1–{MAX_RESTART_SECONDS} seconds"));
                }
            }
        }
        let mut bgp = instance(underlay);
        // Every session has route maps. Taking FRR's default back on a running node would withdraw all routes for a moment.
        bgp.ebgp_requires_policy = false;
        self.node_only_networks(trunk, workload_networks);
        for (position, neighbor) in neighbors.iter().enumerate() {
            let path = format!("underlay.neighbors[{position}]");
            self.fabric_neighbor(&path, neighbor, *asn, *vtep, &mut bgp);
        }
        self.passthroughs(passthroughs, &mut bgp);
        for (other, vtep) in [(false, vtep), (true, other_vtep)] {
            let field = endpoint_field(other);
            if let Some(vtep) = vtep {
                if vtep.is_ipv6() && !self.features.ipv6_vtep {
                    let why = format!("FRR {} has no IPv6 VTEPs", self.version);
                    self.refuse(&field, why);
                }
                let host = Prefix::host(*vtep);
                // The fabric knows the way to the address of a device.
                if other || vtep_interface.is_none() {
                    bgp.unicast_mut(IpFamily::of(host)).networks.insert(host);
                }
                bgp.evpn.advertise_all_vni = true;
            } else if layer2s.values().any(|it| it.from_other_vtep == other) {
                self.refuse(&field, "is missing, but layer 2 segments need it");
            }
        }
        self.segments(layer2s, *asn, &mut bgp);
        self.config.bgp.insert(None, bgp);
    }

    /// Route targets of segments. The one that FRR derives by itself is not written: 8.4 would not store it.
    fn segments(&mut self, layer2s: &BTreeMap<String, Layer2>, asn: Asn, bgp: &mut Bgp) {
        for (key, layer2) in layer2s {
            // All but VNI and route target are the kernel's.
            let Layer2 {
                source: _,
                vni,
                vlan: _,
                route_target,
                mtu: _,
                irb: _,
                mirror_acls: _,
                disable_segmentation: _,
                neigh_suppression: _,
                devices: _,
                vxlan_port: _,
                from_other_vtep: _,
                host_port: _,
                host_interface: _,
            } = layer2;
            let derived = derived_target(asn, *vni);
            let Some(target) = route_target.filter(|target| Some(*target) != derived) else {
                continue;
            };
            let targets = VniTargets {
                rd: None,
                import: [target.into()].into(),
                export: [target].into(),
            };
            if bgp.evpn.vnis.insert(*vni, targets).is_some() {
                let path = format!("layer2s[{key}].vni");
                self.refuse(&path, format!("{vni} is the VNI of another segment"));
            }
        }
    }

    fn fabric_neighbor(
        &mut self,
        path: &str,
        neighbor: &nnc::Neighbor,
        asn: Asn,
        vtep: Option<IpAddr>,
        bgp: &mut Bgp,
    ) {
        let nnc::Neighbor {
            address,
            interface,
            remote_as,
            port,
            keepalive_time,
            hold_time,
            connect_time,
            ebgp_multi_hop,
            allow_own_as,
            bfd,
            password_secret,
            from_vtep,
            address_families,
        } = neighbor;
        let peer = match (address, interface) {
            (Some(address), None) => Peer::Address(*address),
            (None, Some(device)) => Peer::Interface(device.clone()),
            _ => return self.refuse(&path, "needs exactly one of address and interface"),
        };
        let Some(remote_as) = self.remote_as(path, *remote_as) else {
            return;
        };
        let external = remote_as.is_external(asn);
        let mut session = Neighbor::new(remote_as);
        session.description = Some(Description::of(format_args!("fabric")));
        session.port = port.filter(|port| *port != 179);
        if *port == Some(0) {
            self.refuse(&format_args!("{path}.port"), "0 is no port to dial");
        }
        session.timers = self.timers(&path, *keepalive_time, *hold_time);
        session.connect_time = *connect_time;
        if *connect_time == Some(0) {
            self.refuse(
                &format_args!("{path}.connectTime"),
                "must be at least 1 second",
            );
        }
        // An internal session may be any number of hops long anyway, and FRR ignores the line on one over a device.
        let over_hops = *ebgp_multi_hop && external && address.is_some();
        session.ebgp_multihop = over_hops.then_some(u8::MAX);
        if *ebgp_multi_hop && interface.is_some() {
            let why = "a session over a device is one hop long; name the peer's address instead";
            self.refuse(&format_args!("{path}.ebgpMultiHop"), why);
        }
        session.bfd = bfd.map(|bfd| self.bfd(&format!("{path}.bfd"), &bfd));
        session.password = self.password(path, password_secret.as_ref());
        if *from_vtep {
            session.update_source = self.vtep_source(path, &peer, vtep);
        }
        if address_families.is_empty() {
            let why = "a session without an address family is never established";
            self.refuse(&format_args!("{path}.addressFamilies"), why);
        }
        session.extended_nexthop = address.is_some_and(|address| address.is_ipv6())
            && address_families.contains(&AddressFamilyName::Ipv4Unicast);
        self.fabric_families(&peer, address_families, *allow_own_as, bgp);
        if bgp.neighbors.insert(peer.clone(), session).is_some() {
            self.refuse(&path, format!("{peer} is already a neighbor"));
        }
    }

    /// The VTEP as the source of a session with an address of its family.
    fn vtep_source(
        &mut self,
        path: &str,
        peer: &Peer,
        vtep: Option<IpAddr>,
    ) -> Option<UpdateSource> {
        let why = match (peer, vtep) {
            (Peer::Address(address), Some(vtep)) if address.is_ipv4() == vtep.is_ipv4() => {
                return Some(UpdateSource::Address(vtep));
            }
            (_, None) => "needs a VTEP, which this node does not have",
            (Peer::Address(_), Some(_)) => "the VTEP is of another family than the peer's address",
            (Peer::Interface(_) | Peer::Group(_), Some(_)) => {
                "a session over a device starts from the device; name the peer's address instead"
            }
        };
        self.refuse(&format_args!("{path}.fromVtep"), why);
        None
    }

    /// Every family of a fabric session marks what it receives, and sends nothing that the fabric sent.
    fn fabric_families(
        &mut self,
        peer: &Peer,
        families: &[AddressFamilyName],
        allow_own_as: bool,
        bgp: &mut Bgp,
    ) {
        for family in families {
            let (neighbors, out) = match family {
                AddressFamilyName::Ipv4Unicast => (&mut bgp.ipv4.neighbors, self.fabric_out()),
                AddressFamilyName::Ipv6Unicast => (&mut bgp.ipv6.neighbors, self.fabric_out()),
                AddressFamilyName::L2vpnEvpn => (&mut bgp.evpn.neighbors, self.fabric_evpn_out()),
            };
            let active = NeighborFamily {
                activate: true,
                allowas_in: allow_own_as.then_some(OWN_AS_TIMES),
                route_map_in: Some(self.fabric_in()),
                route_map_out: Some(out),
                ..NeighborFamily::default()
            };
            neighbors.insert(peer.clone(), active);
        }
    }

    pub(super) fn remote_as(&mut self, path: &str, remote_as: nnc::RemoteAs) -> Option<RemoteAs> {
        let nnc::RemoteAs {
            asn,
            external,
            internal,
        } = remote_as;
        match (asn, external, internal) {
            (Some(asn), false, false) => Some(RemoteAs::Number(asn)),
            (None, true, false) => Some(RemoteAs::External),
            (None, false, true) => Some(RemoteAs::Internal),
            _ => {
                let why = "needs exactly one of asn, external and internal";
                self.refuse(&format_args!("{path}.remoteAs"), why);
                None
            }
        }
    }

    /// FRR sets both timers or none. One that is absent is derived: a keepalive of a third of the hold time, a hold
    /// time of three keepalives.
    pub(super) fn timers(
        &mut self,
        path: &dyn fmt::Display,
        keepalive: Option<u16>,
        hold: Option<u16>,
    ) -> Option<Timers> {
        let (keepalive, hold) = match (keepalive, hold) {
            (None, None) => return None,
            (Some(keepalive), Some(hold)) => (keepalive, hold),
            (None, Some(hold)) => (hold / 3, hold),
            (Some(keepalive), None) => (keepalive, keepalive.saturating_mul(3)),
        };
        let timers = Timers::new(keepalive, hold);
        if timers.is_none() {
            self.refuse(
                &format_args!("{path}.holdTime"),
                "must be 0 or at least 3 seconds",
            );
        }
        timers
    }
}

/// The field that a tunnel endpoint stands in.
pub(super) fn endpoint_field(other: bool) -> &'static str {
    if other {
        "underlay.otherVtep"
    } else {
        "underlay.vtep"
    }
}

/// An instance with what all instances of a node share.
pub(super) fn instance(underlay: &Underlay) -> Bgp {
    let timers = underlay
        .graceful_restart
        .map_or_else(GracefulRestart::default, |restart| GracefulRestart {
            restart_time: restart.restart_time,
            stale_path_time: restart.stale_path_time,
            ..GracefulRestart::default()
        });
    Bgp {
        router_id: Some(underlay.router_id),
        default_ipv4_unicast: false,
        graceful_restart: GracefulRestart {
            on_all_sessions: true,
            preserve_fw_state: true,
            ..timers
        },
        multipath_relax: true,
        ..Bgp::new(underlay.asn)
    }
}
