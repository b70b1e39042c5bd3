//! An `Inbound` becomes host routes in each VRF from which its addresses are reached, and a pool of the load balancer.

use std::collections::BTreeMap;

use api::{
    selvedge::{HbnFlavour, SettingsSpec},
    tcaas::{InboundSpec, InboundStatus},
};

use super::{
    Lowered, Made,
    addresses::Addresses,
    routing::subnets,
    service::{Service, Wish, announced, count_or_addresses, is_sound},
};
use crate::{
    problem::{self, Problem},
    snapshot::{Kind, Object, ObjectRef, Snapshot, by_age},
};

/// Who has which pool of the load balancer, by the pool's name.
pub(super) type Pools = BTreeMap<String, ObjectRef>;

/// Pools are named after their Inbound, or as it says; whoever has a name keeps it, then the older is served first.
pub(super) fn pools(snapshot: &Snapshot) -> Pools {
    let mut pools = Pools::new();
    let mut inbounds = by_age(&snapshot.inbounds);
    let holds = |object: &Object<InboundSpec, InboundStatus>, name: &str| {
        let status = object.status.as_ref();
        status.and_then(|status| status.pool_name.as_deref()) == Some(name)
    };
    inbounds.sort_by_key(|(key, object)| {
        let name = object.spec.pool_name.as_deref().unwrap_or(&key.name);
        !holds(object, name)
    });
    for (key, object) in inbounds {
        if let Some(name) = pool(&object.spec, &key.name) {
            let subject = ObjectRef {
                kind: Kind::Inbound,
                key: key.clone(),
            };
            pools.entry(name.to_owned()).or_insert(subject);
        }
    }
    pools
}

/// Name of the pool that an Inbound has, unless its addresses are somebody else's to hand out.
pub(super) fn pool<'a>(spec: &'a InboundSpec, name: &'a str) -> Option<&'a str> {
    let has_pool = !spec.disable_load_balancer && spec.tenant_load_balancer_class.is_none();
    has_pool.then(|| spec.pool_name.as_deref().unwrap_or(name))
}

/// What the Inbound becomes; `None` when something is wrong, with the reason in `problems`.
pub(super) fn lower(
    snapshot: &Snapshot,
    settings: &SettingsSpec,
    lowered: &Lowered,
    addresses: &Addresses,
    (subject, object): (&ObjectRef, &Object<InboundSpec, InboundStatus>),
    problems: &mut Vec<Problem>,
) -> Option<Made> {
    let spec = &object.spec;
    let share = addresses.of(subject);
    let mut wrong = share.problems;
    wrong.extend(count_or_addresses(
        subject,
        spec.count,
        spec.addresses.as_ref(),
    ));
    let mut report = |field: &str, kind| wrong.push(Problem::new(subject.clone(), field, kind));
    if spec.tenant_load_balancer_class.is_some() && settings.hbn_flavour != HbnFlavour::LegacyFrr {
        let what = "spec.tenantLoadBalancerClass";
        report(what, problem::Kind::NeedsLegacyFlavour { what });
    }
    let pool = pool(spec, &subject.key.name);
    if let Some(name) = pool
        && let Some(by) = lowered.pools.get(name).filter(|by| *by != subject)
    {
        let (name, by) = (name.to_owned(), by.clone());
        report("spec.poolName", problem::Kind::PoolTaken { name, by });
    }
    let wish = Wish {
        subject,
        network_ref: &spec.network_ref,
        destinations: spec.destinations.as_ref(),
        node_selector: spec.node_selector.as_ref(),
        communities: &spec.communities,
    };
    let resolved = wish.resolve(snapshot, lowered, &mut wrong);
    let is_sound = is_sound(&wrong);
    problems.append(&mut wrong);
    let resolved = resolved.filter(|_| is_sound)?;
    let announced = announced(
        addresses,
        &wish,
        &resolved,
        spec.disable_aggregation,
        problems,
    )?;
    note_what_has_no_effect(subject, spec, problems);
    Some(Made {
        vrf: wish.routing(&resolved.reach, &[], &announced.items, &announced.aggregate),
        service: Service {
            is_sound: true,
            addresses: share.addresses,
            pools: pool.map(str::to_owned).into_iter().collect(),
            reached: resolved.reached(),
            subnets: subnets(resolved.network),
            matched: resolved.reach.matched,
            reserved: Vec::new(),
        },
        ..Made::default()
    })
}

fn note_what_has_no_effect(subject: &ObjectRef, spec: &InboundSpec, problems: &mut Vec<Problem>) {
    if spec.pool_name.is_some() && pool(spec, "").is_none() {
        let what = "no pool is made for these addresses, so there is none to name".to_owned();
        let kind = problem::Kind::NoEffect { what };
        problems.push(Problem::new(subject.clone(), "spec.poolName", kind));
    }
}
