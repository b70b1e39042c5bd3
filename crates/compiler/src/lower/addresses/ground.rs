//! What consumers share addresses of, who shares what, and which of them have addresses in common.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use api::value::Prefix;
use ipnet::IpNet;

use super::{
    Consumer, Input, Share,
    claims::{self, Claims},
    memory::Memory,
    nodes::networks,
    overlap::overlapping,
};
use crate::{
    changes::Changes,
    lower::routing::subnets,
    snapshot::{Key, Kind, ObjectRef, Snapshot},
};

/// What consumers share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ground {
    /// A Network.
    Network(Arc<str>),
    /// Networks that people's own segments name.
    Networks(Arc<[Prefix]>),
}

impl Ground {
    /// What an object draws on, if it is there and draws on anything.
    fn of(input: Input<'_>, subject: &ObjectRef) -> Option<Self> {
        let (snapshot, key) = (input.snapshot, &subject.key);
        let network = match subject.kind {
            Kind::Layer2Attachment => &snapshot.layer2_attachments.get(key)?.spec.network_ref,
            Kind::Inbound => &snapshot.inbounds.get(key)?.spec.network_ref,
            Kind::Outbound => &snapshot.outbounds.get(key)?.spec.network_ref,
            Kind::PodNetwork => &snapshot.pod_networks.get(key)?.spec.network_ref,
            _ => {
                let spec = &input.written.get(&key.name)?.spec;
                let gives = spec.node_ips.as_ref().is_some_and(|ips| ips.enabled);
                return gives.then(|| Self::Networks(networks(spec).into()));
            }
        };
        Some(Self::Network(network.as_str().into()))
    }

    pub(super) fn prefixes(&self, snapshot: &Snapshot) -> Vec<Prefix> {
        match self {
            Self::Network(name) => {
                let network = snapshot.networks.get(&Key::named(&**name));
                network.map_or_else(Vec::new, |network| subnets(&network.spec))
            }
            Self::Networks(networks) => networks.to_vec(),
        }
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Network(name) => name,
            Self::Networks(_) => "",
        }
    }
}

/// A ground as it was shared out last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// Who draws on it, sorted.
    pub(super) members: Vec<ObjectRef>,
    /// The networks in which what others have matters to it, and what it has to others.
    footprint: Vec<IpNet>,
    pub(super) asked: Asked,
}

/// What else was asked to share out a ground: when an answer changes, it is shared out anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// Whether it has segments whose nodes get addresses.
    pub(super) nodes: bool,
    /// Whether it was asked what a node was told.
    pub(super) told: bool,
    /// Services whose status says nothing, each with what it announces.
    pub(super) announced: BTreeMap<ObjectRef, Vec<IpAddr>>,
    /// The addresses that are spoken for, where somebody needed a new one.
    pub(super) spoken_for: Option<Vec<IpAddr>>,
    /// Whether it was asked which VRFs reach what.
    pub(super) reached: bool,
}

/// Kinds of objects that draw on a ground.
const CONSUMERS: [Kind; 5] = [
    Kind::Layer2Attachment,
    Kind::Inbound,
    Kind::Outbound,
    Kind::PodNetwork,
    Kind::Layer2NetworkConfiguration,
];

/// All grounds, each with those who draw on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Grounds {
    pub(super) all: BTreeMap<Ground, Standing>,
    /// The footprints of all; the grounds at each are sorted.
    by_net: BTreeMap<IpNet, Vec<Ground>>,
}

/// What was found when objects were put where they belong.
#[derive(Default)]
pub(super) struct Regrouped {
    /// The grounds that objects which changed draw on, or drew on.
    pub(super) grounds: BTreeSet<Ground>,
    /// Objects that draw on nothing any more.
    pub(super) gone: Vec<ObjectRef>,
}

impl Grounds {
    /// Puts the objects that changed where they belong now.
    pub(super) fn regroup(
        &mut self,
        consumers: &mut BTreeMap<ObjectRef, Consumer>,
        input: Input<'_>,
        changes: Changes<'_>,
    ) -> Regrouped {
        let mut found = Regrouped::default();
        for subject in changed(input, changes) {
            let ground = Ground::of(input, &subject);
            self.put(consumers, subject, ground, &mut found);
        }
        let networks = changes.of(Kind::Network);
        let networks = networks.map(|key| Ground::Network(key.name.as_str().into()));
        found.grounds.extend(networks);
        found
    }

    fn put(
        &mut self,
        consumers: &mut BTreeMap<ObjectRef, Consumer>,
        subject: ObjectRef,
        ground: Option<Ground>,
        found: &mut Regrouped,
    ) {
        let known = consumers.get_mut(&subject);
        if let Some(Consumer { ground: before, .. }) = &known {
            found.grounds.insert(before.clone());
            if ground.as_ref() == Some(before) {
                return;
            }
            if let Some(standing) = self.all.get_mut(before) {
                standing.members.retain(|member| *member != subject);
            }
        }
        let Some(ground) = ground else {
            if consumers.remove(&subject).is_some() {
                found.gone.push(subject);
            }
            return;
        };
        found.grounds.insert(ground.clone());
        let standing = self.all.entry(ground.clone()).or_default();
        insert(&mut standing.members, subject.clone());
        if let Some(known) = known {
            known.ground = ground;
        } else {
            let share = Share::default();
            consumers.insert(subject, Consumer { ground, share });
        }
    }

    /// These grounds, and all that have addresses in common with one of them, now or when they were shared out last, with the claims on
    /// them. Nothing that others have matters to them.
    pub(super) fn islands<'a>(
        &'a self,
        input: Input<'a>,
        memory: &Memory<'_>,
        grounds: &BTreeSet<Ground>,
    ) -> BTreeMap<&'a Ground, Claims<'a>> {
        let mut islands = BTreeMap::new();
        let grounds = grounds.iter();
        let known = grounds.filter_map(|one| self.all.get_key_value(one));
        let mut next: BTreeMap<&Ground, &Standing> = known.collect();
        while !next.is_empty() {
            let claims = claims::on(input, memory, &next);
            let is_all = islands.len() + claims.len() == self.all.len();
            let before = next.values().flat_map(|standing| &standing.footprint);
            let now = claims.values().flat_map(|claims| &claims.footprint);
            let nets: BTreeSet<IpNet> = before.chain(now).filter(|_| !is_all).copied().collect();
            islands.extend(claims);
            let around = nets.into_iter();
            let around = around.flat_map(|net| overlapping(&self.by_net, net));
            let around = around.flat_map(|(_, grounds)| grounds);
            let new = around.filter(|ground| !islands.contains_key(ground));
            next = new.filter_map(|one| self.all.get_key_value(one)).collect();
        }
        islands
    }

    /// Notes how a ground was shared out; one that nobody draws on any more is forgotten.
    pub(super) fn settle(&mut self, ground: &Ground, footprint: Vec<IpNet>, asked: Asked) {
        let Some(standing) = self.all.get_mut(ground) else {
            return;
        };
        if standing.footprint != footprint {
            for net in &standing.footprint {
                if let Some(grounds) = self.by_net.get_mut(net) {
                    grounds.retain(|one| one != ground);
                    if grounds.is_empty() {
                        self.by_net.remove(net);
                    }
                }
            }
            for net in &footprint {
                insert(self.by_net.entry(*net).or_default(), ground.clone());
            }
            standing.footprint = footprint;
        }
        standing.asked = asked;
        if standing.members.is_empty() {
            self.all.remove(ground);
        }
    }
}

/// Puts something in its place among what is sorted.
fn insert<T: Ord>(sorted: &mut Vec<T>, one: T) {
    if let Err(place) = sorted.binary_search(&one) {
        sorted.insert(place, one);
    }
}

/// The objects that changed and may want addresses.
fn changed(input: Input<'_>, changes: Changes<'_>) -> Vec<ObjectRef> {
    let of = |kind, key: &Key| ObjectRef {
        kind,
        key: key.clone(),
    };
    if !changes.is_all() {
        let kinds = CONSUMERS.into_iter();
        return kinds
            .flat_map(|kind| changes.of(kind).map(move |key| of(kind, key)))
            .collect();
    }
    let snapshot = input.snapshot;
    let attachments = snapshot.layer2_attachments.keys();
    let inbounds = snapshot.inbounds.keys();
    let outbounds = snapshot.outbounds.keys();
    let pod_networks = snapshot.pod_networks.keys();
    attachments
        .map(|key| of(Kind::Layer2Attachment, key))
        .chain(inbounds.map(|key| of(Kind::Inbound, key)))
        .chain(outbounds.map(|key| of(Kind::Outbound, key)))
        .chain(pod_networks.map(|key| of(Kind::PodNetwork, key)))
        .chain(input.written.values().map(|one| one.source.clone()))
        .collect()
}
