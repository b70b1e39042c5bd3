//! The writes of a pass, each with the version of the object that it was computed from.

use std::collections::{BTreeMap, BTreeSet};

use compiler::{
    Compilation, Kind, ObjectRef, Snapshot,
    lower::LowLevelObject,
    revision::{
        self,
        parts::{self, Stored},
    },
    rollout::stored,
    snapshot::Key,
};
use kube::api::Preconditions;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    backoff::Part,
    kinds::Kinds,
    request::Operation,
    rollout::{Publication, Step},
    status,
};

/// The version of an object that does not exist: the API server then creates it, and refuses to change one that is there.
const ABSENT: &str = "0";

/// One object that is written, or deleted.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) subject: ObjectRef,
    pub(crate) part: Part,
    /// What tells this write from another of the same object: everything but times.
    pub(crate) content: Value,
    /// The intent that it was made from, if it is not the object itself.
    pub(crate) source: Option<ObjectRef>,
    pub(crate) operation: Operation,
}

impl Write {
    pub(crate) fn key(&self) -> (ObjectRef, Part) {
        (self.subject.clone(), self.part)
    }
}

/// What writes are made from.
pub(crate) struct Writes<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) kinds: &'a Kinds,
    /// The time that is written down.
    pub(crate) now: &'a str,
}

impl Writes<'_> {
    /// The status of an object.
    pub(crate) fn status(&self, subject: &ObjectRef, status: Value) -> Write {
        let stored = self.snapshot.stored_status(subject);
        let before = stored.map(|(_, status)| status).unwrap_or_default();
        let timed = status::timed(status.clone(), &before, self.now);
        self.untimed_status(subject, status, &timed)
    }

    /// A status that has no times of its own.
    pub(crate) fn untimed_status(
        &self,
        subject: &ObjectRef,
        content: Value,
        status: &Value,
    ) -> Write {
        let document = self.document(subject, "status", status, Metadata::default());
        Write {
            subject: subject.clone(),
            part: Part::Status,
            content,
            source: None,
            operation: Operation::ApplyStatus(document),
        }
    }

    /// An object that was generated from an intent.
    pub(crate) fn generated(&self, object: &LowLevelObject) -> Write {
        let source = object.source();
        let owner = json!({
            "apiVersion": source.kind.api_version(),
            "kind": source.kind.to_string(),
            "name": source.key.name,
            "uid": object.uid(),
            "controller": true,
            "blockOwnerDeletion": true,
        });
        let subject = ObjectRef::named(object.kind(), object.name());
        let metadata = Metadata {
            owner_references: vec![owner],
            ..Metadata::default()
        };
        self.object(subject, object.spec(), metadata, Some(source.clone()))
    }

    /// Parts of revisions that were deleted with their definition, as they were.
    pub(crate) fn parts_again(&self) -> Vec<Write> {
        let parts = self.kinds.unwritten(Kind::NetworkConfigRevisionPart);
        let write = |subject: &ObjectRef| {
            let stored = self
                .snapshot
                .network_config_revision_parts
                .get(&subject.key)?;
            let spec = json(&stored.spec);
            Some(self.object(subject.clone(), spec, Metadata::default(), None))
        };
        parts.filter_map(write).collect()
    }

    /// Revisions that were deleted with their definition, as they were: the objects, and their statuses.
    pub(crate) fn revisions_again(&self) -> (Vec<Write>, Vec<Write>) {
        let revisions = self.kinds.unwritten(Kind::NetworkConfigRevision);
        let write = |subject: &ObjectRef| {
            let stored = self.snapshot.network_config_revisions.get(&subject.key)?;
            let served = stored.meta.annotations.get(stored::SERVED);
            let metadata = Metadata {
                annotations: served
                    .map(|served| (stored::SERVED, served.clone()))
                    .into_iter()
                    .collect(),
                ..Metadata::default()
            };
            let object = self.object(subject.clone(), json(&stored.spec), metadata, None);
            let status = json(&stored.status.as_deref().cloned().unwrap_or_default());
            Some((
                object,
                self.untimed_status(subject, status.clone(), &status),
            ))
        };
        revisions.filter_map(write).unzip()
    }

    /// The newest revision, and its parts that are not stored yet.
    pub(crate) fn revision(&self, compilation: &Compilation) -> (Vec<Write>, Write) {
        let name = revision::object_name(&compilation.revision.fingerprint);
        let subject = ObjectRef::named(Kind::NetworkConfigRevision, name);
        let known = &self.snapshot.network_config_revision_parts;
        let is_stored = |name: &str| known.contains_key(&Key::named(name));
        let whole = compilation.revision.spec(&compilation.objects);
        let Stored { spec, parts } = parts::stored(whole, is_stored);
        let part = |(name, spec): (&String, _)| {
            let subject = ObjectRef::named(Kind::NetworkConfigRevisionPart, name);
            self.object(subject, json(spec), Metadata::default(), None)
        };
        let parts = parts.iter().map(part).collect();
        let served = Metadata {
            annotations: BTreeMap::from([(stored::SERVED, self.kinds.served())]),
            ..Metadata::default()
        };
        let revision = self.object(subject, json(&spec), served, None);
        (parts, revision)
    }

    /// The deletion of parts that no stored revision has. Where revisions are not known as they are now, none is deleted.
    pub(crate) fn unneeded_parts(&self) -> Vec<Write> {
        let revisions = self.snapshot.network_config_revisions.values();
        let needed = revisions.flat_map(|one| &one.spec.parts);
        let needed: BTreeSet<&str> = needed.map(String::as_str).collect();
        let parts = self.snapshot.network_config_revision_parts.keys();
        let unneeded = parts.filter(|part| !needed.contains(&*part.name));
        let deletion = |part: &Key| Write {
            source: Some(ObjectRef::named(Kind::NetworkConfigRevision, "")),
            ..self.deletion(&ObjectRef::named(
                Kind::NetworkConfigRevisionPart,
                &*part.name,
            ))
        };
        unneeded.map(deletion).collect()
    }

    /// The config of a node. No Node owns it: a machine whose Node is deleted still has its addresses.
    pub(crate) fn node(&self, publication: &Publication, step: &Step) -> Write {
        let Publication {
            node,
            spec,
            lane,
            published_at,
        } = publication;
        let subject = ObjectRef::named(Kind::NodeNetworkConfig, node);
        let annotations = match lane {
            Some(lane) => {
                let published_at = published_at.as_deref().unwrap_or(self.now);
                let published = [
                    (stored::PUBLISHED_AT, published_at.to_owned()),
                    (stored::LANE, lane.to_string()),
                ];
                let retry = step.retry.clone().map(|retry| (stored::RETRY, retry));
                published.into_iter().chain(retry).collect()
            }
            None => self.as_published(&subject),
        };
        let metadata = Metadata {
            annotations,
            ..Metadata::default()
        };
        self.object(subject, json(spec), metadata, None)
    }

    /// The annotations of a stored config in which nothing but the router of the host changes: an answer to what it is now is still one.
    fn as_published(&self, subject: &ObjectRef) -> BTreeMap<&'static str, String> {
        let Some(meta) = self.snapshot.meta(subject) else {
            return BTreeMap::new();
        };
        let kept = [stored::PUBLISHED_AT, stored::LANE, stored::RETRY];
        let kept = kept.into_iter().filter_map(|name| {
            let value = meta.annotations.get(name)?;
            Some((name, value.clone()))
        });
        let since =
            stored::generations(meta).map(|one| (stored::SAME_SINCE, one.start().to_string()));
        kept.chain(since).collect()
    }

    /// The deletion of an object.
    pub(crate) fn deletion(&self, subject: &ObjectRef) -> Write {
        let (uid, version) = self.stored(subject);
        let preconditions = Preconditions {
            uid,
            resource_version: version,
        };
        Write {
            subject: subject.clone(),
            part: Part::Object,
            content: Value::Null,
            source: None,
            operation: Operation::Delete(preconditions),
        }
    }

    fn object(
        &self,
        subject: ObjectRef,
        spec: Value,
        metadata: Metadata<'_>,
        source: Option<ObjectRef>,
    ) -> Write {
        let document = self.document(&subject, "spec", &spec, metadata);
        Write {
            subject,
            part: Part::Object,
            content: spec,
            source,
            operation: Operation::Apply(document),
        }
    }

    /// What tells a stored object from all others, and from what it was before.
    fn stored(&self, subject: &ObjectRef) -> (Option<String>, Option<String>) {
        let meta = self.snapshot.meta(subject);
        let uid = meta.and_then(|meta| meta.uid.clone());
        let version = self.kinds.version(subject).map(ToString::to_string);
        // An object that was deleted while it is written is not created by that: its uid would be another.
        (uid.filter(|_| version.is_some()), version)
    }

    fn document(
        &self,
        subject: &ObjectRef,
        part: &str,
        value: &Value,
        metadata: Metadata<'_>,
    ) -> Value {
        let (uid, version) = self.stored(subject);
        let metadata = Metadata {
            name: &subject.key.name,
            uid,
            resource_version: version.unwrap_or_else(|| ABSENT.to_owned()),
            ..metadata
        };
        json!({
            "apiVersion": subject.kind.api_version(),
            "kind": subject.kind.to_string(),
            "metadata": metadata,
            part: without_nulls(value),
        })
    }
}

/// The same without fields that are null: such a field would say that something is taken away.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            let fields = fields.map(|(name, value)| (name.clone(), without_nulls(value)));
            Value::Object(fields.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// A part of an object as JSON.
pub(crate) fn json(part: &impl Serialize) -> Value {
    serde_json::to_value(part)
        .unwrap_or_else(|error| unreachable!("a part of an object is JSON: {error}"))
}

/// Metadata that is written with an object. What is empty is left out: an empty list would take away what is there.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    resource_version: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    owner_references: Vec<Value>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<&'static str, String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        kinds::{Seen, Version},
        watch::Change,
    };

    #[test]
    fn a_write_names_the_object_and_the_version_that_it_was_computed_from() {
        let mut compiler = compiler::Compiler::default();
        let mut kinds = Kinds::new([Kind::Vrf].into_iter());
        let vrf = json!({
            "apiVersion": Kind::Vrf.api_version(), "kind": "VRF",
            "metadata": {"name": "a", "uid": "u"}, "spec": {"vrf": "a", "vni": 7},
        });
        let prepared = compiler::Prepared::read(&vrf).expect("an object");
        let seen = Seen {
            prepared: Box::new(prepared),
            version: Version::new("12".to_owned()),
        };
        kinds.apply(Kind::Vrf, Change::Applied(seen), &mut compiler);
        let writes = Writes {
            snapshot: compiler.snapshot(),
            kinds: &kinds,
            now: "now",
        };
        let document = |name: &str| {
            let subject = ObjectRef::named(Kind::Vrf, name);
            let status = json!({"vni": 7, "nothing": null, "list": [{"nothing": null}]});
            match writes.status(&subject, status).operation {
                Operation::ApplyStatus(document) => document,
                other @ (Operation::Apply(_) | Operation::Delete(_)) => panic!("{other:?}"),
            }
        };
        let stored = document("a");
        let metadata = json!({"name": "a", "uid": "u", "resourceVersion": "12"});
        assert_eq!(stored["metadata"], metadata);
        assert_eq!(stored["status"], json!({"vni": 7, "list": [{}]}));
        let absent = json!({"name": "b", "resourceVersion": ABSENT});
        assert_eq!(document("b")["metadata"], absent);
        let deletion = writes.deletion(&ObjectRef::named(Kind::Vrf, "a"));
        let Operation::Delete(preconditions) = deletion.operation else {
            panic!("a deletion");
        };
        assert_eq!(preconditions.uid.as_deref(), Some("u"));
        assert_eq!(preconditions.resource_version.as_deref(), Some("12"));
    }
}
