//! Nodes on a segment that gives them addresses want one of each of its networks, and what a node has it keeps.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use api::{
    meta::LabelSelector,
    tcaas::{AddressLists, Layer2NetworkConfigurationSpec, NodeNetworkConfigSpec},
    value::{IfName, Prefix},
};

use super::{claims::Claimant, plain};
use crate::{
    allocate::{
        is_among_last,
        share::{Claim, Want},
    },
    lower::{
        low_level::{HandWritten, LowLevelObject},
        routing::subnets,
    },
    memo::Index,
    names,
    problem::{self, Problem},
    snapshot::{Key, Kind, Meta, ObjectRef, kinds},
    view::View,
};

/// The nodes by their labels.
pub(crate) struct NodesByLabel;
impl Index for NodesByLabel {
    type Source = Key;
    type Key = (String, String);
    type Item = Key;
    fn sources(view: &View<'_>) -> Vec<Key> {
        view.keys::<kinds::Node>().to_vec()
    }
    fn entries(view: &View<'_>, node: &Key) -> Vec<((String, String), Key)> {
        let Some(meta) = view.meta::<kinds::Node>(node) else {
            return Vec::new();
        };
        let labels = meta.labels.iter();
        let entry =
            |(label, value): (&String, &String)| ((label.clone(), value.clone()), node.clone());
        labels.map(entry).collect()
    }
}

/// The nodes that a selector chooses, by name; all without one.
fn chosen(view: &View<'_>, selector: Option<&LabelSelector>) -> Vec<Key> {
    let label = selector.and_then(|selector| selector.match_labels.first_key_value());
    let candidates = match label {
        Some((label, value)) => view.who::<NodesByLabel>(&(label.clone(), value.clone())),
        None => view.keys::<kinds::Node>(),
    };
    let is_chosen = |node: &&Key| {
        let Some(selector) = selector else {
            return true;
        };
        let meta = view.meta::<kinds::Node>(node);
        meta.is_some_and(|meta| selector.matches(&meta.labels))
    };
    candidates.iter().filter(is_chosen).cloned().collect()
}

/// A segment whose nodes get addresses.
pub(super) struct Segment {
    subject: ObjectRef,
    meta: Arc<Meta>,
    selector: Option<LabelSelector>,
    /// Its device in the nodes' own namespace, as far as that is known.
    device: Option<IfName>,
    spare: u32,
    /// The networks of the addresses.
    networks: Vec<Prefix>,
    remembered: BTreeMap<String, AddressLists>,
}

impl Segment {
    /// Says which nodes keep addresses that were reserved for pods after the nodes got them.
    pub(super) fn keeps_reserved(
        &self,
        addresses: &BTreeMap<String, Vec<IpAddr>>,
    ) -> Option<Problem> {
        if self.spare == 0 {
            return None;
        }
        let is_reserved = |address: &IpAddr| {
            let mut networks = self.networks.iter();
            networks.any(|network| is_among_last(*network, *address, self.spare))
        };
        let mut keeping = addresses
            .iter()
            .filter(|(_, own)| own.iter().any(is_reserved));
        let (node, _) = keeping.next()?;
        let others = match keeping.count() {
            0 => String::new(),
            others => format!(" (and {others} more)"),
        };
        let what = format!(
            "node {node:?}{others} keeps an address among the last {}, which it had before they were reserved for pods",
            self.spare
        );
        let kind = problem::Kind::NoEffect { what };
        let field = "spec.nodeIPs.reservedForPods";
        Some(Problem::new(self.subject.clone(), field, kind))
    }
}

/// The claims of all nodes on a segment.
pub(super) fn claimants(view: &View<'_>, segment: &Segment) -> Vec<Claimant> {
    let mut claimants = Vec::new();
    for node in chosen(view, segment.selector.as_ref()) {
        let remembered = segment.remembered.get(&*node.name);
        let stored = || {
            let config = view.spec::<kinds::NodeNetworkConfig>(&node);
            let stored = config.zip(segment.device.as_ref());
            stored.map_or_else(Vec::new, |(config, device)| in_config(&config, device))
        };
        claimants.push(Claimant {
            subject: segment.subject.clone(),
            node: Some(Arc::clone(&node.name)),
            meta: Arc::clone(&segment.meta),
            claim: Claim {
                want: Want::One {
                    spare: segment.spare,
                },
                held: remembered.map_or_else(stored, |lists| plain(lists).collect()),
            },
            without_pool: false,
        });
    }
    claimants
}

/// Whether the nodes of an object's segment get addresses.
pub(super) fn gives_addresses(view: &View<'_>, subject: &ObjectRef) -> bool {
    if subject.kind == Kind::Layer2Attachment {
        let spec = view.spec::<kinds::Layer2Attachment>(&subject.key);
        let node_ips = spec.as_ref().and_then(|spec| spec.node_ips.as_ref());
        return node_ips.is_some_and(|ips| ips.enabled);
    }
    segment(view, subject).is_some()
}

/// The segment of an object, if its nodes get addresses.
pub(super) fn segment(view: &View<'_>, subject: &ObjectRef) -> Option<Segment> {
    if subject.kind == Kind::Layer2Attachment {
        attached(view, subject)
    } else if subject.kind == Kind::Layer2NetworkConfiguration {
        written(view, subject)
    } else {
        None
    }
}

fn attached(view: &View<'_>, subject: &ObjectRef) -> Option<Segment> {
    let spec = view.spec::<kinds::Layer2Attachment>(&subject.key)?;
    let node_ips = spec.node_ips.as_ref().filter(|ips| ips.enabled)?;
    let network = view.network(&spec.network_ref);
    if network.as_ref().is_some_and(|network| !network.managed) {
        return None;
    }
    let networks = network.as_ref().map(|network| subnets(network));
    let vlan = network.and_then(|network| network.vlan);
    let status = view.status::<kinds::Layer2Attachment>(&subject.key);
    Some(Segment {
        subject: subject.clone(),
        meta: view.meta_of(subject)?,
        selector: spec.node_selector.clone(),
        device: vlan.and_then(|vlan| {
            let name = spec.interface_name.as_ref();
            names::host_device(vlan, spec.interface_ref.is_some(), name)
        }),
        spare: node_ips.reserved_for_pods.unwrap_or(0),
        networks: networks.unwrap_or_default(),
        remembered: status.map_or_else(BTreeMap::new, |status| status.node_addresses.clone()),
    })
}

fn written(view: &View<'_>, subject: &ObjectRef) -> Option<Segment> {
    let LowLevelObject::Layer2(object) = view.get::<HandWritten>(subject)? else {
        return None;
    };
    let spec = &object.spec;
    let node_ips = spec.node_ips.as_ref().filter(|ips| ips.enabled)?;
    let status = view.status::<kinds::Layer2NetworkConfiguration>(&subject.key);
    Some(Segment {
        subject: subject.clone(),
        meta: view.meta_of(subject)?,
        selector: spec.node_selector.clone(),
        device: {
            let name = spec.interface_name.as_ref();
            names::host_device(spec.id, spec.interface_ref.is_some(), name)
        },
        spare: node_ips.reserved_for_pods.unwrap_or(0),
        networks: networks(spec),
        remembered: status.map_or_else(BTreeMap::new, |status| status.node_addresses.clone()),
    })
}

/// The networks that the nodes' addresses on a segment come from; none where nodes get none.
pub(crate) fn networks(spec: &Layer2NetworkConfigurationSpec) -> Vec<Prefix> {
    let Some(node_ips) = spec.node_ips.as_ref().filter(|ips| ips.enabled) else {
        return Vec::new();
    };
    if node_ips.networks.is_empty() {
        let gateways = spec.anycast_gateways.iter();
        return gateways.map(|gateway| gateway.prefix()).collect();
    }
    node_ips.networks.clone()
}

/// What a node's config has on a device: the memory that is left when a status is lost.
fn in_config(config: &NodeNetworkConfigSpec, device: &IfName) -> Vec<IpAddr> {
    let segments = config.layer2s.values();
    let mut interfaces = segments.filter_map(|segment| segment.host_interface.as_ref());
    let over_the_fabric = interfaces.find(|interface| interface.name == *device);
    let over_the_fabric = over_the_fabric.map(|interface| &interface.addresses);
    let on_device = config.host_vlans.get(device.as_str());
    let on_device = on_device.map(|vlan| &vlan.addresses);
    let addresses = over_the_fabric.into_iter().chain(on_device).flatten();
    addresses.map(|address| address.addr()).collect()
}
