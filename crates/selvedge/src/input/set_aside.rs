//! Documents that are not read as objects, and the objects of an earlier state that they stand for.

use std::{collections::BTreeMap, sync::Arc};

use compiler::{ObjectRef, Problem, Snapshot, problem};
use serde_json::Value;

use super::{CLUSTER, Origin, Unread, World};

/// A document that was not read as an object, and the object that it names.
#[derive(Debug)]
pub(super) struct SetAside {
    origin: Origin,
    /// `apiVersion`, as it is written.
    api_version: String,
    /// `kind`, as it is written.
    kind: String,
    namespace: Option<String>,
    name: String,
}

impl SetAside {
    /// The document, where it names a kind and an object.
    pub(super) fn of(origin: &Origin, document: &Value) -> Option<Self> {
        let text = |path: &str| document.pointer(path).and_then(Value::as_str);
        let own = |path: &str| text(path).map(str::to_owned);
        Some(Self {
            origin: origin.clone(),
            api_version: own("/apiVersion").unwrap_or_default(),
            kind: own("/kind")?,
            namespace: own("/metadata/namespace"),
            name: own("/metadata/name")?,
        })
    }

    /// Whether an object of the document's kind and name has its namespace too.
    fn has_namespace_of(&self, object: &ObjectRef) -> bool {
        let namespace = object.key.namespace.as_deref();
        let own = self
            .namespace
            .as_deref()
            .or_else(|| object.kind.default_namespace());
        namespace.is_none_or(|namespace| Some(namespace) == own)
    }

    fn fault(&self, object: &ObjectRef) -> String {
        let Self {
            api_version, kind, ..
        } = self;
        let served = object.kind.api_version();
        let own = object.kind;
        format!(
            "{kind} of {api_version:?} is ignored, and the object keeps its last state; write apiVersion: {served} and kind: {own}"
        )
    }
}

impl World {
    /// Keeps the objects of an earlier state whose documents are there but cannot be read as what they were: such a document is a mistake,
    /// and the object is not gone.
    pub(crate) fn keep_unread(&mut self, before: &Snapshot) {
        let lower = |kind: &str| kind.to_ascii_lowercase();
        let mut known: BTreeMap<(String, Arc<str>), Vec<ObjectRef>> = BTreeMap::new();
        for object in before.subjects() {
            let name = (lower(object.kind.into()), Arc::clone(&object.key.name));
            known.entry(name).or_default().push(object);
        }
        for document in std::mem::take(&mut self.set_aside) {
            let name = (lower(&document.kind), document.name.as_str().into());
            let named = known.get(&name).into_iter().flatten();
            let mut named = named.filter(|object| document.has_namespace_of(object));
            let Some(object) = named.find(|object| !self.is_written(object)) else {
                continue;
            };
            let is_same = |one: &Unread| one.origin == document.origin;
            self.unknown.retain(|one| !is_same(one));
            self.misplaced.retain(|one| !is_same(one));
            let kind = format!("{}/{}", document.api_version, document.kind);
            if let Some(count) = self.foreign.get_mut(&kind) {
                *count -= 1;
            }
            let message = document.fault(object);
            let kind = problem::Kind::Unreadable { message };
            let problem = Problem::new(object.clone(), "apiVersion", kind);
            self.snapshot.unreadable.push(problem);
            self.origins.insert(object.clone(), document.origin);
        }
    }

    /// Whether a document stands for an object, read or not.
    fn is_written(&self, object: &ObjectRef) -> bool {
        let origin = self.origins.get(object);
        origin.is_some_and(|origin| *origin.file != *CLUSTER)
    }
}
