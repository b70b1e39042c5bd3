//! Pods get SR-IOV devices of an attachment by a `NetworkAttachmentDefinition` that carries its VLAN.
//!
//! Physical functions and the number of their virtual functions are the platform's own affair: nothing here makes a device.

use api::{
    meta::LabelSelector,
    selvedge::{SriovKind, SriovPlatform},
    value::{IfName, VlanId},
};
use serde::Serialize;
use serde_json::json;

use super::PlatformObject;
use crate::{
    lower::SriovDevices,
    memo::Index,
    snapshot::{Key, Kind, ObjectRef, kinds},
    view::{View, reference},
};

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

/// The resource that virtual functions are offered as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resource<'a> {
    pub(crate) name: &'a str,
    /// Whether it is for attachments of some nodes alone.
    pub(crate) is_of_nodes: bool,
}

/// The resource of an attachment on this device and these nodes: the first that is for it, else the one for all others.
///
/// A resource of some nodes is for attachments whose selector requires what the resource's requires. Which nodes there are does not matter:
/// no node that joins or is labelled gives an attachment another resource.
pub(crate) fn resource<'a>(
    settings: &'a SriovPlatform,
    interface_ref: Option<&IfName>,
    node_selector: Option<&LabelSelector>,
) -> Resource<'a> {
    let mut resources = settings.resources.iter();
    let found = resources.find(|one| {
        let wanted = one.interface_ref.as_deref();
        let is_of_device = wanted.is_none() || wanted == interface_ref.map(IfName::as_str);
        let nodes = one.node_selector.as_ref();
        is_of_device && nodes.is_none_or(|nodes| requires(node_selector, nodes))
    });
    match found {
        Some(found) => Resource {
            name: &found.resource_name,
            is_of_nodes: found.node_selector.is_some(),
        },
        None => Resource {
            name: &settings.resource_name,
            is_of_nodes: false,
        },
    }
}

/// Whether a selector requires everything that another one requires.
fn requires(selector: Option<&LabelSelector>, other: &LabelSelector) -> bool {
    selector.is_some_and(|selector| {
        let mut labels = other.match_labels.iter();
        let mut expressions = other.match_expressions.iter();
        labels.all(|(key, value)| selector.match_labels.get(key) == Some(value))
            && expressions.all(|one| selector.match_expressions.contains(one))
    })
}

/// The attachments with SR-IOV devices on a device of the node, by their resource.
pub(crate) struct DevicesByResource;
impl Index for DevicesByResource {
    type Source = Key;
    type Key = String;
    type Item = (IfName, Key);
    fn sources(view: &View<'_>) -> Vec<Key> {
        view.keys::<kinds::Layer2Attachment>().to_vec()
    }
    fn entries(view: &View<'_>, key: &Key) -> Vec<(String, Self::Item)> {
        let spec = view.spec::<kinds::Layer2Attachment>(key);
        let spec = spec.filter(|spec| spec.sriov.as_ref().is_some_and(|sriov| sriov.enabled));
        let entry = spec.and_then(|spec| {
            let device = spec.interface_ref.clone()?;
            let settings = view.settings();
            let selector = spec.node_selector.as_ref();
            let resource = resource(&settings.platform.sriov, Some(&device), selector);
            Some((resource.name.to_owned(), (device, key.clone())))
        });
        entry.into_iter().collect()
    }
}

/// An attachment on another device whose virtual functions are the same resource, if there is one.
pub(crate) fn other_device(
    view: &View<'_>,
    resource: &str,
    device: &IfName,
) -> Option<(IfName, ObjectRef)> {
    let devices = view.who::<DevicesByResource>(&resource.to_owned());
    let (other, key) = devices.iter().find(|(other, _)| other != device)?;
    Some((other.clone(), reference(Kind::Layer2Attachment, key)))
}

/// The network of an attachment's SR-IOV devices.
pub(super) fn attachment(
    settings: &SriovPlatform,
    subject: &ObjectRef,
    devices: &SriovDevices,
) -> PlatformObject {
    let vlan = devices.vlan;
    let selector = devices.node_selector.as_ref();
    let resource = resource(settings, devices.interface_ref.as_ref(), selector);
    let name = subject.key.name.to_string();
    let owner = subject.clone();
    match settings.kind {
        SriovKind::SriovNetwork => {
            let network = SriovNetwork {
                resource_name: resource.name,
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
            let resource = format!("{}/{}", settings.resource_prefix, resource.name);
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
