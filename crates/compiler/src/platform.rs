//! Objects for other programs of the cluster: what services become beside routes. The one place that knows those programs' kinds,
//! versions and fields.

mod calico;
mod coil;
pub mod ipam;
mod metallb;
mod sriov;

use std::{collections::BTreeSet, sync::Arc};

use api::selvedge::{CalicoApiVersion, Platform};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    Compilation,
    lower::{Differences, Lowered, Service, Touched},
    problem,
    snapshot::{Kind, ObjectRef, Snapshot},
};

/// An object of another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlatformObject {
    /// Group and version.
    pub api_version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Namespace, where the kind has one.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// The intent it is made for, or the node's config that needs it.
    pub owner: ObjectRef,
    /// All of it but type and metadata.
    pub body: Value,
    /// Annotations that the program reads.
    pub annotations: Value,
}

#[derive(Serialize)]
struct Metadata<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    annotations: Value,
}

impl PlatformObject {
    /// The object as it is written.
    pub fn manifest(&self) -> Value {
        let mut annotations = self.annotations.clone();
        if let Some(annotations) = annotations.as_object_mut() {
            let owner = json!(self.owner);
            annotations.insert("selvedge.dev/generated-from".to_owned(), owner);
        }
        let metadata = Metadata {
            name: &self.name,
            namespace: self.namespace.as_deref(),
            annotations,
        };
        let mut manifest = json!({
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": metadata,
        });
        if let (Some(manifest), Some(body)) = (manifest.as_object_mut(), self.body.as_object()) {
            manifest.extend(body.clone());
        }
        manifest
    }
}

/// Brings up to date what services, attachments and nodes need of the platform, sorted by kind and name.
pub(crate) fn update(compilation: &mut Compilation, snapshot: &Snapshot, touched: &Touched) {
    let Compilation {
        lowered,
        revision,
        nodes,
        platform: objects,
        ..
    } = compilation;
    let settings = &revision.content.settings.platform;
    let add = |objects: &mut Vec<_>, subject: &ObjectRef, service: &Service| {
        if service.is_sound {
            let made = of_service(snapshot, settings, subject, service);
            objects.extend(made.into_iter().map(Arc::new));
        }
    };
    match touched {
        Touched::All => {
            objects.clear();
            for (subject, service) in &lowered.services {
                add(objects, subject, service);
            }
        }
        Touched::These(Differences { intents, .. }) => {
            // What attachments and nodes need is little, and made again.
            objects.retain(|object| {
                let owner = &object.owner;
                is_service(owner.kind) && !intents.contains(owner)
            });
            for subject in intents {
                if let Some(service) = lowered.services.get(subject) {
                    add(objects, subject, service);
                }
            }
        }
    }
    let claims = ipam::claims(snapshot, nodes, &revision.fingerprint);
    objects.extend(claims.into_iter().map(Arc::new));
    for (name, attachment) in &lowered.attachments {
        if let Some(vlan) = attachment.sriov_vlan {
            let subject = ObjectRef::named(Kind::Layer2Attachment, name);
            let object = sriov::attachment(&settings.sriov, &subject, vlan);
            objects.push(Arc::new(object));
        }
    }
    objects.sort_by(|a, b| identity(a).cmp(&identity(b)));
}

fn is_service(kind: Kind) -> bool {
    matches!(kind, Kind::Inbound | Kind::Outbound | Kind::PodNetwork)
}

/// What one service is on the platform.
fn of_service(
    snapshot: &Snapshot,
    settings: &Platform,
    subject: &ObjectRef,
    service: &Service,
) -> Vec<PlatformObject> {
    let mut objects = Vec::new();
    match subject.kind {
        Kind::Inbound => {
            if let Some(inbound) = snapshot.inbounds.get(&subject.key) {
                let made = metallb::inbound(settings, subject, &inbound.spec, service);
                objects.extend(made);
            }
        }
        Kind::Outbound => {
            if let Some(outbound) = snapshot.outbounds.get(&subject.key) {
                let spec = &outbound.spec;
                objects.push(coil::outbound(settings, subject, spec, service));
                objects.extend(calico::outbound(settings, subject, service));
            }
        }
        Kind::PodNetwork => objects.extend(calico::pod_network(subject, service)),
        _ => {}
    }
    if settings.calico.api_version == CalicoApiVersion::Stored {
        objects = objects.into_iter().map(calico::as_stored).collect();
    }
    objects
}

fn identity(object: &PlatformObject) -> impl Ord + use<'_> {
    let PlatformObject {
        api_version,
        kind,
        namespace,
        name,
        ..
    } = object;
    (api_version, kind, namespace, name)
}

/// The intents that something is wrong with, also those that cannot be read.
pub fn keeps(snapshot: &Snapshot, lowered: &Lowered) -> BTreeSet<ObjectRef> {
    let broken =
        |(subject, service): (&ObjectRef, &Service)| (!service.is_sound).then(|| subject.clone());
    let unreadable = snapshot.unreadable.iter().filter(|problem| {
        let has_objects = matches!(
            problem.subject.kind,
            Kind::Inbound | Kind::Outbound | Kind::PodNetwork | Kind::Layer2Attachment
        );
        has_objects && matches!(problem.kind, problem::Kind::Unreadable { .. })
    });
    let unreadable = unreadable.map(|problem| problem.subject.clone());
    let attachments = snapshot.layer2_attachments.keys();
    let attachments = attachments.filter(|key| !lowered.attachments.contains_key(&key.name));
    let attachments = attachments.map(|key| ObjectRef {
        kind: Kind::Layer2Attachment,
        key: key.clone(),
    });
    lowered
        .services
        .iter()
        .filter_map(broken)
        .chain(unreadable)
        .chain(attachments)
        .collect()
}
