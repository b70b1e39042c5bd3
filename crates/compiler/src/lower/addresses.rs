//! Who has which address: the claims of everybody on a `Network`, and what comes of them.
//!
//! Gateways of attachments, addresses of nodes, `Inbound`s, `Outbound`s and `PodNetwork`s draw on one network together, so they are
//! served together.

mod overlap;

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use api::{
    tcaas::{AddressLists, Layer2AttachmentSpec, NetworkSpec},
    value::Prefix,
};

use self::overlap::Drawing;
use super::routing::subnets;
use crate::{
    allocate::{
        self,
        share::{Claim, Grant, Refusal, Want, share},
    },
    problem::{self, Problem},
    snapshot::{Key, Kind, Meta, ObjectRef, Objects, Snapshot, age},
};

/// What everybody who wants addresses has.
#[derive(Clone, Debug, Default)]
pub(super) struct Addresses {
    shares: BTreeMap<ObjectRef, Share>,
    /// The addresses of each Network that somebody has for itself.
    taken: BTreeMap<String, BTreeSet<IpAddr>>,
    /// Networks that attachments have on nodes over the fabric.
    attached: BTreeSet<String>,
}

/// What one consumer has.
#[derive(Clone, Debug, Default)]
pub(super) struct Share {
    /// Its addresses; also those that it keeps while something is wrong with it.
    pub(super) addresses: AddressLists,
    /// Why it does not have all that it wants.
    pub(super) problems: Vec<Problem>,
}

impl Addresses {
    /// What an object has.
    pub(super) fn of(&self, subject: &ObjectRef) -> Share {
        self.shares.get(subject).cloned().unwrap_or_default()
    }

    /// Whether an attachment has the Network on nodes over the fabric.
    pub(super) fn is_attached(&self, network: &str) -> bool {
        self.attached.contains(network)
    }

    /// The addresses of a Network that somebody has for itself.
    pub(super) fn taken(&self, network: &str) -> impl Iterator<Item = IpAddr> {
        self.taken.get(network).into_iter().flatten().copied()
    }
}

/// Somebody who wants addresses of a Network.
struct Claimant<'a> {
    subject: ObjectRef,
    meta: &'a Meta,
    claim: Claim,
    /// Whether it needs a pool of the platform that somebody else has.
    without_pool: bool,
}

/// Shares out the addresses of every Network.
pub(super) fn allocate(snapshot: &Snapshot) -> Addresses {
    let mut claimants: BTreeMap<&str, Vec<Claimant<'_>>> = BTreeMap::new();
    attachments(snapshot, &mut claimants);
    services(snapshot, &mut claimants);
    let announced = OnceCell::new();
    let over_fabric = snapshot.layer2_attachments.values();
    let over_fabric = over_fabric.filter(|one| one.spec.interface_ref.is_none());
    let mut addresses = Addresses {
        attached: over_fabric
            .map(|one| one.spec.network_ref.clone())
            .collect(),
        ..Addresses::default()
    };
    // What services had or have got by now; Networks may overlap.
    let mut given: BTreeSet<IpAddr> = claimants
        .values()
        .flatten()
        .filter(|claimant| claimant.subject.kind != Kind::Layer2Attachment)
        .flat_map(|claimant| claimant.claim.held.clone())
        .collect();
    let mut drawings = Vec::new();
    for (name, mut claimants) in claimants {
        let network = snapshot.networks.get(&Key::named(name));
        let prefixes = network.map_or_else(Vec::new, |network| subnets(&network.spec));
        claimants.sort_by(|a, b| order(a).cmp(&order(b)));
        let pool_owner = pool_owner(&mut claimants);
        let claims: Vec<Claim> = claimants.iter().map(|one| one.claim.clone()).collect();
        let grants = if prefixes.is_empty() {
            claims.iter().map(unchanged).collect()
        } else {
            let announced = || announced.get_or_init(|| announced_hosts(snapshot));
            let lingering = || within(&prefixes, &given).chain(within(&prefixes, announced()));
            share(&prefixes, &claims, || lingering().collect())
        };
        let taken = grants.iter().flat_map(|grant| grant.addresses.clone());
        addresses.taken.insert(name.to_owned(), taken.collect());
        for (claimant, grant) in claimants.iter().zip(&grants) {
            let mut problems = problems(name, &prefixes, &claimants, claimant, grant);
            if let (true, Some(by)) = (claimant.without_pool, &pool_owner) {
                let (network, by) = (name.to_owned(), by.clone());
                let kind = problem::Kind::NetworkTaken { network, by };
                let subject = claimant.subject.clone();
                problems.push(Problem::new(subject, "spec.networkRef", kind));
            }
            let subject = claimant.subject.clone();
            let share = addresses.shares.entry(subject).or_default();
            share.problems.append(&mut problems);
            share.addresses = lists(&grant.addresses);
        }
        for (claimant, grant) in claimants.into_iter().zip(grants) {
            if claimant.subject.kind == Kind::Layer2Attachment {
                continue;
            }
            given.extend(grant.addresses);
            let has_pool = pool_owner.as_ref() == Some(&claimant.subject);
            drawings.push(Drawing {
                network: name,
                claimant,
                pool: if has_pool {
                    prefixes.clone()
                } else {
                    Vec::new()
                },
            });
        }
    }
    overlap::settle(drawings, &mut addresses);
    addresses
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

/// Order of service: creation time, then name.
fn order<'a>(claimant: &'a Claimant<'_>) -> impl Ord + use<'a> {
    let Claimant { subject, meta, .. } = claimant;
    (age(meta), &subject.key, subject.kind)
}

/// Of a Network that is not there, or has no addresses, everybody keeps what it was given.
fn unchanged(claim: &Claim) -> Grant {
    Grant {
        addresses: claim.held.clone(),
        refusals: Vec::new(),
    }
}

/// Addresses of a network that nodes were told to have: what is left to know them by when a status is lost.
fn told(snapshot: &Snapshot, network: &NetworkSpec) -> Vec<IpAddr> {
    let prefixes = subnets(network);
    let vlan = network.vlan.map(|vlan| vlan.to_string());
    let mut told = Vec::new();
    for config in snapshot.node_network_configs.values() {
        let segment = vlan.as_ref().and_then(|vlan| config.spec.layer2s.get(vlan));
        let interface = segment.and_then(|segment| segment.host_interface.as_ref());
        let over_the_fabric = interface.into_iter().flat_map(|one| &one.addresses);
        let on_devices = config.spec.host_vlans.values();
        let on_devices = on_devices.flat_map(|one| &one.addresses);
        let all = over_the_fabric.chain(on_devices).map(|one| one.addr());
        let own = |address: &IpAddr| prefixes.iter().any(|one| one.net().contains(address));
        told.extend(all.filter(own));
    }
    told
}

/// Attachments need their gateway, which they share, and their nodes have addresses.
fn attachments<'a>(snapshot: &'a Snapshot, claimants: &mut BTreeMap<&'a str, Vec<Claimant<'a>>>) {
    for (key, object) in &snapshot.layer2_attachments {
        let name = object.spec.network_ref.as_str();
        let Some(network) = snapshot.networks.get(&Key::named(name)) else {
            continue;
        };
        let status = object.status.as_ref();
        let nodes = status
            .into_iter()
            .flat_map(|status| status.node_addresses.values());
        let mut nodes: BTreeSet<IpAddr> = nodes.flat_map(plain).collect();
        if object.spec.node_ips.as_ref().is_some_and(|ips| ips.enabled) {
            nodes.extend(told(snapshot, &network.spec));
        }
        let nodes: Vec<IpAddr> = nodes.into_iter().collect();
        let anycast = status.and_then(|status| status.anycast.as_ref());
        let held = anycast
            .into_iter()
            .flat_map(|anycast| [anycast.gatewayv4, anycast.gateway]);
        let gateways = Claim {
            want: Want::Together(gateways(&object.spec, &network.spec)),
            held: held.flatten().map(api::value::HostCidr::addr).collect(),
        };
        let nodes = Claim {
            want: Want::These(nodes.clone()),
            held: nodes,
        };
        for claim in [nodes, gateways] {
            claimants.entry(name).or_default().push(Claimant {
                subject: ObjectRef {
                    kind: Kind::Layer2Attachment,
                    key: key.clone(),
                },
                meta: &object.meta,
                claim,
                without_pool: false,
            });
        }
    }
}

/// The gateways that an attachment really makes.
fn gateways(spec: &Layer2AttachmentSpec, network: &NetworkSpec) -> Vec<IpAddr> {
    if spec.disable_anycast || spec.interface_ref.is_some() || !network.managed {
        return Vec::new();
    }
    let gateways = subnets(network).into_iter().filter_map(allocate::gateway);
    gateways.map(api::value::HostCidr::addr).collect()
}

fn services<'a>(snapshot: &'a Snapshot, claimants: &mut BTreeMap<&'a str, Vec<Claimant<'a>>>) {
    let remembered = remembered(snapshot);
    let mut add = |network: &'a str, subject: ObjectRef, meta: &'a Meta, claim| {
        let claimant = Claimant {
            subject,
            meta,
            claim,
            without_pool: false,
        };
        claimants.entry(network).or_default().push(claimant);
    };
    for (key, object) in &snapshot.inbounds {
        let subject = ObjectRef {
            kind: Kind::Inbound,
            key: key.clone(),
        };
        let spec = &object.spec;
        let status = object.status.as_ref().map(|status| &status.addresses);
        let held = held(status, remembered.get(&subject));
        let claim = wanted(spec.count, spec.addresses.as_ref(), held);
        add(&spec.network_ref, subject, &object.meta, claim);
    }
    for (key, object) in &snapshot.outbounds {
        let subject = ObjectRef {
            kind: Kind::Outbound,
            key: key.clone(),
        };
        let spec = &object.spec;
        let status = object.status.as_ref().map(|status| &status.addresses);
        let held = held(status, remembered.get(&subject));
        let claim = wanted(spec.count, spec.addresses.as_ref(), held);
        add(&spec.network_ref, subject, &object.meta, claim);
    }
    for (key, object) in &snapshot.pod_networks {
        let subject = ObjectRef {
            kind: Kind::PodNetwork,
            key: key.clone(),
        };
        let status = object.status.as_ref();
        let held = status.is_some_and(|status| !status.ip_pools.is_empty());
        let claim = Claim {
            want: Want::Rest { held },
            held: Vec::new(),
        };
        add(&object.spec.network_ref, subject, &object.meta, claim);
    }
}

/// Who has the pool over a Network that pods are given addresses from. The platform takes no two pools that overlap, so there is one:
/// whoever has it keeps it, then the older is served first. The others get nothing new.
fn pool_owner(claimants: &mut [Claimant<'_>]) -> Option<ObjectRef> {
    let needs_pool =
        |one: &&mut Claimant<'_>| matches!(one.subject.kind, Kind::Outbound | Kind::PodNetwork);
    let holds = |one: &Claimant<'_>| match one.claim.want {
        Want::Rest { held } => held,
        _ => !one.claim.held.is_empty(),
    };
    let mut rivals: Vec<&mut Claimant<'_>> = claimants.iter_mut().filter(needs_pool).collect();
    rivals.sort_by_key(|one| !holds(one));
    let mut rivals = rivals.into_iter();
    let owner = rivals.next()?.subject.clone();
    for rival in rivals {
        rival.claim.want = Want::These(rival.claim.held.clone());
        rival.without_pool = true;
    }
    Some(owner)
}

/// What a consumer holds: what its status says, or, where that was lost, what it announces.
fn held(status: Option<&AddressLists>, announced: Option<&Vec<IpAddr>>) -> Vec<IpAddr> {
    let status: Vec<IpAddr> = status.into_iter().flat_map(plain).collect();
    if status.is_empty() {
        announced.cloned().unwrap_or_default()
    } else {
        status
    }
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

/// The host routes that each intent's generated objects announce.
fn remembered(snapshot: &Snapshot) -> BTreeMap<ObjectRef, Vec<IpAddr>> {
    let mut remembered: BTreeMap<ObjectRef, Vec<IpAddr>> = BTreeMap::new();
    for object in snapshot.vrf_route_configurations.values() {
        let Some(owner) = &object.meta.owner else {
            continue;
        };
        let hosts = object.spec.export.iter().filter_map(|item| host(item.cidr));
        remembered.entry(owner.clone()).or_default().extend(hosts);
    }
    remembered
}

/// Addresses that nodes were told to announce, or that objects announce whose owner cannot be read or is going: they are not given
/// to the next before they are gone.
fn announced_hosts(snapshot: &Snapshot) -> BTreeSet<IpAddr> {
    let mut hosts = BTreeSet::new();
    for (owner, announced) in remembered(snapshot) {
        if !is_present(snapshot, &owner) {
            hosts.extend(announced);
        }
    }
    // Most nodes are told the same; what was seen just before need not be read again.
    let mut seen = BTreeMap::new();
    for config in snapshot.node_network_configs.values() {
        for (name, vrf) in &config.spec.fabric_vrfs {
            let Some(filter) = &vrf.evpn_export_filter else {
                continue;
            };
            if seen.insert(name, filter) == Some(filter) {
                continue;
            }
            let prefixes = filter.items.iter().filter_map(|item| item.matcher.prefix);
            hosts.extend(prefixes.filter_map(|matcher| host(matcher.prefix)));
        }
    }
    hosts
}

fn is_present(snapshot: &Snapshot, subject: &ObjectRef) -> bool {
    fn has<S, T>(objects: &Objects<S, T>, subject: &ObjectRef) -> bool {
        objects.contains_key(&subject.key)
    }
    match subject.kind {
        Kind::Inbound => has(&snapshot.inbounds, subject),
        Kind::Outbound => has(&snapshot.outbounds, subject),
        _ => true,
    }
}

/// The one address of a host route.
fn host(prefix: Prefix) -> Option<IpAddr> {
    let net = prefix.net();
    (net.prefix_len() == net.max_prefix_len()).then(|| net.addr())
}

/// What a refusal says to whom it is about.
fn problems(
    network: &str,
    prefixes: &[Prefix],
    claimants: &[Claimant<'_>],
    claimant: &Claimant<'_>,
    grant: &Grant,
) -> Vec<Problem> {
    if claimant.subject.kind == Kind::Layer2Attachment
        && matches!(claimant.claim.want, Want::These(_))
    {
        // Whoever gives addresses to nodes says what is wrong with them.
        return Vec::new();
    }
    let holder = |by: usize| claimants.get(by).map(|holder| holder.subject.clone());
    let explain = |refusal: &Refusal| {
        let (address, kind) = match refusal {
            Refusal::NoHost(address) => {
                let mut prefixes = prefixes.iter();
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
                let (address, by) = (*address, holder(*by)?);
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
                let (network, by) = (network.to_owned(), holder(*by)?);
                (None, problem::Kind::NetworkTaken { network, by })
            }
        };
        let field = field(&claimant.claim.want, address);
        Some(Problem::new(claimant.subject.clone(), field, kind))
    };
    grant.refusals.iter().filter_map(explain).collect()
}

/// The field that asks for an address.
fn field(want: &Want, address: Option<IpAddr>) -> String {
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

/// The addresses of both families, IPv4 first.
pub(crate) fn plain(lists: &AddressLists) -> impl Iterator<Item = IpAddr> {
    let ipv4 = lists.ipv4.iter().copied().map(IpAddr::V4);
    ipv4.chain(lists.ipv6.iter().copied().map(IpAddr::V6))
}

/// Addresses by family.
fn lists(addresses: &[IpAddr]) -> AddressLists {
    let mut lists = AddressLists::default();
    for address in addresses {
        match address {
            IpAddr::V4(address) => lists.ipv4.push(*address),
            IpAddr::V6(address) => lists.ipv6.push(*address),
        }
    }
    lists
}
