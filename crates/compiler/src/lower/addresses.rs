//! Who has which address: the claims of everybody on a `Network`, and what comes of them.
//!
//! Gateways of attachments, addresses of nodes, `Inbound`s, `Outbound`s and `PodNetwork`s draw on one network together, so they are
//! served together.

mod gateway;
mod memory;
mod nodes;
mod overlap;

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use api::{
    tcaas::{AddressLists, Layer2AttachmentSpec, Layer2NetworkConfigurationSpec, NetworkSpec},
    value::Prefix,
};

pub(crate) use self::nodes::networks;
use self::{
    gateway::{Gateways, Reached},
    overlap::Drawing,
};
use super::{LowLevelObjects, Lowered, premises::differing, routing::subnets};
use crate::{
    allocate::{
        self,
        share::{Claim, Grant, Refusal, Want, share},
    },
    problem::{self, Problem},
    snapshot::{Key, Kind, Meta, ObjectRef, Snapshot, age},
};

/// What everybody who wants addresses has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Addresses {
    shares: BTreeMap<ObjectRef, Share>,
    /// What nodes have.
    pub(super) nodes: NodeAddresses,
    /// Why nodes have not what they want.
    pub(super) node_problems: Vec<Problem>,
    /// The addresses of each Network that somebody has for itself.
    taken: BTreeMap<String, BTreeSet<IpAddr>>,
    /// Networks that attachments have on nodes over the fabric.
    attached: BTreeSet<String>,
}

/// The addresses that nodes have on a segment, by the object that the segment comes from and by node.
pub type NodeAddresses = BTreeMap<ObjectRef, BTreeMap<String, Vec<IpAddr>>>;

/// What one consumer has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

    /// Networks of which others have what they have, or which are attached where they were not; and consumers who have something else.
    pub(super) fn differing(&self, before: &Self) -> (BTreeSet<String>, BTreeSet<ObjectRef>) {
        let mut networks = differing(&self.taken, &before.taken);
        let attached = self.attached.symmetric_difference(&before.attached);
        networks.extend(attached.cloned());
        (networks, differing(&self.shares, &before.shares))
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

/// What consumers share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ground<'a> {
    /// A Network.
    Network(&'a str),
    /// Networks that people's own segments name.
    Networks(Vec<Prefix>),
}

impl Ground<'_> {
    fn prefixes(&self, snapshot: &Snapshot) -> Vec<Prefix> {
        match self {
            Self::Network(name) => {
                let network = snapshot.networks.get(&Key::named(*name));
                network.map_or_else(Vec::new, |network| subnets(&network.spec))
            }
            Self::Networks(networks) => networks.clone(),
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Network(name) => name,
            Self::Networks(_) => "",
        }
    }
}

type Claimants<'a> = BTreeMap<Ground<'a>, Vec<Claimant<'a>>>;

/// Somebody who wants addresses.
struct Claimant<'a> {
    subject: ObjectRef,
    /// The node that the object wants them for, where it wants them for one.
    node: Option<&'a str>,
    meta: &'a Meta,
    claim: Claim,
    /// Whether it needs a pool of the platform that somebody else has.
    without_pool: bool,
}

impl<'a> Claimant<'a> {
    /// An object that wants addresses for itself.
    fn plain(subject: ObjectRef, meta: &'a Meta, claim: Claim) -> Self {
        Self {
            subject,
            node: None,
            meta,
            claim,
            without_pool: false,
        }
    }

    /// Whether it is an Inbound, an Outbound or a PodNetwork.
    fn is_service(&self) -> bool {
        let kind = self.subject.kind;
        matches!(kind, Kind::Inbound | Kind::Outbound | Kind::PodNetwork)
    }

    /// Whether it has what it gets for itself alone.
    fn is_alone(&self) -> bool {
        !matches!(self.claim.want, Want::Together(_))
    }
}

/// Shares out the addresses of every Network, and of the networks of people's own segments.
pub(super) fn allocate(snapshot: &Snapshot, lowered: &Lowered) -> Addresses {
    let written = &*lowered.written.layer2;
    let reached = Reached { snapshot, lowered };
    let mut grounds = Claimants::new();
    gateways(snapshot, written, &mut grounds);
    services(snapshot, &mut grounds);
    for (ground, claimant) in nodes::claims(snapshot, written) {
        grounds.entry(ground).or_default().push(claimant);
    }
    let over_fabric = snapshot.layer2_attachments.values();
    let over_fabric = over_fabric.filter(|one| one.spec.interface_ref.is_none());
    let mut addresses = Addresses {
        attached: over_fabric
            .map(|one| one.spec.network_ref.clone())
            .collect(),
        ..Addresses::default()
    };
    let gateways = Gateways::of(&grounds);
    // What somebody has or has got by now; networks may overlap.
    let alone = grounds.values().flatten().filter(|one| one.is_alone());
    let held = alone.flat_map(|claimant| claimant.claim.held.iter().copied());
    let mut given: BTreeSet<IpAddr> = held.collect();
    let spoken_for = OnceCell::new();
    let mut drawings = Vec::new();
    for (ground, mut claimants) in grounds {
        let prefixes = ground.prefixes(snapshot);
        claimants.sort_by(|a, b| order(a).cmp(&order(b)));
        let pool_owner = pool_owner(&mut claimants);
        let claims: Vec<Claim> = claimants.iter().map(|one| one.claim.clone()).collect();
        let grants = if prefixes.is_empty() {
            claims.iter().map(unchanged).collect()
        } else {
            let spoken_for = || spoken_for.get_or_init(|| memory::spoken_for(snapshot));
            let in_the_way =
                || gateways.in_the_way(reached, (ground.name(), &prefixes), &claimants);
            let lingering = || within(&prefixes, &given).chain(within(&prefixes, spoken_for()));
            share(&prefixes, &claims, || {
                lingering().chain(in_the_way()).collect()
            })
        };
        let shared = Shared {
            network: ground.name(),
            prefixes: &prefixes,
            claimants: &claimants,
            pool_owner: pool_owner.as_ref(),
        };
        for (claimant, grant) in claimants.iter().zip(&grants) {
            shared.hand_out(claimant, grant, &mut addresses);
        }
        if let Ground::Network(name) = ground {
            let taken = grants.iter().flat_map(|grant| grant.addresses.clone());
            addresses.taken.insert(name.to_owned(), taken.collect());
        }
        for (claimant, grant) in claimants.into_iter().zip(grants) {
            if claimant.is_alone() {
                given.extend(grant.addresses);
            }
            if let (Ground::Network(network), true) = (&ground, claimant.is_service()) {
                let has_pool = pool_owner.as_ref() == Some(&claimant.subject);
                drawings.push(Drawing {
                    network,
                    claimant,
                    pool: if has_pool {
                        prefixes.clone()
                    } else {
                        Vec::new()
                    },
                });
            }
        }
    }
    overlap::settle(&mut drawings, &mut addresses);
    gateways.settle(reached, &drawings, &mut addresses);
    addresses
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
    fn hand_out(&self, claimant: &Claimant<'_>, grant: &Grant, addresses: &mut Addresses) {
        let subject = &claimant.subject;
        if let Some(node) = claimant.node {
            let strange = |one: &&IpAddr| !self.prefixes.iter().any(|net| net.net().contains(*one));
            // What it has of another network it needs as long as its segment, for a problem, stays as it was.
            let strange = claimant.claim.held.iter().filter(strange);
            let mut own: Vec<IpAddr> = grant.addresses.iter().chain(strange).copied().collect();
            own.sort_unstable();
            own.dedup();
            if !own.is_empty() {
                let nodes = addresses.nodes.entry(subject.clone()).or_default();
                nodes.insert(node.to_owned(), own);
            }
            addresses
                .node_problems
                .extend(self.node_problem(claimant, node, grant));
            return;
        }
        let share = addresses.shares.entry(subject.clone()).or_default();
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

/// Attachments need their gateway, which they share; people's own segments theirs, and those of their routes.
fn gateways<'a>(
    snapshot: &'a Snapshot,
    written: &'a LowLevelObjects<Layer2NetworkConfigurationSpec>,
    grounds: &mut Claimants<'a>,
) {
    for (key, object) in &snapshot.layer2_attachments {
        let name = object.spec.network_ref.as_str();
        let Some(network) = snapshot.networks.get(&Key::named(name)) else {
            continue;
        };
        let status = object.status.as_ref();
        let anycast = status.and_then(|status| status.anycast.as_ref());
        let held = anycast
            .into_iter()
            .flat_map(|anycast| [anycast.gatewayv4, anycast.gateway]);
        let subject = ObjectRef {
            kind: Kind::Layer2Attachment,
            key: key.clone(),
        };
        let claim = Claim {
            want: Want::Together(anycast_gateways(&object.spec, &network.spec)),
            held: held.flatten().map(api::value::HostCidr::addr).collect(),
        };
        let claimants = grounds.entry(Ground::Network(name)).or_default();
        claimants.push(Claimant::plain(subject, &object.meta, claim));
    }
    for object in written.values() {
        let networks = networks(&object.spec);
        if networks.is_empty() {
            continue;
        }
        let own = object.spec.anycast_gateways.iter().map(|one| one.addr());
        let routes = object.spec.static_routes.iter().map(|one| one.next_hop);
        let fixed: Vec<IpAddr> = own.chain(routes).collect();
        let claim = Claim {
            want: Want::Together(fixed.clone()),
            held: fixed,
        };
        let claimants = grounds.entry(Ground::Networks(networks)).or_default();
        claimants.push(Claimant::plain(object.source.clone(), &object.meta, claim));
    }
}

/// The gateways that an attachment really makes.
fn anycast_gateways(spec: &Layer2AttachmentSpec, network: &NetworkSpec) -> Vec<IpAddr> {
    if spec.disable_anycast || spec.interface_ref.is_some() || !network.managed {
        return Vec::new();
    }
    let gateways = subnets(network).into_iter().filter_map(allocate::gateway);
    gateways.map(api::value::HostCidr::addr).collect()
}

fn services<'a>(snapshot: &'a Snapshot, grounds: &mut Claimants<'a>) {
    let remembered = memory::remembered(snapshot);
    let mut add = |network: &'a str, subject: ObjectRef, meta: &'a Meta, claim| {
        let claimants = grounds.entry(Ground::Network(network)).or_default();
        claimants.push(Claimant::plain(subject, meta, claim));
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
