//! A `PodNetwork` becomes routing in each VRF that its pods reach, and a pool from which pods get addresses.

use std::sync::Arc;

use api::{
    selvedge::Platform,
    tcaas::{MatchedDestination, PodNetworkSpec, PodNetworkStatus, PrefixItem},
    value::Prefix,
};

use super::{
    addresses,
    intent::{Author, Intent, LoweredIntent, Terms},
    low_level::LowLevelObject,
    network,
    routing::{or_longer, permit, subnets},
    scope::Scope,
    service::{self, Request, Service},
};
use crate::{
    allocate::share::Claim,
    names,
    platform::{PlatformObject, calico},
    problem::Problem,
    snapshot::{Key, ObjectRef, kinds},
    view::View,
};

impl Intent for kinds::PodNetwork {
    const VRF_FIELD: &'static str = "spec.destinations";

    fn terms(spec: &PodNetworkSpec) -> Terms<'_> {
        Terms {
            network: Some(&spec.network_ref),
            destinations: spec.destinations.as_ref(),
            nodes: spec.node_selector.as_ref(),
            others: Vec::new(),
            routes: &spec.routes,
            communities: &spec.communities,
            addresses: None,
        }
    }

    fn scope_field(scope: &Scope) -> &'static str {
        service::scope_field(scope)
    }

    fn claim(view: &View<'_>, subject: &ObjectRef) -> Option<Claim> {
        let status = view.status::<Self>(&subject.key);
        let has_pools = status.is_some_and(|status| !status.ip_pools.is_empty());
        Some(addresses::of_pods(has_pools))
    }

    fn is_needed(object: &LowLevelObject) -> bool {
        matches!(object, LowLevelObject::Vrf(_))
    }

    fn is_servable(view: &View<'_>, subject: &ObjectRef, spec: &PodNetworkSpec) -> bool {
        request(subject, spec).can_be_resolved(view, Vec::new())
    }

    fn matched(status: &PodNetworkStatus) -> Vec<MatchedDestination> {
        status.matched_destinations.clone()
    }

    fn held_pools(view: &View<'_>, key: &Key) -> Vec<String> {
        let status = view.status::<Self>(key);
        status.map_or_else(Vec::new, |status| status.ip_pools.clone())
    }

    fn on_platform(
        _settings: &Platform,
        subject: &ObjectRef,
        _spec: &PodNetworkSpec,
        service: &Service,
    ) -> Vec<PlatformObject> {
        calico::pod_network(subject, service)
    }

    fn lower(
        view: &View<'_>,
        author: &Author<'_>,
        spec: &PodNetworkSpec,
        problems: &mut Vec<Problem>,
    ) -> Option<LoweredIntent> {
        let subject = author.subject;
        let wrong = addresses::share(view, subject).problems.clone();
        let request = request(subject, spec);
        let resolved = request.resolve(view, wrong, problems)?;
        let subnets = subnets(&resolved.network);
        let extra = spec.routes.iter().flat_map(|route| &route.prefixes);
        let extra: Vec<Prefix> = extra.copied().collect();
        // Pods' routes come from the CNI in parts of the network, down to single addresses: they are what is announced.
        let mut items: Vec<PrefixItem> = permit(&subnets).into_iter().map(or_longer).collect();
        items.extend(permit(&extra));
        let mut reached = resolved.reached();
        if spec.destinations.is_some() {
            reached.extend(&extra);
        }
        let pools = subnets.iter();
        let pools = pools.map(|subnet| names::pod_pool(&subject.key.name, subnet.is_ipv4()));
        // A network that an attachment has on nodes is announced from there: an aggregate would cut off the others on the segment.
        let is_attached = network::is_attached(view, &spec.network_ref, &resolved.network);
        let has_parts = |subnet: &&Prefix| {
            let net = subnet.net();
            !is_attached && net.prefix_len() < net.max_prefix_len()
        };
        let aggregate: Vec<Prefix> = subnets.iter().filter(has_parts).copied().collect();
        let routing = request.routing(&resolved.reach, &extra, &items, &aggregate);
        let taken = addresses::taken(view, &spec.network_ref);
        Some(LoweredIntent {
            objects: author.objects(routing),
            service: Some(Service {
                is_sound: true,
                pools: pools.collect(),
                reached,
                matched: Arc::clone(&resolved.reach.matched),
                reserved: taken.iter().copied().collect(),
                subnets,
                ..Service::default()
            }),
            attachment: None,
        })
    }
}

fn request<'a>(subject: &'a ObjectRef, spec: &'a PodNetworkSpec) -> Request<'a> {
    Request {
        subject,
        network_ref: &spec.network_ref,
        destinations: spec.destinations.as_ref(),
        node_selector: spec.node_selector.as_ref(),
        communities: &spec.communities,
    }
}
