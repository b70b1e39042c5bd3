//! The publish step: writes what differs, in an order in which no object references one that does not exist yet.

use std::collections::BTreeMap;

use compiler::{
    Compilation, Kind, ObjectRef, Prepared, Snapshot, lower::LowLevelObject, revision,
    rollout::stored, snapshot::Key,
};
use kube::{
    Client,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    FIELD_MANAGER,
    pass::Pass,
    resource,
    rollout::{Publication, Step},
    status, watch,
};

/// Why an object could not be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("failed to write {subject}")]
    Apply {
        subject: ObjectRef,
        #[source]
        source: kube::Error,
    },
    #[error("failed to write the status of {subject}")]
    ApplyStatus {
        subject: ObjectRef,
        #[source]
        source: kube::Error,
    },
    #[error("failed to delete {subject}")]
    Delete {
        subject: ObjectRef,
        #[source]
        source: kube::Error,
    },
}

/// Writes objects, and counts what it wrote.
pub(crate) struct Writer<'a> {
    client: &'a Client,
    /// The objects that were written, as the API server stored them.
    pub(crate) stored: Vec<Prepared>,
    /// How many objects were written.
    pub(crate) written: usize,
    /// How many statuses of intents and low-level objects were written.
    pub(crate) reported: usize,
    /// How many objects were deleted.
    pub(crate) deleted: usize,
    /// The nodes whose config was written.
    pub(crate) nodes: Vec<String>,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(client: &'a Client) -> Self {
        Self {
            client,
            stored: Vec::new(),
            written: 0,
            reported: 0,
            deleted: 0,
            nodes: Vec::new(),
        }
    }

    /// Writes everything that a pass found: statuses, low-level objects, the revision, and the configs of the next nodes.
    pub(crate) async fn publish(
        &mut self,
        snapshot: &Snapshot,
        compilation: &Compilation,
        pass: &Pass,
        now: &str,
    ) -> Result<(), Error> {
        // Allocations are stored in statuses: they are written before anything that uses them.
        for (subject, status) in &pass.writes.statuses {
            let stored = snapshot.stored_status(subject);
            let before = stored.map(|(_, status)| status).unwrap_or_default();
            let status = status::timed(status.to_value(), &before, now);
            self.reported += usize::from(self.apply_status(subject.clone(), &status).await?);
        }
        for object in pass.writes.objects.values().flat_map(|objects| &**objects) {
            self.generated(object).await?;
        }
        for subject in pass.writes.stale.values().flat_map(|stale| &**stale) {
            let stored = snapshot.stored_status(subject);
            let uid = stored.and_then(|(meta, _)| meta.uid.clone());
            self.delete(subject.clone(), uid).await?;
        }
        self.revision(snapshot, compilation, pass).await?;
        for publication in &pass.step.publish {
            self.node(publication, snapshot, &pass.step, now).await?;
        }
        for subject in &pass.step.outdated {
            self.delete(subject.clone(), None).await?;
        }
        Ok(())
    }

    /// Writes an object that was generated from an intent.
    async fn generated(&mut self, object: &LowLevelObject) -> Result<(), Error> {
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
        self.apply(subject, &object.spec(), metadata).await
    }

    async fn revision(
        &mut self,
        snapshot: &Snapshot,
        compilation: &Compilation,
        pass: &Pass,
    ) -> Result<(), Error> {
        let name = revision::object_name(&compilation.revision.fingerprint);
        let subject = ObjectRef::named(Kind::NetworkConfigRevision, name);
        let before = snapshot.network_config_revisions.get(&subject.key);
        if before.is_none() {
            let spec = compilation.revision.spec(&compilation.objects);
            self.apply(subject.clone(), &json(&spec), Metadata::default())
                .await?;
        }
        let status = before.and_then(|before| before.status.as_deref());
        if status != Some(&pass.step.status) {
            self.apply_status(subject, &json(&pass.step.status)).await?;
        }
        Ok(())
    }

    /// Writes the config of a node.
    async fn node(
        &mut self,
        publication: &Publication,
        snapshot: &Snapshot,
        step: &Step,
        now: &str,
    ) -> Result<(), Error> {
        let Publication { node, spec, lane } = publication;
        let object = snapshot.nodes.get(&Key::named(node));
        let uid = object.and_then(|node| node.meta.uid.clone());
        let owner =
            uid.map(|uid| json!({"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}));
        let mut annotations = BTreeMap::from([
            (stored::PUBLISHED_AT, now.to_owned()),
            (stored::LANE, lane.to_string()),
        ]);
        annotations.extend(step.retry.clone().map(|retry| (stored::RETRY, retry)));
        let metadata = Metadata {
            owner_references: owner.into_iter().collect(),
            annotations,
            ..Metadata::default()
        };
        let subject = ObjectRef::named(Kind::NodeNetworkConfig, node);
        self.apply(subject, &json(spec), metadata).await?;
        self.nodes.push(node.clone());
        Ok(())
    }

    async fn apply(
        &mut self,
        subject: ObjectRef,
        spec: &Value,
        metadata: Metadata<'_>,
    ) -> Result<(), Error> {
        let patch = Patch::Apply(document(&subject, "spec", spec, metadata));
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let api = resource::at(self.client, subject.kind, &subject.key);
        match api.patch(&subject.key.name, &params, &patch).await {
            Ok(stored) => self.keep(subject.kind, stored),
            Err(source) => return Err(Error::Apply { subject, source }),
        }
        self.written += 1;
        Ok(())
    }

    /// Writes a status; false if the object does not exist any more.
    async fn apply_status(&mut self, subject: ObjectRef, status: &Value) -> Result<bool, Error> {
        let patch = Patch::Apply(document(&subject, "status", status, Metadata::default()));
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let api = resource::at(self.client, subject.kind, &subject.key);
        match api.patch_status(&subject.key.name, &params, &patch).await {
            Ok(stored) => self.keep(subject.kind, stored),
            // Its watch reports the deletion.
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(false),
            Err(source) => return Err(Error::ApplyStatus { subject, source }),
        }
        Ok(true)
    }

    async fn delete(&mut self, subject: ObjectRef, uid: Option<String>) -> Result<(), Error> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid,
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        let api = resource::at(self.client, subject.kind, &subject.key);
        match api.delete(&subject.key.name, &params).await {
            Ok(_) => self.deleted += 1,
            // It was deleted already, or replaced by another object of the same name.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            Err(source) => return Err(Error::Delete { subject, source }),
        }
        Ok(())
    }

    fn keep(&mut self, kind: Kind, stored: kube::api::DynamicObject) {
        let prepared = watch::prepare(kind, stored);
        self.stored.extend(prepared.map(|prepared| *prepared));
    }
}

fn json(part: &impl Serialize) -> Value {
    serde_json::to_value(part)
        .unwrap_or_else(|error| unreachable!("a part of an object is JSON: {error}"))
}

/// Metadata that is written with an object. What is empty is left out: an empty list would take away what is there.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    owner_references: Vec<Value>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<&'static str, String>,
}

fn document(subject: &ObjectRef, part: &str, value: &Value, metadata: Metadata<'_>) -> Value {
    let name = &subject.key.name;
    json!({
        "apiVersion": subject.kind.api_version(),
        "kind": subject.kind.to_string(),
        "metadata": Metadata { name, ..metadata },
        part: value,
    })
}
