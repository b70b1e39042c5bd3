//! The cluster in which objects run: with everything that they compile into published, as the operator and the agents do it.

use std::{collections::BTreeSet, sync::Arc};

use api::tcaas::{NodeNetworkConfigStatus, node_network_config::ConfigStatus};
use compiler::{
    Compilation, Compiler, Kind, ObjectRef, Snapshot, Writes,
    lower::LowLevelObject,
    platform::PlatformObject,
    problem::{Problem, Severity},
    revision,
    snapshot::Object,
};
use serde_json::{Value, json};

/// Rounds of publishing after which a cluster is taken as it is. Addresses that several wait for may need some.
const ROUNDS: usize = 4;

/// A cluster, and what its objects compile into.
#[derive(Debug)]
pub struct Running {
    /// All objects, generated ones and configs of nodes among them, with their statuses.
    pub snapshot: Snapshot,
    /// What they compile into.
    pub compilation: Compilation,
}

impl Running {
    /// The cluster that runs what these objects compile into.
    pub fn new(snapshot: &Snapshot) -> Self {
        let mut snapshot = snapshot.clone();
        for _ in 0..ROUNDS {
            let mut compiler = Compiler::new(snapshot.clone());
            let writes = compiler.writes().clone();
            let (_, compilation) = compiler.compile();
            publish(&mut snapshot, &writes, compilation);
            if writes == Writes::default() {
                break;
            }
        }
        Self::as_it_is(snapshot)
    }

    /// The cluster in which these objects take the place of those that were written, in one step: what was generated, what nodes have and
    /// what statuses say is still there.
    pub fn after(&self, written: &Snapshot) -> Self {
        let mut snapshot = written.clone();
        let refused = self.refuse(&mut snapshot);
        for subject in self.snapshot.subjects() {
            let is_ours = is_published(&self.snapshot, &subject);
            if is_ours && subject.kind == Kind::IpAddressClaim {
                // What a file says of it is not what the operator has written.
                snapshot.remove(&subject);
            }
            if is_ours || snapshot.meta(&subject).is_some() {
                snapshot.inherit(&self.snapshot, &subject);
            }
        }
        let mut after = Self::as_it_is(snapshot);
        let problems = Arc::make_mut(&mut after.compilation.problems);
        problems.extend(refused);
        problems.sort();
        after
    }

    /// Takes out what the API server would not store, so that an object stays as it was; returns what is wrong with that.
    fn refuse(&self, snapshot: &mut Snapshot) -> Vec<Problem> {
        let unreadable = snapshot.unreadable.iter();
        let faults = unreadable.filter(|problem| problem.severity() == Severity::Error);
        let is_known = |subject: &&ObjectRef| self.snapshot.meta(subject).is_some();
        let refused = faults.map(|problem| &problem.subject).filter(is_known);
        let refused: BTreeSet<ObjectRef> = refused.cloned().collect();
        let unreadable = snapshot.unreadable.iter();
        let problems = unreadable.filter(|problem| refused.contains(&problem.subject));
        let problems: Vec<Problem> = problems.cloned().collect();
        for subject in &refused {
            snapshot.remove(subject);
            snapshot.inherit(&self.snapshot, subject);
        }
        problems
    }

    /// The cluster in which nothing is stored beside these objects.
    pub fn as_it_is(snapshot: Snapshot) -> Self {
        let compilation = compiler::compile(&snapshot);
        Self {
            snapshot,
            compilation,
        }
    }
}

/// Whether an object is one that the operator or an agent writes.
fn is_published(snapshot: &Snapshot, subject: &ObjectRef) -> bool {
    let owner = snapshot.meta(subject).and_then(|meta| meta.owner.as_ref());
    let is_generated = owner.is_some_and(|owner| {
        let is_claim = owner.kind == Kind::NodeNetworkConfig;
        is_claim || owner.kind.intent().is_some()
    });
    is_generated
        || matches!(
            subject.kind,
            Kind::NodeNetworkConfig
                | Kind::NodeNetworkStatus
                | Kind::NetworkConfigRevision
                | Kind::NetworkConfigRevisionPart
        )
}

/// Writes what differs from what is stored.
fn publish(snapshot: &mut Snapshot, writes: &Writes, compilation: &Compilation) {
    for object in writes.objects.values().flat_map(|objects| &**objects) {
        put(snapshot, &generated(object));
    }
    for subject in writes.stale.values().flat_map(|stale| &**stale) {
        snapshot.remove(subject);
    }
    for (subject, status) in &writes.statuses {
        snapshot.set_status(subject, &status.to_value());
    }
    for object in compilation.platform.values() {
        // Of all that is written for other programs, claims alone are read again.
        if object.owner.kind == Kind::NodeNetworkConfig {
            put(snapshot, &claim(object));
        }
    }
    let fingerprint = &compilation.revision.fingerprint;
    for node in writes.nodes.keys() {
        if let Some(config) = compilation.nodes.get(node) {
            // As it is: a document of each of ten thousand nodes would take longer than everything else.
            let spec = config.spec(fingerprint);
            let status = NodeNetworkConfigStatus {
                config_status: ConfigStatus::Provisioned,
                observed_revision: Some(spec.revision.clone()),
                ..NodeNetworkConfigStatus::default()
            };
            let subject = ObjectRef::named(Kind::NodeNetworkConfig, node);
            snapshot.remove(&subject);
            let object = Object {
                meta: Arc::default(),
                spec: Arc::new(spec),
                status: Some(Arc::new(status)),
            };
            snapshot.node_network_configs.insert(subject.key, object);
        }
    }
    let revisions: Vec<ObjectRef> = snapshot
        .subjects()
        .filter(|subject| subject.kind == Kind::NetworkConfigRevision)
        .collect();
    for subject in revisions {
        snapshot.remove(&subject);
    }
    let metadata = json!({"name": revision::object_name(fingerprint)});
    let spec = compilation.revision.spec(&compilation.objects);
    let stored = document(Kind::NetworkConfigRevision, &metadata, &spec);
    put(snapshot, &stored);
}

fn put(snapshot: &mut Snapshot, document: &Value) {
    let mut new = Snapshot::default();
    if let compiler::Insertion::Object(subject) = new.insert(document) {
        snapshot.remove(&subject);
        snapshot.inherit(&new, &subject);
    }
}

fn document(kind: Kind, metadata: &Value, spec: &impl serde::Serialize) -> Value {
    json!({"apiVersion": kind.api_version(), "kind": kind.to_string(), "metadata": metadata, "spec": spec})
}

/// A low-level object that is generated from an intent, as it is stored.
fn generated(object: &LowLevelObject) -> Value {
    let owner = owner(object.source(), object.uid().unwrap_or_default());
    let metadata = json!({"name": object.name(), "ownerReferences": [owner]});
    document(object.kind(), &metadata, &object.spec())
}

/// A claim of a node's address, as it is stored.
fn claim(object: &PlatformObject) -> Value {
    let mut manifest = object.manifest();
    if let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut) {
        let owners = json!([owner(&object.owner, "")]);
        metadata.insert("ownerReferences".to_owned(), owners);
    }
    manifest
}

fn owner(ObjectRef { kind, key }: &ObjectRef, uid: &str) -> Value {
    json!({
        "apiVersion": kind.api_version(), "kind": kind.to_string(), "name": key.name, "uid": uid, "controller": true,
    })
}
