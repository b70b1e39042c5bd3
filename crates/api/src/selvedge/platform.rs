//! Where objects for other programs are written, and in which form.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{meta::LabelSelector, schema::rules};

/// Where objects for other programs are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Platform {
    /// MetalLB's pools and advertisements.
    #[serde(default = "metallb")]
    pub metallb: Namespaced,
    /// Coil's egress gateways.
    #[serde(default = "coil")]
    pub coil: Namespaced,
    /// Calico's pools and policies.
    #[serde(default)]
    pub calico: Calico,
    /// Networks of SR-IOV devices.
    #[serde(default)]
    pub sriov: SriovPlatform,
}

/// Calico's objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Calico {
    /// The namespace its objects are written to.
    #[serde(default = "calico_namespace")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Group and version of its objects. `crd.projectcalico.org/v1` is for clusters without Calico's API server.
    #[serde(default)]
    pub api_version: CalicoApiVersion,
}

/// Group and version of Calico's objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CalicoApiVersion {
    /// What Calico's API server serves.
    #[default]
    #[serde(rename = "projectcalico.org/v3")]
    V3,
    /// What Calico stores.
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

/// Networks of SR-IOV devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SriovPlatform {
    /// What is written for an attachment: an object of the SR-IOV network operator, which makes the `NetworkAttachmentDefinition`, or,
    /// in a cluster without that operator, the `NetworkAttachmentDefinition` itself.
    #[serde(default)]
    pub kind: SriovKind,
    /// Namespace of the SR-IOV network operator.
    #[serde(default = "sriov_namespace")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Namespace of the `NetworkAttachmentDefinition`s. Pods of other namespaces name it when they ask for one.
    #[serde(default = "sriov_network_namespace")]
    #[schemars(length(min = 1, max = 63))]
    pub network_namespace: String,
    /// The resource that the SR-IOV device plugin offers the virtual functions as, where none of `resources` is for an attachment.
    #[serde(default = "sriov_resource_name")]
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-zA-Z0-9_]+$"))]
    pub resource_name: String,
    /// Prefix of all these resources.
    #[serde(default = "sriov_resource_prefix")]
    #[schemars(length(min = 1, max = 253))]
    pub resource_prefix: String,
    /// Resources of some attachments, by device and nodes. The first that is for an attachment counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub resources: Vec<SriovResource>,
}

/// The resource that the virtual functions of some attachments are offered as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([(
    "has(self.interfaceRef) || has(self.nodeSelector)",
    "interfaceRef or nodeSelector is required: it says which attachments the resource is for",
)])))]
pub struct SriovResource {
    /// The resource that the SR-IOV device plugin offers the virtual functions as.
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-zA-Z0-9_]+$"))]
    pub resource_name: String,
    /// `interfaceRef` of the attachments: the device that the virtual functions belong to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 15))]
    pub interface_ref: Option<String>,
    /// What `nodeSelector` of the attachments requires, perhaps among other labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<LabelSelector>,
}

/// What is written for an attachment with SR-IOV devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SriovKind {
    /// An object of the SR-IOV network operator.
    #[default]
    SriovNetwork,
    /// What a pod asks for by its annotation.
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

/// A program's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Namespaced {
    /// The namespace its objects are written to.
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
