//! Each node's place in the fabric: its one Underlay, its VTEP and its router id.

mod choice;
mod contradictions;
mod families;
mod frr;
mod neighbor;
mod passwords;
mod sound;
mod trunk;

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use api::{
    meta::Labels,
    openperouter::{UnderlaySpec, VtepSource},
    selvedge::SettingsSpec,
    tcaas::{
        NodeInterface, NodeNetworkStatusStatus,
        node_network_config::{GracefulRestart, Neighbor, Trunk, Underlay},
    },
    value::{Asn, HostCidr, IfName, MacAddress, Prefix},
};
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};

pub(in crate::node) use self::frr::IPV6_VTEPS;
pub use self::passwords::{InClearText, MovedPassword};
use self::{
    choice::plan,
    sound::{Endpoint, Sound, replaces_what_runs},
};
pub(crate) use self::{
    choice::{
        PlansFor, Refused, SelectedPlans, may_meet as underlays_that_may_meet, plans_of_nodes,
        second_underlays,
    },
    contradictions::{Contradictions, NodesByUnderlay},
    families::{HasBothFamilies, UnderlaysByVni, mixed_families},
    frr::{FrrOf, is_older_frr},
    trunk::{router_addresses, trunk_faults},
};
use super::selection::{Member, NodesBySignature, Signature};
use crate::{
    allocate::Pool,
    fingerprint,
    memo::{Index, Query},
    names,
    problem::{self, Problem},
    select::selects,
    snapshot::{Key, Kind, ObjectRef, Snapshot, by_age, kinds},
    view::{View, reference},
};

/// An Underlay that can be used, and what is to be said about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(super) plan: Option<Arc<Plan>>,
    pub(crate) problems: Vec<Problem>,
}

/// What an Underlay comes to before it meets a node.
pub(crate) struct PlanOf;
impl Query for PlanOf {
    type Key = Key;
    type Value = Arc<Planned>;
    fn compute(view: &View<'_>, key: &Key) -> Arc<Planned> {
        let Some(spec) = view.spec::<kinds::Underlay>(key) else {
            return Arc::default();
        };
        let subject = reference(Kind::Underlay, key);
        let mut problems = Vec::new();
        let sound = Sound::check(&subject, &spec, &mut problems);
        let contradictions = view.get::<Contradictions>(&());
        let contradictions = contradictions.get(key);
        problems.extend(contradictions.into_iter().flatten().cloned());
        let settings = view.settings();
        let unfit = sound.as_ref().map(|sound| sound.unfit(&spec));
        let unfit = unfit.into_iter().flatten();
        problems.extend(unfit.map(|(field, kind)| Problem::new(subject.clone(), field, kind)));
        if view.keys::<kinds::Node>().is_empty() {
            problems.extend(vtep_on_no_nic(&subject, &spec));
        }
        let mut refusals = replaces_what_runs(view, key, &spec);
        // Of a field, what matters most is said.
        problems.retain(|one| refusals.iter().all(|other| other.field != one.field));
        refusals.extend(named_like_the_trunk(&subject, &spec, &settings));
        refusals.extend(trunk::not_in_effect(view, key));
        let is_refused = contradictions.is_some() || !refusals.is_empty();
        problems.extend(refusals);
        let sound = sound.filter(|sound| !is_refused && sound.is_fit(view, key, &spec));
        let plan = sound.map(|sound| {
            let fabric = Fabric::new(
                key,
                &spec,
                (sound.neighbors, sound.in_clear_text),
                &settings,
            );
            Arc::new(Plan {
                subject,
                router_ids: spec.routeridcidr.prefix(),
                has_default_router_ids: spec.has_default_router_ids(),
                endpoint: sound.endpoint.clone(),
                vtep_field: sound::vtep_field(&spec),
                fabric: Arc::new(fabric),
            })
        });
        Arc::new(Planned { plan, problems })
    }
}

/// What is wrong with an uplink that has the name of the trunk: both are in the router's namespace.
fn named_like_the_trunk(
    subject: &ObjectRef,
    spec: &UnderlaySpec,
    settings: &SettingsSpec,
) -> Option<Problem> {
    let trunk = &settings.trunk.name;
    let is_taken = spec.devices().any(|nic| nic == trunk);
    is_taken.then(|| {
        let kind = problem::Kind::DeviceNameReserved {
            name: trunk.to_string(),
            what: "the trunk to the router (Settings.spec.trunk.name)".to_owned(),
        };
        Problem::new(subject.clone(), "spec.nics", kind)
    })
}

/// Says that the device of the tunnel endpoint is no uplink, where no node tells in which namespace the device is.
fn vtep_on_no_nic(subject: &ObjectRef, spec: &UnderlaySpec) -> Option<Problem> {
    let Ok(Some(VtepSource::Device(device))) = spec.vtep() else {
        return None;
    };
    if device.as_str() == "lo" || spec.devices().any(|nic| nic == device) {
        return None;
    }
    let what = format!(
        "{:?} is no device of spec.nics: without a device of that name in the router's namespace there is no tunnel endpoint",
        device.as_str()
    );
    let kind = problem::Kind::NoEffect { what };
    Some(Problem::new(subject.clone(), VTEP_INTERFACE, kind))
}

/// Nodes of a signature that get addresses of a pool.
struct PoolMembers {
    nodes: Arc<Vec<Member>>,
    /// Whether their router ids are of the pool.
    has_router_ids: bool,
    /// Whether their VTEPs are of the pool.
    has_vteps: bool,
}

/// The nodes that get an address of a pool.
fn members(view: &View<'_>, pool: Prefix) -> Vec<PoolMembers> {
    let signatures = view.all_keys::<NodesBySignature>();
    let uses = |plan: &Arc<Plan>| -> (bool, bool) {
        let mut vteps = plan.endpoint.pools();
        (plan.router_ids == pool, vteps.any(|one| one == pool))
    };
    let mut members = Vec::new();
    for signature in signatures.iter() {
        let plans = view.get::<PlansFor>(signature);
        if !plans.iter().any(|plan| uses(plan) != (false, false)) {
            continue;
        }
        for (plan, nodes) in plans_of_nodes(view, signature) {
            let (has_router_ids, has_vteps) = uses(&plan);
            if has_router_ids || has_vteps {
                members.push(PoolMembers {
                    nodes,
                    has_router_ids,
                    has_vteps,
                });
            }
        }
    }
    members
}

/// What a node's config says of its place in the fabric.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Holding {
    /// When the config was created; decides who is older.
    age: (bool, Option<String>),
    node: String,
    /// Whether it is the router id; else it is the VTEP.
    is_router_id: bool,
}

/// The router ids and VTEPs that configs of nodes have, by address.
pub(crate) struct HoldersByAddress;
impl Index for HoldersByAddress {
    type Source = Key;
    type Key = IpAddr;
    type Item = Holding;
    fn sources(view: &View<'_>) -> Vec<Key> {
        view.keys::<kinds::NodeNetworkConfig>().to_vec()
    }
    fn entries(view: &View<'_>, node: &Key) -> Vec<(IpAddr, Holding)> {
        let config = view.spec::<kinds::NodeNetworkConfig>(node);
        let meta = view.meta::<kinds::NodeNetworkConfig>(node);
        let underlay = config.as_ref().and_then(|config| config.underlay.as_ref());
        let Some(underlay) = underlay else {
            return Vec::new();
        };
        let created = meta.and_then(|meta| meta.created.clone());
        let holding = |is_router_id| Holding {
            age: (created.is_none(), created.clone()),
            node: node.name.to_string(),
            is_router_id,
        };
        let router_id = (IpAddr::V4(underlay.router_id), holding(true));
        let vteps = underlay.vtep.into_iter().chain(underlay.other_vtep);
        let vteps = vteps.map(|vtep| (vtep, holding(false)));
        [router_id].into_iter().chain(vteps).collect()
    }
}

/// The addresses of a pool, by node. A node that has one keeps it.
pub(crate) struct AddressesOfPool;
impl Query for AddressesOfPool {
    type Key = Prefix;
    type Value = Arc<FxHashMap<Arc<str>, IpAddr>>;
    /// Every node reads it, and a node that moves from one group to another changes nothing of it.
    fn is_barrier() -> bool {
        true
    }
    fn compute(view: &View<'_>, prefix: &Prefix) -> Self::Value {
        let members = members(view, *prefix);
        let nodes = || {
            members
                .iter()
                .flat_map(|of| of.nodes.iter().map(move |node| (node, of)))
        };
        let mut pool = Pool::new(*prefix);
        let mut given: FxHashMap<Arc<str>, IpAddr> = FxHashMap::default();
        given.reserve(nodes().count());
        let net = prefix.net();
        let addresses = view.keys_in::<HoldersByAddress>(&net.network(), &net.broadcast());
        let mut holdings: Vec<(Holding, IpAddr)> = Vec::new();
        for address in addresses.iter() {
            let holders = view.who::<HoldersByAddress>(address);
            holdings.extend(holders.iter().map(|holding| (holding.clone(), *address)));
        }
        // Of two that have one address the older config keeps it; of a router id and a VTEP in one pool the router id counts.
        holdings.sort_by(|(a, _), (b, _)| {
            (&a.age, &a.node, !a.is_router_id).cmp(&(&b.age, &b.node, !b.is_router_id))
        });
        let mut by_name: FxHashMap<&str, (&Member, &PoolMembers)> = FxHashMap::default();
        if !holdings.is_empty() {
            by_name.extend(nodes().map(|(node, of)| (&*node.name, (node, of))));
        }
        for (holding, address) in &holdings {
            let node = holding.node.as_str();
            let Some((member, of)) = by_name.get(node) else {
                continue;
            };
            let is_wanted = if holding.is_router_id {
                of.has_router_ids
            } else {
                of.has_vteps
            };
            if is_wanted && !given.contains_key(node) && pool.take(*address) {
                given.insert(Arc::clone(&member.name), *address);
            }
        }
        // The remaining addresses stay reserved: their nodes are gone, or have changed their Underlay.
        for (_, address) in &holdings {
            pool.take(*address);
        }
        let waiting = nodes().map(|(node, _)| node);
        let mut waiting: Vec<&Member> = waiting
            .filter(|node| !given.contains_key(&node.name))
            .collect();
        // The older is served first.
        waiting.sort_unstable();
        for node in waiting {
            let free = pool.take_lowest();
            given.extend(free.map(|address| (Arc::clone(&node.name), address)));
        }
        Arc::new(given)
    }
}

/// How a node is connected to the fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeUnderlay {
    /// Its BGP router id.
    pub router_id: Ipv4Addr,
    /// Its VXLAN tunnel endpoint; absent where it takes part in no overlay.
    pub vtep: Option<IpAddr>,
    /// The device that has the tunnel endpoint by itself.
    pub vtep_interface: Option<IfName>,
    /// Its second tunnel endpoint, of the other address family.
    pub other_vtep: Option<IpAddr>,
    /// The version of the node's FRR, where that cannot have the tunnel endpoints of the Underlay.
    pub(super) too_old: Option<Arc<str>>,
    /// The node, where Secrets are made for it.
    pub(super) node: Option<Arc<str>>,
    /// What all nodes of the Underlay have.
    pub fabric: Arc<Fabric>,
}

/// What all nodes of an Underlay have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fabric {
    /// The Underlay that it comes from.
    pub source: ObjectRef,
    /// AS number of the routers.
    pub asn: Asn,
    /// Host devices that move into the router's namespace.
    pub nics: Vec<IfName>,
    /// The device whose address is the tunnel endpoint.
    pub vtep_device: Option<IfName>,
    /// The link between the host's namespace and the router's.
    pub trunk: Trunk,
    /// Networks of workloads' addresses on loopbacks of their node.
    pub workload_networks: Vec<Prefix>,
    /// Fabric peers.
    pub neighbors: Vec<Neighbor>,
    /// Passwords that stand in clear text in the Underlay.
    pub(super) in_clear_text: Vec<InClearText>,
    /// How long peers keep our routes while the router restarts.
    pub graceful_restart: Option<GracefulRestart>,
    /// Fingerprint of all that.
    pub(super) digest: fingerprint::Digest,
}

impl Fabric {
    fn new(
        key: &Key,
        spec: &UnderlaySpec,
        (neighbors, in_clear_text): (Vec<Neighbor>, Vec<InClearText>),
        settings: &SettingsSpec,
    ) -> Self {
        let trunk = trunk::link(settings);
        let mut workload_networks = settings.bgp.workload_cidrs.clone();
        workload_networks.sort_unstable();
        workload_networks.dedup();
        let nics = spec.devices().cloned().collect();
        let vtep_device = match spec.vtep() {
            Ok(Some(VtepSource::Device(device))) => Some(device.clone()),
            _ => None,
        };
        let graceful_restart = spec.graceful_restart.as_ref();
        let graceful_restart = graceful_restart.map(|restart| GracefulRestart {
            restart_time: restart.restart_time_seconds.get(),
            stale_path_time: restart.stale_path_time_seconds.get(),
        });
        let source = reference(Kind::Underlay, key);
        let digest = fingerprint::of(&(
            &source,
            spec.asn,
            (&nics, &vtep_device),
            &trunk,
            &workload_networks,
            &neighbors,
            in_clear_text
                .iter()
                .map(|one| one.place)
                .collect::<Vec<_>>(),
            &graceful_restart,
        ));
        Self {
            source,
            asn: spec.asn,
            nics,
            vtep_device,
            trunk,
            workload_networks,
            neighbors,
            in_clear_text,
            graceful_restart,
            digest,
        }
    }
}

impl NodeUnderlay {
    /// The same as it is published.
    pub fn spec(&self) -> Underlay {
        let Fabric {
            source,
            asn,
            nics,
            vtep_device: _,
            trunk,
            workload_networks,
            neighbors: _,
            in_clear_text: _,
            graceful_restart,
            digest: _,
        } = &*self.fabric;
        let mut neighbors = self.fabric.neighbors_of(self.node.as_ref());
        // A session that starts from the tunnel endpoint cannot start without one.
        neighbors.retain(|neighbor| !neighbor.from_vtep || self.vtep.is_some());
        Underlay {
            source: Some(source.key.to_string()),
            namespace: names::ROUTER_NAMESPACE.to_owned(),
            asn: *asn,
            router_id: self.router_id,
            nics: nics.clone(),
            vtep: self.vtep,
            vtep_interface: self.vtep_interface.clone(),
            other_vtep: self.other_vtep,
            router_mac: router_mac(self.vtep.unwrap_or(IpAddr::V4(self.router_id))),
            trunk: trunk.clone(),
            workload_networks: workload_networks.clone(),
            neighbors,
            graceful_restart: *graceful_restart,
        }
    }
}

/// A node's place in the fabric, and why it has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) underlay: Option<NodeUnderlay>,
    pub(crate) problem: Option<Problem>,
}

impl Placed {
    /// Whether the node takes part in the overlay.
    pub(crate) fn has_vtep(&self) -> bool {
        let underlay = self.underlay.as_ref();
        underlay.is_some_and(|underlay| underlay.vtep.is_some())
    }
}

/// The place in the fabric of a node with a signature.
pub(crate) fn place(view: &View<'_>, signature: &Signature, node: &str) -> Placed {
    let plans = view.get::<PlansFor>(signature);
    let Some(plan) = plan(view, &plans, node) else {
        return Placed::default();
    };
    match plan.for_node(view, node) {
        Ok(underlay) => Placed {
            underlay,
            problem: None,
        },
        Err(problem) => Placed {
            underlay: None,
            problem: Some(*problem),
        },
    }
}

/// The Underlay that a node with these labels would have where it runs none: the oldest that makes sense and selects it.
pub fn underlay_for<'a>(
    snapshot: &'a Snapshot,
    labels: &Labels,
) -> Option<(ObjectRef, &'a UnderlaySpec)> {
    let mut of_node = by_age(&snapshot.underlays)
        .into_iter()
        .map(|(key, object)| (reference(Kind::Underlay, key), &*object.spec));
    of_node.find(|(subject, spec)| {
        let sound = Sound::check(subject, spec, &mut Vec::new());
        let makes_sense = sound.is_some_and(|sound| sound.unfit(spec).is_empty());
        makes_sense && selects(spec.node_selector.as_ref(), labels)
    })
}

/// An Underlay that makes sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) subject: ObjectRef,
    router_ids: Prefix,
    /// Whether the pool of router ids is the default.
    has_default_router_ids: bool,
    endpoint: Endpoint,
    /// The field that has the pool of VTEPs.
    vtep_field: &'static str,
    pub(crate) fabric: Arc<Fabric>,
}

/// The field that names the device of the tunnel endpoint.
pub(in crate::node) const VTEP_INTERFACE: &str = "spec.evpn.vtepInterface";

impl Plan {
    /// The pools of tunnel endpoints.
    pub(super) fn vtep_pools(&self) -> impl Iterator<Item = Prefix> + use<> {
        self.endpoint.pools()
    }

    /// The Underlay of one node, with its own addresses. `None` where its router id is invalid.
    fn for_node(&self, view: &View<'_>, node: &str) -> Result<Option<NodeUnderlay>, Box<Problem>> {
        let give = |field: &str, pool: Prefix| {
            let given = view.get::<AddressesOfPool>(&pool).get(node).copied();
            given.ok_or_else(|| {
                let kind = problem::Kind::PoolExhausted {
                    pool: pool.to_string(),
                    wanted: format!("node {node:?}"),
                };
                Box::new(Problem::new(self.subject.clone(), field, kind))
            })
        };
        let (vtep, vtep_interface) = match (self.endpoint.pool, &self.endpoint.device) {
            (Some(pool), _) => (Some(give(self.vtep_field, pool)?), None),
            (None, Some(device)) => endpoint_of(view, node, device, &self.fabric.nics),
            (None, None) => (None, None),
        };
        let other_vtep = match self.endpoint.other_pool {
            Some(pool) => Some(give("spec.tunnelEndpoint.cidrs[1]", pool)?),
            None => None,
        };
        let spare = vtep.filter(|vtep| self.can_be_router_id(*vtep));
        let router_id = match spare.filter(|vtep| runs_with_router_id(view, node, *vtep)) {
            Some(vtep) => vtep,
            None => give("spec.routeridcidr", self.router_ids).or_else(|none| spare.ok_or(none))?,
        };
        let IpAddr::V4(router_id) = router_id else {
            return Ok(None);
        };
        let has_ipv6 = self.vtep_pools().any(|pool| !pool.is_ipv4());
        let too_old = has_ipv6
            .then(|| frr::without_ipv6_vteps(view, node))
            .flatten();
        let can_have = too_old.is_none();
        Ok(Some(NodeUnderlay {
            router_id,
            vtep: vtep.filter(|_| can_have),
            vtep_interface,
            other_vtep: other_vtep.filter(|_| can_have),
            too_old,
            node: (!self.fabric.in_clear_text.is_empty()).then(|| Arc::from(node)),
            fabric: Arc::clone(&self.fabric),
        }))
    }
}

impl Plan {
    /// Whether a node's VTEP can be its router id: the pool of router ids is the default, and no other node can have this one.
    fn can_be_router_id(&self, vtep: IpAddr) -> bool {
        self.has_default_router_ids && vtep.is_ipv4() && !self.router_ids.net().contains(&vtep)
    }
}

/// The tunnel endpoint of a node that is an address of a device, with the device: the first IPv4 address that the node has reported of it in
/// the router's namespace. An uplink counts as there: it moves with its addresses. A node that has reported none keeps the tunnel endpoint
/// that it has.
fn endpoint_of(
    view: &View<'_>,
    node: &str,
    device: &IfName,
    nics: &[IfName],
) -> (Option<IpAddr>, Option<IfName>) {
    let key = Key::named(node);
    let report = view.status::<kinds::NodeNetworkStatus>(&key);
    let reported = report.and_then(|report| endpoint_reported(&report, device, nics));
    if let Some(address) = reported {
        return (Some(address), Some(device.clone()));
    }
    let config = view.spec::<kinds::NodeNetworkConfig>(&key);
    let running = config.as_ref().and_then(|config| config.underlay.as_ref());
    running.map_or((None, None), |running| {
        (running.vtep, running.vtep_interface.clone())
    })
}

/// The first IPv4 address that a node has reported of a device in the router's namespace.
pub(super) fn endpoint_reported(
    report: &NodeNetworkStatusStatus,
    device: &IfName,
    nics: &[IfName],
) -> Option<IpAddr> {
    let is_inside = |one: &&NodeInterface| one.namespace.is_some() || nics.contains(device);
    let reported = report.interfaces.iter();
    let reported = reported.filter(|one| one.name == device.as_str());
    let mut reported: Vec<_> = reported.filter(is_inside).collect();
    reported.sort_by_key(|one| one.namespace.is_none());
    let mut addresses = reported.iter().flat_map(|one| &one.addresses);
    let can_be_vtep = |one: &&HostCidr| one.is_ipv4() && !one.addr().is_loopback();
    addresses.find(can_be_vtep).map(|address| address.addr())
}

/// Whether a node has reported a device, and only outside of the router's namespace, into which no Underlay moves it.
pub(in crate::node) fn is_outside(
    report: &NodeNetworkStatusStatus,
    device: &IfName,
    nics: &[IfName],
) -> bool {
    let interfaces = report.interfaces.iter();
    let mut reported = interfaces
        .filter(|one| one.name == device.as_str())
        .peekable();
    let is_reported = reported.peek().is_some();
    // Every namespace has a loopback.
    let can_be_outside = device.as_str() != "lo" && !nics.contains(device);
    is_reported && can_be_outside && reported.all(|one| one.namespace.is_none())
}

/// Whether the config of a node has this router id. It stays when an address of the pool becomes free: a new router id resets sessions.
fn runs_with_router_id(view: &View<'_>, node: &str, router_id: IpAddr) -> bool {
    let holders = view.who::<HoldersByAddress>(&router_id);
    let mut holders = holders.iter();
    holders.any(|holding| holding.is_router_id && holding.node == node)
}

/// The router MAC that EVPN announces: locally administered, and different wherever the address is.
fn router_mac(address: IpAddr) -> MacAddress {
    let [a, b, c, d] = match address {
        IpAddr::V4(address) => address.octets(),
        IpAddr::V6(address) => {
            let hash = Sha256::digest(address.octets());
            std::array::from_fn(|i| hash.get(i).copied().unwrap_or_default())
        }
    };
    MacAddress::new([0x02, 0x54, a, b, c, d])
}
