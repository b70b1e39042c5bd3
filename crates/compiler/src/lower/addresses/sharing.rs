//! Shares out grounds among all who have claims on them.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    net::IpAddr,
};

use api::value::Prefix;

use super::{
    Input, Share,
    claims::{Claimant, Claims},
    gateway::Gateways,
    ground::Ground,
    lists,
    memory::{Memory, within},
    overlap::{self, Drawing},
};
use crate::{
    allocate::share::{Claim, Grant, Refusal, Want, share},
    problem::{self, Problem},
    snapshot::{Kind, ObjectRef},
};

/// What comes of the claims on some grounds.
#[derive(Default)]
pub(super) struct HandedOut<'a> {
    pub(super) shares: BTreeMap<&'a ObjectRef, Share>,
    pub(super) nodes: BTreeMap<&'a ObjectRef, BTreeMap<String, Vec<IpAddr>>>,
    pub(super) node_problems: BTreeMap<&'a ObjectRef, Vec<Problem>>,
    /// The addresses of each Network that somebody has for itself.
    pub(super) taken: BTreeMap<&'a str, BTreeSet<IpAddr>>,
}

/// Shares out grounds. Those with which they have addresses in common must be among them.
pub(super) fn share_out<'a>(
    input: Input<'a>,
    memory: &Memory<'_>,
    islands: &mut BTreeMap<&'a Ground, Claims<'a>>,
) -> HandedOut<'a> {
    let mut handed_out = HandedOut::default();
    let gateways = Gateways::of(islands);
    // What somebody has or has got by now; networks may overlap.
    let claimants = islands.values().flat_map(|claims| &claims.claimants);
    let alone = claimants.filter(|one| one.is_alone());
    let mut given: BTreeSet<IpAddr> = alone.flat_map(|one| &one.claim.held).copied().collect();
    let mut drawings = Vec::new();
    for (ground, claims) in &mut *islands {
        let network = ground.name();
        let mut claimants = mem::take(&mut claims.claimants);
        let pool_owner = pool_owner(&mut claimants);
        let prefixes = &claims.prefixes;
        let asked = &mut claims.asked;
        let grants = if prefixes.is_empty() {
            claimants.iter().map(|one| unchanged(&one.claim)).collect()
        } else {
            share(prefixes, &claimants, || {
                let spoken_for = memory.spoken_for(prefixes);
                let in_the_way = gateways.in_the_way(input, (network, prefixes), &claimants);
                asked.reached |= in_the_way.is_some();
                let in_the_way = in_the_way.into_iter().flatten();
                let lingering = within(prefixes, &given).chain(spoken_for.iter().copied());
                let lingering = lingering.chain(in_the_way).collect();
                asked.spoken_for = Some(spoken_for);
                lingering
            })
        };
        let shared = Shared {
            network,
            prefixes,
            claimants: &claimants,
            pool_owner,
        };
        for (claimant, grant) in claimants.iter().zip(&grants) {
            shared.hand_out(claimant, grant, &mut handed_out);
        }
        let alone = claimants.iter().zip(&grants);
        let alone = alone.filter(|(claimant, _)| claimant.is_alone());
        given.extend(alone.flat_map(|(_, grant)| &grant.addresses));
        if let Ground::Network(network) = ground {
            let taken = grants.into_iter().flat_map(|grant| grant.addresses);
            handed_out.taken.insert(network, taken.collect());
            let services = claimants.into_iter().filter(Claimant::is_service);
            drawings.extend(services.map(|claimant| Drawing {
                network,
                pool: if pool_owner == Some(claimant.subject) {
                    prefixes.clone()
                } else {
                    Vec::new()
                },
                claimant,
            }));
        }
    }
    overlap::settle(&mut drawings, &mut handed_out);
    let asked = gateways.settle(input, &drawings, &mut handed_out);
    for (ground, claims) in islands {
        claims.asked.reached |= asked.contains(ground.name());
    }
    handed_out
}

/// One network with everybody who wants some of it.
struct Shared<'a> {
    network: &'a str,
    prefixes: &'a [Prefix],
    claimants: &'a [Claimant<'a>],
    /// Who has the pool on the platform.
    pool_owner: Option<&'a ObjectRef>,
}

impl Shared<'_> {
    /// Notes what a claimant got, and why not more.
    fn hand_out<'a>(&self, claimant: &Claimant<'a>, grant: &Grant, handed_out: &mut HandedOut<'a>) {
        let subject = claimant.subject;
        if let Some(node) = claimant.node {
            let strange = |one: &&IpAddr| !self.prefixes.iter().any(|net| net.net().contains(*one));
            // What it has of another network it needs as long as its segment, for a problem, stays as it was.
            let strange = claimant.claim.held.iter().filter(strange);
            let mut own: Vec<IpAddr> = grant.addresses.iter().chain(strange).copied().collect();
            own.sort_unstable();
            own.dedup();
            if !own.is_empty() {
                let nodes = handed_out.nodes.entry(subject).or_default();
                nodes.insert(node.to_owned(), own);
            }
            if let Some(problem) = self.node_problem(claimant, node, grant) {
                let problems = handed_out.node_problems.entry(subject).or_default();
                problems.push(problem);
            }
            return;
        }
        let share = handed_out.shares.entry(subject).or_default();
        share.problems.extend(self.problems(claimant, grant));
        if let (true, Some(by)) = (claimant.without_pool, self.pool_owner) {
            let (network, by) = (self.network.to_owned(), by.clone());
            let kind = problem::Kind::NetworkTaken { network, by };
            let problem = Problem::new(subject.clone(), "spec.networkRef", kind);
            share.problems.push(problem);
        }
        share.addresses = lists(&grant.addresses);
    }

    /// Why a node has no address.
    fn node_problem(&self, claimant: &Claimant<'_>, node: &str, grant: &Grant) -> Option<Problem> {
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
        Some(Problem::new(claimant.subject.clone(), "spec.nodeIPs", kind))
    }

    fn holder(&self, by: usize) -> Option<ObjectRef> {
        self.claimants.get(by).map(|holder| holder.subject.clone())
    }

    /// What a refusal says to whom it is about.
    fn problems(&self, claimant: &Claimant<'_>, grant: &Grant) -> Vec<Problem> {
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
                Refusal::TooFew { prefix, missing } => {
                    let kind = problem::Kind::TooFewAddresses {
                        prefix: *prefix,
                        missing: *missing,
                    };
                    (None, kind)
                }
                Refusal::Whole { by } => {
                    let (network, by) = (network.to_owned(), self.holder(*by)?);
                    (None, problem::Kind::NetworkTaken { network, by })
                }
            };
            let field = field(&claimant.claim.want, address);
            Some(Problem::new(claimant.subject.clone(), field, kind))
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
/// whoever has it keeps it, then the older is served first. The others get nothing new.
fn pool_owner<'a>(claimants: &mut [Claimant<'a>]) -> Option<&'a ObjectRef> {
    let needs_pool =
        |one: &&mut Claimant<'_>| matches!(one.subject.kind, Kind::Outbound | Kind::PodNetwork);
    let holds = |one: &Claimant<'_>| match one.claim.want {
        Want::Rest { held } => held,
        _ => !one.claim.held.is_empty(),
    };
    let mut rivals: Vec<&mut Claimant<'a>> = claimants.iter_mut().filter(needs_pool).collect();
    rivals.sort_by_key(|one| !holds(one));
    let mut rivals = rivals.into_iter();
    let owner = rivals.next()?.subject;
    for rival in rivals {
        rival.claim.want = Want::These(rival.claim.held.clone());
        rival.without_pool = true;
    }
    Some(owner)
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
