//! An `Outbound` becomes host routes in each VRF that its gateways reach, and gateways with a pool of their own.

use std::sync::Arc;

use api::{
    selvedge::Platform,
    tcaas::{MatchedDestination, OutboundSpec, OutboundStatus},
    value::Prefix,
};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::{
    addresses::{self, plain},
    intent::{Author, Intent, LoweredIntent, Terms},
    low_level::LowLevelObject,
    routing::subnets,
    scope::Scope,
    service::{self, Request, Service, announced, count_or_addresses},
};
use crate::{
    allocate::share::Claim,
    names,
    platform::{PlatformObject, calico, coil},
    problem::{self, Problem},
    snapshot::{ObjectRef, kinds},
    view::View,
};

impl Intent for kinds::Outbound {
    const VRF_FIELD: &'static str = "spec.destinations";

    fn terms(spec: &OutboundSpec) -> Terms<'_> {
        Terms {
            network: Some(&spec.network_ref),
            destinations: spec.destinations.as_ref(),
            nodes: spec.node_selector.as_ref(),
            others: Vec::new(),
            routes: &[],
            communities: &spec.communities,
            addresses: spec.addresses.as_ref(),
        }
    }

    fn scope_field(scope: &Scope) -> &'static str {
        service::scope_field(scope)
    }

    fn claim(view: &View<'_>, subject: &ObjectRef) -> Option<Claim> {
        let spec = view.spec::<Self>(&subject.key)?;
        let status = view.status::<Self>(&subject.key);
        let (count, named) = (spec.count, spec.addresses.as_ref());
        let held = status.as_ref().map(|status| &status.addresses);
        Some(addresses::of_service(view, subject, count, named, held))
    }

    fn is_needed(object: &LowLevelObject) -> bool {
        matches!(object, LowLevelObject::Vrf(_))
    }

    fn is_servable(view: &View<'_>, subject: &ObjectRef, spec: &OutboundSpec) -> bool {
        request(subject, spec).can_be_resolved(view, faults(subject, spec))
    }

    fn matched(status: &OutboundStatus) -> Vec<MatchedDestination> {
        status.matched_destinations.clone()
    }

    fn on_platform(
        settings: &Platform,
        subject: &ObjectRef,
        spec: &OutboundSpec,
        service: &Service,
    ) -> Vec<PlatformObject> {
        let mut objects = vec![coil::outbound(settings, subject, spec, service)];
        objects.extend(calico::outbound(settings, subject, service));
        objects
    }

    fn lower(
        view: &View<'_>,
        author: &Author<'_>,
        spec: &OutboundSpec,
        problems: &mut Vec<Problem>,
    ) -> Option<LoweredIntent> {
        let subject = author.subject;
        let share = addresses::share(view, subject);
        let mut wrong = share.problems.clone();
        wrong.extend(faults(subject, spec));
        let request = request(subject, spec);
        let resolved = request.resolve(view, wrong, problems)?;
        let disable_aggregation = spec.disable_aggregation;
        let announced = announced(view, &request, &resolved, disable_aggregation, problems)?;
        let families: Vec<bool> = [true, false]
            .into_iter()
            .filter(|ipv4| plain(&share.addresses).any(|address| address.is_ipv4() == *ipv4))
            .collect();
        let reached = egress(subject, spec, &resolved.reached(), &families, problems)?;
        let pools = families.iter();
        let pools = pools.map(|ipv4| names::egress_pool(&subject.key.name, *ipv4));
        let routing = request.routing(&resolved.reach, &[], &announced.items, &announced.aggregate);
        Some(LoweredIntent {
            objects: author.objects(routing),
            service: Some(Service {
                is_sound: true,
                pools: pools.collect(),
                addresses: share.addresses.clone(),
                reached,
                subnets: subnets(&resolved.network),
                matched: Arc::clone(&resolved.reach.matched),
                reserved: Vec::new(),
            }),
            attachment: None,
        })
    }
}

fn request<'a>(subject: &'a ObjectRef, spec: &'a OutboundSpec) -> Request<'a> {
    Request {
        subject,
        network_ref: &spec.network_ref,
        destinations: spec.destinations.as_ref(),
        node_selector: spec.node_selector.as_ref(),
        communities: &spec.communities,
    }
}

/// What is wrong with it alone.
fn faults(subject: &ObjectRef, spec: &OutboundSpec) -> Vec<Problem> {
    let faults = count_or_addresses(subject, spec.count, spec.addresses.as_ref()).into_iter();
    faults.chain(room_for_replacement(subject, spec)).collect()
}

/// Where the gateways lead: what the author names, or what the Destinations lead to, or everywhere; of the families that they have
/// addresses of.
fn egress(
    subject: &ObjectRef,
    spec: &OutboundSpec,
    reached: &[Prefix],
    families: &[bool],
    problems: &mut Vec<Problem>,
) -> Option<Vec<Prefix>> {
    let has_family = |prefix: &Prefix| families.contains(&prefix.is_ipv4());
    let (field, named) = if spec.egress_destinations.is_empty() {
        ("spec.destinations", reached)
    } else {
        (
            "spec.egressDestinations",
            spec.egress_destinations.as_slice(),
        )
    };
    if named.is_empty() {
        return Some(families.iter().map(|ipv4| everywhere(*ipv4)).collect());
    }
    let egress: Vec<Prefix> = named.iter().copied().filter(has_family).collect();
    if egress.is_empty() {
        let message = "leads to no network of a family that the gateways have an address of";
        let message = message.to_owned();
        let kind = problem::Kind::RuleBroken { message };
        problems.push(Problem::new(subject.clone(), field, kind));
        return None;
    }
    for (place, prefix) in spec.egress_destinations.iter().enumerate() {
        if !has_family(prefix) {
            let what = format!("the gateways have no address of the family of {prefix}");
            let kind = problem::Kind::NoEffect { what };
            let field = format!("spec.egressDestinations[{place}]");
            problems.push(Problem::new(subject.clone(), field, kind));
        }
    }
    Some(egress)
}

fn everywhere(ipv4: bool) -> Prefix {
    let net = if ipv4 {
        IpNet::V4(Ipv4Net::default())
    } else {
        IpNet::V6(Ipv6Net::default())
    };
    Prefix::of(net)
}

/// A gateway that is being replaced needs an address beside those of the running ones, of which there is one where no number is said; the
/// same words as the kind's own definition.
fn room_for_replacement(subject: &ObjectRef, spec: &OutboundSpec) -> Option<Problem> {
    let replicas = spec.replicas.unwrap_or(1);
    let enough = |addresses: usize| {
        addresses == 0 || u32::try_from(addresses).unwrap_or(u32::MAX) > replicas
    };
    let message = match (spec.count, &spec.addresses) {
        (Some(count), _) if count <= replicas => {
            "count must be greater than replicas, which is at least 1: a gateway that is being replaced needs an address too"
        }
        (None, Some(lists)) if !enough(lists.ipv4.len()) || !enough(lists.ipv6.len()) => {
            "each family in addresses needs more addresses than replicas, which is at least 1: a gateway that is being replaced needs an address too"
        }
        _ => return None,
    };
    let message = message.to_owned();
    let kind = problem::Kind::RuleBroken { message };
    Some(Problem::new(subject.clone(), "spec", kind))
}
