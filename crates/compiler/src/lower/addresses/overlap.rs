//! Networks may overlap, and the programs that allocate addresses know addresses, not Networks: what a service has of one Network
//! must not be another's of the other.

use std::{collections::BTreeMap, net::IpAddr};

use api::value::Prefix;
use ipnet::IpNet;

use super::{
    claims::Claimant,
    lists, plain,
    sharing::{HandedOut, field},
};
use crate::{
    allocate::share::Want,
    problem::{self, Problem},
    snapshot::{Kind, ObjectRef},
};

/// A service with what it draws on.
pub(super) struct Drawing<'a> {
    pub(super) network: &'a str,
    pub(super) claimant: Claimant,
    /// The subnets that its pool on the platform spans.
    pub(super) pool: Vec<Prefix>,
}

impl Drawing<'_> {
    fn holds(&self) -> bool {
        let claim = &self.claimant.claim;
        claim.want == Want::Rest { held: true } || !claim.held.is_empty()
    }
}

/// What services have had so far, each with its Network and its owner.
#[derive(Default)]
struct Seen<'a> {
    addresses: BTreeMap<IpAddr, (&'a str, &'a ObjectRef)>,
    pools: BTreeMap<IpNet, (&'a str, &'a ObjectRef)>,
    /// Whether one of the pools is for pods.
    has_pods: bool,
}

/// Removes from the younger what services of two overlapping Networks both have; the holder keeps it.
pub(super) fn resolve(drawings: &mut [Drawing<'_>], handed_out: &mut HandedOut) {
    drawings.sort_by(|a, b| {
        let rank = |one: &Drawing<'_>| !one.holds();
        let by_order = || a.claimant.order().cmp(&b.claimant.order());
        rank(a).cmp(&rank(b)).then_with(by_order)
    });
    let mut seen = Seen::default();
    let mut losers = Vec::new();
    for drawing in &*drawings {
        let subject = &drawing.claimant.subject;
        let Some(share) = handed_out.shares.get_mut(subject) else {
            continue;
        };
        let own: Vec<IpAddr> = plain(&share.addresses).collect();
        let mut kept = own.clone();
        if let Some(clash) = seen.clash(drawing, &own) {
            kept.retain(|address| {
                let is_free = !seen.addresses.contains_key(address);
                is_free && drawing.claimant.claim.held.contains(address)
            });
            share.addresses = lists(&kept);
            losers.push((drawing, own, clash));
        } else {
            seen.has_pods |= subject.kind == Kind::PodNetwork;
            let pools = drawing.pool.iter().map(|prefix| prefix.net());
            seen.pools
                .extend(pools.map(|net| (net, (drawing.network, subject))));
        }
        let kept = kept.into_iter();
        seen.addresses
            .extend(kept.map(|address| (address, (drawing.network, subject))));
    }
    // The problem of an object without addresses names the final holder: the same name in this compile and in later ones.
    for (drawing, own, clash) in losers {
        let subject = &drawing.claimant.subject;
        let (field, kind) = seen.clash(drawing, &own).unwrap_or(clash);
        if let Some(share) = handed_out.shares.get_mut(subject) {
            let problem = Problem::new(subject.clone(), field, kind);
            share.problems.push(problem);
        }
    }
}

impl Seen<'_> {
    /// The addresses of a service that an object on another Network has.
    fn clash(&self, drawing: &Drawing<'_>, own: &[IpAddr]) -> Option<(String, problem::Kind)> {
        let want = &drawing.claimant.claim.want;
        let elsewhere = |(network, _): &&(&str, &ObjectRef)| *network != drawing.network;
        for address in own {
            let holder = self.addresses.get(address).filter(elsewhere);
            if let Some((_, by)) = holder.or_else(|| self.pods_around(drawing, *address)) {
                let (address, by) = (*address, (*by).clone());
                let kind = problem::Kind::AddressTaken { address, by };
                return Some((field(want, Some(address)), kind));
            }
        }
        for prefix in &drawing.pool {
            let net = prefix.net();
            if let Some((network, by)) = overlapping(&self.pools, net)
                .map(|(_, one)| one)
                .find(elsewhere)
            {
                let network = format!("{network}, which {} overlaps,", drawing.network);
                let by = (*by).clone();
                let kind = problem::Kind::NetworkTaken { network, by };
                return Some(("spec.networkRef".to_owned(), kind));
            }
            // Pods may have any address of their network; gateways have none but their own.
            let is_for_pods = matches!(want, Want::Rest { .. });
            let mut inside = self.addresses.range(net.network()..=net.broadcast());
            let holder = inside.find(|(_, holder)| elsewhere(holder));
            if let Some((address, (_, by))) = holder.filter(|_| is_for_pods) {
                let (address, by) = (*address, (*by).clone());
                let kind = problem::Kind::AddressTaken { address, by };
                return Some(("spec.networkRef".to_owned(), kind));
            }
        }
        None
    }

    /// The PodNetwork of another Network that an address lies in.
    fn pods_around(&self, drawing: &Drawing<'_>, address: IpAddr) -> Option<&(&str, &ObjectRef)> {
        if !self.has_pods {
            return None;
        }
        let mut pools = overlapping(&self.pools, IpNet::from(address)).map(|(_, one)| one);
        pools.find(|(network, by)| *network != drawing.network && by.kind == Kind::PodNetwork)
    }
}

/// What stands at networks that have addresses in common with a network: those around it and those inside. What stands at the network itself
/// comes twice.
pub(super) fn overlapping<T>(
    nets: &BTreeMap<IpNet, T>,
    net: IpNet,
) -> impl Iterator<Item = (&IpNet, &T)> {
    let around = (0..=net.prefix_len()).filter_map(move |length| {
        let around = IpNet::new(net.addr(), length).ok()?;
        nets.get_key_value(&around.trunc())
    });
    let bound = |address, length| IpNet::new(address, length).unwrap_or(net);
    let first = bound(net.network(), 0);
    let last = bound(net.broadcast(), net.max_prefix_len());
    let inside = nets.range(first..=last);
    around.chain(inside.filter(move |(inside, _)| net.contains(*inside)))
}
