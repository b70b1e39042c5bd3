//! Ring 2: whether the configs of nodes can be carried out and do not contradict themselves, looked at without any of the compiler's
//! own functions.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    net::IpAddr,
};

use api::{
    tcaas::{
        NodeNetworkConfigSpec,
        node_network_config::{
            ActionType, Filter, Gre, Layer2, PolicyRoute, StaticRoute, Underlay, Vrf,
        },
    },
    value::{HostCidr, IfName},
};
use ipnet::IpNet;

/// What is wrong with the configs of all nodes, by the name of the node.
pub(super) fn complaints(nodes: &BTreeMap<&str, NodeNetworkConfigSpec>) -> Vec<String> {
    let mut found = Complaints::default();
    for (node, spec) in nodes {
        found.node = (*node).to_owned();
        found.node(spec);
    }
    found.between_nodes(nodes);
    found.all
}

#[derive(Default)]
struct Complaints {
    node: String,
    all: Vec<String>,
}

/// A VRF of a node by the name that others call it.
type Vrfs<'a> = BTreeMap<&'a str, &'a Vrf>;

impl Complaints {
    fn unless(&mut self, holds: bool, what: impl Display) {
        if !holds {
            self.all.push(format!("{}: {what}", self.node));
        }
    }

    /// Everything is there at most once.
    fn once<T: Ord + Display>(&mut self, what: &str, all: impl IntoIterator<Item = T>) {
        let mut seen = BTreeSet::new();
        for one in all {
            self.unless(!seen.contains(&one), format!("{what} {one} twice"));
            seen.insert(one);
        }
    }

    fn node(&mut self, spec: &NodeNetworkConfigSpec) {
        let cluster = spec.cluster_vrf.iter();
        let mut vrfs: Vrfs<'_> = cluster
            .map(|vrf| (vrf.devices.vrf.as_str(), &**vrf))
            .collect();
        for (name, vrf) in spec.fabric_vrfs.iter().chain(&spec.local_vrfs) {
            let other = vrfs.insert(name, vrf);
            self.unless(other.is_none(), format!("VRF {name} twice"));
        }
        self.numbers(spec, &vrfs);
        self.devices(spec);
        self.host(spec);
        for (name, vrf) in &vrfs {
            self.vrf(spec, &vrfs, name, vrf);
        }
        for segment in spec.layer2s.values() {
            self.segment(spec, &vrfs, segment);
        }
        self.rules(spec.vrfs().flat_map(|vrf| &vrf.policy_routes));
        let is_plugged_in = spec.underlay.is_some();
        self.unless(
            is_plugged_in || (vrfs.is_empty() && spec.layer2s.is_empty()),
            "an overlay without an underlay",
        );
        if let Some(underlay) = &spec.underlay {
            self.underlay(spec, underlay);
        }
    }

    fn numbers(&mut self, spec: &NodeNetworkConfigSpec, vrfs: &Vrfs<'_>) {
        let tables = || vrfs.values().map(|vrf| vrf.table);
        self.once("table", tables());
        self.unless(
            tables().all(|table| !(253..=255).contains(&table) && table != 0),
            "a table of the kernel's own",
        );
        let of_vrfs = vrfs.values().filter_map(|vrf| vrf.vni);
        let of_segments = spec.layer2s.values().map(|segment| segment.vni);
        self.once("VNI", of_vrfs.chain(of_segments));
        self.once(
            "VLAN",
            spec.layer2s
                .values()
                .filter_map(|segment| segment.vlan)
                .map(api::value::VlanId::get),
        );
        for (key, segment) in &spec.layer2s {
            self.unless(
                match segment.vlan {
                    Some(vlan) => *key == vlan.to_string(),
                    None => *key == format!("vni-{}", segment.vni),
                },
                format!("segment {key}: another VLAN or VNI"),
            );
        }
        let on_devices = spec.host_vlans.values();
        let on_devices = on_devices.map(|one| format!("{} on {}", one.vlan.get(), one.parent));
        self.once("VLAN", on_devices);
    }

    fn devices(&mut self, spec: &NodeNetworkConfigSpec) {
        let mut router = vec!["lo"];
        let mut host = vec!["lo"];
        if let Some(underlay) = &spec.underlay {
            router.extend(underlay.nics.iter().map(IfName::as_str));
            router.push(underlay.trunk.router.as_str());
            host.push(underlay.trunk.host.as_str());
        }
        for vrf in spec.vrfs() {
            let devices = &vrf.devices;
            router.push(devices.vrf.as_str());
            let of_vni = [&devices.bridge, &devices.vxlan];
            router.extend(of_vni.into_iter().flatten().map(IfName::as_str));
            router.extend(
                vrf.loopbacks
                    .keys()
                    .chain(vrf.gres.keys())
                    .map(String::as_str),
            );
        }
        for segment in spec.layer2s.values() {
            let devices = &segment.devices;
            let three = [&devices.bridge, &devices.vxlan, &devices.access_port];
            router.extend(three.map(IfName::as_str));
            host.extend(segment.host_interface.iter().map(|one| one.name.as_str()));
        }
        host.extend(spec.host_vlans.keys().map(String::as_str));
        host.extend(spec.host_loopbacks.keys().map(String::as_str));
        for name in router.iter().chain(&host) {
            let fits = !name.is_empty() && name.len() <= 15;
            let is_plain = !name.contains(['/', ' ', ':']) && *name != "." && *name != "..";
            self.unless(fits && is_plain, format!("no name of a device: {name:?}"));
        }
        for one in spec.host_vlans.values() {
            let is_made = host.contains(&one.parent.as_str()) && one.parent.as_str() != "lo";
            self.unless(!is_made, format!("{} is no device of the host", one.parent));
        }
        self.once("device of the router", router);
        self.once("device of the host", host);
    }

    /// Addresses that meet in one table: none twice, and no two devices in one network.
    fn addresses(&mut self, place: &str, devices: &[(String, &[HostCidr])]) {
        let all = devices.iter().flat_map(|(_, addresses)| addresses.iter());
        self.once(&format!("{place}: address"), all.map(|one| one.addr()));
        for (place_of, (one, networks)) in devices.iter().enumerate() {
            for (other, others) in &devices[..place_of] {
                for (a, b) in networks
                    .iter()
                    .flat_map(|a| others.iter().map(move |b| (a, b)))
                {
                    let meet = a.net().contains(&b.net()) || b.net().contains(&a.net());
                    self.unless(!meet, format!("{place}: {a} on {one} meets {b} on {other}"));
                }
            }
        }
    }

    fn host(&mut self, spec: &NodeNetworkConfigSpec) {
        let mut devices: Vec<(String, &[HostCidr])> = Vec::new();
        let mut routes: Vec<(&[HostCidr], &StaticRoute)> = Vec::new();
        for one in spec
            .layer2s
            .values()
            .filter_map(|one| one.host_interface.as_ref())
        {
            devices.push((one.name.to_string(), &one.addresses));
            routes.extend(one.routes.iter().map(|route| (&*one.addresses, route)));
        }
        for (name, one) in &spec.host_vlans {
            devices.push((name.clone(), &one.addresses));
            routes.extend(one.routes.iter().map(|route| (&*one.addresses, route)));
        }
        for (name, one) in &spec.host_loopbacks {
            self.unless(!one.addresses.is_empty(), format!("{name} carries nothing"));
            devices.push((name.clone(), &one.addresses));
        }
        let trunk = spec.underlay.iter().map(|underlay| &underlay.trunk);
        devices.extend(trunk.map(|trunk| (trunk.host.to_string(), &*trunk.host_addresses)));
        self.addresses("host", &devices);
        self.once(
            "route of the host",
            routes.iter().map(|(_, route)| route.prefix),
        );
        for (own, route) in routes {
            let by = route.next_hop.as_ref().and_then(|hop| hop.address);
            let is_near = by.is_some_and(|by| own.iter().any(|one| one.net().contains(&by)));
            self.unless(
                is_near,
                format!("the router of {} is not near", route.prefix),
            );
        }
    }

    fn vrf(&mut self, spec: &NodeNetworkConfigSpec, vrfs: &Vrfs<'_>, name: &str, vrf: &Vrf) {
        let has_vni = vrf.vni.is_some();
        let complete = [
            vrf.devices.bridge.is_some(),
            vrf.devices.vxlan.is_some(),
            // Those of an L3VNI that names none are derived by FRR.
            !vrf.evpn_import_route_targets.is_empty() || (has_vni && vrf.source.is_some()),
            !vrf.evpn_export_route_targets.is_empty() || (has_vni && vrf.source.is_some()),
        ];
        self.unless(
            complete.iter().all(|part| *part == has_vni),
            format!("VRF {name}: half an L3 VNI"),
        );
        let vtep = spec.underlay.as_ref().and_then(|underlay| underlay.vtep);
        self.unless(!has_vni || vtep.is_some(), format!("VRF {name}: no VTEP"));
        let is_cluster = spec
            .cluster_vrf
            .as_ref()
            .is_some_and(|one| std::ptr::eq(std::sync::Arc::as_ptr(one), vrf));
        let near = self.near(spec, name, vrf, is_cluster);
        for import in &vrf.vrf_imports {
            let from = import.from_vrf.as_str();
            let other = vrfs.contains_key(from) && from != name;
            self.unless(other, format!("VRF {name} imports from {from}"));
            self.filter(&format!("VRF {name} from {from}"), &import.filter);
        }
        self.once(
            "import from",
            vrf.vrf_imports.iter().map(|one| &one.from_vrf),
        );
        self.once("route to", vrf.static_routes.iter().map(|one| one.prefix));
        for route in &vrf.static_routes {
            let into = route.next_hop.as_ref().and_then(|hop| hop.vrf.as_deref());
            let is_there = into.is_none_or(|into| vrfs.contains_key(into));
            self.unless(
                is_there,
                format!("VRF {name}: {} leads nowhere", route.prefix),
            );
        }
        let redistribute = vrf.redistribute.iter();
        let redistributed = redistribute
            .flat_map(|one| [&one.connected, &one.statics])
            .flatten();
        for filter in redistributed.chain(&vrf.evpn_export_filter) {
            self.filter(&format!("VRF {name}"), filter);
        }
        self.sessions(name, vrf, &near);
        for (device, gre) in &vrf.gres {
            self.tunnel(vrf, device, gre);
        }
        for route in &vrf.policy_routes {
            let into = route.next_hop.vrf.as_deref();
            let is_there = into.is_some_and(|into| vrfs.contains_key(into) && into != name);
            self.unless(is_there, format!("VRF {name}: a rule leads into {into:?}"));
            for device in &route.interfaces {
                let mut segments = spec.layer2s.values();
                let is_in_vrf = segments.any(|one| {
                    one.devices.bridge == *device
                        && one.irb.as_ref().is_some_and(|irb| irb.vrf == name)
                });
                self.unless(
                    is_in_vrf,
                    format!("VRF {name}: no traffic comes from {device}"),
                );
            }
        }
        self.mirrors(
            vrfs,
            name,
            vrf.mirror_acls.iter().map(|acl| &acl.mirror_destination),
        );
    }

    /// The networks that a VRF is connected to.
    fn near(
        &mut self,
        spec: &NodeNetworkConfigSpec,
        name: &str,
        vrf: &Vrf,
        is_cluster: bool,
    ) -> Vec<IpNet> {
        let mut devices: Vec<(String, &[HostCidr])> = Vec::new();
        for (device, one) in &vrf.loopbacks {
            self.unless(
                !one.ip_addresses.is_empty(),
                format!("{device} carries nothing"),
            );
            devices.push((device.clone(), &one.ip_addresses));
        }
        for segment in spec.layer2s.values() {
            let irb = segment.irb.iter().filter(|irb| irb.vrf == name);
            devices.extend(irb.map(|irb| (segment.devices.bridge.to_string(), &*irb.ip_addresses)));
        }
        if let Some(underlay) = spec.underlay.as_ref().filter(|_| is_cluster) {
            let trunk = &underlay.trunk;
            devices.push((trunk.router.to_string(), &trunk.router_addresses));
        }
        self.addresses(&format!("VRF {name}"), &devices);
        let all = devices.iter().flat_map(|(_, addresses)| addresses.iter());
        all.map(|one| one.net().trunc()).collect()
    }

    fn sessions(&mut self, name: &str, vrf: &Vrf, near: &[IpNet]) {
        let mut peers = Vec::new();
        for peer in &vrf.bgp_peers {
            let with = match (peer.address, peer.listen_range) {
                (Some(address), None) => {
                    let reached = near.iter().any(|net| net.contains(&address));
                    let far = peer.multihop.is_some() || peer.update_source.is_some();
                    self.unless(reached || far, format!("VRF {name}: {address} is not near"));
                    address.to_string()
                }
                (None, Some(range)) => {
                    let net = range.net();
                    let meets = near
                        .iter()
                        .any(|one| one.contains(&net) || net.contains(one));
                    self.unless(meets, format!("VRF {name}: no address of {range} is near"));
                    range.to_string()
                }
                _ => "nobody".to_owned(),
            };
            self.unless(
                with != "nobody",
                format!("VRF {name}: a session without a peer"),
            );
            let families = [&peer.ipv4, &peer.ipv6];
            self.unless(
                families.iter().any(|family| family.is_some()),
                format!("VRF {name}: nothing is said to {with}"),
            );
            for family in families.into_iter().flatten() {
                for filter in family.export_filter.iter().chain(&family.import_filter) {
                    self.filter(&format!("VRF {name}: session with {with}"), filter);
                }
            }
            peers.push(with);
        }
        self.once(&format!("VRF {name}: session with"), peers);
    }

    fn tunnel(&mut self, vrf: &Vrf, device: &str, gre: &Gre) {
        let source = gre.source_interface.as_ref().map(IfName::as_str);
        let loopback = source.and_then(|source| vrf.loopbacks.get(source));
        let carries = loopback.is_some_and(|one| {
            let mut addresses = one.ip_addresses.iter();
            addresses.any(|address| address.addr() == gre.source_address)
        });
        self.unless(carries, format!("{device} starts nowhere"));
        let families = (
            gre.source_address.is_ipv4(),
            gre.destination_address.is_ipv4(),
        );
        self.unless(
            families.0 == families.1,
            format!("{device} has ends of two families"),
        );
        self.unless(
            gre.source_address != gre.destination_address,
            format!("{device} ends where it starts"),
        );
    }

    fn mirrors<'a>(
        &mut self,
        vrfs: &Vrfs<'_>,
        place: impl Display,
        into: impl Iterator<Item = &'a IfName>,
    ) {
        for device in into {
            let is_there = vrfs
                .values()
                .any(|vrf| vrf.gres.contains_key(device.as_str()));
            self.unless(is_there, format!("{place} copies into {device}"));
        }
    }

    fn segment(&mut self, spec: &NodeNetworkConfigSpec, vrfs: &Vrfs<'_>, segment: &Layer2) {
        let vlan = segment.vlan.map_or(0, api::value::VlanId::get);
        if let Some(irb) = &segment.irb {
            let is_there = vrfs.contains_key(irb.vrf.as_str());
            self.unless(is_there, format!("VLAN {vlan}: no VRF {}", irb.vrf));
            self.unless(
                !irb.ip_addresses.is_empty(),
                format!("VLAN {vlan}: no gateway"),
            );
            let own = segment.host_interface.iter().flat_map(|one| &one.addresses);
            for address in own {
                let is_gateway = irb
                    .ip_addresses
                    .iter()
                    .any(|one| one.addr() == address.addr());
                self.unless(
                    !is_gateway,
                    format!("VLAN {vlan}: {address} is the gateway"),
                );
            }
        }
        if let Some(underlay) = &spec.underlay {
            self.unless(underlay.vtep.is_some(), format!("VLAN {vlan}: no VTEP"));
            let fits = segment.mtu <= underlay.trunk.mtu;
            self.unless(fits, format!("VLAN {vlan} does not fit the trunk"));
        }
        self.mirrors(
            vrfs,
            vlan,
            segment
                .mirror_acls
                .iter()
                .map(|acl| &acl.mirror_destination),
        );
    }

    fn filter(&mut self, place: &str, filter: &Filter) {
        let decides = filter.default_action.kind != ActionType::Next;
        self.unless(decides, format!("{place}: nothing is decided in the end"));
        let prefixes = filter.items.iter().filter_map(|item| item.matcher.prefix);
        for matcher in prefixes {
            let net = matcher.prefix.net();
            let least = matcher.ge.unwrap_or_else(|| net.prefix_len());
            let most = matcher.le.unwrap_or_else(|| net.max_prefix_len());
            let is_range =
                net.prefix_len() <= least && least <= most && most <= net.max_prefix_len();
            self.unless(
                is_range,
                format!("{place}: {} {least}–{most}", matcher.prefix),
            );
        }
    }

    /// Of two rules that the same packet may meet, the closer one comes first.
    fn rules<'a>(&mut self, rules: impl Iterator<Item = &'a PolicyRoute>) {
        let rules: Vec<_> = rules.collect();
        let part = |one: Option<api::tcaas::MatchPrefix>| one.map(|one| one.prefix().net());
        let of = |rule: &PolicyRoute| {
            [
                part(rule.traffic_match.src_prefix),
                part(rule.traffic_match.dst_prefix),
            ]
        };
        let within = |inner: Option<IpNet>, outer: Option<IpNet>| match (inner, outer) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(inner), Some(outer)) => outer.contains(&inner),
        };
        for (place, one) in rules.iter().enumerate() {
            for other in rules.iter().skip(place + 1) {
                let inside = |a: &PolicyRoute, b: &PolicyRoute| {
                    let pairs = of(a).into_iter().zip(of(b));
                    pairs.into_iter().all(|(inner, outer)| within(inner, outer))
                };
                let (first, second) = (inside(one, other), inside(other, one));
                let sane = match (first, second) {
                    (true, true) => one.next_hop == other.next_hop,
                    (true, false) => one.priority < other.priority,
                    (false, true) => one.priority > other.priority,
                    (false, false) => true,
                };
                self.unless(
                    sane,
                    format!("{:?} and {:?}", one.traffic_match, other.traffic_match),
                );
            }
        }
    }

    fn underlay(&mut self, spec: &NodeNetworkConfigSpec, underlay: &Underlay) {
        let peers = underlay.neighbors.iter();
        let peers = peers.map(|one| match (&one.address, &one.interface) {
            (Some(address), None) => address.to_string(),
            (None, Some(device)) => device.to_string(),
            _ => "nobody".to_owned(),
        });
        let peers: Vec<String> = peers.collect();
        self.unless(
            !peers.contains(&"nobody".to_owned()),
            "a fabric peer without an address",
        );
        self.once("fabric peer", peers);
        for one in &underlay.neighbors {
            let device = one.interface.as_ref();
            let is_there = device.is_none_or(|device| underlay.nics.contains(device));
            self.unless(is_there, "a fabric peer on no uplink");
            let timers = one.keepalive_time.zip(one.hold_time);
            self.unless(
                timers.is_none_or(|(keep, hold)| keep < hold || hold == 0),
                "timers",
            );
        }
        let own = &underlay.trunk.router_addresses;
        self.unless(
            own.is_empty() || spec.cluster_vrf.is_some(),
            "a trunk without the cluster VRF",
        );
    }

    /// What must differ from node to node, and what must be the same.
    fn between_nodes(&mut self, nodes: &BTreeMap<&str, NodeNetworkConfigSpec>) {
        "all nodes".clone_into(&mut self.node);
        let underlays = || nodes.values().filter_map(|spec| spec.underlay.as_ref());
        self.once("VTEP", underlays().filter_map(|one| one.vtep));
        self.once("router id", underlays().map(|one| one.router_id));
        self.once(
            "router MAC",
            underlays().map(|one| one.router_mac.to_string()),
        );
        let loopbacks = nodes.values().flat_map(NodeNetworkConfigSpec::vrfs);
        let loopbacks = loopbacks.flat_map(|vrf| {
            let vni = vrf.vni.map_or(0, api::value::Vni::get);
            let all = vrf.loopbacks.values().flat_map(|one| &one.ip_addresses);
            all.map(move |one| format!("{} in VNI {vni}", one.addr()))
        });
        self.once("loopback", loopbacks);
        let sessions = nodes.values().flat_map(|spec| {
            let in_vrfs = spec.vrfs().filter_map(|vrf| vrf.host_session.as_ref());
            in_vrfs.chain(spec.passthroughs.values())
        });
        let hosts = sessions.flat_map(|session| session.host_addresses.iter());
        self.once(
            "address of a host on a session",
            hosts.map(|one| one.addr()),
        );
        let mut on_segments: Vec<(String, IpAddr)> = Vec::new();
        let mut meanings: BTreeMap<u32, String> = BTreeMap::new();
        for spec in nodes.values() {
            for segment in spec.layer2s.values() {
                let vni = segment.vni.get();
                let own = segment.host_interface.iter().flat_map(|one| &one.addresses);
                on_segments.extend(own.map(|one| (format!("VNI {vni}"), one.addr())));
                // The VNI of an L2VNI, as that of an L3VNI, is a number of its nodes: racks may use it for different things.
                if segment.source.is_some() {
                    continue;
                }
                let known = meanings
                    .entry(vni)
                    .or_insert_with(|| "a segment".to_owned());
                let is_same = known == "a segment";
                self.unless(is_same, format!("VNI {vni} is two things"));
            }
            let in_all = spec.fabric_vrfs.iter();
            for (name, vrf) in in_all.filter(|(_, vrf)| vrf.source.is_none()) {
                if let Some(vni) = vrf.vni.map(api::value::Vni::get) {
                    let known = meanings.entry(vni).or_insert_with(|| name.clone());
                    let is_same = known == name;
                    self.unless(is_same, format!("VNI {vni} is two things"));
                }
            }
            for one in spec.host_vlans.values() {
                let place = format!("VLAN {} on {}", one.vlan.get(), one.parent);
                on_segments.extend(one.addresses.iter().map(|own| (place.clone(), own.addr())));
            }
        }
        let on_segments = on_segments.iter();
        self.once(
            "address",
            on_segments.map(|(place, address)| format!("{address} in {place}")),
        );
    }
}
