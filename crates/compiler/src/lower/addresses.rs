//! Who has which address: the claims of everybody on a `Network`, and what comes of them.
//!
//! Gateways of attachments, addresses of nodes, `Inbound`s, `Outbound`s and `PodNetwork`s draw on one ground together, so they are
//! served together. Grounds that have no addresses in common know nothing of each other: after a change only those are shared out anew
//! which it touches, and those with which these have addresses in common.

mod claims;
mod gateway;
mod ground;
mod memory;
mod nodes;
mod overlap;
mod sharing;
mod told;
mod wake;

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    net::IpAddr,
    sync::Arc,
};

use api::tcaas::{AddressLists, Layer2NetworkConfigurationSpec};

pub(crate) use self::nodes::networks;
use self::{
    ground::{Ground, Grounds},
    memory::Memory,
    sharing::{HandedOut, share_out},
    told::Kept,
};
use super::{LowLevelObjects, reach::Destinations, vrf::ResolvedVrf};
use crate::{
    changes::Changes,
    problem::Problem,
    snapshot::{Key, Kind, ObjectRef, Snapshot},
};

/// What everybody who wants addresses has, and how that came about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Addresses {
    given: Given,
    grounds: Grounds,
    told: Kept,
}

/// What everybody who wants addresses has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Given {
    consumers: BTreeMap<ObjectRef, Consumer>,
    /// What nodes have.
    nodes: NodeAddresses,
    /// Why nodes have not what they want, by segment.
    node_problems: BTreeMap<ObjectRef, Vec<Problem>>,
    /// The addresses of each Network that somebody has for itself.
    taken: BTreeMap<Arc<str>, BTreeSet<IpAddr>>,
    /// Networks that attachments have on nodes over the fabric.
    attached: BTreeSet<Arc<str>>,
}

/// The addresses that nodes have on a segment, by the object that the segment comes from and by node.
pub type NodeAddresses = BTreeMap<ObjectRef, BTreeMap<String, Vec<IpAddr>>>;

/// Somebody who draws on a ground.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Consumer {
    ground: Ground,
    /// What it has of it.
    share: Share,
}

/// What one consumer has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    /// Its addresses; also those that it keeps while something is wrong with it.
    pub(super) addresses: AddressLists,
    /// Why it does not have all that it wants.
    pub(super) problems: Vec<Problem>,
}

/// What addresses are shared out from.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) destinations: &'a Destinations,
    pub(super) vrfs: &'a BTreeMap<Key, ResolvedVrf>,
    /// People's own segments.
    pub(super) written: &'a LowLevelObjects<Layer2NetworkConfigurationSpec>,
}

/// What is different after an update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Differing {
    /// Networks of which others have what they have, or which are attached where they were not.
    pub(super) networks: BTreeSet<String>,
    /// Consumers who have something else.
    pub(super) consumers: BTreeSet<ObjectRef>,
    /// How many grounds were shared out anew.
    #[cfg(test)]
    grounds: usize,
}

impl Addresses {
    /// Shares out anew what changes touch; says what is different now.
    pub(super) fn update(&mut self, input: Input<'_>, changes: Changes<'_>) -> Differing {
        let memory = Memory::new(input.snapshot, mem::take(&mut self.told), changes);
        let mut touched = self.woken(input, &memory, changes);
        let Self { given, grounds, .. } = self;
        let mut regrouped = grounds.regroup(&mut given.consumers, input, changes);
        touched.append(&mut regrouped.grounds);
        let mut islands = grounds.islands(input, &memory, &touched);
        let mut new = share_out(input, &memory, &mut islands);
        let mut differing = Differing::default();
        let mut settled = Vec::new();
        for (ground, claims) in islands {
            given.take_in_network(input, (ground, claims.members), &mut new, &mut differing);
            for subject in claims.members {
                given.take_in(subject, &mut new, &mut differing);
            }
            settled.push((ground.clone(), claims.footprint, claims.asked));
        }
        for subject in regrouped.gone {
            given.take_in(&subject, &mut new, &mut differing);
            differing.consumers.insert(subject);
        }
        #[cfg(test)]
        {
            differing.grounds = settled.len();
        }
        for (ground, footprint, asked) in settled {
            grounds.settle(&ground, footprint, asked);
        }
        self.told = memory.keep();
        differing
    }

    /// What an object has.
    pub(super) fn of(&self, subject: &ObjectRef) -> Share {
        let consumer = self.given.consumers.get(subject);
        consumer.map_or_else(Share::default, |one| one.share.clone())
    }

    /// What nodes have.
    pub(super) fn nodes(&self) -> &NodeAddresses {
        &self.given.nodes
    }

    /// Why nodes have not what they want.
    pub(super) fn node_problems(&self) -> impl Iterator<Item = &Problem> {
        self.given.node_problems.values().flatten()
    }

    /// Whether an attachment has the Network on nodes over the fabric.
    pub(super) fn is_attached(&self, network: &str) -> bool {
        self.given.attached.contains(network)
    }

    /// The addresses of a Network that somebody has for itself.
    pub(super) fn taken(&self, network: &str) -> impl Iterator<Item = IpAddr> {
        self.given.taken.get(network).into_iter().flatten().copied()
    }
}

impl Given {
    /// Puts what an object has now in the place of what it had.
    fn take_in(&mut self, subject: &ObjectRef, new: &mut HandedOut<'_>, differing: &mut Differing) {
        let share = new.shares.remove(subject).unwrap_or_default();
        let consumer = self.consumers.get_mut(subject);
        if let Some(consumer) = consumer.filter(|one| one.share != share) {
            consumer.share = share;
            differing.consumers.insert(subject.clone());
        }
        replace(&mut self.nodes, subject, new.nodes.remove(subject));
        let problems = new.node_problems.remove(subject);
        replace(&mut self.node_problems, subject, problems);
    }

    /// Puts what is known now of a Network in the place of what was.
    fn take_in_network(
        &mut self,
        input: Input<'_>,
        (ground, members): (&Ground, &[ObjectRef]),
        new: &mut HandedOut<'_>,
        differing: &mut Differing,
    ) {
        let Ground::Network(network) = ground else {
            return;
        };
        let taken = new.taken.remove(&**network);
        let taken = taken.filter(|_| !members.is_empty());
        let is_taken_by_others = replace(&mut self.taken, network, taken);
        let is_attached_anew = if members.iter().any(|one| is_over_fabric(input, one)) {
            self.attached.insert(Arc::clone(network))
        } else {
            self.attached.remove(network)
        };
        if is_taken_by_others || is_attached_anew {
            differing.networks.insert(network.to_string());
        }
    }
}

/// Whether this is an attachment over the fabric.
fn is_over_fabric(input: Input<'_>, subject: &ObjectRef) -> bool {
    let attachments = &input.snapshot.layer2_attachments;
    let attachment = attachments.get(&subject.key);
    let attachment = attachment.filter(|_| subject.kind == Kind::Layer2Attachment);
    attachment.is_some_and(|one| one.spec.interface_ref.is_none())
}

/// Puts what is there now in the place of what was; says whether that is something else.
fn replace<K: Ord + Clone, V: PartialEq>(
    all: &mut BTreeMap<K, V>,
    key: &K,
    new: Option<V>,
) -> bool {
    match (all.get_mut(key), new) {
        (Some(old), Some(new)) => {
            let differs = *old != new;
            *old = new;
            differs
        }
        (None, Some(new)) => {
            all.insert(key.clone(), new);
            true
        }
        (Some(_), None) => all.remove(key).is_some(),
        (None, None) => false,
    }
}

/// The addresses of both families, IPv4 first.
pub(crate) fn plain(lists: &AddressLists) -> impl Iterator<Item = IpAddr> {
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
