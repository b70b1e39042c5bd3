//! A `BGPNeighbor` becomes sessions with workloads on a loopback of their node, in which the addresses of its Inbounds are taken and
//! nothing else.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
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
    Lowered, Made,
    addresses::{Addresses, plain},
    inbound,
    reach::{self, ReachedVrf},
    routing::{self, generated_name, permit, subnets},
    service::Service,
};
use crate::{
    allocate::Pool,
    problem::{self, Problem},
    snapshot::{Key, Kind, ObjectRef, Snapshot, by_age},
};

/// An Inbound that the neighbor allows.
struct Allowed<'a> {
    /// Where it stands in the list.
    place: usize,
    subject: ObjectRef,
    spec: &'a InboundSpec,
    service: &'a Service,
}

/// What the neighbor becomes; `None` when something is wrong, with the reason in `problems`.
pub(super) fn lower(
    snapshot: &Snapshot,
    settings: &SettingsSpec,
    lowered: &Lowered,
    addresses: &Addresses,
    (subject, spec): (&ObjectRef, &BgpNeighborSpec),
    problems: &mut Vec<Problem>,
) -> Option<Made> {
    let before = problems.len();
    let mut report = |field: &str, kind| problems.push(Problem::new(subject.clone(), field, kind));
    let remote_asn = spec.workload_as.or(settings.bgp.workload_as);
    if remote_asn.is_none() {
        report("spec.workloadAS", problem::Kind::WorkloadAsRequired);
    }
    let ips = lowered.workload_ips.get(&subject.key.name);
    let ips = ips.cloned().unwrap_or_default();
    for family in families(settings) {
        if !ips.iter().any(|ip| ip.is_ipv4() == family.is_ipv4()) {
            let kind = problem::Kind::PoolExhausted {
                pool: format!("Settings.spec.bgp.workloadCIDRs ({family})"),
                wanted: subject.to_string(),
            };
            report("spec", kind);
        }
    }
    if families(settings).is_empty() {
        report("spec", problem::Kind::TrunkRequired);
    }
    let allowed = allowed(snapshot, lowered, subject, spec, problems);
    let remote_asn = remote_asn.filter(|_| problems.len() == before)?;
    note_what_has_no_effect(subject, &ips, &allowed, problems);

    let hosts: Vec<Prefix> = allowed
        .iter()
        .flat_map(|inbound| plain(&inbound.service.addresses))
        .map(Prefix::host)
        .collect();
    let reached: Vec<Prefix> = allowed
        .iter()
        .flat_map(|inbound| inbound.service.reached.iter().copied())
        .collect();
    let (import, export) = (permit(&hosts), permit(&reached));
    if import.len().max(export.len()) > routing::MAX_LINES {
        let most = routing::MAX_LINES;
        let message = format!("a neighbor takes, and gives, at most {most} routes");
        let kind = problem::Kind::RuleBroken { message };
        problems.push(Problem::new(subject.clone(), "spec.allowedInbounds", kind));
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
    let scope = settings.cluster_vrf.name.as_str();
    Some(Made {
        bgp: vec![(generated_name(subject, scope), peering)],
        vrf: if spec.advertise_transfer_network {
            transfer_networks(snapshot, lowered, addresses, subject, &allowed)
        } else {
            Vec::new()
        },
        ..Made::default()
    })
}

fn field(place: usize) -> String {
    format!("spec.allowedInbounds[{place}].name")
}

/// The Inbounds of the list that can be served.
fn allowed<'a>(
    snapshot: &'a Snapshot,
    lowered: &'a Lowered,
    subject: &ObjectRef,
    spec: &BgpNeighborSpec,
    problems: &mut Vec<Problem>,
) -> Vec<Allowed<'a>> {
    let mut allowed: Vec<Allowed<'a>> = Vec::new();
    for (place, reference) in spec.allowed_inbounds.iter().enumerate() {
        let name = &reference.name;
        let inbound = ObjectRef::named(Kind::Inbound, name);
        let found = snapshot.inbounds.get(&Key::named(name));
        let service = lowered.services.get(&inbound);
        let first = allowed.first();
        let kind = match (found, service) {
            (None, _) | (_, None) => snapshot.missing(inbound),
            (Some(found), _) if inbound::pool(&found.spec, name).is_some() => {
                problem::Kind::InboundHasPool { inbound }
            }
            (Some(_), Some(service)) if !service.is_sound => {
                problem::Kind::ReferenceNotInEffect { target: inbound }
            }
            (Some(found), Some(_))
                if first.is_some_and(|one| one.spec.node_selector != found.spec.node_selector) =>
            {
                let other = first.map_or_else(|| inbound.clone(), |one| one.subject.clone());
                let other = Box::new(other);
                problem::Kind::InboundsApart { inbound, other }
            }
            (Some(found), Some(service)) => {
                allowed.push(Allowed {
                    place,
                    subject: inbound,
                    spec: &found.spec,
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
fn node_selector<'a>(allowed: &[Allowed<'a>]) -> Option<&'a LabelSelector> {
    let first = allowed.first()?;
    first.spec.node_selector.as_ref()
}

fn note_what_has_no_effect(
    subject: &ObjectRef,
    ips: &[IpAddr],
    allowed: &[Allowed<'_>],
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
    snapshot: &Snapshot,
    lowered: &Lowered,
    addresses: &Addresses,
    subject: &ObjectRef,
    allowed: &[Allowed<'_>],
) -> Vec<(String, VrfRouteConfigurationSpec)> {
    let mut made = Vec::new();
    for Allowed {
        subject: inbound,
        spec,
        ..
    } in allowed
    {
        let network = snapshot.networks.get(&Key::named(&spec.network_ref));
        let (Some(network), Some(selector)) = (network, &spec.destinations) else {
            continue;
        };
        // What is wrong with the selection stands on the Inbound, which is sound.
        let reach = reach::resolve(snapshot, lowered, inbound, selector, &mut Vec::new());
        let is_attached = network.spec.managed && addresses.is_attached(&spec.network_ref);
        let subnets = subnets(&network.spec);
        let reached = reach.into_iter().flat_map(|reach| reach.vrfs);
        for (vrf, reached) in reached.filter(|_| spec.disable_aggregation) {
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
                ..reached
            };
            let scope = format!("{}-{vrf}", inbound.key.name);
            let routing = routing::routing(&vrf, &reached, &[], exports);
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

/// The addresses that workloads of each neighbor speak from, one of each family, IPv4 first.
///
/// Whoever has an address keeps it; the older neighbor is served first; what nodes still have is given to nobody else.
pub(super) fn workload_ips(
    snapshot: &Snapshot,
    settings: &SettingsSpec,
) -> BTreeMap<String, Vec<IpAddr>> {
    if snapshot.bgp_neighbors.is_empty() {
        return BTreeMap::new();
    }
    let mut ips: BTreeMap<String, Vec<IpAddr>> = BTreeMap::new();
    let mut of_others: BTreeSet<IpAddr> = BTreeSet::new();
    let mut remembered: BTreeMap<&str, Vec<IpAddr>> = BTreeMap::new();
    for object in snapshot.bgp_peerings.values() {
        let peers = object.spec.loopback_peer.iter().flat_map(|peer| &peer.ips);
        match &object.meta.owner {
            Some(owner) if owner.kind == Kind::BgpNeighbor => {
                let own = remembered.entry(owner.key.name.as_str()).or_default();
                own.extend(peers);
            }
            _ => of_others.extend(peers),
        }
    }
    let configs = snapshot.node_network_configs.values();
    let told = configs.flat_map(|config| config.spec.host_loopbacks.values());
    let told = told.flat_map(|loopback| loopback.addresses.iter().map(|one| one.addr()));
    of_others.extend(told);
    for family in families(settings) {
        let mut pool = Pool::new(family);
        let mut waiting = Vec::new();
        let mut held = BTreeSet::new();
        for (key, object) in by_age(&snapshot.bgp_neighbors) {
            let status = object.status.as_ref();
            let status = status.into_iter().flat_map(|status| &status.workload_ips);
            let remembered = remembered.get(key.name.as_str()).into_iter().flatten();
            let mut own = status.chain(remembered);
            let own = own.find(|ip| ip.is_ipv4() == family.is_ipv4() && !held.contains(*ip));
            if let Some(ip) = own {
                held.insert(*ip);
                ips.entry(key.name.clone()).or_default().push(*ip);
            } else {
                waiting.push(key);
            }
        }
        for taken in held.iter().chain(&of_others) {
            pool.take(*taken);
        }
        for key in waiting {
            let free = pool.take_lowest();
            ips.entry(key.name.clone()).or_default().extend(free);
        }
    }
    ips
}
