//! What is reported back: problems and the nodes' answers, folded into the status of each intent.

mod low_level;
mod mirror;
mod sessions;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use api::{
    meta::{Condition, ConditionStatus, Conditions},
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
    problem::{Problem, Severity},
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
    let fold = Fold {
        snapshot,
        compilation,
        nodes,
        generated: generated(&compilation.lowered),
        groups: groups(compilation),
        carried: mirror::Carried::new(&compilation.nodes, |selector| {
            let selector = compilation.lowered.mirror_selectors.get(selector)?;
            Some(&selector.spec.mirror_target.name)
        }),
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
    carried: mirror::Carried<'a>,
}

impl Fold<'_> {
    fn vrf(&self, key: &Key, meta: &Meta) -> VrfStatus {
        let users = self.snapshot.destinations.values();
        let users = users.filter(|user| user.spec.vrf_ref.as_ref() == Some(&key.name));
        let resolved = self.compilation.lowered.vrfs.get(key);
        VrfStatus {
            observed_generation: meta.generation,
            reference_count: count(users),
            vni: resolved.map(|vrf| vrf.vni),
            route_target: resolved.map(|vrf| vrf.route_target),
            conditions: self.validity(Kind::Vrf, key, meta),
        }
    }

    fn network(&self, key: &Key, meta: &Meta) -> NetworkStatus {
        let snapshot = self.snapshot;
        let attachments = snapshot.layer2_attachments.values();
        let attachments = attachments.map(|user| &user.spec.network_ref);
        let inbounds = snapshot
            .inbounds
            .values()
            .map(|user| &user.spec.network_ref);
        let outbounds = snapshot
            .outbounds
            .values()
            .map(|user| &user.spec.network_ref);
        let pods = snapshot
            .pod_networks
            .values()
            .map(|user| &user.spec.network_ref);
        let users = attachments.chain(inbounds).chain(outbounds).chain(pods);
        NetworkStatus {
            observed_generation: meta.generation,
            reference_count: count(users.filter(|name| **name == key.name)),
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
        let lowered = &self.compilation.lowered;
        let attachments = lowered.attachments.values();
        let attachments = attachments.flat_map(|attachment| &attachment.matched);
        let services = lowered.services.values();
        let services = services.flat_map(|service| &service.matched);
        let selected = attachments.chain(services);
        DestinationStatus {
            observed_generation: meta.generation,
            reference_count: count(selected.filter(|matched| matched.name == key.name)),
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
            self.validity(kind, key, meta)
        }
    }

    /// The addresses that are kept for nodes on the segments of an object, whether or not they have it yet. While the segment stays as it was
    /// before a problem, those are the addresses of the networks it had.
    fn node_addresses(&self, subject: &ObjectRef) -> BTreeMap<String, AddressLists> {
        let lowered = &self.compilation.lowered;
        let Some(nodes) = lowered.node_addresses.get(subject) else {
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

    /// Conditions of an object that is only referred to: it is ready when nothing is wrong with it.
    fn validity(&self, kind: Kind, key: &Key, meta: &Meta) -> Conditions {
        let resolved = self.resolved(
            &ObjectRef {
                kind,
                key: key.clone(),
            },
            meta,
        );
        let mut ready = resolved.clone();
        "Ready".clone_into(&mut ready.kind);
        Conditions(vec![ready, resolved])
    }

    /// Conditions of an intent that becomes config of nodes: it is ready when every node that shall have it does.
    fn application(&self, kind: Kind, key: &Key, meta: &Meta) -> Conditions {
        let subject = ObjectRef {
            kind,
            key: key.clone(),
        };
        let resolved = self.resolved(&subject, meta);
        let objects = self.generated.get(&subject);
        let nothing_to_apply = kind == Kind::Layer2Attachment
            && objects.is_none_or(BTreeSet::is_empty)
            && self.compilation.lowered.attachments.contains_key(&key.name);
        let is_on = |shared: &Shared| {
            let has = |object: &&str| match kind {
                Kind::BgpNeighbor => shared.peerings.contains(*object),
                _ => shared.segments.contains(*object) || shared.routing.contains(*object),
            };
            objects.is_some_and(|objects| objects.iter().any(has))
        };
        let applied = if nothing_to_apply {
            let message = "nodes need nothing for it".to_owned();
            let (kind, reason) = ("Applied", "NothingToApply");
            condition(kind, ConditionStatus::True, reason, message, meta)
        } else {
            self.applied(is_on, meta)
        };
        let mut overall = if resolved.status == ConditionStatus::True {
            applied.clone()
        } else {
            resolved.clone()
        };
        "Ready".clone_into(&mut overall.kind);
        let mut conditions = vec![applied, overall, resolved];
        conditions.extend(self.steering(&subject, meta));
        Conditions(conditions)
    }

    /// Whether every node that shall have something does.
    fn applied(&self, is_on: impl Fn(&Shared) -> bool, meta: &Meta) -> Condition {
        let holders = self.groups.iter().filter(|(shared, _)| is_on(shared));
        let mut total = 0_usize;
        let mut ready = 0_usize;
        let mut failed = BTreeSet::new();
        for node in holders.flat_map(|(_, nodes)| nodes) {
            total += 1;
            match self.nodes.get(*node) {
                Some(Progress::Ready) => ready += 1,
                Some(Progress::Failed) => {
                    failed.insert(*node);
                }
                Some(Progress::Ongoing | Progress::Queued) | None => {}
            }
        }
        let (status, reason, message) = if let Some(node) = failed.first() {
            let message = format!("node {node} could not apply it");
            (ConditionStatus::False, "NodeFailed", message)
        } else if total == 0 {
            let message = "no node has it".to_owned();
            (ConditionStatus::False, "NoNode", message)
        } else if ready == total {
            let message = format!("applied on {total} nodes");
            (ConditionStatus::True, "Applied", message)
        } else {
            let message = format!("applied on {ready} of {total} nodes");
            (ConditionStatus::False, "Pending", message)
        };
        condition("Applied", status, reason, message, meta)
    }

    /// Why the object's traffic is routed by its source, where it is.
    fn steering(&self, subject: &ObjectRef, meta: &Meta) -> Option<Condition> {
        let mut nodes = self.compilation.nodes.iter();
        let (node, reason) =
            nodes.find_map(|(name, node)| Some((name, node.shared.steering.get(subject)?)))?;
        let overlap = reason.overlap.as_ref()?;
        let message = format!(
            "on node {node}, {} behind VRF {:?} and {} behind VRF {:?} overlap: traffic is routed by its source",
            overlap.prefix, reason.vrf, overlap.other_prefix, overlap.other
        );
        let (kind, reason) = ("SourceBasedRouting", "OverlappingPrefixes");
        Some(condition(
            kind,
            ConditionStatus::True,
            reason,
            message,
            meta,
        ))
    }

    fn resolved(&self, subject: &ObjectRef, meta: &Meta) -> Condition {
        let errors: Vec<&Problem> = self
            .compilation
            .problems
            .iter()
            .filter(|problem| problem.subject == *subject && problem.severity() == Severity::Error)
            .collect();
        let Some(first) = errors.first() else {
            return condition(
                "Resolved",
                ConditionStatus::True,
                "Resolved",
                "nothing is wrong with it".to_owned(),
                meta,
            );
        };
        let sentences: Vec<String> = errors
            .iter()
            .map(|problem| match problem.kind.remedy() {
                Some(remedy) => format!("{}: {}; {remedy}", problem.field, problem.kind),
                None => format!("{}: {}", problem.field, problem.kind),
            })
            .collect();
        condition(
            "Resolved",
            ConditionStatus::False,
            first.kind.reason(),
            sentences.join(". "),
            meta,
        )
    }
}

fn condition(
    kind: &str,
    status: ConditionStatus,
    reason: &str,
    message: String,
    meta: &Meta,
) -> Condition {
    Condition {
        kind: kind.to_owned(),
        status,
        observed_generation: meta.generation,
        last_transition_time: None,
        reason: reason.to_owned(),
        message,
    }
}
