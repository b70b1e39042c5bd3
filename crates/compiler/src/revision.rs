//! What changes forwarding, gathered in one place, and its fingerprint.
//!
//! A node's config is made from this content and the node's labels alone, never from live objects, so that a stored
//! revision gives the same config tomorrow.

use api::{
    openperouter::UnderlaySpec,
    selvedge::SettingsSpec,
    tcaas::{
        BgpPeeringSpec, BgpRevision, Layer2NetworkConfigurationSpec, Layer2Revision,
        NetworkConfigRevisionSpec, RevisionEntry, VrfRevision, VrfRouteConfigurationSpec,
    },
};
use sha2::{Digest, Sha256};

use crate::{
    lower::{LowLevelObjects, Lowered},
    names,
    snapshot::{Kind, Meta, ObjectRef, Snapshot, by_age},
};

/// How many hexadecimal digits of the fingerprint are the revision's name.
const NAME_DIGITS: usize = 10;

/// Everything that changes forwarding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Segments.
    pub layer2: LowLevelObjects<Layer2NetworkConfigurationSpec>,
    /// Routing.
    pub vrf: LowLevelObjects<VrfRouteConfigurationSpec>,
    /// BGP sessions with workloads.
    pub bgp: LowLevelObjects<BgpPeeringSpec>,
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
            layer2: lowered.layer2.clone(),
            vrf: lowered.vrf.clone(),
            bgp: lowered.bgp.clone(),
            underlays,
            settings,
        }
    }

    /// The revision as it is stored, with its fingerprint.
    pub fn revision(&self) -> NetworkConfigRevisionSpec {
        let layer2 = self.layer2.iter().map(|(name, object)| Layer2Revision {
            name: name.clone(),
            spec: object.spec.clone(),
        });
        let vrf = self.vrf.iter().map(|(name, object)| VrfRevision {
            name: name.clone(),
            spec: object.spec.clone(),
        });
        let bgp = self.bgp.iter().map(|(name, object)| BgpRevision {
            name: name.clone(),
            spec: object.spec.clone(),
        });
        let mut underlay: Vec<_> = self
            .underlays
            .iter()
            .map(|(subject, _, spec)| RevisionEntry {
                name: subject.key.name.clone(),
                namespace: subject.key.namespace.clone(),
                spec: canonical(spec),
            })
            .collect();
        underlay.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        let mut revision = NetworkConfigRevisionSpec {
            revision: String::new(),
            layer2: layer2.collect(),
            vrf: vrf.collect(),
            bgp: bgp.collect(),
            underlay,
            l3vni: Vec::new(),
            l2vni: Vec::new(),
            passthrough: Vec::new(),
            settings: Some(self.settings.clone()),
        };
        revision.revision = names::hex(&Sha256::digest(canonical(&revision).to_string()));
        revision
    }
}

/// Name of the object that stores a revision.
pub fn object_name(revision: &str) -> String {
    revision.chars().take(NAME_DIGITS).collect()
}

/// A value as JSON whose keys are sorted: the same value, the same bytes.
fn canonical<T: serde::Serialize>(value: &T) -> serde_json::Value {
    serde_json::to_value(value)
        .unwrap_or_else(|error| unreachable!("an object that was read from JSON is JSON: {error}"))
}
