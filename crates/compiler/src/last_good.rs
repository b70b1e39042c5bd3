//! What people's own low-level objects last contributed: an object that something is wrong with stays as the last revision has it.
//!
//! Intents have theirs in the objects that were generated from them.

use std::collections::{BTreeMap, BTreeSet};

use api::tcaas::{
    BgpPeeringSpec, Layer2NetworkConfigurationSpec, NetworkConfigRevisionSpec,
    VrfRouteConfigurationSpec,
};

use crate::{
    Compilation, as_it_is,
    problem::{self, Problem},
    snapshot::{Key, Kind, Meta, Object, ObjectRef, Objects, Snapshot, age},
};

/// The last revision that no node refused.
pub(crate) struct Last<'a>(&'a NetworkConfigRevisionSpec);

impl<'a> Last<'a> {
    /// Its segments, by name.
    pub(crate) fn layer2(&self) -> BTreeMap<&'a str, &'a Layer2NetworkConfigurationSpec> {
        let entries = self.0.layer2.iter();
        entries.map(|one| (one.name.as_str(), &one.spec)).collect()
    }

    /// Its routing, by name.
    pub(crate) fn vrf(&self) -> BTreeMap<&'a str, &'a VrfRouteConfigurationSpec> {
        let entries = self.0.vrf.iter();
        entries.map(|one| (one.name.as_str(), &one.spec)).collect()
    }

    /// Its sessions, by name.
    pub(crate) fn bgp(&self) -> BTreeMap<&'a str, &'a BgpPeeringSpec> {
        let entries = self.0.bgp.iter();
        entries.map(|one| (one.name.as_str(), &one.spec)).collect()
    }
}

/// The youngest revision that no node refused.
pub(crate) fn last(snapshot: &Snapshot) -> Option<Last<'_>> {
    let revisions = snapshot.network_config_revisions.iter();
    let valid = revisions.filter(|(_, one)| {
        let status = one.status.as_ref();
        !status.is_some_and(|status| status.is_invalid)
    });
    let (_, youngest) = valid.max_by_key(|(key, one)| (age(&one.meta), *key))?;
    Some(Last(&youngest.spec))
}

/// Compiles again with objects that something is wrong with as they last were, where there are any that were well then.
pub(crate) fn restore(snapshot: &Snapshot, now: &Compilation) -> Option<Compilation> {
    let last = last(snapshot)?;
    let mut broken = out_of_effect(&now.problems);
    broken.retain(|subject| !is_made_by_an_intent(now, subject));
    // What was not well either, or has not changed, stays as its author wants it.
    while !broken.is_empty() {
        let mut before = snapshot.clone();
        let restored = put_back(&mut before, &last, &broken);
        if restored.is_empty() {
            break;
        }
        let mut then = as_it_is(&before);
        let still = out_of_effect(&then.problems);
        let unreadable: BTreeSet<_> = subjects(&snapshot.unreadable).collect();
        let still: BTreeSet<_> = still.difference(&unreadable).cloned().collect();
        if restored.is_disjoint(&still) {
            let of_restored = |problem: &Problem| restored.contains(&problem.subject);
            then.problems.retain(|problem| !of_restored(problem));
            let now = now.problems.iter().filter(|problem| of_restored(problem));
            then.problems.extend(now.cloned());
            then.problems.sort();
            return Some(then);
        }
        broken = restored.difference(&still).cloned().collect();
    }
    None
}

fn subjects(problems: &[Problem]) -> impl Iterator<Item = ObjectRef> {
    problems.iter().map(|problem| problem.subject.clone())
}

/// People's own objects that are not in effect at all, or not on some nodes, by a mistake of theirs.
fn out_of_effect(problems: &[Problem]) -> BTreeSet<ObjectRef> {
    let mistakes = problems.iter().filter(|problem| {
        let is_in_revisions = matches!(
            problem.subject.kind,
            Kind::Layer2NetworkConfiguration | Kind::VrfRouteConfiguration | Kind::BgpPeering
        );
        is_in_revisions
            && matches!(
                problem.kind,
                problem::Kind::Unreadable { .. }
                    | problem::Kind::RuleBroken { .. }
                    | problem::Kind::InvalidSelector(_)
                    | problem::Kind::MissingReference { .. }
                    | problem::Kind::TimersDoNotFit
                    | problem::Kind::LowLevelConflict { .. }
                    | problem::Kind::VlanTaken { .. }
                    | problem::Kind::VniTaken { .. }
                    | problem::Kind::DeviceNameTaken { .. }
                    | problem::Kind::NetworksOverlap { .. }
                    | problem::Kind::NameTooLong { .. }
                    | problem::Kind::MtuTooSmall { .. }
                    | problem::Kind::VrfNameTaken { .. }
                    | problem::Kind::VrfIncomplete { .. }
                    | problem::Kind::VrfDisagrees { .. }
                    | problem::Kind::PeerTaken { .. }
            )
    });
    mistakes.map(|problem| problem.subject.clone()).collect()
}

fn is_made_by_an_intent(now: &Compilation, subject: &ObjectRef) -> bool {
    let name = &subject.key.name;
    let lowered = &now.lowered;
    match subject.kind {
        Kind::Layer2NetworkConfiguration => {
            let object = lowered.layer2.get(name);
            object.is_some_and(|object| object.is_generated())
        }
        Kind::VrfRouteConfiguration => {
            let object = lowered.vrf.get(name);
            object.is_some_and(|object| object.is_generated())
        }
        _ => {
            let object = lowered.bgp.get(name);
            object.is_some_and(|object| object.is_generated())
        }
    }
}

/// Puts objects back as the last revision has them; says which those are.
fn put_back(
    snapshot: &mut Snapshot,
    last: &Last<'_>,
    broken: &BTreeSet<ObjectRef>,
) -> BTreeSet<ObjectRef> {
    let mut restored = BTreeSet::new();
    for subject in broken {
        let changed = match subject.kind {
            Kind::Layer2NetworkConfiguration => put(
                &mut snapshot.layer2_network_configurations,
                &last.layer2(),
                &subject.key,
            ),
            Kind::VrfRouteConfiguration => put(
                &mut snapshot.vrf_route_configurations,
                &last.vrf(),
                &subject.key,
            ),
            _ => put(&mut snapshot.bgp_peerings, &last.bgp(), &subject.key),
        };
        if changed {
            restored.insert(subject.clone());
        }
    }
    restored
}

fn put<S: Clone + PartialEq, T>(
    objects: &mut Objects<S, T>,
    last: &BTreeMap<&str, &S>,
    key: &Key,
) -> bool {
    let Some(before) = last.get(key.name.as_str()) else {
        return false;
    };
    let object = objects.entry(key.clone());
    // One that cannot be read now is not there; that it was generated from an intent was ruled out before.
    let object = object.or_insert_with(|| Object {
        meta: Meta::default(),
        spec: (*before).clone(),
        status: None,
    });
    let is_new = object.meta == Meta::default();
    let changed = object.spec != **before;
    object.spec = (*before).clone();
    changed || is_new
}
