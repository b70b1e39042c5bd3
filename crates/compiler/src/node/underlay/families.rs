//! VTEPs of different address families: a tunnel has two ends of one family, so nodes of the two share no VNI that works.

use std::{collections::BTreeMap, sync::Arc};

use api::value::{Prefix, Vni};

use super::{PlanOf, choice::plans_of_nodes};
use crate::{
    memo::{Index, Query},
    node::{
        group::BuiltFor,
        selection::{NodesBySignature, Signature},
    },
    problem::{self, Problem},
    snapshot::{ObjectRef, kinds},
    view::View,
};

/// Whether there are Underlays with VTEPs of both families. In most clusters there are none, and nothing else is to be found out.
pub(crate) struct HasBothFamilies;
impl Query for HasBothFamilies {
    type Key = ();
    type Value = bool;
    fn compute(view: &View<'_>, (): &()) -> bool {
        let underlays = view.keys::<kinds::Underlay>();
        let plans = underlays
            .iter()
            .filter_map(|key| view.get::<PlanOf>(key).plan.clone());
        let vteps: Vec<Prefix> = plans.filter_map(|plan| plan.endpoint.pool).collect();
        vteps.iter().any(|one| one.is_ipv4()) && !vteps.iter().all(|one| one.is_ipv4())
    }
}

/// The Underlays whose nodes have each VNI, and whether their VTEPs are of IPv4, where there are both families.
pub(crate) struct UnderlaysByVni;
impl Index for UnderlaysByVni {
    type Source = Signature;
    type Key = Vni;
    type Item = (bool, ObjectRef);
    fn sources(view: &View<'_>) -> Vec<Signature> {
        if view.get::<HasBothFamilies>(&()) {
            view.all_keys::<NodesBySignature>().to_vec()
        } else {
            Vec::new()
        }
    }
    fn entries(view: &View<'_>, signature: &Signature) -> Vec<(Vni, Self::Item)> {
        let built = view.get::<BuiltFor>(signature);
        let shared = &built.shared;
        let vrfs = shared.fabric_vrfs.values().chain(&shared.cluster_vrf);
        let vnis = vrfs.filter_map(|vrf| vrf.vni);
        let vnis = vnis.chain(shared.layer2s.values().map(|segment| segment.vni));
        let vnis: Vec<Vni> = vnis.collect();
        let plans = plans_of_nodes(view, signature).into_iter();
        let entries = plans.flat_map(|(plan, _)| {
            let item = plan
                .endpoint
                .pool
                .map(|vteps| (vteps.is_ipv4(), plan.subject.clone()));
            let vnis = vnis.iter().copied();
            let of_plan: Vec<_> = vnis.zip(item.into_iter().cycle()).collect();
            of_plan
        });
        entries.collect()
    }
}

/// Says which Underlays have nodes that share VNIs with nodes whose VTEPs are of the other family.
pub(crate) fn mixed_families(view: &View<'_>) -> Vec<Problem> {
    // By Underlay: the Underlay on the other side and the first VNI, and how many VNIs they share.
    let mut mixed: BTreeMap<ObjectRef, ((ObjectRef, Vni), usize)> = BTreeMap::new();
    for vni in view.all_keys::<UnderlaysByVni>().iter() {
        let underlays: Arc<Vec<(bool, ObjectRef)>> = view.who::<UnderlaysByVni>(vni);
        for ipv4 in [true, false] {
            let mut others = underlays.iter().filter(|(is_ipv4, _)| *is_ipv4 != ipv4);
            let Some((_, other)) = others.next() else {
                continue;
            };
            let mut own: Vec<&ObjectRef> = underlays
                .iter()
                .filter_map(|(is_ipv4, one)| (*is_ipv4 == ipv4).then_some(one))
                .collect();
            own.dedup();
            for one in own {
                let entry = mixed.entry(one.clone());
                let (_, vnis) = entry.or_insert_with(|| ((other.clone(), *vni), 0));
                *vnis += 1;
            }
        }
    }
    let problem = |(subject, ((other, vni), vnis)): (_, ((ObjectRef, Vni), usize))| {
        let others = vnis - 1;
        let kind = problem::Kind::VtepFamilies { other, vni, others };
        Problem::new(subject, "spec", kind)
    };
    mixed.into_iter().map(problem).collect()
}
