//! Low-level objects that people wrote: those that no intent owns.

use std::{collections::BTreeMap, sync::Arc};

use api::tcaas::{
    BgpPeeringSpec, Layer2NetworkConfigurationSpec, MirrorSelectorSpec, MirrorTargetSpec,
    VrfRouteConfigurationSpec,
};
use serde::Serialize;

use super::{LowLevel, LowLevelObjects};
use crate::{
    changes::Changes,
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
        [
            update(&mut self.layer2, (of_layer2, layer2), changes),
            update(&mut self.vrf, (Kind::VrfRouteConfiguration, vrf), changes),
            update(
                &mut self.bgp,
                (Kind::BgpPeering, &snapshot.bgp_peerings),
                changes,
            ),
            update(
                &mut self.mirror_targets,
                (Kind::MirrorTarget, targets),
                changes,
            ),
            update(
                &mut self.mirror_selectors,
                (Kind::MirrorSelector, selectors),
                changes,
            ),
        ]
        .contains(&true)
    }
}

fn update<S: Clone + PartialEq + Serialize, T>(
    written: &mut Arc<LowLevelObjects<S>>,
    (kind, objects): (Kind, &Objects<S, T>),
    changes: Changes<'_>,
) -> bool {
    let value = |key: &Key, object: &Object<S, T>| {
        let source = ObjectRef {
            kind,
            key: key.clone(),
        };
        LowLevel::of(&source, &object.meta, object.spec.clone())
    };
    if changes.is_all() {
        let own = objects.iter().filter(|(_, one)| one.meta.owner.is_none());
        let own: BTreeMap<_, _> = own
            .map(|(key, object)| (key.name.clone(), value(key, object)))
            .collect();
        *written = Arc::new(own);
        return true;
    }
    let mut has_changed = false;
    for key in changes.of(kind) {
        let object = objects.get(key).filter(|one| one.meta.owner.is_none());
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
