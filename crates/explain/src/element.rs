//! The elements of a node's config: the parts that users know, each with a name and a value. [`crate::provenance`] says where
//! each comes from.

mod filters;

use std::collections::{BTreeMap, BTreeSet};

use api::{
    tcaas::node_network_config::{
        HostBgp, HostInterface, HostRouter, HostVlan, Layer2, MirrorAcl, Neighbor, Redistribute,
        StaticRoute, Underlay, Vrf,
    },
    tcaas::{MatchPrefix, MirrorDirection, NodeNetworkConfigSpec, TrafficMatch},
    value::HostCidr,
};
use compiler::mirror::Place;
use serde::Serialize;
use serde_json::Value;

pub(crate) use self::filters::{EVERYTHING, filtered, range};

/// What an element is called. It sorts as it is read: the underlay, then VRFs with what is in them, then segments.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    strum::Display,
    strum::EnumCount,
    strum::IntoStaticStr,
)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Element {
    /// How the node is connected to the fabric.
    #[strum(to_string = "underlay")]
    Underlay,
    /// A fabric peer.
    #[strum(to_string = "underlay peer {peer}")]
    Peer {
        /// Address or device.
        peer: String,
    },
    /// A VRF.
    #[strum(to_string = "VRF {vrf}")]
    Vrf {
        /// Its name.
        vrf: String,
    },
    /// The kernel's route table of a VRF.
    #[strum(to_string = "VRF {vrf} route table")]
    Table {
        /// The VRF.
        vrf: String,
    },
    /// A route target of a VRF.
    #[strum(to_string = "VRF {vrf} route target {target}")]
    RouteTarget {
        /// The VRF.
        vrf: String,
        /// The route target.
        target: String,
    },
    /// What a VRF takes over from another one of the node.
    #[strum(to_string = "VRF {vrf} imports {prefix} from {from}")]
    Import {
        /// The VRF.
        vrf: String,
        /// The other.
        from: String,
        /// What.
        prefix: String,
    },
    /// What a VRF does not take over from another one of the node, though a later rule may name more.
    #[strum(to_string = "VRF {vrf} does not import {prefix} from {from}")]
    DeniedImport {
        /// The VRF.
        vrf: String,
        /// The other.
        from: String,
        /// What.
        prefix: String,
    },
    /// What a VRF announces to the fabric.
    #[strum(to_string = "VRF {vrf} announces {prefix}")]
    Export {
        /// The VRF.
        vrf: String,
        /// What.
        prefix: String,
    },
    /// What a VRF does not announce to the fabric, though a later rule may name more.
    #[strum(to_string = "VRF {vrf} does not announce {prefix}")]
    DeniedExport {
        /// The VRF.
        vrf: String,
        /// What.
        prefix: String,
    },
    /// A static route of a VRF.
    #[strum(to_string = "VRF {vrf} route {prefix}")]
    Route {
        /// The VRF.
        vrf: String,
        /// Where to.
        prefix: String,
    },
    /// A BGP session inside a VRF.
    #[strum(to_string = "VRF {vrf} session with {peer}")]
    Session {
        /// The VRF.
        vrf: String,
        /// An address, or the network whose members may open one.
        peer: String,
    },
    /// A loopback of a VRF.
    #[strum(to_string = "VRF {vrf} loopback {name}")]
    Loopback {
        /// The VRF.
        vrf: String,
        /// The device.
        name: String,
    },
    /// A tunnel for mirrored traffic.
    #[strum(to_string = "VRF {vrf} tunnel {name}")]
    Tunnel {
        /// The VRF it runs in.
        vrf: String,
        /// The device.
        name: String,
    },
    /// Traffic that another VRF routes, because of where it comes from.
    #[strum(to_string = "traffic from {source} to {destination} is routed by {vrf}")]
    Steering {
        /// Where it comes from.
        source: String,
        /// Where it goes.
        destination: String,
        /// The VRF that routes it.
        vrf: String,
    },
    /// A session with a BGP speaker on the host inside a VRF, and the pair of devices that carries it.
    #[strum(to_string = "VRF {vrf} session with the host")]
    HostSession {
        /// The VRF.
        vrf: String,
    },
    /// A session with a BGP speaker on the host in the fabric's own table.
    #[strum(to_string = "passthrough {name}")]
    Passthrough {
        /// Its object, as `namespace/name`.
        name: String,
    },
    /// A segment of a VNI that ends in a device of the host.
    #[strum(to_string = "VNI {vni}")]
    VniSegment {
        /// Its VNI.
        vni: u32,
    },
    /// The gateway of such a segment.
    #[strum(to_string = "VNI {vni} gateway")]
    VniGateway {
        /// Its VNI.
        vni: u32,
    },
    /// A network that is announced as a whole while a part of it is known.
    #[strum(to_string = "VRF {vrf} aggregate {prefix}")]
    Aggregate {
        /// The VRF.
        vrf: String,
        /// The network.
        prefix: String,
    },
    /// A segment.
    #[strum(to_string = "VLAN {vlan}")]
    Segment {
        /// Its VLAN.
        vlan: u16,
    },
    /// The gateway of a segment.
    #[strum(to_string = "VLAN {vlan} gateway")]
    Gateway {
        /// Its VLAN.
        vlan: u16,
    },
    /// The interface of a segment in the host.
    #[strum(to_string = "VLAN {vlan} interface {name}")]
    HostInterface {
        /// Its VLAN.
        vlan: u16,
        /// The device.
        name: String,
    },
    /// An address of the node on a segment.
    #[strum(to_string = "{device} address {address}")]
    HostAddress {
        /// The device.
        device: String,
        /// The address.
        address: String,
    },
    /// A route of the host through a segment.
    #[strum(to_string = "{device} route {prefix}")]
    HostRoute {
        /// The device.
        device: String,
        /// Where to.
        prefix: String,
    },
    /// Traffic that is copied.
    #[strum(to_string = "{place} copies {traffic} to {tunnel}")]
    Mirror {
        /// The segment or VRF.
        place: String,
        /// Which of its traffic.
        traffic: String,
        /// Where to.
        tunnel: String,
    },
    /// A VLAN on a device of the host.
    #[strum(to_string = "VLAN {vlan} on the host, {name}")]
    HostVlan {
        /// Its VLAN.
        vlan: u16,
        /// The device.
        name: String,
    },
    /// A loopback of the host.
    #[strum(to_string = "loopback {name} on the host")]
    HostLoopback {
        /// The device.
        name: String,
    },
    /// The FRR of the host, whatever it routes.
    #[strum(to_string = "FRR of the host")]
    HostRouting,
    /// A BGP router of the host.
    #[strum(to_string = "host router {vrf}")]
    HostRouter {
        /// Its VRF.
        vrf: String,
    },
    /// A session of a router of the host.
    #[strum(to_string = "host router {vrf} session with {peer}")]
    HostPeer {
        /// VRF of the router.
        vrf: String,
        /// Address or device.
        peer: String,
    },
    /// A network that a router of the host originates.
    #[strum(to_string = "host router {vrf} network {prefix}")]
    HostNetwork {
        /// VRF of the router.
        vrf: String,
        /// The network.
        prefix: String,
    },
    /// A VNI of a router of the host.
    #[strum(to_string = "host router {vrf} VNI {vni}")]
    HostVni {
        /// VRF of the router.
        vrf: String,
        /// The VNI.
        vni: u32,
    },
    /// A BFD profile of the host.
    #[strum(to_string = "BFD profile {name} of the host")]
    HostBfdProfile {
        /// Its name.
        name: String,
    },
    /// Raw FRR configuration of the host.
    #[strum(to_string = "raw FRR configuration of {source}")]
    HostRaw {
        /// The object, as `namespace/name`.
        source: String,
    },
}

impl Element {
    /// The element without what no other node has: of an address the network.
    pub fn of_any_node(&self) -> Self {
        let mut element = self.clone();
        if let Self::HostAddress { address, .. } = &mut element
            && let Ok(own) = address.parse::<HostCidr>()
        {
            *address = own.prefix().to_string();
        }
        element
    }

    /// The fields of its value that each node has for itself.
    pub fn own_fields(&self) -> &'static [&'static str] {
        match self {
            Self::Underlay => &["vtep", "otherVtep", "routerId", "routerMac"],
            Self::HostSession { .. } | Self::Passthrough { .. } => {
                &["hostAddresses", "routerAddresses"]
            }
            Self::Loopback { .. } => &["ipAddresses"],
            Self::Tunnel { .. } => &["sourceAddress"],
            _ => &[],
        }
    }
}

/// The elements of a config with what each of them is.
pub type Elements = BTreeMap<Element, Value>;

/// All elements of a node's config.
pub fn elements(config: &NodeNetworkConfigSpec) -> Elements {
    let NodeNetworkConfigSpec {
        contract_version: _,
        revision: _,
        underlay,
        layer2s,
        cluster_vrf: _,
        fabric_vrfs: _,
        local_vrfs: _,
        host_vlans,
        host_loopbacks,
        passthroughs,
        host_router,
        // Checks configure nothing.
        health: _,
    } = config;
    let mut all = Elements::new();
    if let Some(underlay) = underlay {
        of_underlay(underlay, &mut all);
    }
    for vrf in config.vrfs() {
        of_vrf(vrf, &mut all);
    }
    for segment in layer2s.values() {
        of_segment(segment, &mut all);
    }
    for (name, vlan) in host_vlans {
        of_host(name, &vlan.addresses, &vlan.routes, &mut all);
        let base = HostVlan {
            addresses: Vec::new(),
            routes: Vec::new(),
            ..vlan.clone()
        };
        let vlan = vlan.vlan.get();
        let name = name.clone();
        all.insert(Element::HostVlan { vlan, name }, json(&base));
    }
    for (name, session) in passthroughs {
        all.insert(Element::Passthrough { name: name.clone() }, json(session));
    }
    if let Some(router) = host_router {
        of_host_router(router, &mut all);
    }
    for (name, loopback) in host_loopbacks {
        all.insert(Element::HostLoopback { name: name.clone() }, json(loopback));
    }
    all
}

fn of_host_router(router: &HostRouter, all: &mut Elements) {
    let HostRouter {
        // They say where the rest comes from, and what is not there.
        configurations: _,
        problems: _,
        log_level,
        always_block,
        routers,
        bfd_profiles,
        raw,
    } = router;
    let base = serde_json::json!({"logLevel": log_level, "alwaysBlock": always_block});
    all.insert(Element::HostRouting, base);
    for (vrf, bgp) in routers {
        let vrf = || vrf.to_string();
        for neighbor in &bgp.neighbors {
            let device = || neighbor.interface.as_ref().map(ToString::to_string);
            let address = neighbor.address.map(|address| address.to_string());
            let peer = address.or_else(device).unwrap_or_default();
            all.insert(Element::HostPeer { vrf: vrf(), peer }, json(neighbor));
        }
        for network in &bgp.networks {
            let prefix = network.to_string();
            all.insert(Element::HostNetwork { vrf: vrf(), prefix }, Value::Null);
        }
        for own in bgp.l2vnis.iter().chain(&bgp.l3vni) {
            let vni = own.vni.get();
            all.insert(Element::HostVni { vrf: vrf(), vni }, json(own));
        }
        let base = HostBgp {
            neighbors: Vec::new(),
            networks: BTreeSet::new(),
            l2vnis: Vec::new(),
            l3vni: None,
            ..bgp.clone()
        };
        all.insert(Element::HostRouter { vrf: vrf() }, json(&base));
    }
    for profile in bfd_profiles {
        let name = profile.name.clone();
        all.insert(Element::HostBfdProfile { name }, json(profile));
    }
    for lines in raw {
        let source = lines.source.clone();
        all.insert(Element::HostRaw { source }, json(&lines.lines));
    }
}

fn of_underlay(underlay: &Underlay, all: &mut Elements) {
    for neighbor in &underlay.neighbors {
        let peer = peer(neighbor);
        all.insert(Element::Peer { peer }, json(neighbor));
    }
    let base = Underlay {
        neighbors: Vec::new(),
        ..underlay.clone()
    };
    all.insert(Element::Underlay, json(&base));
}

fn peer(neighbor: &Neighbor) -> String {
    let device = || neighbor.interface.as_ref().map(ToString::to_string);
    let address = neighbor.address.map(|address| address.to_string());
    address.or_else(device).unwrap_or_default()
}

fn of_vrf(vrf: &Vrf, all: &mut Elements) {
    let name = vrf.devices.vrf.to_string();
    for (element, action) in filtered(vrf) {
        // Of two rules for the same routes the first decides; both are part of what is there.
        let rules = all
            .entry(element)
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(rules) = rules {
            rules.push(action);
        }
    }
    of_targets(vrf, &name, all);
    all.insert(Element::Table { vrf: name.clone() }, vrf.table.into());
    for route in &vrf.static_routes {
        let (vrf, prefix) = (name.clone(), route.prefix.to_string());
        all.insert(Element::Route { vrf, prefix }, json(route));
    }
    for policy in &vrf.policy_routes {
        let text = |prefix: Option<MatchPrefix>| {
            prefix.map_or_else(|| ANYWHERE.to_owned(), |prefix| prefix.to_string())
        };
        let element = Element::Steering {
            source: text(policy.traffic_match.src_prefix),
            destination: text(policy.traffic_match.dst_prefix),
            vrf: policy.next_hop.vrf.clone().unwrap_or_default(),
        };
        all.insert(element, json(policy));
    }
    for session in &vrf.bgp_peers {
        let (vrf, peer) = (name.clone(), session.peer().unwrap_or_default());
        all.insert(Element::Session { vrf, peer }, json(session));
    }
    if let Some(session) = &vrf.host_session {
        let vrf = name.clone();
        all.insert(Element::HostSession { vrf }, json(session));
    }
    for aggregate in &vrf.aggregates {
        let (vrf, prefix) = (name.clone(), aggregate.to_string());
        all.insert(Element::Aggregate { vrf, prefix }, Value::Null);
    }
    for (loopback, addresses) in &vrf.loopbacks {
        let (vrf, name) = (name.clone(), loopback.clone());
        all.insert(Element::Loopback { vrf, name }, json(addresses));
    }
    for (tunnel, gre) in &vrf.gres {
        let (vrf, name) = (name.clone(), tunnel.clone());
        all.insert(Element::Tunnel { vrf, name }, json(gre));
    }
    for acl in &vrf.mirror_acls {
        all.insert(mirror(&Place::Vrf(name.clone()), acl), json(acl));
    }
    let base = Vrf {
        evpn_export_filter: None,
        evpn_import_route_targets: Vec::new(),
        evpn_export_route_targets: Vec::new(),
        bgp_peers: Vec::new(),
        loopbacks: BTreeMap::new(),
        gres: BTreeMap::new(),
        mirror_acls: Vec::new(),
        policy_routes: Vec::new(),
        vrf_imports: Vec::new(),
        static_routes: Vec::new(),
        host_session: None,
        aggregates: Vec::new(),
        redistribute: Some(Redistribute::default()),
        ..vrf.clone()
    };
    let mut base = json(&base);
    if let Some(fields) = base.as_object_mut() {
        fields.remove("table");
    }
    all.insert(Element::Vrf { vrf: name }, base);
}

/// The route targets of a VRF, each with whether it is imported or exported.
fn of_targets(vrf: &Vrf, name: &str, all: &mut Elements) {
    let targets = vrf
        .evpn_import_route_targets
        .iter()
        .map(|target| (target.to_string(), "import"));
    let exported = vrf
        .evpn_export_route_targets
        .iter()
        .map(|target| (target.to_string(), "export"));
    for (target, direction) in targets.chain(exported) {
        let vrf = name.to_owned();
        let element = Element::RouteTarget { vrf, target };
        let ways = all
            .entry(element)
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(ways) = ways {
            ways.push(direction.into());
        }
    }
}

/// Where traffic goes whose destination does not matter.
pub(crate) const ANYWHERE: &str = "anywhere";

fn of_segment(segment: &Layer2, all: &mut Elements) {
    let Some(vlan) = segment.vlan else {
        let vni = segment.vni.get();
        if let Some(irb) = &segment.irb {
            all.insert(Element::VniGateway { vni }, json(irb));
        }
        let base = Layer2 {
            irb: None,
            ..segment.clone()
        };
        all.insert(Element::VniSegment { vni }, json(&base));
        return;
    };
    let vlan = vlan.get();
    if let Some(irb) = &segment.irb {
        all.insert(Element::Gateway { vlan }, json(irb));
    }
    if let Some(interface) = &segment.host_interface {
        let name = interface.name.to_string();
        of_host(&name, &interface.addresses, &interface.routes, all);
        let base = HostInterface {
            name: interface.name.clone(),
            addresses: Vec::new(),
            routes: Vec::new(),
        };
        all.insert(Element::HostInterface { vlan, name }, json(&base));
    }
    for acl in &segment.mirror_acls {
        all.insert(mirror(&Place::Segment(vlan), acl), json(acl));
    }
    let base = Layer2 {
        irb: None,
        host_interface: None,
        mirror_acls: Vec::new(),
        ..segment.clone()
    };
    all.insert(Element::Segment { vlan }, json(&base));
}

/// The element of a rule that copies traffic.
pub(crate) fn mirror(place: &Place, acl: &MirrorAcl) -> Element {
    Element::Mirror {
        place: place.to_string(),
        traffic: traffic(acl),
        tunnel: acl.mirror_destination.to_string(),
    }
}

/// Which traffic a rule copies, in words.
fn traffic(acl: &MirrorAcl) -> String {
    let TrafficMatch {
        src_prefix,
        dst_prefix,
        src_port,
        dst_port,
        protocol,
    } = &acl.traffic_match;
    let mut words = vec![match acl.direction {
        MirrorDirection::Ingress => "ingress".to_owned(),
        MirrorDirection::Egress => "egress".to_owned(),
    }];
    words.extend(protocol.map(|protocol| format!("{protocol:?}").to_lowercase()));
    let end = |word: &str, prefix: Option<MatchPrefix>, port: Option<u16>| {
        let prefix = prefix.map(|prefix| format!("{word} {prefix}"));
        let port = port.map(|port| format!("{word} port {port}"));
        [prefix, port].into_iter().flatten()
    };
    words.extend(end("from", *src_prefix, *src_port));
    words.extend(end("to", *dst_prefix, *dst_port));
    words.join(" ")
}

/// The addresses and routes of a device of the host.
fn of_host(device: &str, addresses: &[HostCidr], routes: &[StaticRoute], all: &mut Elements) {
    for address in addresses {
        let (device, address) = (device.to_owned(), address.to_string());
        all.insert(Element::HostAddress { device, address }, Value::Null);
    }
    for route in routes {
        let (device, prefix) = (device.to_owned(), route.prefix.to_string());
        all.insert(Element::HostRoute { device, prefix }, json(route));
    }
}

fn json<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value)
        .unwrap_or_else(|error| unreachable!("a part of a config is JSON: {error}"))
}
