//! A snapshot as documents, as they would be in files.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Key, Kind, Meta, ObjectRef, Resource, Snapshot, Visitor, visit};
use crate::memo;

impl Snapshot {
    /// All objects as documents. Reading them gives a snapshot that compiles into the same; an object whose spec cannot be read has none.
    pub fn documents(&self) -> impl Iterator<Item = Value> + '_ {
        let read = self
            .subjects()
            .filter_map(|subject| self.document(&subject));
        let unread = self.unread.iter().map(|(subject, partial)| {
            let status = Some((*partial.status).clone());
            document(subject, &partial.meta, None, status)
        });
        read.chain(unread)
    }

    /// One object as a document, where it can be read.
    pub fn document(&self, subject: &ObjectRef) -> Option<Value> {
        let (meta, spec, status) = visit(subject, Parts(self))?;
        Some(document(subject, &meta, Some(spec), status))
    }
}

/// Takes the parts of an object.
struct Parts<'a>(&'a Snapshot);

impl Visitor for Parts<'_> {
    type Out = Option<(Meta, Value, Option<Value>)>;
    fn visit<R: Resource + memo::Registered>(self, key: &Key) -> Self::Out {
        let object = R::objects(self.0).get(key)?;
        let status = object.status.as_deref().map(value);
        Some(((*object.meta).clone(), value(&*object.spec), status))
    }
}

fn value(part: &impl Serialize) -> Value {
    serde_json::to_value(part)
        .unwrap_or_else(|error| unreachable!("a part of an object is JSON: {error}"))
}

fn document(
    ObjectRef { kind, key }: &ObjectRef,
    meta: &Meta,
    spec: Option<Value>,
    status: Option<Value>,
) -> Value {
    // A Node is read for its metadata alone.
    let spec = spec.filter(|_| *kind != Kind::Node);
    let parts = [
        ("apiVersion", Some(kind.api_version().into())),
        ("kind", Some(kind.to_string().into())),
        ("metadata", Some(metadata(key, meta))),
        ("spec", spec),
        ("status", status),
    ];
    let parts = parts.into_iter().filter_map(|(part, value)| {
        let value = value.filter(|value| !value.is_null())?;
        Some((part.to_owned(), value))
    });
    Value::Object(parts.collect())
}

fn metadata(key: &Key, meta: &Meta) -> Value {
    let Meta {
        labels,
        annotations,
        created,
        generation,
        uid,
        owner,
    } = meta;
    let mut metadata = Map::new();
    let mut set = |name: &str, value: Value| {
        let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        if !is_empty {
            metadata.insert(name.to_owned(), value);
        }
    };
    set("name", json!(key.name));
    set("namespace", json!(key.namespace));
    set("labels", json!(labels));
    set("annotations", json!(annotations));
    set("creationTimestamp", json!(created));
    set("generation", json!(generation));
    set("uid", json!(uid));
    let owner = owner.as_ref().map(|owner| {
        json!([{
            "apiVersion": owner.kind.api_version(), "kind": owner.kind.to_string(),
            "name": owner.key.name, "controller": true,
        }])
    });
    set("ownerReferences", json!(owner));
    Value::Object(metadata)
}
