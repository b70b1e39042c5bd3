//! Underlays that cannot stand beside each other: a node's VTEP would be an address that a neighbor has, or a VTEP of another node.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use api::{openperouter::UnderlaySpec, value::Prefix};

use super::sound::{Sound, runs_as_it_is, vtep_field};
use crate::{
    memo::{Index, Query},
    problem::{self, Problem},
    snapshot::{Key, Kind, ObjectRef, kinds},
    view::{Aged, View, reference},
};

/// The addresses in the spec of an Underlay.
struct Addresses {
    subject: ObjectRef,
    /// The pools of its VTEPs, each with the field that has it.
    vteps: Vec<(&'static str, Prefix)>,
    /// The addresses of its neighbors, each with its place.
    neighbors: Vec<(usize, IpAddr)>,
}

impl Addresses {
    /// Those of an Underlay that makes sense.
    fn of(view: &View<'_>, key: &Key, spec: &UnderlaySpec) -> Option<Self> {
        let subject = reference(Kind::Underlay, key);
        let sound = Sound::check(&subject, spec, &mut Vec::new());
        let sound = sound.filter(|sound| sound.is_fit(view, key, spec))?;
        let field = vtep_field(spec);
        let neighbors = spec.neighbors.iter().enumerate();
        let neighbors = neighbors.filter_map(|(place, one)| Some((place, one.address?)));
        Some(Self {
            subject,
            vteps: [field, "spec.tunnelEndpoint.cidrs[1]"]
                .into_iter()
                .zip(sound.endpoint.pools())
                .collect(),
            neighbors: neighbors.collect(),
        })
    }

    /// What is wrong with this Underlay beside another, or by itself.
    fn problems_beside(&self, other: &Self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut report = |field: String, kind| {
            problems.push(Problem::new(self.subject.clone(), field, kind));
        };
        let has_neighbor = |pool_of: &Self, pool: Prefix, neighbor_of: &Self, address| {
            problem::Kind::NeighborInVtepPool {
                address,
                neighbor_of: Box::new(neighbor_of.subject.clone()),
                pool,
                pool_of: Box::new(pool_of.subject.clone()),
            }
        };
        for (_, pool) in &other.vteps {
            for (place, address) in &self.neighbors {
                if pool.net().contains(address) {
                    let field = format!("spec.neighbors[{place}].address");
                    report(field, has_neighbor(other, *pool, self, *address));
                }
            }
        }
        if self.subject == other.subject {
            return problems;
        }
        for (field, pool) in &self.vteps {
            for (_, address) in &other.neighbors {
                if pool.net().contains(address) {
                    let kind = has_neighbor(self, *pool, other, *address);
                    problems.push(Problem::new(self.subject.clone(), *field, kind));
                }
            }
            for (_, others) in &other.vteps {
                let overlap =
                    pool.net().contains(&others.net()) || others.net().contains(&pool.net());
                if pool != others && overlap {
                    let kind = problem::Kind::VtepPoolsOverlap {
                        pool: *pool,
                        other: *others,
                        by: other.subject.clone(),
                    };
                    problems.push(Problem::new(self.subject.clone(), *field, kind));
                }
            }
        }
        problems
    }
}

/// Underlays that contradict themselves, or one that is served before them. Those that nodes run, as the last revision has them, are served
/// first, then those that nodes run, then the older.
pub(crate) struct Contradictions;
impl Query for Contradictions {
    type Key = ();
    type Value = Arc<BTreeMap<Key, Vec<Problem>>>;
    fn compute(view: &View<'_>, (): &()) -> Self::Value {
        let mut found = BTreeMap::new();
        let underlays = view.by_age::<kinds::Underlay>();
        let all = underlays.iter().filter_map(|one| {
            let addresses = Addresses::of(view, &one.key, &one.spec)?;
            Some((one, addresses))
        });
        let mut all: Vec<_> = all.collect();
        all.retain(|(one, addresses)| {
            let problems = addresses.problems_beside(addresses);
            let is_sound = problems.is_empty();
            if !is_sound {
                found.insert(one.key.clone(), problems);
            }
            is_sound
        });
        let is_contested = all.iter().enumerate().any(|(place, (_, one))| {
            let mut others = all.iter().skip(place + 1);
            others.any(|(_, other)| !one.problems_beside(other).is_empty())
        });
        if !is_contested {
            return Arc::new(found);
        }
        all.sort_by_key(|(one, _)| rank(view, one));
        let mut served: Vec<Addresses> = Vec::new();
        for (one, addresses) in all {
            let others = served.iter();
            let problems = others.flat_map(|other| addresses.problems_beside(other));
            let problems: Vec<Problem> = problems.collect();
            if problems.is_empty() {
                served.push(addresses);
            } else {
                found.insert(one.key.clone(), problems);
            }
        }
        Arc::new(found)
    }
}

/// The order in which Underlays are served; among equals the older comes first.
fn rank(view: &View<'_>, underlay: &Aged<kinds::Underlay>) -> (bool, bool) {
    let runs = view.has::<NodesByUnderlay>(&underlay.key.to_string());
    (!runs_as_it_is(view, &underlay.key, &underlay.spec), !runs)
}

/// The nodes that run each Underlay, by what configs call it.
pub(crate) struct NodesByUnderlay;
impl Index for NodesByUnderlay {
    type Source = Key;
    type Key = String;
    type Item = String;
    fn sources(view: &View<'_>) -> Vec<Key> {
        view.keys::<kinds::NodeNetworkConfig>().to_vec()
    }
    fn entries(view: &View<'_>, node: &Key) -> Vec<(String, String)> {
        let config = view.spec::<kinds::NodeNetworkConfig>(node);
        let underlay = config.and_then(|config| config.underlay.clone());
        let source = underlay.and_then(|underlay| underlay.source);
        let entry = source.map(|source| (source, node.name.to_string()));
        entry.into_iter().collect()
    }
}
