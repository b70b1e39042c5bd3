//! Source-based routing: where VRFs lead to the same addresses, traffic is routed by where it comes from.
//!
//! The cluster VRF takes in routes of every VRF. Where those of two VRFs overlap, its one table can no longer tell which of them a
//! packet means. Each of the two then gets a local VRF `s-<vrf>`, which knows the VRF's routes and the cluster's own, and rules
//! send the packets of each source there.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    tcaas::{
        NodeNetworkConfigSpec, PrefixAction, PrefixItem, TrafficMatch, VrfRouteConfigurationSpec,
        node_network_config::{
            ActionType, Filter, Layer2, NextHop, PolicyRoute, Redistribute, Vrf, VrfImport,
        },
    },
    value::{Prefix, Vni},
};

use super::{
    Group, Named,
    vrfs::{self, Numbers},
};
use crate::{
    lower::LowLevel,
    names,
    prefixes::{self, Overlap},
    problem::{self, Problem},
    snapshot::ObjectRef,
};

/// The first priority that a rule can have.
const FIRST_PRIORITY: u32 = 1;
/// How many lengths a destination can have: 0–128.
const LENGTHS: u32 = 129;
/// How many sources can lie inside each other, so that every rule stays before the kernel's rule for VRFs at 1000.
const MAX_DEPTH: usize = 7;

/// What is steered on a group of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Steering {
    rules: Vec<Rule>,
    /// Why each object's traffic is steered.
    pub(super) why: BTreeMap<ObjectRef, Reason>,
    /// What is wrong there.
    pub(super) problems: Vec<Problem>,
}

/// Packets that a local VRF routes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    source: Prefix,
    /// Where to; absent where the source reaches one VRF only.
    destination: Option<Prefix>,
    vrf: String,
    /// Who asks for it.
    by: BTreeSet<ObjectRef>,
}

/// Why traffic is steered by its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// A VRF that the object reaches.
    pub vrf: String,
    /// The overlap; absent where a person has written `sbrPrefixes`.
    pub overlap: Option<Overlap<String>>,
}

/// What one source reaches: VRF → prefix → who asks for it.
type Reached<'a> = BTreeMap<&'a str, BTreeMap<Prefix, BTreeSet<&'a ObjectRef>>>;

/// A VRF through which a source reaches a prefix, with who asks for it.
type Contender<'r, 'a> = (&'a str, &'r BTreeSet<&'a ObjectRef>);

/// Who comes first where several VRFs lead from one source to one prefix.
struct Precedence<'r, 'a> {
    /// The place of each object among all, the oldest first.
    ranks: BTreeMap<&'a ObjectRef, usize>,
    /// Whether nodes send packets from a source to a prefix through a VRF now.
    runs: &'r dyn Fn(Prefix, Prefix, &str) -> bool,
}

/// The content of all objects of one author about one VRF. Hand-written objects of a VRF count as one: users often write its imports in one
/// object and its exports in another.
#[derive(Default)]
pub struct Consumer<'a> {
    /// What is reached.
    pub imports: BTreeSet<Prefix>,
    /// Where its traffic comes from.
    pub sources: BTreeSet<Prefix>,
    objects: BTreeSet<&'a ObjectRef>,
}

/// What all authors say about all VRFs.
type Consumers<'a> = BTreeMap<(&'a str, Option<&'a ObjectRef>), Consumer<'a>>;

/// An attachment whose network is a source.
struct Owner<'c, 'a> {
    vrf: &'a str,
    author: &'a ObjectRef,
    segment: Option<Vni>,
    /// What it reaches.
    imports: &'c BTreeSet<Prefix>,
}

fn ambiguous(traffic: String, vrf: &str, other_vrf: &str, by: &ObjectRef) -> problem::Kind {
    problem::Kind::SourceAmbiguous {
        traffic,
        vrf: vrf.to_owned(),
        other_vrf: other_vrf.to_owned(),
        by: Box::new(by.clone()),
    }
}

type Routing<'a> = Named<'a, VrfRouteConfigurationSpec>;

impl Steering {
    /// Finds what must be steered on a group of nodes. `runs` says whether nodes send packets from a source to a prefix through a VRF
    /// now; it is asked only where several VRFs contend.
    pub(super) fn find<'a>(
        group: &Group<'a>,
        numbers: &Numbers,
        runs: &dyn Fn(Prefix, Prefix, &str) -> bool,
    ) -> Self {
        let mut routing: Vec<Routing<'a>> = group
            .vrf
            .iter()
            .filter(|(_, object)| numbers.has(object.spec.vrf.as_str()))
            .copied()
            .collect();
        routing.sort_by(|(_, a), (_, b)| a.order().cmp(&b.order()));
        let consumers = consumers(routing.iter().map(|(_, object)| &***object));
        let imports = consumers.iter().flat_map(|((vrf, _), consumer)| {
            let imports = consumer.imports.iter();
            imports.map(move |prefix| (*prefix, (*vrf, prefix.is_ipv4())))
        });
        let overlaps = prefixes::overlaps(imports);
        let mut ranks = BTreeMap::new();
        for (rank, (_, object)) in routing.iter().enumerate() {
            ranks.entry(&object.source).or_insert(rank);
        }
        let precedence = Precedence { ranks, runs };
        let mut steering = Self::default();
        let written = steering.written(&routing, &consumers, &precedence);
        if overlaps.is_empty() {
            return steering;
        }
        let steered =
            |vrf: &'a str, source: &Prefix| overlaps.contains_key(&(vrf, source.is_ipv4()));
        let refused = steering.one_network_of_two(group, &consumers, &steered, &precedence);
        let mut sources: BTreeMap<Prefix, Reached<'a>> = BTreeMap::new();
        for ((vrf, author), consumer) in &consumers {
            for source in consumer.sources.difference(&written) {
                if refused.contains(&(*source, *author)) {
                    continue;
                }
                let family = |prefix: &&Prefix| prefix.is_ipv4() == source.is_ipv4();
                for prefix in consumer.imports.iter().filter(family) {
                    let reached = sources.entry(*source).or_default().entry(*vrf).or_default();
                    let by = reached.entry(*prefix).or_default();
                    by.extend(consumer.objects.iter().copied());
                }
            }
        }
        for (source, reached) in &sources {
            steering.source(*source, reached, &overlaps, &precedence);
        }
        steering
    }

    /// The entries that users have written in `sbrPrefixes`; returns their sources.
    fn written<'a>(
        &mut self,
        routing: &[Routing<'a>],
        consumers: &Consumers<'a>,
        precedence: &Precedence<'_, 'a>,
    ) -> BTreeSet<Prefix> {
        let mut holders: BTreeMap<Prefix, (&str, &ObjectRef)> = BTreeMap::new();
        for (_, object) in routing {
            let vrf = object.spec.vrf.as_str();
            for source in &object.spec.sbr_prefixes {
                let mut report = |loser: &ObjectRef, vrf: &str, holder: &str, by: &ObjectRef| {
                    let field = if *loser == object.source {
                        "spec.sbrPrefixes"
                    } else {
                        "spec.networkRef"
                    };
                    let kind = ambiguous(format!("from {source}"), vrf, holder, by);
                    self.problems.push(Problem::new(loser.clone(), field, kind));
                };
                // Part of a network that an intent has in another VRF: the one that runs keeps it, then the older.
                let of_others = consumers.iter().filter_map(|((other, author), consumer)| {
                    let mut sources = consumer.sources.iter();
                    let is_inside = sources.any(|own| own.net().contains(&source.net()));
                    let author = (*author)?;
                    (is_inside && *other != vrf).then_some((*other, author))
                });
                let of_others: Vec<_> = of_others.collect();
                let runs = !of_others.is_empty() && (precedence.runs)(*source, *source, vrf);
                let is_first = |(_, author): &(&str, &ObjectRef)| {
                    let ranks = &precedence.ranks;
                    !runs && ranks.get(author) < ranks.get(&object.source)
                };
                if let Some((other, author)) = of_others.iter().find(|other| is_first(other)) {
                    report(&object.source, vrf, other, author);
                    continue;
                }
                for (other, author) in of_others {
                    report(author, other, vrf, &object.source);
                }
                let (holder, other) = *holders.entry(*source).or_insert((vrf, &object.source));
                if holder != vrf {
                    report(&object.source, vrf, holder, other);
                    continue;
                }
                self.rule(*source, None, vrf, [&object.source].into());
                let reason = Reason {
                    vrf: vrf.to_owned(),
                    overlap: None,
                };
                self.why.insert(object.source.clone(), reason);
            }
        }
        holders.into_keys().collect()
    }

    /// Attachments whose network another segment has too, each in a VRF of its own: by the source, nothing tells the packets of the one from
    /// those of the other. The one that runs keeps it, then the older; gives back the others, by source.
    fn one_network_of_two<'a>(
        &mut self,
        group: &Group<'a>,
        consumers: &Consumers<'a>,
        is_steered: &dyn Fn(&'a str, &Prefix) -> bool,
        precedence: &Precedence<'_, 'a>,
    ) -> BTreeSet<(Prefix, Option<&'a ObjectRef>)> {
        let over_the_fabric = group
            .layer2
            .iter()
            .filter(|(_, object)| object.is_generated() && object.spec.interface_ref.is_none());
        let segments: BTreeMap<&ObjectRef, Option<Vni>> = over_the_fabric
            .map(|(_, object)| (&object.source, object.spec.vni))
            .collect();
        let mut by_source: BTreeMap<Prefix, Vec<Owner<'_, 'a>>> = BTreeMap::new();
        for ((vrf, author), consumer) in consumers {
            let Some((author, segment)) = author.and_then(|one| segments.get_key_value(one)) else {
                continue;
            };
            for source in consumer.sources.iter().filter(|one| is_steered(vrf, one)) {
                by_source.entry(*source).or_default().push(Owner {
                    vrf,
                    author,
                    segment: *segment,
                    imports: &consumer.imports,
                });
            }
        }
        let mut refused = BTreeSet::new();
        for (source, owners) in by_source.into_iter().filter(|(_, owners)| owners.len() > 1) {
            let order = |owner: &&Owner<'_, 'a>| {
                let mut imports = owner.imports.iter();
                let runs = imports.any(|prefix| (precedence.runs)(source, *prefix, owner.vrf));
                (!runs, precedence.ranks.get(owner.author))
            };
            let Some(first) = owners.iter().min_by_key(order) else {
                continue;
            };
            let others = owners
                .iter()
                .filter(|owner| owner.segment != first.segment && owner.vrf != first.vrf);
            for owner in others {
                let traffic = format!("from {source}");
                let kind = ambiguous(traffic, owner.vrf, first.vrf, first.author);
                let problem = Problem::new(owner.author.clone(), "spec.networkRef", kind);
                self.problems.push(problem);
                refused.insert((source, Some(owner.author)));
            }
        }
        refused
    }

    /// Steers one source: to its VRF, or, where it reaches several, to each by what lies behind it.
    fn source<'a>(
        &mut self,
        source: Prefix,
        reached: &Reached<'a>,
        overlaps: &BTreeMap<(&'a str, bool), Overlap<(&'a str, bool)>>,
        precedence: &Precedence<'_, 'a>,
    ) {
        let is_alone = reached.len() == 1;
        let overlap = |vrf: &'a str| overlaps.get(&(vrf, source.is_ipv4()));
        let mut contenders: BTreeMap<Prefix, Vec<Contender<'_, 'a>>> = BTreeMap::new();
        for (vrf, prefixes) in reached {
            let Some(overlap) = overlap(vrf) else {
                continue;
            };
            for by in prefixes.values().flatten() {
                self.why.entry((*by).clone()).or_insert_with(|| Reason {
                    vrf: (*vrf).to_owned(),
                    overlap: Some(Overlap {
                        prefix: overlap.prefix,
                        other: overlap.other.0.to_owned(),
                        other_prefix: overlap.other_prefix,
                    }),
                });
            }
            if is_alone {
                let by = prefixes.values().flatten().copied().collect();
                self.rule(source, None, vrf, by);
                continue;
            }
            for (prefix, by) in prefixes {
                contenders.entry(*prefix).or_default().push((vrf, by));
            }
        }
        for (prefix, contenders) in contenders {
            self.contended(source, prefix, &contenders, precedence);
        }
    }

    /// Steers what one source sends to one prefix to one VRF: the one that it goes through now, else that of the oldest object.
    fn contended<'a>(
        &mut self,
        source: Prefix,
        prefix: Prefix,
        contenders: &[Contender<'_, 'a>],
        precedence: &Precedence<'_, 'a>,
    ) {
        let oldest = |by: &BTreeSet<&'a ObjectRef>| {
            let ranked = by.iter().copied();
            ranked.min_by_key(|one| precedence.ranks.get(one))
        };
        let order = |(vrf, by): &&Contender<'_, 'a>| {
            let runs = contenders.len() > 1 && (precedence.runs)(source, prefix, vrf);
            (!runs, oldest(by).and_then(|one| precedence.ranks.get(one)))
        };
        let Some((holder, by)) = contenders.iter().min_by_key(order) else {
            return;
        };
        self.rule(source, Some(prefix), holder, (*by).clone());
        let Some(other) = oldest(by) else { return };
        for (vrf, by) in contenders.iter().filter(|(vrf, _)| vrf != holder) {
            let Some(first) = oldest(by) else { continue };
            let traffic = format!("from {source} to {prefix}");
            let kind = ambiguous(traffic, vrf, holder, other);
            let field = if crate::lower::is_low_level(first.kind) {
                "spec.import"
            } else {
                "spec.destinations"
            };
            self.problems.push(Problem::new(first.clone(), field, kind));
        }
    }

    fn rule(
        &mut self,
        source: Prefix,
        destination: Option<Prefix>,
        vrf: &str,
        by: BTreeSet<&ObjectRef>,
    ) {
        self.rules.push(Rule {
            source,
            destination,
            vrf: vrf.to_owned(),
            by: by.into_iter().cloned().collect(),
        });
    }

    /// The VRFs that get a local one beside them.
    pub(super) fn vrfs(&self) -> BTreeSet<&str> {
        self.rules.iter().map(|rule| rule.vrf.as_str()).collect()
    }

    /// The names of the local VRFs.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        let vrfs = self.vrfs().into_iter();
        vrfs.map(|vrf| names::local_vrf(vrf).to_string())
    }

    /// The local VRFs, by name: what the VRF knows and what the cluster has of its own.
    pub(super) fn local_vrfs(
        &self,
        cluster: &str,
        tables: &BTreeMap<String, u32>,
    ) -> BTreeMap<String, Arc<Vrf>> {
        let import = |from: &str| VrfImport {
            from_vrf: from.to_owned(),
            filter: Filter::default_to(ActionType::Accept),
        };
        let local = |vrf: &str| {
            let name = names::local_vrf(vrf);
            let table = tables.get(name.as_str())?;
            let local = Vrf {
                vrf_imports: vec![import(vrf), import(cluster)],
                redistribute: None::<Redistribute>,
                ..vrfs::plain_vrf(name.as_str(), *table, false)
            };
            Some((name.to_string(), Arc::new(local)))
        };
        self.vrfs().into_iter().filter_map(local).collect()
    }

    /// The rules, in the order in which they are asked.
    ///
    /// A source goes before those around it, and for one source the longer destination before the shorter. Rules of sources that do not
    /// lie inside each other may have the same priority, so that a rule keeps its own when others come and go.
    pub(super) fn policy_routes(
        &self,
        segments: &[(&str, &ObjectRef, &Layer2)],
        problems: &mut Vec<Problem>,
    ) -> Vec<PolicyRoute> {
        let depths = depths(self.rules.iter().map(|rule| rule.source));
        let mut routes = Vec::new();
        for rule in &self.rules {
            let depth = depths.get(&rule.source).copied().unwrap_or_default();
            if depth >= MAX_DEPTH {
                let kind = problem::Kind::SourcesTooDeep {
                    around: rule.source.to_string(),
                    most: MAX_DEPTH,
                };
                for by in &rule.by {
                    problems.push(Problem::new(by.clone(), "spec", kind.clone()));
                }
                continue;
            }
            let length = rule.destination.map_or(0, |net| net.net().prefix_len());
            let depth = u32::try_from(depth).unwrap_or(u32::MAX);
            let priority = FIRST_PRIORITY + depth * LENGTHS + LENGTHS - 1 - u32::from(length);
            let comes_in = |(_, source, segment): &&(&str, &ObjectRef, &Layer2)| {
                let around = segment.irb.as_ref().is_some_and(|irb| {
                    let mut nets = irb.ip_addresses.iter().map(|gateway| gateway.net());
                    nets.any(|net| net.contains(&rule.source.net()))
                });
                around || rule.by.contains(*source)
            };
            let interfaces = segments.iter().filter(comes_in);
            routes.push(PolicyRoute {
                traffic_match: TrafficMatch {
                    src_prefix: Some(rule.source.into()),
                    dst_prefix: rule.destination.map(Into::into),
                    ..TrafficMatch::default()
                },
                next_hop: NextHop {
                    address: None,
                    vrf: Some(names::local_vrf(&rule.vrf).to_string()),
                },
                priority,
                interfaces: interfaces
                    .map(|(_, _, segment)| segment.devices.bridge.clone())
                    .collect(),
            });
        }
        routes.sort_by_key(|route| {
            let TrafficMatch {
                src_prefix,
                dst_prefix,
                ..
            } = &route.traffic_match;
            (route.priority, *src_prefix, *dst_prefix)
        });
        routes
    }
}

/// Whether a config sends packets from a source to a prefix through a VRF: by a rule, or, where the source has no rule, because the VRF
/// announces the source and the cluster VRF takes the prefix from it.
pub(super) fn runs(
    config: &NodeNetworkConfigSpec,
    source: Prefix,
    prefix: Prefix,
    vrf: &str,
) -> bool {
    let Some(cluster) = &config.cluster_vrf else {
        return false;
    };
    let rules = cluster.policy_routes.iter();
    let mut rules = rules
        .filter(|rule| {
            let TrafficMatch {
                src_prefix,
                dst_prefix,
                ..
            } = &rule.traffic_match;
            *src_prefix == Some(source.into()) && dst_prefix.is_none_or(|dst| dst == prefix.into())
        })
        .peekable();
    if rules.peek().is_some() {
        let local = names::local_vrf(vrf).to_string();
        return rules.any(|rule| rule.next_hop.vrf.as_ref() == Some(&local));
    }
    let names = |filter: &Filter, wanted: Prefix| {
        let mut items = filter.items.iter();
        items.any(|item| {
            let prefix = item.matcher.prefix.as_ref();
            prefix.is_some_and(|own| own.prefix == wanted)
        })
    };
    let fabric = config.fabric_vrfs.get(vrf);
    let exports = fabric.and_then(|vrf| vrf.evpn_export_filter.as_ref());
    let mut imports = cluster.vrf_imports.iter();
    exports.is_some_and(|filter| names(filter, source))
        && imports.any(|import| import.from_vrf == vrf && names(&import.filter, prefix))
}

/// What each author says about each VRF.
pub fn consumers<'a>(
    routing: impl Iterator<Item = &'a LowLevel<VrfRouteConfigurationSpec>>,
) -> Consumers<'a> {
    let mut consumers: BTreeMap<_, Consumer<'a>> = BTreeMap::new();
    for object in routing {
        let author = object.is_generated().then_some(&object.source);
        let consumer = consumers
            .entry((object.spec.vrf.as_str(), author))
            .or_default();
        consumer.imports.extend(permitted(&object.spec.import));
        consumer.sources.extend(permitted(&object.spec.export));
        consumer.objects.insert(&object.source);
    }
    for consumer in consumers.values_mut() {
        // "Everything" tells no source from another.
        consumer
            .sources
            .retain(|source| source.net().prefix_len() > 0);
        // What lies behind the source itself is not reached through the VRF.
        consumer
            .imports
            .retain(|prefix| !consumer.sources.contains(prefix));
    }
    consumers
}

fn permitted(items: &[PrefixItem]) -> impl Iterator<Item = Prefix> {
    items
        .iter()
        .filter(|item| item.action == PrefixAction::Permit)
        .map(|item| item.cidr)
}

/// How many sources lie inside each other below each source.
fn depths(sources: impl Iterator<Item = Prefix>) -> BTreeMap<Prefix, usize> {
    let sources: BTreeSet<Prefix> = sources.collect();
    let mut depths: BTreeMap<Prefix, usize> = BTreeMap::new();
    let mut around: Vec<Prefix> = Vec::new();
    for source in sources {
        while around
            .last()
            .is_some_and(|outer| !outer.net().contains(&source.net()))
        {
            around.pop();
        }
        around.push(source);
        for (depth, outer) in around.iter().rev().enumerate() {
            let known = depths.entry(*outer).or_default();
            *known = depth.max(*known);
        }
    }
    depths
}
