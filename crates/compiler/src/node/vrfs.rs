//! The VRFs of a group of nodes: all routing objects of one VRF, merged.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    tcaas::{
        PrefixAction, PrefixItem, VrfRouteConfigurationSpec,
        node_network_config::{
            Action, ActionType, Filter, FilterItem, Matcher, ModifyRoute, PrefixMatcher,
            Redistribute, StaticRoute, Vrf, VrfDevices, VrfImport,
        },
    },
    value::{IfName, Mtu, RouteTarget, Vni},
};

use super::Group;
use crate::{
    lower::LowLevel,
    names,
    problem::{self, Problem},
    revision::Content,
    snapshot::{ObjectRef, age},
};

type Routing = LowLevel<VrfRouteConfigurationSpec>;

/// VNI and route target of each VRF.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) vrfs: BTreeMap<String, (Vni, RouteTarget)>,
    /// Who has which VNI.
    pub(super) holders: BTreeMap<Vni, ObjectRef>,
    /// Why a VRF has none.
    pub(super) problems: Vec<Problem>,
}

impl Numbers {
    /// Several objects of one VRF must agree; of two that do not, the older wins and the other carries the problem.
    pub(super) fn resolve(content: &Content) -> Self {
        let mut objects: Vec<_> = content.vrf.iter().collect();
        objects.sort_by_key(|(name, object)| (age(&object.meta), *name));
        let objects: Vec<&Routing> = objects.into_iter().map(|(_, object)| &**object).collect();
        let mut numbers = Self::default();
        let said = Said::gather(&objects, &mut numbers.problems);
        for object in objects {
            if let Err(kind) = numbers.add(content, &said, object) {
                let problem = Problem::new(object.source.clone(), "spec.vrf", kind);
                numbers.problems.push(problem);
            }
        }
        numbers
    }

    /// Whether the VRF can be made.
    pub(super) fn has(&self, vrf: &str) -> bool {
        self.vrfs.contains_key(vrf)
    }

    fn add(
        &mut self,
        content: &Content,
        said: &Said<'_>,
        object: &Routing,
    ) -> Result<(), problem::Kind> {
        let name = &object.spec.vrf;
        if let Some(by) = names::reserved_vrf(&content.settings, name) {
            let name = name.to_string();
            return Err(problem::Kind::VrfNameTaken { name, by });
        }
        if let Some(of) = name.as_str().strip_prefix("s-")
            && said.names.contains(of)
        {
            let name = name.to_string();
            let by = "it is that of the local VRF which routes another VRF's traffic by source";
            return Err(problem::Kind::VrfNameTaken { name, by });
        }
        let default = content.settings.vrfs.get(name);
        let lacks = |what| problem::Kind::VrfIncomplete {
            vrf: name.to_string(),
            what,
        };
        let vni = said.vnis.get(name.as_str()).map(|(vni, _)| *vni);
        let vni = vni.or_else(|| default?.vni).ok_or_else(|| lacks("vni"))?;
        let target = said.targets.get(name.as_str()).map(|(target, _)| *target);
        let target = target.or_else(|| default?.route_target);
        let target = target.ok_or_else(|| lacks("routeTarget"))?;
        if !self.vrfs.contains_key(name.as_str()) {
            if let Some(by) = self.holders.get(&vni).cloned() {
                return Err(problem::Kind::VniTaken {
                    vni,
                    by,
                    node: None,
                });
            }
            self.holders.insert(vni, object.source.clone());
            self.vrfs.insert(name.to_string(), (vni, target));
        }
        Ok(())
    }
}

/// What objects say about the numbers of each VRF: the oldest that says anything, and who that is.
#[derive(Default)]
struct Said<'a> {
    names: BTreeSet<&'a str>,
    vnis: BTreeMap<&'a str, (Vni, &'a ObjectRef)>,
    targets: BTreeMap<&'a str, (RouteTarget, &'a ObjectRef)>,
}

impl<'a> Said<'a> {
    fn gather(objects: &[&'a Routing], problems: &mut Vec<Problem>) -> Self {
        let mut said = Self::default();
        for object in objects {
            let spec = &object.spec;
            let vrf = spec.vrf.as_str();
            said.names.insert(vrf);
            let mut disagrees = |what, other: &ObjectRef| {
                let kind = problem::Kind::VrfDisagrees {
                    vrf: vrf.to_owned(),
                    what,
                    other: other.clone(),
                };
                let field = format!("spec.{what}");
                problems.push(Problem::new(object.source.clone(), field, kind));
            };
            if let Some(vni) = spec.vni {
                let (first, other) = said.vnis.entry(vrf).or_insert((vni, &object.source));
                if *first != vni {
                    disagrees("vni", other);
                }
            }
            if let Some(target) = spec.route_target {
                let entry = said.targets.entry(vrf);
                let (first, other) = entry.or_insert((target, &object.source));
                if *first != target {
                    disagrees("routeTarget", other);
                }
            }
        }
        said
    }
}

/// The cluster VRF and the fabric VRFs of a group.
pub(super) fn build(
    content: &Content,
    group: &Group<'_>,
    numbers: &Numbers,
    tables: &BTreeMap<String, u32>,
) -> (Vrf, BTreeMap<String, Vrf>) {
    let cluster = content.settings.cluster_vrf.name.as_str();
    let mut fabric: BTreeMap<String, Vrf> = BTreeMap::new();
    let mut cluster_imports: BTreeMap<&str, Filter> = BTreeMap::new();
    for (_, object) in &group.vrf {
        let name = object.spec.vrf.as_str();
        let (Some(numbers), Some(table)) = (numbers.vrfs.get(name), tables.get(name)) else {
            continue;
        };
        let vrf = fabric
            .entry(name.to_owned())
            .or_insert_with(|| fabric_vrf(name, *numbers, *table, cluster));
        let import = cluster_imports
            .entry(name)
            .or_insert_with(|| Filter::default_to(ActionType::Reject));
        merge(&object.spec, vrf, import);
    }
    let imports = cluster_imports
        .into_iter()
        .filter(|(_, filter)| !filter.items.is_empty())
        .map(|(from, filter)| VrfImport {
            from_vrf: from.to_owned(),
            filter,
        })
        .collect();
    (cluster_vrf(content, imports, tables), fabric)
}

/// Adds what one object says to its VRF; the same rule from two objects counts once.
fn merge(spec: &VrfRouteConfigurationSpec, vrf: &mut Vrf, cluster_import: &mut Filter) {
    for prefix in &spec.aggregate {
        let route = StaticRoute {
            prefix: *prefix,
            next_hop: None,
            bfd_profile: None,
        };
        if !vrf.static_routes.contains(&route) {
            vrf.static_routes.push(route);
        }
    }
    let communities: Vec<_> = spec
        .communities
        .iter()
        .chain(&spec.community)
        .copied()
        .collect();
    for item in in_order(&spec.export) {
        let tags = item.action == PrefixAction::Permit && !communities.is_empty();
        let modify = tags.then(|| ModifyRoute {
            add_communities: communities.clone(),
            additive_communities: Some(true),
            ..ModifyRoute::default()
        });
        let item = filter_item(item, modify);
        let leaks = vrf.vrf_imports.iter_mut().map(|import| &mut import.filter);
        for filter in vrf.evpn_export_filter.iter_mut().chain(leaks) {
            push_once(filter, item.clone());
        }
    }
    for item in in_order(&spec.import) {
        push_once(cluster_import, filter_item(item, None));
    }
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

fn fabric_vrf(name: &str, (vni, target): (Vni, RouteTarget), table: u32, cluster: &str) -> Vrf {
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
    content: &Content,
    vrf_imports: Vec<VrfImport>,
    tables: &BTreeMap<String, u32>,
) -> Vrf {
    let settings = &content.settings.cluster_vrf;
    let name = settings.name.as_str();
    let table = tables
        .get(name)
        .copied()
        .unwrap_or(content.settings.route_tables.first);
    Vrf {
        vni: settings.vni,
        evpn_import_route_targets: settings.route_target.map(Into::into).into_iter().collect(),
        evpn_export_route_targets: settings.route_target.into_iter().collect(),
        evpn_export_filter: settings.vni.map(|_| cluster_export(content)),
        vrf_imports,
        ..plain_vrf(name, table, settings.vni.is_some())
    }
}

/// What of the cluster VRF goes into the fabric: the prefixes that the settings name, and nothing else.
fn cluster_export(content: &Content) -> Filter {
    let mut filter = Filter::default_to(ActionType::Reject);
    for prefix in &content.settings.export_cidrs {
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
        vni: None,
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
