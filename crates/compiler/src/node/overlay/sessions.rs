//! Networks and addresses of host sessions.
//!
//! A session has networks of its own, which its object names or which are blocks of the pool in the settings. In each of them the router has the
//! first address on every node, and every node's host another one, which stays. A session of more nodes than a block has addresses for gets
//! further blocks.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use api::{
    tcaas::node_network_config::HostSession,
    value::{HostCidr, Prefix},
};
use ipnet::IpNet;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Overlay, OverlayOf, Wants, all};
use crate::{
    allocate::{self, Pool},
    memo::{Index, Query},
    node::{
        group::{BuiltFor, HasOverlay, MembersOf},
        selection::{Member, NodesBySignature, Signature},
        underlay::PlansFor,
    },
    problem::{self, Problem},
    snapshot::{Key, ObjectRef, kinds},
    view::View,
};

/// Prefix length of a block of a pool: addresses for 253 nodes in IPv4, and for any number of nodes in IPv6.
const BLOCK_LENGTH: (u8, u8) = (24, 64);
/// How many nodes a block of a pool is for.
const NODES_OF_BLOCK: usize = 253;

/// The networks of a session: those of each family, of which a node has an address in one.
pub(crate) type Networks = Vec<Vec<Prefix>>;

/// An address that the config of a node has on a host session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct InUse {
    node: Arc<str>,
    /// The object of the session, as configs name it.
    source: Arc<str>,
    address: IpAddr,
}

/// The addresses of hosts that configs of nodes have on sessions, by network.
pub(crate) struct SessionsInUse;
impl Index for SessionsInUse {
    type Source = Key;
    type Key = Prefix;
    type Item = InUse;
    fn sources(view: &View<'_>) -> Vec<Key> {
        view.keys::<kinds::NodeNetworkConfig>().to_vec()
    }
    fn entries(view: &View<'_>, node: &Key) -> Vec<(Prefix, InUse)> {
        let Some(config) = view.spec::<kinds::NodeNetworkConfig>(node) else {
            return Vec::new();
        };
        let of_vrfs = config.vrfs().filter_map(|vrf| vrf.host_session.as_ref());
        let sessions = of_vrfs.chain(config.passthroughs.values());
        let entries = sessions.flat_map(|session: &HostSession| {
            let source: Arc<str> = session.source.as_str().into();
            session.host_addresses.iter().map(move |host| {
                let in_use = InUse {
                    node: Arc::clone(&node.name),
                    source: Arc::clone(&source),
                    address: host.addr(),
                };
                (host.prefix(), in_use)
            })
        });
        entries.collect()
    }
}

/// The networks of all sessions, and the groups of nodes that have them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct All {
    networks: BTreeMap<ObjectRef, Arc<Networks>>,
    members: BTreeMap<Vec<Prefix>, Arc<Vec<Signature>>>,
    pub(crate) problems: Vec<Problem>,
}

/// The networks of all sessions. What a session has it keeps; the older is served first.
pub(crate) struct SessionNetworks;
impl Query for SessionNetworks {
    type Key = ();
    type Value = Arc<All>;
    fn compute(view: &View<'_>, (): &()) -> Arc<All> {
        let plans = all(view).into_iter();
        let plans = plans.filter_map(|subject| view.get::<OverlayOf>(&subject).plan.clone());
        let mut sessions: Vec<Arc<Overlay>> =
            plans.filter(|plan| plan.session().is_some()).collect();
        if sessions.is_empty() {
            return Arc::default();
        }
        sessions.sort_by(|a, b| a.order().cmp(&b.order()));
        let groups = groups(view);
        let mut all = All::default();
        let mut pools = Pools::new(view, &sessions);
        for overlay in sessions {
            let of_session = groups.get(&overlay.subject);
            let nodes = of_session.map_or(0, |(_, nodes)| *nodes);
            let Some(session) = overlay.session() else {
                continue;
            };
            let networks = if session.networks.is_empty() {
                match pools.networks(&overlay.subject, nodes) {
                    Ok(networks) => networks,
                    Err(kind) => {
                        let subject = overlay.subject.clone();
                        all.problems
                            .push(Problem::new(subject, "spec.hostsession", kind));
                        continue;
                    }
                }
            } else {
                session.networks.iter().map(|one| vec![*one]).collect()
            };
            for family in &networks {
                let signatures = of_session.map(|(signatures, _)| signatures.clone());
                let members = all.members.entry(family.clone()).or_default();
                Arc::make_mut(members).extend(signatures.unwrap_or_default());
            }
            all.networks
                .insert(overlay.subject.clone(), Arc::new(networks));
        }
        Arc::new(all)
    }
}

/// The groups of nodes that have each session, and how many nodes those are.
fn groups(view: &View<'_>) -> BTreeMap<ObjectRef, (Vec<Signature>, usize)> {
    let mut groups: BTreeMap<ObjectRef, (Vec<Signature>, usize)> = BTreeMap::new();
    for signature in view.all_keys::<NodesBySignature>().iter() {
        let members = view.get::<MembersOf>(signature);
        let nodes = view.who::<NodesBySignature>(signature).len();
        for overlay in members
            .overlays()
            .iter()
            .filter(|one| one.session().is_some())
        {
            let has_router = match overlay.wants {
                Wants::L3(_) | Wants::L2(_) => view.get::<HasOverlay>(signature),
                Wants::Passthrough(_) => !view.get::<PlansFor>(signature).is_empty(),
            };
            if has_router {
                let entry = groups.entry(overlay.subject.clone()).or_default();
                entry.0.push(signature.clone());
                entry.1 += nodes;
            }
        }
    }
    groups
}

/// The pools of the settings, cut into blocks.
struct Pools {
    cidrs: Vec<Prefix>,
    /// The blocks that were not looked at yet, of each pool.
    blocks: Vec<(bool, ipnet::IpSubnets)>,
    /// The blocks that sessions have, by session.
    held: BTreeMap<String, Vec<Prefix>>,
    /// The first address of each block that is not free.
    used: BTreeSet<Prefix>,
}

impl Pools {
    fn new(view: &View<'_>, sessions: &[Arc<Overlay>]) -> Self {
        let cidrs = view.settings().host_sessions.cidrs.clone();
        let mut used: BTreeSet<Prefix> = BTreeSet::new();
        let mut held: BTreeMap<String, Vec<Prefix>> = BTreeMap::new();
        for prefix in view.all_keys::<SessionsInUse>().iter() {
            let is_block = cidrs.iter().any(|cidr| cidr.net().contains(&prefix.net()));
            if !is_block {
                continue;
            }
            let in_use = view.who::<SessionsInUse>(prefix);
            // Two sessions with one block can only come of an edit by hand: the first has it.
            if let Some(first) = in_use.first() {
                let of_session = held.entry(first.source.to_string()).or_default();
                of_session.push(*prefix);
            }
            used.insert(*prefix);
        }
        let own = sessions.iter().filter_map(|one| one.session());
        used.extend(own.flat_map(|session| session.networks.iter().copied()));
        let blocks = cidrs.iter().filter_map(|cidr| {
            let (ipv4, net) = (cidr.is_ipv4(), cidr.net());
            let length = if ipv4 { BLOCK_LENGTH.0 } else { BLOCK_LENGTH.1 };
            let blocks = net.subnets(length.max(net.prefix_len())).ok()?;
            Some((ipv4, blocks))
        });
        Self {
            blocks: blocks.collect(),
            cidrs,
            held,
            used,
        }
    }

    /// The networks of a session of so many nodes.
    fn networks(&mut self, subject: &ObjectRef, nodes: usize) -> Result<Networks, problem::Kind> {
        let wanted = nodes.div_ceil(NODES_OF_BLOCK).max(1);
        let mut networks = Vec::new();
        for ipv4 in [true, false] {
            if !self.cidrs.iter().any(|cidr| cidr.is_ipv4() == ipv4) {
                continue;
            }
            let held = self.held.get(&subject.to_string()).into_iter().flatten();
            let mut blocks: Vec<Prefix> =
                held.copied().filter(|one| one.is_ipv4() == ipv4).collect();
            while blocks.len() < if ipv4 { wanted } else { 1 } {
                // Those with free addresses keep their blocks.
                match self.free(ipv4) {
                    Some(block) => blocks.push(block),
                    None if blocks.is_empty() => return Err(self.exhausted(subject)),
                    None => break,
                }
            }
            networks.push(blocks);
        }
        Ok(networks)
    }

    /// A free block.
    fn free(&mut self, ipv4: bool) -> Option<Prefix> {
        let Self { blocks, used, .. } = self;
        let blocks = blocks.iter_mut().filter(|(family, _)| *family == ipv4);
        let mut blocks = blocks.flat_map(|(_, blocks)| blocks.map(Prefix::of));
        let block = blocks.find(|block| !overlaps_any(used, *block))?;
        used.insert(block);
        Some(block)
    }

    fn exhausted(&self, subject: &ObjectRef) -> problem::Kind {
        let cidrs: Vec<String> = self.cidrs.iter().map(ToString::to_string).collect();
        problem::Kind::PoolExhausted {
            pool: format!("Settings.spec.hostSessions.cidrs ({})", cidrs.join(", ")),
            wanted: format!("the session of {subject}"),
        }
    }
}

/// Whether a network has addresses of one of these, of which none is inside another.
fn overlaps_any(nets: &BTreeSet<Prefix>, wanted: Prefix) -> bool {
    let overlap = |one: &Prefix| {
        let (one, other) = (one.net(), wanted.net());
        one.contains(&other) || other.contains(&one)
    };
    let mut before = nets.range(..=wanted).rev();
    let mut behind = nets.range(wanted..);
    before.next().is_some_and(overlap) || behind.next().is_some_and(overlap)
}

/// The networks of a session; nothing where it has none.
pub(crate) struct NetworksOfSession;
impl Query for NetworksOfSession {
    type Key = ObjectRef;
    type Value = Option<Arc<Networks>>;
    fn compute(view: &View<'_>, subject: &ObjectRef) -> Option<Arc<Networks>> {
        let all = view.get::<SessionNetworks>(&());
        all.networks.get(subject).cloned()
    }
}

/// The groups of nodes that have an address in one of these networks.
pub(crate) struct SessionMembers;
impl Query for SessionMembers {
    type Key = Vec<Prefix>;
    type Value = Arc<Vec<Signature>>;
    fn compute(view: &View<'_>, networks: &Vec<Prefix>) -> Arc<Vec<Signature>> {
        let all = view.get::<SessionNetworks>(&());
        all.members.get(networks).cloned().unwrap_or_default()
    }
}

/// Addresses of hosts, by node.
pub(crate) type Hosts = Arc<FxHashMap<Arc<str>, HostCidr>>;

/// The addresses of hosts in the networks of a session. A node that has one keeps it.
pub(crate) struct AddressesOfSession;
impl Query for AddressesOfSession {
    type Key = Vec<Prefix>;
    type Value = Hosts;
    fn compute(view: &View<'_>, networks: &Vec<Prefix>) -> Hosts {
        let signatures = view.get::<SessionMembers>(networks);
        let groups = signatures
            .iter()
            .map(|one| view.who::<NodesBySignature>(one));
        let groups: Vec<Arc<Vec<Member>>> = groups.collect();
        let mut nodes: Vec<&Member> = groups.iter().flat_map(|nodes| nodes.iter()).collect();
        // The older is served first.
        nodes.sort_unstable();
        nodes.dedup();
        let mut hosts: FxHashMap<Arc<str>, HostCidr> = FxHashMap::default();
        hosts.reserve(nodes.len());
        let mut pools: Vec<Pool> = networks.iter().map(|one| pool(*one)).collect();
        let mut known: FxHashSet<&str> = FxHashSet::default();
        for (network, pool) in networks.iter().zip(&mut pools) {
            let in_use = view.who::<SessionsInUse>(network);
            if !in_use.is_empty() && known.is_empty() {
                known.extend(nodes.iter().map(|node| &*node.name));
            }
            for one in in_use.iter() {
                // The remaining addresses stay reserved: their nodes are gone, or do not have the session any more.
                let is_new = pool.take(one.address) && !hosts.contains_key(&one.node);
                if is_new && known.contains(&*one.node) {
                    hosts.extend(
                        host(one.address, *network).map(|host| (Arc::clone(&one.node), host)),
                    );
                }
            }
        }
        let mut pools = networks.iter().zip(&mut pools).peekable();
        'nodes: for node in nodes {
            if hosts.contains_key(&node.name) {
                continue;
            }
            while let Some((network, pool)) = pools.peek_mut() {
                if let Some(address) = pool.take_lowest() {
                    hosts.extend(
                        host(address, **network).map(|host| (Arc::clone(&node.name), host)),
                    );
                    continue 'nodes;
                }
                pools.next();
            }
            break;
        }
        Arc::new(hosts)
    }
}

/// A network of which the router has its address.
fn pool(network: Prefix) -> Pool {
    let mut pool = Pool::new(network);
    if let Some(router) = allocate::gateway(network) {
        pool.take(router.addr());
    }
    pool
}

fn host(address: IpAddr, network: Prefix) -> Option<HostCidr> {
    let net = IpNet::new(address, network.net().prefix_len()).ok()?;
    Some(HostCidr::new(net))
}

/// The addresses of hosts on the sessions of a group, with or without a VTEP, in the order of the group's sessions, by family.
pub(crate) struct SessionAddressesFor;
impl Query for SessionAddressesFor {
    type Key = (Signature, bool);
    type Value = Arc<Vec<Vec<Hosts>>>;
    fn compute(view: &View<'_>, (signature, has_vtep): &(Signature, bool)) -> Self::Value {
        let built = view.get::<BuiltFor>(signature);
        let shared = if *has_vtep {
            &built.shared
        } else {
            &built.bare
        };
        let sessions = shared.sessions.iter().map(|slot| {
            let families = slot.networks.iter();
            families
                .map(|networks| view.get::<AddressesOfSession>(networks))
                .collect()
        });
        Arc::new(sessions.collect())
    }
}
