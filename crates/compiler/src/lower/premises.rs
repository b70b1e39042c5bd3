//! What each intent was lowered from, so that only those are lowered again for which something changed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{meta::LabelSelector, tcaas::InboundSpec};

use super::{Contribution, Lowered, addresses::Addresses, inbound};
use crate::{
    problem::Problem,
    snapshot::{Key, Kind, ObjectRef, Snapshot},
};

/// What lowering an intent gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) made: Option<Arc<Contribution>>,
    pub(super) problems: Vec<Problem>,
}

/// An earlier lowering, and the objects that are new, changed or gone since then. Settings, and what cannot be read, are the same.
#[derive(Clone, Copy, Debug)]
pub struct Before<'a> {
    /// What intents became then.
    pub lowered: &'a Lowered,
    /// What changed since.
    pub changed: &'a BTreeSet<ObjectRef>,
}

/// What changed of all that intents are lowered from.
pub(super) struct Premises<'a> {
    snapshot: &'a Snapshot,
    before: Option<Before<'a>>,
    /// Networks, with what is given of them to whom.
    networks: BTreeSet<String>,
    consumers: BTreeSet<ObjectRef>,
    destinations: BTreeSet<&'a str>,
    vrfs: BTreeSet<Key>,
    /// Pools that somebody else has now.
    pools: BTreeSet<String>,
}

impl<'a> Premises<'a> {
    pub(super) fn new(
        snapshot: &'a Snapshot,
        lowered: &Lowered,
        addresses: &Addresses,
        before: Option<Before<'a>>,
    ) -> Self {
        let mut premises = Self {
            snapshot,
            before,
            networks: BTreeSet::new(),
            consumers: BTreeSet::new(),
            destinations: BTreeSet::new(),
            vrfs: BTreeSet::new(),
            pools: BTreeSet::new(),
        };
        let Some(Before {
            lowered: then,
            changed,
        }) = before
        else {
            return premises;
        };
        for ObjectRef { kind, key } in changed {
            match kind {
                Kind::Network => drop(premises.networks.insert(key.name.clone())),
                Kind::Destination => drop(premises.destinations.insert(&key.name)),
                Kind::Vrf => drop(premises.vrfs.insert(key.clone())),
                _ => {}
            }
        }
        let vnis = differing(&then.network_vnis, &lowered.network_vnis);
        let (networks, consumers) = addresses.differing(&then.addresses);
        premises.networks.extend(vnis.into_iter().chain(networks));
        premises.consumers = consumers;
        premises.vrfs.extend(differing(&then.vrfs, &lowered.vrfs));
        premises.pools = differing(&then.pools, &lowered.pools);
        premises
    }

    /// What an intent became, if it would become the same again.
    pub(super) fn known(
        &self,
        subject: &ObjectRef,
        network: &str,
        destinations: Option<&LabelSelector>,
    ) -> Option<&'a Outcome> {
        let before = self.before?;
        let outcome = before.lowered.outcomes.get(subject)?;
        // One that something is wrong with may depend on what is not there.
        let made = outcome.made.as_ref()?;
        let is_touched = before.changed.contains(subject)
            || self.networks.contains(network)
            || self.consumers.contains(subject)
            || destinations.is_some_and(|selector| self.reaches_another(selector, made));
        (!is_touched).then_some(outcome)
    }

    /// Whether a pool of the load balancer has the owner that it had.
    pub(super) fn has_pool_as_before(&self, spec: &InboundSpec, name: &str) -> bool {
        inbound::pool(spec, name).is_none_or(|pool| !self.pools.contains(pool))
    }

    /// Whether what a selector reaches changed.
    fn reaches_another(&self, selector: &LabelSelector, made: &Contribution) -> bool {
        let chosen_now = |name: &&str| {
            let destination = self.snapshot.destinations.get(&Key::named(*name));
            destination.is_some_and(|one| selector.matches(&one.meta.labels))
        };
        let mut matched = made.attachment.matched.iter().chain(&made.service.matched);
        let is_touched = |name: &str| {
            let destination = self.snapshot.destinations.get(&Key::named(name));
            let vrf = destination.and_then(|one| one.spec.vrf_ref.as_ref());
            let leads_elsewhere = || vrf.is_some_and(|vrf| self.vrfs.contains(&Key::named(vrf)));
            self.destinations.contains(name) || (!self.vrfs.is_empty() && leads_elsewhere())
        };
        self.destinations.iter().any(chosen_now) || matched.any(|one| is_touched(&one.name))
    }
}

/// The keys whose values are not the same in both.
pub(super) fn differing<K: Ord + Clone, V: PartialEq>(
    one: &BTreeMap<K, V>,
    other: &BTreeMap<K, V>,
) -> BTreeSet<K> {
    if one == other {
        return BTreeSet::new();
    }
    let keys = one.keys().chain(other.keys());
    keys.filter(|key| one.get(key) != other.get(key))
        .cloned()
        .collect()
}
