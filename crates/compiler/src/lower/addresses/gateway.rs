//! A gateway and a service of another Network may have one address only where no VRF reaches both.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use api::{
    meta::LabelSelector,
    value::{Prefix, VrfName},
};

use super::{
    Input,
    claims::{Claimant, Claims, order},
    ground::Ground,
    lists,
    overlap::Drawing,
    plain,
    sharing::{HandedOut, field},
};
use crate::{
    allocate::share::Want,
    problem::{self, Problem},
    snapshot::{Key, Kind, ObjectRef},
};

impl<'a> Input<'a> {
    fn selector(&self, subject: &ObjectRef) -> Option<&'a LabelSelector> {
        let (key, snapshot) = (&subject.key, self.snapshot);
        match subject.kind {
            Kind::Layer2Attachment => {
                let object = snapshot.layer2_attachments.get(key)?;
                object.spec.destinations.as_ref()
            }
            Kind::Inbound => snapshot.inbounds.get(key)?.spec.destinations.as_ref(),
            Kind::Outbound => snapshot.outbounds.get(key)?.spec.destinations.as_ref(),
            Kind::PodNetwork => snapshot.pod_networks.get(key)?.spec.destinations.as_ref(),
            _ => None,
        }
    }

    fn vrfs(&self, subject: &ObjectRef) -> BTreeSet<&'a VrfName> {
        let selector = self.selector(subject).into_iter();
        let chosen =
            selector.flat_map(|selector| self.destinations.select(self.snapshot, selector));
        let vrfs = chosen.filter_map(|(_, destination)| destination.spec.vrf_ref.as_ref());
        let vrfs = vrfs.filter_map(|vrf| self.vrfs.get(&Key::named(vrf)));
        vrfs.map(|vrf| &vrf.name).collect()
    }

    /// Whether a VRF reaches both.
    fn meet(&self, one: &ObjectRef, other: &ObjectRef) -> bool {
        !self.vrfs(one).is_disjoint(&self.vrfs(other))
    }
}

/// The gateways of attachments, each with its Network.
#[derive(Default)]
pub(super) struct Gateways<'a>(BTreeMap<IpAddr, Vec<(&'a str, &'a ObjectRef)>>);

impl<'a> Gateways<'a> {
    pub(super) fn of(islands: &BTreeMap<&'a Ground, Claims<'a>>) -> Self {
        let mut gateways = Self::default();
        for (ground, claims) in islands {
            let Ground::Network(network) = ground else {
                continue;
            };
            for claimant in &claims.claimants {
                if let Want::Together(addresses) = &claimant.claim.want {
                    for address in addresses {
                        let there = gateways.0.entry(*address).or_default();
                        there.push((network, claimant.subject));
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

    /// Gateways of other Networks that services of this one must go round; nothing where there are no such gateways.
    pub(super) fn in_the_way(
        &self,
        input: Input<'_>,
        (network, prefixes): (&str, &[Prefix]),
        claimants: &[Claimant<'_>],
    ) -> Option<Vec<IpAddr>> {
        let here = prefixes.iter().flat_map(|prefix| {
            let net = prefix.net();
            self.0.range(net.network()..=net.broadcast())
        });
        let here = here.map(|(address, _)| *address);
        let mut here = here
            .filter(|address| self.elsewhere(network, *address).next().is_some())
            .peekable();
        here.peek()?;
        let in_the_way = here.filter(|address| {
            self.elsewhere(network, *address).any(|gateway| {
                let mut services = claimants.iter().filter(|one| one.is_service());
                services.any(|service| input.meet(gateway, service.subject))
            })
        });
        Some(in_the_way.collect())
    }

    /// Takes an address that is a gateway and a service's from the younger; whoever holds it keeps it. Says for the services of which
    /// Networks it was asked which VRFs reach them.
    pub(super) fn settle(
        &self,
        input: Input<'_>,
        drawings: &[Drawing<'a>],
        handed_out: &mut HandedOut<'a>,
    ) -> BTreeSet<&'a str> {
        let mut asked = BTreeSet::new();
        for drawing in drawings {
            let service = &drawing.claimant;
            let Some(share) = handed_out.shares.get(service.subject) else {
                continue;
            };
            for address in plain(&share.addresses).collect::<Vec<_>>() {
                for gateway in self.elsewhere(drawing.network, address) {
                    asked.insert(drawing.network);
                    if input.meet(gateway, service.subject) {
                        contest(input, handed_out, service, (gateway, address));
                    }
                }
            }
        }
        asked
    }
}

/// Takes an address from a service, or refuses it to an attachment.
fn contest<'a>(
    input: Input<'_>,
    handed_out: &mut HandedOut<'a>,
    service: &Claimant<'a>,
    (gateway, address): (&'a ObjectRef, IpAddr),
) {
    let Some(attachment) = input.snapshot.layer2_attachments.get(&gateway.key) else {
        return;
    };
    let refused = handed_out.shares.get(gateway);
    if refused.is_some_and(|share| !share.problems.is_empty()) {
        return;
    }
    let status = attachment.status.as_ref();
    let anycast = status.and_then(|status| status.anycast.as_ref());
    let mut held = anycast
        .into_iter()
        .flat_map(|anycast| [anycast.gatewayv4, anycast.gateway]);
    let is_made = held.any(|one| one.is_some_and(|one| one.addr() == address));
    let is_held = service.claim.held.contains(&address);
    let is_older = order(gateway, &attachment.meta) < service.order();
    let gateway_stays = if is_made == is_held {
        is_older
    } else {
        is_made
    };
    let (loser, field, by) = if gateway_stays {
        let field = field(&service.claim.want, Some(address));
        (service.subject, field, gateway)
    } else {
        (gateway, "spec.networkRef".to_owned(), service.subject)
    };
    let share = handed_out.shares.entry(loser).or_default();
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
