//! From mirrors to nodes: a rule where the traffic is, and beside it, and only there, a tunnel with its source.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use api::{
    tcaas::{
        GreProtocol, NodeNetworkConfigSpec,
        node_network_config::{
            Action, ActionType, FilterItem, Gre, GreLayer, Loopback, Matcher, MirrorAcl,
            PrefixMatcher,
        },
    },
    value::{HostCidr, Prefix},
};
use ipnet::IpNet;

use super::{Mirror, Mirrors, Tunnel};
use crate::{
    NodeConfig,
    platform::ipam::{Addresses, Claim},
    problem::{self, Problem},
    snapshot::{ObjectRef, Snapshot},
};

/// What a node has of mirrors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeMirrors {
    /// What is copied.
    pub rules: Vec<Rule>,
    /// Where the copies go: tunnels by VRF and device, each with the target it is made for.
    pub tunnels: BTreeMap<(String, String), (String, Gre)>,
    /// Where tunnels start: addresses by VRF and loopback.
    pub loopbacks: BTreeMap<(String, String), IpAddr>,
    /// Selectors whose source is here and which are not in effect, each with the claim that it waits for; without one where
    /// something is wrong.
    pub missing: BTreeMap<String, Option<String>>,
    /// The addresses that the node needs.
    pub claims: Vec<Claim>,
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
    /// Puts the mirrors into a config.
    pub(crate) fn enter(&self, spec: &mut NodeNetworkConfigSpec) {
        for ((vrf, loopback), address) in &self.loopbacks {
            let Some(vrf) = spec.fabric_vrfs.get_mut(vrf) else {
                continue;
            };
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
                vrf.gres.insert(device.clone(), gre.clone());
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
                    vrf.map(|vrf| &mut vrf.mirror_acls)
                }
            };
            // The same wish of two people is one copy.
            if let Some(acls) = acls.filter(|acls| !acls.contains(&rule.acl)) {
                acls.push(rule.acl.clone());
            }
        }
    }
}

/// A config without its mirrors: what is left changes forwarding.
pub(crate) fn without(spec: &NodeNetworkConfigSpec) -> NodeNetworkConfigSpec {
    let mut spec = spec.clone();
    for segment in spec.layer2s.values_mut() {
        segment.mirror_acls.clear();
    }
    for vrf in spec.fabric_vrfs.values_mut() {
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
    spec
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

/// Gives every node the mirrors that concern it.
pub(super) fn place(
    mirrors: &Mirrors<'_>,
    snapshot: &Snapshot,
    nodes: &mut BTreeMap<String, NodeConfig>,
    problems: &mut Vec<Problem>,
) {
    if mirrors.of_segments.is_empty() && mirrors.of_routing.is_empty() {
        for config in nodes.values_mut() {
            config.mirrors = NodeMirrors::default();
        }
        return;
    }
    let mut placing = Placing {
        mirrors,
        addresses: Addresses::new(snapshot),
        holders: BTreeMap::new(),
        problems,
    };
    for (node, config) in nodes {
        config.mirrors = placing.of_node(node, config);
    }
}

struct Placing<'a> {
    mirrors: &'a Mirrors<'a>,
    addresses: Addresses<'a>,
    /// Who has an address in a VRF: the node, and the object that says so.
    holders: BTreeMap<(String, IpAddr), (String, ObjectRef)>,
    problems: &'a mut Vec<Problem>,
}

/// Why a node has no tunnel.
enum Lacking {
    /// Its source address is not there yet.
    Address(Claim),
    /// Something is wrong.
    Wrong(Box<Problem>),
}

impl Lacking {
    fn wrong(problem: Problem) -> Self {
        Self::Wrong(Box::new(problem))
    }
}

impl Placing<'_> {
    fn of_node(&mut self, node: &str, config: &NodeConfig) -> NodeMirrors {
        let mut all = NodeMirrors::default();
        let mut wanted: Vec<&Mirror<'_>> = Vec::new();
        for segment in &config.shared.segments {
            wanted.extend(
                self.mirrors
                    .of_segments
                    .get(segment.as_str())
                    .into_iter()
                    .flatten(),
            );
        }
        for routing in &config.shared.routing {
            let here = self.mirrors.of_routing.get(routing.as_str());
            wanted.extend(here.into_iter().flatten());
        }
        wanted.retain(|mirror| is_there(&mirror.place, config));
        wanted.sort_by_key(|mirror| mirror.name);
        let mut claimed = BTreeSet::new();
        for mirror in wanted {
            let Some(tunnel) = self.mirrors.tunnels.get(mirror.target) else {
                continue;
            };
            match self.tunnel(node, config, mirror, tunnel) {
                Ok((claim, address, gre)) => {
                    let vrf = tunnel.object.spec.destination_vrf.to_string();
                    let loopback = tunnel.object.spec.source_loopback.to_string();
                    let device = tunnel.device.to_string();
                    all.loopbacks.insert((vrf.clone(), loopback), address);
                    let made = (mirror.target.to_owned(), gre);
                    all.tunnels.insert((vrf, device), made);
                    all.rules.push(rule(mirror, tunnel));
                    if claimed.insert(claim.key.clone()) {
                        all.claims.push(claim);
                    }
                }
                Err(Lacking::Address(claim)) => {
                    let waits_for = Some(claim.key.to_string());
                    all.missing.insert(mirror.name.to_owned(), waits_for);
                    if claimed.insert(claim.key.clone()) {
                        all.claims.push(claim);
                    }
                }
                Err(Lacking::Wrong(problem)) => {
                    all.missing.insert(mirror.name.to_owned(), None);
                    self.problems.push(*problem);
                }
            }
        }
        all
    }

    /// The tunnel of a target on a node, with its source.
    fn tunnel(
        &mut self,
        node: &str,
        config: &NodeConfig,
        mirror: &Mirror<'_>,
        tunnel: &Tunnel<'_>,
    ) -> Result<(Claim, IpAddr, Gre), Lacking> {
        let spec = &tunnel.object.spec;
        let (vrf, loopback) = (spec.destination_vrf.as_str(), spec.source_loopback.as_str());
        let of_mirror = |kind| {
            let is_generated = mirror.object.is_generated();
            let field = if is_generated {
                "spec.collector"
            } else {
                "spec.mirrorTarget"
            };
            Lacking::wrong(Problem::new(mirror.object.source.clone(), field, kind))
        };
        let (vrf_name, node_name) = (vrf.to_owned(), node.to_owned());
        if !config.shared.fabric_vrfs.contains_key(vrf) {
            let (vrf, node) = (vrf_name, node_name);
            return Err(of_mirror(problem::Kind::VrfNotOnNode { vrf, node }));
        }
        let mut objects = tunnel.loopback.objects.iter();
        if !objects.any(|object| config.shared.routing.contains(*object)) {
            return Err(of_mirror(problem::Kind::LoopbackNotOnNode {
                vrf: vrf_name,
                loopback: loopback.to_owned(),
                node: node_name,
            }));
        }
        let place = (vrf, loopback, node);
        let claim = Claim::new(self.mirrors.settings, tunnel.loopback.pool, place);
        let Some((given, address)) = self.addresses.of(&claim) else {
            return Err(Lacking::Address(claim));
        };
        let holder = self.holders.entry((vrf_name, address));
        let (holder, by) = holder.or_insert_with(|| (node_name, given.clone()));
        if holder != node {
            let by = by.clone();
            let kind = problem::Kind::AddressGivenTwice { address, by };
            return Err(Lacking::wrong(Problem::new(given, "spec.address", kind)));
        }
        let destination = spec.destination_ip;
        if address.is_ipv4() != destination.is_ipv4() {
            let is_generated = tunnel.object.is_generated();
            let field = if is_generated {
                "spec.address"
            } else {
                "spec.destinationIP"
            };
            let source_address = address;
            let kind = problem::Kind::TunnelFamilies {
                source_address,
                destination,
            };
            let source = tunnel.object.source.clone();
            return Err(Lacking::wrong(Problem::new(source, field, kind)));
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
}

fn is_there(place: &Place, config: &NodeConfig) -> bool {
    match place {
        Place::Segment(vlan) => config.shared.layer2s.contains_key(&vlan.to_string()),
        Place::Vrf(vrf) => config.shared.fabric_vrfs.contains_key(vrf),
    }
}

fn rule(mirror: &Mirror<'_>, tunnel: &Tunnel<'_>) -> Rule {
    let spec = &mirror.object.spec;
    Rule {
        selector: mirror.name.to_owned(),
        place: mirror.place.clone(),
        acl: MirrorAcl {
            traffic_match: spec.traffic_match.clone().unwrap_or_default(),
            mirror_destination: tunnel.device.clone(),
            direction: spec.direction,
        },
    }
}
