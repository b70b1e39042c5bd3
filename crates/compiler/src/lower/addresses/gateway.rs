//! A segment and a service of another Network have no address in common. No VRF tells them apart: a segment has an interface in the host's own
//! namespace, and there the addresses of all services are answered.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use api::value::{HostCidr, Prefix};

use super::{
    claims::{Claimant, Claims, order},
    lists,
    overlap::Drawing,
    plain,
    pool::AddressPool,
    sharing::{HandedOut, field},
};
use crate::{
    allocate::share::Want,
    problem::{self, Problem},
    snapshot::{ObjectRef, kinds},
    view::View,
};

/// The gateways of attachments and the addresses that nodes have on their segments, each with its Network.
#[derive(Default)]
pub(super) struct Gateways<'a>(BTreeMap<IpAddr, Vec<(&'a str, &'a ObjectRef)>>);

impl<'a> Gateways<'a> {
    pub(super) fn of(island: &'a [(&AddressPool, Arc<Claims>)]) -> Self {
        let mut gateways = Self::default();
        for (pool, claims) in island {
            let AddressPool::Network(network) = pool else {
                continue;
            };
            for claimant in &claims.claimants {
                let addresses = match &claimant.claim.want {
                    Want::Together(addresses) => addresses,
                    Want::One { .. } => &claimant.claim.held,
                    Want::These(_) | Want::Count(_) | Want::Rest { .. } => continue,
                };
                for address in addresses {
                    let there = gateways.0.entry(*address).or_default();
                    there.push((network, &claimant.subject));
                }
            }
        }
        gateways
    }

    fn elsewhere(&self, network: &str, address: IpAddr) -> impl Iterator<Item = &'a ObjectRef> {
        let there = self.0.get(&address).into_iter().flatten();
        let elsewhere = there.filter(move |(other, _)| *other != network);
        elsewhere.map(|(_, subject)| *subject)
    }

    /// Addresses of segments of other Networks that services of this one must go round.
    pub(super) fn conflicting(
        &self,
        network: &str,
        prefixes: &[Prefix],
        claimants: &[Claimant],
    ) -> Vec<IpAddr> {
        if !claimants.iter().any(Claimant::is_service) {
            return Vec::new();
        }
        let inside = self.inside(prefixes);
        let conflicting = inside.filter(|one| self.elsewhere(network, *one).next().is_some());
        conflicting.collect()
    }

    fn inside(&self, prefixes: &[Prefix]) -> impl Iterator<Item = IpAddr> {
        let inside = prefixes.iter().flat_map(|prefix| {
            let net = prefix.net();
            self.0.range(net.network()..=net.broadcast())
        });
        inside.map(|(address, _)| *address)
    }

    /// Takes an address that is a segment's and a service's from the younger; the one that holds it keeps it.
    pub(super) fn resolve(
        &self,
        view: &View<'_>,
        drawings: &[Drawing<'_>],
        handed_out: &mut HandedOut,
    ) {
        for drawing in drawings {
            let service = &drawing.claimant;
            let Some(share) = handed_out.shares.get(&service.subject) else {
                continue;
            };
            // Pods may have any address of their network.
            let addresses: Vec<IpAddr> = match service.claim.want {
                Want::Rest { .. } => self.inside(&drawing.pool).collect(),
                Want::Together(_) | Want::These(_) | Want::Count(_) | Want::One { .. } => {
                    plain(&share.addresses).collect()
                }
            };
            for address in addresses {
                for segment in self.elsewhere(drawing.network, address) {
                    contest(view, handed_out, service, segment, address);
                }
            }
        }
    }
}

/// Takes an address from a service, or refuses it to an attachment.
fn contest(
    view: &View<'_>,
    handed_out: &mut HandedOut,
    service: &Claimant,
    segment: &ObjectRef,
    address: IpAddr,
) {
    let Some(meta) = view.meta_of(segment) else {
        return;
    };
    let is_refused = |one: &ObjectRef| {
        let share = handed_out.shares.get(one);
        share.is_some_and(|share| !share.problems.is_empty())
    };
    if is_refused(segment) {
        return;
    }
    let is_made = is_made(view, segment, address);
    let (is_held, is_said) = match service.claim.want {
        Want::Rest { held } => (held, is_refused(&service.subject)),
        Want::Together(_) | Want::These(_) | Want::Count(_) | Want::One { .. } => {
            (service.claim.held.contains(&address), false)
        }
    };
    let is_older = order(segment, &meta) < service.order();
    let segment_stays = if is_made == is_held {
        is_older
    } else {
        is_made
    };
    // Pods lose the whole of their network at once.
    if segment_stays && is_said {
        return;
    }
    let (loser, field, by) = if segment_stays {
        let field = field(&service.claim.want, Some(address));
        (&service.subject, field, segment)
    } else {
        (segment, "spec.networkRef".to_owned(), &service.subject)
    };
    let share = handed_out.shares.entry(loser.clone()).or_default();
    if segment_stays {
        // No object gets a part of its request: the rest is what it had.
        let kept = plain(&share.addresses);
        let kept = kept.filter(|one| *one != address && service.claim.held.contains(one));
        share.addresses = lists(&kept.collect::<Vec<_>>());
    }
    let kind = problem::Kind::AddressTaken {
        address,
        by: by.clone(),
    };
    share
        .problems
        .push(Problem::new(loser.clone(), field, kind));
}

/// Whether a segment has an address on nodes.
fn is_made(view: &View<'_>, segment: &ObjectRef, address: IpAddr) -> bool {
    let Some(status) = view.status::<kinds::Layer2Attachment>(&segment.key) else {
        return false;
    };
    let gateways = status
        .anycast
        .iter()
        .flat_map(|anycast| [anycast.gatewayv4, anycast.gateway]);
    let gateways = gateways.flatten().map(HostCidr::addr);
    let nodes = status.node_addresses.values().flat_map(plain);
    gateways.chain(nodes).any(|one| one == address)
}
