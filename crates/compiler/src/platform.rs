//! Objects for other programs of the cluster: what services become beside routes. The one place that knows those programs' kinds,
//! versions and fields.

pub(crate) mod calico;
pub(crate) mod coil;
pub mod in_cluster;
pub mod ipam;
pub(crate) mod metallb;
pub(crate) mod sriov;
pub mod state;

use std::sync::Arc;

use api::selvedge::{CalicoApiVersion, Platform};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    lower::{MergedIntent, Service, intent, merge::Merged},
    memo::Query,
    mirror::HasMirrors,
    problem::{self, Problem},
    snapshot::{Key, ObjectRef, Role, kinds},
    view::View,
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

/// The annotation of an object that names what it was made for.
pub const GENERATED_FROM: &str = "selvedge.dev/generated-from";

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
            annotations.insert(GENERATED_FROM.to_owned(), owner);
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

/// What tells an object of another program from every other.
pub type Identity = (&'static str, &'static str, Option<String>, String);

impl PlatformObject {
    /// Its kind.
    pub fn platform_kind(&self) -> Option<PlatformKind> {
        kinds().find(|kind| (kind.api_version, kind.kind) == (self.api_version, self.kind))
    }

    /// Group and version, kind, namespace and name.
    pub fn identity(&self) -> Identity {
        let Self {
            api_version,
            kind,
            namespace,
            name,
            ..
        } = self;
        (api_version, kind, namespace.clone(), name.clone())
    }
}

/// A kind of another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlatformKind {
    /// Group and newest version.
    pub api_version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// The name of its objects in the API.
    pub plural: &'static str,
}

impl PlatformKind {
    /// Group and versions in which its objects can be written, the newest first. A cluster may serve an older one alone.
    pub fn api_versions(self) -> impl Iterator<Item = &'static str> {
        let older = ipam::older_api_versions(self.api_version).iter().copied();
        std::iter::once(self.api_version).chain(older)
    }
}

/// All kinds of other programs that objects are written of.
pub fn kinds() -> impl Iterator<Item = PlatformKind> {
    [metallb::KINDS, coil::KINDS, ipam::KINDS]
        .into_iter()
        .chain(sriov::KINDS)
        .chain(calico::KINDS)
        .flat_map(|(api_version, kinds)| {
            kinds.iter().map(move |(kind, plural)| PlatformKind {
                api_version,
                kind,
                plural,
            })
        })
}

/// The kinds of a program under one group and version, each with its plural.
type Kinds = (&'static str, &'static [(&'static str, &'static str)]);

/// Objects of other programs.
pub(crate) type PlatformObjects = Arc<Vec<Arc<PlatformObject>>>;

/// What an intent needs of the platform.
pub(crate) struct PlatformOf;
impl Query for PlatformOf {
    type Key = ObjectRef;
    type Value = PlatformObjects;
    fn compute(view: &View<'_>, subject: &ObjectRef) -> PlatformObjects {
        let settings = &view.settings().platform;
        let merged = view.get::<Merged>(subject);
        let mut objects = Vec::new();
        if let Some(service) = merged.service.as_ref().filter(|service| service.is_sound) {
            objects.extend(of_service(view, settings, subject, service));
        }
        let attachment = merged.attachment.as_ref();
        if let Some(devices) = attachment.and_then(|attachment| attachment.sriov.as_ref()) {
            objects.push(sriov::attachment(&settings.sriov, subject, devices));
        }
        Arc::new(objects.into_iter().map(Arc::new).collect())
    }
}

/// The claims of addresses that each node needs.
pub(crate) struct ClaimsOf;
impl Query for ClaimsOf {
    type Key = Key;
    type Value = PlatformObjects;
    fn compute(view: &View<'_>, node: &Key) -> PlatformObjects {
        let claims = ipam::claims(view, node).into_iter();
        Arc::new(claims.map(Arc::new).collect())
    }
}

/// Whether any node needs a claim, or may hold one.
pub(crate) struct HasClaims;
impl Query for HasClaims {
    type Key = ();
    type Value = bool;
    fn compute(view: &View<'_>, (): &()) -> bool {
        view.get::<HasMirrors>(&()) || !view.keys::<kinds::IpAddressClaim>().is_empty()
    }
}

/// What one service is on the platform.
fn of_service(
    view: &View<'_>,
    settings: &Platform,
    subject: &ObjectRef,
    service: &Service,
) -> Vec<PlatformObject> {
    let mut objects = intent::on_platform(view, settings, subject, service);
    if settings.calico.api_version == CalicoApiVersion::Stored {
        objects = objects.into_iter().map(calico::as_stored).collect();
    }
    objects
}

/// Whether what stands on the platform for an intent stays as it is: something is wrong with the intent.
pub(crate) fn is_kept(subject: &ObjectRef, merged: &MergedIntent) -> bool {
    match subject.kind.role() {
        Role::Attachment => merged.attachment.is_none(),
        Role::Service => {
            let service = merged.service.as_ref();
            !service.is_some_and(|service| service.is_sound)
        }
        Role::Other => false,
    }
}

/// Whether what stands on the platform for an object stays because the object cannot be read.
pub(crate) fn is_kept_unread(problem: &Problem) -> bool {
    let has_objects = problem.subject.kind.role() != Role::Other;
    has_objects && matches!(problem.kind, problem::Kind::Unreadable { .. })
}
