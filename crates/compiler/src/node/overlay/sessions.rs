//! Networks and addresses of host sessions.
//!
//! A session has networks of its own, which its object names or which are blocks of the pool in the settings. In each of them the router has the
//! first address on every node, and every node's host another one, which stays. A session of more nodes than a block has addresses for gets
//! further blocks.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use api::{tcaas::node_network_config::HostSession, value::Prefix};

use super::{Overlay, OverlayOf, Wants, all};
use crate::{
    memo::{Index, Query},
    node::{
        group::{HasOverlay, MembersOf},
        selection::{NodesBySignature, Signature},
        underlay::PlansFor,
    },
    prefixes::PrefixMap,
    problem::{self, Problem},
    snapshot::{Key, ObjectRef, kinds},
    special::{self, Use},
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
    pub(super) node: Arc<str>,
    /// The object of the session, as configs name it.
    source: Arc<str>,
    pub(super) address: IpAddr,
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
    /// The networks that are not free.
    used: PrefixMap<()>,
}

impl Pools {
    fn new(view: &View<'_>, sessions: &[Arc<Overlay>]) -> Self {
        let mut cidrs = view.settings().host_sessions.cidrs.clone();
        // The settings say what is wrong with these.
        cidrs.retain(|cidr| special::unfit(cidr.net(), Use::Routed).is_none());
        let mut used = PrefixMap::default();
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
            used.insert(*prefix, ());
        }
        let own = sessions.iter().filter_map(|one| one.session());
        for network in own.flat_map(|session| &session.networks) {
            used.insert(*network, ());
        }
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
        let block = blocks.find(|block| used.overlap(*block).is_none())?;
        used.insert(block, ());
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
