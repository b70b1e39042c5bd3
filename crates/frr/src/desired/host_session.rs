//! Sessions with a BGP speaker on the host: in a VRF, or in the fabric's own routing table.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    tcaas::node_network_config::{HostSession, Underlay, Vrf},
    value::{Asn, Community, IfName, Prefix},
};

use super::{Build, filter::LAST, guard, peer::RESTART_MINUTES, permits};
use crate::{
    config::{
        Bgp, Description, FamilySwitch, IpFamily, MatchCommunity, MaximumPrefix, Name, Neighbor,
        NeighborFamily, Peer, PrefixRange, RedistributeSource, RemoteAs, RouteMap, RouteMapAction,
        RouteMapEntry, SetCommunity,
    },
    names::{self, Direction},
};

/// How many prefixes of each family a speaker on the host may announce: the addresses of a large cluster's services and pods fit, and a
/// table of the internet, announced by mistake, does not.
const MAXIMUM_PREFIXES: u32 = 10_000;

/// Seconds between two attempts to connect: the speaker on the host comes and goes with its pod.
const CONNECT_TIME: u16 = 5;

/// Numbers of the entries behind those of `guard`: the session's own networks and addresses, of either family.
const NETWORKS: [(IpFamily, u16); 2] = [(IpFamily::V4, 5), (IpFamily::V6, 6)];
const ADDRESSES: [(IpFamily, u16); 2] = [(IpFamily::V4, 7), (IpFamily::V6, 8)];
/// What carries the mark of the host.
const FROM_HOST: u16 = 9;

/// The large community that a node gives to what the host announces in a VRF.
pub(super) fn mark(underlay: &Underlay) -> Community {
    Community::Large(underlay.asn.get(), 0, 2)
}

impl Build<'_> {
    /// The session of a VRF. The host may announce whatever it likes, and gets all that the VRF has.
    pub(super) fn vrf_host_session(&mut self, path: &str, vrf: &Vrf, bgp: &mut Bgp) {
        let Some(session) = &vrf.host_session else {
            return;
        };
        let device = &vrf.devices.vrf;
        let list = names::host_networks(device);
        let networks = self.listed(
            RouteMapAction::Deny,
            NETWORKS,
            &list,
            &networks_of([session]),
        );
        let mut map = self.host_head();
        map.extend(networks.clone());
        let marks = self.host_mark.map(|mark| SetCommunity::Add([mark].into()));
        let last = RouteMapEntry {
            set_large_community: marks,
            ..RouteMapEntry::new(RouteMapAction::Permit)
        };
        map.insert(LAST, last);
        let ins = self.route_map(names::host(device, Direction::In), map);
        let mut map = guard::node_only(&IpFamily::BOTH);
        map.insert(LAST, RouteMapEntry::new(RouteMapAction::Permit));
        let out = self.route_map(names::host(device, Direction::Out), map);
        let description = Description::of(format_args!("host in VRF {device}"));
        let path = format!("{path}.hostSession");
        self.host_session(&path, session, &description, [ins, out], bgp);
        // The network between router and host is the node's alone: only the host's own address is announced.
        let connected = names::redistribution(device, RedistributeSource::Connected);
        if let Some(map) = self.config.route_maps.get_mut(&connected) {
            map.extend(networks);
        }
        self.let_host_pass(device, session);
    }

    /// What the host announces, and its own address, go into the fabric whatever the VRF's filter says. What nothing can permit
    /// has been denied before.
    fn let_host_pass(&mut self, device: &IfName, session: &HostSession) {
        let Some(mark) = self.host_mark else { return };
        let list = self.community_list(&"underlay.asn", &BTreeSet::from([mark]));
        let addresses = names::host_addresses(device);
        let hosts = session.host_addresses.iter();
        let own = hosts.filter_map(|host| PrefixRange::new(Prefix::host(host.addr()), None, None));
        let own = own.collect();
        let addresses = self.listed(RouteMapAction::Permit, ADDRESSES, &addresses, &own);
        let export = names::evpn_export(device);
        let Some(map) = self.config.route_maps.get_mut(&export) else {
            return;
        };
        map.extend(addresses);
        let entry = RouteMapEntry {
            match_large_community: Some(MatchCommunity { list, exact: false }),
            ..RouteMapEntry::new(RouteMapAction::Permit)
        };
        map.insert(FROM_HOST, entry);
    }

    /// Sessions in the fabric's own routing table. What a host gets carries the mark of the fabric, and what the fabric gets does not:
    /// so hosts and fabric see each other's routes, and no host sees those of another.
    pub(super) fn passthroughs(
        &mut self,
        passthroughs: &BTreeMap<String, HostSession>,
        bgp: &mut Bgp,
    ) {
        if passthroughs.is_empty() {
            return;
        }
        let mut unicast = bgp.ipv4.neighbors.keys().chain(bgp.ipv6.neighbors.keys());
        let fabric_is_internal = unicast.any(|peer| is_internal(bgp, peer));
        let networks = networks_of(passthroughs.values());
        let list = names::passthrough_networks();
        let mut map = self.host_head();
        map.extend(self.listed(RouteMapAction::Deny, NETWORKS, &list, &networks));
        map.insert(LAST, RouteMapEntry::new(RouteMapAction::Permit));
        let ins = self.route_map(names::passthrough(Direction::In), map);
        let mut map = guard::node_only(&IpFamily::BOTH);
        let marked = self.marked().map(|list| RouteMapEntry {
            match_large_community: Some(MatchCommunity { list, exact: false }),
            ..RouteMapEntry::new(RouteMapAction::Permit)
        });
        map.extend(marked.map(|entry| (LAST, entry)));
        let out = self.route_map(names::passthrough(Direction::Out), map);
        for (key, session) in passthroughs {
            let path = format!("passthroughs[{key}]");
            let description = Description::of(format_args!("{} {key}", names::PASSTHROUGH));
            let maps = [ins.clone(), out.clone()];
            self.host_session(&path, session, &description, maps, bgp);
        }
        if fabric_is_internal {
            reflect(passthroughs, bgp);
        }
    }

    /// A neighbor for each address of the host, which carries the routes of its own family.
    fn host_session(
        &mut self,
        path: &str,
        session: &HostSession,
        description: &Description,
        [ins, out]: [Name; 2],
        bgp: &mut Bgp,
    ) {
        // Devices and the router's addresses are the kernel's; the source is the operator's.
        let HostSession {
            source: _,
            devices: _,
            mtu: _,
            host_addresses,
            router_addresses: _,
            remote_as,
            local_as,
        } = session;
        let Some(remote_as) = self.remote_as(path, *remote_as) else {
            return;
        };
        let local_as = self.local_as(path, *local_as, remote_as, bgp.asn);
        // The routing table has a route to the host's network, and none to its address alone.
        bgp.network_import_check = false;
        for address in host_addresses.iter().map(|host| host.addr()) {
            let peer = Peer::Address(address);
            let own = Prefix::host(address);
            let unicast = bgp.unicast_mut(IpFamily::of(own));
            unicast.networks.insert(own);
            let family = NeighborFamily {
                activate: true,
                maximum_prefix: Some(MaximumPrefix {
                    limit: MAXIMUM_PREFIXES,
                    restart: Some(RESTART_MINUTES),
                }),
                next_hop_self: !remote_as.is_external(bgp.asn),
                route_map_in: Some(ins.clone()),
                route_map_out: Some(out.clone()),
                ..NeighborFamily::default()
            };
            let unicast = bgp.unicast_mut(IpFamily::of(own));
            unicast.neighbors.insert(peer.clone(), family);
            let neighbor = Neighbor {
                local_as,
                description: Some(description.clone()),
                connect_time: Some(CONNECT_TIME),
                ..Neighbor::new(remote_as)
            };
            if bgp.neighbors.insert(peer, neighbor).is_some() {
                let path = format!("{path}.hostAddresses");
                self.refuse(&path, format!("{address} is already a peer here"));
            }
        }
    }

    /// An AS number for one session, where FRR can have it.
    pub(super) fn local_as(
        &mut self,
        path: &str,
        local_as: Option<Asn>,
        remote_as: RemoteAs,
        asn: Asn,
    ) -> Option<Asn> {
        let local_as = local_as?;
        let why = if local_as == asn {
            format!("{asn} is the AS of the BGP instance; leave it out")
        } else if !remote_as.is_external(asn) {
            format!(
                "the peer is of the BGP instance's own AS {asn}, which a session cannot replace"
            )
        } else if remote_as == RemoteAs::Number(local_as) {
            "is the AS of the peer, which would make the session internal".to_owned()
        } else {
            return Some(local_as);
        };
        self.refuse(&format_args!("{path}.localAs"), why);
        None
    }

    /// Prefix lists of these ranges, and entries of a route map that match them; none for a family without ranges.
    fn listed(
        &mut self,
        action: RouteMapAction,
        numbers: [(IpFamily, u16); 2],
        name: &Name,
        ranges: &BTreeSet<PrefixRange>,
    ) -> RouteMap {
        let mut map = RouteMap::new();
        for (family, number) in numbers {
            let of_family = ranges
                .iter()
                .copied()
                .filter(|range| IpFamily::of(range.prefix()) == family);
            let list = permits(of_family);
            if list.is_empty() {
                continue;
            }
            let key = (family, name.clone());
            self.config.prefix_lists.insert(key.clone(), list);
            let entry = RouteMapEntry {
                match_prefix_list: Some(key),
                ..RouteMapEntry::new(action)
            };
            map.insert(number, entry);
        }
        map
    }
}

/// Whether a peer is in the AS of the instance.
fn is_internal(bgp: &Bgp, peer: &Peer) -> bool {
    let known = bgp.neighbors.get(peer);
    let remote_as = known.and_then(|neighbor| neighbor.remote_as);
    remote_as.is_some_and(|remote_as| !remote_as.is_external(bgp.asn))
}

/// Lets routes pass between the fabric and hosts of our own AS. BGP passes no route from one internal session to another, except to and from
/// the clients of a route reflector.
fn reflect(passthroughs: &BTreeMap<String, HostSession>, bgp: &mut Bgp) {
    let hosts = passthroughs
        .values()
        .flat_map(|session| &session.host_addresses);
    for address in hosts.map(|host| host.addr()) {
        let peer = Peer::Address(address);
        if !is_internal(bgp, &peer) {
            continue;
        }
        let family = bgp.unicast_mut(IpFamily::of(Prefix::host(address)));
        if let Some(family) = family.neighbors.get_mut(&peer) {
            family.switches.insert(FamilySwitch::RouteReflectorClient);
        }
    }
}

/// The networks between router and host with all parts of them but single addresses.
fn networks_of<'a>(sessions: impl IntoIterator<Item = &'a HostSession>) -> BTreeSet<PrefixRange> {
    let networks = sessions
        .into_iter()
        .flat_map(|session| {
            session
                .host_addresses
                .iter()
                .chain(&session.router_addresses)
        })
        .map(|address| address.prefix());
    let range = |network: Prefix| {
        let longest = IpFamily::of(network).bits().checked_sub(1);
        PrefixRange::new(network, None, longest)
    };
    networks.filter_map(range).collect()
}
