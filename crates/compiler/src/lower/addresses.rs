//! Who has which address: the claims of all consumers on a `Network`, and what comes of them.
//!
//! Gateways of attachments, addresses of nodes, `Inbound`s, `Outbound`s and `PodNetwork`s draw on one address pool together, so they
//! are served together. Pools that have no addresses in common know nothing of each other: those that have are an island, and an
//! island is shared out as a whole.

mod claims;
mod gateway;
mod nodes;
mod overlap;
mod pool;
mod sharing;
mod withheld;

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use api::tcaas::AddressLists;

pub(super) use self::claims::{of_attachment, of_pods, of_service};
pub(crate) use self::{
    claims::ClaimsOn,
    nodes::{NodesByLabel, networks},
    pool::{AddressPool, ConsumersByPool, Islands},
    sharing::SharedOut,
    withheld::Withheld,
};
use super::low_level;
use crate::{
    memo::Query,
    problem::Problem,
    snapshot::{ObjectRef, kinds},
    view::View,
};

/// The addresses that nodes have on a segment, by the object that the segment comes from and by node.
pub type NodeAddresses = BTreeMap<ObjectRef, Arc<BTreeMap<String, Vec<IpAddr>>>>;

/// What one consumer has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// Its addresses; also those that it keeps while something is wrong with it.
    pub(crate) addresses: AddressLists,
    /// Why it does not have all that it wants.
    pub(crate) problems: Vec<Problem>,
}

/// What the nodes of a segment have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeShare {
    /// Their addresses.
    pub(crate) addresses: Arc<BTreeMap<String, Vec<IpAddr>>>,
    /// Why some do not have what they want.
    pub(crate) problems: Vec<Problem>,
}

/// What the nodes of an object's segment have.
pub(crate) struct NodeShareOf;
impl Query for NodeShareOf {
    type Key = ObjectRef;
    type Value = Arc<NodeShare>;
    fn compute(view: &View<'_>, subject: &ObjectRef) -> Arc<NodeShare> {
        let segment = nodes::segment(view, subject);
        let pool = pool::of(view, subject).filter(|_| segment.is_some());
        let island = pool.map(|pool| pool::island(view, &pool));
        let shared = island.map(|island| view.get::<SharedOut>(&island));
        let share = shared.and_then(|shared| shared.nodes.get(subject).cloned());
        let mut share = share.unwrap_or_default();
        let note = segment.and_then(|segment| segment.keeps_reserved(&share.addresses));
        if let Some(note) = note {
            Arc::make_mut(&mut share).problems.push(note);
        }
        share
    }
}

/// The addresses of a Network that an object uses exclusively.
pub(crate) struct TakenOf;
impl Query for TakenOf {
    type Key = String;
    type Value = Arc<BTreeSet<IpAddr>>;
    fn compute(view: &View<'_>, network: &String) -> Arc<BTreeSet<IpAddr>> {
        let pool = AddressPool::Network(network.as_str().into());
        let shared = view.get::<SharedOut>(&pool::island(view, &pool));
        shared.taken.get(network).cloned().unwrap_or_default()
    }
}

/// What a consumer has.
pub(super) fn share(view: &View<'_>, subject: &ObjectRef) -> Arc<Share> {
    let island = pool::of(view, subject).map(|pool| pool::island(view, &pool));
    let shared = island.map(|island| view.get::<SharedOut>(&island));
    let share = shared.and_then(|shared| shared.consumers.get(subject).cloned());
    share.unwrap_or_default()
}

/// The objects whose segments give nodes addresses.
pub(crate) struct AddressedSegments;
impl Query for AddressedSegments {
    type Key = ();
    type Value = Arc<Vec<ObjectRef>>;
    fn compute(view: &View<'_>, (): &()) -> Arc<Vec<ObjectRef>> {
        let mut segments = view.all::<kinds::Layer2Attachment>();
        segments.extend(low_level::hand_written(view).iter().cloned());
        segments.retain(|subject| nodes::gives_addresses(view, subject));
        Arc::new(segments)
    }
}

/// What the nodes of an object's segment have. Most objects give nodes no addresses, and need no answer of their own.
pub(crate) fn node_share(view: &View<'_>, subject: &ObjectRef) -> Arc<NodeShare> {
    if nodes::gives_addresses(view, subject) {
        view.get::<NodeShareOf>(subject)
    } else {
        Arc::default()
    }
}

/// The addresses of a Network that an object uses exclusively.
pub(super) fn taken(view: &View<'_>, network: &str) -> Arc<BTreeSet<IpAddr>> {
    view.get::<TakenOf>(&network.to_owned())
}

/// The addresses of both families, IPv4 first.
pub fn plain(lists: &AddressLists) -> impl Iterator<Item = IpAddr> {
    let ipv4 = lists.ipv4.iter().copied().map(IpAddr::V4);
    ipv4.chain(lists.ipv6.iter().copied().map(IpAddr::V6))
}

/// Addresses by family.
fn lists(addresses: &[IpAddr]) -> AddressLists {
    let mut lists = AddressLists::default();
    for address in addresses {
        match address {
            IpAddr::V4(address) => lists.ipv4.push(*address),
            IpAddr::V6(address) => lists.ipv6.push(*address),
        }
    }
    lists
}
