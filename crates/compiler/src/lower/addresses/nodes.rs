//! Nodes on a segment that gives them addresses want one of each of its networks, and what a node has it keeps.

use std::{borrow::Cow, collections::BTreeMap, net::IpAddr};

use api::{
    meta::{LabelSelector, Labels},
    tcaas::{AddressLists, Layer2NetworkConfigurationSpec, NodeNetworkConfigSpec},
    value::{IfName, Prefix},
};

use super::{Input, claims::Claimant, plain};
use crate::{
    allocate::share::{Claim, Want},
    names,
    select::{Index, selects},
    snapshot::{Key, Kind, Meta, ObjectRef, Snapshot},
};

/// A segment whose nodes get addresses.
pub(super) struct Segment<'a> {
    subject: &'a ObjectRef,
    meta: &'a Meta,
    selector: Option<&'a LabelSelector>,
    /// Its device in the nodes' own namespace, as far as that is known.
    device: Option<IfName>,
    spare: u32,
    remembered: Cow<'a, BTreeMap<String, AddressLists>>,
}

impl Segment<'_> {
    /// Whether nodes with these labels are on it.
    pub(super) fn selects(&self, labels: &Labels) -> bool {
        selects(self.selector, labels)
    }

    /// Whether its status says what a node has.
    pub(super) fn remembers(&self, node: &str) -> bool {
        self.remembered.contains_key(node)
    }
}

/// The claims of all nodes on segments, each with the place that stands beside the segment, and whether what the node was told was read.
pub(super) fn claims<'a>(
    snapshot: &'a Snapshot,
    segments: &[(usize, Segment<'a>)],
) -> Vec<(usize, Claimant<'a>, bool)> {
    let mut claims = Vec::new();
    if segments.is_empty() {
        return claims;
    }
    let by_label = Index::new(segments.iter().map(|one| (one.1.selector, one)));
    for (node, object) in &snapshot.nodes {
        for (place, segment) in by_label.of(&object.meta.labels) {
            let remembered = segment.remembered.get(&node.name);
            let told = || {
                let config = snapshot.node_network_configs.get(node);
                let device = segment.device.as_ref();
                let told = config.zip(device);
                told.map_or_else(Vec::new, |(config, device)| told_of(&config.spec, device))
            };
            let claimant = Claimant {
                subject: segment.subject,
                node: Some(&node.name),
                meta: segment.meta,
                claim: Claim {
                    want: Want::One {
                        spare: segment.spare,
                    },
                    held: remembered.map_or_else(told, |lists| plain(lists).collect()),
                },
                without_pool: false,
            };
            claims.push((*place, claimant, remembered.is_none()));
        }
    }
    claims
}

/// The segment of an object, if its nodes get addresses.
pub(super) fn segment<'a>(input: Input<'a>, subject: &'a ObjectRef) -> Option<Segment<'a>> {
    match subject.kind {
        Kind::Layer2Attachment => attached(input.snapshot, subject),
        Kind::Layer2NetworkConfiguration => written(input, subject),
        _ => None,
    }
}

fn attached<'a>(snapshot: &'a Snapshot, subject: &'a ObjectRef) -> Option<Segment<'a>> {
    let object = snapshot.layer2_attachments.get(&subject.key)?;
    let spec = &object.spec;
    let node_ips = spec.node_ips.as_ref().filter(|ips| ips.enabled)?;
    let network = snapshot.networks.get(&Key::named(&spec.network_ref));
    if network.is_some_and(|network| !network.spec.managed) {
        return None;
    }
    let vlan = network.and_then(|network| network.spec.vlan);
    let status = object.status.as_ref();
    Some(Segment {
        subject,
        meta: &object.meta,
        selector: spec.node_selector.as_ref(),
        device: vlan.and_then(|vlan| {
            let name = spec.interface_name.as_ref();
            names::host_device(vlan, spec.interface_ref.is_some(), name)
        }),
        spare: node_ips.reserved_for_pods.unwrap_or(0),
        remembered: status
            .map_or_else(Cow::default, |status| Cow::Borrowed(&status.node_addresses)),
    })
}

fn written<'a>(input: Input<'a>, subject: &'a ObjectRef) -> Option<Segment<'a>> {
    let object = input.written.get(&subject.key.name)?;
    let spec = &object.spec;
    let node_ips = spec.node_ips.as_ref().filter(|ips| ips.enabled)?;
    let current = &input.snapshot.layer2_network_configurations;
    let current = current.get(&subject.key);
    let status = current.and_then(|current| current.status.as_ref());
    let remembered = status.and_then(|status| status.get("nodeAddresses"));
    let remembered = remembered.and_then(|lists| serde_json::from_value(lists.clone()).ok());
    Some(Segment {
        subject,
        meta: &object.meta,
        selector: spec.node_selector.as_ref(),
        device: {
            let name = spec.interface_name.as_ref();
            names::host_device(spec.id, spec.interface_ref.is_some(), name)
        },
        spare: node_ips.reserved_for_pods.unwrap_or(0),
        remembered: Cow::Owned(remembered.unwrap_or_default()),
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
fn told_of(config: &NodeNetworkConfigSpec, device: &IfName) -> Vec<IpAddr> {
    let segments = config.layer2s.values();
    let mut interfaces = segments.filter_map(|segment| segment.host_interface.as_ref());
    let over_the_fabric = interfaces.find(|interface| interface.name == *device);
    let over_the_fabric = over_the_fabric.map(|interface| &interface.addresses);
    let on_device = config.host_vlans.get(device.as_str());
    let on_device = on_device.map(|vlan| &vlan.addresses);
    let addresses = over_the_fabric.into_iter().chain(on_device).flatten();
    addresses.map(|address| address.addr()).collect()
}
