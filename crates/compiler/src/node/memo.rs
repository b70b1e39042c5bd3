//! What groups of nodes had, so that only those are built again for which something changed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    meta::Labels,
    selvedge::SettingsSpec,
    value::{RouteTarget, Vni},
};

use super::{Group, Shared, vrfs::Numbers};
use crate::{lower::LowLevel, names, problem::Problem, revision::Content, snapshot::ObjectRef};

/// What is to be known of a build the next time.
///
/// Low-level objects are told apart by where they are in memory, so this is of use only as long as the content that was built from lives.
#[derive(Clone, Debug, Default)]
pub struct Memo {
    settings: SettingsSpec,
    vrfs: BTreeMap<String, (Vni, RouteTarget)>,
    vni_holders: BTreeMap<Vni, ObjectRef>,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Premises {
    nodes: Vec<String>,
    has_overlay: bool,
    objects: Vec<usize>,
}

impl Memo {
    pub(super) fn new(content: &Content, numbers: &Numbers<'_>) -> Self {
        let vrfs = numbers.vrfs.iter();
        Self {
            settings: content.settings.clone(),
            vrfs: vrfs.map(|(vrf, of)| ((*vrf).to_owned(), *of)).collect(),
            vni_holders: numbers.holders.clone(),
            groups: BTreeMap::new(),
        }
    }

    /// What a group had, if it has the same again but for its route tables.
    pub(super) fn group(&self, labels: &Labels, group: &Group<'_>, now: &Self) -> Option<&Known> {
        let known = self.groups.get(labels)?;
        let vrfs = group.vrf.iter().map(|(_, object)| object.spec.vrf.as_str());
        let has_numbers = |vrf: &str| self.vrfs.get(vrf) == now.vrfs.get(vrf);
        let vnis = group
            .layer2
            .iter()
            .filter_map(|(_, object)| object.spec.vni);
        let has_holder = |vni: Vni| self.vni_holders.get(&vni) == now.vni_holders.get(&vni);
        let is_same = self.settings == now.settings
            && known.premises == group.premises()
            && vrfs.into_iter().all(has_numbers)
            && vnis.into_iter().all(has_holder);
        is_same.then_some(known)
    }
}

impl Known {
    /// Whether the VRFs have the route tables that they had.
    pub(super) fn has_tables(&self, tables: &BTreeMap<String, u32>) -> bool {
        let mut vrfs = self.tables.iter();
        vrfs.all(|(vrf, table)| tables.get(vrf) == table.as_ref())
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
        fn place<S>((_, object): &(&str, &LowLevel<S>)) -> usize {
            std::ptr::from_ref(*object).addr()
        }
        let layer2 = self.layer2.iter().map(place);
        let vrf = self.vrf.iter().map(place);
        let bgp = self.bgp.iter().map(place);
        Premises {
            nodes: self.nodes.iter().map(|node| (*node).to_owned()).collect(),
            has_overlay: self.has_overlay,
            objects: layer2.chain(vrf).chain(bgp).collect(),
        }
    }
}
