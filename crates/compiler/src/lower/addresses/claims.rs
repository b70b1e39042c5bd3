//! What everybody wants of a ground, and what it has of it already.

use std::{borrow::Borrow, collections::BTreeMap, net::IpAddr};

use api::{
    tcaas::{AddressLists, Layer2AttachmentSpec, NetworkSpec},
    value::{HostCidr, Prefix},
};
use ipnet::IpNet;

use super::{
    Input,
    ground::{Asked, Ground, Standing},
    memory::Memory,
    nodes::{self, networks},
    plain,
};
use crate::{
    allocate::{
        self,
        share::{Claim, Want},
    },
    lower::routing::subnets,
    snapshot::{Key, Kind, Meta, ObjectRef, age},
};

/// Somebody who wants addresses.
pub(super) struct Claimant<'a> {
    pub(super) subject: &'a ObjectRef,
    /// The node that the object wants them for, where it wants them for one.
    pub(super) node: Option<&'a str>,
    pub(super) meta: &'a Meta,
    pub(super) claim: Claim,
    /// Whether it needs a pool of the platform that somebody else has.
    pub(super) without_pool: bool,
}

impl Claimant<'_> {
    /// Its place in the order of service.
    pub(super) fn order(&self) -> Order<'_> {
        order(self.subject, self.meta)
    }

    /// Whether it is an Inbound, an Outbound or a PodNetwork.
    pub(super) fn is_service(&self) -> bool {
        let kind = self.subject.kind;
        matches!(kind, Kind::Inbound | Kind::Outbound | Kind::PodNetwork)
    }

    /// Whether it has what it gets for itself alone.
    pub(super) fn is_alone(&self) -> bool {
        !matches!(self.claim.want, Want::Together(_))
    }
}

impl Borrow<Claim> for Claimant<'_> {
    fn borrow(&self) -> &Claim {
        &self.claim
    }
}

/// Order of service: creation time, then name.
type Order<'a> = ((bool, Option<&'a str>), &'a Key, Kind);

pub(super) fn order<'a>(subject: &'a ObjectRef, meta: &'a Meta) -> Order<'a> {
    (age(meta), &subject.key, subject.kind)
}

/// A ground with everybody who wants some of it, in the order of service.
pub(super) struct Claims<'a> {
    pub(super) members: &'a [ObjectRef],
    pub(super) prefixes: Vec<Prefix>,
    pub(super) claimants: Vec<Claimant<'a>>,
    /// Its networks, and what is held outside of them; none where nobody wants anything.
    pub(super) footprint: Vec<IpNet>,
    pub(super) asked: Asked,
}

/// The claims on grounds.
pub(super) fn on<'a>(
    input: Input<'a>,
    memory: &Memory<'_>,
    grounds: &BTreeMap<&'a Ground, &'a Standing>,
) -> BTreeMap<&'a Ground, Claims<'a>> {
    let mut all = Vec::new();
    let mut segments = Vec::new();
    for (ground, standing) in grounds {
        let mut claims = Claims {
            members: &standing.members,
            prefixes: ground.prefixes(input.snapshot),
            claimants: Vec::new(),
            footprint: Vec::new(),
            asked: Asked::default(),
        };
        for subject in &standing.members {
            let own = claims.claimant(input, memory, subject);
            claims.claimants.extend(own);
            if let Some(segment) = nodes::segment(input, subject) {
                claims.asked.nodes = true;
                segments.push((all.len(), segment));
            }
        }
        all.push((*ground, claims));
    }
    for (place, claimant, is_told) in nodes::claims(input.snapshot, &segments) {
        if let Some((_, claims)) = all.get_mut(place) {
            claims.claimants.push(claimant);
            claims.asked.told |= is_told;
        }
    }
    for (_, claims) in &mut all {
        claims.footprint = claims.footprint();
        let claimants = &mut claims.claimants;
        claimants.sort_by(|a, b| a.order().cmp(&b.order()));
    }
    all.into_iter().collect()
}

impl<'a> Claims<'a> {
    fn footprint(&self) -> Vec<IpNet> {
        if self.claimants.is_empty() {
            return Vec::new();
        }
        let prefixes = || self.prefixes.iter().map(|prefix| prefix.net());
        let alone = self.claimants.iter().filter(|one| one.is_alone());
        let held = alone.flat_map(|one| &one.claim.held);
        let outside = held.filter(|held| !prefixes().any(|net| net.contains(*held)));
        let outside = outside.copied().map(IpNet::from);
        let mut footprint: Vec<IpNet> = prefixes().chain(outside).collect();
        footprint.sort_unstable();
        footprint.dedup();
        footprint
    }

    /// What an object wants for itself.
    fn claimant(
        &mut self,
        input: Input<'a>,
        memory: &Memory<'_>,
        subject: &'a ObjectRef,
    ) -> Option<Claimant<'a>> {
        let (snapshot, key) = (input.snapshot, &subject.key);
        let (meta, claim) = match subject.kind {
            Kind::Layer2Attachment => attachment(input, key)?,
            Kind::Inbound => {
                let object = snapshot.inbounds.get(key)?;
                let status = object.status.as_ref().map(|status| &status.addresses);
                let held = self.held(memory, subject, status);
                let spec = &object.spec;
                let claim = wanted(spec.count, spec.addresses.as_ref(), held);
                (&object.meta, claim)
            }
            Kind::Outbound => {
                let object = snapshot.outbounds.get(key)?;
                let status = object.status.as_ref().map(|status| &status.addresses);
                let held = self.held(memory, subject, status);
                let spec = &object.spec;
                let claim = wanted(spec.count, spec.addresses.as_ref(), held);
                (&object.meta, claim)
            }
            Kind::PodNetwork => {
                let object = snapshot.pod_networks.get(key)?;
                let status = object.status.as_ref();
                let want = Want::Rest {
                    held: status.is_some_and(|status| !status.ip_pools.is_empty()),
                };
                let held = Vec::new();
                (&object.meta, Claim { want, held })
            }
            _ => written(input, key)?,
        };
        Some(Claimant {
            subject,
            node: None,
            meta,
            claim,
            without_pool: false,
        })
    }

    /// What a service holds: what its status says, or, where that was lost, what it announces.
    fn held(
        &mut self,
        memory: &Memory<'_>,
        subject: &ObjectRef,
        status: Option<&AddressLists>,
    ) -> Vec<IpAddr> {
        let status: Vec<IpAddr> = status.into_iter().flat_map(plain).collect();
        if !status.is_empty() {
            return status;
        }
        let announced = memory.announced(subject).to_vec();
        let asked = &mut self.asked.announced;
        asked.insert(subject.clone(), announced.clone());
        announced
    }
}

/// An attachment needs its gateway, which it shares.
fn attachment<'a>(input: Input<'a>, key: &Key) -> Option<(&'a Meta, Claim)> {
    let object = input.snapshot.layer2_attachments.get(key)?;
    let network = Key::named(&object.spec.network_ref);
    let network = input.snapshot.networks.get(&network)?;
    let status = object.status.as_ref();
    let anycast = status.and_then(|status| status.anycast.as_ref());
    let held = anycast
        .into_iter()
        .flat_map(|anycast| [anycast.gatewayv4, anycast.gateway]);
    let claim = Claim {
        want: Want::Together(anycast_gateways(&object.spec, &network.spec)),
        held: held.flatten().map(HostCidr::addr).collect(),
    };
    Some((&object.meta, claim))
}

/// The gateways that an attachment really makes.
fn anycast_gateways(spec: &Layer2AttachmentSpec, network: &NetworkSpec) -> Vec<IpAddr> {
    if spec.disable_anycast || spec.interface_ref.is_some() || !network.managed {
        return Vec::new();
    }
    let gateways = subnets(network).into_iter().filter_map(allocate::gateway);
    gateways.map(HostCidr::addr).collect()
}

/// People's own segment needs its gateways, and those of its routes.
fn written<'a>(input: Input<'a>, key: &Key) -> Option<(&'a Meta, Claim)> {
    let object = input.written.get(&key.name)?;
    if networks(&object.spec).is_empty() {
        return None;
    }
    let own = object.spec.anycast_gateways.iter().map(|one| one.addr());
    let routes = object.spec.static_routes.iter().map(|one| one.next_hop);
    let fixed: Vec<IpAddr> = own.chain(routes).collect();
    let claim = Claim {
        want: Want::Together(fixed.clone()),
        held: fixed,
    };
    Some((&object.meta, claim))
}

/// One that does not say what it wants, or says it twice, keeps what it has.
fn wanted(count: Option<u32>, addresses: Option<&AddressLists>, held: Vec<IpAddr>) -> Claim {
    let want = match (count, addresses) {
        (Some(count), None) => Want::Count(count),
        (None, Some(addresses)) => Want::These(plain(addresses).collect()),
        (None, None) | (Some(_), Some(_)) => Want::These(held.clone()),
    };
    Claim { want, held }
}
