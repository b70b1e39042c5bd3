//! A gateway and a service of another Network may have one address only where no VRF reaches both.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use api::value::{Prefix, VrfName};

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
    lower::intent,
    problem::{self, Problem},
    snapshot::{Key, ObjectRef, kinds},
    view::View,
};

/// The VRFs that an object reaches.
fn vrfs(view: &View<'_>, subject: &ObjectRef) -> BTreeSet<VrfName> {
    let Some(selector) = intent::destinations(view, subject) else {
        return BTreeSet::new();
    };
    let chosen = view.destinations(&selector);
    let vrfs = chosen.iter().filter_map(|key| {
        let destination = view.spec::<kinds::Destination>(key)?;
        let vrf = view.vrf(&Key::named(destination.vrf_ref.as_ref()?))?;
        Some(vrf.name.clone())
    });
    vrfs.collect()
}

/// Whether a VRF reaches both.
fn meet(view: &View<'_>, one: &ObjectRef, other: &ObjectRef) -> bool {
    !vrfs(view, one).is_disjoint(&vrfs(view, other))
}

/// The gateways of attachments, each with its Network.
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
                if let Want::Together(addresses) = &claimant.claim.want {
                    for address in addresses {
                        let there = gateways.0.entry(*address).or_default();
                        there.push((network, &claimant.subject));
                    }
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

    /// Gateways of other Networks that services of this one must go round.
    pub(super) fn in_the_way(
        &self,
        view: &View<'_>,
        network: &str,
        prefixes: &[Prefix],
        claimants: &[Claimant],
    ) -> Vec<IpAddr> {
        let here = prefixes.iter().flat_map(|prefix| {
            let net = prefix.net();
            self.0.range(net.network()..=net.broadcast())
        });
        let here = here.map(|(address, _)| *address);
        let in_the_way = here.filter(|address| {
            self.elsewhere(network, *address).any(|gateway| {
                let mut services = claimants.iter().filter(|one| one.is_service());
                services.any(|service| meet(view, gateway, &service.subject))
            })
        });
        in_the_way.collect()
    }

    /// Takes an address that is a gateway and a service's from the younger; the one that holds it keeps it.
    pub(super) fn settle(
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
            for address in plain(&share.addresses).collect::<Vec<_>>() {
                for gateway in self.elsewhere(drawing.network, address) {
                    if meet(view, gateway, &service.subject) {
                        contest(view, handed_out, service, gateway, address);
                    }
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
    gateway: &ObjectRef,
    address: IpAddr,
) {
    let Some(meta) = view.meta_of(gateway) else {
        return;
    };
    let refused = handed_out.shares.get(gateway);
    if refused.is_some_and(|share| !share.problems.is_empty()) {
        return;
    }
    let status = view.status::<kinds::Layer2Attachment>(&gateway.key);
    let anycast = status.as_ref().and_then(|status| status.anycast.as_ref());
    let mut held = anycast
        .into_iter()
        .flat_map(|anycast| [anycast.gatewayv4, anycast.gateway]);
    let is_made = held.any(|one| one.is_some_and(|one| one.addr() == address));
    let is_held = service.claim.held.contains(&address);
    let is_older = order(gateway, &meta) < service.order();
    let gateway_stays = if is_made == is_held {
        is_older
    } else {
        is_made
    };
    let (loser, field, by) = if gateway_stays {
        let field = field(&service.claim.want, Some(address));
        (&service.subject, field, gateway)
    } else {
        (gateway, "spec.networkRef".to_owned(), &service.subject)
    };
    let share = handed_out.shares.entry(loser.clone()).or_default();
    if gateway_stays {
        // Nobody has a part of what it wants: what is left is what it had.
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
