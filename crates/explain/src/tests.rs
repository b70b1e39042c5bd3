//! Ring 2, laws of elements and their sources on worlds that laws of the compiler use too.

mod mirrors;
mod others;
mod touched;
mod ways;

use std::sync::Arc;

use compiler::{
    Compilation, Insertion, Kind, NodeConfig, ObjectRef, Snapshot, Status, lower::LowLevelObject,
    statuses,
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
    let statuses = statuses(&snapshot(world));
    let mut published = Snapshot::default();
    for document in world {
        let mut document = document.clone();
        let of = |(subject, _): &(&ObjectRef, &Arc<Status>)| {
            document["kind"] == subject.kind.to_string()
                && document["metadata"]["name"] == *subject.key.name
        };
        if let Some((_, status)) = statuses.iter().find(of) {
            document["status"] = status.to_value();
        }
        published.insert(&document);
    }
    let config = |(node, config): (&String, &Arc<NodeConfig>)| {
        let spec = config.spec(&compilation.revision.fingerprint);
        let spec = serde_json::to_value(spec).expect("a spec is JSON");
        object(TCAAS, "NodeNetworkConfig", json!({"name": node}), spec)
    };
    let configs = compilation.nodes.iter().map(config);
    let made = compilation.objects.iter().filter(|one| one.is_generated());
    let made = made.filter(|one| !matches!(one.kind(), Kind::MirrorTarget | Kind::MirrorSelector));
    let made = configs.chain(made.map(generated));
    for document in made {
        published.insert(&document);
    }
    published
}

/// A low-level object that is generated from an intent, as it is stored.
fn generated(made: &LowLevelObject) -> Value {
    let source = made.source();
    let owner = json!({
        "apiVersion": source.kind.api_version(), "kind": source.kind.to_string(), "name": source.key.name,
        "uid": "", "controller": true,
    });
    let metadata = json!({"name": made.name(), "ownerReferences": [owner]});
    object(TCAAS, &made.kind().to_string(), metadata, made.spec())
}
