//! Everything that is wrong, gathered by object.

use std::{collections::BTreeSet, sync::Arc};

use api::tcaas::NetworkSpec;

use crate::{
    host_router::{self, HostGroup, MergedFor, NodesByGroup},
    last_good,
    lower::{
        LowLevelObject,
        addresses::node_share,
        bgp_neighbor, intent, low_level,
        merge::{Merged, in_effect},
        network::NetworkVnis,
        notes, reach, values, vrf,
    },
    memo::{Index, Input, Part, Parts, Query},
    mirror::{AllMirrors, HasMirrors, MirrorsOf},
    node::{
        self, InterfaceFault, InterfaceFaults, NodesBySignature, NumbersOfAll, OverlayOf, PlanOf,
        ProblemsOfGroup, SessionNetworks, Signature, WrongWithPeering,
    },
    problem::{self, Problem},
    snapshot::{Key, Kind, ObjectRef, kinds},
    view::{Unreadable, View, reference},
};

/// Where problems are found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Finding {
    /// An object that cannot be read, or only in part.
    Unreadable(ObjectRef),
    /// The settings.
    Settings,
    /// VRFs that cannot be used.
    Vrfs,
    /// Networks without a VNI.
    NetworkVnis,
    /// All Networks.
    Networks,
    /// All Destinations.
    Destinations,
    /// An object of a kind of which nothing is made yet.
    NotCompiledYet(ObjectRef),
    /// All intents.
    Intents,
    /// A hand-written object.
    HandWritten(ObjectRef),
    /// An Underlay.
    Underlay(Key),
    /// An `L3VNI`, `L2VNI` or `L3Passthrough`.
    Overlay(ObjectRef),
    /// An `FRRConfiguration`.
    Configuration(Key),
    /// `FRRConfiguration`s on the nodes of a group.
    Configurations(HostGroup),
    /// Networks of host sessions.
    HostSessions,
    /// All Underlays: VTEPs of different address families, and selectors that could meet.
    Underlays,
    /// The numbers of VRFs on nodes.
    VrfNumbers,
    /// Objects that no node with an overlay is selected for.
    Unreached,
    /// Objects that cannot stand together, where there are no nodes to tell.
    WithoutNodes,
    /// A group of nodes.
    Group(Signature),
    /// A device of nodes.
    Interface(InterfaceFault),
    /// Mirrors.
    Mirrors,
    /// The mirrors of a node.
    NodeMirrors(Key),
}

/// All problems, by the object that carries them.
pub(crate) struct Problems;
impl Index for Problems {
    type Source = Finding;
    type Key = ObjectRef;
    type Item = Problem;
    fn sources(view: &View<'_>) -> Vec<Finding> {
        let mut sources = vec![
            Finding::Settings,
            Finding::Vrfs,
            Finding::NetworkVnis,
            Finding::Underlays,
            Finding::HostSessions,
            Finding::VrfNumbers,
            Finding::Unreached,
            Finding::WithoutNodes,
            Finding::Mirrors,
            Finding::Networks,
            Finding::Destinations,
            Finding::Intents,
        ];
        let unreadable = view.keys::<Unreadable>();
        sources.extend(
            unreadable
                .iter()
                .map(|one| Finding::Unreadable(ObjectRef::clone(one))),
        );
        let underlays = view.keys::<kinds::Underlay>();
        sources.extend(underlays.iter().map(|key| Finding::Underlay(key.clone())));
        let overlays = node::all_overlays(view);
        sources.extend(overlays.into_iter().map(Finding::Overlay));
        let configurations = view.keys::<kinds::FrrConfiguration>();
        sources.extend(configurations.iter().cloned().map(Finding::Configuration));
        let groups = view.all_keys::<NodesByGroup>();
        sources.extend(groups.iter().cloned().map(Finding::Configurations));
        sources.extend(
            not_compiled_yet(view)
                .into_iter()
                .map(Finding::NotCompiledYet),
        );
        let written = low_level::hand_written(view);
        sources.extend(written.iter().cloned().map(Finding::HandWritten));
        let groups = view.all_keys::<NodesBySignature>();
        sources.extend(groups.iter().cloned().map(Finding::Group));
        let faults = view.all_keys::<InterfaceFaults>();
        sources.extend(faults.iter().cloned().map(Finding::Interface));
        if view.get::<HasMirrors>(&()) {
            let nodes = view.keys::<kinds::Node>();
            sources.extend(nodes.iter().map(|key| Finding::NodeMirrors(key.clone())));
        }
        sources
    }
    fn entries(view: &View<'_>, source: &Finding) -> Vec<(ObjectRef, Problem)> {
        let problems = found(view, source).into_iter();
        problems
            .map(|problem| (problem.subject.clone(), problem))
            .collect()
    }
}

fn found(view: &View<'_>, finding: &Finding) -> Vec<Problem> {
    match finding {
        Finding::Unreadable(subject) => view.unreadable(subject).to_vec(),
        Finding::Settings => of_settings(view),
        Finding::Vrfs => view.get::<vrf::Resolved>(&()).problems.to_vec(),
        Finding::NetworkVnis => view.get::<NetworkVnis>(&()).problems.to_vec(),
        Finding::Networks => {
            let keys = view.keys::<kinds::Network>();
            let notes = keys.iter().flat_map(|key| {
                let spec = view.spec::<kinds::Network>(key);
                spec.map_or_else(Vec::new, |spec| of_network(key, &spec))
            });
            notes.collect()
        }
        Finding::Destinations => {
            let keys = view.keys::<kinds::Destination>();
            let found = keys.iter().flat_map(|key| {
                let spec = view.spec::<kinds::Destination>(key);
                let notes = spec.map(|spec| notes::of_destination(key, &spec));
                let notes = notes.unwrap_or_default();
                reach::problem(view, key).into_iter().chain(notes)
            });
            found.collect()
        }
        Finding::NotCompiledYet(subject) => {
            let kind = problem::Kind::NotCompiledYet { what: "this kind" };
            vec![Problem::new(subject.clone(), "", kind)]
        }
        Finding::Intents => {
            let intents = intent::all(view);
            let intents = intents.iter();
            intents.flat_map(|intent| of_intent(view, intent)).collect()
        }
        Finding::HandWritten(subject) => {
            let mut problems: Vec<Problem> = node_share(view, subject).problems.clone();
            problems.extend(low_level::own_problems(view, subject));
            if subject.kind == Kind::BgpPeering {
                let wrong = view.get::<WrongWithPeering>(&subject.key.name.to_string());
                problems.extend(wrong.iter().cloned());
            }
            let object = in_effect(view, subject);
            let settings = view.settings();
            problems.extend(
                object
                    .iter()
                    .flat_map(|one| values::idle_exports(&settings, one)),
            );
            if let Some(object) = object
                && let Some(selector) = object.node_selector()
                && !is_peering_on_a_segment(&object)
            {
                problems.extend(node::selects_no_node(view, subject, selector));
            }
            problems
        }
        Finding::Underlay(key) => of_underlay(view, key),
        Finding::Overlay(subject) => of_overlay(view, subject),
        Finding::Configuration(key) => host_router::own_problems(view, key),
        Finding::Configurations(group) => view.get::<MergedFor>(group).problems.clone(),
        Finding::HostSessions => view.get::<SessionNetworks>(&()).problems.clone(),
        Finding::Underlays => {
            let mut problems = node::mixed_families(view);
            problems.extend(node::underlays_that_may_meet(view));
            problems
        }
        Finding::VrfNumbers => view.get::<NumbersOfAll>(&()).problems.clone(),
        Finding::Unreached => node::unreached(view),
        Finding::WithoutNodes => {
            let mut problems = node::problems_without_nodes(view);
            problems.extend(host_router::problems_without_nodes(view));
            problems
        }
        Finding::Group(signature) => view.get::<ProblemsOfGroup>(signature).to_vec(),
        Finding::Interface(fault) => node::interface_problem(view, fault).into_iter().collect(),
        Finding::Mirrors => view.get::<AllMirrors>(&()).problems.clone(),
        Finding::NodeMirrors(node) => view.get::<MirrorsOf>(node).problems.clone(),
    }
}

fn of_settings(view: &View<'_>) -> Vec<Problem> {
    let mut problems = notes::of_settings(&view.settings());
    problems.extend(last_good::settings_deleted(view));
    problems.extend(node::trunk_faults(&view.settings()));
    problems.extend(node::problems_of_cluster(&view.settings()));
    problems.extend(values::of_settings(&view.settings()));
    problems.extend(vrf::cluster_vrf(view));
    problems.extend(node::no_canary(view));
    problems.extend(vrf::of_settings(view));
    problems.extend(node::too_few_tables(view));
    problems.extend(bgp_neighbor::outside_of_settings(view));
    problems
}

fn of_network(key: &Key, spec: &NetworkSpec) -> Vec<Problem> {
    let mut problems = notes::of_network(key, spec);
    let subject = reference(Kind::Network, key);
    let faults = values::of_network(spec).into_iter();
    problems.extend(faults.map(|(field, kind)| Problem::new(subject.clone(), field, kind)));
    problems
}

fn of_underlay(view: &View<'_>, key: &Key) -> Vec<Problem> {
    let mut problems = view.get::<PlanOf>(key).problems.clone();
    let spec = view.spec::<kinds::Underlay>(key);
    let selector = spec.as_ref().and_then(|spec| spec.node_selector.as_ref());
    if let Some(selector) = selector.filter(|selector| selector.check().is_ok()) {
        let subject = reference(Kind::Underlay, key);
        problems.extend(node::selects_no_node(view, &subject, selector));
    }
    problems
}

fn of_overlay(view: &View<'_>, subject: &ObjectRef) -> Vec<Problem> {
    let planned = view.get::<OverlayOf>(subject);
    let mut problems = planned.problems.clone();
    problems.extend(node::means_two(view, subject));
    let selector = planned.plan.as_ref();
    if let Some(selector) = selector.and_then(|plan| plan.node_selector.as_ref()) {
        problems.extend(node::selects_no_node(view, subject, selector));
    }
    problems
}

/// Whether it is said elsewhere that none of the nodes which the object selects has its segment.
fn is_peering_on_a_segment(object: &LowLevelObject) -> bool {
    match object {
        LowLevelObject::Bgp(peering) => peering.spec.peering_vlan.is_some(),
        LowLevelObject::Layer2(_)
        | LowLevelObject::Vrf(_)
        | LowLevelObject::MirrorTarget(_)
        | LowLevelObject::MirrorSelector(_) => false,
    }
}

/// The problems of an intent, and of hand-written objects that lose a conflict with it.
fn of_intent(view: &View<'_>, subject: &ObjectRef) -> Vec<Problem> {
    let merged = view.get::<Merged>(subject);
    let mut problems = merged.problems.clone();
    problems.extend(node_share(view, subject).problems.iter().cloned());
    problems.extend(notes::of_routes(subject, &intent::routes(view, subject)));
    let mut selectors = merged.objects.iter().map(LowLevelObject::node_selector);
    if let Some(selector) = selectors.find_map(|selector| selector)
        && let Some(note) = node::selects_no_node(view, subject, selector)
        // What is in effect may be what the intent was before, or be selected by another intent.
        && intent::nodes(view, subject).as_ref() == Some(selector)
    {
        problems.push(note);
    }
    let sessions = merged.objects.iter();
    for object in sessions.filter(|one| one.kind() == Kind::BgpPeering) {
        let wrong = view.get::<WrongWithPeering>(&object.name().to_owned());
        problems.extend(wrong.iter().cloned());
    }
    problems
}

/// Objects of kinds that are served and checked, and of which nothing is made yet.
fn not_compiled_yet(view: &View<'_>) -> Vec<ObjectRef> {
    let mut all = view.all::<kinds::MultiPodNetwork>();
    all.retain(|one| view.meta_of(one).is_some_and(|meta| meta.owner.is_none()));
    all
}

/// The objects that are in effect as they last were, each with the problems of what it is now.
pub(crate) struct ProblemsNow;
impl Input for ProblemsNow {
    type Key = ObjectRef;
    type Value = Now;
    fn differing(before: &Now, now: &Now) -> Parts {
        let Now { problems, waits } = before;
        [*problems != now.problems, *waits != now.waits, false]
    }
}

/// An object that is in effect as it last was.
#[derive(Clone, Debug)]
pub(crate) struct Now {
    /// What is wrong with what it is now.
    pub(crate) problems: Arc<Vec<Problem>>,
    /// Whether it is an intent that keeps the objects which were generated from it, or a new hand-written object that is not in effect. All
    /// others have the spec that they had.
    pub(crate) waits: bool,
}

struct ProblemsNowPart;
impl Part for ProblemsNowPart {
    type Of = ProblemsNow;
    type Value = Arc<Vec<Problem>>;
    const PART: usize = 0;
    fn of(now: &Now) -> Arc<Vec<Problem>> {
        Arc::clone(&now.problems)
    }
}

struct WaitsPart;
impl Part for WaitsPart {
    type Of = ProblemsNow;
    type Value = bool;
    const PART: usize = 1;
    fn of(now: &Now) -> bool {
        now.waits
    }
}

/// Whether any intent keeps the objects that were generated from it, or any hand-written object is not in effect.
pub(crate) struct AnyWaits;
impl Query for AnyWaits {
    type Key = ();
    type Value = bool;
    fn compute(view: &View<'_>, (): &()) -> bool {
        let kept = view.keys::<ProblemsNow>();
        let mut kept = kept.iter();
        kept.any(|subject| view.part::<WaitsPart>(subject) == Some(true))
    }
}

/// Whether an intent keeps the objects that were generated from it, or a hand-written object is not in effect.
pub(crate) fn waits(view: &View<'_>, subject: &ObjectRef) -> bool {
    view.get::<AnyWaits>(&()) && view.part::<WaitsPart>(subject) == Some(true)
}

/// Whether something is in effect of an object that something is wrong with: what was before.
pub(crate) fn keeps(view: &View<'_>, subject: &ObjectRef) -> bool {
    view.part::<WaitsPart>(subject) == Some(false)
        || subject.kind.intent().is_some() && {
            let merged = view.get::<Merged>(subject);
            merged.is_held_back && !merged.objects.is_empty()
        }
}

/// What is wrong with an object: nothing twice.
pub(crate) struct ProblemsOf;
impl Query for ProblemsOf {
    type Key = ObjectRef;
    type Value = Arc<Vec<Problem>>;
    fn compute(view: &View<'_>, subject: &ObjectRef) -> Arc<Vec<Problem>> {
        if let Some(now) = view.part::<ProblemsNowPart>(subject) {
            return now;
        }
        let found = view.who::<Problems>(subject);
        if found.is_empty() && subject.kind == Kind::BgpPeering {
            return Arc::new(node::is_idle(view, subject).into_iter().collect());
        }
        Arc::new(once(found.to_vec()))
    }
}

/// Sorted; of several problems with the same reason at one field, which differ only in the node they were seen on, the first.
fn once(mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.sort();
    let mut seen = BTreeSet::new();
    problems.retain(|problem| seen.insert((problem.field.clone(), problem.kind.reason())));
    problems
}

/// Everything that is wrong, sorted by object.
pub(crate) struct AllProblems;
impl Query for AllProblems {
    type Key = ();
    type Value = Arc<Vec<Problem>>;
    fn compute(view: &View<'_>, (): &()) -> Arc<Vec<Problem>> {
        let mut subjects: BTreeSet<ObjectRef> =
            view.all_keys::<Problems>().iter().cloned().collect();
        let now = view.keys::<ProblemsNow>();
        subjects.extend(now.iter().cloned());
        let written = low_level::hand_written(view);
        let peerings = written.iter().filter(|one| one.kind == Kind::BgpPeering);
        subjects.extend(peerings.cloned());
        let problems = subjects.iter().flat_map(|subject| {
            let problems = view.get::<ProblemsOf>(subject);
            problems.to_vec()
        });
        Arc::new(problems.collect())
    }
}
