//! Sessions of the host's router.

use std::collections::BTreeSet;

use api::{
    frrk8s,
    tcaas::node_network_config::{self as nnc, HostNeighbor, MissingKind},
    value::Prefix,
};

use super::{
    Build, HeldBack,
    names::{Families, Names},
};
use crate::config::{
    Bgp, IpFamily, Name, Neighbor, NeighborBfd, NeighborFamily, Peer, RemoteAs, Timers,
    UpdateSource,
};

/// Keepalive and hold time of FRR where only the other is given.
const KEEPALIVE_SECONDS: u16 = 60;
const HOLD_SECONDS: u16 = 180;
/// The port that FRR dials and does not print.
const BGP_PORT: u16 = 179;

impl Build<'_> {
    pub(super) fn neighbor(
        &mut self,
        neighbor: &HostNeighbor,
        always_block: &BTreeSet<Prefix>,
        bgp: &mut Bgp,
    ) {
        let peer = match (&neighbor.address, &neighbor.interface) {
            (Some(address), None) => Peer::Address(*address),
            (None, Some(device)) => {
                self.needs(MissingKind::Interface, device);
                Peer::Interface(device.clone())
            }
            (Some(_), Some(_)) | (None, None) => {
                let why = "a neighbor needs exactly one of address and interface";
                return self.unsupported(None, why);
            }
        };
        let families = families(&peer, neighbor);
        let names = Names::new(&peer, self.vrf.as_ref(), families);
        self.filters(&names, neighbor, always_block);
        let Some(mut session) = self.session(&peer, neighbor, bgp) else {
            return;
        };
        if let Some(secret) = &neighbor.password_secret {
            session.password = self.secrets.get(secret).cloned();
            if session.password.is_none() {
                self.held_back.push(HeldBack {
                    vrf: self.vrf_name(),
                    peer,
                    secret: secret.clone(),
                });
                return;
            }
        }
        for (active, family) in [(neighbor.ipv4, IpFamily::V4), (neighbor.ipv6, IpFamily::V6)] {
            if active {
                let settings = NeighborFamily {
                    activate: true,
                    route_map_in: Some(names.route_map_in()),
                    route_map_out: Some(names.route_map_out()),
                    ..NeighborFamily::default()
                };
                let unicast = bgp.unicast_mut(family);
                unicast.neighbors.insert(peer.clone(), settings);
            }
        }
        if neighbor.evpn {
            let settings = NeighborFamily {
                activate: true,
                ..NeighborFamily::default()
            };
            bgp.evpn.neighbors.insert(peer.clone(), settings);
        }
        bgp.neighbors.insert(peer, session);
    }

    /// The session apart from its families and its password.
    fn session(&mut self, peer: &Peer, neighbor: &HostNeighbor, bgp: &Bgp) -> Option<Neighbor> {
        let HostNeighbor {
            address: _,
            interface: _,
            remote_as,
            local_as,
            source,
            port,
            keepalive_time,
            hold_time,
            connect_time,
            ebgp_multi_hop,
            disable_connected_check,
            graceful_restart,
            bfd_profile,
            password_secret: _,
            ipv4: _,
            ipv6: _,
            evpn: _,
            advertise: _,
            receive: _,
        } = neighbor;
        let nnc::RemoteAs {
            asn,
            external,
            internal,
        } = *remote_as;
        let remote_as = match (asn, external, internal) {
            (Some(asn), false, false) => RemoteAs::Number(asn),
            (None, true, false) => RemoteAs::External,
            (None, false, true) => RemoteAs::Internal,
            _ => {
                let why =
                    format!("neighbor {peer} needs exactly one of asn, external and internal");
                self.unsupported_of(peer, why);
                return None;
            }
        };
        let mut session = Neighbor::new(remote_as);
        let external = remote_as.is_external(bgp.asn);
        let on_address = matches!(peer, Peer::Address(_));
        session.local_as = local_as.filter(|local| *local != bgp.asn && external);
        if session.local_as != *local_as {
            let why = format!(
                "neighbor {peer} cannot have a local AS: it is the AS of the router, or the session is internal"
            );
            self.unsupported_of(peer, why);
        }
        session.local_as = session
            .local_as
            .filter(|local| asn != Some(*local) || self.has_local_as_of_peer(peer));
        session.ebgp_multihop = (*ebgp_multi_hop && on_address && external).then_some(u8::MAX);
        if *ebgp_multi_hop && !on_address {
            let why = format!("FRR has no multihop for {peer}, which is a device");
            self.unsupported_of(peer, why);
        }
        session.update_source = match source {
            Some(frrk8s::UpdateSource::Address(address)) => Some(UpdateSource::Address(*address)),
            Some(frrk8s::UpdateSource::Interface(device)) => {
                self.needs(MissingKind::Interface, device);
                Some(UpdateSource::Device(device.clone()))
            }
            None => None,
        };
        if session.update_source.is_some() && !on_address {
            let why = format!("FRR has no source address for {peer}, which is a device");
            self.unsupported_of(peer, why);
            session.update_source = None;
        }
        session.port = port.filter(|port| *port != BGP_PORT);
        session.timers = self.timers(peer, *keepalive_time, *hold_time);
        session.connect_time = *connect_time;
        session.disable_connected_check = *disable_connected_check;
        session.graceful_restart = *graceful_restart;
        session.bfd = bfd_profile.as_ref().map(|name| self.bfd(peer, name));
        Some(session)
    }

    /// Whether FRR can have the AS of a peer as the local one; says so where it cannot.
    fn has_local_as_of_peer(&mut self, peer: &Peer) -> bool {
        if !self.features.local_as_of_peer {
            let why = format!(
                "FRR {} cannot give neighbor {peer} its own AS as the local one: use another, or a newer FRR",
                self.version
            );
            self.unsupported_of(peer, why);
        }
        self.features.local_as_of_peer
    }

    fn timers(&mut self, peer: &Peer, keepalive: Option<u16>, hold: Option<u16>) -> Option<Timers> {
        if keepalive.is_none() && hold.is_none() {
            return None;
        }
        let hold = hold.unwrap_or(HOLD_SECONDS);
        let timers = Timers::new(keepalive.unwrap_or(KEEPALIVE_SECONDS), hold);
        if timers.is_none() {
            let why =
                format!("BGP has no hold time of {hold} s (neighbor {peer}): 0, or 3 and more");
            self.unsupported_of(peer, why);
        }
        timers
    }

    /// A name that FRR cannot have is listed with the profiles; the session has BFD all the same.
    fn bfd(&mut self, peer: &Peer, name: &str) -> NeighborBfd {
        let profile = name.parse::<Name>().ok();
        if profile.is_none() {
            let why = format!(
                "neighbor {peer} has BFD with FRR's defaults: no profile can have the name {name:?}"
            );
            self.unsupported_of(peer, why);
        }
        NeighborBfd {
            profile,
            check_control_plane: false,
        }
    }
}

/// The families in the names of a neighbor's lists: those of its unicast routes, or of its address where it has none.
fn families(peer: &Peer, neighbor: &HostNeighbor) -> Families {
    match (neighbor.ipv4, neighbor.ipv6, peer) {
        (true, false, _) => Families::Ipv4,
        (false, false, Peer::Address(address)) if address.is_ipv4() => Families::Ipv4,
        (false, true, _) | (false, false, Peer::Address(_)) => Families::Ipv6,
        (true, true, _) | (false, false, Peer::Interface(_) | Peer::Group(_)) => Families::Dual,
    }
}
