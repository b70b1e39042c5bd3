//! The publish step: writes what differs, in an order in which nobody sees a reference that leads nowhere.

use std::collections::{BTreeMap, BTreeSet};

use compiler::{
    Compilation, Kind, ObjectRef, Snapshot,
    lower::LowLevelObjects,
    revision,
    rollout::{self, Progress},
    snapshot::{Key, Object, Objects},
};
use kube::{
    Client,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{FIELD_MANAGER, resource};

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

/// What a pass wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) written: usize,
    pub(crate) deleted: usize,
    pub(crate) told: Vec<String>,
}

/// Writes low-level objects, the revision, and the config of whoever is next.
pub(crate) async fn apply(
    client: &Client,
    snapshot: &Snapshot,
    compilation: &Compilation,
    progress: &BTreeMap<String, Progress>,
) -> Result<Published, Error> {
    let mut writer = Writer {
        client,
        snapshot,
        published: Published::default(),
    };
    let lowered = &compilation.lowered;
    writer
        .generated(
            Kind::Layer2NetworkConfiguration,
            &lowered.layer2,
            &snapshot.layer2_network_configurations,
        )
        .await?;
    writer
        .generated(
            Kind::VrfRouteConfiguration,
            &lowered.vrf,
            &snapshot.vrf_route_configurations,
        )
        .await?;
    writer
        .generated(Kind::BgpPeering, &lowered.bgp, &snapshot.bgp_peerings)
        .await?;
    writer
        .generated(
            Kind::MirrorTarget,
            &lowered.mirror_targets,
            &snapshot.mirror_targets,
        )
        .await?;
    writer
        .generated(
            Kind::MirrorSelector,
            &lowered.mirror_selectors,
            &snapshot.mirror_selectors,
        )
        .await?;
    writer.revision(compilation, progress).await?;
    let direct = direct(snapshot, compilation, progress);
    for node in &direct {
        writer.tell(node, compilation).await?;
    }
    for node in rollout::next(progress) {
        if !direct.contains(node) {
            writer.tell(node, compilation).await?;
        }
    }
    Ok(writer.published)
}

/// The nodes whose mirrors alone have changed.
fn direct<'a>(
    snapshot: &Snapshot,
    compilation: &'a Compilation,
    progress: &BTreeMap<String, Progress>,
) -> BTreeSet<&'a str> {
    let queued = |node: &String| progress.get(node) == Some(&Progress::Queued);
    let nodes = compilation.nodes.iter().filter(|(node, _)| queued(node));
    let direct = nodes.filter(|(node, config)| {
        let wanted = config.spec(&compilation.revision.fingerprint);
        let told = snapshot.node_network_configs.get(&Key::named(*node));
        told.is_some_and(|told| rollout::is_direct(&wanted, &told.spec))
    });
    direct.map(|(node, _)| node.as_str()).collect()
}

struct Writer<'a> {
    client: &'a Client,
    snapshot: &'a Snapshot,
    published: Published,
}

impl Writer<'_> {
    /// Writes the objects that intents became, and deletes those they no longer become.
    async fn generated<S: Serialize + PartialEq, T>(
        &mut self,
        kind: Kind,
        wanted: &LowLevelObjects<S>,
        current: &Objects<S, T>,
    ) -> Result<(), Error> {
        for (name, object) in wanted.iter().filter(|(_, object)| object.is_generated()) {
            let key = Key::named(name);
            let before = current.get(&key);
            if before.is_some_and(|before| {
                before.spec == object.spec && before.meta.owner.as_ref() == Some(&object.source)
            }) {
                continue;
            }
            let owner = json!({
                "apiVersion": object.source.kind.api_version(),
                "kind": object.source.kind.to_string(),
                "name": object.source.key.name,
                "uid": object.meta.uid,
                "controller": true,
                "blockOwnerDeletion": true,
            });
            self.write(ObjectRef { kind, key }, &object.spec, Some(owner))
                .await?;
        }
        let kept: BTreeSet<&str> = wanted.keys().map(String::as_str).collect();
        for (key, object) in current
            .iter()
            .filter(|(key, object)| is_stale(key, object, &kept))
        {
            self.delete(
                ObjectRef {
                    kind,
                    key: key.clone(),
                },
                object.meta.uid.clone(),
            )
            .await?;
        }
        Ok(())
    }

    async fn revision(
        &mut self,
        compilation: &Compilation,
        progress: &BTreeMap<String, Progress>,
    ) -> Result<(), Error> {
        let key = Key::named(revision::object_name(&compilation.revision.fingerprint));
        let subject = ObjectRef {
            kind: Kind::NetworkConfigRevision,
            key: key.clone(),
        };
        let before = self.snapshot.network_config_revisions.get(&key);
        if before.is_none() {
            self.write(subject.clone(), &compilation.revision.spec(), None)
                .await?;
        }
        let count = |wanted| progress.values().filter(|node| **node == wanted).count();
        let failed = progress
            .iter()
            .find(|(_, node)| **node == Progress::Failed)
            .map(|(name, _)| name);
        let message = failed.and_then(|node| {
            let config = self.snapshot.node_network_configs.get(&Key::named(node))?;
            config.status.as_ref()?.error_message.clone()
        });
        let status = json!({
            "isInvalid": failed.is_some(),
            "ready": count(Progress::Ready),
            "ongoing": count(Progress::Ongoing),
            "queued": count(Progress::Queued),
            "failed": count(Progress::Failed),
            "total": progress.len(),
            "failedNode": failed,
            "failedMessage": message,
        });
        let status = without_null(status);
        let same = before
            .and_then(|before| before.status.as_ref())
            .map(serde_json::to_value)
            .and_then(Result::ok);
        if same.map(without_null).as_ref() == Some(&status) {
            return Ok(());
        }
        let patch = document(&subject, "status", &status, None);
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let api = resource::at(self.client, subject.kind, &subject.key);
        api.patch_status(&subject.key.name, &params, &Patch::Apply(patch))
            .await
            .map_err(|source| Error::ApplyStatus { subject, source })?;
        Ok(())
    }

    async fn tell(&mut self, node: &str, compilation: &Compilation) -> Result<(), Error> {
        let Some(config) = compilation.nodes.get(node) else {
            return Ok(());
        };
        let uid = self
            .snapshot
            .nodes
            .get(&Key::named(node))
            .and_then(|node| node.meta.uid.clone());
        let owner =
            uid.map(|uid| json!({"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}));
        let subject = ObjectRef::named(Kind::NodeNetworkConfig, node);
        self.write(
            subject,
            &config.spec(&compilation.revision.fingerprint),
            owner,
        )
        .await?;
        self.published.told.push(node.to_owned());
        Ok(())
    }

    async fn write<S: Serialize>(
        &mut self,
        subject: ObjectRef,
        spec: &S,
        owner: Option<Value>,
    ) -> Result<(), Error> {
        let spec = serde_json::to_value(spec).unwrap_or_default();
        let patch = document(&subject, "spec", &spec, owner);
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let api = resource::at(self.client, subject.kind, &subject.key);
        api.patch(&subject.key.name, &params, &Patch::Apply(patch))
            .await
            .map_err(|source| Error::Apply { subject, source })?;
        self.published.written += 1;
        Ok(())
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
            Ok(_) => self.published.deleted += 1,
            // Gone, or another object of that name: either way not ours to delete any more.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            Err(source) => return Err(Error::Delete { subject, source }),
        }
        Ok(())
    }
}

/// Whether an intent made the object and does so no longer. What people wrote is never stale.
fn is_stale<S, T>(key: &Key, object: &Object<S, T>, kept: &BTreeSet<&str>) -> bool {
    object.meta.owner.is_some() && !kept.contains(key.name.as_str())
}

fn document(subject: &ObjectRef, part: &str, value: &Value, owner: Option<Value>) -> Value {
    let mut metadata = json!({"name": subject.key.name});
    if let Some(owner) = owner
        && let Some(fields) = metadata.as_object_mut()
    {
        fields.insert("ownerReferences".to_owned(), json!([owner]));
    }
    json!({
        "apiVersion": subject.kind.api_version(),
        "kind": subject.kind.to_string(),
        "metadata": metadata,
        part: value,
    })
}

fn without_null(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    value
}
