//! What changes forwarding, and its fingerprint.
//!
//! A node's config is made from this content and the node's labels alone, never from live objects, so that a stored
//! revision gives the same config tomorrow.

pub mod parts;
pub mod stored;

use std::sync::Arc;

use api::{
    openperouter::UnderlaySpec,
    selvedge::{Rollout, SettingsSpec},
    tcaas::{
        BgpPeeringSpec, BgpRevision, Layer2NetworkConfigurationSpec, Layer2Revision,
        NetworkConfigRevisionSpec, RevisionEntry, VrfRevision, VrfRouteConfigurationSpec,
    },
    value::Password,
};

use serde_json::Value;

use crate::{
    fingerprint::{self, Digest},
    lower::{LowLevelObject, LowLevelObjects},
    memo::Query,
    names,
    node::{self, OverlayOf},
    snapshot::{Key, Kind, ObjectRef, kinds},
    view::View,
};

/// How many hexadecimal digits of the fingerprint are the revision's name.
const NAME_DIGITS: usize = 10;

/// What changes forwarding beside low-level objects, with the fingerprint of all of it: the same content, the same fingerprint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revision {
    /// What tells it from every other.
    pub fingerprint: String,
    /// How nodes are plugged into the fabric.
    pub underlays: Arc<Vec<(Key, UnderlaySpec)>>,
    /// What runs in the fabric: `L3VNI`s, `L2VNI`s and `L3Passthrough`s, as they are written.
    pub overlays: Arc<Vec<(ObjectRef, Value)>>,
    /// Settings of the cluster.
    pub settings: Arc<SettingsSpec>,
}

/// What changes forwarding beside low-level objects, and its fingerprint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Base {
    underlays: Arc<Vec<(Key, UnderlaySpec)>>,
    overlays: Arc<Vec<(ObjectRef, Value)>>,
    settings: Arc<SettingsSpec>,
    digest: Digest,
}

/// What changes forwarding beside low-level objects.
pub(crate) struct BaseOfAll;
impl Query for BaseOfAll {
    type Key = ();
    type Value = Base;
    fn compute(view: &View<'_>, (): &()) -> Base {
        // How changes reach the nodes changes no node.
        let settings = Arc::new(SettingsSpec {
            rollout: Rollout::default(),
            ..SettingsSpec::clone(&view.settings())
        });
        let keys = view.keys::<kinds::Underlay>();
        let underlays = keys.iter().filter_map(|key| {
            let spec = view.spec::<kinds::Underlay>(key)?;
            Some((key.clone(), underlay(&spec)))
        });
        let underlays: Vec<(Key, UnderlaySpec)> = underlays.collect();
        let of_underlays = underlays.iter().map(|(key, spec)| {
            let name = (&key.namespace, &key.name);
            ("underlay", fingerprint::of(&(name, spec)))
        });
        let overlays = node::all_overlays(view).into_iter();
        let overlays: Vec<(ObjectRef, Value)> = overlays
            .filter(|subject| view.get::<OverlayOf>(subject).plan.is_some())
            .filter_map(|subject| overlay(view, &subject).map(|spec| (subject, spec)))
            .collect();
        let of_overlays = overlays.iter().map(|(subject, spec)| {
            let digest = fingerprint::of(&(subject, spec));
            ("overlay", digest)
        });
        let of_settings = [("settings", fingerprint::of(&*settings))];
        let parts = of_underlays.chain(of_overlays).chain(of_settings);
        let digest = fingerprint::of_parts(parts);
        Base {
            overlays: Arc::new(overlays),
            underlays: Arc::new(underlays),
            settings,
            digest,
        }
    }
}

/// An Underlay as revisions have it: of a password in clear text they have that there is one, and nothing else.
pub(crate) fn underlay(spec: &UnderlaySpec) -> UnderlaySpec {
    let mut spec = spec.clone();
    for neighbor in &mut spec.neighbors {
        if let Some(password) = &mut neighbor.password {
            *password = Password::hidden();
        }
    }
    spec
}

/// What the author of an overlay object wants, as it is written.
fn overlay(view: &View<'_>, subject: &ObjectRef) -> Option<Value> {
    let key = &subject.key;
    let spec = match subject.kind {
        Kind::L3Vni => serde_json::to_value(&*view.spec::<kinds::L3Vni>(key)?),
        Kind::L2Vni => serde_json::to_value(&*view.spec::<kinds::L2Vni>(key)?),
        _ => serde_json::to_value(&*view.spec::<kinds::L3Passthrough>(key)?),
    };
    spec.ok()
}

/// Whether an object changes forwarding, and under what word it is part of a fingerprint.
fn part(object: &LowLevelObject) -> Option<&'static str> {
    match object {
        LowLevelObject::Layer2(_) => Some("layer2"),
        LowLevelObject::Vrf(_) => Some("vrf"),
        LowLevelObject::Bgp(_) => Some("bgp"),
        LowLevelObject::MirrorTarget(_) | LowLevelObject::MirrorSelector(_) => None,
    }
}

impl Revision {
    pub(crate) fn new(base: &Base, objects: &LowLevelObjects) -> Self {
        let gated = objects.iter().filter_map(|one| Some((part(one)?, one)));
        let named = gated.flat_map(|(part, object)| {
            [(part, Digest::default()), (object.name(), object.digest())]
        });
        let parts = named.chain([("base", base.digest)]);
        Self {
            fingerprint: names::hex(&fingerprint::of_parts(parts)),
            underlays: Arc::clone(&base.underlays),
            overlays: Arc::clone(&base.overlays),
            settings: Arc::clone(&base.settings),
        }
    }

    /// The revision with the low-level objects that it was made of.
    pub fn spec(&self, objects: &LowLevelObjects) -> NetworkConfigRevisionSpec {
        let layer2 = objects.of::<Layer2NetworkConfigurationSpec>();
        let layer2 = layer2.map(|(name, object)| Layer2Revision {
            name: name.clone(),
            spec: object.spec.clone(),
        });
        let vrf = objects.of::<VrfRouteConfigurationSpec>();
        let vrf = vrf.map(|(name, object)| VrfRevision {
            name: name.clone(),
            spec: object.spec.clone(),
        });
        let bgp = objects.of::<BgpPeeringSpec>();
        let bgp = bgp.map(|(name, object)| BgpRevision {
            name: name.clone(),
            spec: object.spec.clone(),
        });
        let underlay = self.underlays.iter().map(|(key, spec)| RevisionEntry {
            name: key.name.to_string(),
            namespace: key.namespace.as_deref().map(str::to_owned),
            spec: serde_json::to_value(spec).unwrap_or_else(|error| {
                unreachable!("an object that was read from JSON is JSON: {error}")
            }),
        });
        let overlays = |kind: Kind| {
            let overlays = self.overlays.iter();
            let of_kind = overlays.filter(move |(subject, _)| subject.kind == kind);
            let entries = of_kind.map(|(subject, spec)| RevisionEntry {
                name: subject.key.name.to_string(),
                namespace: subject.key.namespace.as_deref().map(str::to_owned),
                spec: spec.clone(),
            });
            entries.collect()
        };
        NetworkConfigRevisionSpec {
            revision: self.fingerprint.clone(),
            parts: Vec::new(),
            layer2: layer2.collect(),
            vrf: vrf.collect(),
            bgp: bgp.collect(),
            underlay: underlay.collect(),
            l3vni: overlays(Kind::L3Vni),
            l2vni: overlays(Kind::L2Vni),
            passthrough: overlays(Kind::L3Passthrough),
            settings: Some(SettingsSpec::clone(&self.settings)),
        }
    }
}

/// Name of the object that stores a revision.
pub fn object_name(revision: &str) -> String {
    revision.chars().take(NAME_DIGITS).collect()
}
