//! Objects of other programs, as watches report them.

use std::collections::BTreeMap;

use compiler::platform::PlatformKind;
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::api::DynamicObject;

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
    /// The kinds that something has been heard of.
    kinds: BTreeMap<PlatformKind, Known>,
    /// Objects of a list that has begun.
    listing: BTreeMap<PlatformKind, Listed>,
}

impl Store {
    /// Takes in what a watch reports.
    pub(crate) fn apply(&mut self, kind: PlatformKind, change: Change) {
        match change {
            Change::ListStarted(served) => {
                let listed = Listed {
                    served,
                    objects: BTreeMap::new(),
                    failing: None,
                };
                self.listing.insert(kind, listed);
            }
            Change::Applied(object) => {
                let name = name(&object);
                if let Some(listing) = self.listing.get_mut(&kind) {
                    listing.objects.insert(name, object);
                } else if let Some(Known::Listed(listed)) = self.kinds.get_mut(&kind) {
                    listed.objects.insert(name, object);
                }
            }
            Change::ListCompleted => {
                if let Some(listed) = self.listing.remove(&kind) {
                    self.kinds.insert(kind, Known::Listed(listed));
                }
            }
            Change::Deleted(object) => {
                if let Some(Known::Listed(listed)) = self.kinds.get_mut(&kind) {
                    listed.objects.remove(&name(&object));
                }
            }
            Change::Failed(reason) => {
                self.listing.remove(&kind);
                if let Some(Known::Listed(listed)) = self.kinds.get_mut(&kind) {
                    listed.failing = Some(reason);
                } else {
                    self.kinds.insert(kind, Known::NotListed(reason));
                }
            }
            Change::NotServed => {
                if !matches!(self.kinds.get(&kind), Some(Known::NotServed)) {
                    tracing::info!(
                        kind = kind.kind,
                        group = kind.api_version,
                        "the API server does not serve this kind"
                    );
                }
                self.listing.remove(&kind);
                self.kinds.insert(kind, Known::NotServed);
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
            // It may stay until others have let go of it: its watch reports when it is gone.
            None => {
                if let Some(stored) = listed.objects.get_mut(name) {
                    stored.metadata.deletion_timestamp = Some(Time(Timestamp::now()));
                }
            }
        }
    }
}

fn name(object: &DynamicObject) -> Name {
    let metadata = &object.metadata;
    let name = metadata.name.clone().unwrap_or_default();
    (metadata.namespace.clone(), name)
}
