//! Nodes on a segment that gives them addresses want one of each of its networks, and what a node has it keeps.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use api::{
    meta::LabelSelector,
    tcaas::{
        AddressLists, Layer2AttachmentSpec, Layer2NetworkConfigurationSpec, NetworkSpec,
        NodeNetworkConfigSpec,
    },
    value::{IfName, Prefix},
};

use super::{Claimant, Ground, plain};
use crate::{
    allocate::share::{Claim, Want},
    lower::LowLevelObjects,
    names,
    select::Index,
    snapshot::{Key, Kind, Meta, ObjectRef, Snapshot},
};

/// A segment whose nodes get addresses.
struct Segment<'a> {
    ground: Ground<'a>,
    subject: ObjectRef,
    meta: &'a Meta,
    selector: Option<&'a LabelSelector>,
    /// Its device in the nodes' own namespace, as far as that is known.
    device: Option<IfName>,
    spare: u32,
    remembered: BTreeMap<String, AddressLists>,
}

/// The claims of all nodes: on the Networks of intents, and on the networks of people's own segments.
pub(super) fn claims<'a>(
    snapshot: &'a Snapshot,
    written: &'a LowLevelObjects<Layer2NetworkConfigurationSpec>,
) -> Vec<(Ground<'a>, Claimant<'a>)> {
    let mut segments = intents(snapshot);
    segments.extend(own(snapshot, written));
    let by_label = Index::new(segments.iter().map(|one| (one.selector, one)));
    let mut claims = Vec::new();
    for (node, object) in &snapshot.nodes {
        let config = snapshot.node_network_configs.get(node);
        for segment in by_label.of(&object.meta.labels) {
            let told = || match (config, &segment.device) {
                (Some(config), Some(device)) => told(&config.spec, device),
                _ => Vec::new(),
            };
            let remembered = segment.remembered.get(&node.name);
            let held = remembered.map_or_else(told, |lists| plain(lists).collect());
            let claimant = Claimant {
                subject: segment.subject.clone(),
                node: Some(&node.name),
                meta: segment.meta,
                claim: Claim {
                    want: Want::One {
                        spare: segment.spare,
                    },
                    held,
                },
                without_pool: false,
            };
            claims.push((segment.ground.clone(), claimant));
        }
    }
    claims
}

fn intents(snapshot: &Snapshot) -> Vec<Segment<'_>> {
    let mut segments = Vec::new();
    for (key, object) in &snapshot.layer2_attachments {
        let spec: &Layer2AttachmentSpec = &object.spec;
        let Some(node_ips) = spec.node_ips.as_ref().filter(|ips| ips.enabled) else {
            continue;
        };
        let network = snapshot.networks.get(&Key::named(&spec.network_ref));
        let network: Option<&NetworkSpec> = network.map(|network| &network.spec);
        if network.is_some_and(|network| !network.managed) {
            continue;
        }
        let vlan = network.and_then(|network| network.vlan);
        let status = object.status.as_ref();
        segments.push(Segment {
            ground: Ground::Network(&spec.network_ref),
            subject: ObjectRef {
                kind: Kind::Layer2Attachment,
                key: key.clone(),
            },
            meta: &object.meta,
            selector: spec.node_selector.as_ref(),
            device: vlan.and_then(|vlan| {
                let name = spec.interface_name.as_ref();
                names::host_device(vlan, spec.interface_ref.is_some(), name)
            }),
            spare: node_ips.reserved_for_pods.unwrap_or(0),
            remembered: status.map_or_else(BTreeMap::new, |status| status.node_addresses.clone()),
        });
    }
    segments
}

fn own<'a>(
    snapshot: &'a Snapshot,
    written: &'a LowLevelObjects<Layer2NetworkConfigurationSpec>,
) -> impl Iterator<Item = Segment<'a>> {
    written.iter().filter_map(|(name, object)| {
        let spec = &object.spec;
        let node_ips = spec.node_ips.as_ref().filter(|ips| ips.enabled)?;
        let current = snapshot
            .layer2_network_configurations
            .get(&Key::named(name));
        let status = current.and_then(|current| current.status.as_ref());
        let remembered = status.and_then(|status| status.get("nodeAddresses"));
        let remembered = remembered.and_then(|lists| serde_json::from_value(lists.clone()).ok());
        Some(Segment {
            ground: Ground::Networks(networks(spec)),
            subject: object.source.clone(),
            meta: &object.meta,
            selector: spec.node_selector.as_ref(),
            device: {
                let name = spec.interface_name.as_ref();
                names::host_device(spec.id, spec.interface_ref.is_some(), name)
            },
            spare: node_ips.reserved_for_pods.unwrap_or(0),
            remembered: remembered.unwrap_or_default(),
        })
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

/// What a node was told last: the memory that is left when a status is lost.
fn told(config: &NodeNetworkConfigSpec, device: &IfName) -> Vec<IpAddr> {
    let segments = config.layer2s.values();
    let mut interfaces = segments.filter_map(|segment| segment.host_interface.as_ref());
    let over_the_fabric = interfaces.find(|interface| interface.name == *device);
    let over_the_fabric = over_the_fabric.map(|interface| &interface.addresses);
    let on_device = config.host_vlans.get(device.as_str());
    let on_device = on_device.map(|vlan| &vlan.addresses);
    let addresses = over_the_fabric.into_iter().chain(on_device).flatten();
    addresses.map(|address| address.addr()).collect()
}

/// Every address that some node was told to have: none is given to another before that node has let go of it.
pub(super) fn all_told(config: &NodeNetworkConfigSpec, all: &mut BTreeSet<IpAddr>) {
    let segments = config.layer2s.values();
    let interfaces = segments.filter_map(|segment| segment.host_interface.as_ref());
    let over_the_fabric = interfaces.flat_map(|interface| &interface.addresses);
    let on_devices = config.host_vlans.values().flat_map(|one| &one.addresses);
    all.extend(over_the_fabric.chain(on_devices).map(|one| one.addr()));
}
