//! Statuses of attachments, services and neighbors.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use api::{
    meta::{ConditionStatus, Conditions},
    tcaas::{
        AddressLists, AttachmentBgpStatus, BgpNeighborStatus, BgpPeeringSpec, InboundStatus,
        Layer2AttachmentStatus, MatchedDestination, OutboundStatus, PodNetworkStatus,
    },
    value::{Asn, HostCidr},
};

use super::{
    Subject,
    conditions::{self, condition},
    groups::{self, GroupsByObject},
    in_effect,
};
use crate::{
    lower::{
        LowLevel, LowLevelObject, LowLevelSpec, MergedIntent, Service, addresses::node_share,
        bgp_neighbor::WorkloadIps, intent, merge::Merged, networks,
    },
    node::{Shared, maximum_prefixes, plans_of_nodes, router_addresses},
    snapshot::{Kind, ObjectRef, kinds},
    view::View,
};

pub(super) fn layer2_attachment(view: &View<'_>, subject: &Subject<'_>) -> Layer2AttachmentStatus {
    let merged = view.get::<Merged>(subject.object);
    let attachment = merged.attachment.clone().unwrap_or_default();
    Layer2AttachmentStatus {
        observed_generation: subject.meta.generation,
        interface_name: attachment.interface,
        sriov_vlan_id: attachment.sriov.map(|devices| devices.vlan),
        anycast: attachment.anycast,
        node_addresses: node_addresses(view, subject.object, &merged.objects),
        bgp: attachment_bgp(view, &merged),
        matched_destinations: matched(view, subject, &merged, &attachment.matched),
        in_effect: in_effect::<kinds::Layer2Attachment>(view, subject),
        conditions: applied(view, subject, &merged),
    }
}

pub(super) fn inbound(view: &View<'_>, subject: &Subject<'_>) -> InboundStatus {
    let merged = view.get::<Merged>(subject.object);
    let service = merged.service.clone().unwrap_or_default();
    InboundStatus {
        observed_generation: subject.meta.generation,
        addresses: service.addresses,
        pool_name: service.pools.into_iter().next(),
        matched_destinations: matched(view, subject, &merged, &service.matched),
        in_effect: in_effect::<kinds::Inbound>(view, subject),
        conditions: service_conditions(view, subject, &merged),
    }
}

pub(super) fn outbound(view: &View<'_>, subject: &Subject<'_>) -> OutboundStatus {
    let merged = view.get::<Merged>(subject.object);
    let service: Service = merged.service.clone().unwrap_or_default();
    OutboundStatus {
        observed_generation: subject.meta.generation,
        addresses: service.addresses,
        matched_destinations: matched(view, subject, &merged, &service.matched),
        in_effect: in_effect::<kinds::Outbound>(view, subject),
        conditions: service_conditions(view, subject, &merged),
    }
}

pub(super) fn pod_network(view: &View<'_>, subject: &Subject<'_>) -> PodNetworkStatus {
    let merged = view.get::<Merged>(subject.object);
    let service = merged.service.clone().unwrap_or_default();
    PodNetworkStatus {
        observed_generation: subject.meta.generation,
        matched_destinations: matched(view, subject, &merged, &service.matched),
        ip_pools: service.pools,
        in_effect: in_effect::<kinds::PodNetwork>(view, subject),
        conditions: service_conditions(view, subject, &merged),
    }
}

/// The Destinations that an intent uses. One that keeps what it became last uses those of them that it still selects.
fn matched(
    view: &View<'_>,
    subject: &Subject<'_>,
    merged: &MergedIntent,
    now: &[MatchedDestination],
) -> Vec<MatchedDestination> {
    if merged.is_held_back {
        intent::still_matched(view, subject.object)
    } else {
        now.to_vec()
    }
}

/// A service that no VRF knows needs nothing of the nodes.
fn service_conditions(view: &View<'_>, subject: &Subject<'_>, merged: &MergedIntent) -> Conditions {
    if !needed(subject.object.kind, merged).is_empty() {
        return applied(view, subject, merged);
    }
    let mut conditions = conditions::validity(view, subject);
    conditions.0.extend(conditions::no_vrf(view, subject));
    conditions
}

/// The objects that a node must have before an intent counts as applied there: an attachment's segment, a service's routing, a neighbor's
/// sessions.
fn needed(kind: Kind, merged: &MergedIntent) -> Vec<&LowLevelObject> {
    let objects = merged.objects.iter();
    objects
        .filter(|object| intent::is_needed(kind, object))
        .collect()
}

/// Conditions of an intent that becomes config of nodes: it is ready when every node that must have it does.
fn applied(view: &View<'_>, subject: &Subject<'_>, merged: &MergedIntent) -> Conditions {
    let needed = needed(subject.object.kind, merged);
    let is_on = |shared: &Shared| {
        let has = |object: &&LowLevelObject| match object {
            LowLevelObject::Layer2(object) => shared.segments.contains(&object.name),
            LowLevelObject::Vrf(object) => shared.routing.contains(&object.name),
            LowLevelObject::Bgp(object) => shared.peerings.contains(&object.name),
            LowLevelObject::MirrorTarget(_) | LowLevelObject::MirrorSelector(_) => false,
        };
        needed.iter().any(has)
    };
    let applied = if needed.is_empty() && merged.attachment.is_some() {
        let message = "no configuration on nodes is needed for it".to_owned();
        let (kind, reason) = ("Applied", "NothingToApply");
        condition(kind, ConditionStatus::True, reason, message, subject.meta)
    } else {
        let names = needed.iter().map(|object| object.name());
        conditions::applied(view, names, is_on, subject.meta)
    };
    let mut conditions = conditions::application(view, subject, subject.object, applied);
    conditions.0.extend(conditions::no_vrf(view, subject));
    conditions
}

/// The addresses that are kept for nodes on the segments of an object, whether or not they have it yet. While the segment stays as it was
/// before a problem, those are the addresses of the networks it had.
pub(super) fn node_addresses(
    view: &View<'_>,
    object: &ObjectRef,
    objects: &[LowLevelObject],
) -> BTreeMap<String, AddressLists> {
    let share = node_share(view, object);
    if share.addresses.is_empty() {
        return BTreeMap::new();
    }
    let segments = objects.iter().filter_map(LowLevelObject::layer2);
    let networks: Vec<_> = segments.flat_map(|one| networks(&one.spec)).collect();
    let is_current = |address: &&IpAddr| {
        let mut all = networks.iter();
        networks.is_empty() || all.any(|one| one.net().contains(*address))
    };
    let lists = share.addresses.iter().map(|(node, addresses)| {
        let lists = lists(addresses.iter().filter(is_current).copied());
        (node.clone(), lists)
    });
    lists.filter(|(_, lists)| !lists.is_empty()).collect()
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

pub(super) fn bgp_neighbor(view: &View<'_>, subject: &Subject<'_>) -> BgpNeighborStatus {
    let merged = view.get::<Merged>(subject.object);
    let workload_ips = view.get::<WorkloadIps>(&());
    let workload_ips = workload_ips.get(&*subject.key().name);
    let workload_ips = workload_ips.cloned().unwrap_or_default();
    let has = |end: &HostCidr| workload_ips.iter().any(|ip| ip.is_ipv4() == end.is_ipv4());
    let peering = peering(&merged);
    let asns = peering.map(|peering| router_asns(view, &peering.name));
    let asns = asns.unwrap_or_default();
    let asn = asns.first().copied().filter(|_| asns.len() == 1);
    let trunk = if asns.is_empty() {
        Vec::new()
    } else {
        router_addresses(&view.settings())
    };
    let spec = peering.map(|peering| &peering.spec);
    BgpNeighborStatus {
        observed_generation: subject.meta.generation,
        as_number: asn,
        neighbor_ips: trunk.into_iter().filter(has).collect(),
        workload_ips: workload_ips.clone(),
        neighbor_as_number: asn,
        workload_as_number: spec.map(|spec| spec.remote_asn),
        hold_time: spec.and_then(|spec| spec.hold_time),
        keepalive_time: spec.and_then(|spec| spec.keepalive_time),
        maximum_prefixes: spec.map(maximum_prefixes),
        in_effect: in_effect::<kinds::BgpNeighbor>(view, subject),
        conditions: applied(view, subject, &merged),
    }
}

/// Workloads of a segment dial its gateway.
fn attachment_bgp(view: &View<'_>, merged: &MergedIntent) -> Option<AttachmentBgpStatus> {
    let peering = peering(merged)?;
    let spec = &peering.spec;
    let asns = router_asns(view, &peering.name);
    let asn = asns.first().copied().filter(|_| asns.len() == 1);
    let attachment = merged.attachment.as_ref();
    let anycast = attachment.and_then(|attachment| attachment.anycast.as_ref());
    let gateways = anycast.map(|anycast| [anycast.gatewayv4, anycast.gateway]);
    Some(AttachmentBgpStatus {
        as_number: asn,
        neighbor_ips: gateways.into_iter().flatten().flatten().collect(),
        neighbor_as_number: asn,
        workload_as_number: Some(spec.remote_asn),
        hold_time: spec.hold_time,
        keepalive_time: spec.keepalive_time,
        maximum_prefixes: Some(maximum_prefixes(spec)),
    })
}

/// The sessions that an intent has made.
fn peering(merged: &MergedIntent) -> Option<&Arc<LowLevel<BgpPeeringSpec>>> {
    let peerings = merged.objects.iter().filter_map(BgpPeeringSpec::of);
    peerings.min_by_key(|peering| &peering.name)
}

/// The ASes of the routers that have sessions.
fn router_asns(view: &View<'_>, peering: &str) -> std::collections::BTreeSet<Asn> {
    let holders = view.who::<GroupsByObject>(&peering.to_owned());
    let holders = holders
        .iter()
        .filter(|group| groups::shared(view, group).peerings.contains(peering));
    let holders = holders.filter(|group| groups::has_nodes(view, group));
    let plans = holders.flat_map(|(signature, _)| plans_of_nodes(view, signature));
    plans.map(|(plan, _)| plan.fabric.asn).collect()
}
