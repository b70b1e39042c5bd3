//! An `Inbound` becomes host routes in each VRF from which its addresses are reached, and a pool of the load balancer.

use std::sync::Arc;

use api::{
    selvedge::{HbnFlavour, Platform},
    tcaas::{InboundSpec, InboundStatus, MatchedDestination},
};

use super::{
    addresses,
    intent::{Author, Intent, LoweredIntent, Terms},
    low_level::LowLevelObject,
    routing::subnets,
    scope::Scope,
    service::{self, Request, Service, announced, count_or_addresses},
};
use crate::{
    allocate::share::Claim,
    memo::Index,
    platform::{PlatformObject, metallb},
    problem::{self, Problem},
    snapshot::{Key, Kind, ObjectRef, kinds},
    view::{View, reference},
};

/// Who wants which pool of the load balancer, by the pool's name: whether it has it, when it was created, and its key.
pub(crate) struct PoolsByName;
impl Index for PoolsByName {
    type Source = Key;
    type Key = String;
    type Item = (bool, bool, Option<String>, Key);
    fn sources(view: &View<'_>) -> Vec<Key> {
        view.keys::<kinds::Inbound>().to_vec()
    }
    fn entries(view: &View<'_>, key: &Key) -> Vec<(String, Self::Item)> {
        let spec = view.spec::<kinds::Inbound>(key);
        let meta = view.meta::<kinds::Inbound>(key);
        let (Some(spec), Some(meta)) = (spec, meta) else {
            return Vec::new();
        };
        let Some(name) = pool(&spec, &key.name) else {
            return Vec::new();
        };
        let status = view.status::<kinds::Inbound>(key);
        let held = status.and_then(|status| status.pool_name.clone());
        let lacks = held.as_deref() != Some(name);
        // One that was never served conflicts with no other.
        if lacks && !is_sound(view, &reference(Kind::Inbound, key), &spec) {
            return Vec::new();
        }
        let created = meta.created.clone();
        vec![(
            name.to_owned(),
            (lacks, created.is_none(), created, key.clone()),
        )]
    }
}

/// Who has a pool: an Inbound that has it keeps it, then the older is served first.
fn pool_owner(view: &View<'_>, name: &str) -> Option<ObjectRef> {
    let wanted = view.who::<PoolsByName>(&name.to_owned());
    let (.., key) = wanted.iter().min()?;
    Some(reference(Kind::Inbound, key))
}

/// Name of the pool that an Inbound has, unless another program allocates its addresses.
pub(super) fn pool<'a>(spec: &'a InboundSpec, name: &'a str) -> Option<&'a str> {
    let has_pool = !spec.disable_load_balancer && spec.tenant_load_balancer_class.is_none();
    has_pool.then(|| spec.pool_name.as_deref().unwrap_or(name))
}

impl Intent for kinds::Inbound {
    const VRF_FIELD: &'static str = "spec.destinations";

    fn terms(spec: &InboundSpec) -> Terms<'_> {
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

    fn is_servable(view: &View<'_>, subject: &ObjectRef, spec: &InboundSpec) -> bool {
        let has_pool = pool(spec, &subject.key.name)
            .is_none_or(|name| pool_owner(view, name).as_ref() == Some(subject));
        has_pool && is_sound(view, subject, spec)
    }

    fn matched(status: &InboundStatus) -> Vec<MatchedDestination> {
        status.matched_destinations.clone()
    }

    fn held_pools(view: &View<'_>, key: &Key) -> Vec<String> {
        let status = view.status::<Self>(key);
        let pool = status.and_then(|status| status.pool_name.clone());
        pool.into_iter().collect()
    }

    fn on_platform(
        settings: &Platform,
        subject: &ObjectRef,
        spec: &InboundSpec,
        service: &Service,
    ) -> Vec<PlatformObject> {
        metallb::inbound(settings, subject, spec, service)
    }

    fn lower(
        view: &View<'_>,
        author: &Author<'_>,
        spec: &InboundSpec,
        problems: &mut Vec<Problem>,
    ) -> Option<LoweredIntent> {
        let subject = author.subject;
        let share = addresses::share(view, subject);
        let mut wrong = share.problems.clone();
        wrong.extend(faults(view, subject, spec));
        let pool = pool(spec, &subject.key.name);
        if let Some(name) = pool
            && let Some(by) = pool_owner(view, name).filter(|by| by != subject)
        {
            let name = name.to_owned();
            let kind = problem::Kind::PoolTaken { name, by };
            wrong.push(author.problem("spec.poolName", kind));
        }
        let request = request(subject, spec);
        let resolved = request.resolve(view, wrong, problems)?;
        let disable_aggregation = spec.disable_aggregation;
        let announced = announced(view, &request, &resolved, disable_aggregation, problems)?;
        note_what_has_no_effect(subject, spec, problems);
        let routing = request.routing(&resolved.reach, &[], &announced.items, &announced.aggregate);
        Some(LoweredIntent {
            objects: author.objects(routing),
            service: Some(Service {
                is_sound: true,
                addresses: share.addresses.clone(),
                pools: pool.map(str::to_owned).into_iter().collect(),
                reached: resolved.reached(),
                subnets: subnets(&resolved.network),
                matched: Arc::clone(&resolved.reach.matched),
                reserved: Vec::new(),
            }),
            attachment: None,
        })
    }
}

fn request<'a>(subject: &'a ObjectRef, spec: &'a InboundSpec) -> Request<'a> {
    Request {
        subject,
        network_ref: &spec.network_ref,
        destinations: spec.destinations.as_ref(),
        node_selector: spec.node_selector.as_ref(),
        communities: &spec.communities,
    }
}

/// What is wrong with it alone.
fn faults(view: &View<'_>, subject: &ObjectRef, spec: &InboundSpec) -> Vec<Problem> {
    let mut faults = Vec::new();
    let wanted = spec.addresses.as_ref();
    faults.extend(count_or_addresses(subject, spec.count, wanted));
    let has_class = spec.tenant_load_balancer_class.is_some();
    if has_class && view.settings().hbn_flavour != HbnFlavour::LegacyFrr {
        let what = "spec.tenantLoadBalancerClass";
        let kind = problem::Kind::NeedsLegacyFlavour { what };
        faults.push(Problem::new(subject.clone(), what, kind));
    }
    faults
}

/// Whether its only problems are conflicts with others.
fn is_sound(view: &View<'_>, subject: &ObjectRef, spec: &InboundSpec) -> bool {
    let faults = faults(view, subject, spec);
    request(subject, spec).can_be_resolved(view, faults)
}

fn note_what_has_no_effect(subject: &ObjectRef, spec: &InboundSpec, problems: &mut Vec<Problem>) {
    if spec.pool_name.is_some() && pool(spec, "").is_none() {
        let what = "it has no effect: no pool is created for these addresses".to_owned();
        let kind = problem::Kind::NoEffect { what };
        problems.push(Problem::new(subject.clone(), "spec.poolName", kind));
    }
}
