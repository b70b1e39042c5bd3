//! A cluster in which everything that is compiled has been published.

use std::collections::BTreeMap;
use std::sync::Arc;

use selvedge_compiler::{Compiler, Kind, ObjectRef, Prepared, lower::LowLevelObject, revision};
use serde_json::{Value, json};

use super::{TCAAS, object};

/// Rounds of publishing after which nothing may be left to write.
const ROUNDS: usize = 5;

/// A compiler, and the documents of all objects but node configs.
pub(crate) struct Running {
    pub(crate) compiler: Compiler,
    documents: BTreeMap<ObjectRef, Value>,
    rounds: usize,
}

impl Running {
    /// The cluster with these objects, and everything that they compile into.
    pub(crate) fn new(documents: Vec<Value>) -> Self {
        let mut running = Self {
            compiler: Compiler::default(),
            documents: BTreeMap::new(),
            rounds: 0,
        };
        for document in documents {
            running.put(document);
        }
        running.publish();
        running
    }

    /// Stores an object.
    pub(crate) fn put(&mut self, document: Value) {
        let prepared = Prepared::read(&document).expect("an object of ours");
        let subject = prepared.subject().clone();
        self.compiler.put(prepared);
        if subject.kind != Kind::NodeNetworkConfig {
            self.documents.insert(subject, document);
        }
    }

    /// Writes what differs, as the operator and all agents do, until nothing differs.
    pub(crate) fn publish(&mut self) {
        for _ in 0..ROUNDS {
            self.rounds += 1;
            let is_done = self.round();
            if is_done {
                return;
            }
        }
        let writes = self.compiler.writes();
        let left = (
            writes.objects.len(),
            writes.stale.len(),
            writes.nodes.len(),
            writes.statuses.len(),
            writes.statuses.iter().next(),
        );
        unreachable!("there is always something to write: {left:?}");
    }

    fn round(&mut self) -> bool {
        let writes = self.compiler.writes().clone();
        let is_done = writes == selvedge_compiler::Writes::default();
        for made in writes.objects.values().flat_map(|objects| &**objects) {
            self.put(generated(made));
        }
        for subject in writes.stale.values().flat_map(|stale| &**stale) {
            self.compiler.remove(subject);
            self.documents.remove(subject);
        }
        for (subject, status) in &writes.statuses {
            let mut document = self.document(subject);
            document["status"] = status.to_value();
            self.put(document);
        }
        let (_, compilation) = self.compiler.compile();
        let fingerprint = &compilation.revision.fingerprint;
        let name = revision::object_name(fingerprint);
        let nodes: Vec<_> = writes.nodes.keys().cloned().collect();
        let configs: Vec<_> = nodes
            .iter()
            .filter_map(|node| Some((node, Arc::clone(compilation.nodes.get(node)?))))
            .collect();
        let fingerprint = fingerprint.clone();
        let subject = ObjectRef::named(Kind::NetworkConfigRevision, &name);
        if !self.documents.contains_key(&subject) {
            let spec = json!(compilation.revision.spec(&compilation.objects));
            let mut document = object("NetworkConfigRevision", &name, spec);
            document["metadata"]["creationTimestamp"] =
                json!(format!("2026-01-01T00:00:{:02}Z", self.rounds));
            document["status"] = json!({"isInvalid": false});
            self.put(document);
        }
        for (node, config) in configs {
            let spec = config.spec(&fingerprint);
            self.put(node_config(node, &json!(spec), "provisioned"));
        }
        is_done
    }

    /// The document of an object as it is stored.
    pub(crate) fn document(&self, subject: &ObjectRef) -> Value {
        let document = self.documents.get(subject).cloned();
        document.unwrap_or_else(|| unreachable!("{subject} is stored"))
    }
}

/// The config of a node, with what the node reports.
pub(crate) fn node_config(node: &str, spec: &Value, report: &str) -> Value {
    json!({
        "apiVersion": TCAAS, "kind": "NodeNetworkConfig", "metadata": {"name": node}, "spec": spec,
        "status": {"configStatus": report, "observedRevision": spec["revision"]},
    })
}

fn generated(made: &LowLevelObject) -> Value {
    let mut document = object(&made.kind().to_string(), made.name(), made.spec());
    let source = made.source();
    document["metadata"]["ownerReferences"] = json!([{
        "apiVersion": source.kind.api_version(), "kind": source.kind.to_string(), "name": source.key.name,
        "uid": "", "controller": true,
    }]);
    document
}
