//! Statuses of `FRRConfiguration`s: what the operator found in them, and what nodes say of the router of the host.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    frrk8s::{AppliedNodes, ConfigurationProblem, FrrConfigurationStatus, ObservedConfiguration},
    meta::{Condition, ConditionStatus, Conditions},
    tcaas::node_network_config::{
        HostRouterStatus, MissingDevice, MissingKind, RefusedLine, UnsupportedField,
    },
};

use super::{
    Subject,
    conditions::{self, first_unmet},
    in_effect,
};
use crate::{
    host_router::{self, GroupsByConfiguration, HostGroup, NodesByGroup},
    memo::Query,
    problem::{self, Problem},
    problems::ProblemsOf,
    snapshot::{Key, kinds},
    view::View,
};

/// How many nodes a problem names at most.
const MOST_NODES: usize = 16;

/// What the nodes of a group say of the routers of their hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reports {
    /// How many nodes run each object in a generation.
    applied: BTreeMap<ObservedConfiguration, usize>,
    /// Nodes that could not apply the latest config, with what they say.
    errors: BTreeMap<Arc<str>, String>,
    refused: Vec<(Arc<str>, RefusedLine)>,
    unsupported: Vec<(Arc<str>, UnsupportedField)>,
    missing: Vec<(Arc<str>, MissingDevice)>,
}

/// What the nodes of each group say of the routers of their hosts.
pub(crate) struct HostReports;
impl Query for HostReports {
    type Key = HostGroup;
    type Value = Arc<Reports>;
    fn compute(view: &View<'_>, group: &HostGroup) -> Arc<Reports> {
        let mut reports = Reports::default();
        // Most nodes of a group run the same.
        let mut running: BTreeMap<Vec<ObservedConfiguration>, usize> = BTreeMap::new();
        for node in view.who::<NodesByGroup>(group).iter() {
            let status = view.status::<kinds::NodeNetworkConfig>(&Key::named(&**node));
            let Some(report) = status.and_then(|status| status.host_router.clone()) else {
                continue;
            };
            let HostRouterStatus {
                configurations,
                error,
                refused_raw,
                unsupported,
                missing,
            } = report;
            *running.entry(configurations).or_default() += 1;
            reports
                .errors
                .extend(error.map(|error| (Arc::clone(node), error)));
            let of = |node: &Arc<str>| Arc::clone(node);
            reports
                .refused
                .extend(refused_raw.into_iter().map(|one| (of(node), one)));
            let unsupported = unsupported.into_iter();
            reports
                .unsupported
                .extend(unsupported.map(|one| (of(node), one)));
            reports
                .missing
                .extend(missing.into_iter().map(|one| (of(node), one)));
        }
        for (configurations, nodes) in running {
            for one in configurations {
                *reports.applied.entry(one).or_default() += nodes;
            }
        }
        Arc::new(reports)
    }
}

/// What a node says of an object, in words, by reason.
type Said = BTreeMap<(&'static str, String, String), BTreeSet<Arc<str>>>;

pub(super) fn status(view: &View<'_>, subject: &Subject<'_>) -> Option<FrrConfigurationStatus> {
    let spec = view.spec::<kinds::FrrConfiguration>(subject.key())?;
    let problems = view.get::<ProblemsOf>(subject.object);
    let mut problems_now = problems.iter();
    let unused =
        problems_now.find(|one| matches!(one.kind, problem::Kind::NamespaceNotUsed { .. }));
    let mut accepted = conditions::resolved(view, subject.object, subject.meta);
    "Accepted".clone_into(&mut accepted.kind);
    if let Some(unused) = unused {
        let message = unused.kind.to_string();
        let (status, reason) = (ConditionStatus::False, unused.kind.reason());
        accepted = conditions::condition("Accepted", status, reason, message, subject.meta);
    }
    let sums = Sums::of(view, subject);
    let applied = sums.applied(subject);
    let mut ready = first_unmet([Some(&accepted)], &applied).clone();
    "Ready".clone_into(&mut ready.kind);
    let mut all = vec![accepted, applied, ready];
    let has_raw = spec
        .raw
        .as_ref()
        .is_some_and(|raw| !raw.raw_config.is_empty());
    all.extend(sums.conditions(subject, has_raw.then_some(problems.as_slice())));
    let mut said: Vec<ConfigurationProblem> = problems.iter().map(of_problem).collect();
    said.extend(sums.problems());
    let has_mistake = problems.iter().any(|problem| problem.kind.is_mistake());
    let stored = view.status::<kinds::FrrConfiguration>(subject.key());
    let generation = if has_mistake {
        stored.and_then(|stored| stored.in_effect_generation)
    } else {
        subject.meta.generation
    };
    let in_effect = in_effect::<kinds::FrrConfiguration>(view, subject);
    let in_effect = in_effect.filter(|_| unused.is_none());
    Some(FrrConfigurationStatus {
        observed_generation: subject.meta.generation,
        conditions: Conditions(all),
        nodes: Some(AppliedNodes {
            matched: count(sums.total),
            applied: count(sums.ready),
        }),
        problems: said,
        in_effect_generation: in_effect.as_ref().and(generation),
        in_effect: in_effect.map(host_router::without_passwords),
    })
}

fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// What the nodes say that an object selects.
#[derive(Default)]
struct Sums {
    total: usize,
    ready: usize,
    errors: BTreeMap<Arc<str>, String>,
    said: Said,
}

impl Sums {
    fn of(view: &View<'_>, subject: &Subject<'_>) -> Self {
        let mut sums = Self::default();
        let (namespace, name) = host_router::identity(subject.object);
        let source = format!("{namespace}/{name}");
        let observed = host_router::observed(subject.object, subject.meta.generation);
        for group in view.who::<GroupsByConfiguration>(subject.key()).iter() {
            let reports = view.get::<HostReports>(group);
            sums.total += view.who::<NodesByGroup>(group).len();
            sums.ready += reports.applied.get(&observed).copied().unwrap_or(0);
            sums.errors.extend(reports.errors.clone());
            for (node, line) in reports
                .refused
                .iter()
                .filter(|(_, one)| one.source == source)
            {
                let message = format!("line {}: {}", line.line, line.message);
                sums.say("RawLineRefused", "spec.raw.rawConfig", message, node);
            }
            for (node, one) in &reports.unsupported {
                if let Some(field) = host_router::field_of(view, subject.key(), one) {
                    sums.say("NotSupported", &field, one.message.clone(), node);
                }
            }
            for (node, one) in &reports.missing {
                if let Some(field) = host_router::field_that_needs(view, subject.key(), one) {
                    sums.say("DeviceMissing", &field, missing(one), node);
                }
            }
        }
        sums
    }

    fn say(&mut self, reason: &'static str, field: &str, message: String, node: &Arc<str>) {
        let what = (reason, field.to_owned(), message);
        self.said.entry(what).or_default().insert(Arc::clone(node));
    }

    /// Whether every selected node runs the current generation.
    fn applied(&self, subject: &Subject<'_>) -> Condition {
        let Self {
            total,
            ready,
            errors,
            said: _,
        } = self;
        let (status, reason, message) = if *total == 0 {
            let message = "no node is selected".to_owned();
            (ConditionStatus::False, "NoNode", message)
        } else if ready == total {
            let message = format!("applied on {total} nodes");
            (ConditionStatus::True, "Applied", message)
        } else if let Some((node, error)) = errors.first_key_value() {
            let message = format!("applied on {ready} of {total} nodes; node {node}: {error}");
            (ConditionStatus::False, "NodeFailed", message)
        } else {
            let message = format!("applied on {ready} of {total} nodes");
            (ConditionStatus::False, "Pending", message)
        };
        conditions::condition("Applied", status, reason, message, subject.meta)
    }

    /// Conditions of what the nodes lack. Those of an object with raw configuration say whether that is applied.
    fn conditions(&self, subject: &Subject<'_>, raw: Option<&[Problem]>) -> Vec<Condition> {
        let first = |reason: &str| {
            let mut said = self.said.iter();
            let ((_, _, message), nodes) = said.find(|((one, ..), _)| *one == reason)?;
            Some(format!("node {}: {message}", nodes.first()?))
        };
        let condition = |kind: &str, status, reason: &str, message| {
            conditions::condition(kind, status, reason, message, subject.meta)
        };
        let (yes, no) = (ConditionStatus::True, ConditionStatus::False);
        let mut all = Vec::new();
        if let Some(problems) = raw {
            let mut problems = problems.iter();
            let is_refused = |one: &&Problem| one.field.starts_with("spec.raw");
            all.push(if let Some(refused) = problems.find(is_refused) {
                let (reason, message) = (refused.kind.reason(), refused.kind.to_string());
                condition("RawApplied", no, reason, message)
            } else if let Some(message) = first("RawLineRefused") {
                condition("RawApplied", no, "RawLineRefused", message)
            } else {
                let message = "no line is refused".to_owned();
                condition("RawApplied", yes, "Applied", message)
            });
        }
        if let Some(message) = first("NotSupported") {
            all.push(condition("Supported", no, "NotSupported", message));
        }
        if let Some(message) = first("DeviceMissing") {
            all.push(condition("DevicesMissing", yes, "DeviceMissing", message));
        }
        all
    }

    fn problems(&self) -> impl Iterator<Item = ConfigurationProblem> + '_ {
        self.said.iter().map(|((reason, field, message), nodes)| {
            let nodes = nodes.iter().take(MOST_NODES);
            ConfigurationProblem {
                reason: (*reason).to_owned(),
                message: message.clone(),
                field: field.clone(),
                other: String::new(),
                nodes: nodes.map(ToString::to_string).collect(),
            }
        })
    }
}

/// What a host lacks, in words.
fn missing(device: &MissingDevice) -> String {
    let MissingDevice { vrf, kind, name } = device;
    match kind {
        MissingKind::Vrf => format!("the host has no VRF device {name:?}"),
        MissingKind::Interface => format!("the host has no device {name:?}"),
        MissingKind::L2vni => {
            format!("the host has no VXLAN device of VNI {name} that is port of a bridge")
        }
        MissingKind::L3vni => {
            format!(
                "the host has no VXLAN device of VNI {name} that is port of a bridge in VRF {vrf}"
            )
        }
    }
}

fn of_problem(problem: &Problem) -> ConfigurationProblem {
    let node = problem.kind.node().map(str::to_owned);
    let other = problem.kind.rival().map(|other| {
        let (namespace, name) = host_router::identity(other);
        format!("{namespace}/{name}")
    });
    ConfigurationProblem {
        reason: problem.kind.reason().to_owned(),
        message: problem.kind.to_string(),
        field: problem.field.clone(),
        other: other.unwrap_or_default(),
        nodes: node.into_iter().collect(),
    }
}
