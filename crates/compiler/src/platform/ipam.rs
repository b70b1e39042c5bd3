//! Cluster API's IPAM: a claim for each node that needs an address of a pool, and the address that the pool's provider gives for it.

use std::{collections::BTreeMap, net::IpAddr};

use api::{meta::TypedObjectReference, selvedge::SettingsSpec};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::PlatformObject;
use crate::{
    NodeConfig, names,
    rollout::{self, Progress},
    snapshot::{Key, Kind, ObjectRef, Snapshot},
};

/// Group of claims and addresses.
pub(crate) const GROUP: &str = "ipam.cluster.x-k8s.io";
/// The version that is written and watched; in files every version is read.
pub(crate) const VERSION: &str = "v1beta2";
const API_VERSION: &str = "ipam.cluster.x-k8s.io/v1beta2";

/// A claim of one address.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IpAddressClaimSpec {
    /// The pool it shall come from.
    pub pool_ref: PoolRef,
}

/// The address that a claim got.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IpAddressSpec {
    /// The claim, in the same namespace.
    pub claim_ref: ClaimRef,
    /// The pool it comes from.
    pub pool_ref: PoolRef,
    /// The address.
    pub address: IpAddr,
}

/// Names a claim in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ClaimRef {
    /// Its name.
    pub name: String,
}

/// Names a pool in the same namespace, or one of the whole cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolRef {
    /// Group of its kind; version 1beta1 lets it be absent.
    #[serde(default)]
    pub api_group: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// A claim that a node needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its namespace and name.
    pub key: Key,
    /// The pool.
    pub pool: PoolRef,
}

impl Claim {
    /// The claim of a node's address on a VRF's loopback. It lies where its pool does: a claim cannot name a namespace.
    pub(crate) fn new(
        settings: &SettingsSpec,
        pool: &TypedObjectReference,
        (vrf, loopback, node): (&str, &str, &str),
    ) -> Self {
        let namespace = pool.namespace.as_ref().or(settings.ipam_namespace.as_ref());
        let namespace = namespace.map_or(names::OWN_NAMESPACE, String::as_str);
        Self {
            key: Key {
                namespace: Some(namespace.to_owned()),
                name: names::claim(vrf, loopback, node),
            },
            pool: PoolRef {
                api_group: pool.api_group.clone().unwrap_or_default(),
                kind: pool.kind.clone(),
                name: pool.name.clone(),
            },
        }
    }

    fn object(&self, node: &str) -> PlatformObject {
        PlatformObject {
            api_version: API_VERSION,
            kind: "IPAddressClaim",
            namespace: self.key.namespace.clone(),
            name: self.key.name.clone(),
            // The claim goes when the node's config goes, and the address with it.
            owner: ObjectRef::named(Kind::NodeNetworkConfig, node),
            annotations: json!({}),
            body: json!({"spec": {"poolRef": self.pool}}),
        }
    }
}

/// The addresses of the world, by the claim they were given for.
pub struct Addresses<'a>(BTreeMap<Key, (&'a Key, &'a IpAddressSpec)>);

impl<'a> Addresses<'a> {
    /// Indexes the IPAddress objects of a snapshot by their claims.
    pub fn new(snapshot: &'a Snapshot) -> Self {
        let by_claim = snapshot.ip_addresses.iter().map(|(key, object)| {
            let claim = Key {
                namespace: key.namespace.clone(),
                name: object.spec.claim_ref.name.clone(),
            };
            (claim, (key, &object.spec))
        });
        Self(by_claim.collect())
    }

    /// The address that was given for a claim, and the object that says so. One of another pool answers an older claim.
    pub fn of(&self, claim: &Claim) -> Option<(ObjectRef, IpAddr)> {
        let (key, spec) = self.0.get(&claim.key)?;
        let (kind, key) = (Kind::IpAddress, (*key).clone());
        (spec.pool_ref == claim.pool).then_some((ObjectRef { kind, key }, spec.address))
    }
}

/// The claims of all nodes.
///
/// A claim that is needed no longer stays until its node has said that it runs without the address: until then nobody else may have it.
pub(super) fn claims(
    snapshot: &Snapshot,
    nodes: &BTreeMap<String, NodeConfig>,
    revision: &str,
) -> Vec<PlatformObject> {
    let mut claims: BTreeMap<Key, PlatformObject> = BTreeMap::new();
    for (node, config) in nodes {
        for claim in &config.mirrors.claims {
            claims.insert(claim.key.clone(), claim.object(node));
        }
    }
    for (key, claim) in &snapshot.ip_address_claims {
        let owner = claim.meta.owner.as_ref();
        let Some(owner) = owner.filter(|owner| owner.kind == Kind::NodeNetworkConfig) else {
            continue;
        };
        let node = &owner.key.name;
        let Some(config) = nodes.get(node).filter(|_| !claims.contains_key(key)) else {
            continue;
        };
        let told = snapshot.node_network_configs.get(&owner.key);
        if rollout::progress(&config.spec(revision), told) != Progress::Ready {
            let held = Claim {
                key: key.clone(),
                pool: claim.spec.pool_ref.clone(),
            };
            claims.insert(key.clone(), held.object(node));
        }
    }
    claims.into_values().collect()
}
