//! Objects of other programs, as watches report them.

use std::collections::BTreeMap;

use compiler::platform::PlatformKind;
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::api::{DynamicObject, ObjectMeta};

/// What a watch reports about its kind.
#[derive(Debug)]
pub(crate) enum Change {
    /// A list begins, in this group and version.
    ListStarted(&'static str),
    /// An object of the list, or one that was created or changed.
    Applied(Box<DynamicObject>),
    /// All objects of the list have been reported.
    ListCompleted,
    /// An object was deleted.
    Deleted(Box<DynamicObject>),
    /// The watch failed, with the reason. A list follows once it works again.
    Failed(String),
    /// The API server does not serve the kind.
    NotServed,
}

/// Namespace and name.
pub(crate) type Name = (Option<String>, String);

/// What is known about one kind.
#[derive(Debug)]
pub(crate) enum Known {
    NotServed,
    /// It could not be listed yet, for this reason.
    NotListed(String),
    Listed(Listed),
}

/// Our objects of one kind.
#[derive(Debug)]
pub(crate) struct Listed {
    /// Group and version in which they are read and written.
    pub(crate) served: &'static str,
    pub(crate) objects: BTreeMap<Name, Box<DynamicObject>>,
    /// Why they may not be what they were: the watch does not work at the moment.
    pub(crate) failing: Option<String>,
}

/// What is known about kinds of other programs.
#[derive(Debug, Default)]
pub(crate) struct Store {
    /// The kinds with at least one event.
    kinds: BTreeMap<PlatformKind, Known>,
    /// Objects of a list that has begun.
    listing: BTreeMap<PlatformKind, Listed>,
}

impl Store {
    /// Takes in what a watch reports. True if more is different than versions and what other programs report in statuses.
    pub(crate) fn apply(&mut self, kind: PlatformKind, change: Change) -> bool {
        match change {
            Change::ListStarted(served) => {
                let listed = Listed {
                    served,
                    objects: BTreeMap::new(),
                    failing: None,
                };
                self.listing.insert(kind, listed);
                false
            }
            Change::Applied(object) => {
                let name = name(&object);
                if let Some(listing) = self.listing.get_mut(&kind) {
                    listing.objects.insert(name, object);
                    false
                } else if let Some(Known::Listed(listed)) = self.kinds.get_mut(&kind) {
                    let known = listed.objects.get(&name);
                    let is_new = known.is_none_or(|known| !is_same(known, &object));
                    listed.objects.insert(name, object);
                    is_new
                } else {
                    false
                }
            }
            Change::ListCompleted => match self.listing.remove(&kind) {
                Some(listed) => {
                    let is_new = match self.kinds.get(&kind) {
                        Some(Known::Listed(known)) => !known.is_same(&listed),
                        Some(Known::NotServed | Known::NotListed(_)) | None => true,
                    };
                    self.kinds.insert(kind, Known::Listed(listed));
                    is_new
                }
                None => false,
            },
            Change::Deleted(object) => match self.kinds.get_mut(&kind) {
                Some(Known::Listed(listed)) => listed.objects.remove(&name(&object)).is_some(),
                Some(Known::NotServed | Known::NotListed(_)) | None => false,
            },
            Change::Failed(reason) => {
                self.listing.remove(&kind);
                if let Some(Known::Listed(listed)) = self.kinds.get_mut(&kind) {
                    listed.failing.replace(reason.clone()) != Some(reason)
                } else {
                    let known = self.kinds.insert(kind, Known::NotListed(reason.clone()));
                    !matches!(known, Some(Known::NotListed(known)) if known == reason)
                }
            }
            Change::NotServed => {
                self.listing.remove(&kind);
                let known = self.kinds.insert(kind, Known::NotServed);
                let is_new = !matches!(known, Some(Known::NotServed));
                if is_new {
                    tracing::info!(
                        kind = kind.kind,
                        group = kind.api_version,
                        "the API server does not serve this kind"
                    );
                }
                is_new
            }
        }
    }

    pub(crate) fn get(&self, kind: PlatformKind) -> Option<&Known> {
        self.kinds.get(&kind)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&PlatformKind, &Known)> {
        self.kinds.iter()
    }

    /// Takes in what the API server stored; nothing where an object was deleted.
    pub(crate) fn written(
        &mut self,
        kind: PlatformKind,
        name: &Name,
        stored: Option<DynamicObject>,
    ) {
        let Some(Known::Listed(listed)) = self.kinds.get_mut(&kind) else {
            return;
        };
        match stored {
            Some(stored) => drop(listed.objects.insert(name.clone(), Box::new(stored))),
            // It may stay until its finalizers are removed: its watch reports its deletion.
            None => {
                if let Some(stored) = listed.objects.get_mut(name) {
                    stored.metadata.deletion_timestamp = Some(Time(Timestamp::now()));
                }
            }
        }
    }
}

impl Listed {
    /// Whether two lists differ in nothing that a step depends on.
    fn is_same(&self, other: &Self) -> bool {
        let mut pairs = self.objects.iter().zip(&other.objects);
        self.served == other.served
            && self.failing == other.failing
            && self.objects.len() == other.objects.len()
            && pairs.all(|((name, one), (of, another))| name == of && is_same(one, another))
    }
}

/// Whether two states of an object differ in nothing but versions, statuses, and the notes about who wrote what.
fn is_same(one: &DynamicObject, another: &DynamicObject) -> bool {
    let metadata = |object: &DynamicObject| ObjectMeta {
        resource_version: None,
        managed_fields: None,
        generation: None,
        ..object.metadata.clone()
    };
    let parts = |object: &DynamicObject| {
        let mut parts = object.data.as_object().cloned().unwrap_or_default();
        parts.remove("status");
        parts
    };
    metadata(one) == metadata(another) && parts(one) == parts(another)
}

fn name(object: &DynamicObject) -> Name {
    let metadata = &object.metadata;
    let name = metadata.name.clone().unwrap_or_default();
    (metadata.namespace.clone(), name)
}
