//! Where objects for other programs are written, and in which form.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{meta::LabelSelector, schema::rules};

/// Namespaces and formats of generated objects for other programs, such as MetalLB.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Platform {
    /// MetalLB: pools and advertisements of `Inbound`s.
    #[serde(default = "metallb")]
    pub metallb: Namespaced,
    /// Coil: `Egress` gateways of `Outbound`s.
    #[serde(default = "coil")]
    pub coil: Namespaced,
    /// Calico: IP pools and network policies.
    #[serde(default)]
    pub calico: Calico,
    /// SR-IOV: networks and resources.
    #[serde(default)]
    pub sriov: SriovPlatform,
}

/// Generated objects for Calico.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Calico {
    /// Namespace of the generated objects. Default: `kube-system`.
    #[serde(default = "calico_namespace")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// API version of the generated objects. Use `crd.projectcalico.org/v1` in clusters without the Calico API server. Default:
    /// `projectcalico.org/v3`.
    #[serde(default)]
    pub api_version: CalicoApiVersion,
}

/// API version of objects for Calico.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CalicoApiVersion {
    /// Served by the Calico API server.
    #[default]
    #[serde(rename = "projectcalico.org/v3")]
    V3,
    /// Storage format of Calico.
    #[serde(rename = "crd.projectcalico.org/v1")]
    Stored,
}

impl Default for Calico {
    fn default() -> Self {
        Self {
            namespace: calico_namespace(),
            api_version: CalicoApiVersion::default(),
        }
    }
}

/// SR-IOV: networks and resources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SriovPlatform {
    /// Kind of generated object: `SriovNetwork` for the SR-IOV network operator, or `NetworkAttachmentDefinition` in clusters without
    /// it. Default: `SriovNetwork`.
    #[serde(default)]
    pub kind: SriovKind,
    /// Namespace of the SR-IOV network operator. Default: `sriov-network-operator`.
    #[serde(default = "sriov_namespace")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Namespace of the `NetworkAttachmentDefinition`s. Pods in other namespaces must include it in their annotation. Default:
    /// `default`.
    #[serde(default = "sriov_network_namespace")]
    #[schemars(length(min = 1, max = 63))]
    pub network_namespace: String,
    /// Resource name under which the SR-IOV device plugin offers the virtual functions, if no entry of `resources` matches. Default:
    /// `sriov`.
    #[serde(default = "sriov_resource_name")]
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-zA-Z0-9_]+$"))]
    pub resource_name: String,
    /// Prefix of all resource names. Default: `openshift.io`.
    #[serde(default = "sriov_resource_prefix")]
    #[schemars(length(min = 1, max = 253))]
    pub resource_prefix: String,
    /// Resource names by device and node selector. The first entry that matches an attachment is used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub resources: Vec<SriovResource>,
}

/// Resource name for the virtual functions of some attachments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([(
    "has(self.interfaceRef) || has(self.nodeSelector)",
    "interfaceRef or nodeSelector is required: it says which attachments the resource is for",
)])))]
pub struct SriovResource {
    /// Resource name under which the SR-IOV device plugin offers the virtual functions, such as `mlx_sriov`.
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-zA-Z0-9_]+$"))]
    pub resource_name: String,
    /// Matches attachments with this `interfaceRef`: the device to which the virtual functions belong, such as `ens1f0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 15))]
    pub interface_ref: Option<String>,
    /// Matches attachments whose `nodeSelector` requires these labels. It can require further labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<LabelSelector>,
}

/// Kind of object that is generated for an attachment with SR-IOV devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SriovKind {
    /// Object of the SR-IOV network operator.
    #[default]
    SriovNetwork,
    /// Object that pods reference in their annotation.
    NetworkAttachmentDefinition,
}

fn sriov_namespace() -> String {
    "sriov-network-operator".to_owned()
}

fn sriov_network_namespace() -> String {
    "default".to_owned()
}

fn sriov_resource_name() -> String {
    "sriov".to_owned()
}

fn sriov_resource_prefix() -> String {
    "openshift.io".to_owned()
}

impl Default for SriovPlatform {
    fn default() -> Self {
        Self {
            kind: SriovKind::default(),
            namespace: sriov_namespace(),
            network_namespace: sriov_network_namespace(),
            resource_name: sriov_resource_name(),
            resource_prefix: sriov_resource_prefix(),
            resources: Vec::new(),
        }
    }
}

/// Namespace of objects for another program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Namespaced {
    /// Namespace of the generated objects.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
}

fn metallb() -> Namespaced {
    Namespaced {
        namespace: "metallb-system".to_owned(),
    }
}

fn coil() -> Namespaced {
    Namespaced {
        namespace: "kube-system".to_owned(),
    }
}

fn calico_namespace() -> String {
    "kube-system".to_owned()
}

impl Default for Platform {
    fn default() -> Self {
        Self {
            metallb: metallb(),
            coil: coil(),
            calico: Calico::default(),
            sriov: SriovPlatform::default(),
        }
    }
}
