//! BGP sessions with workloads: with any peer on a segment, or with addresses on a loopback of the node.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use api::{
    selvedge::SettingsSpec,
    tcaas::{
        BgpPeeringSpec, Layer2NetworkConfigurationSpec, PrefixItem,
        node_network_config::{
            ActionType, AddressFamily, BfdProfile, BgpPeer, Filter, HostLoopback, Layer2, NextHop,
            StaticRoute, Vrf,
        },
    },
    value::{HostCidr, Prefix},
};
use ipnet::IpNet;

use super::{Group, router_addresses, vrfs};
use crate::{
    lower::{
        LowLevel, object as object_of,
        scope::{self, Scope, Scoped},
        timers,
    },
    memo::Query,
    names,
    problem::{self, Problem},
    snapshot::{Key, Kind, ObjectRef, kinds},
    view::View,
};

pub(crate) type Peering = LowLevel<BgpPeeringSpec>;

/// Milliseconds between BFD packets where `enableBFD` asks for them: FRR's own default.
const BFD_INTERVAL: u32 = 300;
/// Routes of one family that a workload may announce where its peering gives no limit.
const MAXIMUM_PREFIXES: u32 = 1000;
/// Hops to a loopback of the node: the router, then the host.
pub(super) const LOOPBACK_HOPS: u8 = 2;

/// Peerings that want sessions which another runs and do not run them themselves.
pub(super) fn challengers(
    view: &View<'_>,
    peerings: &[Arc<Peering>],
    nodes: &[Key],
) -> BTreeSet<String> {
    let peerings = peerings.iter().map(|one| &**one);
    let meet = |one: &Scope, other: &Scope| one == other;
    let is_here = |spec: &BgpPeeringSpec| {
        let configs = nodes.iter();
        let mut configs = configs.filter_map(|node| view.spec::<kinds::NodeNetworkConfig>(node));
        configs.any(|config| {
            let mut peers = config.vrfs().flat_map(|vrf| &vrf.bgp_peers);
            peers.any(|peer| is_session(spec, peer))
        })
    };
    scope::challengers::<kinds::BgpPeering, _>(view, peerings, Scoped::scopes, meet, is_here)
}

/// Whether a session that a node has is one of a peering.
fn is_session(spec: &BgpPeeringSpec, peer: &BgpPeer) -> bool {
    let is_at = |address: IpAddr| {
        let mut loopbacks = spec.loopback_peer.iter();
        loopbacks.any(|loopback| loopback.ips.contains(&address))
    };
    let is_there = match peer.address {
        Some(address) => is_at(address),
        None => spec.peering_vlan.is_some(),
    };
    let own = BgpPeer {
        address: peer.address,
        listen_range: peer.listen_range,
        multihop: peer.multihop,
        ipv4: peer.ipv4.as_ref().map(|_| family(spec, true)),
        ipv6: peer.ipv6.as_ref().map(|_| family(spec, false)),
        ..session(spec)
    };
    is_there && own == *peer
}

/// The VRFs of a group that get sessions.
pub(super) struct Vrfs<'a> {
    /// Name of the cluster VRF.
    pub(super) cluster_name: &'a str,
    /// The cluster VRF.
    pub(super) cluster: &'a mut Vrf,
    /// The others, by name.
    pub(super) fabric: &'a mut BTreeMap<String, Vrf>,
}

/// Puts the sessions of a group into its VRFs. Gives back the loopbacks of the hosts that carry peers, by device, and the objects in effect.
pub(super) fn build<'a>(
    settings: &SettingsSpec,
    group: &Group<'a>,
    segments: &[(&'a str, &'a ObjectRef, Layer2)],
    mut vrfs: Vrfs<'_>,
    problems: &mut Vec<Problem>,
) -> (BTreeMap<String, HostLoopback>, BTreeSet<&'a str>) {
    let mut loopbacks = BTreeMap::new();
    let mut in_effect = BTreeSet::new();
    let of_settings = ObjectRef::named(Kind::Settings, "default");
    let neighbors = vrfs.cluster.bgp_peers.iter().filter_map(BgpPeer::peer);
    let mut holders: BTreeMap<(String, String), &ObjectRef> = neighbors
        .map(|peer| ((vrfs.cluster_name.to_owned(), peer), &of_settings))
        .collect();
    for (name, object) in &group.bgp {
        let found = if object.spec.peering_vlan.is_some() {
            on_segment(object, segments, vrfs.cluster_name)
        } else {
            on_loopback(settings, object, vrfs.cluster_name)
        };
        let Ok(peers) = found.map_err(|problem| problems.extend(problem.map(|problem| *problem)))
        else {
            continue;
        };
        let mut addresses = Vec::new();
        for (vrf_name, peer) in peers {
            let key = peer.listen_range.map(|range| range.to_string());
            let key = key.or_else(|| peer.address.map(|address| address.to_string()));
            let key = (vrf_name.clone(), key.unwrap_or_default());
            if let Some(by) = holders.get(&key) {
                let kind = problem::Kind::PeerTaken {
                    peer: key.1,
                    vrf: vrf_name,
                    by: Box::new((*by).clone()),
                };
                let field = if object.spec.peering_vlan.is_some() {
                    field(object, "spec.bgp")
                } else {
                    field(object, "spec")
                };
                problems.push(Problem::new(object.source.clone(), field, kind));
                continue;
            }
            holders.insert(key, &object.source);
            in_effect.insert(*name);
            if let Some(address) = peer.address {
                addresses.push(HostCidr::new(IpNet::from(address)));
                vrfs.cluster
                    .static_routes
                    .extend(by_trunk(settings, address));
            }
            if let Some(vrf) = vrfs.get(&vrf_name) {
                vrf.bgp_peers.push(peer);
            }
        }
        if !addresses.is_empty() {
            let loopback = HostLoopback { addresses };
            loopbacks.insert(names::peer_loopback(name).to_string(), loopback);
        }
    }
    (loopbacks, in_effect)
}

impl Vrfs<'_> {
    fn get(&mut self, name: &str) -> Option<&mut Vrf> {
        if name == self.cluster_name {
            return Some(self.cluster);
        }
        self.fabric.get_mut(name)
    }
}

/// The field of a peering that a problem is about; one that an intent has made has its own.
fn field(object: &Peering, of_intent: &'static str) -> &'static str {
    if object.is_generated() {
        of_intent
    } else if object.spec.peering_vlan.is_some() {
        "spec.peeringVlan"
    } else {
        "spec.loopbackPeer"
    }
}

/// Sessions that any host on a segment may open with its gateway. A node without the segment has none.
fn on_segment(
    object: &Peering,
    segments: &[(&str, &ObjectRef, Layer2)],
    cluster: &str,
) -> Result<Vec<(String, BgpPeer)>, Option<Box<Problem>>> {
    let wanted = object.spec.peering_vlan.as_ref();
    let wanted = wanted
        .map(|reference| reference.name.as_str())
        .unwrap_or_default();
    let (_, _, segment) = segments
        .iter()
        .find(|(name, ..)| *name == wanted)
        .ok_or(None)?;
    let Some(irb) = &segment.irb else {
        let kind = problem::Kind::PeeringWithoutGateway {
            segment: ObjectRef::named(Kind::Layer2NetworkConfiguration, wanted),
        };
        let field = field(object, "spec.bgp");
        let problem = Problem::new(object.source.clone(), field, kind);
        return Err(Some(Box::new(problem)));
    };
    let peer = |gateway: &HostCidr| {
        let family = Some(family(&object.spec, gateway.is_ipv4()));
        let (ipv4, ipv6) = if gateway.is_ipv4() {
            (family, None)
        } else {
            (None, family)
        };
        let peer = BgpPeer {
            listen_range: Some(gateway.prefix()),
            ipv4,
            ipv6,
            ..session(&object.spec)
        };
        let vrf = if irb.vrf == cluster {
            cluster
        } else {
            &irb.vrf
        };
        (vrf.to_owned(), peer)
    };
    Ok(irb.ip_addresses.iter().map(peer).collect())
}

/// Sessions with addresses on a loopback of the host, which the cluster VRF reaches over the trunk.
fn on_loopback(
    settings: &SettingsSpec,
    object: &Peering,
    cluster: &str,
) -> Result<Vec<(String, BgpPeer)>, Option<Box<Problem>>> {
    let mut peers = Vec::new();
    let ips = object.spec.loopback_peer.iter().flat_map(|peer| &peer.ips);
    for address in ips {
        let wrong = if by_trunk(settings, *address).is_none() {
            Some(problem::Kind::NoWayToPeer {
                peer: address.to_string(),
            })
        } else if ends_of_trunk(settings).any(|end| end == *address) {
            Some(problem::Kind::AddressTaken {
                address: *address,
                by: ObjectRef::named(Kind::Settings, "default"),
            })
        } else {
            None
        };
        if let Some(kind) = wrong {
            let field = field(object, "spec");
            let problem = Problem::new(object.source.clone(), field, kind);
            return Err(Some(Box::new(problem)));
        }
        let peer = BgpPeer {
            address: Some(*address),
            multihop: Some(LOOPBACK_HOPS),
            ipv4: Some(family(&object.spec, true)),
            ipv6: address.is_ipv6().then(|| family(&object.spec, false)),
            ..session(&object.spec)
        };
        peers.push((cluster.to_owned(), peer));
    }
    Ok(peers)
}

/// The addresses of both ends of the trunk.
pub(crate) fn ends_of_trunk(settings: &SettingsSpec) -> impl Iterator<Item = IpAddr> {
    let router = router_addresses(settings).into_iter();
    let host = settings.trunk.addresses.iter().copied();
    host.chain(router).map(HostCidr::addr)
}

/// The route to an address of the host: by the host's end of the trunk.
pub(super) fn by_trunk(settings: &SettingsSpec, address: IpAddr) -> Option<StaticRoute> {
    let mut ends = settings.trunk.addresses.iter();
    let host = ends.find(|end| end.is_ipv4() == address.is_ipv4())?;
    Some(StaticRoute {
        prefix: Prefix::host(address),
        next_hop: Some(NextHop {
            address: Some(host.addr()),
            vrf: None,
        }),
        bfd_profile: None,
    })
}

/// What all sessions of a peering have in common.
fn session(spec: &BgpPeeringSpec) -> BgpPeer {
    BgpPeer {
        address: None,
        interface: None,
        listen_range: None,
        remote_asn: spec.remote_asn,
        local_as: None,
        ipv4: None,
        ipv6: None,
        bfd_profile: spec.enable_bfd.then_some(BfdProfile {
            min_interval: BFD_INTERVAL,
        }),
        multihop: None,
        hold_time: spec.hold_time,
        keepalive_time: spec.keepalive_time,
        password_secret: None,
        update_source: None,
        source_address: None,
    }
}

/// The limit of routes of one family in effect.
pub(crate) fn maximum_prefixes(spec: &BgpPeeringSpec) -> u32 {
    spec.maximum_prefixes.unwrap_or(MAXIMUM_PREFIXES)
}

fn family(spec: &BgpPeeringSpec, ipv4: bool) -> AddressFamily {
    let filter = |items: &[PrefixItem]| {
        let mut filter = Filter::default_to(ActionType::Reject);
        let items = vrfs::in_order(items).into_iter();
        let items = items.filter(|item| item.cidr.is_ipv4() == ipv4);
        filter.items = items.map(|item| vrfs::filter_item(item, None)).collect();
        filter
    };
    AddressFamily {
        export_filter: Some(filter(&spec.export)),
        import_filter: Some(filter(&spec.import)),
        max_prefixes: Some(maximum_prefixes(spec)),
    }
}

/// What is wrong with a peering wherever it is.
pub(crate) struct WrongWithPeering;
impl Query for WrongWithPeering {
    type Key = String;
    type Value = Arc<Vec<Problem>>;
    fn compute(view: &View<'_>, name: &String) -> Arc<Vec<Problem>> {
        let Some(object) = object_of::<BgpPeeringSpec>(view, name) else {
            return Arc::default();
        };
        let spec = &object.spec;
        let mut found = Vec::new();
        if spec.peering_vlan.is_some() == spec.loopback_peer.is_some() {
            let message = "exactly one of peeringVlan and loopbackPeer must be set".to_owned();
            found.push(("spec", problem::Kind::RuleBroken { message }));
        }
        if let Some(reference) = &spec.peering_vlan {
            let segment = object_of::<Layer2NetworkConfigurationSpec>(view, &reference.name);
            if segment.is_none() {
                let target = ObjectRef::named(Kind::Layer2NetworkConfiguration, &reference.name);
                let kind = problem::Kind::MissingReference { target };
                found.push(("spec.peeringVlan", kind));
            }
        }
        if !timers::fit(spec) {
            let field = timers::field(object.source.kind);
            found.push((field, problem::Kind::TimersDoNotFit));
        }
        let found = found.into_iter();
        let problem = |(field, kind)| Problem::new(object.source.clone(), field, kind);
        Arc::new(found.map(problem).collect())
    }
}
