//! Shares out address pools among all who have claims on them.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use api::value::Prefix;
use litemap::LiteMap;

use super::{
    NodeShare, Share,
    claims::{Claimant, Claims, ClaimsOn},
    gateway::Gateways,
    lists,
    overlap::{self, Drawing},
    pool::{AddressPool, Island},
    withheld,
};
use crate::{
    allocate::share::{Claim, Grant, Refusal, Want, share},
    exhausted::{self, Lacking},
    memo::Query,
    problem::{self, Problem},
    snapshot::{IntentKind, ObjectRef},
    view::View,
};

/// The results of the claims on an island. Most islands have one claimant: a map with a capacity of eleven would be most of the memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shares {
    pub(super) consumers: LiteMap<ObjectRef, Arc<Share>>,
    pub(super) nodes: LiteMap<ObjectRef, Arc<NodeShare>>,
    /// The addresses of each Network that one object has for itself.
    pub(super) taken: LiteMap<String, Arc<BTreeSet<IpAddr>>>,
}

/// What comes of the claims on an island.
pub(crate) struct SharedOut;
impl Query for SharedOut {
    type Key = Island;
    type Value = Arc<Shares>;
    fn compute(view: &View<'_>, island: &Island) -> Arc<Shares> {
        let claims = island.iter().map(|pool| (pool, view.get::<ClaimsOn>(pool)));
        let claims: Vec<(&AddressPool, Arc<Claims>)> = claims.collect();
        Arc::new(share_out(view, &claims).shares())
    }
}

/// What is handed out while an island is shared out.
#[derive(Default)]
pub(super) struct HandedOut {
    pub(super) shares: BTreeMap<ObjectRef, Share>,
    nodes: BTreeMap<ObjectRef, BTreeMap<String, Vec<IpAddr>>>,
    node_problems: BTreeMap<ObjectRef, Lacking>,
    taken: BTreeMap<String, BTreeSet<IpAddr>>,
}

impl HandedOut {
    fn shares(mut self) -> Shares {
        let shares = self.shares.into_iter();
        let taken = self.taken.into_iter();
        let segments: BTreeSet<ObjectRef> = self
            .nodes
            .keys()
            .chain(self.node_problems.keys())
            .cloned()
            .collect();
        let nodes = segments.into_iter().map(|subject| {
            let lacking = self.node_problems.remove(&subject).unwrap_or_default();
            let share = NodeShare {
                addresses: Arc::new(self.nodes.remove(&subject).unwrap_or_default()),
                problems: exhausted::of_pools(lacking.iter()),
            };
            (subject, Arc::new(share))
        });
        Shares {
            nodes: nodes.collect(),
            consumers: shares.map(|(key, share)| (key, Arc::new(share))).collect(),
            taken: taken.map(|(key, taken)| (key, Arc::new(taken))).collect(),
        }
    }
}

/// Shares out an island.
fn share_out(view: &View<'_>, island: &[(&AddressPool, Arc<Claims>)]) -> HandedOut {
    let mut handed_out = HandedOut::default();
    // Only Networks that overlap can be in each other's way.
    let is_one_of_several = island.len() > 1;
    let gateways = if is_one_of_several {
        Gateways::of(island)
    } else {
        Gateways::default()
    };
    // Addresses that are allocated by now; networks may overlap.
    let claimants = island.iter().flat_map(|(_, claims)| &claims.claimants);
    let alone = claimants.filter(|one| one.is_alone());
    let mut given: BTreeSet<IpAddr> = alone.flat_map(|one| &one.claim.held).copied().collect();
    let mut drawings = Vec::new();
    for (pool, claims) in island {
        let network = pool.name();
        let (pool_owner, claimants) = pool_owner(&claims.claimants);
        let prefixes = &claims.prefixes;
        let grants = if prefixes.is_empty() {
            claimants.iter().map(|one| unchanged(&one.claim)).collect()
        } else {
            share(prefixes, &claimants, || {
                let mut withheld = withheld::within(view, prefixes);
                withheld.extend(within(prefixes, &given));
                withheld.extend(gateways.conflicting(network, prefixes, &claimants));
                withheld
            })
        };
        let shared = Shared {
            network,
            prefixes,
            claimants: &claimants,
            pool_owner: pool_owner.as_ref(),
        };
        for (claimant, grant) in claimants.iter().zip(&grants) {
            shared.hand_out(claimant, grant, &mut handed_out);
        }
        let alone = claimants.iter().zip(&grants);
        let alone = alone.filter(|(claimant, _)| claimant.is_alone());
        given.extend(alone.flat_map(|(_, grant)| &grant.addresses));
        if let AddressPool::Network(network) = pool {
            let taken = grants.into_iter().flat_map(|grant| grant.addresses);
            handed_out
                .taken
                .insert(network.to_string(), taken.collect());
            let services = claimants.iter().filter(|one| one.is_service());
            let services = services.filter(|_| is_one_of_several);
            drawings.extend(services.map(|claimant| Drawing {
                network,
                pool: if pool_owner.as_ref() == Some(&claimant.subject) {
                    prefixes.clone()
                } else {
                    Vec::new()
                },
                claimant: claimant.clone(),
            }));
        }
    }
    overlap::resolve(&mut drawings, &mut handed_out);
    gateways.resolve(view, &drawings, &mut handed_out);
    handed_out
}

/// The addresses that lie in one of the prefixes.
fn within<'a>(
    prefixes: &'a [Prefix],
    addresses: &'a BTreeSet<IpAddr>,
) -> impl Iterator<Item = IpAddr> {
    let range = |prefix: &Prefix| {
        let net = prefix.net();
        addresses.range(net.network()..=net.broadcast()).copied()
    };
    prefixes.iter().flat_map(range)
}

/// One network with all who want some of it.
struct Shared<'a> {
    network: &'a str,
    prefixes: &'a [Prefix],
    claimants: &'a [Claimant],
    /// Who has the pool on the platform.
    pool_owner: Option<&'a ObjectRef>,
}

impl Shared<'_> {
    /// Notes what a claimant got, and why not more.
    fn hand_out(&self, claimant: &Claimant, grant: &Grant, handed_out: &mut HandedOut) {
        let subject = || claimant.subject.clone();
        if let Some(node) = &claimant.node {
            let strange = |one: &&IpAddr| !self.prefixes.iter().any(|net| net.net().contains(*one));
            // What it has of another network it needs as long as its segment, for a problem, stays as it was.
            let strange = claimant.claim.held.iter().filter(strange);
            let mut own: Vec<IpAddr> = grant.addresses.iter().chain(strange).copied().collect();
            own.sort_unstable();
            own.dedup();
            if !own.is_empty() {
                let nodes = handed_out.nodes.entry(subject()).or_default();
                nodes.insert(node.to_string(), own);
            }
            if let Some(problem) = self.node_problem(claimant, node, grant) {
                let problems = handed_out.node_problems.entry(subject()).or_default();
                problems.push((problem, Arc::from(&**node)));
            }
            return;
        }
        let share = handed_out.shares.entry(subject()).or_default();
        share.problems.extend(self.problems(claimant, grant));
        if let (true, Some(by)) = (claimant.without_pool, self.pool_owner) {
            let (network, by) = (self.network.to_owned(), by.clone());
            let kind = problem::Kind::NetworkTaken { network, by };
            let subject = claimant.subject.clone();
            let problem = Problem::new(subject, "spec.networkRef", kind);
            share.problems.push(problem);
        }
        share.addresses = lists(&grant.addresses);
    }

    /// Why a node has no address.
    fn node_problem(&self, claimant: &Claimant, node: &str, grant: &Grant) -> Option<Problem> {
        let kind = match grant.refusals.first()? {
            Refusal::Whole { by } => problem::Kind::NetworkTaken {
                network: self.network.to_owned(),
                by: self.holder(*by)?,
            },
            Refusal::TooFew { prefix, .. } => problem::Kind::PoolExhausted {
                pool: prefix.to_string(),
                wanted: format!("node {node}"),
            },
            Refusal::NoHost(_) | Refusal::Taken { .. } => return None,
        };
        let subject = claimant.subject.clone();
        Some(Problem::new(subject, "spec.nodeIPs", kind))
    }

    fn holder(&self, by: usize) -> Option<ObjectRef> {
        let holder = self.claimants.get(by)?;
        Some(holder.subject.clone())
    }

    /// What a refusal says to whom it is about.
    fn problems(&self, claimant: &Claimant, grant: &Grant) -> Vec<Problem> {
        let network = self.network;
        let explain = |refusal: &Refusal| {
            let (address, kind) = match refusal {
                Refusal::NoHost(address) => {
                    let mut prefixes = self.prefixes.iter();
                    let prefix = prefixes.find(|prefix| prefix.is_ipv4() == address.is_ipv4());
                    let network = match prefix {
                        Some(prefix) => format!("Network {network} ({prefix})"),
                        None => format!("Network {network}"),
                    };
                    let address = *address;
                    (
                        Some(address),
                        problem::Kind::NoHostAddress { address, network },
                    )
                }
                Refusal::Taken { address, by } => {
                    let (address, by) = (*address, self.holder(*by)?);
                    (Some(address), problem::Kind::AddressTaken { address, by })
                }
                Refusal::TooFew {
                    prefix,
                    missing,
                    free,
                } => {
                    let kind = problem::Kind::TooFewAddresses {
                        prefix: *prefix,
                        missing: *missing,
                        free: *free,
                    };
                    (None, kind)
                }
                Refusal::Whole { by } => {
                    let (network, by) = (network.to_owned(), self.holder(*by)?);
                    (None, problem::Kind::NetworkTaken { network, by })
                }
            };
            let field = field(&claimant.claim.want, address);
            let subject = claimant.subject.clone();
            Some(Problem::new(subject, field, kind))
        };
        grant.refusals.iter().filter_map(explain).collect()
    }
}

/// Of a Network that is not there, or has no addresses, everybody keeps what it was given.
fn unchanged(claim: &Claim) -> Grant {
    Grant {
        addresses: claim.held.clone(),
        refusals: Vec::new(),
    }
}

/// Who has the pool over a Network that pods are given addresses from. The platform takes no two pools that overlap, so there is one:
/// the one that has it keeps it, then the older is served first. The others get nothing new.
fn pool_owner(claimants: &[Claimant]) -> (Option<ObjectRef>, Cow<'_, [Claimant]>) {
    let needs_pool = |one: &Claimant| {
        let intent = one.subject.kind.intent();
        intent.is_some_and(IntentKind::needs_pool)
    };
    let holds = |one: &Claimant| match one.claim.want {
        Want::Rest { held } => held,
        _ => !one.claim.held.is_empty(),
    };
    let rivals = || claimants.iter().filter(|one| needs_pool(one));
    let Some(owner) = rivals().min_by_key(|one| !holds(one)) else {
        return (None, claimants.into());
    };
    let owner = owner.subject.clone();
    if rivals().count() == 1 {
        return (Some(owner), claimants.into());
    }
    let mut claimants = claimants.to_vec();
    for rival in claimants.iter_mut().filter(|one| needs_pool(one)) {
        if rival.subject != owner {
            rival.claim.want = Want::These(rival.claim.held.clone());
            rival.without_pool = true;
        }
    }
    (Some(owner), claimants.into())
}

/// The field that asks for an address.
pub(super) fn field(want: &Want, address: Option<IpAddr>) -> String {
    match (want, address) {
        (Want::These(wanted), Some(address)) => {
            let family = if address.is_ipv4() { "ipv4" } else { "ipv6" };
            let mut of_family = wanted
                .iter()
                .filter(|one| one.is_ipv4() == address.is_ipv4());
            let place = of_family
                .position(|one| *one == address)
                .unwrap_or_default();
            format!("spec.addresses.{family}[{place}]")
        }
        (Want::Count(_), _) => "spec.count".to_owned(),
        _ => "spec.networkRef".to_owned(),
    }
}
