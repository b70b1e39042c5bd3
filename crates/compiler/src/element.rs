//! The elements of a node's config: the things people speak of, each with a name, what it is, and who asked for it.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    tcaas::node_network_config::{
        Filter, FilterItem, HostInterface, Irb, Layer2, Neighbor, Redistribute, Underlay, Vrf,
    },
    tcaas::{MatchPrefix, NodeNetworkConfigSpec, VrfRouteConfigurationSpec},
    value::Prefix,
};
use serde::Serialize;

use crate::{Compilation, NodeConfig, lower::LowLevel, snapshot::ObjectRef};

/// What an element is called. It sorts as it is read: the underlay, then VRFs with what is in them, then segments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::Display)]
#[serde(rename_all = "camelCase")]
pub enum Element {
    /// How the node is plugged into the fabric.
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
    /// What a VRF takes over from another one of the node.
    #[strum(to_string = "VRF {vrf} takes {prefix} from {from}")]
    Import {
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
}

/// The elements of a config with what each of them is, in words that two configs can be compared by.
pub type Elements = BTreeMap<Element, String>;

/// All elements of a node's config.
pub fn elements(config: &NodeConfig) -> Elements {
    let NodeNetworkConfigSpec {
        contract_version: _,
        revision: _,
        underlay,
        layer2s,
        cluster_vrf,
        fabric_vrfs,
        local_vrfs,
        host_vlans,
        host_loopbacks,
    } = config.spec("");
    let mut all = Elements::new();
    if let Some(underlay) = &underlay {
        of_underlay(underlay, &mut all);
    }
    let others = fabric_vrfs.values().chain(local_vrfs.values());
    for vrf in cluster_vrf.iter().chain(others) {
        of_vrf(vrf, &mut all);
    }
    for segment in layer2s.values() {
        of_segment(segment, &mut all);
    }
    for (name, vlan) in &host_vlans {
        let element = Element::HostVlan {
            vlan: vlan.vlan.get(),
            name: name.clone(),
        };
        all.insert(element, json(vlan));
    }
    for (name, loopback) in &host_loopbacks {
        all.insert(Element::HostLoopback { name: name.clone() }, json(loopback));
    }
    all
}

fn of_underlay(underlay: &Underlay, all: &mut Elements) {
    let neighbors = &underlay.neighbors;
    for neighbor in neighbors {
        all.insert(
            Element::Peer {
                peer: peer(neighbor),
            },
            json(neighbor),
        );
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
    for item in items(vrf.evpn_export_filter.as_ref()) {
        let element = Element::Export {
            vrf: name.clone(),
            prefix: prefix(item),
        };
        all.insert(element, json(&item.action));
    }
    for import in &vrf.vrf_imports {
        for item in items(Some(&import.filter)) {
            let (vrf, from) = (name.clone(), import.from_vrf.clone());
            let element = Element::Import {
                vrf,
                from,
                prefix: prefix(item),
            };
            all.insert(element, json(&item.action));
        }
    }
    for route in &vrf.static_routes {
        let element = Element::Route {
            vrf: name.clone(),
            prefix: route.prefix.to_string(),
        };
        all.insert(element, json(route));
    }
    for policy in &vrf.policy_routes {
        let text = |prefix: Option<MatchPrefix>| {
            prefix.map_or_else(|| "anywhere".to_owned(), |prefix| prefix.to_string())
        };
        let element = Element::Steering {
            source: text(policy.traffic_match.src_prefix),
            destination: text(policy.traffic_match.dst_prefix),
            vrf: policy.next_hop.vrf.clone().unwrap_or_default(),
        };
        all.insert(element, json(policy));
    }
    for session in &vrf.bgp_peers {
        let address = session.address.map(|address| address.to_string());
        let range = session.listen_range.map(|range| range.to_string());
        let peer = address.or(range).unwrap_or_default();
        let element = Element::Session {
            vrf: name.clone(),
            peer,
        };
        all.insert(element, json(session));
    }
    let base = Vrf {
        evpn_export_filter: None,
        bgp_peers: Vec::new(),
        policy_routes: Vec::new(),
        vrf_imports: Vec::new(),
        static_routes: Vec::new(),
        redistribute: Some(Redistribute::default()),
        ..vrf.clone()
    };
    all.insert(Element::Vrf { vrf: name }, json(&base));
}

fn items(filter: Option<&Filter>) -> impl Iterator<Item = &FilterItem> {
    filter.into_iter().flat_map(|filter| &filter.items)
}

fn prefix(item: &FilterItem) -> String {
    let Some(matcher) = &item.matcher.prefix else {
        return "everything".to_owned();
    };
    let bound = |word: &str, length: Option<u8>| {
        length
            .map(|length| format!(" {word} {length}"))
            .unwrap_or_default()
    };
    format!(
        "{}{}{}",
        matcher.prefix,
        bound("ge", matcher.ge),
        bound("le", matcher.le)
    )
}

fn of_segment(segment: &Layer2, all: &mut Elements) {
    let vlan = segment.vlan.get();
    if let Some(irb) = &segment.irb {
        all.insert(Element::Gateway { vlan }, json::<Irb>(irb));
    }
    if let Some(interface) = &segment.host_interface {
        let name = interface.name.to_string();
        all.insert(
            Element::HostInterface { vlan, name },
            json::<HostInterface>(interface),
        );
    }
    let base = Layer2 {
        irb: None,
        host_interface: None,
        ..segment.clone()
    };
    all.insert(Element::Segment { vlan }, json(&base));
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value)
        .unwrap_or_else(|error| unreachable!("a part of a config is JSON: {error}"))
}

/// Who asked for an element on a node: the intents, or the people's own objects, that it comes from.
pub fn sources(
    compilation: &Compilation,
    config: &NodeConfig,
    element: &Element,
) -> BTreeSet<ObjectRef> {
    let here = &config.shared.objects;
    let lowered = &compilation.lowered;
    let segments = |vlan: u16| {
        let on_node = lowered
            .layer2
            .iter()
            .filter(|(name, _)| here.contains(*name));
        on_node
            .filter(move |(_, object)| object.spec.id.get() == vlan)
            .map(|(_, object)| source(object))
    };
    let routing = |vrf: &str| {
        let on_node = lowered.vrf.iter().filter(|(name, _)| here.contains(*name));
        let vrf = vrf.to_owned();
        on_node
            .map(|(_, object)| object)
            .filter(move |object| object.spec.vrf.as_str() == vrf)
    };
    match element {
        Element::Underlay | Element::Peer { .. } => BTreeSet::new(),
        Element::Segment { vlan }
        | Element::Gateway { vlan }
        | Element::HostInterface { vlan, .. }
        | Element::HostVlan { vlan, .. } => segments(*vlan).collect(),
        Element::Session { .. } | Element::HostLoopback { .. } => {
            let peerings = &config.shared.peerings;
            let here = lowered.bgp.iter();
            let here = here.filter(|(name, _)| peerings.contains(*name));
            here.map(|(_, object)| source(object)).collect()
        }
        Element::Vrf { vrf } => routing(steered(vrf)).map(source).collect(),
        Element::Steering {
            source: from, vrf, ..
        } => {
            let of_vrf = routing(steered(vrf)).filter(|object| exports(object, from));
            of_vrf.map(source).collect()
        }
        Element::Export { vrf, prefix } => {
            let of_vrf = routing(vrf).filter(|object| exports(object, prefix));
            of_vrf.map(source).collect()
        }
        // What comes from the cluster VRF is what the VRF exports; what goes there is what it imports.
        Element::Import { vrf, from, prefix } => {
            let out = routing(vrf).filter(|object| exports(object, prefix));
            let back = routing(from).filter(|object| imports(object, prefix));
            out.chain(back).map(source).collect()
        }
        Element::Route { vrf, prefix } => {
            let of_vrf = routing(vrf).filter(|object| aggregates(object, prefix));
            of_vrf.map(source).collect()
        }
    }
}

type Routing = LowLevel<VrfRouteConfigurationSpec>;

fn exports(object: &Routing, prefix: &str) -> bool {
    object.spec.export.iter().any(|item| is(item.cidr, prefix))
}

fn imports(object: &Routing, prefix: &str) -> bool {
    object.spec.import.iter().any(|item| is(item.cidr, prefix))
}

fn aggregates(object: &Routing, prefix: &str) -> bool {
    object.spec.aggregate.iter().any(|one| is(*one, prefix))
}

/// Whether an element's prefix, which may go on with a range of lengths, is this one.
fn is(prefix: Prefix, text: &str) -> bool {
    text.split(' ').next() == Some(&prefix.to_string())
}

fn source<S>(object: &LowLevel<S>) -> ObjectRef {
    object.source.clone()
}

/// The VRF that a VRF for steering stands for, or the VRF itself.
fn steered(vrf: &str) -> &str {
    vrf.strip_prefix("s-").unwrap_or(vrf)
}
