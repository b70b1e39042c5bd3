//! Ring 2, laws of elements and their sources on worlds that laws of the compiler use too.

mod mirrors;
mod touched;

use std::{collections::BTreeMap, sync::Arc};

use compiler::{
    Compilation, NodeConfig, ObjectRef, Snapshot,
    lower::{LowLevel, LowLevelObjects},
    status,
};
use serde_json::{Value, json};
use worlds::{TCAAS, object};

pub(crate) fn snapshot(world: &[Value]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for document in world {
        snapshot.insert(document);
    }
    snapshot
}

/// The world after a compilation has been published: with statuses, configs of nodes and generated objects.
fn published(world: &[Value], compilation: &Compilation) -> Snapshot {
    let statuses = status::fold(&snapshot(world), compilation, &BTreeMap::new());
    let mut published = Snapshot::default();
    for document in world {
        let mut document = document.clone();
        let of = |(subject, _): &(&ObjectRef, &Value)| {
            document["kind"] == subject.kind.to_string()
                && document["metadata"]["name"] == *subject.key.name
        };
        if let Some((_, status)) = statuses.0.iter().find(of) {
            document["status"] = status.clone();
        }
        published.insert(&document);
    }
    let config = |(node, config): (&String, &NodeConfig)| {
        let spec = config.spec(&compilation.revision.fingerprint);
        let spec = serde_json::to_value(spec).expect("a spec is JSON");
        object(TCAAS, "NodeNetworkConfig", json!({"name": node}), spec)
    };
    let lowered = &compilation.lowered;
    let configs = compilation.nodes.iter().map(config);
    let made = configs
        .chain(generated("Layer2NetworkConfiguration", &lowered.layer2))
        .chain(generated("VRFRouteConfiguration", &lowered.vrf))
        .chain(generated("BGPPeering", &lowered.bgp));
    for document in made {
        published.insert(&document);
    }
    published
}

/// The low-level objects that are generated from intents.
fn generated<S: serde::Serialize>(kind: &str, objects: &LowLevelObjects<S>) -> Vec<Value> {
    let made = objects.iter().filter(|(_, made)| made.is_generated());
    let document = |(name, made): (&String, &Arc<LowLevel<S>>)| {
        let source = &made.source;
        let owner = json!({
            "apiVersion": source.kind.api_version(), "kind": source.kind.to_string(), "name": source.key.name,
            "uid": "", "controller": true,
        });
        let metadata = json!({"name": name, "ownerReferences": [owner]});
        let spec = serde_json::to_value(&made.spec).expect("a spec is JSON");
        object(TCAAS, kind, metadata, spec)
    };
    made.map(document).collect()
}
