//! The contract between control plane and node: everything one node must do, with no choice left to it.
//!
//! The spec keeps the shape of the existing system (`layer2s`, `clusterVRF`, `fabricVRFs`, `localVRFs`) and adds what
//! makes it complete: device names, tables, addresses of the router, and the underlay. Names are made in one module of
//! the compiler; whoever reads this object derives none.

mod bgp;
mod filter;
mod host;
mod layer2;
mod underlay;
mod vrf;

use std::{collections::BTreeMap, sync::Arc};

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::{
    bgp::{AddressFamily, BfdProfile, BgpPeer},
    filter::{
        Action, ActionType, CommunityMatcher, Filter, FilterItem, Matcher, ModifyRoute,
        PrefixMatcher,
    },
    host::{HostDevices, HostMaster, HostMasterKind, HostPort, HostSession},
    layer2::{HostInterface, HostLoopback, HostVlan, Irb, Layer2, Layer2Devices},
    underlay::{AddressFamilyName, Bfd, GracefulRestart, Neighbor, RemoteAs, Trunk, Underlay},
    vrf::{
        Gre, GreLayer, Loopback, MirrorAcl, NextHop, PolicyRoute, Redistribute, StaticRoute, Vrf,
        VrfDevices, VrfImport,
    },
};
use crate::{
    meta::{Conditions, SecretReference},
    selvedge::Health,
};

/// The version of this contract that the code at hand writes and reads.
///
/// An agent that meets a newer one keeps running what it has and says so.
pub const CONTRACT_VERSION: u32 = 1;

/// Type of the condition in a node's status that says whether it copies what it should. A node is provisioned without: no mirror
/// fails its node.
pub const MIRRORS_APPLIED: &str = "MirrorsApplied";

/// Type of the condition that says whether the node passes all health checks of its config, also those that failed before the last
/// change.
pub const HEALTHY: &str = "Healthy";

/// Type of the condition that says whether the node lacks something that its config asks for.
pub const DEGRADED: &str = "Degraded";

/// Type of the condition that says whether another program or a user keeps changing what Selvedge configures.
pub const DRIFTING: &str = "Drifting";

/// Annotation that makes a node try a config again that it has taken back; each new value counts once.
pub const RETRY_ANNOTATION: &str = "selvedge.dev/retry";

/// Annotation of a Node, or of its NodeNetworkConfig, that freezes the node: the agent applies no new config while it is there. Its
/// value says why.
pub const HOLD_ANNOTATION: &str = "selvedge.dev/hold";

/// Type of the condition that says whether the node is frozen by [`HOLD_ANNOTATION`].
pub const HELD: &str = "Held";

/// Everything one node must do. Written by the operator, one object for each node, named after it.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "NodeNetworkConfig",
    plural = "nodenetworkconfigs",
    shortname = "nnc",
    category = "selvedge",
    status = "NodeNetworkConfigStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Revision","type":"string","jsonPath":".spec.revision"}"#,
    printcolumn = r#"{"name":"Observed","type":"string","jsonPath":".status.observedRevision"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.configStatus"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct NodeNetworkConfigSpec {
    /// Version of the contract this object is written in.
    #[serde(default = "contract_version")]
    pub contract_version: u32,
    /// Revision that the forwarding part of this object comes from.
    pub revision: String,
    /// How the node is plugged into the fabric; the base of the router domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub underlay: Option<Underlay>,
    /// Layer 2 segments: those of VLANs by VLAN id, those of `L2VNI`s by `vni-` and their VNI.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub layer2s: BTreeMap<String, Layer2>,
    /// The VRF that the cluster itself lives in, and through which the others exchange routes.
    #[serde(
        default,
        rename = "clusterVRF",
        skip_serializing_if = "Option::is_none"
    )]
    pub cluster_vrf: Option<Arc<Vrf>>,
    /// VRFs that reach into the fabric, by name.
    #[serde(
        default,
        rename = "fabricVRFs",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub fabric_vrfs: BTreeMap<String, Arc<Vrf>>,
    /// VRFs of this node alone, which steer traffic by its source, by name.
    #[serde(
        default,
        rename = "localVRFs",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub local_vrfs: BTreeMap<String, Arc<Vrf>>,
    /// BGP sessions of the host in the fabric's own routing table, by the `namespace/name` of their `L3Passthrough`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub passthroughs: BTreeMap<String, HostSession>,
    /// VLANs on devices of the host's own, without the fabric, by the name of the device that is made.
    #[serde(
        default,
        rename = "hostVLANs",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub host_vlans: BTreeMap<String, HostVlan>,
    /// Loopbacks of the host, by the name of the device that is made.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub host_loopbacks: BTreeMap<String, HostLoopback>,
    /// What the node checks before it keeps this config.
    #[serde(default, skip_serializing_if = "Health::is_default")]
    pub health: Health,
}

fn contract_version() -> u32 {
    CONTRACT_VERSION
}

impl NodeNetworkConfigSpec {
    /// Every VRF with its name: the cluster's first, then the fabric's, then the node's own.
    pub fn vrfs(&self) -> impl Iterator<Item = &Vrf> {
        self.cluster_vrf
            .iter()
            .chain(self.fabric_vrfs.values())
            .chain(self.local_vrfs.values())
            .map(|vrf| &**vrf)
    }

    /// The Secrets that it refers to.
    pub fn password_secrets(&self) -> impl Iterator<Item = &SecretReference> {
        let fabric = self.underlay.iter().flat_map(|it| &it.neighbors);
        let fabric = fabric.filter_map(|neighbor| neighbor.password_secret.as_ref());
        let peers = self.vrfs().flat_map(|vrf| &vrf.bgp_peers);
        fabric.chain(peers.filter_map(|peer| peer.password_secret.as_ref()))
    }

    /// The same, to be changed.
    pub fn vrfs_mut(&mut self) -> impl Iterator<Item = &mut Arc<Vrf>> {
        self.cluster_vrf
            .iter_mut()
            .chain(self.fabric_vrfs.values_mut())
            .chain(self.local_vrfs.values_mut())
    }
}

/// What the node's agent reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeNetworkConfigStatus {
    /// How far the node is with the config.
    #[serde(default)]
    pub config_status: ConfigStatus,
    /// When this status last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_update: Option<String>,
    /// The revision this status speaks of. A status counts only while this equals `spec.revision`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_revision: Option<String>,
    /// The generation this status speaks of; it acknowledges changes that do not change the revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The last revision that was applied, whether it was confirmed or taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_applied_revision: Option<String>,
    /// The revision that kernel and FRR run; absent while a change is under way or its outcome is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_revision: Option<String>,
    /// The revision that was confirmed last: the node returns to it by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_revision: Option<String>,
    /// Why the config could not be applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// How long the confirmed config took on this node; absent after a restart of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timings: Option<Timings>,
    /// The AS number of the node's router.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_number: Option<i64>,
    /// The version of FRR on the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frr_version: Option<String>,
    /// Observed aspects of the node's state.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}

/// How long a config took on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Timings {
    /// Milliseconds from the journal entry to the applied and verified config.
    pub apply_milliseconds: i64,
    /// Milliseconds from the journal entry to the confirmation.
    pub confirm_milliseconds: i64,
}

/// How far a node is with its config.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConfigStatus {
    /// Nobody has looked at it yet.
    #[default]
    #[serde(rename = "")]
    Untouched,
    /// It is being applied.
    Provisioning,
    /// It is applied, verified by an empty second plan, and confirmed: nothing is less healthy than before.
    Provisioned,
    /// It could not be applied or was taken back; the node runs what was confirmed before.
    Invalid,
    /// The node was given back as it was, and runs nothing of it.
    Removed,
}
