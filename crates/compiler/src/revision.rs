//! What changes forwarding, gathered in one place, and its fingerprint.
//!
//! A node's config is made from this content and the node's labels alone, never from live objects, so that a stored
//! revision gives the same config tomorrow.

use std::sync::Arc;

use api::{
    openperouter::UnderlaySpec,
    selvedge::SettingsSpec,
    tcaas::{
        BgpPeeringSpec, BgpRevision, Layer2NetworkConfigurationSpec, Layer2Revision,
        NetworkConfigRevisionSpec, RevisionEntry, VrfRevision, VrfRouteConfigurationSpec,
    },
};
use sha2::{Digest as _, Sha256};

use crate::{
    lower::{LowLevelObjects, Lowered},
    names,
    snapshot::{Kind, Meta, ObjectRef, Snapshot, by_age},
};

/// How many hexadecimal digits of the fingerprint are the revision's name.
const NAME_DIGITS: usize = 10;

/// Everything that changes forwarding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// Segments.
    pub layer2: Arc<LowLevelObjects<Layer2NetworkConfigurationSpec>>,
    /// Routing.
    pub vrf: Arc<LowLevelObjects<VrfRouteConfigurationSpec>>,
    /// BGP sessions with workloads.
    pub bgp: Arc<LowLevelObjects<BgpPeeringSpec>>,
    /// How nodes are plugged into the fabric, the older first.
    pub underlays: Vec<(ObjectRef, Meta, UnderlaySpec)>,
    /// Settings of the cluster.
    pub settings: SettingsSpec,
}

impl Content {
    /// Gathers the content of a revision.
    pub fn gather(snapshot: &Snapshot, settings: SettingsSpec, lowered: &Lowered) -> Self {
        let underlays = by_age(&snapshot.underlays)
            .into_iter()
            .map(|(key, object)| {
                let mut spec = object.spec.clone();
                // A password in clear text stays in its own object and goes into no other.
                for neighbor in &mut spec.neighbors {
                    neighbor.password = None;
                }
                (
                    ObjectRef {
                        kind: Kind::Underlay,
                        key: key.clone(),
                    },
                    object.meta.clone(),
                    spec,
                )
            })
            .collect();
        Self {
            layer2: Arc::clone(&lowered.layer2),
            vrf: Arc::clone(&lowered.vrf),
            bgp: Arc::clone(&lowered.bgp),
            underlays,
            settings,
        }
    }

    /// The revision: this content and its fingerprint.
    pub fn revision(self) -> Revision {
        let mut hasher = Sha256::new();
        let mut add = |kind: &str, name: &str, digest: Digest| {
            // Lengths keep one entry from reading like two others.
            for text in [kind, name] {
                hasher.update(text.len().to_be_bytes());
                hasher.update(text);
            }
            hasher.update(digest);
        };
        for (name, object) in &*self.layer2 {
            add("layer2", name, object.digest);
        }
        for (name, object) in &*self.vrf {
            add("vrf", name, object.digest);
        }
        for (name, object) in &*self.bgp {
            add("bgp", name, object.digest);
        }
        for underlay in self.stored_underlays() {
            let name = underlay.name.clone();
            add("underlay", &name, digest(&underlay));
        }
        add("settings", "", digest(&self.settings));
        Revision {
            fingerprint: names::hex(&hasher.finalize()),
            content: self,
        }
    }

    fn stored_underlays(&self) -> Vec<RevisionEntry> {
        let mut underlays: Vec<_> = self
            .underlays
            .iter()
            .map(|(subject, _, spec)| RevisionEntry {
                name: subject.key.name.clone(),
                namespace: subject.key.namespace.clone(),
                spec: serde_json::to_value(spec).unwrap_or_else(|error| {
                    unreachable!("an object that was read from JSON is JSON: {error}")
                }),
            })
            .collect();
        underlays.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        underlays
    }
}

/// Content with its fingerprint: the same content, the same fingerprint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revision {
    /// What tells it from every other.
    pub fingerprint: String,
    /// What changes forwarding.
    pub content: Content,
}

impl Revision {
    /// The revision as it is stored.
    pub fn spec(&self) -> NetworkConfigRevisionSpec {
        let content = &self.content;
        let layer2 = content.layer2.iter().map(|(name, object)| Layer2Revision {
            name: name.clone(),
            spec: object.spec.clone(),
        });
        let vrf = content.vrf.iter().map(|(name, object)| VrfRevision {
            name: name.clone(),
            spec: object.spec.clone(),
        });
        let bgp = content.bgp.iter().map(|(name, object)| BgpRevision {
            name: name.clone(),
            spec: object.spec.clone(),
        });
        NetworkConfigRevisionSpec {
            revision: self.fingerprint.clone(),
            layer2: layer2.collect(),
            vrf: vrf.collect(),
            bgp: bgp.collect(),
            underlay: content.stored_underlays(),
            l3vni: Vec::new(),
            l2vni: Vec::new(),
            passthrough: Vec::new(),
            settings: Some(content.settings.clone()),
        }
    }
}

/// Name of the object that stores a revision.
pub fn object_name(revision: &str) -> String {
    revision.chars().take(NAME_DIGITS).collect()
}

/// Fingerprint of one value.
pub(crate) type Digest = [u8; 32];

/// The fingerprint of a value: of its JSON, whose fields have an order of their own and whose maps are sorted.
pub(crate) fn digest<T: serde::Serialize>(value: &T) -> Digest {
    let json = serde_json::to_vec(value)
        .unwrap_or_else(|error| unreachable!("an object that was read from JSON is JSON: {error}"));
    Sha256::digest(json).into()
}
