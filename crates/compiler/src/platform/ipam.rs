//! Cluster API's IPAM: a claim for each node that needs an address of a pool, and the address that the pool's provider gives for it.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use api::{meta::TypedObjectReference, selvedge::SettingsSpec};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{GENERATED_FROM, PlatformObject};
use crate::{
    memo::Index,
    names,
    node::{ProgressOf, config},
    rollout::Progress,
    snapshot::{Key, Kind, ObjectRef, Snapshot, kinds},
    view::{View, reference},
};

/// Group of claims and addresses.
pub(crate) const GROUP: &str = "ipam.cluster.x-k8s.io";
/// The version that is written and watched where it is served; in files every version is read.
pub(crate) const VERSION: &str = "v1beta2";
/// Versions that are written and watched where a newer one is not served. All that Selvedge reads and writes has the same form in them;
/// the one difference is that v1beta1 lets a pool have no group ([`PoolRef`]).
pub(crate) const OLDER_VERSIONS: &[&str] = &["v1beta1"];
pub(super) const API_VERSION: &str = "ipam.cluster.x-k8s.io/v1beta2";
const OLDER_API_VERSIONS: &[&str] = &["ipam.cluster.x-k8s.io/v1beta1"];

/// Older versions in which objects of this group and version may be written as well.
pub(super) fn older_api_versions(api_version: &str) -> &'static [&'static str] {
    if api_version == API_VERSION {
        OLDER_API_VERSIONS
    } else {
        &[]
    }
}

pub(super) const KINDS: super::Kinds = (API_VERSION, &[("IPAddressClaim", "ipaddressclaims")]);

/// A claim of one address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IpAddressClaimSpec {
    /// The pool of the address.
    pub pool_ref: PoolRef,
}

/// The address that a claim got.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimRef {
    /// Its name.
    pub name: String,
}

/// Names a pool in the same namespace, or one of the whole cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolRef {
    /// Group of its kind. In v1beta1 it may be absent; v1beta2 requires it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_group: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// A claim that a node needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressClaim {
    /// Its namespace and name.
    pub key: Key,
    /// The pool.
    pub pool: PoolRef,
}

impl AddressClaim {
    /// The claim of a node's address on a VRF's loopback. It lies where its pool does: a claim cannot name a namespace.
    pub(crate) fn new(
        settings: &SettingsSpec,
        pool: &TypedObjectReference,
        vrf: &str,
        loopback: &str,
        node: &str,
    ) -> Self {
        let namespace = pool.namespace.as_ref().or(settings.ipam_namespace.as_ref());
        let namespace = namespace.map_or(names::OWN_NAMESPACE, String::as_str);
        Self {
            key: Key {
                namespace: Some(namespace.into()),
                name: names::claim(vrf, loopback, node).into(),
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
            namespace: self.key.namespace.as_deref().map(str::to_owned),
            name: self.key.name.to_string(),
            // The claim goes when the node's config goes, and the address with it.
            owner: ObjectRef::named(Kind::NodeNetworkConfig, node),
            annotations: json!({}),
            body: json!({"spec": {"poolRef": self.pool}}),
        }
    }
}

/// The addresses that were given, by the claim that they were given for.
pub(crate) struct AddressesByClaim;
impl Index for AddressesByClaim {
    type Source = Key;
    type Key = Key;
    type Item = (Key, Arc<IpAddressSpec>);
    fn sources(view: &View<'_>) -> Vec<Key> {
        view.keys::<kinds::IpAddress>().to_vec()
    }
    fn entries(view: &View<'_>, key: &Key) -> Vec<(Key, Self::Item)> {
        let spec = view.spec::<kinds::IpAddress>(key);
        let entry = spec.map(|spec| {
            let claim = Key {
                namespace: key.namespace.clone(),
                name: spec.claim_ref.name.as_str().into(),
            };
            (claim, (key.clone(), spec))
        });
        entry.into_iter().collect()
    }
}

/// The address that was given for a claim, and the object that says so. One of another pool answers an older claim.
pub(crate) fn given(view: &View<'_>, claim: &AddressClaim) -> Option<(ObjectRef, IpAddr)> {
    let addresses = view.who::<AddressesByClaim>(&claim.key);
    let (key, spec) = addresses.last()?;
    let is_of_pool = spec.pool_ref == claim.pool;
    is_of_pool.then(|| (reference(Kind::IpAddress, key), spec.address))
}

/// The same in a snapshot, for questions about a compilation.
pub fn given_in(snapshot: &Snapshot, claim: &AddressClaim) -> Option<(ObjectRef, IpAddr)> {
    let addresses = snapshot.ip_addresses.iter().rev();
    let mut of_claim = addresses.filter(|(key, object)| {
        key.namespace == claim.key.namespace && object.spec.claim_ref.name == *claim.key.name
    });
    let (key, object) = of_claim.next()?;
    let is_of_pool = object.spec.pool_ref == claim.pool;
    is_of_pool.then(|| (reference(Kind::IpAddress, key), object.spec.address))
}

/// The claims that stand for a node's config, by the node's name.
pub(crate) struct ClaimsByNode;
impl Index for ClaimsByNode {
    type Source = Key;
    type Key = String;
    type Item = Key;
    fn sources(view: &View<'_>) -> Vec<Key> {
        view.keys::<kinds::IpAddressClaim>().to_vec()
    }
    fn entries(view: &View<'_>, key: &Key) -> Vec<(String, Key)> {
        let meta = view.meta::<kinds::IpAddressClaim>(key);
        let source = meta.and_then(|meta| meta.annotations.get(GENERATED_FROM).cloned());
        let parts = source.as_ref().and_then(|source| source.split_once('/'));
        let is_node = |(kind, _): &(&str, &str)| *kind == Kind::NodeNetworkConfig.to_string();
        let entry = parts.filter(is_node);
        let entry = entry.map(|(_, node)| (node.to_owned(), key.clone()));
        entry.into_iter().collect()
    }
}

/// The claim that stands for a node's address on a VRF's loopback.
pub(crate) fn held(view: &View<'_>, node: &Key, vrf: &str, loopback: &str) -> Option<AddressClaim> {
    let name = names::claim(vrf, loopback, &node.name);
    let claims = view.who::<ClaimsByNode>(&node.name.to_string());
    let key = claims.iter().find(|key| *key.name == *name)?.clone();
    let pool = view.spec::<kinds::IpAddressClaim>(&key)?.pool_ref.clone();
    Some(AddressClaim { key, pool })
}

/// The claims of a node.
///
/// A claim that is no longer needed is released only after its node reports a config without the address. The claims of a machine whose
/// Node was deleted stay as long as its config does.
pub(super) fn claims(view: &View<'_>, node: &Key) -> Vec<PlatformObject> {
    let config = config(view, node);
    if config.is_none() && view.spec::<kinds::NodeNetworkConfig>(node).is_none() {
        return Vec::new();
    }
    let mut claims: BTreeMap<Key, PlatformObject> = BTreeMap::new();
    for claim in config.iter().flat_map(|config| &config.mirrors.claims) {
        claims.insert(claim.key.clone(), claim.object(&node.name));
    }
    let is_ready = || config.is_some() && view.get::<ProgressOf>(node) == Progress::Ready;
    for key in view.who::<ClaimsByNode>(&node.name.to_string()).iter() {
        if claims.contains_key(key) || is_ready() {
            continue;
        }
        if let Some(spec) = view.spec::<kinds::IpAddressClaim>(key) {
            let held = AddressClaim {
                key: key.clone(),
                pool: spec.pool_ref.clone(),
            };
            claims.insert(key.clone(), held.object(&node.name));
        }
    }
    claims.into_values().collect()
}
