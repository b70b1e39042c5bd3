//! Which Underlay a node has: one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Plan, PlanOf, contradictions::NodesByUnderlay};
use crate::{
    memo::Query,
    node::selection::{self, Member, NodesBySignature, Selected, Signature},
    problem::{self, Problem},
    select,
    snapshot::{Key, Kind, ObjectRef, age, kinds},
    view::{View, reference},
};

/// The Underlays that select nodes with a signature and make sense, the oldest first.
pub(crate) struct SelectedPlans;
impl Query for SelectedPlans {
    type Key = Signature;
    type Value = Arc<Vec<Arc<Plan>>>;
    fn compute(view: &View<'_>, signature: &Signature) -> Self::Value {
        let mut underlays = selection::selected(view, signature, |one| match one {
            Selected::Underlay(key, meta, _) => Some((key.clone(), Arc::clone(meta))),
            Selected::Object(_) | Selected::Overlay(_) => None,
        });
        underlays.sort_by(|(a, a_meta), (b, b_meta)| (age(a_meta), a).cmp(&(age(b_meta), b)));
        let underlays = underlays.iter();
        let plans = underlays.filter_map(|(key, _)| view.get::<PlanOf>(key).plan.clone());
        Arc::new(plans.collect())
    }
}

/// Underlays that no node gets, each with one that has a node they select: it runs there or is older. One that a node runs is never
/// among them; it only stays off the nodes of others.
pub(crate) struct Refused;
impl Query for Refused {
    type Key = ();
    type Value = Arc<BTreeMap<Key, ObjectRef>>;
    fn compute(view: &View<'_>, (): &()) -> Self::Value {
        let signatures = view.all_keys::<NodesBySignature>();
        let plans = signatures.iter().map(|one| view.get::<SelectedPlans>(one));
        let contested: Vec<_> = plans.filter(|plans| plans.len() > 1).collect();
        let rivals = contested.iter().flat_map(|plans| plans.iter());
        let rivals: BTreeSet<&Key> = rivals.map(|plan| &plan.subject.key).collect();
        let runs = |key: &Key| view.has::<NodesByUnderlay>(&key.to_string());
        let mut ranked: Vec<_> = rivals
            .into_iter()
            .filter_map(|key| Some((!runs(key), view.meta::<kinds::Underlay>(key)?, key)))
            .collect();
        ranked.sort_by(|(a_new, a_meta, a), (b_new, b_meta, b)| {
            (a_new, age(a_meta), a).cmp(&(b_new, age(b_meta), b))
        });
        let mut refused = BTreeMap::new();
        let mut accepted: BTreeSet<&Key> = BTreeSet::new();
        for (is_new, _, key) in ranked {
            let meets = contested
                .iter()
                .filter(|plans| plans.iter().any(|plan| plan.subject.key == *key));
            let mut others = meets.flat_map(|plans| plans.iter());
            let rival = others.find(|plan| accepted.contains(&plan.subject.key));
            match rival.filter(|_| is_new) {
                Some(rival) => drop(refused.insert(key.clone(), rival.subject.clone())),
                None => drop(accepted.insert(key)),
            }
        }
        Arc::new(refused)
    }
}

/// The Underlays that nodes with a signature may have, the oldest first.
pub(crate) struct PlansFor;
impl Query for PlansFor {
    type Key = Signature;
    type Value = Arc<Vec<Arc<Plan>>>;
    fn compute(view: &View<'_>, signature: &Signature) -> Self::Value {
        let plans = view.get::<SelectedPlans>(signature);
        let refused = view.get::<Refused>(&());
        let is_refused = |plan: &Arc<Plan>| refused.contains_key(&plan.subject.key);
        if !plans.iter().any(is_refused) {
            return plans;
        }
        let plans = plans.iter().filter(|plan| !is_refused(plan));
        Arc::new(plans.cloned().collect())
    }
}

/// The Underlay of a node: of several that are for it the one that it runs, else the oldest.
pub(super) fn plan<'a>(
    view: &View<'_>,
    plans: &'a [Arc<Plan>],
    node: &str,
) -> Option<&'a Arc<Plan>> {
    let runs = || {
        let config = view.spec::<kinds::NodeNetworkConfig>(&Key::named(node))?;
        let source = config.underlay.as_ref()?.source.as_ref()?;
        let is_running = |plan: &&Arc<Plan>| plan.subject.key.to_string() == *source;
        plans.iter().find(is_running)
    };
    match plans {
        [] => None,
        [only] => Some(only),
        [oldest, ..] => runs().or(Some(oldest)),
    }
}

/// The Underlays of the nodes with a signature, each with its nodes.
pub(crate) fn plans_of_nodes(
    view: &View<'_>,
    signature: &Signature,
) -> Vec<(Arc<Plan>, Arc<Vec<Member>>)> {
    let plans = view.get::<PlansFor>(signature);
    let nodes = || view.who::<NodesBySignature>(signature);
    match &plans[..] {
        [] => Vec::new(),
        // Which node it is does not matter.
        [only] => vec![(Arc::clone(only), nodes())],
        several => {
            let nodes = nodes();
            let of = |wanted: &Arc<Plan>| {
                let is_of = |node: &&Member| {
                    let plan = plan(view, several, &node.name);
                    plan.is_some_and(|plan| plan.subject == wanted.subject)
                };
                let nodes: Vec<Member> = nodes.iter().filter(is_of).cloned().collect();
                (Arc::clone(wanted), Arc::new(nodes))
            };
            let plans = several.iter().map(of);
            plans.filter(|(_, nodes)| !nodes.is_empty()).collect()
        }
    }
}

/// Says which other Underlays are for nodes that have one already.
pub(crate) fn second_underlays(view: &View<'_>, signature: &Signature) -> Vec<Problem> {
    let plans = view.get::<SelectedPlans>(signature);
    if plans.len() < 2 {
        return Vec::new();
    }
    let mut problems = Vec::new();
    for (plan, nodes) in plans_of_nodes(view, signature) {
        let Some(node) = nodes.iter().map(|node| &node.name).min() else {
            continue;
        };
        for other in plans.iter().filter(|other| other.subject != plan.subject) {
            let kind = problem::Kind::SecondUnderlay {
                node: node.to_string(),
                by: plan.subject.clone(),
            };
            let subject = other.subject.clone();
            problems.push(Problem::new(subject, "spec.nodeSelector", kind));
        }
    }
    problems
}

/// Says which Underlays could come to select the same node, though none is there now that both select.
pub(crate) fn may_meet(view: &View<'_>) -> Vec<Problem> {
    let underlays = view.by_age::<kinds::Underlay>();
    let sound: Vec<_> = underlays
        .iter()
        .filter(|one| view.get::<PlanOf>(&one.key).plan.is_some())
        .collect();
    if sound.len() < 2 {
        return Vec::new();
    }
    let signatures = view.all_keys::<NodesBySignature>();
    let mut meeting: BTreeSet<(Key, Key)> = BTreeSet::new();
    for signature in signatures.iter() {
        let plans = view.get::<SelectedPlans>(signature);
        for plan in plans.iter().filter(|_| plans.len() > 1) {
            let others = plans.iter().filter(|other| other.subject != plan.subject);
            let pair = |other: &Arc<Plan>| (plan.subject.key.clone(), other.subject.key.clone());
            meeting.extend(others.map(pair));
        }
    }
    let mut problems = Vec::new();
    for one in &sound {
        // A node that both select is said elsewhere.
        let mut others = sound.iter().filter(|other| {
            other.key != one.key && !meeting.contains(&(one.key.clone(), other.key.clone()))
        });
        let found = others.find_map(|other| {
            let selectors = (&one.spec.node_selector, &other.spec.node_selector);
            let labels = select::witness(selectors.0.as_ref(), selectors.1.as_ref())?;
            Some((other, labels))
        });
        if let Some((other, labels)) = found {
            let kind = problem::Kind::UnderlaysMayMeet {
                other: Box::new(reference(Kind::Underlay, &other.key)),
                labels,
            };
            let subject = reference(Kind::Underlay, &one.key);
            problems.push(Problem::new(subject, "spec.nodeSelector", kind));
        }
    }
    problems
}
