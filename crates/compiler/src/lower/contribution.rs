//! Low-level objects, and whose they are: what an intent makes, what it made before, what people wrote themselves.

use std::{collections::BTreeMap, sync::Arc};

use api::tcaas::{
    BgpPeeringSpec, Layer2NetworkConfigurationSpec, MirrorSelectorSpec, MirrorTargetSpec,
    VrfRouteConfigurationSpec,
};
use serde::Serialize;

use super::{Attachment, Service};
use crate::{
    revision::{Digest, digest},
    snapshot::{Key, Kind, Meta, Object, ObjectRef, Objects, Snapshot},
};

/// Low-level objects of one kind, by name, each with the object it comes from.
pub type LowLevelObjects<S> = BTreeMap<String, Arc<LowLevel<S>>>;

/// A low-level object: generated from an intent, or written by a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LowLevel<S> {
    /// The intent it is generated from, or the object itself.
    pub source: ObjectRef,
    /// What Kubernetes knows about the source; decides who is older.
    #[serde(skip)]
    pub meta: Meta,
    /// What the nodes shall have.
    pub spec: S,
    /// Fingerprint of that.
    #[serde(skip)]
    pub(crate) digest: Digest,
}

impl<S: Serialize> LowLevel<S> {
    pub(super) fn of(source: &ObjectRef, meta: &Meta, spec: S) -> Arc<Self> {
        Arc::new(Self {
            source: source.clone(),
            meta: meta.clone(),
            digest: digest(&spec),
            spec,
        })
    }
}

impl<S> LowLevel<S> {
    /// Whether it is generated from an intent.
    pub fn is_generated(&self) -> bool {
        !is_low_level(self.source.kind)
    }
}

/// Whether objects of this kind are what intents become.
pub(crate) fn is_low_level(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Layer2NetworkConfiguration
            | Kind::VrfRouteConfiguration
            | Kind::BgpPeering
            | Kind::MirrorTarget
            | Kind::MirrorSelector
    )
}

/// What one intent becomes.
#[derive(Default)]
pub(super) struct Made {
    pub(super) layer2: Vec<(String, Layer2NetworkConfigurationSpec)>,
    pub(super) vrf: Vec<(String, VrfRouteConfigurationSpec)>,
    pub(super) bgp: Vec<(String, BgpPeeringSpec)>,
    pub(super) mirror_targets: Vec<(String, MirrorTargetSpec)>,
    pub(super) mirror_selectors: Vec<(String, MirrorSelectorSpec)>,
    pub(super) attachment: Attachment,
    pub(super) service: Service,
}

impl Made {
    /// The same as objects of an intent.
    pub(super) fn contribution(self, source: &ObjectRef, meta: &Meta) -> Contribution {
        fn of<S: Serialize>(
            (source, meta): (&ObjectRef, &Meta),
            made: Vec<(String, S)>,
        ) -> Vec<(String, Arc<LowLevel<S>>)> {
            let made = made.into_iter();
            made.map(|(name, spec)| (name, LowLevel::of(source, meta, spec)))
                .collect()
        }
        let intent = (source, meta);
        Contribution {
            layer2: of(intent, self.layer2),
            vrf: of(intent, self.vrf),
            bgp: of(intent, self.bgp),
            mirror_targets: of(intent, self.mirror_targets),
            mirror_selectors: of(intent, self.mirror_selectors),
            attachment: self.attachment,
            service: self.service,
        }
    }
}

/// What one intent contributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Contribution {
    pub(super) layer2: Vec<(String, Arc<LowLevel<Layer2NetworkConfigurationSpec>>)>,
    pub(super) vrf: Vec<(String, Arc<LowLevel<VrfRouteConfigurationSpec>>)>,
    pub(super) bgp: Vec<(String, Arc<LowLevel<BgpPeeringSpec>>)>,
    pub(super) mirror_targets: Vec<(String, Arc<LowLevel<MirrorTargetSpec>>)>,
    pub(super) mirror_selectors: Vec<(String, Arc<LowLevel<MirrorSelectorSpec>>)>,
    pub(super) attachment: Attachment,
    pub(super) service: Service,
}

/// What an intent contributed last: the generated objects that are still there.
pub(super) fn kept(snapshot: &Snapshot, source: &ObjectRef) -> Made {
    fn of<S: Clone, T>(all: &Objects<S, T>, source: &ObjectRef) -> Vec<(String, S)> {
        let own = all
            .iter()
            .filter(|(_, object)| object.meta.owner.as_ref() == Some(source));
        own.map(|(key, object)| (key.name.clone(), object.spec.clone()))
            .collect()
    }
    Made {
        layer2: of(&snapshot.layer2_network_configurations, source),
        vrf: of(&snapshot.vrf_route_configurations, source),
        bgp: of(&snapshot.bgp_peerings, source),
        mirror_targets: of(&snapshot.mirror_targets, source),
        mirror_selectors: of(&snapshot.mirror_selectors, source),
        ..Made::default()
    }
}

/// Objects that people wrote: those no intent owns. What an intent owns is made anew. An object that is as before stays the same value.
pub(super) fn handwritten<S: Clone + PartialEq + Serialize, T>(
    kind: Kind,
    objects: &Objects<S, T>,
    before: Option<&LowLevelObjects<S>>,
) -> LowLevelObjects<S> {
    let written = objects.iter();
    let written = written.filter(|(_, object)| object.meta.owner.is_none());
    let value = |(key, object): (&Key, &Object<S, T>)| {
        let known = before.and_then(|before| before.get(&key.name));
        let known = known.filter(|known| {
            known.source.kind == kind && known.meta == object.meta && known.spec == object.spec
        });
        let value = known.cloned().unwrap_or_else(|| {
            let key = key.clone();
            LowLevel::of(&ObjectRef { kind, key }, &object.meta, object.spec.clone())
        });
        (key.name.clone(), value)
    };
    written.map(value).collect()
}
