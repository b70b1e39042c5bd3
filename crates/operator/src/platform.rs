//! Objects of other programs: written where their kinds are served and they differ, removed when no intent needs them any more.
//!
//! Ours carry a label. One without it is never changed: another has made it.

mod difference;
pub(crate) mod store;
#[cfg(test)]
mod tests;
pub(crate) mod watch;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Instant,
};

use compiler::{
    Compilation, Kind, ObjectRef,
    platform::{
        GENERATED_FROM, Identity, PlatformKind, PlatformObject,
        state::{Absent, Why},
    },
};
use kube::api::{DynamicObject, ObjectMeta, Preconditions};
use serde_json::{Value, json};

pub(crate) use self::difference::differs;
pub(crate) use self::store::Change;
use self::{
    difference::takes_away,
    store::{Known, Store},
};
use crate::{backoff::Backoffs, request::Failure};

/// The label of our objects.
pub(crate) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
pub(crate) const OURS: &str = "selvedge";

/// One object that is written or deleted.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) identity: Identity,
    pub(crate) kind: PlatformKind,
    /// Group and version of the request.
    pub(crate) served: &'static str,
    /// What the object must be; null if it must not be there.
    pub(crate) content: Value,
    pub(crate) operation: Operation,
}

/// What is done about an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operation {
    /// It is made; if one of this name is there, that is another's.
    Create(Value),
    /// It is made what it must be, if it is still this one.
    Apply(Value),
    /// This is merged into it, if it is still this one.
    Merge(Value),
    /// This is merged into its status, if it is still this one.
    MergeStatus(Value),
    /// It is deleted, if it is still this one.
    Delete(Preconditions),
}

/// The objects of other programs that are ours.
#[derive(Debug, Default)]
pub(crate) struct Platform {
    store: Store,
    backoffs: Backoffs<Identity, Why>,
    /// What was found to be there as it must be: the wanted object, and the version that is stored.
    settled: BTreeMap<Identity, (Arc<PlatformObject>, Option<String>)>,
    /// When the last step was computed: what was due then is dealt with.
    stepped_at: Option<Instant>,
}

/// What is to be done, and what is missing until then.
#[derive(Debug, Default)]
pub(crate) struct Step {
    pub(crate) writes: Vec<Write>,
    pub(crate) absent: BTreeMap<ObjectRef, Arc<Vec<Absent>>>,
}

impl Platform {
    /// Takes in what a watch reports. True if that may make another step necessary.
    pub(crate) fn apply(&mut self, kind: PlatformKind, change: Change) -> bool {
        self.store.apply(kind, change)
    }

    /// What is to be done so that everything that intents need is there, and nothing else of ours.
    ///
    /// Nothing is written or deleted of a kind whose objects are not known as they are now, nor what was made from an object of such a kind.
    /// Nothing is written of `unstored` objects, whose addresses are in no status yet.
    pub(crate) fn step(
        &mut self,
        compilation: &Compilation,
        unstored: &BTreeSet<ObjectRef>,
        frozen: &BTreeSet<Kind>,
        now: Instant,
    ) -> Step {
        let wanted = &compilation.platform;
        self.stepped_at = Some(now);
        let store = &self.store;
        self.backoffs
            .retain(|identity| wanted.contains_key(identity) || is_stored(store, identity));
        self.settled
            .retain(|identity, _| wanted.contains_key(identity));
        let mut writes = Vec::new();
        let mut absent: BTreeMap<ObjectRef, Vec<Absent>> = BTreeMap::new();
        for (identity, object) in wanted {
            let write = self.object(identity, object, now);
            let why = match write {
                Ok(None) => continue,
                Ok(Some(write)) => {
                    let why = self.backoffs.failure(identity).cloned();
                    let is_frozen =
                        is_frozen(frozen, write.kind, frozen.contains(&object.owner.kind));
                    if !is_frozen && !unstored.contains(&object.owner) {
                        writes.push(write);
                    }
                    why.unwrap_or(Why::Pending)
                }
                Err(why) => why,
            };
            let absent = absent.entry(object.owner.clone()).or_default();
            let object = shown(object);
            absent.push(Absent { object, why });
        }
        self.stale(compilation, frozen, now, &mut writes);
        let absent = absent.into_iter().map(|(owner, mut absent)| {
            // What is about to be done tells least.
            absent.sort_by_key(|one| one.why == Why::Pending);
            (owner, Arc::new(absent))
        });
        let absent = absent.collect();
        Step { writes, absent }
    }

    /// The same step while the newest revision waits for an approval: what nodes still run keeps what it needs of other programs. Objects are
    /// neither deleted nor changed so that they lose something.
    pub(crate) fn without_losses(&self, mut step: Step) -> Step {
        step.writes.retain(|write| match &write.operation {
            Operation::Delete(_) => false,
            Operation::Apply(_) => !self.takes_away(write),
            Operation::Create(_) | Operation::Merge(_) | Operation::MergeStatus(_) => true,
        });
        step
    }

    fn takes_away(&self, write: &Write) -> bool {
        let Some(Known::Listed(listed)) = self.store.get(write.kind) else {
            return false;
        };
        let (_, _, namespace, name) = &write.identity;
        let stored = listed.objects.get(&(namespace.clone(), name.clone()));
        stored.is_some_and(|stored| takes_away(stored, &write.content))
    }

    /// What makes an object what it must be, or why that cannot be done now. Nothing, if it is there as it must be.
    fn object(
        &mut self,
        identity: &Identity,
        object: &Arc<PlatformObject>,
        now: Instant,
    ) -> Result<Option<Write>, Why> {
        let kind = object.platform_kind().ok_or(Why::Pending)?;
        let listed = match self.store.get(kind) {
            None => return Err(Why::Pending),
            Some(Known::NotServed) => return Err(Why::NotServed(kind.api_version)),
            Some(Known::NotListed(reason)) => return Err(Why::NotWatched(reason.clone())),
            Some(Known::Listed(listed)) => listed,
        };
        let name = (object.namespace.clone(), object.name.clone());
        let stored = listed.objects.get(&name);
        let version = stored.and_then(|stored| stored.metadata.resource_version.clone());
        let settled = self.settled.get(identity);
        if settled.is_some_and(|(one, of)| Arc::ptr_eq(one, object) && *of == version) {
            return Ok(None);
        }
        let content = manifest(object, listed.served);
        let change = match stored {
            Some(stored) if stored.metadata.deletion_timestamp.is_some() => {
                return Err(Why::Terminating);
            }
            Some(stored) if !differs(stored, &content) => None,
            Some(stored) => Some(Operation::Apply(based_on(&stored.metadata, &content))),
            // Version 0 is that of an object that does not exist.
            None => {
                let nothing = ObjectMeta {
                    resource_version: Some("0".to_owned()),
                    ..ObjectMeta::default()
                };
                Some(Operation::Create(based_on(&nothing, &content)))
            }
        };
        let Some(operation) = change else {
            let settled = (Arc::clone(object), version);
            self.settled.insert(identity.clone(), settled);
            self.backoffs.succeeded(identity);
            return Ok(None);
        };
        if let Some(reason) = &listed.failing {
            return Err(Why::NotWatched(reason.clone()));
        }
        if let Some(why) = self.backoffs.waiting(identity, &content, now) {
            return Err(why.clone());
        }
        Ok(Some(Write {
            identity: identity.clone(),
            kind,
            served: listed.served,
            content,
            operation,
        }))
    }

    /// Deletes what no intent needs. What was made for an intent that something is wrong with stays.
    fn stale(
        &self,
        compilation: &Compilation,
        frozen: &BTreeSet<Kind>,
        now: Instant,
        writes: &mut Vec<Write>,
    ) {
        for (kind, known) in self.store.iter() {
            let Known::Listed(listed) = known else {
                continue;
            };
            if listed.failing.is_some() {
                continue;
            }
            for ((namespace, name), stored) in &listed.objects {
                let identity = (kind.api_version, kind.kind, namespace.clone(), name.clone());
                let is_wanted = compilation.platform.contains_key(&identity);
                if is_wanted || stored.metadata.deletion_timestamp.is_some() {
                    continue;
                }
                let source = generated_from(stored).unwrap_or_default();
                let is_of_frozen = frozen
                    .iter()
                    .any(|frozen| source.starts_with(&format!("{frozen}/")));
                let mut keeps = compilation.platform_keeps.iter();
                let is_kept =
                    keeps.any(|one| json!(one) == source) || is_frozen(frozen, *kind, is_of_frozen);
                let waiting = self.backoffs.waiting(&identity, &Value::Null, now);
                if is_kept || waiting.is_some() {
                    continue;
                }
                let metadata = &stored.metadata;
                let preconditions = Preconditions {
                    uid: metadata.uid.clone(),
                    resource_version: metadata.resource_version.clone(),
                };
                writes.push(Write {
                    identity,
                    kind: *kind,
                    served: listed.served,
                    content: Value::Null,
                    operation: Operation::Delete(preconditions),
                });
            }
        }
    }

    /// Takes in the answer of the API server to a write.
    pub(crate) fn answered(
        &mut self,
        write: &Write,
        answer: Result<Option<DynamicObject>, Failure>,
        now: Instant,
    ) {
        let is_new = matches!(write.operation, Operation::Create(_));
        let failure = match answer {
            Ok(stored) => return self.written(write, stored),
            // The next leader, or the next start, does it.
            Err(failure) if failure.ends_pass() => return,
            // It is gone already, or will be seen as it is now.
            Err(Failure::NotFound | Failure::Conflict(_)) if !is_new => {
                self.backoffs.succeeded(&write.identity);
                return;
            }
            Err(failure) => failure,
        };
        let retry_after = failure.retry_after();
        let why = match failure {
            Failure::Conflict(_) => Why::NameTaken,
            Failure::NotFound => {
                let (_, _, namespace, _) = &write.identity;
                let namespace = namespace.as_deref().unwrap_or_default();
                Why::Refused(format!("there is no namespace {namespace:?}"))
            }
            failure => Why::Refused(failure.to_string()),
        };
        let (identity, content) = (write.identity.clone(), write.content.clone());
        let retry_in = self
            .backoffs
            .failed(identity, content, why.clone(), retry_after, now);
        tracing::warn!(object = ?write.identity, ?why, ?retry_in, "failed to write an object of another program");
    }

    /// Takes in what the API server stored; nothing where an object was deleted.
    fn written(&mut self, write: &Write, stored: Option<DynamicObject>) {
        let Write { identity, kind, .. } = write;
        self.backoffs.succeeded(identity);
        let (_, _, namespace, name) = identity;
        let name = (namespace.clone(), name.clone());
        self.store.written(*kind, &name, stored);
    }

    /// When something that was refused is tried again.
    pub(crate) fn next(&self) -> Option<Instant> {
        let times = self.backoffs.due().map(|(_, _, at)| at);
        times.filter(|at| Some(*at) > self.stepped_at).min()
    }
}

/// Whether an object is not written, because its kind, or what it was made from, is not known as it is now.
fn is_frozen(frozen: &BTreeSet<Kind>, kind: PlatformKind, is_source_frozen: bool) -> bool {
    let group = kind.api_version.split_once('/').unwrap_or_default().0;
    let is_this = |one: &Kind| one.group_version().0 == group && one.to_string() == kind.kind;
    is_source_frozen || frozen.iter().any(is_this)
}

/// Whether an object of ours is there.
fn is_stored(store: &Store, (api_version, kind, namespace, name): &Identity) -> bool {
    let is_kind = |one: &PlatformKind| (one.api_version, one.kind) == (*api_version, *kind);
    let mut kinds = store.iter().filter(|(one, _)| is_kind(one));
    kinds.any(|(_, known)| match known {
        Known::Listed(listed) => {
            let name = (namespace.clone(), name.clone());
            listed.objects.contains_key(&name)
        }
        Known::NotServed | Known::NotListed(_) => false,
    })
}

/// Selects our objects.
fn selector() -> String {
    format!("{MANAGED_BY}={OURS}")
}

/// The object as it is written: in the version that is served, with our label.
fn manifest(object: &PlatformObject, served: &str) -> Value {
    let mut manifest = object.manifest();
    if let Some(manifest) = manifest.as_object_mut() {
        manifest.insert("apiVersion".to_owned(), json!(served));
    }
    if let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("labels".to_owned(), json!({MANAGED_BY: OURS}));
    }
    manifest
}

/// The same manifest, which the API server takes only if the object is still the one that this metadata is of.
pub(crate) fn based_on(stored: &ObjectMeta, manifest: &Value) -> Value {
    let mut manifest = manifest.clone();
    if let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut) {
        let version = json!(stored.resource_version);
        metadata.insert("resourceVersion".to_owned(), version);
        if let Some(uid) = &stored.uid {
            metadata.insert("uid".to_owned(), json!(uid));
        }
    }
    manifest
}

/// The object as people know it.
fn shown(object: &PlatformObject) -> String {
    let PlatformObject { kind, name, .. } = object;
    match &object.namespace {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

/// What an object was made from, as its annotation says.
fn generated_from(object: &DynamicObject) -> Option<&str> {
    let annotations = object.metadata.annotations.as_ref()?;
    annotations.get(GENERATED_FROM).map(String::as_str)
}
