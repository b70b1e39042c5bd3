//! A `BGPNeighbor` becomes sessions with workloads on a loopback of their node, in which the addresses of its Inbounds are taken and
//! nothing else.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use api::{
    meta::LabelSelector,
    selvedge::SettingsSpec,
    tcaas::{
        BgpNeighborSpec, BgpPeeringSpec, InboundSpec, LoopbackPeer, VrfRouteConfigurationSpec,
    },
    value::Prefix,
};

use super::{
    addresses::plain,
    inbound,
    intent::{Author, Intent, LoweredIntent, Terms},
    low_level::LowLevelObject,
    merge::Merged,
    network,
    reach::{self, ReachedVrf},
    routing::{self, generated_name, permit, subnets},
    scope::Scope,
    service::Service,
    values,
};
use crate::{
    allocate::Pool,
    allocate::share::Claim,
    memo::{Index, Query},
    node::ends_of_trunk,
    problem::{self, Problem},
    snapshot::{Key, Kind, ObjectRef, kinds},
    view::View,
};

/// An Inbound that the neighbor allows.
struct Allowed {
    /// Where it stands in the list.
    place: usize,
    subject: ObjectRef,
    spec: Arc<InboundSpec>,
    service: Service,
}

impl Intent for kinds::BgpNeighbor {
    const VRF_FIELD: &'static str = "spec.allowedInbounds";

    fn terms(spec: &BgpNeighborSpec) -> Terms<'_> {
        let inbounds = spec.allowed_inbounds.iter();
        Terms::naming(inbounds.map(|inbound| ObjectRef::named(Kind::Inbound, &inbound.name)))
    }

    fn scope_field(scope: &Scope) -> &'static str {
        match scope {
            Scope::Vrf(_) => Self::VRF_FIELD,
            _ => "spec",
        }
    }

    fn claim(_view: &View<'_>, _subject: &ObjectRef) -> Option<Claim> {
        None
    }

    fn is_needed(object: &LowLevelObject) -> bool {
        matches!(object, LowLevelObject::Bgp(_))
    }

    fn lower(
        view: &View<'_>,
        author: &Author<'_>,
        spec: &BgpNeighborSpec,
        problems: &mut Vec<Problem>,
    ) -> Option<LoweredIntent> {
        let (subject, settings) = (author.subject, view.settings());
        let before = problems.len();
        let remote_asn = spec.workload_as.or(settings.bgp.workload_as);
        if remote_asn.is_none() {
            let kind = problem::Kind::WorkloadAsRequired;
            problems.push(author.problem("spec.workloadAS", kind));
        }
        let ips = view.get::<WorkloadIps>(&());
        let ips = ips.get(&*subject.key.name).cloned().unwrap_or_default();
        problems.extend(lacking_families(&settings, author, &ips));
        let allowed = allowed(view, subject, spec, problems);
        let remote_asn = remote_asn.filter(|_| problems.len() == before)?;
        note_what_has_no_effect(subject, &ips, &allowed, problems);

        let hosts = allowed
            .iter()
            .flat_map(|inbound| plain(&inbound.service.addresses));
        let hosts: Vec<Prefix> = hosts.map(Prefix::host).collect();
        let reached: Vec<Prefix> = allowed
            .iter()
            .flat_map(|inbound| inbound.service.reached.iter().copied())
            .collect();
        let export = routing::of_destinations(&reached, settings.import_match);
        let import = permit(&hosts);
        if import.len().max(export.len()) > routing::MAX_LINES {
            let most = routing::MAX_LINES;
            let message = format!("a neighbor receives and announces at most {most} routes");
            let kind = problem::Kind::RuleBroken { message };
            problems.push(author.problem("spec.allowedInbounds", kind));
            return None;
        }
        let peering = BgpPeeringSpec {
            peering_vlan: None,
            loopback_peer: Some(LoopbackPeer { ips }),
            remote_asn,
            enable_bfd: false,
            maximum_prefixes: spec.maximum_prefixes,
            hold_time: spec.hold_time,
            keepalive_time: spec.keepalive_time,
            import,
            export,
            node_selector: node_selector(&allowed).cloned(),
        };
        let mut objects = if spec.advertise_transfer_network {
            author.objects(transfer_networks(view, subject, &allowed))
        } else {
            Vec::new()
        };
        let name = generated_name(subject, settings.cluster_vrf.name.as_str());
        objects.push(author.object(name, peering));
        Some(LoweredIntent {
            objects,
            ..LoweredIntent::default()
        })
    }
}

/// What is wrong where workloads have no address for their sessions.
fn lacking_families(settings: &SettingsSpec, author: &Author<'_>, ips: &[IpAddr]) -> Vec<Problem> {
    let families = families(settings);
    if families.is_empty() {
        return vec![author.problem("spec", problem::Kind::TrunkRequired)];
    }
    if !values::of_settings(settings).is_empty() {
        let target = ObjectRef::named(Kind::Settings, "default");
        let kind = problem::Kind::ReferenceNotInEffect { target };
        return vec![author.problem("spec", kind)];
    }
    let has = |family: &&Prefix| !ips.iter().any(|ip| ip.is_ipv4() == family.is_ipv4());
    let lacking = families.iter().filter(has);
    let problem = |family: &Prefix| {
        let kind = problem::Kind::PoolExhausted {
            pool: format!("Settings.spec.bgp.workloadCIDRs ({family})"),
            wanted: author.subject.to_string(),
        };
        author.problem("spec", kind)
    };
    lacking.map(problem).collect()
}

fn field(place: usize) -> String {
    format!("spec.allowedInbounds[{place}].name")
}

/// The Inbounds of the list that can be served.
fn allowed(
    view: &View<'_>,
    subject: &ObjectRef,
    spec: &BgpNeighborSpec,
    problems: &mut Vec<Problem>,
) -> Vec<Allowed> {
    let mut allowed: Vec<Allowed> = Vec::new();
    for (place, reference) in spec.allowed_inbounds.iter().enumerate() {
        let name = &reference.name;
        let inbound = ObjectRef::named(Kind::Inbound, name);
        let found = view.spec::<kinds::Inbound>(&Key::named(name));
        let service = view.get::<Merged>(&inbound).service.clone();
        let first = allowed.first();
        let kind = match (found, service) {
            (None, _) | (_, None) => view.missing(inbound),
            (Some(found), _) if inbound::pool(&found, name).is_some() => {
                problem::Kind::InboundHasPool { inbound }
            }
            (Some(_), Some(service)) if !service.is_sound => {
                problem::Kind::ReferenceNotInEffect { target: inbound }
            }
            (Some(found), Some(_))
                if first.is_some_and(|one| one.spec.node_selector != found.node_selector) =>
            {
                let other = first.map_or_else(|| inbound.clone(), |one| one.subject.clone());
                let other = Box::new(other);
                problem::Kind::InboundsApart { inbound, other }
            }
            (Some(spec), Some(service)) => {
                allowed.push(Allowed {
                    place,
                    subject: inbound,
                    spec,
                    service,
                });
                continue;
            }
        };
        let field = field(place);
        problems.push(Problem::new(subject.clone(), field, kind));
    }
    allowed
}

/// The nodes of the Inbounds, which are the same for all.
fn node_selector(allowed: &[Allowed]) -> Option<&LabelSelector> {
    let first = allowed.first()?;
    first.spec.node_selector.as_ref()
}

fn note_what_has_no_effect(
    subject: &ObjectRef,
    ips: &[IpAddr],
    allowed: &[Allowed],
    problems: &mut Vec<Problem>,
) {
    let mut note = |place, what| {
        let kind = problem::Kind::NoEffect { what };
        problems.push(Problem::new(subject.clone(), field(place), kind));
    };
    let over_ipv4_alone = ips.iter().all(IpAddr::is_ipv4);
    for inbound in allowed {
        let name = &inbound.subject;
        if over_ipv4_alone && !inbound.service.addresses.ipv6.is_empty() {
            note(
                inbound.place,
                format!(
                    "the IPv6 addresses of {name} cannot be announced: Settings.spec.trunk.addresses has no IPv6 address"
                ),
            );
        } else if inbound.spec.destinations.is_none() {
            note(
                inbound.place,
                format!(
                    "{name} has no destinations, so that no other VRF learns what is announced"
                ),
            );
        }
    }
}

/// Routing for the networks of Inbounds that do not announce them as a whole by themselves.
///
/// A network that an attachment has on nodes is announced from there, as for the Inbound itself.
fn transfer_networks(
    view: &View<'_>,
    subject: &ObjectRef,
    allowed: &[Allowed],
) -> Vec<(String, VrfRouteConfigurationSpec)> {
    let mut made = Vec::new();
    for Allowed {
        subject: inbound,
        spec,
        ..
    } in allowed
    {
        let network = view.network(&spec.network_ref);
        let (Some(network), Some(selector)) = (network, &spec.destinations) else {
            continue;
        };
        if !spec.disable_aggregation {
            continue;
        }
        // What is wrong with the selection stands on the Inbound, which is sound.
        let reach = reach::resolve(view, inbound, selector, &mut Vec::new());
        let is_attached = network::is_attached(view, &spec.network_ref, &network);
        let subnets = subnets(&network);
        for (vrf, reached) in reach.iter().flat_map(|reach| &reach.vrfs) {
            let exports = routing::Exports {
                items: permit(&subnets),
                aggregate: if is_attached {
                    Vec::new()
                } else {
                    subnets.clone()
                },
                communities: &spec.communities,
                node_selector: spec.node_selector.as_ref(),
            };
            let reached = ReachedVrf {
                prefixes: Vec::new(),
                // The Inbound has them.
                loopbacks: Vec::new(),
                ..reached.clone()
            };
            let scope = format!("{}-{vrf}", inbound.key.name);
            let routing = routing::routing(vrf, &reached, &[], exports);
            made.push((generated_name(subject, &scope), routing));
        }
    }
    made
}

/// The networks that workloads get addresses from: one of each family that the trunk has, IPv4 first.
fn families(settings: &SettingsSpec) -> Vec<Prefix> {
    let trunk = &settings.trunk.addresses;
    let has = |ipv4: bool| trunk.iter().any(|end| end.is_ipv4() == ipv4);
    let of = |ipv4: bool| {
        let mut cidrs = settings.bgp.workload_cidrs.iter().copied();
        cidrs.find(|cidr| cidr.is_ipv4() == ipv4 && has(ipv4))
    };
    [of(true), of(false)].into_iter().flatten().collect()
}

/// The addresses of peers on loopbacks that configs of nodes have.
pub(crate) struct PeerAddressesInUse;
impl Index for PeerAddressesInUse {
    type Source = Key;
    type Key = IpAddr;
    type Item = ();
    fn sources(view: &View<'_>) -> Vec<Key> {
        view.keys::<kinds::NodeNetworkConfig>().to_vec()
    }
    fn entries(view: &View<'_>, node: &Key) -> Vec<(IpAddr, ())> {
        let config = view.spec::<kinds::NodeNetworkConfig>(node);
        let loopbacks = config
            .iter()
            .flat_map(|config| config.host_loopbacks.values());
        let addresses = loopbacks.flat_map(|loopback| &loopback.addresses);
        addresses.map(|address| (address.addr(), ())).collect()
    }
}

/// The addresses from which workloads of each neighbor open sessions, by the neighbor's name: one of each family, IPv4 first.
///
/// A neighbor that has an address keeps it; the older is served first; what nodes still have is given to no other.
pub(crate) struct WorkloadIps;
impl Query for WorkloadIps {
    type Key = ();
    type Value = Arc<BTreeMap<String, Vec<IpAddr>>>;
    fn compute(view: &View<'_>, (): &()) -> Self::Value {
        let neighbors = view.by_age::<kinds::BgpNeighbor>();
        if neighbors.is_empty() {
            return Arc::default();
        }
        let mut ips: BTreeMap<String, Vec<IpAddr>> = BTreeMap::new();
        let mut of_others: BTreeSet<IpAddr> = BTreeSet::new();
        let mut remembered: BTreeMap<String, Vec<IpAddr>> = BTreeMap::new();
        for key in view.keys::<kinds::BgpPeering>().iter() {
            let spec = view.spec::<kinds::BgpPeering>(key);
            let peers = spec.iter().flat_map(|spec| &spec.loopback_peer);
            let peers = peers.flat_map(|peer| peer.ips.iter().copied());
            let meta = view.meta::<kinds::BgpPeering>(key);
            let owner = meta.and_then(|meta| meta.owner.clone());
            match owner.filter(|owner| owner.kind == Kind::BgpNeighbor) {
                Some(owner) => remembered
                    .entry(owner.key.name.to_string())
                    .or_default()
                    .extend(peers),
                None => of_others.extend(peers),
            }
        }
        let settings = view.settings();
        for family in families(&settings) {
            let net = family.net();
            let in_use = view.keys_in::<PeerAddressesInUse>(&net.network(), &net.broadcast());
            let mut pool = Pool::new(family);
            let mut waiting = Vec::new();
            let mut held = BTreeSet::new();
            for neighbor in &neighbors {
                let name = &neighbor.key.name;
                let status = view.status::<kinds::BgpNeighbor>(&neighbor.key);
                let status = status.iter().flat_map(|status| &status.workload_ips);
                let mut own = status.chain(remembered.get(&**name).into_iter().flatten());
                let own = own.find(|ip| ip.is_ipv4() == family.is_ipv4() && !held.contains(*ip));
                if let Some(ip) = own {
                    held.insert(*ip);
                    ips.entry(name.to_string()).or_default().push(*ip);
                } else {
                    waiting.push(name);
                }
            }
            for taken in held.iter().chain(&of_others).chain(in_use.iter()) {
                pool.take(*taken);
            }
            for end in ends_of_trunk(&settings) {
                pool.take(end);
            }
            for name in waiting {
                let free = pool.take_lowest();
                ips.entry(name.to_string()).or_default().extend(free);
            }
        }
        Arc::new(ips)
    }
}

/// What is wrong with settings that leave out a network of which a neighbor has an address: outside of these networks, an address of
/// workloads would pass exports.
pub(crate) fn outside_of_settings(view: &View<'_>) -> Option<Problem> {
    let settings = view.settings();
    let cidrs = &settings.bgp.workload_cidrs;
    let is_outside = |ip: &&IpAddr| !cidrs.iter().any(|cidr| cidr.net().contains(*ip));
    let ips = view.get::<WorkloadIps>(&());
    let mut outside = ips
        .iter()
        .filter_map(|(name, ips)| Some((name, ips.iter().find(is_outside)?)));
    let (name, ip) = outside.next()?;
    let others = match outside.count() {
        0 => String::new(),
        others => format!(" (and {others} more)"),
    };
    let message = format!(
        "BGPNeighbor {name}{others} has {ip}, which is in none of these networks: choose one that contains it, or delete the neighbor first"
    );
    let subject = ObjectRef::named(Kind::Settings, "default");
    let kind = problem::Kind::RuleBroken { message };
    Some(Problem::new(subject, "spec.bgp.workloadCIDRs", kind))
}
