//! Pods get SR-IOV devices of an attachment by a `NetworkAttachmentDefinition` that carries its VLAN.
//!
//! Physical functions and the number of their virtual functions are the platform's own affair: nothing here makes a device.

use api::{
    selvedge::{SriovKind, SriovPlatform},
    value::VlanId,
};
use serde::Serialize;
use serde_json::json;

use super::PlatformObject;
use crate::snapshot::ObjectRef;

const OPERATOR_API_VERSION: &str = "sriovnetwork.openshift.io/v1";
const MULTUS_API_VERSION: &str = "k8s.cni.cncf.io/v1";

pub(super) const KINDS: [super::Kinds; 2] = [
    (OPERATOR_API_VERSION, &[("SriovNetwork", "sriovnetworks")]),
    (
        MULTUS_API_VERSION,
        &[(
            "NetworkAttachmentDefinition",
            "network-attachment-definitions",
        )],
    ),
];

/// What the SR-IOV network operator makes a `NetworkAttachmentDefinition` of.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SriovNetwork<'a> {
    resource_name: &'a str,
    network_namespace: &'a str,
    vlan: VlanId,
}

/// Configuration of the SR-IOV CNI plugin. Pods manage their addresses themselves.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Plugin<'a> {
    cni_version: &'static str,
    name: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    vlan: VlanId,
    ipam: serde_json::Map<String, serde_json::Value>,
}

/// The network of an attachment's SR-IOV devices.
pub(super) fn attachment(
    settings: &SriovPlatform,
    subject: &ObjectRef,
    vlan: VlanId,
) -> PlatformObject {
    let name = subject.key.name.to_string();
    let owner = subject.clone();
    match settings.kind {
        SriovKind::SriovNetwork => {
            let network = SriovNetwork {
                resource_name: &settings.resource_name,
                network_namespace: &settings.network_namespace,
                vlan,
            };
            PlatformObject {
                api_version: OPERATOR_API_VERSION,
                kind: "SriovNetwork",
                namespace: Some(settings.namespace.clone()),
                body: json!({ "spec": network }),
                annotations: json!({}),
                name,
                owner,
            }
        }
        SriovKind::NetworkAttachmentDefinition => {
            let plugin = Plugin {
                cni_version: "1.0.0",
                name: &name,
                kind: "sriov",
                vlan,
                ipam: serde_json::Map::new(),
            };
            let config = json!(plugin).to_string();
            let resource = format!("{}/{}", settings.resource_prefix, settings.resource_name);
            PlatformObject {
                api_version: MULTUS_API_VERSION,
                kind: "NetworkAttachmentDefinition",
                namespace: Some(settings.network_namespace.clone()),
                body: json!({"spec": {"config": config}}),
                annotations: json!({"k8s.v1.cni.cncf.io/resourceName": resource}),
                name,
                owner,
            }
        }
    }
}
