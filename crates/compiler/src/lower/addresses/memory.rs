//! What is left to know of addresses that were given before. It is read only where somebody asks.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use api::value::Prefix;

use super::told::{Kept, Told};
use crate::{
    changes::Changes,
    snapshot::{Kind, ObjectRef, Objects, Snapshot},
};

/// The memory of one share-out.
pub(super) struct Memory<'a> {
    snapshot: &'a Snapshot,
    announced: OnceCell<BTreeMap<&'a ObjectRef, Vec<IpAddr>>>,
    /// What is spoken for, beside what nodes were told.
    spoken_for: OnceCell<BTreeSet<IpAddr>>,
    told: OnceCell<Told>,
}

impl<'a> Memory<'a> {
    /// The memory, with what was kept of what nodes were told.
    pub(super) fn new(snapshot: &'a Snapshot, kept: Kept, changes: Changes<'_>) -> Self {
        let told = kept.0.filter(|_| !changes.is_all());
        let told = told.map(|mut told| {
            told.update(snapshot, changes);
            told
        });
        Self {
            snapshot,
            announced: OnceCell::new(),
            spoken_for: OnceCell::new(),
            told: told.map_or_else(OnceCell::new, OnceCell::from),
        }
    }

    /// What is kept for the next time.
    pub(super) fn keep(self) -> Kept {
        Kept(self.told.into_inner())
    }

    /// The host routes that an intent's generated objects announce.
    pub(super) fn announced(&self, subject: &ObjectRef) -> &[IpAddr] {
        let announced = self.all_announced().get(subject);
        announced.map_or(&[], Vec::as_slice)
    }

    fn all_announced(&self) -> &BTreeMap<&'a ObjectRef, Vec<IpAddr>> {
        self.announced.get_or_init(|| announced(self.snapshot))
    }

    /// The addresses in some prefixes that nobody new is given: those that nodes were told to have or to announce, or that objects
    /// announce whose owner cannot be read or is going, are not given to the next before they are gone. Nor are next hops, which routers
    /// have that nobody declared.
    pub(super) fn spoken_for(&self, prefixes: &[Prefix]) -> Vec<IpAddr> {
        let told = self.told.get_or_init(|| Told::new(self.snapshot));
        let init = || spoken_for(self.snapshot, self.all_announced());
        let others = within(prefixes, self.spoken_for.get_or_init(init));
        let all: BTreeSet<IpAddr> = told.within(prefixes).chain(others).collect();
        all.into_iter().collect()
    }
}

/// The addresses that lie in one of the prefixes.
pub(super) fn within<'a>(
    prefixes: &'a [Prefix],
    addresses: &'a BTreeSet<IpAddr>,
) -> impl Iterator<Item = IpAddr> {
    let range = |prefix: &Prefix| {
        let net = prefix.net();
        addresses.range(net.network()..=net.broadcast()).copied()
    };
    prefixes.iter().flat_map(range)
}

fn announced(snapshot: &Snapshot) -> BTreeMap<&ObjectRef, Vec<IpAddr>> {
    let mut announced: BTreeMap<&ObjectRef, Vec<IpAddr>> = BTreeMap::new();
    for object in snapshot.vrf_route_configurations.values() {
        let Some(owner) = &object.meta.owner else {
            continue;
        };
        let hosts = object.spec.export.iter().filter_map(|item| host(item.cidr));
        announced.entry(owner).or_default().extend(hosts);
    }
    announced
}

/// What objects announce whose owner is not there, and next hops.
fn spoken_for(
    snapshot: &Snapshot,
    announced: &BTreeMap<&ObjectRef, Vec<IpAddr>>,
) -> BTreeSet<IpAddr> {
    let mut hosts = BTreeSet::new();
    for (owner, announced) in announced {
        if !is_present(snapshot, owner) {
            hosts.extend(announced);
        }
    }
    for destination in snapshot.destinations.values() {
        if let Some(next_hop) = &destination.spec.next_hop {
            hosts.extend(next_hop.ipv4.map(IpAddr::V4));
            hosts.extend(next_hop.ipv6.map(IpAddr::V6));
        }
    }
    hosts
}

fn is_present(snapshot: &Snapshot, subject: &ObjectRef) -> bool {
    fn has<S, T>(objects: &Objects<S, T>, subject: &ObjectRef) -> bool {
        objects.contains_key(&subject.key)
    }
    match subject.kind {
        Kind::Inbound => has(&snapshot.inbounds, subject),
        Kind::Outbound => has(&snapshot.outbounds, subject),
        _ => true,
    }
}

/// The one address of a host route.
pub(super) fn host(prefix: Prefix) -> Option<IpAddr> {
    let net = prefix.net();
    (net.prefix_len() == net.max_prefix_len()).then(|| net.addr())
}
