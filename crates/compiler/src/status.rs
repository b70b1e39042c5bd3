//! What is reported back: problems and the nodes' answers, folded into the status of each intent.

mod conditions;
mod low_level;
mod mirror;
mod selectors;
mod sessions;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use api::{
    meta::Conditions,
    selvedge::SettingsStatus,
    tcaas::{
        AddressLists, DestinationStatus, InboundStatus, Layer2AttachmentStatus, NetworkStatus,
        OutboundStatus, PodNetworkStatus, VrfStatus,
    },
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    Compilation,
    lower::{Lowered, Service, networks},
    node::Shared,
    problem::Problem,
    rollout::Progress,
    snapshot::{Key, Kind, Meta, ObjectRef, Snapshot},
};

/// The statuses that intents shall have. Times are left out: whoever writes a status knows when it changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statuses(pub BTreeMap<ObjectRef, Value>);

/// Folds problems and the nodes' answers into the status of each intent.
pub fn fold(
    snapshot: &Snapshot,
    compilation: &Compilation,
    nodes: &BTreeMap<String, Progress>,
) -> Statuses {
    let groups = groups(compilation);
    let fold = Fold {
        snapshot,
        compilation,
        nodes,
        generated: generated(&compilation.lowered),
        places: places(&groups),
        groups,
        carried: mirror::Carried::new(&compilation.nodes, |selector| {
            let selector = compilation.lowered.mirror_selectors.get(selector)?;
            Some(&selector.spec.mirror_target.name)
        }),
        selected: selectors::counts(snapshot, &compilation.lowered),
        references: references(snapshot),
        problems: problems(compilation),
    };
    let mut statuses = Statuses::default();
    for (key, object) in &snapshot.vrfs {
        statuses.put(Kind::Vrf, key, &fold.vrf(key, &object.meta));
    }
    for (key, object) in &snapshot.networks {
        statuses.put(Kind::Network, key, &fold.network(key, &object.meta));
    }
    for (key, object) in &snapshot.destinations {
        let status = fold.destination(key, &object.meta);
        statuses.put(Kind::Destination, key, &status);
    }
    for (key, object) in &snapshot.layer2_attachments {
        let status = fold.layer2_attachment(key, &object.meta);
        statuses.put(Kind::Layer2Attachment, key, &status);
    }
    for (key, object) in &snapshot.inbounds {
        statuses.put(Kind::Inbound, key, &fold.inbound(key, &object.meta));
    }
    for (key, object) in &snapshot.outbounds {
        statuses.put(Kind::Outbound, key, &fold.outbound(key, &object.meta));
    }
    for (key, object) in &snapshot.pod_networks {
        let status = fold.pod_network(key, &object.meta);
        statuses.put(Kind::PodNetwork, key, &status);
    }
    for (key, object) in &snapshot.bgp_neighbors {
        let status = fold.bgp_neighbor(key, &object.meta);
        statuses.put(Kind::BgpNeighbor, key, &status);
    }
    for (key, object) in &snapshot.settings {
        let status = SettingsStatus {
            observed_generation: object.meta.generation,
            conditions: fold.validity(Kind::Settings, key, &object.meta),
        };
        statuses.put(Kind::Settings, key, &status);
    }
    fold.low_level(&mut statuses);
    fold.mirrors(&mut statuses);
    statuses
}

impl Statuses {
    fn put<T: Serialize>(&mut self, kind: Kind, key: &Key, status: &T) {
        let Ok(status) = serde_json::to_value(status) else {
            unreachable!("a status is JSON")
        };
        let key = key.clone();
        self.0.insert(ObjectRef { kind, key }, status);
    }
}

/// Addresses by family.
fn lists(addresses: impl Iterator<Item = IpAddr>) -> AddressLists {
    let mut lists = AddressLists::default();
    for address in addresses {
        match address {
            IpAddr::V4(address) => lists.ipv4.push(address),
            IpAddr::V6(address) => lists.ipv6.push(address),
        }
    }
    lists
}

fn count(items: impl Iterator) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}

/// How many objects name each VRF and each Network.
fn references(snapshot: &Snapshot) -> BTreeMap<(Kind, &str), u32> {
    let destinations = snapshot.destinations.values();
    let vrfs = destinations.filter_map(|user| user.spec.vrf_ref.as_deref());
    let attachments = snapshot.layer2_attachments.values();
    let attachments = attachments.map(|user| &user.spec.network_ref);
    let inbounds = snapshot.inbounds.values();
    let inbounds = inbounds.map(|user| &user.spec.network_ref);
    let outbounds = snapshot.outbounds.values();
    let outbounds = outbounds.map(|user| &user.spec.network_ref);
    let pods = snapshot.pod_networks.values();
    let pods = pods.map(|user| &user.spec.network_ref);
    let networks = attachments.chain(inbounds).chain(outbounds).chain(pods);
    let vrfs = vrfs.map(|name| (Kind::Vrf, name));
    let networks = networks.map(|name| (Kind::Network, name.as_str()));
    let mut references: BTreeMap<(Kind, &str), u32> = BTreeMap::new();
    for name in vrfs.chain(networks) {
        let count = references.entry(name).or_default();
        *count = count.saturating_add(1);
    }
    references
}

/// What is wrong with each object.
fn problems(compilation: &Compilation) -> BTreeMap<&ObjectRef, Vec<&Problem>> {
    let mut problems: BTreeMap<&ObjectRef, Vec<&Problem>> = BTreeMap::new();
    for problem in &compilation.problems {
        problems.entry(&problem.subject).or_default().push(problem);
    }
    problems
}

/// Nodes that share their config, with it.
fn groups(compilation: &Compilation) -> Vec<(&Shared, Vec<&str>)> {
    let mut groups: BTreeMap<*const Shared, (&Shared, Vec<&str>)> = BTreeMap::new();
    for (name, node) in &compilation.nodes {
        let group = groups.entry(Arc::as_ptr(&node.shared));
        let (_, nodes) = group.or_insert_with(|| (&node.shared, Vec::new()));
        nodes.push(name);
    }
    groups.into_values().collect()
}

/// Where each low-level object is in effect, so that nobody asks every group for every object.
fn places<'a>(groups: &[(&'a Shared, Vec<&'a str>)]) -> BTreeMap<&'a str, Vec<usize>> {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, (shared, _)) in groups.iter().enumerate() {
        let names = shared.segments.iter().chain(&shared.routing);
        for name in names.chain(&shared.peerings) {
            places.entry(name).or_default().push(place);
        }
    }
    places
}

/// The low-level objects that a node must have before an intent counts as applied there: an attachment's segment, a service's
/// routing, a neighbor's sessions.
fn generated(lowered: &Lowered) -> BTreeMap<&ObjectRef, BTreeSet<&str>> {
    let segments = lowered.layer2.iter();
    let segments = segments.map(|(name, object)| (&object.source, name));
    let routing = lowered.vrf.iter();
    let routing = routing.map(|(name, object)| (&object.source, name));
    let services = [Kind::Inbound, Kind::Outbound, Kind::PodNetwork];
    let routing = routing.filter(|(source, _)| services.contains(&source.kind));
    let sessions = lowered.bgp.iter();
    let sessions = sessions.map(|(name, object)| (&object.source, name));
    let sessions = sessions.filter(|(source, _)| source.kind == Kind::BgpNeighbor);
    let mut generated: BTreeMap<&ObjectRef, BTreeSet<&str>> = BTreeMap::new();
    for (source, name) in segments.chain(routing).chain(sessions) {
        generated.entry(source).or_default().insert(name);
    }
    generated
}

struct Fold<'a> {
    snapshot: &'a Snapshot,
    compilation: &'a Compilation,
    nodes: &'a BTreeMap<String, Progress>,
    generated: BTreeMap<&'a ObjectRef, BTreeSet<&'a str>>,
    groups: Vec<(&'a Shared, Vec<&'a str>)>,
    /// The places of the groups that have something of each object.
    places: BTreeMap<&'a str, Vec<usize>>,
    carried: mirror::Carried<'a>,
    /// How many objects select each Destination.
    selected: BTreeMap<&'a str, u32>,
    /// How many objects name each VRF and each Network.
    references: BTreeMap<(Kind, &'a str), u32>,
    problems: BTreeMap<&'a ObjectRef, Vec<&'a Problem>>,
}

impl Fold<'_> {
    fn references(&self, kind: Kind, key: &Key) -> u32 {
        let references = self.references.get(&(kind, key.name.as_str()));
        references.copied().unwrap_or(0)
    }

    fn vrf(&self, key: &Key, meta: &Meta) -> VrfStatus {
        let resolved = self.compilation.lowered.vrfs.get(key);
        VrfStatus {
            observed_generation: meta.generation,
            reference_count: self.references(Kind::Vrf, key),
            vni: resolved.map(|vrf| vrf.vni),
            route_target: resolved.map(|vrf| vrf.route_target),
            conditions: self.validity(Kind::Vrf, key, meta),
        }
    }

    fn network(&self, key: &Key, meta: &Meta) -> NetworkStatus {
        NetworkStatus {
            observed_generation: meta.generation,
            reference_count: self.references(Kind::Network, key),
            vni: self
                .compilation
                .lowered
                .network_vnis
                .get(&key.name)
                .copied(),
            allocated_slices: Vec::new(),
            conditions: self.validity(Kind::Network, key, meta),
        }
    }

    fn destination(&self, key: &Key, meta: &Meta) -> DestinationStatus {
        DestinationStatus {
            observed_generation: meta.generation,
            reference_count: self.selected.get(key.name.as_str()).copied().unwrap_or(0),
            conditions: self.validity(Kind::Destination, key, meta),
        }
    }

    fn layer2_attachment(&self, key: &Key, meta: &Meta) -> Layer2AttachmentStatus {
        let attachment = self.compilation.lowered.attachments.get(&key.name);
        let attachment = attachment.cloned().unwrap_or_default();
        Layer2AttachmentStatus {
            observed_generation: meta.generation,
            interface_name: attachment.interface,
            sriov_vlan_id: attachment.sriov_vlan,
            anycast: attachment.anycast,
            node_addresses: self.node_addresses(&ObjectRef {
                kind: Kind::Layer2Attachment,
                key: key.clone(),
            }),
            bgp: self.attachment_bgp(key),
            matched_destinations: attachment.matched,
            conditions: self.application(Kind::Layer2Attachment, key, meta),
        }
    }

    fn inbound(&self, key: &Key, meta: &Meta) -> InboundStatus {
        let service = self.service(Kind::Inbound, key);
        InboundStatus {
            observed_generation: meta.generation,
            addresses: service.addresses,
            pool_name: service.pools.into_iter().next(),
            matched_destinations: service.matched,
            conditions: self.service_conditions(Kind::Inbound, key, meta),
        }
    }

    fn outbound(&self, key: &Key, meta: &Meta) -> OutboundStatus {
        let service = self.service(Kind::Outbound, key);
        OutboundStatus {
            observed_generation: meta.generation,
            addresses: service.addresses,
            matched_destinations: service.matched,
            conditions: self.service_conditions(Kind::Outbound, key, meta),
        }
    }

    fn pod_network(&self, key: &Key, meta: &Meta) -> PodNetworkStatus {
        let service = self.service(Kind::PodNetwork, key);
        PodNetworkStatus {
            observed_generation: meta.generation,
            matched_destinations: service.matched,
            ip_pools: service.pools,
            conditions: self.service_conditions(Kind::PodNetwork, key, meta),
        }
    }

    fn service(&self, kind: Kind, key: &Key) -> Service {
        let key = key.clone();
        let services = &self.compilation.lowered.services;
        let service = services.get(&ObjectRef { kind, key });
        service.cloned().unwrap_or_default()
    }

    /// A service that no VRF knows needs nothing of the nodes.
    fn service_conditions(&self, kind: Kind, key: &Key, meta: &Meta) -> Conditions {
        let subject = ObjectRef {
            kind,
            key: key.clone(),
        };
        if self.generated.contains_key(&subject) {
            self.application(kind, key, meta)
        } else {
            let mut conditions = self.validity(kind, key, meta);
            conditions.0.extend(self.no_vrf(&subject, meta));
            conditions
        }
    }

    /// The addresses that are kept for nodes on the segments of an object, whether or not they have it yet. While the segment stays as it was
    /// before a problem, those are the addresses of the networks it had.
    fn node_addresses(&self, subject: &ObjectRef) -> BTreeMap<String, AddressLists> {
        let lowered = &self.compilation.lowered;
        let Some(nodes) = lowered.node_addresses().get(subject) else {
            return BTreeMap::new();
        };
        let segments = self.generated.get(subject).into_iter().flatten();
        let segments = segments.filter_map(|name| lowered.layer2.get(*name));
        let networks: Vec<_> = segments.flat_map(|one| networks(&one.spec)).collect();
        let is_current = |address: &&IpAddr| {
            let mut all = networks.iter();
            networks.is_empty() || all.any(|one| one.net().contains(*address))
        };
        let lists = nodes.iter().map(|(node, addresses)| {
            let lists = lists(addresses.iter().filter(is_current).copied());
            (node.clone(), lists)
        });
        lists.filter(|(_, lists)| !lists.is_empty()).collect()
    }
}
