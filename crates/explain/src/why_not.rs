//! Why something is not on a node: the first obstacle on the way from the objects that users write to the node.
//!
//! ```text
//! object ─► what refers to it ─► intent ─► its problems ─► node selector ─► underlay ─► older objects ─► the node
//! ```

mod referrers;

use std::fmt;

use api::{
    meta::{LabelOperator, LabelSelector, Labels},
    tcaas::{
        BgpPeeringSpec, Layer2NetworkConfigurationSpec, MirrorSelectorSpec,
        VrfRouteConfigurationSpec,
    },
};
use compiler::{
    NodeConfig, Problem, Severity,
    lower::{LowLevel, LowLevelObjects, LowLevelSpec},
    node, problem,
    snapshot::{Key, Kind, ObjectRef},
};
use ipnet::IpNet;
use serde::Serialize;

use crate::{
    element::{Element, Elements},
    provenance::{Trace, is_kept},
    query::{Query, longest},
};

/// Why something is not on a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "obstacle", rename_all = "camelCase")]
pub enum Obstacle {
    /// No object defines it.
    #[serde(rename = "nobodySpeaks")]
    NotDefined {
        /// What the user asks about.
        #[serde(rename = "thing")]
        query: String,
        /// Objects that cannot be read: one of them may.
        unreadable: Vec<ObjectRef>,
        /// Similar names.
        near: Vec<String>,
    },
    /// The object cannot be read, or something is wrong with it or with what it refers to.
    Problem {
        /// The object that would configure it.
        object: ObjectRef,
        /// The problem, on the object whose author can solve it.
        problem: Problem,
    },
    /// Nothing refers to the object.
    Unused {
        /// The object.
        object: ObjectRef,
        /// What would refer to it, and how.
        by: String,
    },
    /// The Network is not managed by Selvedge.
    Unmanaged {
        /// The object that asks.
        object: ObjectRef,
        /// The network.
        network: ObjectRef,
    },
    /// The object configures nothing on nodes.
    #[serde(rename = "asksNothing")]
    NoEffect {
        /// The object.
        object: ObjectRef,
        /// What it lacks.
        lacks: &'static str,
    },
    /// The node is not selected.
    NotSelected {
        /// The object.
        object: ObjectRef,
        /// Its selector.
        selector: String,
        /// The node's labels.
        labels: Labels,
    },
    /// The node takes no part in the overlay.
    NoOverlay {
        /// The object that needs it.
        object: ObjectRef,
        /// Why not.
        why: String,
    },
    /// The object's selector does not match the Destination that it should reach.
    #[serde(rename = "notChosen")]
    DestinationNotSelected {
        /// The object.
        object: ObjectRef,
        /// Its selector.
        selector: String,
        /// The Destination.
        destination: ObjectRef,
        /// Its labels.
        labels: Labels,
    },
    /// The prefix is inside of one that is imported, and only the route to that one is.
    LongerThanImported {
        /// The object that imports.
        object: ObjectRef,
        /// The prefix that it imports.
        imported: String,
        /// The VRF that it is imported from.
        vrf: String,
        /// The prefix that the user asks about.
        #[serde(rename = "thing")]
        query: String,
    },
    /// The object is in effect, and this is not what comes of it.
    Elsewhere {
        /// The object.
        object: ObjectRef,
    },
}

impl Obstacle {
    /// How far the walk from object to node came.
    fn step(&self) -> u8 {
        match self {
            Self::NotDefined { .. } => 0,
            Self::Unused { .. } => 1,
            Self::Problem { .. } => 2,
            Self::Unmanaged { .. } | Self::NoEffect { .. } => 3,
            Self::NotSelected { .. } => 4,
            Self::NoOverlay { .. } => 5,
            Self::DestinationNotSelected { .. } => 6,
            Self::LongerThanImported { .. } => 7,
            Self::Elsewhere { .. } => 8,
        }
    }

    /// What can be done about it.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::NotDefined { near, .. } => {
                (!near.is_empty()).then(|| format!("there is {}", near.join(", ")))
            }
            Self::Problem { problem, .. } => problem.kind.remedy(),
            Self::Unused { by, .. } => Some(format!("add {by}")),
            Self::Unmanaged { network, .. } => {
                Some(format!("remove spec.managed: false from {network}"))
            }
            Self::NoEffect { lacks, .. } => Some(format!("add {lacks}")),
            Self::NotSelected { object, .. } => Some(format!(
                "label the node, or change spec.nodeSelector of {object}"
            )),
            Self::NoOverlay { .. } => {
                Some("let an Underlay with spec.evpn select the node".to_owned())
            }
            Self::DestinationNotSelected {
                object,
                destination,
                ..
            } => Some(format!(
                "label {destination}, or change spec.destinations of {object}"
            )),
            Self::LongerThanImported { object, query, .. } => {
                Some(if object.kind == Kind::VrfRouteConfiguration {
                    format!("add {query} to spec.import of {object}, or le to its item")
                } else {
                    format!(
                        "add {query} to spec.prefixes of a Destination, or set spec.importMatch of the Settings to OrLonger"
                    )
                })
            }
            Self::Elsewhere { object } => Some(format!(
                "selvedge explain {}/{} says what does",
                object.kind, object.key
            )),
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotDefined {
                query, unreadable, ..
            } if unreadable.is_empty() => {
                write!(f, "no object speaks of {query}")
            }
            Self::NotDefined {
                query, unreadable, ..
            } => {
                let names: Vec<String> = unreadable.iter().map(ToString::to_string).collect();
                let names = names.join(", ");
                write!(
                    f,
                    "no object that can be read speaks of {query}; cannot be read: {names}"
                )
            }
            Self::Problem { object, problem } if problem.subject == *object => problem.fmt(f),
            Self::Problem { object, problem } => write!(f, "{object} needs {problem}"),
            Self::Unused { object, .. } => {
                write!(f, "{object} is there, but nothing refers to it")
            }
            Self::Unmanaged { object, network } => write!(
                f,
                "{object}: {network} has spec.managed: false, so that nodes get nothing of it"
            ),
            Self::NoEffect { object, lacks } => {
                write!(f, "{object} asks for nothing on nodes: it has no {lacks}")
            }
            Self::NotSelected {
                object,
                selector,
                labels,
            } => {
                let labels = labels_text(labels);
                write!(
                    f,
                    "{object} spec.nodeSelector does not select the node\n  it wants     {selector}\n  the node has {labels}"
                )
            }
            Self::DestinationNotSelected {
                object,
                selector,
                destination,
                labels,
            } => {
                let (labels, kind) = (labels_text(labels), destination.kind);
                write!(
                    f,
                    "{object} spec.destinations does not select {destination}\n  it wants            {selector}\n  the {kind} has {labels}"
                )
            }
            Self::NoOverlay { object, why } => {
                write!(
                    f,
                    "{object} needs the fabric, and the node takes no part in it: {why}"
                )
            }
            Self::LongerThanImported {
                object,
                imported,
                vrf,
                query,
            } => {
                write!(
                    f,
                    "{object} imports exactly {imported} from VRF {vrf}: a route to {query}, which is longer, is not imported"
                )
            }
            Self::Elsewhere { object } => {
                write!(
                    f,
                    "{object} is in effect on the node, and this is not what comes of it"
                )
            }
        }
    }
}

/// Labels as text.
fn labels_text(labels: &Labels) -> String {
    let labels = labels.iter();
    let labels: Vec<String> = labels
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    match labels.as_slice() {
        [] => "no labels".to_owned(),
        labels => labels.join(", "),
    }
}

/// The names that are similar to one, the most similar first.
pub fn similar<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    referrers::similar(
        name,
        known.map(|known| (known.to_owned(), known.to_owned())),
    )
}

/// The obstacles for what a query asks about on a node, the nearest to the node first. Empty where it is on the node: then `found`
/// are its elements.
pub fn why_not(
    trace: &Trace<'_>,
    node: &str,
    query: &Query,
    found: &[Element],
    elements: &Elements,
) -> Vec<Obstacle> {
    let Some(walk) = Walk::new(trace, node) else {
        return Vec::new();
    };
    if !found.is_empty() {
        let is_there = match query {
            // A default route covers everything; what counts is whether an object names a smaller network.
            Query::Prefix(net) => longest(net, elements) >= referrers::longest(trace, *net),
            // A part of what an object configures may be there.
            Query::Object(object) => walk.is_complete(object),
            _ => true,
        };
        if is_there {
            return match query {
                Query::Prefix(net) => walk.longer_than_imported(net, query, found),
                _ => Vec::new(),
            };
        }
    }
    let mut obstacles = Vec::new();
    for referrer in referrers::of(trace, query) {
        obstacles.extend(walk.obstacles(&referrer));
    }
    if obstacles.is_empty() {
        return vec![walk.not_defined(query)];
    }
    obstacles.sort();
    obstacles.dedup();
    obstacles.sort_by_key(|obstacle| std::cmp::Reverse(obstacle.step()));
    obstacles
}

/// The VRFs through which workloads on a node reach a destination, or the obstacles where they do not.
pub fn reach(
    trace: &Trace<'_>,
    node: &str,
    from: &Query,
    to: &Query,
) -> Result<Vec<String>, Vec<Obstacle>> {
    let Some(walk) = Walk::new(trace, node) else {
        return Err(Vec::new());
    };
    let referrers = referrers::of(trace, from);
    let users = referrers
        .iter()
        .flat_map(|one| referrers::users(trace, one).unwrap_or_default());
    let users: Vec<ObjectRef> = users.collect();
    if users.is_empty() {
        return Err(vec![walk.not_defined(from)]);
    }
    let targets = referrers::destinations(trace, to);
    if targets.is_empty() {
        return Err(vec![walk.not_defined(to)]);
    }
    let mut obstacles = Vec::new();
    let mut vrfs = Vec::new();
    for user in &users {
        match walk.of_user(user, user) {
            Obstacle::Elsewhere { .. } => {}
            obstacle => {
                obstacles.push(obstacle);
                continue;
            }
        }
        for target in &targets {
            match walk.destination_vrf(user, target) {
                Ok(vrf) => vrfs.push(vrf),
                Err(obstacle) => obstacles.push(*obstacle),
            }
        }
    }
    if vrfs.is_empty() {
        obstacles.sort();
        obstacles.sort_by_key(|obstacle| std::cmp::Reverse(obstacle.step()));
        return Err(obstacles);
    }
    vrfs.sort();
    vrfs.dedup();
    Ok(vrfs)
}

/// The way from objects to one node.
struct Walk<'a> {
    trace: &'a Trace<'a>,
    node: &'a str,
    labels: &'a Labels,
    config: &'a NodeConfig,
}

impl<'a> Walk<'a> {
    fn new(trace: &'a Trace<'a>, node: &'a str) -> Option<Self> {
        let config = trace.compilation.nodes.get(node)?;
        let object = trace.snapshot.nodes.get(&Key::named(node))?;
        Some(Self {
            trace,
            node,
            labels: &object.meta.labels,
            config,
        })
    }

    /// No object defines what is asked about.
    fn not_defined(&self, query: &Query) -> Obstacle {
        let unreadable = self.trace.snapshot.unreadable.iter();
        let mut unreadable: Vec<ObjectRef> = unreadable
            .filter(|problem| matches!(problem.kind, problem::Kind::Unreadable { .. }))
            .map(|problem| problem.subject.clone())
            .collect();
        unreadable.dedup();
        Obstacle::NotDefined {
            query: query.to_string(),
            unreadable,
            near: referrers::suggestions(self.trace, self.node, query),
        }
    }

    /// The imports around a network whose own route they do not match, where nothing but imports is about it.
    ///
    /// A single address is no network that somebody announces: it is reached by the route to what is around it.
    fn longer_than_imported(&self, net: &IpNet, query: &Query, found: &[Element]) -> Vec<Obstacle> {
        let mut obstacles = Vec::new();
        for element in found {
            let Element::Import { from, prefix, .. } = element else {
                return Vec::new();
            };
            let is_exact = prefix.parse::<IpNet>().is_ok_and(|own| own != *net);
            if !is_exact || net.prefix_len() == net.max_prefix_len() {
                return Vec::new();
            }
            for claim in self.trace.claims(self.node, element) {
                obstacles.push(Obstacle::LongerThanImported {
                    object: claim.by,
                    imported: prefix.clone(),
                    vrf: from.clone(),
                    query: query.to_string(),
                });
            }
        }
        obstacles.sort();
        obstacles.dedup();
        obstacles
    }

    /// Whether everything that an object configures is on the node.
    fn is_complete(&self, object: &ObjectRef) -> bool {
        let of = |obstacle: &Obstacle| matches!(obstacle, Obstacle::Elsewhere { .. });
        !referrers::is_user(object) || of(&self.of_user(object, object))
    }

    /// The VRF through which an intent reaches a Destination.
    fn destination_vrf(
        &self,
        user: &ObjectRef,
        target: &ObjectRef,
    ) -> Result<String, Box<Obstacle>> {
        let snapshot = self.trace.snapshot;
        let destination = snapshot.destinations.get(&target.key);
        let labels = destination
            .map(|one| one.meta.labels.clone())
            .unwrap_or_default();
        let selector = referrers::selector(snapshot, user);
        if !selector.is_some_and(|selector| selector.matches(&labels)) {
            return Err(Box::new(Obstacle::DestinationNotSelected {
                object: user.clone(),
                selector: selector.map_or_else(|| "nothing".to_owned(), selector_text),
                destination: target.clone(),
                labels,
            }));
        }
        let vrf = destination.and_then(|one| one.spec.vrf_ref.as_ref());
        let vrf = vrf.and_then(|vrf| snapshot.vrfs.get(&Key::named(vrf)));
        let vrf = vrf.map(|vrf| format!("{user} reaches {target} through VRF {}", vrf.spec.vrf));
        Ok(vrf.unwrap_or_else(|| format!("{user} reaches {target} by its next hop")))
    }

    /// The obstacles of every object that uses this one.
    fn obstacles(&self, object: &ObjectRef) -> Vec<Obstacle> {
        if let Some(problem) = self.unreadable(object) {
            let object = object.clone();
            return vec![Obstacle::Problem { object, problem }];
        }
        let users = referrers::users(self.trace, object);
        match users {
            Ok(users) => users
                .iter()
                .map(|user| self.of_user(user, object))
                .collect(),
            Err((object, by)) => vec![Obstacle::Unused { object, by }],
        }
    }

    fn unreadable(&self, object: &ObjectRef) -> Option<Problem> {
        let mut problems = self.trace.snapshot.unreadable.iter();
        let of_object = problems.find(|problem| {
            problem.subject == *object && matches!(problem.kind, problem::Kind::Unreadable { .. })
        });
        of_object.cloned()
    }

    /// The first error on one of these objects; what cannot be read comes before all else. Where an object waits for another, it is what
    /// is wrong with that one.
    fn problem(&self, objects: &[ObjectRef]) -> Option<Problem> {
        let problems = &self.trace.compilation.problems;
        let error = |object: &ObjectRef| {
            let mut problems = problems.iter();
            let found = problems.find(|problem| {
                problem.subject == *object && problem.severity() == Severity::Error
            });
            found.cloned()
        };
        let mut unreadable = objects.iter().filter_map(|object| self.unreadable(object));
        let mut found = unreadable
            .next()
            .or_else(|| objects.iter().find_map(error))?;
        while let problem::Kind::ReferenceNotInEffect { target } = &found.kind {
            let Some(behind) = error(target) else { break };
            found = behind;
        }
        Some(found)
    }

    /// The obstacle of an intent, or of a hand-written object.
    fn of_user(&self, user: &ObjectRef, referrer: &ObjectRef) -> Obstacle {
        let object = user.clone();
        let mut chain = vec![user.clone(), referrer.clone()];
        chain.extend(referrers::needs(self.trace, user));
        let objects = &self.trace.compilation.objects;
        let segments = of::<Layer2NetworkConfigurationSpec>(objects, user);
        let routing = of::<VrfRouteConfigurationSpec>(objects, user);
        let peerings = of::<BgpPeeringSpec>(objects, user);
        let mirrors = of::<MirrorSelectorSpec>(objects, user);
        let is_lowered = objects.iter().any(|object| object.source() == user);
        if (!is_lowered || is_kept(self.trace, user))
            && let Some(problem) = self.problem(&chain)
        {
            return Obstacle::Problem { object, problem };
        }
        if !is_lowered {
            return self.no_effect(user);
        }
        if let Some(obstacle) = self.source_elsewhere(&mirrors) {
            return obstacle;
        }
        let of_segments = segments.iter().map(|(_, one)| &one.spec.node_selector);
        let of_routing = routing.iter().map(|(_, one)| &one.spec.node_selector);
        let of_peerings = peerings.iter().map(|(_, one)| &one.spec.node_selector);
        let mut selectors = of_segments.chain(of_routing).chain(of_peerings).flatten();
        if let Some(selector) = selectors.find(|selector| !selector.matches(self.labels)) {
            return Obstacle::NotSelected {
                object,
                selector: selector_text(selector),
                labels: self.labels.clone(),
            };
        }
        let mut own = segments.iter();
        let is_for_host = own.all(|(_, one)| one.spec.interface_ref.is_some());
        let is_for_fabric = !is_for_host || !routing.is_empty() || !peerings.is_empty();
        if let Some(why) = self.no_overlay().filter(|_| is_for_fabric) {
            return Obstacle::NoOverlay { object, why };
        }
        let shared = &self.config.shared;
        let is_vrf = |vrf: &str| shared.fabric_vrfs.contains_key(vrf);
        let in_effect = segments
            .iter()
            .all(|(name, _)| shared.segments.contains(*name))
            && peerings
                .iter()
                .all(|(name, _)| shared.peerings.contains(*name))
            && routing.iter().all(|(_, one)| is_vrf(one.spec.vrf.as_str()));
        match self.problem(&chain).filter(|_| !in_effect) {
            Some(problem) => Obstacle::Problem { object, problem },
            None => Obstacle::Elsewhere { object },
        }
    }

    /// Why an object whose traffic is mirrored is not on the node, where it is not: mirrors are wherever their sources are.
    fn source_elsewhere(
        &self,
        mirrors: &[(&String, &LowLevel<MirrorSelectorSpec>)],
    ) -> Option<Obstacle> {
        let shared = &self.config.shared;
        let mut sources = mirrors.iter().map(|(_, one)| &one.spec.mirror_source);
        let away = sources.find(|source| {
            !(shared.segments.contains(&source.name) || shared.routing.contains(&source.name))
        })?;
        let mut objects = self.trace.compilation.objects.iter();
        let source = objects
            .find(|object| object.name() == away.name && object.kind().to_string() == away.kind)?;
        Some(self.of_user(source.source(), source.source()))
    }

    /// Why an object without problems configures nothing.
    fn no_effect(&self, user: &ObjectRef) -> Obstacle {
        let object = user.clone();
        let mut needs = referrers::needs(self.trace, user).into_iter();
        let unmanaged = needs.find(|need| {
            let network = self.trace.snapshot.networks.get(&need.key);
            need.kind == Kind::Network && network.is_some_and(|network| !network.spec.managed)
        });
        match unmanaged {
            Some(network) => Obstacle::Unmanaged { object, network },
            None => Obstacle::NoEffect {
                object,
                lacks: "spec.destinations",
            },
        }
    }

    /// Why the node takes no part in the overlay, where it does not.
    fn no_overlay(&self) -> Option<String> {
        let underlay = self.config.underlay.as_ref();
        if underlay.is_some_and(|underlay| underlay.vtep.is_some()) {
            return None;
        }
        let snapshot = self.trace.snapshot;
        if let Some((chosen, spec)) = node::underlay_of(snapshot, self.labels) {
            if let Some(problem) = self.problem(std::slice::from_ref(&chosen)) {
                return Some(problem.to_string());
            }
            let lacks = spec.evpn.is_none() && spec.tunnel_endpoint.is_none();
            return Some(if lacks {
                format!("{chosen} has no spec.evpn")
            } else {
                format!("{chosen} gives {} no address", self.node)
            });
        }
        let of = |(key, object): (
            &Key,
            &compiler::Object<api::openperouter::UnderlaySpec, api::openperouter::OverlayStatus>,
        )| {
            let wants = object
                .spec
                .node_selector
                .as_ref()
                .map_or_else(|| "every node".to_owned(), selector_text);
            format!("Underlay {key} wants {wants}")
        };
        let known: Vec<String> = snapshot.underlays.iter().map(of).collect();
        Some(match known.as_slice() {
            [] => "there is no Underlay".to_owned(),
            known => format!("no Underlay selects it ({})", known.join("; ")),
        })
    }
}

/// The low-level objects that are made from an object, or that it is itself.
fn of<'a, S: LowLevelSpec>(
    objects: &'a LowLevelObjects,
    user: &ObjectRef,
) -> Vec<(&'a String, &'a LowLevel<S>)> {
    let own = objects.of::<S>().filter(|(_, one)| one.source == *user);
    own.map(|(name, one)| (name, &**one)).collect()
}

/// A selector as text.
fn selector_text(selector: &LabelSelector) -> String {
    let labels = selector.match_labels.iter();
    let labels = labels.map(|(key, value)| format!("{key}={value}"));
    let expressions = selector.match_expressions.iter().map(|requirement| {
        let (key, values) = (&requirement.key, requirement.values.join(", "));
        match requirement.operator {
            LabelOperator::In => format!("{key} in ({values})"),
            LabelOperator::NotIn => format!("{key} not in ({values})"),
            LabelOperator::Exists => format!("{key} present"),
            LabelOperator::DoesNotExist => format!("{key} absent"),
        }
    });
    let all: Vec<String> = labels.chain(expressions).collect();
    match all.as_slice() {
        [] => "every node".to_owned(),
        all => all.join(", "),
    }
}
