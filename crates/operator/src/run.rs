//! The loop: what changed, one debounced pass for all of it, and what it came to.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use compiler::{
    Compilation, Compiler, Kind, ObjectRef, Severity, Snapshot,
    rollout::{self, Progress},
    snapshot::{Key, Objects},
    status,
};
use kube::Client;
use serde::Serialize;
use serde_json::Value;
use strum::IntoEnumIterator;
use tokio::task::JoinSet;

use crate::{publish, snapshot::Follower, status_writer, watch::Stores};

/// How long to wait for more changes before a pass: a `kubectl apply` of many objects is one change.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// How long to wait after a failed pass; it doubles each time.
const FIRST_RETRY: Duration = Duration::from_millis(500);
const LAST_RETRY: Duration = Duration::from_secs(30);

/// Why a pass did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An object could not be published.
    #[error("failed to publish")]
    Publish(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A status could not be written.
    #[error("failed to report")]
    Report(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Runs the control plane until the process ends.
pub async fn run(client: Client) -> Result<(), Error> {
    let mut watches = JoinSet::new();
    let stores = Stores::watch(&client, watched(), &mut watches);
    let mut follower = Follower::default();
    let mut waiting_for = None;
    let mut retry = FIRST_RETRY;
    loop {
        stores.changed().await;
        tokio::time::sleep(DEBOUNCE).await;
        if let Err(incomplete) = follower.update(&stores) {
            if waiting_for.as_ref() != Some(&incomplete) {
                tracing::info!(reason = %incomplete, "nothing is published");
                waiting_for = Some(incomplete);
            }
            continue;
        }
        waiting_for = None;
        while let Err(error) = pass(&client, &mut follower.compiler).await {
            let source = std::error::Error::source(&error)
                .map(ToString::to_string)
                .unwrap_or_default();
            tracing::warn!(%error, source, retry_in = ?retry, "pass failed");
            let woken = tokio::time::timeout(retry, stores.changed()).await.is_ok();
            retry = (retry * 2).min(LAST_RETRY);
            if woken {
                // The snapshot is old: the loop takes a new one.
                stores.mark_changed();
                break;
            }
        }
        retry = FIRST_RETRY;
    }
}

/// The kinds that a compile reads.
fn watched() -> impl Iterator<Item = Kind> {
    Kind::iter().filter(|kind| !matches!(kind, Kind::FrrNodeState | Kind::BgpSessionState))
}

async fn pass(client: &Client, compiler: &mut Compiler) -> Result<(), Error> {
    let start = Instant::now();
    let (snapshot, compilation) = compiler.compile();
    let compiled_in = start.elapsed();
    let progress = progress(snapshot, compilation);
    let statuses = status::fold(snapshot, compilation, &progress);
    // Allocations live in statuses: they are written before anything that uses them is published.
    let now = now();
    let reported = status_writer::write(client, &statuses, &current(snapshot), &now)
        .await
        .map_err(|error| Error::Report(Box::new(error)))?;
    let published = publish::apply(client, snapshot, compilation, &progress)
        .await
        .map_err(|error| Error::Publish(Box::new(error)))?;
    let errors = compilation
        .problems
        .iter()
        .filter(|problem| problem.severity() == Severity::Error)
        .count();
    tracing::info!(
        revision = compiler::revision::object_name(&compilation.revision.fingerprint),
        nodes = compilation.nodes.len(),
        ready = progress.values().filter(|node| **node == Progress::Ready).count(),
        errors,
        written = published.written,
        deleted = published.deleted,
        reported,
        told = ?published.told,
        compiled_in = ?compiled_in,
        "pass"
    );
    Ok(())
}

fn progress(snapshot: &Snapshot, compilation: &Compilation) -> BTreeMap<String, Progress> {
    let revision = &compilation.revision.fingerprint;
    let of = |node: &String, config: &compiler::NodeConfig| {
        let told = snapshot.node_network_configs.get(&Key::named(node));
        (
            node.clone(),
            rollout::progress(&config.spec(revision), told),
        )
    };
    compilation
        .nodes
        .iter()
        .map(|(node, config)| of(node, config))
        .collect()
}

/// The statuses that objects carry now.
fn current(snapshot: &Snapshot) -> BTreeMap<ObjectRef, Value> {
    fn add<S, T: Serialize>(
        kind: Kind,
        objects: &Objects<S, T>,
        all: &mut BTreeMap<ObjectRef, Value>,
    ) {
        for (key, object) in objects {
            let status = object
                .status
                .as_ref()
                .and_then(|status| serde_json::to_value(status).ok());
            all.insert(
                ObjectRef {
                    kind,
                    key: key.clone(),
                },
                status.unwrap_or(Value::Null),
            );
        }
    }
    let mut all = BTreeMap::new();
    add(Kind::Settings, &snapshot.settings, &mut all);
    add(Kind::Vrf, &snapshot.vrfs, &mut all);
    add(Kind::Network, &snapshot.networks, &mut all);
    add(Kind::Destination, &snapshot.destinations, &mut all);
    add(
        Kind::Layer2Attachment,
        &snapshot.layer2_attachments,
        &mut all,
    );
    add(Kind::Inbound, &snapshot.inbounds, &mut all);
    add(Kind::Outbound, &snapshot.outbounds, &mut all);
    add(Kind::PodNetwork, &snapshot.pod_networks, &mut all);
    add(Kind::BgpNeighbor, &snapshot.bgp_neighbors, &mut all);
    let layer2 = &snapshot.layer2_network_configurations;
    add(Kind::Layer2NetworkConfiguration, layer2, &mut all);
    let vrf = &snapshot.vrf_route_configurations;
    add(Kind::VrfRouteConfiguration, vrf, &mut all);
    add(Kind::BgpPeering, &snapshot.bgp_peerings, &mut all);
    add(Kind::Collector, &snapshot.collectors, &mut all);
    add(Kind::TrafficMirror, &snapshot.traffic_mirrors, &mut all);
    add(Kind::MirrorTarget, &snapshot.mirror_targets, &mut all);
    add(Kind::MirrorSelector, &snapshot.mirror_selectors, &mut all);
    all
}

fn now() -> String {
    k8s_openapi::jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string()
}
