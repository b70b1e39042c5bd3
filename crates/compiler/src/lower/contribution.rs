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
    snapshot::{Kind, Meta, ObjectRef, Objects, Snapshot},
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Contribution {
    pub(super) layer2: Vec<(String, Arc<LowLevel<Layer2NetworkConfigurationSpec>>)>,
    pub(super) vrf: Vec<(String, Arc<LowLevel<VrfRouteConfigurationSpec>>)>,
    pub(super) bgp: Vec<(String, Arc<LowLevel<BgpPeeringSpec>>)>,
    pub(super) mirror_targets: Vec<(String, Arc<LowLevel<MirrorTargetSpec>>)>,
    pub(super) mirror_selectors: Vec<(String, Arc<LowLevel<MirrorSelectorSpec>>)>,
    pub(super) attachment: Attachment,
    pub(super) service: Service,
}

impl Contribution {
    /// The same, with what is as it was before in the place that it had: only what changed is made anew.
    pub(super) fn reusing(mut self, before: &Self) -> Self {
        fn of<S: PartialEq>(
            now: &mut [(String, Arc<LowLevel<S>>)],
            before: &[(String, Arc<LowLevel<S>>)],
        ) {
            for (name, object) in now {
                let known = before.iter().find(|(other, _)| other == name);
                if let Some((_, known)) = known.filter(|(_, known)| known == object) {
                    *object = Arc::clone(known);
                }
            }
        }
        of(&mut self.layer2, &before.layer2);
        of(&mut self.vrf, &before.vrf);
        of(&mut self.bgp, &before.bgp);
        of(&mut self.mirror_targets, &before.mirror_targets);
        of(&mut self.mirror_selectors, &before.mirror_selectors);
        self
    }
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
