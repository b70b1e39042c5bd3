//! Why something is not on a node: the first obstacle on the way from the objects that users write to the node.
//!
//! ```text
//! object ─► what refers to it ─► intent ─► its problems ─► node selector ─► underlay ─► older objects ─► the node
//! ```

mod between;
mod devices;
mod kinds;
mod obstacle;
mod referrers;
mod suggestions;
mod ways;

use std::{cell::OnceCell, rc::Rc};

use api::{
    meta::{LabelOperator, LabelSelector, Labels},
    tcaas::{
        BgpPeeringSpec, Layer2NetworkConfigurationSpec, MirrorSelectorSpec, MirrorTargetSpec,
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

use self::between::Announced;
pub use self::{
    obstacle::Obstacle,
    ways::{Reached, ways},
};
use crate::{
    element::{Element, Elements},
    provenance::{Trace, is_kept},
    query::{Query, longest},
};

/// The names that are similar to one, the most similar first.
pub fn similar<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    suggestions::similar(
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
    let mut missing = walk.missing_devices(found);
    missing.extend(walk.denied(query, found));
    if !missing.is_empty() {
        return missing;
    }
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
    let referrers = referrers::of(trace, query);
    let mut obstacles = Vec::new();
    for referrer in &referrers {
        obstacles.extend(walk.obstacles(referrer));
    }
    if referrers.is_empty() {
        let unused = walk.unused_device(query);
        return vec![unused.unwrap_or_else(|| walk.not_defined(query))];
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
    let users = walk.ends(from, &referrers)?;
    let (mut targets, others) = walk.targets(to)?;
    // From an object to itself there is always a way; what is asked about are the others of several.
    let is_same = |user: &ObjectRef, other: &ObjectRef| users.len() > 1 && user == other;
    targets.sort();
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
        for other in others.iter().filter(|other| !is_same(user, other)) {
            match walk.way_between(user, other) {
                Ok(way) => vrfs.push(way),
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
    announced: OnceCell<Rc<Announced>>,
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
            announced: OnceCell::new(),
        })
    }

    /// The same with what was found before.
    fn knowing(self, announced: Rc<Announced>) -> Self {
        Self {
            announced: OnceCell::from(announced),
            ..self
        }
    }

    /// The VRFs that announce what each route target imports.
    fn announced(&self) -> &Announced {
        let find = || Rc::new(between::announced(self.trace.compilation));
        self.announced.get_or_init(find)
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
            near: suggestions::of(self.trace, self.node, query),
        }
    }

    /// The Destinations that are asked about; or the objects whose workloads are, where there are none.
    ///
    /// A network that an object of this cluster has is reached by reaching that object: a Destination around it, such as a default
    /// route, says nothing about it.
    fn targets(&self, to: &Query) -> Result<(Vec<ObjectRef>, Vec<ObjectRef>), Vec<Obstacle>> {
        let nearest = referrers::of(self.trace, to);
        let is_destination = |one: &ObjectRef| one.kind == Kind::Destination;
        let around = referrers::destinations(self.trace, to);
        if nearest.iter().any(is_destination) || nearest.is_empty() && !around.is_empty() {
            return Ok((around, Vec::new()));
        }
        match self.ends(to, &nearest) {
            Ok(others) => Ok((Vec::new(), others)),
            Err(_) if !around.is_empty() => Ok((around, Vec::new())),
            Err(obstacles) => Err(obstacles),
        }
    }

    /// The objects whose workloads a query asks about; or why there are none.
    fn ends(
        &self,
        query: &Query,
        referrers: &[ObjectRef],
    ) -> Result<Vec<ObjectRef>, Vec<Obstacle>> {
        if referrers.is_empty() {
            return Err(vec![self.not_defined(query)]);
        }
        let mut found = Vec::new();
        let mut obstacles = Vec::new();
        for referrer in referrers {
            let author = referrers::author(self.trace, referrer);
            match referrers::users(self.trace, &author) {
                Ok(users) => found.extend(users),
                Err((object, by)) => obstacles.push(Obstacle::Unused { object, by }),
            }
        }
        found.sort();
        found.dedup();
        let (found, others): (Vec<_>, Vec<_>) = found.into_iter().partition(referrers::is_user);
        for other in others {
            let why = "has no workloads: ask about an intent, a Network, a VLAN or a prefix";
            obstacles.push(Obstacle::idle(&other, why, None));
        }
        if found.is_empty() {
            Err(obstacles)
        } else {
            Ok(found)
        }
    }

    /// The imports around a network whose own route they do not match, where nothing but imports is about it.
    ///
    /// A single address is not announced by itself: it is reached by the route to the network that contains it.
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

    /// The rules that deny the routes to a prefix, where nothing else is about it.
    fn denied(&self, query: &Query, found: &[Element]) -> Vec<Obstacle> {
        let is_denial = |element: &Element| {
            matches!(
                element,
                Element::DeniedImport { .. } | Element::DeniedExport { .. }
            )
        };
        if !matches!(query, Query::Prefix(_)) || !found.iter().all(is_denial) {
            return Vec::new();
        }
        let mut obstacles = Vec::new();
        for element in found {
            for claim in self.trace.claims(self.node, element) {
                obstacles.push(Obstacle::Denied {
                    object: claim.by,
                    denied: element.to_string(),
                });
            }
        }
        obstacles.sort();
        obstacles.dedup();
        obstacles
    }

    /// Whether everything that an object configures is on the node.
    fn is_complete(&self, object: &ObjectRef) -> bool {
        let is_elsewhere = |obstacle: &Obstacle| matches!(obstacle, Obstacle::Elsewhere { .. });
        let may_be_partly = referrers::is_user(object) || object.kind == Kind::Node;
        !may_be_partly || self.obstacles(object).iter().all(is_elsewhere)
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
        let needed = destination.and_then(|one| one.spec.vrf_ref.as_ref());
        let vrf = needed.and_then(|vrf| snapshot.vrfs.get(&Key::named(vrf)));
        let vrf = vrf.map(|vrf| vrf.spec.vrf.as_str());
        match (needed, vrf) {
            _ if self.is_left_out(user, target) => {}
            (None, _) => return Ok(format!("{user} reaches {target} by its next hop")),
            (Some(_), Some(vrf)) if self.leads_to(user, target, vrf) => {
                return Ok(format!("{user} reaches {target} through VRF {vrf}"));
            }
            (Some(_), _) => {}
        }
        let mut chain = vec![target.clone()];
        chain.extend(needed.map(|vrf| ObjectRef::named(Kind::Vrf, vrf)));
        Err(Box::new(match self.problem(&chain) {
            Some(problem) => Obstacle::Problem {
                object: user.clone(),
                problem,
            },
            None => Obstacle::NoRoute {
                object: user.clone(),
                destination: target.clone(),
                vrf: vrf.map(str::to_owned),
            },
        }))
    }

    /// Whether an attachment selects a Destination that has no part in what is made of it.
    fn is_left_out(&self, user: &ObjectRef, target: &ObjectRef) -> bool {
        let attachment = self.trace.compilation.attachment(&user.key.name);
        let attachment = attachment.filter(|_| user.kind == Kind::Layer2Attachment);
        attachment.is_some_and(|attachment| {
            let mut matched = attachment.matched.iter();
            matched.all(|one| *one.name != *target.key.name)
        })
    }

    /// Whether the tables of the node lead from an object to one of the prefixes of a Destination in its VRF.
    fn leads_to(&self, user: &ObjectRef, target: &ObjectRef, vrf: &str) -> bool {
        let from = self.side(user);
        let destination = self.trace.snapshot.destinations.get(&target.key);
        let mut prefixes = destination.into_iter().flat_map(|one| &one.spec.prefixes);
        prefixes.any(|prefix| self.leads(&from, prefix.net(), vrf))
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
        while let problem::Kind::ReferenceNotInEffect { target }
        | problem::Kind::NoDestination {
            left_out: Some(target),
        } = &found.kind
        {
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
        let targets = of::<MirrorTargetSpec>(objects, user);
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
                object: referrers::selecting(self.trace, user, selector),
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
        if let Some(obstacle) = self.open_claim(&object, &mirrors, &targets) {
            return obstacle;
        }
        if let Some(obstacle) = self.unused_tunnel(&object, &targets) {
            return obstacle;
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
        let needs = referrers::needs(self.trace, user);
        let unmanaged = needs.iter().find(|need| {
            let network = self.trace.snapshot.networks.get(&need.key);
            need.kind == Kind::Network && network.is_some_and(|network| !network.spec.managed)
        });
        if let Some(network) = unmanaged.cloned() {
            return Obstacle::Unmanaged { object, network };
        }
        if let Some(lacks) = referrers::lacks(self.trace.snapshot, user) {
            return Obstacle::NoEffect { object, lacks };
        }
        // It is wherever another one is, and that one is nowhere.
        let objects = &self.trace.compilation.objects;
        let is_lowered = |one: &ObjectRef| objects.iter().any(|object| object.source() == one);
        let mut others = needs.into_iter().filter(referrers::is_user);
        match others.find(|one| one != user && !is_lowered(one)) {
            Some(other) => self.of_user(&other, &other),
            None => Obstacle::idle(user, "configures nothing on nodes", None),
        }
    }

    /// Why the node takes no part in the overlay, where it does not.
    fn no_overlay(&self) -> Option<String> {
        let underlay = self.config.underlay.as_ref();
        if underlay.is_some_and(|underlay| underlay.vtep.is_some()) {
            return None;
        }
        let snapshot = self.trace.snapshot;
        if let Some((chosen, spec)) = node::underlay_for(snapshot, self.labels) {
            if let Some(problem) = self.problem(std::slice::from_ref(&chosen)) {
                return Some(problem.to_string());
            }
            let lacks = spec.evpn.is_none() && spec.tunnel_endpoint.is_none();
            return Some(if lacks {
                format!("{chosen} has neither spec.tunnelEndpoint nor spec.evpn")
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
