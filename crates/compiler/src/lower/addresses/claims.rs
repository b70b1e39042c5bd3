//! What all consumers want of a pool, and what they have of it already.

use std::{borrow::Borrow, collections::BTreeSet, net::IpAddr, sync::Arc};

use api::{
    tcaas::{AddressLists, Layer2AttachmentSpec, NetworkSpec},
    value::{HostCidr, Prefix},
};
use ipnet::IpNet;

use super::{
    nodes::{self, networks},
    plain,
    pool::{AddressPool, ConsumersByPool},
    withheld::announced,
};
use crate::{
    allocate::{
        self,
        share::{Claim, Want},
    },
    lower::{
        intent,
        low_level::{HandWritten, LowLevelObject, StoredByOwner},
        routing::subnets,
    },
    memo::Query,
    snapshot::{Key, Kind, Meta, ObjectRef, age, kinds},
    view::View,
};

/// One who wants addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claimant {
    pub(super) subject: ObjectRef,
    /// The node that the object wants them for, where it wants them for one.
    pub(super) node: Option<Arc<str>>,
    pub(super) meta: Arc<Meta>,
    pub(super) claim: Claim,
    /// Whether it needs a pool of the platform that another object has.
    pub(super) without_pool: bool,
}

impl Claimant {
    /// Its place in the order of service.
    pub(super) fn order(&self) -> Order<'_> {
        order(&self.subject, &self.meta)
    }

    /// Whether it is an Inbound, an Outbound or a PodNetwork.
    pub(super) fn is_service(&self) -> bool {
        self.subject.kind.is_service()
    }

    /// Whether it has what it gets for itself alone.
    pub(super) fn is_alone(&self) -> bool {
        !matches!(self.claim.want, Want::Together(_))
    }
}

impl Borrow<Claim> for Claimant {
    fn borrow(&self) -> &Claim {
        &self.claim
    }
}

/// Order of service: creation time, then name.
type Order<'a> = ((bool, Option<&'a str>), &'a Key, Kind);

pub(super) fn order<'a>(subject: &'a ObjectRef, meta: &'a Meta) -> Order<'a> {
    (age(meta), &subject.key, subject.kind)
}

/// A pool with all who want some of it, in the order of service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    pub(super) prefixes: Vec<Prefix>,
    pub(super) claimants: Vec<Claimant>,
    /// Its networks, and the addresses that are held outside of them; empty without claims.
    pub(super) footprint: Vec<IpNet>,
}

/// The claims on a pool.
pub(crate) struct ClaimsOn;
impl Query for ClaimsOn {
    type Key = AddressPool;
    type Value = Arc<Claims>;
    fn compute(view: &View<'_>, pool: &AddressPool) -> Arc<Claims> {
        let mut claims = Claims {
            prefixes: pool.prefixes(view),
            ..Claims::default()
        };
        for subject in view.who::<ConsumersByPool>(pool).iter() {
            claims.claimants.extend(claimant(view, subject));
            if let Some(segment) = nodes::segment(view, subject)
                && (was_served(view, subject) || intent::is_servable(view, subject))
            {
                claims.claimants.extend(nodes::claimants(view, &segment));
            }
        }
        claims.footprint = claims.footprint();
        let claimants = &mut claims.claimants;
        claimants.sort_by(|a, b| (a.order(), &a.node).cmp(&(b.order(), &b.node)));
        Arc::new(claims)
    }
}

impl Claims {
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
}

/// What an object wants for itself.
fn claimant(view: &View<'_>, subject: &ObjectRef) -> Option<Claimant> {
    let claim = match subject.kind.intent() {
        Some(kind) => intent::claim(view, kind, subject)?,
        None => written(view, subject)?,
    };
    // One that was never served, and cannot be, holds nothing.
    let holds = !claim.held.is_empty() || matches!(claim.want, Want::Rest { held: true });
    if !holds && !was_served(view, subject) && !intent::is_servable(view, subject) {
        return None;
    }
    Some(Claimant {
        subject: subject.clone(),
        node: None,
        meta: view.meta_of(subject)?,
        claim,
        without_pool: false,
    })
}

/// Whether an intent became something before: it may run, also where its status was lost.
fn was_served(view: &View<'_>, subject: &ObjectRef) -> bool {
    let is_intent = subject.kind.intent().is_some();
    is_intent && view.has::<StoredByOwner>(&Some(subject.clone()))
}

/// What a service wants that asks for a number of addresses, or for some by name.
pub(in crate::lower) fn of_service(
    view: &View<'_>,
    subject: &ObjectRef,
    count: Option<u32>,
    addresses: Option<&AddressLists>,
    status: Option<&AddressLists>,
) -> Claim {
    wanted(count, addresses, held(view, subject, status))
}

/// What a service wants whose pods may have every address that no other object holds.
pub(in crate::lower) fn of_pods(has_pools: bool) -> Claim {
    Claim {
        want: Want::Rest { held: has_pools },
        held: Vec::new(),
    }
}

/// What a service holds: what its status says, or, where that was lost, what it announces.
fn held(view: &View<'_>, subject: &ObjectRef, status: Option<&AddressLists>) -> Vec<IpAddr> {
    let status: Vec<IpAddr> = status.into_iter().flat_map(plain).collect();
    if status.is_empty() {
        announced(view, subject)
    } else {
        status
    }
}

/// An attachment needs its gateway, which it shares.
pub(in crate::lower) fn of_attachment(view: &View<'_>, key: &Key) -> Option<Claim> {
    let spec = view.spec::<kinds::Layer2Attachment>(key)?;
    let network = view.network(&spec.network_ref)?;
    let status = view.status::<kinds::Layer2Attachment>(key);
    let anycast = status.as_ref().and_then(|status| status.anycast.as_ref());
    let held = anycast
        .into_iter()
        .flat_map(|anycast| [anycast.gatewayv4, anycast.gateway]);
    let held = held.flatten().map(HostCidr::addr);
    let mut wanted = anycast_gateways(&spec, &network);
    wanted.extend(next_hops(view, &spec, &network));
    Some(Claim {
        want: Want::Together(wanted),
        held: held.collect(),
    })
}

/// The routers on the segment of an attachment to a device of the node: their addresses are no node's.
fn next_hops(
    view: &View<'_>,
    spec: &Layer2AttachmentSpec,
    network: &NetworkSpec,
) -> BTreeSet<IpAddr> {
    let selector = spec.destinations.as_ref();
    let selector = selector.filter(|_| spec.interface_ref.is_some() && network.managed);
    let Some(selector) = selector.filter(|selector| selector.check().is_ok()) else {
        return BTreeSet::new();
    };
    let destinations = view.destinations(selector);
    let destinations = destinations.iter();
    let specs = destinations.filter_map(|key| view.spec::<kinds::Destination>(key));
    let next_hops = specs.filter_map(|spec| spec.next_hop.clone());
    let addresses = next_hops.flat_map(|next_hop| {
        let ipv4 = next_hop.ipv4.map(IpAddr::V4);
        let ipv6 = next_hop.ipv6.map(IpAddr::V6);
        [ipv4, ipv6].into_iter().flatten()
    });
    let subnets = subnets(network);
    let is_inside = |address: &IpAddr| subnets.iter().any(|one| one.net().contains(address));
    addresses.filter(is_inside).collect()
}

/// The gateways that an attachment really makes.
fn anycast_gateways(spec: &Layer2AttachmentSpec, network: &NetworkSpec) -> Vec<IpAddr> {
    if spec.disable_anycast || spec.interface_ref.is_some() || !network.managed {
        return Vec::new();
    }
    let gateways = subnets(network).into_iter().filter_map(allocate::gateway);
    gateways.map(HostCidr::addr).collect()
}

/// A hand-written segment needs its gateways, and those of its routes.
fn written(view: &View<'_>, subject: &ObjectRef) -> Option<Claim> {
    let LowLevelObject::Layer2(object) = view.get::<HandWritten>(subject)? else {
        return None;
    };
    if networks(&object.spec).is_empty() {
        return None;
    }
    let own = object.spec.anycast_gateways.iter().map(|one| one.addr());
    let routes = object.spec.static_routes.iter().map(|one| one.next_hop);
    let fixed: Vec<IpAddr> = own.chain(routes).collect();
    Some(Claim {
        want: Want::Together(fixed.clone()),
        held: fixed,
    })
}

/// One with no request, or with two, keeps its addresses.
fn wanted(count: Option<u32>, addresses: Option<&AddressLists>, held: Vec<IpAddr>) -> Claim {
    let want = match (count, addresses) {
        (Some(count), None) => Want::Count(count),
        (None, Some(addresses)) => Want::These(plain(addresses).collect()),
        (None, None) | (Some(_), Some(_)) => Want::These(held.clone()),
    };
    Claim { want, held }
}
