//! Addresses of hosts on their sessions.
//!
//! Where no node has an address of a session yet, each gets the one at its place in the order of the nodes, which all sessions of the same nodes
//! share: a session of many nodes costs no more than one of few before the address of one node is requested.

use std::{net::IpAddr, sync::Arc};

use api::value::{HostCidr, Prefix};
use ipnet::IpNet;
use rustc_hash::{FxHashMap, FxHashSet};

use super::sessions::{SessionMembers, SessionsInUse};
use crate::{
    allocate::{self, Pool},
    memo::Query,
    node::{
        group::BuiltFor,
        selection::{Member, NodesBySignature, Signature},
    },
    view::View,
};

/// The place of each node among others, the older first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranks(FxHashMap<Arc<str>, u32>);

/// The places of the nodes of these groups.
pub(crate) struct RanksOf;
impl Query for RanksOf {
    type Key = Arc<Vec<Signature>>;
    type Value = Arc<Ranks>;
    fn compute(view: &View<'_>, signatures: &Self::Key) -> Arc<Ranks> {
        let groups = nodes_of(view, signatures);
        let nodes = in_order(&groups).into_iter();
        let ranks = nodes.map(|node| Arc::clone(&node.name)).zip(0..);
        Arc::new(Ranks(ranks.collect()))
    }
}

fn nodes_of(view: &View<'_>, signatures: &[Signature]) -> Vec<Arc<Vec<Member>>> {
    let signatures = signatures.iter();
    let groups = signatures.map(|one| view.who::<NodesBySignature>(one));
    groups.collect()
}

/// The older is served first.
fn in_order(groups: &[Arc<Vec<Member>>]) -> Vec<&Member> {
    let mut nodes: Vec<&Member> = groups.iter().flat_map(|nodes| nodes.iter()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// The addresses of hosts in the networks of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hosts {
    given: Given,
    /// Whether some nodes have none.
    is_short: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Given {
    /// Each node has the one at its place, counted through the networks.
    InOrder(Arc<Ranks>, Arc<Vec<Room>>),
    /// By node.
    ByNode(Arc<FxHashMap<Arc<str>, HostCidr>>),
}

impl Hosts {
    /// Whether some of the nodes that have the session have no address.
    pub(in crate::node) fn is_short(&self) -> bool {
        self.is_short
    }

    fn of(&self, node: &mut Node<'_>) -> Option<HostCidr> {
        match &self.given {
            Given::InOrder(ranks, rooms) => at(rooms, node.rank(ranks)?.into()),
            Given::ByNode(hosts) => hosts.get(node.name).copied(),
        }
    }
}

/// A node, and its place in the order that was asked for last.
struct Node<'a> {
    name: &'a str,
    last: Option<(Arc<Ranks>, Option<u32>)>,
}

impl Node<'_> {
    fn rank(&mut self, ranks: &Arc<Ranks>) -> Option<u32> {
        match &self.last {
            Some((last, rank)) if Arc::ptr_eq(last, ranks) => *rank,
            _ => {
                let rank = ranks.0.get(self.name).copied();
                self.last = Some((Arc::clone(ranks), rank));
                rank
            }
        }
    }
}

/// The addresses of a node on each session, of one in each family; none where it lacks one of them.
pub(in crate::node) fn of_node(sessions: &[Vec<Hosts>], name: &str) -> Vec<Vec<HostCidr>> {
    let mut node = Node { name, last: None };
    let mut of_session = |families: &Vec<Hosts>| {
        let mut own = Vec::with_capacity(families.len());
        for hosts in families {
            match hosts.of(&mut node) {
                Some(host) => own.push(host),
                // All or nothing.
                None => return Vec::new(),
            }
        }
        own
    };
    sessions.iter().map(&mut of_session).collect()
}

/// The room of a network for hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Room {
    network: Prefix,
    /// Number of the first address that a host can have.
    first: u128,
    /// How many there are.
    count: u128,
}

impl Room {
    fn of(network: Prefix) -> Self {
        let mut pool = pool(network);
        Self {
            network,
            first: pool.lowest(),
            count: pool.free(),
        }
    }
}

/// The address at a place among those of some networks.
fn at(rooms: &[Room], mut place: u128) -> Option<HostCidr> {
    for room in rooms {
        if place < room.count {
            let address = allocate::address(room.network, room.first + place);
            return host(address, room.network);
        }
        place -= room.count;
    }
    None
}

/// The addresses of hosts in the networks of a session. A node that has one keeps it.
pub(crate) struct AddressesOfSession;
impl Query for AddressesOfSession {
    type Key = Vec<Prefix>;
    type Value = Hosts;
    fn compute(view: &View<'_>, networks: &Vec<Prefix>) -> Hosts {
        let signatures = view.get::<SessionMembers>(networks);
        let in_use = |network: &Prefix| view.has::<SessionsInUse>(network);
        if !networks.iter().any(in_use) {
            let ranks = view.get::<RanksOf>(&signatures);
            let rooms: Vec<Room> = networks.iter().map(|one| Room::of(*one)).collect();
            let counts = rooms.iter().map(|room| room.count);
            let room = counts.fold(0_u128, u128::saturating_add);
            let wanted = u128::try_from(ranks.0.len()).unwrap_or(u128::MAX);
            return Hosts {
                is_short: room < wanted,
                given: Given::InOrder(ranks, Arc::new(rooms)),
            };
        }
        let groups = nodes_of(view, &signatures);
        let nodes = in_order(&groups);
        let wanted = nodes.len();
        let hosts = by_node(view, networks, nodes);
        Hosts {
            is_short: hosts.len() < wanted,
            given: Given::ByNode(Arc::new(hosts)),
        }
    }
}

fn by_node(
    view: &View<'_>,
    networks: &[Prefix],
    nodes: Vec<&Member>,
) -> FxHashMap<Arc<str>, HostCidr> {
    let mut hosts: FxHashMap<Arc<str>, HostCidr> = FxHashMap::default();
    hosts.reserve(nodes.len());
    let mut pools: Vec<Pool> = networks.iter().map(|one| pool(*one)).collect();
    let known: FxHashSet<&str> = nodes.iter().map(|node| &*node.name).collect();
    for (network, pool) in networks.iter().zip(&mut pools) {
        for one in view.who::<SessionsInUse>(network).iter() {
            // The remaining addresses stay reserved: their nodes are gone, or do not have the session any more.
            let is_new = pool.take(one.address) && !hosts.contains_key(&one.node);
            if is_new && known.contains(&*one.node) {
                let host = host(one.address, *network);
                hosts.extend(host.map(|host| (Arc::clone(&one.node), host)));
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
                let host = host(address, **network);
                hosts.extend(host.map(|host| (Arc::clone(&node.name), host)));
                continue 'nodes;
            }
            pools.next();
        }
        break;
    }
    hosts
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
        let sessions = built.shared(*has_vtep).sessions.iter().map(|slot| {
            let families = slot.networks.iter();
            families
                .map(|networks| view.get::<AddressesOfSession>(networks))
                .collect()
        });
        Arc::new(sessions.collect())
    }
}
