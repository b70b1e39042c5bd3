//! A `PodNetwork` becomes routing in each VRF that its pods reach, and a pool from which pods get addresses.

use api::{
    tcaas::{PodNetworkSpec, PodNetworkStatus, PrefixItem},
    value::Prefix,
};

use super::{
    Lowered, Made,
    addresses::Addresses,
    routing::{permit, subnets},
    service::{Service, Wish, is_sound},
};
use crate::{
    names,
    problem::Problem,
    snapshot::{Object, ObjectRef, Snapshot},
};

/// What the PodNetwork becomes; `None` when something is wrong, with the reason in `problems`.
pub(super) fn lower(
    snapshot: &Snapshot,
    lowered: &Lowered,
    addresses: &Addresses,
    (subject, object): (&ObjectRef, &Object<PodNetworkSpec, PodNetworkStatus>),
    problems: &mut Vec<Problem>,
) -> Option<Made> {
    let spec = &object.spec;
    let mut wrong = addresses.of(subject).problems;
    let wish = Wish {
        subject,
        network_ref: &spec.network_ref,
        destinations: spec.destinations.as_ref(),
        node_selector: spec.node_selector.as_ref(),
        communities: &spec.communities,
    };
    let resolved = wish.resolve(snapshot, lowered, &mut wrong);
    let is_sound = is_sound(&wrong);
    problems.append(&mut wrong);
    let resolved = resolved.filter(|_| is_sound)?;
    let subnets = subnets(resolved.network);
    let extra = spec.routes.iter().flat_map(|route| &route.prefixes);
    let extra: Vec<Prefix> = extra.copied().collect();
    let mut items: Vec<PrefixItem> = permit(&subnets).into_iter().map(with_parts).collect();
    items.extend(permit(&extra));
    let mut reached = resolved.reached();
    if spec.destinations.is_some() {
        reached.extend(&extra);
    }
    let pools = subnets.iter();
    let pools = pools.map(|subnet| names::pod_pool(&subject.key.name, subnet.is_ipv4()));
    Some(Made {
        vrf: wish.routing(&resolved.reach, &extra, &items, &[]),
        service: Service {
            is_sound: true,
            pools: pools.collect(),
            reached,
            matched: resolved.reach.matched,
            reserved: addresses.taken(&spec.network_ref).collect(),
            subnets,
            ..Service::default()
        },
        ..Made::default()
    })
}

/// Pods' routes come from the CNI in parts of the network, down to single addresses: they are what is announced.
fn with_parts(mut item: PrefixItem) -> PrefixItem {
    let net = item.cidr.net();
    let longest = net.max_prefix_len();
    item.le = (net.prefix_len() < longest).then_some(longest);
    item
}
