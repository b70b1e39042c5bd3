//! What nodes have, and of what it was made, so that only that is made again which a change touches.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
};

use api::{
    meta::{LabelSelector, Labels},
    tcaas::{BgpPeeringSpec, Layer2NetworkConfigurationSpec, VrfRouteConfigurationSpec},
    value::Vni,
};

use super::{Group, Shared, group::selectors, underlay::Places, vrfs::Numbers};
use crate::{
    changes::Changes,
    lower::{Differences, LowLevel, Pair, Touched},
    names,
    problem::Problem,
    revision::Content,
    select::{self, selects},
    snapshot::{Kind, Snapshot, age},
};

/// What is to be known of a build the next time.
#[derive(Clone, Debug, Default)]
pub struct Memo {
    /// The route tables that nodes were told of, by the VRF's device.
    pub(super) told: BTreeMap<String, u32>,
    pub(super) places: Places,
    pub(super) numbers: Numbers,
    /// Peerings that something is wrong with.
    pub(super) broken: BTreeSet<String>,
    /// The labels that selectors ask for.
    asked: BTreeSet<String>,
    /// Nodes with the same labels, as far as somebody asks for them.
    pub(super) members: BTreeMap<Labels, Arc<Vec<String>>>,
    /// What each of these groups has.
    pub(super) groups: BTreeMap<Labels, Known>,
}

/// What a group of nodes has.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) premises: Premises,
    /// The VRFs whose traffic is routed by its source.
    pub(super) steered: BTreeSet<String>,
    /// The tables of its VRFs, as far as they got one.
    pub(super) tables: BTreeMap<String, Option<u32>>,
    pub(super) shared: Arc<Shared>,
    /// What those of its nodes have that take part in no overlay.
    pub(super) bare: Arc<Shared>,
    pub(super) problems: Vec<Problem>,
}

/// Who is in a group, and which objects are for it.
#[derive(Clone, Debug)]
pub(super) struct Premises {
    pub(super) nodes: Arc<Vec<String>>,
    pub(super) has_overlay: bool,
    pub(super) layer2: Vec<Arc<LowLevel<Layer2NetworkConfigurationSpec>>>,
    pub(super) vrf: Vec<Arc<LowLevel<VrfRouteConfigurationSpec>>>,
    pub(super) bgp: Vec<Arc<LowLevel<BgpPeeringSpec>>>,
}

/// Where a build must look.
pub(super) enum Scope<'a> {
    /// At every group; numbers were these before, where they were others.
    Everywhere(Option<Numbers>),
    /// At groups that something different is for.
    Where(&'a Differences),
}

impl Memo {
    /// Brings up to date what all groups share: places in the fabric, numbers, and who is in which group.
    pub(super) fn update<'a>(
        &mut self,
        content: &Content,
        snapshot: &Snapshot,
        (changes, touched): (Changes<'_>, &'a Touched),
    ) -> Scope<'a> {
        if changes.touch(Kind::NodeNetworkConfig) {
            self.told = told(snapshot);
        }
        let mut everywhere = changes.touch(Kind::Node);
        if changes.touch_any(&[Kind::Node, Kind::Underlay, Kind::NodeNetworkConfig]) {
            let places = Places::assign(content, snapshot);
            everywhere |= places.underlays != self.places.underlays;
            self.places = places;
        }
        let differences = match touched {
            Touched::All => None,
            Touched::These(differences) => Some(differences),
        };
        let mut then = None;
        if !differences.is_some_and(keep_numbers) {
            let now = Numbers::resolve(content);
            then = Some(mem::replace(&mut self.numbers, now)).filter(|then| *then != self.numbers);
            everywhere |= then.is_some();
        }
        if !differences.is_some_and(keep_selectors)
            || changes.touch_any(&[Kind::Node, Kind::Underlay])
        {
            let asked = select::asked(selectors(content));
            if changes.touch(Kind::Node) || asked != self.asked {
                everywhere = true;
                self.regroup(snapshot, &asked);
                self.asked = asked;
            }
        }
        match differences.filter(|_| !everywhere) {
            Some(differences) => Scope::Where(differences),
            None => Scope::Everywhere(then),
        }
    }

    /// Puts nodes into groups. A group of the same nodes stays the same value.
    fn regroup(&mut self, snapshot: &Snapshot, asked: &BTreeSet<String>) {
        let nodes = snapshot.nodes.iter();
        let nodes = nodes.map(|(key, node)| (key.name.as_str(), &node.meta.labels));
        let groups = select::groups(nodes, asked).into_iter();
        let members = groups.map(|(labels, nodes)| {
            let known = self.members.get(&labels).filter(|known| ***known == nodes);
            let nodes = || Arc::new(nodes.iter().map(|node| (*node).to_owned()).collect());
            let members = known.cloned().unwrap_or_else(nodes);
            (labels, members)
        });
        let members = members.collect();
        self.members = members;
        let members = &self.members;
        self.groups.retain(|labels, _| members.contains_key(labels));
    }
}

impl Scope<'_> {
    /// At every group, whatever else.
    pub(super) fn everywhere(self) -> Self {
        match self {
            Self::Where(_) => Self::Everywhere(None),
            everywhere @ Self::Everywhere(_) => everywhere,
        }
    }

    /// Whether a group with these labels, of which this is known, has the same again as far as nothing but labels is looked at.
    pub(super) fn passes_by(&self, labels: &Labels) -> bool {
        match self {
            Self::Everywhere(_) => false,
            Self::Where(differences) => !concern(differences, labels),
        }
    }
}

impl Known {
    /// Whether a group has the same again but for its route tables.
    pub(super) fn fits(&self, group: &Group<'_>, scope: &Scope<'_>, now: &Numbers) -> bool {
        let vrfs = group.vrf.iter().map(|(_, object)| object.spec.vrf.as_str());
        let vnis = group
            .layer2
            .iter()
            .filter_map(|(_, object)| object.spec.vni);
        let has_numbers = match scope {
            Scope::Where(_) | Scope::Everywhere(None) => true,
            Scope::Everywhere(Some(then)) => {
                let has_numbers = |vrf: &str| then.vrfs.get(vrf) == now.vrfs.get(vrf);
                let has_holder = |vni: Vni| then.holders.get(&vni) == now.holders.get(&vni);
                vrfs.into_iter().all(has_numbers) && vnis.into_iter().all(has_holder)
            }
        };
        has_numbers && self.premises.are_those_of(group)
    }

    /// Whether the VRFs have the route tables that they had.
    pub(super) fn has_tables(&self, tables: &BTreeMap<String, u32>) -> bool {
        let mut vrfs = self.tables.iter();
        vrfs.all(|(vrf, table)| tables.get(vrf) == table.as_ref())
    }
}

impl Premises {
    fn are_those_of(&self, group: &Group<'_>) -> bool {
        fn same<S>(known: &[Arc<LowLevel<S>>], now: &[(&str, &Arc<LowLevel<S>>)]) -> bool {
            let mut pairs = known.iter().zip(now);
            known.len() == now.len() && pairs.all(|(known, (_, now))| Arc::ptr_eq(known, now))
        }
        self.nodes == *group.nodes
            && self.has_overlay == group.has_overlay
            && same(&self.layer2, &group.layer2)
            && same(&self.vrf, &group.vrf)
            && same(&self.bgp, &group.bgp)
    }
}

impl Group<'_> {
    /// The tables of the VRFs that a group can have.
    pub(super) fn tables(
        &self,
        cluster: &str,
        steered: &BTreeSet<&str>,
        tables: &BTreeMap<String, u32>,
    ) -> BTreeMap<String, Option<u32>> {
        let vrfs = self.vrf.iter().map(|(_, object)| object.spec.vrf.as_str());
        let vrfs = vrfs.chain([cluster]).map(str::to_owned);
        let local = steered.iter().map(|vrf| names::local_vrf(vrf).to_string());
        let of = |vrf: String| {
            let table = tables.get(&vrf).copied();
            (vrf, table)
        };
        vrfs.chain(local).map(of).collect()
    }

    pub(super) fn premises(&self) -> Premises {
        fn values<S>(objects: &[(&str, &Arc<LowLevel<S>>)]) -> Vec<Arc<LowLevel<S>>> {
            let objects = objects.iter();
            objects.map(|(_, object)| Arc::clone(object)).collect()
        }
        Premises {
            nodes: Arc::clone(self.nodes),
            has_overlay: self.has_overlay,
            layer2: values(&self.layer2),
            vrf: values(&self.vrf),
            bgp: values(&self.bgp),
        }
    }
}

fn told(snapshot: &Snapshot) -> BTreeMap<String, u32> {
    let mut tables = BTreeMap::new();
    for config in snapshot.node_network_configs.values() {
        for vrf in config.spec.vrfs() {
            let name = vrf.devices.vrf.as_str();
            if !tables.contains_key(name) {
                tables.insert(name.to_owned(), vrf.table);
            }
        }
    }
    tables
}

/// Whether what changed says the same of the numbers of VRFs.
fn keep_numbers(differences: &Differences) -> bool {
    differences.vrf.iter().all(|pair| {
        let (Some(then), Some(now)) = pair else {
            return false;
        };
        let said = |object: &LowLevel<VrfRouteConfigurationSpec>| {
            let spec = &object.spec;
            (spec.vrf.clone(), spec.vni, spec.route_target)
        };
        said(then) == said(now) && age(&then.meta) == age(&now.meta) && then.source == now.source
    })
}

type SelectorOf<S> = fn(&S) -> Option<&LabelSelector>;

/// Whether what changed is for the same nodes as before.
fn keep_selectors(differences: &Differences) -> bool {
    fn of<S>(pairs: &[Pair<S>], selector: SelectorOf<S>) -> bool {
        pairs.iter().all(|pair| match pair {
            (Some(then), Some(now)) => selector(&then.spec) == selector(&now.spec),
            _ => false,
        })
    }
    of(&differences.layer2, |spec| spec.node_selector.as_ref())
        && of(&differences.vrf, |spec| spec.node_selector.as_ref())
        && of(&differences.bgp, |spec| spec.node_selector.as_ref())
}

/// Whether something that changed is, or was, for nodes with these labels.
fn concern(differences: &Differences, labels: &Labels) -> bool {
    fn of<S>(pairs: &[Pair<S>], labels: &Labels, selector: SelectorOf<S>) -> bool {
        let objects = pairs.iter().flat_map(|(then, now)| then.iter().chain(now));
        let mut selectors = objects.map(|object| selector(&object.spec));
        selectors.any(|selector| selects(selector, labels))
    }
    of(&differences.layer2, labels, |spec| {
        spec.node_selector.as_ref()
    }) || of(&differences.vrf, labels, |spec| spec.node_selector.as_ref())
        || of(&differences.bgp, labels, |spec| spec.node_selector.as_ref())
}
