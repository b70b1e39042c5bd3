//! Low-level objects that people wrote: those that no intent owns.
//!
//! One whose node selector is not well formed is left out, and says so: it would select nothing without a word.

use std::{collections::BTreeMap, sync::Arc};

use api::{
    meta::LabelSelector,
    tcaas::{
        BgpPeeringSpec, Layer2NetworkConfigurationSpec, MirrorSelectorSpec, MirrorTargetSpec,
        VrfRouteConfigurationSpec,
    },
};
use serde::Serialize;

use super::{LowLevel, LowLevelObjects, conflict::Scoped};
use crate::{
    changes::Changes,
    problem::{self, Problem},
    snapshot::{Key, Kind, Object, ObjectRef, Objects, Snapshot},
};

/// People's own low-level objects, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) layer2: Arc<LowLevelObjects<Layer2NetworkConfigurationSpec>>,
    pub(super) vrf: Arc<LowLevelObjects<VrfRouteConfigurationSpec>>,
    pub(super) bgp: Arc<LowLevelObjects<BgpPeeringSpec>>,
    pub(super) mirror_targets: Arc<LowLevelObjects<MirrorTargetSpec>>,
    pub(super) mirror_selectors: Arc<LowLevelObjects<MirrorSelectorSpec>>,
    /// What is wrong with those that are left out.
    pub(super) broken: BTreeMap<ObjectRef, Problem>,
}

impl Written {
    /// Whether there are mirrors among it.
    pub(super) fn has_mirrors(&self) -> bool {
        !self.mirror_targets.is_empty() || !self.mirror_selectors.is_empty()
    }

    /// Brings it up to date; says whether that made a difference.
    pub(super) fn update(&mut self, snapshot: &Snapshot, changes: Changes<'_>) -> bool {
        let layer2 = &snapshot.layer2_network_configurations;
        let vrf = &snapshot.vrf_route_configurations;
        let (targets, selectors) = (&snapshot.mirror_targets, &snapshot.mirror_selectors);
        let of_layer2 = Kind::Layer2NetworkConfiguration;
        let broken = &mut self.broken;
        if changes.is_all() {
            broken.clear();
        }
        [
            update(&mut self.layer2, broken, (of_layer2, layer2), changes),
            update(
                &mut self.vrf,
                broken,
                (Kind::VrfRouteConfiguration, vrf),
                changes,
            ),
            update(
                &mut self.bgp,
                broken,
                (Kind::BgpPeering, &snapshot.bgp_peerings),
                changes,
            ),
            update(
                &mut self.mirror_targets,
                broken,
                (Kind::MirrorTarget, targets),
                changes,
            ),
            update(
                &mut self.mirror_selectors,
                broken,
                (Kind::MirrorSelector, selectors),
                changes,
            ),
        ]
        .contains(&true)
    }
}

fn update<S: Clone + PartialEq + Serialize + Scoped, T>(
    written: &mut Arc<LowLevelObjects<S>>,
    broken: &mut BTreeMap<ObjectRef, Problem>,
    (kind, objects): (Kind, &Objects<S, T>),
    changes: Changes<'_>,
) -> bool {
    let subject = |key: &Key| ObjectRef {
        kind,
        key: key.clone(),
    };
    let value = |key: &Key, object: &Object<S, T>| {
        LowLevel::of(&subject(key), &object.meta, object.spec.clone())
    };
    let is_sound = |broken: &mut BTreeMap<ObjectRef, Problem>, key: &Key, object: &Object<S, T>| {
        let selector = object.spec.node_selector().map(LabelSelector::check);
        let Some(Err(error)) = selector else {
            return true;
        };
        let kind = problem::Kind::InvalidSelector(error);
        let problem = Problem::new(subject(key), "spec.nodeSelector", kind);
        broken.insert(subject(key), problem);
        false
    };
    if changes.is_all() {
        let own = objects.iter().filter(|(_, one)| one.meta.owner.is_none());
        let own = own.filter(|(key, object)| is_sound(broken, key, object));
        let own: BTreeMap<_, _> = own
            .map(|(key, object)| (key.name.clone(), value(key, object)))
            .collect();
        *written = Arc::new(own);
        return true;
    }
    let mut has_changed = false;
    for key in changes.of(kind) {
        broken.remove(&subject(key));
        let object = objects.get(key).filter(|one| one.meta.owner.is_none());
        let object = object.filter(|object| is_sound(broken, key, object));
        let known = written.get(&key.name);
        let is_same = match (object, known) {
            (Some(object), Some(known)) => known.meta == object.meta && known.spec == object.spec,
            (None, None) => true,
            _ => false,
        };
        if is_same {
            continue;
        }
        has_changed = true;
        let written = Arc::make_mut(written);
        match object {
            Some(object) => drop(written.insert(key.name.clone(), value(key, object))),
            None => drop(written.remove(&key.name)),
        }
    }
    has_changed
}
