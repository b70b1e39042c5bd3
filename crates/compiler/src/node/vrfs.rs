//! The VRFs of a group of nodes: all routing objects of one VRF, merged.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    selvedge::SettingsSpec,
    tcaas::{
        PrefixAction, PrefixItem, VrfRouteConfigurationSpec,
        node_network_config::{
            Action, ActionType, Filter, FilterItem, Matcher, ModifyRoute, PrefixMatcher,
            Redistribute, Vrf, VrfDevices, VrfImport,
        },
    },
    value::{Community, IfName, Mtu, Prefix, RouteTarget, Vni, VrfName},
};

use super::{
    Group,
    selection::{Facet, Facets, Selected},
    vrf_lines,
};
use crate::{
    last_good::InRevision,
    lower::{
        LowLevel, intent, merge,
        scope::{in_last_revision, running},
        vrf,
    },
    memo::{Index, Query},
    names,
    problem::{self, Problem},
    snapshot::{Key, Kind, ObjectRef, kinds},
    special::{self, Use},
    view::{View, reference},
};

type Routing = LowLevel<VrfRouteConfigurationSpec>;

/// VNI and route target of each VRF.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(super) vrfs: BTreeMap<String, (Vni, RouteTarget)>,
    /// Who has which VNI.
    pub(super) holders: BTreeMap<Vni, ObjectRef>,
}

impl Numbers {
    /// Whether the VRF can be made.
    pub(super) fn has(&self, vrf: &str) -> bool {
        self.vrfs.contains_key(vrf)
    }
}

/// What the objects of one VRF say about its numbers: the oldest that says anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    vni: Option<Vni>,
    target: Option<RouteTarget>,
    /// Who says anything about the VRF, the oldest first, each with its order.
    objects: Vec<(bool, Option<String>, String, ObjectRef)>,
    /// The objects with another value.
    problems: Vec<Problem>,
}

/// Objects that say something else about the numbers of a VRF than what another runs.
fn challengers(view: &View<'_>, objects: &[&Arc<Routing>]) -> BTreeSet<String> {
    let distinct = |of: fn(&VrfRouteConfigurationSpec) -> Option<String>| {
        let said: BTreeSet<_> = objects.iter().filter_map(|one| of(&one.spec)).collect();
        said.len() > 1
    };
    let vni = |spec: &VrfRouteConfigurationSpec| spec.vni.map(|vni| vni.to_string());
    let target = |spec: &VrfRouteConfigurationSpec| spec.route_target.map(|one| one.to_string());
    if !distinct(vni) && !distinct(target) {
        return BTreeSet::new();
    }
    let is_run = |object: &Routing| {
        let before = running::<kinds::VrfRouteConfiguration>(view, object);
        before.is_some_and(|before| {
            before.vrf == object.spec.vrf
                && before.vni == object.spec.vni
                && before.route_target == object.spec.route_target
        })
    };
    let (run, new): (Vec<&Arc<Routing>>, Vec<&Arc<Routing>>) =
        objects.iter().copied().partition(|one| is_run(one));
    if run.is_empty() {
        return BTreeSet::new();
    }
    new.iter().map(|one| one.name.clone()).collect()
}

/// What the objects of a VRF say about its numbers. Of two that do not agree, the one that runs wins, then the older; the other carries the
/// problem.
pub(crate) struct SaidOf;
impl Query for SaidOf {
    type Key = String;
    type Value = Arc<Said>;
    fn compute(view: &View<'_>, vrf: &String) -> Arc<Said> {
        let objects = view.who::<Facets>(&Facet::Vrf(vrf.clone()));
        let mut objects: Vec<&Arc<Routing>> = objects.iter().filter_map(Selected::vrf).collect();
        // The object whose number is in use takes precedence over others.
        let last = challengers(view, &objects);
        objects.sort_by(|a, b| {
            (last.contains(&a.name), a.order()).cmp(&(last.contains(&b.name), b.order()))
        });
        let mut said = Said {
            problems: vrf_lines::contradictions(view, &objects),
            ..Said::default()
        };
        let mut first_vni: Option<(Vni, &ObjectRef)> = None;
        let mut first_target: Option<(RouteTarget, &ObjectRef)> = None;
        for object in objects {
            let spec = &object.spec;
            let mut disagrees = |what, other: &ObjectRef| {
                let kind = problem::Kind::VrfDisagrees {
                    vrf: vrf.clone(),
                    what,
                    other: other.clone(),
                };
                let field = field(&object.source, &format!("spec.{what}"));
                let problem = Problem::new(object.source.clone(), field, kind);
                said.problems.push(problem);
            };
            if let Some(vni) = spec.vni {
                let (first, other) = *first_vni.get_or_insert((vni, &object.source));
                if first != vni {
                    disagrees("vni", other);
                }
            }
            if let Some(target) = spec.route_target {
                let (first, other) = *first_target.get_or_insert((target, &object.source));
                if first != target {
                    disagrees("routeTarget", other);
                }
            }
            let created = object.created.clone();
            let entry = (
                created.is_none(),
                created,
                object.name.clone(),
                object.source.clone(),
            );
            said.objects.push(entry);
        }
        said.vni = first_vni.map(|(vni, _)| vni);
        said.target = first_target.map(|(target, _)| target);
        Arc::new(said)
    }
}

/// The field of an object that says something about a VRF: its own, or the one by which an intent has the VRF.
pub(super) fn field(source: &ObjectRef, own: &str) -> String {
    let of_intent = source.kind.intent().map(intent::vrf_field);
    of_intent.unwrap_or(own).to_owned()
}

/// The numbers of all VRFs, and what is wrong with those that have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AllNumbers {
    pub(super) numbers: Numbers,
    pub(crate) problems: Vec<Problem>,
}

/// The numbers of all VRFs. A VNI is one VRF's: that of the one with the oldest object.
pub(crate) struct NumbersOfAll;
impl Query for NumbersOfAll {
    type Key = ();
    type Value = Arc<AllNumbers>;
    fn compute(view: &View<'_>, (): &()) -> Arc<AllNumbers> {
        let settings = view.settings();
        let names = names_of_vrfs(view);
        let said = names.iter().map(|name| {
            let said = view.get::<SaidOf>(name);
            (name, said)
        });
        let mut said: Vec<(&String, Arc<Said>)> = said.collect();
        let mut all = AllNumbers::default();
        let disagree = said.iter().flat_map(|(_, said)| &said.problems);
        all.problems.extend(disagree.cloned());
        said.sort_by(|(_, a), (_, b)| a.objects.first().cmp(&b.objects.first()));
        // A VNI that a VRF or a segment uses is given to no other object.
        let (run, new): (Vec<_>, Vec<_>) = said
            .into_iter()
            .partition(|(name, said)| !is_challenged(view, name, said.vni));
        for (name, said) in run.into_iter().chain(new) {
            let Some((.., first)) = said.objects.first() else {
                continue;
            };
            let taken = |vni: Vni| {
                let of_settings = names::settings_vnis(&settings).any(|own| own == vni);
                let of_settings = of_settings.then(|| ObjectRef::named(Kind::Settings, "default"));
                let holder = all.numbers.holders.get(&vni).cloned().or(of_settings);
                holder.or_else(|| segment_with(view, name, vni))
            };
            match complete(&settings, &names, name, &said, taken) {
                Ok((vni, target)) => {
                    all.numbers.holders.insert(vni, first.clone());
                    all.numbers.vrfs.insert(name.clone(), (vni, target));
                }
                Err(kind) => {
                    let objects = said.objects.iter();
                    let problem = |source: &ObjectRef| {
                        Problem::new(source.clone(), field(source, "spec.vrf"), kind.clone())
                    };
                    all.problems
                        .extend(objects.map(|(.., source)| problem(source)));
                }
            }
        }
        all.problems.extend(shared_targets(view, &all.numbers));
        Arc::new(all)
    }
}

/// That hand-written objects give a VRF the route target of another VRF.
fn shared_targets(view: &View<'_>, numbers: &Numbers) -> Vec<Problem> {
    let mut by_target: BTreeMap<RouteTarget, BTreeMap<String, ObjectRef>> = BTreeMap::new();
    for (key, vrf) in view.get::<vrf::Resolved>(&()).vrfs.iter() {
        let holders = by_target.entry(vrf.route_target).or_default();
        holders.insert(vrf.name.to_string(), reference(Kind::Vrf, key));
    }
    for (vrf, (_, target)) in &numbers.vrfs {
        let said = view.get::<SaidOf>(vrf);
        let holders = by_target.entry(*target).or_default();
        if let Some((.., first)) = said.objects.first() {
            let holder = holders.entry(vrf.clone());
            holder.or_insert_with(|| first.clone());
        }
    }
    let mut problems = Vec::new();
    for (target, holders) in by_target.iter().filter(|(_, holders)| holders.len() > 1) {
        for vrf in holders.keys().filter(|vrf| numbers.has(vrf)) {
            let mut others = holders.iter().filter(|(other, _)| *other != vrf);
            let Some((_, other)) = others.next() else {
                continue;
            };
            let said = view.get::<SaidOf>(vrf);
            let sources = said.objects.iter().map(|(.., source)| source);
            let written = sources.filter(|source| source.kind == Kind::VrfRouteConfiguration);
            problems.extend(written.map(|source| {
                let kind = problem::Kind::RouteTargetShared {
                    target: target.to_string(),
                    other: other.clone(),
                };
                Problem::new(source.clone(), "spec.routeTarget", kind)
            }));
        }
    }
    problems
}

/// Whether a VNI that is said for a VRF runs elsewhere, and not in this VRF.
fn is_challenged(view: &View<'_>, vrf: &str, vni: Option<Vni>) -> bool {
    let Some(vni) = vni else { return false };
    let users = view.who::<StoredByVni>(&vni);
    let is_own = |(_, of): &(ObjectRef, Option<VrfName>)| {
        of.as_ref().is_some_and(|name| name.as_str() == vrf)
    };
    !users.is_empty() && !users.iter().any(is_own)
}

/// Whose segment runs a VNI that this VRF does not run.
fn segment_with(view: &View<'_>, vrf: &str, vni: Vni) -> Option<ObjectRef> {
    if !is_challenged(view, vrf, Some(vni)) {
        return None;
    }
    let users = view.who::<StoredByVni>(&vni);
    let segments = users.iter().filter(|(_, vrf)| vrf.is_none());
    let mut wanted = segments.filter_map(|(one, _)| {
        let written = || merge::in_effect(view, one);
        merge::generated(view, one.kind, &one.key.name).or_else(written)
    });
    wanted.find_map(|one| {
        let segment = one.layer2()?;
        (segment.spec.vni == Some(vni)).then(|| segment.source.clone())
    })
}

/// Low-level objects by the VNI that they run, each with its VRF; nothing for a segment.
pub(crate) struct StoredByVni;
impl Index for StoredByVni {
    type Source = ObjectRef;
    type Key = Vni;
    type Item = (ObjectRef, Option<VrfName>);
    fn sources(view: &View<'_>) -> Vec<ObjectRef> {
        let mut sources = view.all::<kinds::VrfRouteConfiguration>();
        sources.extend(view.all::<kinds::Layer2NetworkConfiguration>());
        sources
    }
    fn entries(view: &View<'_>, subject: &ObjectRef) -> Vec<(Vni, Self::Item)> {
        let entry = if subject.kind == Kind::VrfRouteConfiguration {
            let spec = stored_or_last::<kinds::VrfRouteConfiguration>(view, &subject.key);
            spec.and_then(|spec| Some((spec.vni?, (subject.clone(), Some(spec.vrf.clone())))))
        } else {
            let spec = stored_or_last::<kinds::Layer2NetworkConfiguration>(view, &subject.key);
            spec.and_then(|spec| Some((spec.vni?, (subject.clone(), None))))
        };
        entry.into_iter().collect()
    }
}

/// A low-level object as it runs: a generated one as it is stored, one that a person wrote as the last revision has it.
fn stored_or_last<R: InRevision>(view: &View<'_>, key: &Key) -> Option<Arc<R::Spec>> {
    let is_written = view.meta::<R>(key)?.owner.is_none();
    if is_written {
        return in_last_revision::<R>(view, &key.name).map(Arc::new);
    }
    view.spec::<R>(key)
}

/// The names of all VRFs that objects are for.
pub(super) fn names_of_vrfs(view: &View<'_>) -> BTreeSet<String> {
    let first = Facet::Vrf(String::new());
    let facets = view.keys_in::<Facets>(&first, &Facet::Everywhere);
    let names = facets.iter().filter_map(|facet| match facet {
        Facet::Vrf(name) => Some(name.clone()),
        Facet::Label(..)
        | Facet::Everywhere
        | Facet::Loopbacks
        | Facet::MirrorTargets
        | Facet::MirrorSelectors
        | Facet::Requirement(_)
        | Facet::End => None,
    });
    names.collect()
}

fn complete(
    settings: &SettingsSpec,
    names: &BTreeSet<String>,
    name: &str,
    said: &Said,
    taken: impl Fn(Vni) -> Option<ObjectRef>,
) -> Result<(Vni, RouteTarget), problem::Kind> {
    let Ok(vrf) = name.parse::<VrfName>() else {
        unreachable!("it was the name of a VRF")
    };
    if let Some(by) = names::reserved_vrf(settings, vrf.as_str()) {
        let name = name.to_owned();
        return Err(problem::Kind::VrfNameTaken { name, by });
    }
    if let Some(of) = name.strip_prefix("s-")
        && names.contains(of)
    {
        let name = name.to_owned();
        let by = "it is the name of the local VRF for source-based routing of another VRF";
        return Err(problem::Kind::VrfNameTaken { name, by });
    }
    let default = settings.vrfs.get(&vrf);
    let lacks = |what| problem::Kind::VrfIncomplete {
        vrf: name.to_owned(),
        what,
    };
    let vni = said.vni.or_else(|| default?.vni);
    let vni = vni.ok_or_else(|| lacks("vni"))?;
    let target = said.target.or_else(|| default?.route_target);
    let target = target.ok_or_else(|| lacks("routeTarget"))?;
    match taken(vni) {
        Some(by) => Err(problem::Kind::VniTaken {
            vni,
            by,
            node: None,
        }),
        None => Ok((vni, target)),
    }
}

/// The cluster VRF and the fabric VRFs of a group.
pub(super) fn build(
    settings: &SettingsSpec,
    group: &Group<'_>,
    numbers: &Numbers,
    tables: &BTreeMap<String, u32>,
) -> (Vrf, BTreeMap<String, Vrf>) {
    let cluster = settings.cluster_vrf.name.as_str();
    let mut fabric: BTreeMap<String, Vrf> = BTreeMap::new();
    let mut cluster_imports: BTreeMap<&str, Filter> = BTreeMap::new();
    let mut objects: BTreeMap<&str, Vec<&VrfRouteConfigurationSpec>> = BTreeMap::new();
    let mut of_services: BTreeSet<Prefix> = BTreeSet::new();
    for (_, object) in &group.vrf {
        let of_vrf = objects.entry(object.spec.vrf.as_str()).or_default();
        of_vrf.push(&object.spec);
        if object.is_of_intent() && numbers.has(object.spec.vrf.as_str()) {
            of_services.extend(&object.spec.aggregate);
        }
    }
    for (name, objects) in objects {
        let (Some(numbers), Some(table)) = (numbers.vrfs.get(name), tables.get(name)) else {
            continue;
        };
        let mut vrf = fabric_vrf(name, numbers.0, numbers.1, *table, cluster);
        let mut import = Filter::default_to(ActionType::Reject);
        for spec in &objects {
            merge(spec, &of_services, &mut vrf, &mut import);
        }
        let exports = exports(&objects);
        let leaks = vrf.vrf_imports.iter_mut().map(|import| &mut import.filter);
        for filter in vrf.evpn_export_filter.iter_mut().chain(leaks) {
            filter.items.clone_from(&exports);
        }
        fabric.insert(name.to_owned(), vrf);
        cluster_imports.insert(name, import);
    }
    let imports = cluster_imports
        .into_iter()
        .filter(|(_, filter)| !filter.items.is_empty())
        .map(|(from, filter)| VrfImport {
            from_vrf: from.to_owned(),
            filter,
        })
        .collect();
    // Routes to the addresses of services are in the cluster VRF, where no other node's are: a node announces the network of a service only
    // while it has one itself.
    let cluster_vrf = Vrf {
        aggregates: of_services.into_iter().collect(),
        ..cluster_vrf(settings, imports, tables)
    };
    (cluster_vrf, fabric)
}

/// Adds the aggregates and imports of one object to its VRF; the same rule from two objects counts once.
fn merge(
    spec: &VrfRouteConfigurationSpec,
    of_services: &BTreeSet<Prefix>,
    vrf: &mut Vrf,
    cluster_import: &mut Filter,
) {
    for prefix in &spec.aggregate {
        if !of_services.contains(prefix) && !vrf.aggregates.contains(prefix) {
            vrf.aggregates.push(*prefix);
        }
    }
    for item in in_order(&spec.import) {
        push_once(cluster_import, filter_item(item, None));
    }
}

/// The rules for routes that leave the cluster, of all objects of one VRF in their merge order.
///
/// Objects with one `seq` have no order among them, and a name must not decide which communities a route gets. So their exports are
/// merged. An object with a deny item keeps its own order, on which its meaning depends, and comes after the others of its `seq`.
fn exports(objects: &[&VrfRouteConfigurationSpec]) -> Vec<FilterItem> {
    let mut exports = Filter::default_to(ActionType::Reject);
    for of_seq in objects.chunk_by(|a, b| a.seq == b.seq) {
        let (ordered, merged): (Vec<_>, Vec<_>) = of_seq.iter().partition(|spec| has_deny(spec));
        for item in merged_exports(&merged) {
            push_once(&mut exports, item);
        }
        for spec in ordered {
            let communities: BTreeSet<Community> = communities(spec).collect();
            for item in in_order(&spec.export) {
                push_once(&mut exports, filter_item(item, tags(item, &communities)));
            }
        }
    }
    exports.items
}

fn has_deny(spec: &VrfRouteConfigurationSpec) -> bool {
    let mut items = spec.export.iter();
    items.any(|item| item.action == PrefixAction::Deny)
}

fn communities(spec: &VrfRouteConfigurationSpec) -> impl Iterator<Item = Community> {
    spec.communities.iter().chain(&spec.community).copied()
}

/// The exports of several objects that only permit: longest prefix first, so that a route gets the communities of the most specific
/// item. Equal prefixes carry the communities of all objects. Of two items for one prefix the one for fewer lengths comes first, and
/// carries the communities of the other as well, which permits the same routes.
fn merged_exports(objects: &[&VrfRouteConfigurationSpec]) -> Vec<FilterItem> {
    let mut tagged: BTreeMap<(Prefix, Option<u8>, Option<u8>), BTreeSet<Community>> =
        BTreeMap::new();
    for spec in objects {
        for item in &spec.export {
            let tags = tagged.entry((item.cidr, item.ge, item.le)).or_default();
            tags.extend(communities(spec));
        }
    }
    let permit = |(cidr, ge, le)| PrefixItem {
        cidr,
        seq: None,
        ge,
        le,
        action: PrefixAction::Permit,
    };
    let tagged = tagged.into_iter();
    let tagged: Vec<(PrefixItem, BTreeSet<Community>)> = tagged
        .map(|(key, communities)| (permit(key), communities))
        .collect();
    let mut items = Vec::new();
    for of_prefix in tagged.chunk_by(|(a, _), (b, _)| a.cidr == b.cidr) {
        for (item, _) in of_prefix {
            let own = item.lengths();
            let around = of_prefix.iter().filter(|(other, _)| {
                let other = other.lengths();
                other.start() <= own.start() && own.end() <= other.end()
            });
            let communities = around.flat_map(|(_, communities)| communities);
            let communities: BTreeSet<Community> = communities.copied().collect();
            items.push((item, communities));
        }
    }
    // Prefixes of one length exclude one another: items with the same communities stand together, which makes them one entry of a
    // route map. One object alone is sorted as well: its items keep their places when another object comes.
    items.sort_by(|(a, a_tags), (b, b_tags)| {
        let key = |item: &PrefixItem| {
            let lengths = item.lengths();
            let most = lengths.end().saturating_sub(*lengths.start());
            (Reverse(item.cidr.net().prefix_len()), most)
        };
        (key(a), a_tags, a.cidr).cmp(&(key(b), b_tags, b.cidr))
    });
    let items = items.into_iter();
    items
        .map(|(item, communities)| filter_item(item, tags(item, &communities)))
        .collect()
}

/// What an exported route gets: communities, unless it is denied.
fn tags(item: &PrefixItem, communities: &BTreeSet<Community>) -> Option<ModifyRoute> {
    let tags = item.action == PrefixAction::Permit && !communities.is_empty();
    tags.then(|| ModifyRoute {
        add_communities: communities.iter().copied().collect(),
        additive_communities: Some(true),
        ..ModifyRoute::default()
    })
}

/// Items by their `seq`; one without takes its place in the list.
pub(super) fn in_order(items: &[PrefixItem]) -> Vec<&PrefixItem> {
    let mut sorted: Vec<(u64, &PrefixItem)> = (0..).zip(items).collect();
    sorted
        .sort_by_key(|(index, item)| (item.seq.map_or(*index, |seq| u64::from(seq.get())), *index));
    sorted.into_iter().map(|(_, item)| item).collect()
}

pub(super) fn filter_item(item: &PrefixItem, modify_route: Option<ModifyRoute>) -> FilterItem {
    let kind = match item.action {
        PrefixAction::Permit => ActionType::Accept,
        PrefixAction::Deny => ActionType::Reject,
    };
    let prefix = PrefixMatcher {
        prefix: item.cidr,
        ge: item.ge,
        le: item.le,
    };
    FilterItem {
        matcher: Matcher {
            prefix: Some(prefix),
            bgp_community: None,
        },
        action: Action { kind, modify_route },
    }
}

fn push_once(filter: &mut Filter, item: FilterItem) {
    if !filter.items.contains(&item) {
        filter.items.push(item);
    }
}

fn fabric_vrf(name: &str, vni: Vni, target: RouteTarget, table: u32, cluster: &str) -> Vrf {
    let from_cluster = VrfImport {
        from_vrf: cluster.to_owned(),
        filter: Filter::default_to(ActionType::Reject),
    };
    Vrf {
        vni: Some(vni),
        evpn_import_route_targets: vec![target.into()],
        evpn_export_route_targets: vec![target],
        evpn_export_filter: Some(Filter::default_to(ActionType::Reject)),
        vrf_imports: vec![from_cluster],
        ..plain_vrf(name, table, true)
    }
}

fn cluster_vrf(
    settings: &SettingsSpec,
    vrf_imports: Vec<VrfImport>,
    tables: &BTreeMap<String, u32>,
) -> Vrf {
    let cluster = &settings.cluster_vrf;
    let name = cluster.name.as_str();
    let table = tables
        .get(name)
        .copied()
        .unwrap_or(settings.route_tables.first);
    Vrf {
        vni: cluster.vni,
        evpn_import_route_targets: cluster.route_target.map(Into::into).into_iter().collect(),
        evpn_export_route_targets: cluster.route_target.into_iter().collect(),
        evpn_export_filter: cluster.vni.map(|_| cluster_export(settings)),
        vrf_imports,
        ..plain_vrf(name, table, cluster.vni.is_some())
    }
}

/// What of the cluster VRF goes into the fabric, also by way of the management VRF: the prefixes that the settings name, and nothing else.
pub(super) fn cluster_export(settings: &SettingsSpec) -> Filter {
    let mut filter = Filter::default_to(ActionType::Reject);
    // The settings say what is wrong with the others.
    let fit = |prefix: &&Prefix| special::unfit(prefix.net(), Use::Routed).is_none();
    for prefix in settings.export_cidrs.iter().filter(fit) {
        let longest = prefix.net().max_prefix_len();
        let le = (prefix.net().prefix_len() < longest).then_some(longest);
        let matcher = PrefixMatcher {
            prefix: *prefix,
            ge: None,
            le,
        };
        filter.items.push(FilterItem {
            matcher: Matcher {
                prefix: Some(matcher),
                bgp_community: None,
            },
            action: Action::new(ActionType::Accept),
        });
    }
    filter
}

pub(super) fn plain_vrf(name: &str, table: u32, has_vni: bool) -> Vrf {
    let everything = || Some(Filter::default_to(ActionType::Accept));
    Vrf {
        source: None,
        vni: None,
        asn: None,
        host_session: None,
        aggregates: Vec::new(),
        from_other_vtep: false,
        evpn_import_route_targets: Vec::new(),
        evpn_export_route_targets: Vec::new(),
        evpn_export_filter: None,
        loopbacks: BTreeMap::new(),
        bgp_peers: Vec::new(),
        vrf_imports: Vec::new(),
        static_routes: Vec::new(),
        policy_routes: Vec::new(),
        mirror_acls: Vec::new(),
        redistribute: Some(Redistribute {
            connected: everything(),
            statics: everything(),
        }),
        gres: BTreeMap::new(),
        table,
        devices: VrfDevices {
            vrf: device(name),
            bridge: has_vni.then(|| names::vrf_bridge(name)),
            vxlan: has_vni.then(|| names::vrf_vxlan(name)),
        },
        mtu: Mtu::MAX,
        vxlan_port: 4789,
    }
}

fn device(name: &str) -> IfName {
    name.parse()
        .unwrap_or_else(|_| unreachable!("a VRF name is a device name"))
}
