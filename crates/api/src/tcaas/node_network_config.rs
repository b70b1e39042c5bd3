//! The contract between control plane and node: the complete configuration of one node, without any decision left to the agent.
//!
//! The spec keeps the shape of the existing system (`layer2s`, `clusterVRF`, `fabricVRFs`, `localVRFs`) and adds what
//! makes it complete: device names, tables, addresses of the router, and the underlay. Names are made in one module of
//! the compiler; the agent derives none.

mod bgp;
mod filter;
mod host;
mod host_router;
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
    host_router::{
        AcceptedPrefix, HostAdvertise, HostBgp, HostNeighbor, HostReceive, HostRouter,
        HostRouterStatus, HostVni, MarkedPrefixes, MissingDevice, MissingKind, PreferredPrefixes,
        RawLines, RefusedLine, UnsupportedField,
    },
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
/// An agent that receives a newer one keeps its configuration and reports that.
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

/// Complete network configuration of one node. Written by the operator, one object per node, with the name of the node; read-only for
/// users.
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
    /// Version of the format of this object. An agent keeps its configuration if the version is newer than the one it supports.
    #[serde(default = "contract_version")]
    pub contract_version: u32,
    /// Revision from which the forwarding part of this object was compiled.
    pub revision: String,
    /// Connection of the node to the fabric. Absent on a node without an Underlay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub underlay: Option<Underlay>,
    /// Layer 2 segments of the fabric. Key: the VLAN ID, or `vni-<VNI>` for segments of an `L2VNI`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub layer2s: BTreeMap<String, Layer2>,
    /// VRF of the cluster itself. The other VRFs exchange routes through it.
    #[serde(
        default,
        rename = "clusterVRF",
        skip_serializing_if = "Option::is_none"
    )]
    pub cluster_vrf: Option<Arc<Vrf>>,
    /// VRFs that are connected to the fabric, by name.
    #[serde(
        default,
        rename = "fabricVRFs",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub fabric_vrfs: BTreeMap<String, Arc<Vrf>>,
    /// Local VRFs of this node for source-based routing, by name.
    #[serde(
        default,
        rename = "localVRFs",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub local_vrfs: BTreeMap<String, Arc<Vrf>>,
    /// BGP sessions of the host in the default routing table of the fabric, by the `namespace/name` of their `L3Passthrough`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub passthroughs: BTreeMap<String, HostSession>,
    /// VLANs on existing devices of the host, without the fabric, by the name of the VLAN device.
    #[serde(
        default,
        rename = "hostVLANs",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub host_vlans: BTreeMap<String, HostVlan>,
    /// Loopback devices of the host, by device name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub host_loopbacks: BTreeMap<String, HostLoopback>,
    /// BGP router in the namespace of the host. Absent on a node that no `FRRConfiguration` selects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_router: Option<Arc<HostRouter>>,
    /// Health checks that must pass before the node confirms this config.
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
        let host = self.host_router.iter().flat_map(|it| it.routers.values());
        let host = host.flat_map(|router| &router.neighbors);
        fabric
            .chain(peers.filter_map(|peer| peer.password_secret.as_ref()))
            .chain(host.filter_map(|neighbor| neighbor.password_secret.as_ref()))
    }

    /// The same, to be changed.
    pub fn vrfs_mut(&mut self) -> impl Iterator<Item = &mut Arc<Vrf>> {
        self.cluster_vrf
            .iter_mut()
            .chain(self.fabric_vrfs.values_mut())
            .chain(self.local_vrfs.values_mut())
    }
}

/// State reported by the agent of the node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeNetworkConfigStatus {
    /// State of the config on the node: empty, `provisioning`, `provisioned`, `invalid` or `removed`.
    #[serde(default)]
    pub config_status: ConfigStatus,
    /// Time of the last change of this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_update: Option<String>,
    /// Revision that this status refers to. The status is valid only while this equals `spec.revision`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_revision: Option<String>,
    /// `metadata.generation` that this status refers to. It acknowledges changes that do not change the revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Last revision that was applied, whether it was confirmed or rolled back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_applied_revision: Option<String>,
    /// Revision that kernel and FRR run. Absent while a change is in progress or its outcome is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_revision: Option<String>,
    /// Last confirmed revision. The node rolls back to it without the API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_revision: Option<String>,
    /// Error message if the config could not be applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Time that applying the confirmed config took. Absent after a restart of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timings: Option<Timings>,
    /// AS number of the BGP router on the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_number: Option<i64>,
    /// Version of FRR on the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frr_version: Option<String>,
    /// State of the host's BGP router. Absent on a node that has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_router: Option<HostRouterStatus>,
    /// Ports on the host that are not attached to the bridge that the config names. Everything else of their segments is applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unattached: Vec<UnattachedPort>,
    /// Conditions of the node, such as `Healthy`, `Degraded`, `Drifting`, `Held` and `MirrorsApplied`.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}

/// A port that is not attached to its bridge.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnattachedPort {
    /// Name of the port on the host, such as `host-210`.
    pub port: String,
    /// Name of the bridge.
    pub bridge: String,
    /// Why the port is not attached: the bridge does not exist, or the device of that name is no bridge.
    pub message: String,
}

/// Durations of applying a config on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Timings {
    /// Time from the journal entry to the applied and verified config, in milliseconds.
    pub apply_milliseconds: i64,
    /// Time from the journal entry to the confirmation, in milliseconds.
    pub confirm_milliseconds: i64,
}

/// How far a node is with its config.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConfigStatus {
    /// The agent has not processed the config yet.
    #[default]
    #[serde(rename = "")]
    Untouched,
    /// The config is being applied.
    Provisioning,
    /// The config is applied, verified by an empty second plan, and confirmed by health checks.
    Provisioned,
    /// The config could not be applied or was rolled back; the node runs the last confirmed config.
    Invalid,
    /// The configuration was removed from the node.
    Removed,
}
