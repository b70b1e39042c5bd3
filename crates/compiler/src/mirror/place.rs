//! From mirrors to nodes: a rule where the traffic is, and beside it, and only there, a tunnel with its source.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use api::{
    tcaas::{
        GreProtocol, NodeNetworkConfigSpec,
        node_network_config::{
            Action, ActionType, FilterItem, Gre, GreLayer, Layer2, Loopback, Matcher, MirrorAcl,
            PrefixMatcher, Vrf,
        },
    },
    value::{HostCidr, Prefix},
};
use ipnet::IpNet;

use super::{
    AllMirrors, Mirror, Mirrors, PooledLoopback, Tunnel,
    address::{address_in_use, kept, unusable_address},
};
use crate::{
    NodeConfig,
    memo::{Index, Query},
    node::ForwardingOf,
    platform::ipam::{self, AddressClaim},
    problem::{self, Problem},
    snapshot::{Key, ObjectRef, kinds},
    view::View,
};

/// What a node has of mirrors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeMirrors {
    /// What is copied.
    pub rules: Vec<Rule>,
    /// Where the copies go: tunnels by VRF and device, each with the target it is made for.
    pub tunnels: BTreeMap<(String, String), (String, Gre)>,
    /// Loopbacks with an address from a pool, on which tunnels can start: addresses by VRF and loopback.
    pub loopbacks: BTreeMap<(String, String), IpAddr>,
    /// Selectors whose source is here and which are not in effect, each with the claim that it waits for; without one where
    /// something is wrong.
    pub missing: BTreeMap<String, Option<String>>,
    /// The addresses that the node needs.
    pub claims: Vec<AddressClaim>,
}

/// Traffic that is copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Name of the selector behind it.
    pub selector: String,
    /// Where the traffic is seen.
    pub place: Place,
    /// Which traffic, and where to.
    pub acl: MirrorAcl,
}

/// Where traffic is seen on a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, strum::Display)]
pub enum Place {
    /// On a segment, by its VLAN.
    #[strum(to_string = "VLAN {0}")]
    Segment(u16),
    /// Between a VRF and the fabric.
    #[strum(to_string = "VRF {0}")]
    Vrf(String),
}

impl NodeMirrors {
    /// Adds a claim that the node needs, once.
    fn claim(&mut self, claim: AddressClaim) {
        if !self.claims.iter().any(|known| known.key == claim.key) {
            self.claims.push(claim);
        }
    }

    /// What of it a config has.
    pub(crate) fn content(&self) -> impl serde::Serialize + '_ {
        let loopbacks: Vec<_> = self.loopbacks.iter().collect();
        let tunnels = self.tunnels.iter();
        let tunnels: Vec<_> = tunnels.map(|(place, (_, gre))| (place, gre)).collect();
        let rules = self.rules.iter();
        let rules: Vec<_> = rules
            .map(|rule| (rule.place.to_string(), &rule.acl))
            .collect();
        (loopbacks, tunnels, rules)
    }

    /// Puts the mirrors into a config.
    pub(crate) fn insert_into(&self, spec: &mut NodeNetworkConfigSpec) {
        for ((vrf, loopback), address) in &self.loopbacks {
            let Some(vrf) = spec.fabric_vrfs.get_mut(vrf) else {
                continue;
            };
            let vrf = Arc::make_mut(vrf);
            let address = IpNet::from(*address);
            let ip_addresses = vec![HostCidr::new(address)];
            vrf.loopbacks
                .insert(loopback.clone(), Loopback { ip_addresses });
            // Before everything that people wrote, so that no deny of theirs hides it.
            if let Some(filter) = &mut vrf.evpn_export_filter {
                filter.items.insert(0, accept(Prefix::of(address)));
            }
        }
        for ((vrf, device), (_, gre)) in &self.tunnels {
            if let Some(vrf) = spec.fabric_vrfs.get_mut(vrf) {
                let gres = &mut Arc::make_mut(vrf).gres;
                gres.insert(device.clone(), gre.clone());
            }
        }
        for rule in &self.rules {
            let acls = match &rule.place {
                Place::Segment(vlan) => {
                    let segment = spec.layer2s.get_mut(&vlan.to_string());
                    segment.map(|segment| &mut segment.mirror_acls)
                }
                Place::Vrf(vrf) => {
                    let vrf = spec.fabric_vrfs.get_mut(vrf);
                    vrf.map(|vrf| &mut Arc::make_mut(vrf).mirror_acls)
                }
            };
            // The same builder of two people is one copy.
            if let Some(acls) = acls.filter(|acls| !acls.contains(&rule.acl)) {
                acls.push(rule.acl.clone());
            }
        }
    }
}

/// A config without its mirrors: what is left changes forwarding.
pub(crate) fn without(spec: &NodeNetworkConfigSpec) -> Cow<'_, NodeNetworkConfigSpec> {
    let has_rules = |segment: &Layer2| !segment.mirror_acls.is_empty();
    let has_mirrors = |vrf: &Arc<Vrf>| {
        !(vrf.mirror_acls.is_empty() && vrf.gres.is_empty() && vrf.loopbacks.is_empty())
    };
    if !spec.layer2s.values().any(has_rules) && !spec.fabric_vrfs.values().any(has_mirrors) {
        return Cow::Borrowed(spec);
    }
    let mut spec = spec.clone();
    for segment in spec.layer2s.values_mut() {
        segment.mirror_acls.clear();
    }
    let vrfs = spec.fabric_vrfs.values_mut();
    for vrf in vrfs.filter(|vrf| has_mirrors(vrf)) {
        let vrf = Arc::make_mut(vrf);
        vrf.mirror_acls.clear();
        vrf.gres.clear();
        let loopbacks = std::mem::take(&mut vrf.loopbacks);
        let sources = loopbacks
            .values()
            .flat_map(|loopback| &loopback.ip_addresses);
        let sources: Vec<FilterItem> = sources.map(|own| accept(own.prefix())).collect();
        if let Some(filter) = &mut vrf.evpn_export_filter {
            // They stand first, one for each loopback.
            let mut place = 0;
            filter.items.retain(|item| {
                place += 1;
                place > sources.len() || !sources.contains(item)
            });
        }
    }
    Cow::Owned(spec)
}

fn accept(prefix: Prefix) -> FilterItem {
    FilterItem {
        matcher: Matcher {
            prefix: Some(PrefixMatcher {
                prefix,
                ge: None,
                le: None,
            }),
            bgp_community: None,
        },
        action: Action::new(ActionType::Accept),
    }
}

/// What a node has of mirrors, and what is wrong there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placed {
    mirrors: NodeMirrors,
    pub(crate) problems: Vec<Problem>,
}

impl Placed {
    /// Adds a loopback with the address that was given for it; one that the node has stays where none was, or where it cannot be used.
    fn add(&mut self, view: &View<'_>, node: &Key, loopback: &PooledLoopback) {
        let (vrf, name) = (loopback.vrf.as_str(), loopback.name.as_str());
        let claim = AddressClaim::new(&view.settings(), &loopback.pool, vrf, name, &node.name);
        let given = ipam::given(view, &claim);
        let unusable = given.as_ref();
        let unusable = unusable.and_then(|given| unusable_address(view, node, vrf, given));
        let (is_unusable, mirrors) = (unusable.is_some(), &mut self.mirrors);
        mirrors.claim(claim.clone());
        let in_use = || address_in_use(view, node, vrf, name);
        let address = match given {
            Some((_, address)) if !is_unusable => Some(address),
            Some(_) | None => in_use().inspect(|address| {
                if let Some(held) = ipam::held(view, node, vrf, name) {
                    mirrors.claim(held);
                }
                let kept = || kept(view, node, &loopback.wanted_by, &claim, *address);
                self.problems.extend((!is_unusable).then(kept));
            }),
        };
        let place = (vrf.to_owned(), name.to_owned());
        let loopback = address.map(|address| (place, address));
        self.mirrors.loopbacks.extend(loopback);
        self.problems.extend(unusable);
    }
}

/// The mirrors of a node.
pub(crate) fn of_node(view: &View<'_>, node: &Key) -> NodeMirrors {
    view.get::<MirrorsOf>(node).mirrors.clone()
}

/// The mirrors that concern each node.
pub(crate) struct MirrorsOf;
impl Query for MirrorsOf {
    type Key = Key;
    type Value = Arc<Placed>;
    fn compute(view: &View<'_>, node: &Key) -> Arc<Placed> {
        let Some(config) = view.get::<ForwardingOf>(node) else {
            return Arc::default();
        };
        let mirrors = view.get::<AllMirrors>(&());
        let mut placed = Placed::default();
        for loopback in pooled(&mirrors, &config) {
            placed.add(view, node, loopback);
        }
        let all = &mut placed.mirrors;
        for mirror in wanted(&mirrors, &config) {
            let Some(tunnel) = mirrors.tunnels.get(mirror.target()) else {
                continue;
            };
            let name = &mirror.object.name;
            match gre(view, node, &config, mirror, tunnel) {
                Ok((claim, address, gre)) => {
                    let vrf = tunnel.object.spec.destination_vrf.to_string();
                    let loopback = tunnel.object.spec.source_loopback.to_string();
                    let device = tunnel.device.to_string();
                    all.loopbacks.insert((vrf.clone(), loopback), address);
                    let made = (mirror.target().to_owned(), gre);
                    all.tunnels.insert((vrf, device), made);
                    all.rules.push(rule(mirror, tunnel));
                    all.claim(claim);
                }
                Err(Lacking::Address(claim, problem)) => {
                    let waits_for = problem.is_none().then(|| claim.key.to_string());
                    all.missing.insert(name.clone(), waits_for);
                    let in_use = tunnel_in_use(view, node, &config, tunnel);
                    if let (None, Some((.., gre))) = (&problem, &in_use) {
                        let kept = kept(view, node, &tunnel.wanted_by, &claim, gre.source_address);
                        placed.problems.push(kept);
                    }
                    placed.problems.extend(problem.map(|problem| *problem));
                    all.claim(claim);
                    if let Some((vrf, loopback, gre)) = in_use {
                        if let Some(held) = ipam::held(view, node, &vrf, &loopback) {
                            all.claim(held);
                        }
                        let place = (vrf.clone(), loopback);
                        all.loopbacks.insert(place, gre.source_address);
                        let made = (mirror.target().to_owned(), gre);
                        all.tunnels.insert((vrf, tunnel.device.to_string()), made);
                        all.rules.push(rule(mirror, tunnel));
                    }
                }
                Err(Lacking::Wrong(problem)) => {
                    all.missing.insert(name.clone(), None);
                    placed.problems.push(*problem);
                }
            }
        }
        Arc::new(placed)
    }
}

/// The loopbacks that a node has because it has their VRF.
fn pooled<'a>(
    mirrors: &'a Mirrors,
    config: &'a NodeConfig,
) -> impl Iterator<Item = &'a PooledLoopback> {
    let loopbacks = mirrors.loopbacks.iter();
    loopbacks.filter(|loopback| {
        let mut objects = loopback.objects.iter();
        config.shared.fabric_vrfs.contains_key(&loopback.vrf)
            && objects.any(|object| config.shared.routing.contains(object))
    })
}

/// The tunnel that a node has for a target, with its VRF and loopback. It stays while the claim for its new source is open.
fn tunnel_in_use(
    view: &View<'_>,
    node: &Key,
    config: &NodeConfig,
    tunnel: &Tunnel,
) -> Option<(String, String, Gre)> {
    let stored = view.spec::<kinds::NodeNetworkConfig>(node)?;
    let mut vrfs = stored.fabric_vrfs.iter();
    let (vrf, gre) = vrfs.find_map(|(name, vrf)| {
        let gre = vrf.gres.get(tunnel.device.as_str())?;
        Some((name.clone(), gre.clone()))
    })?;
    let loopback = gre.source_interface.as_ref()?.to_string();
    let is_there = config.shared.fabric_vrfs.contains_key(&vrf)
        && address_in_use(view, node, &vrf, &loopback) == Some(gre.source_address);
    is_there.then_some((vrf, loopback, gre))
}

/// The mirrors whose source a node has, by name.
fn wanted<'a>(mirrors: &'a Mirrors, config: &NodeConfig) -> Vec<&'a Mirror> {
    let segments = config.shared.segments.iter();
    let of_segments = segments.filter_map(|name| mirrors.of_segments.get(name));
    let routing = config.shared.routing.iter();
    let of_routing = routing.filter_map(|name| mirrors.of_routing.get(name));
    let mut wanted: Vec<&Mirror> = of_segments.chain(of_routing).flatten().collect();
    wanted.retain(|mirror| is_there(&mirror.place, config));
    wanted.sort_by_key(|mirror| &mirror.object.name);
    wanted
}

/// Why a node has no tunnel.
enum Lacking {
    /// Its source address is not there yet; or it is another node's, or no tunnel can start at it: then it is said what is wrong. What the
    /// node has stays until then.
    Address(AddressClaim, Option<Box<Problem>>),
    /// Something is wrong.
    Wrong(Box<Problem>),
}

impl Lacking {
    fn wrong(problem: Problem) -> Self {
        Self::Wrong(Box::new(problem))
    }
}

/// An address that was given for a claim of a node.
struct Given {
    claim: AddressClaim,
    /// The object that says so.
    by: ObjectRef,
    address: IpAddr,
}

/// The address that a tunnel starts at on a node.
fn given(
    view: &View<'_>,
    node: &Key,
    config: &NodeConfig,
    mirror: &Mirror,
    tunnel: &Tunnel,
) -> Result<Given, Lacking> {
    let spec = &tunnel.object.spec;
    let (vrf, loopback) = (spec.destination_vrf.as_str(), spec.source_loopback.as_str());
    let of_mirror = |kind| {
        let field = if mirror.object.is_generated() {
            "spec.collector"
        } else {
            "spec.mirrorTarget"
        };
        Lacking::wrong(Problem::new(mirror.object.source.clone(), field, kind))
    };
    if !config.shared.fabric_vrfs.contains_key(vrf) {
        return Err(of_mirror(problem::Kind::VrfNotOnNode {
            vrf: vrf.to_owned(),
            node: node.name.to_string(),
        }));
    }
    let mut objects = tunnel.loopback_objects.iter();
    if !objects.any(|object| config.shared.routing.contains(object)) {
        return Err(of_mirror(problem::Kind::LoopbackNotOnNode {
            vrf: vrf.to_owned(),
            loopback: loopback.to_owned(),
            node: node.name.to_string(),
        }));
    }
    let claim = AddressClaim::new(&view.settings(), &tunnel.pool, vrf, loopback, &node.name);
    match ipam::given(view, &claim) {
        Some((by, address)) => Ok(Given { claim, by, address }),
        None => Err(Lacking::Address(claim, None)),
    }
}

/// The addresses of loopbacks, by VRF: each with the nodes that were given it, and the objects that say so.
pub(crate) struct GivenByAddress;
impl Index for GivenByAddress {
    type Source = Key;
    type Key = (String, IpAddr);
    type Item = (String, ObjectRef);
    fn sources(view: &View<'_>) -> Vec<Key> {
        view.keys::<kinds::Node>().to_vec()
    }
    fn entries(view: &View<'_>, node: &Key) -> Vec<(Self::Key, Self::Item)> {
        let Some(config) = view.get::<ForwardingOf>(node) else {
            return Vec::new();
        };
        let mirrors = view.get::<AllMirrors>(&());
        let of_tunnels = wanted(&mirrors, &config).into_iter().filter_map(|mirror| {
            let tunnel = mirrors.tunnels.get(mirror.target())?;
            let given = given(view, node, &config, mirror, tunnel).ok()?;
            let vrf = tunnel.object.spec.destination_vrf.to_string();
            Some(((vrf, given.address), (node.name.to_string(), given.by)))
        });
        let of_loopbacks = pooled(&mirrors, &config).filter_map(|loopback| {
            let (vrf, name) = (loopback.vrf.as_str(), loopback.name.as_str());
            let claim = AddressClaim::new(&view.settings(), &loopback.pool, vrf, name, &node.name);
            let (by, address) = ipam::given(view, &claim)?;
            Some(((vrf.to_owned(), address), (node.name.to_string(), by)))
        });
        let addresses: BTreeSet<_> = of_tunnels.chain(of_loopbacks).collect();
        addresses.into_iter().collect()
    }
}

/// The tunnel of a target on a node, with its source.
fn gre(
    view: &View<'_>,
    node: &Key,
    config: &NodeConfig,
    mirror: &Mirror,
    tunnel: &Tunnel,
) -> Result<(AddressClaim, IpAddr, Gre), Lacking> {
    let Given { claim, by, address } = given(view, node, config, mirror, tunnel)?;
    let spec = &tunnel.object.spec;
    let vrf = spec.destination_vrf.as_str();
    if let Some(problem) = unusable_address(view, node, vrf, &(by, address)) {
        return Err(Lacking::Address(claim, Some(Box::new(problem))));
    }
    let destination = spec.destination_ip;
    let wrong = if address == destination {
        let node = node.name.to_string();
        Some(problem::Kind::TunnelToItself { address, node })
    } else if address.is_ipv4() != destination.is_ipv4() {
        Some(problem::Kind::TunnelFamilies {
            source_address: address,
            destination,
        })
    } else {
        None
    };
    if let Some(kind) = wrong {
        let field = if tunnel.object.is_generated() {
            "spec.address"
        } else {
            "spec.destinationIP"
        };
        let problem = Problem::new(tunnel.object.source.clone(), field, kind);
        return Err(Lacking::Address(claim, Some(Box::new(problem))));
    }
    let gre = Gre {
        destination_address: destination,
        source_address: address,
        source_interface: Some(spec.source_loopback.clone()),
        layer: match spec.kind {
            GreProtocol::L2gre => GreLayer::Layer2,
            GreProtocol::L3gre => GreLayer::Layer3,
        },
        encapsulation_key: spec.key,
    };
    Ok((claim, address, gre))
}

fn is_there(place: &Place, config: &NodeConfig) -> bool {
    match place {
        Place::Segment(vlan) => config.shared.layer2s.contains_key(&vlan.to_string()),
        Place::Vrf(vrf) => config.shared.fabric_vrfs.contains_key(vrf),
    }
}

fn rule(mirror: &Mirror, tunnel: &Tunnel) -> Rule {
    let spec = &mirror.object.spec;
    Rule {
        selector: mirror.object.name.clone(),
        place: mirror.place.clone(),
        acl: MirrorAcl {
            traffic_match: spec.traffic_match.clone().unwrap_or_default(),
            mirror_destination: tunnel.device.clone(),
            direction: spec.direction,
        },
    }
}
