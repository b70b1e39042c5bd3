//! The merge of all objects of a node, and everything that only shows when they are together. The compile, a review of one change and
//! the benchmark call this one function.

use std::{collections::BTreeSet, sync::Arc};

use api::value::{IfName, Peer};

use super::{
    merge::{Conflict, Contradiction, Merge},
    part::{Neighbor, Part},
    read::{Contribution, Read},
};
use crate::{
    problem::{self, Problem},
    snapshot::ObjectRef,
};

/// An object that selects a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) subject: ObjectRef,
    pub(super) generation: Option<i64>,
    /// When it was created; the older is served first.
    pub(super) created: Option<String>,
    pub(super) read: Arc<Read>,
    /// Whether a node runs something of it.
    pub(super) runs: bool,
    /// Whether a node runs it as it is.
    pub(super) runs_as_it_is: bool,
}

impl Member {
    fn order(&self) -> (bool, bool, Option<&str>, &ObjectRef) {
        let created = self.created.as_deref();
        (!self.runs, created.is_none(), created, &self.subject)
    }
}

/// What the objects of a node add up to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Merged {
    pub(super) part: Part,
    /// The objects in effect, by their places.
    pub(super) in_effect: BTreeSet<usize>,
    /// What is wrong with objects beside the others.
    pub(super) problems: Vec<Problem>,
}

/// Merges the objects of a node. An object in effect there is served before others, then the older. One that contradicts what others add up to is left
/// out, and so is one that lacks something, unless it runs as it is.
pub(super) fn merge(members: &mut [Member], node: Option<&str>) -> Merged {
    members.sort_by(|a, b| a.order().cmp(&b.order()));
    let mut merged = Merged::default();
    let mut left_out = BTreeSet::new();
    loop {
        let mut problems = Vec::new();
        let (merge, in_effect) = together(members, &left_out, node, &mut problems);
        let faults = faults(members, &in_effect, &merge.part, node);
        let mut is_stable = true;
        for (place, problem) in faults {
            let stays = members.get(place).is_some_and(|one| one.runs_as_it_is);
            if stays {
                problems.push(problem);
            } else {
                merged.problems.push(problem);
                is_stable &= !left_out.insert(place);
            }
        }
        if is_stable {
            problems.extend(notes(members, &in_effect, &merge.part));
            merged.problems.append(&mut problems);
            merged.part = merge.part;
            merged.in_effect = in_effect;
            return merged;
        }
    }
}

/// The objects that contradict none before them.
fn together(
    members: &[Member],
    left_out: &BTreeSet<usize>,
    node: Option<&str>,
    problems: &mut Vec<Problem>,
) -> (Merge, BTreeSet<usize>) {
    let mut merge = Merge::default();
    let mut in_effect = BTreeSet::new();
    for (place, member) in members.iter().enumerate() {
        let contribution = member.read.contribution.as_ref();
        let Some(contribution) = contribution.filter(|_| !left_out.contains(&place)) else {
            continue;
        };
        let conflicts = merge.conflicts(&contribution.part);
        if conflicts.is_empty() {
            let by = u32::try_from(place).unwrap_or(u32::MAX);
            merge.add(&contribution.part, by);
            in_effect.insert(place);
        }
        let found = conflicts.into_iter().filter_map(|conflict| {
            let other = usize::try_from(conflict.by).ok()?;
            let other = members.get(other)?.subject.clone();
            Some(of_conflict(member.subject.clone(), other, conflict, node))
        });
        problems.extend(found);
    }
    (merge, in_effect)
}

fn of_conflict(
    subject: ObjectRef,
    other: ObjectRef,
    conflict: Conflict,
    node: Option<&str>,
) -> Problem {
    let Conflict { field, by: _, what } = conflict;
    let node = node.map(str::to_owned);
    let kind = match what {
        Contradiction::Values {
            what,
            own,
            theirs,
            field,
        } => problem::Kind::ConfigurationsDisagree(Box::new(problem::Disagreement {
            what,
            own,
            theirs,
            other,
            field,
            node,
        })),
        Contradiction::Vni(vni) => problem::Kind::VniTaken {
            vni,
            by: other,
            node,
        },
        Contradiction::Name(name) => problem::Kind::FilterNameTaken {
            name,
            by: Box::new(other),
            node,
        },
        Contradiction::L3VniWithNeighbors(vrf) => problem::Kind::L3VniWithNeighbors {
            vrf: vrf.to_string(),
            by: Box::new(other),
            node,
        },
    };
    Problem::new(subject, field, kind)
}

/// What objects lack that no other gives them, each with the place of its object.
fn faults(
    members: &[Member],
    in_effect: &BTreeSet<usize>,
    part: &Part,
    node: Option<&str>,
) -> Vec<(usize, Problem)> {
    let contributions = contributions(members, in_effect);
    let mut faults = Vec::new();
    let without_evpn: BTreeSet<&IfName> = part
        .routers
        .iter()
        .filter(|(_, router)| !router.neighbors.values().any(|one| one.evpn))
        .map(|(vrf, _)| vrf)
        .collect();
    for (place, member, contribution) in contributions {
        for (vrf, router) in &contribution.part.routers {
            if !without_evpn.contains(vrf) {
                continue;
            }
            let evpn = &router.evpn;
            let all = evpn
                .advertise_vnis
                .as_ref()
                .filter(|_| evpn.advertises_all());
            let svi = evpn
                .advertise_svi
                .as_ref()
                .filter(|_| evpn.advertises_svi());
            let l2vni = evpn.l2vnis.values().next();
            let found = [
                all.map(|one| (one.at, "advertiseVNIs")),
                svi.map(|one| (one.at, "advertiseSVI")),
                l2vni.map(|one| (one.given.at, "l2vnis")),
            ];
            for (at, what) in found.into_iter().flatten() {
                let field = if what == "l2vnis" { "" } else { what };
                let kind = problem::Kind::EvpnNeighborRequired {
                    what,
                    vrf: vrf.to_string(),
                    node: node.map(str::to_owned),
                };
                let problem = Problem::new(member.subject.clone(), at.field(field), kind);
                faults.push((place, problem));
            }
        }
        for misfit in &contribution.misfits {
            let neighbor = neighbor(part, &misfit.vrf, &misfit.peer);
            // Fields of unicast have no effect on a session that carries EVPN alone.
            if neighbor.is_some_and(|one| one.is_dual_stack || !one.unicast) {
                continue;
            }
            let family = if misfit.needs_ipv6 { "ipv6" } else { "ipv4" };
            let message = format!(
                "{} is given for a neighbor without an {family} address family: take it out, or set dualStackAddressFamily",
                misfit.value
            );
            let kind = problem::Kind::RuleBroken { message };
            let problem = Problem::new(member.subject.clone(), misfit.field.clone(), kind);
            faults.push((place, problem));
        }
    }
    faults
}

/// What has no effect on the node at the moment.
fn notes(members: &[Member], in_effect: &BTreeSet<usize>, part: &Part) -> Vec<Problem> {
    let mut notes = Vec::new();
    let advertises_all = part.routers.values().any(|one| one.evpn.advertises_all());
    for (_, member, contribution) in contributions(members, in_effect) {
        let mut note = |field: String, what: &str| {
            let kind = problem::Kind::NoEffect {
                what: what.to_owned(),
            };
            notes.push(Problem::new(member.subject.clone(), field, kind));
        };
        for (vrf, router) in &contribution.part.routers {
            let known = part.routers.get(vrf);
            let is_all = known.is_some_and(|known| known.evpn.advertises_all());
            let l2vni = router.evpn.l2vnis.values().next();
            if let Some(l2vni) = l2vni.filter(|_| !is_all) {
                let what = "has no effect before an FRRConfiguration of this router says advertiseVNIs: All";
                note(l2vni.given.at.field(""), what);
            }
            if let Some((_, l3vni)) = router.evpn.l3vni.as_ref().filter(|_| !advertises_all) {
                let what = "has no effect before an FRRConfiguration of this node says advertiseVNIs: All: \
                    FRR takes part in EVPN only then";
                note(l3vni.given.at.field(""), what);
            }
        }
        for one in &contribution.unicast_fields {
            let neighbor = neighbor(part, &one.vrf, &one.peer);
            if !neighbor.is_some_and(|neighbor| neighbor.unicast) {
                let what =
                    "is for unicast alone, and the session carries EVPN alone: it has no effect";
                note(one.field.clone(), what);
            }
        }
    }
    notes
}

fn neighbor<'a>(part: &'a Part, vrf: &IfName, peer: &Peer) -> Option<&'a Neighbor> {
    part.routers.get(vrf)?.neighbors.get(peer)
}

/// What objects contribute, each with its place.
pub(super) fn contributions<'a>(
    members: &'a [Member],
    places: &'a BTreeSet<usize>,
) -> impl Iterator<Item = (usize, &'a Member, &'a Contribution)> {
    places.iter().filter_map(|place| {
        let member = members.get(*place)?;
        let contribution = member.read.contribution.as_ref()?;
        Some((*place, member, contribution))
    })
}
