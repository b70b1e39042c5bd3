//! The node's own objects besides its config: the Node with its hold annotation and its taints, and the NodeNetworkStatus.

use std::time::Duration;

use api::tcaas::{
    NodeNetworkConfigStatus, NodeNetworkStatus, NodeNetworkStatusStatus,
    node_network_config::{ConfigStatus, HOLD_ANNOTATION},
};
use futures::StreamExt as _;
use k8s_openapi::{api::core::v1::Node, jiff::Timestamp};
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams},
    core::PartialObjectMeta,
    runtime::watcher::{self, Event},
};
use linux::netlink::{Capability, Kernel};
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, watch},
    time,
};

use super::{Cluster, REQUEST_PATIENCE, WATCH_SECONDS, restored};
use crate::{
    daemons::{self, Instance, Paths},
    inventory::{self, Inventory},
    machine::Assigned,
    report::{FIELD_MANAGER, chain},
};

/// Between two looks at the node without any announced change.
const LOOK: Duration = Duration::from_secs(30);
/// Changes come in groups; one report is enough for a group.
const DEBOUNCE: Duration = Duration::from_secs(2);
/// An unchanged report is written again after this long: a reader sees that the agent runs.
const HEARTBEAT: Duration = Duration::from_mins(5);
/// Before another attempt to write.
const PAUSE: Duration = Duration::from_secs(5);

/// The hold annotation of the Node: unknown until the API server has answered for the first time.
pub(super) type Hold = Option<Option<String>>;

impl Cluster {
    /// Follows the hold annotation of the Node.
    pub(super) async fn watch_hold(&self, client: Client, hold: watch::Sender<Hold>) {
        let api: Api<PartialObjectMeta<Node>> = Api::all(client);
        let only_mine = watcher::Config::default()
            .fields(&format!("metadata.name={}", self.node))
            .timeout(WATCH_SECONDS);
        let events = restored::follow(api, only_mine, self.restores.subscribe());
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Apply(node) | Event::InitApply(node)) => {
                    let latest = node.annotations().get(HOLD_ANNOTATION).cloned();
                    hold.send_replace(Some(latest));
                }
                // A node that is not in the cluster is not held.
                Ok(Event::InitDone) => {
                    hold.send_if_modified(|known| known.get_or_insert_default().is_none());
                }
                Ok(Event::Init | Event::Delete(_)) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot watch the Node");
                    // The API server has answered: an agent without the right to read Nodes need not wait.
                    if matches!(
                        &error,
                        watcher::Error::InitialListFailed(kube::Error::Api(_))
                    ) {
                        hold.send_if_modified(|known| known.get_or_insert_default().is_none());
                    }
                }
            }
        }
    }

    /// Removes the start-up taints when the first config is confirmed. They are never put back.
    pub(super) async fn remove_taints(
        &self,
        client: Client,
        mut statuses: watch::Receiver<Option<NodeNetworkConfigStatus>>,
    ) {
        let is_provisioned = |status: &Option<NodeNetworkConfigStatus>| {
            let status = status.as_ref();
            status.is_some_and(|status| status.config_status == ConfigStatus::Provisioned)
        };
        if self.startup_taints.is_empty() || statuses.wait_for(is_provisioned).await.is_err() {
            return;
        }
        let api: Api<Node> = Api::all(client);
        loop {
            let attempt = time::timeout(REQUEST_PATIENCE, self.without_taints(&api));
            match attempt.await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => {
                    tracing::warn!(error = chain(&error), "failed to remove the start-up taint");
                }
                Err(_elapsed) => tracing::warn!("failed to remove the start-up taint: no answer"),
            }
            time::sleep(PAUSE).await;
        }
    }

    async fn without_taints(&self, api: &Api<Node>) -> Result<(), kube::Error> {
        let Some(node) = api.get_opt(&self.node).await? else {
            return Ok(());
        };
        let version = node.resource_version();
        let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
        let mut left = taints.clone();
        left.retain(|taint| !self.startup_taints.contains(&taint.key));
        if left.len() == taints.len() {
            return Ok(());
        }
        // Another writer of taints must not be overwritten: with a stale version the API server refuses.
        let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": left}});
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        api.patch(&self.node, &params, &Patch::Merge(patch)).await?;
        tracing::info!("removed the start-up taint");
        Ok(())
    }

    /// Reports interfaces, routes and abilities of the node: on change, and periodically.
    pub(super) async fn report_inventory(&self, client: Client, paths: Paths, namespace: String) {
        let api: Api<NodeNetworkStatus> = Api::all(client);
        let frr = Instance::router(&paths, &namespace);
        let kernel = loop {
            match Kernel::open(&namespace) {
                Ok(kernel) => break kernel,
                Err(error) => {
                    tracing::warn!(error = chain(&error), "cannot read the state of the node");
                }
            }
            time::sleep(PAUSE).await;
        };
        let changes = kernel
            .changes_of_host()
            .inspect_err(|error| {
                tracing::warn!(
                    error = chain(error),
                    "cannot subscribe to changes of the kernel; they are found by periodic checks"
                );
            })
            .ok();
        // Once: to try loads modules of the kernel, and what it can do does not change while it runs.
        let abilities = kernel.capabilities().await.unwrap_or_else(|error| {
            tracing::warn!(
                error = chain(&error),
                "cannot determine the features of the kernel"
            );
            Vec::new()
        });
        let mut written: Option<(NodeNetworkStatusStatus, time::Instant)> = None;
        loop {
            if let Some(latest) = look(&kernel, &frr, &abilities).await {
                let latest = inventory::status(&latest, &namespace);
                let is_due = written
                    .as_ref()
                    .is_none_or(|(known, at)| *known != latest || at.elapsed() >= HEARTBEAT);
                if is_due && self.write_inventory(&api, &latest).await {
                    written = Some((latest, time::Instant::now()));
                }
            }
            let announced = async {
                match &changes {
                    Some(changes) => changes.next().await,
                    None => std::future::pending().await,
                }
            };
            if time::timeout(LOOK, announced).await.is_ok() {
                time::sleep(DEBOUNCE).await;
            }
        }
    }

    /// Writes the report; whether the API server took it.
    async fn write_inventory(
        &self,
        api: &Api<NodeNetworkStatus>,
        latest: &NodeNetworkStatusStatus,
    ) -> bool {
        let why = match time::timeout(REQUEST_PATIENCE, write(api, &self.node, latest)).await {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => chain(&error),
            Err(_elapsed) => "no answer".to_owned(),
        };
        tracing::warn!(error = why, "failed to write the NodeNetworkStatus");
        false
    }
}

/// Looks at the node; `None` if that fails.
async fn look(kernel: &Kernel, frr: &Instance, abilities: &[Capability]) -> Option<Inventory> {
    let seen = async {
        let interfaces = kernel.interfaces().await?;
        Ok::<_, linux::netlink::Error>((interfaces, kernel.host_routes().await?))
    };
    let (interfaces, routes) = match time::timeout(REQUEST_PATIENCE, seen).await {
        Ok(Ok(seen)) => seen,
        Ok(Err(error)) => {
            tracing::warn!(error = chain(&error), "cannot read the state of the node");
            return None;
        }
        Err(_elapsed) => {
            tracing::warn!("cannot read the state of the node: the kernel does not answer");
            return None;
        }
    };
    let frr_version = daemons::version(frr, REQUEST_PATIENCE).await;
    Some(Inventory {
        interfaces,
        routes,
        kernel: abilities.to_vec(),
        kernel_version: Some(
            rustix::system::uname()
                .release()
                .to_string_lossy()
                .into_owned(),
        ),
        frr_version: frr_version
            .map(|version| version.to_string())
            .map_err(|error| chain(&error)),
    })
}

/// Writes the report, and creates its object if it does not exist.
async fn write(
    api: &Api<NodeNetworkStatus>,
    node: &str,
    status: &NodeNetworkStatusStatus,
) -> Result<(), kube::Error> {
    let now = Timestamp::now();
    let mut status = status.clone();
    status.last_updated = Some(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    let object = |part: &str, content: Value| {
        json!({
            "apiVersion": "network.t-caas.telekom.com/v1alpha1",
            "kind": "NodeNetworkStatus",
            "metadata": {"name": node},
            part: content,
        })
    };
    let status = serde_json::to_value(status).map_err(kube::Error::SerdeError)?;
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let reported = Patch::Apply(object("status", status));
    match api.patch_status(node, &params, &reported).await {
        Err(kube::Error::Api(answer)) if answer.code == 404 => {
            let fresh = Patch::Apply(object("spec", json!({})));
            api.patch(node, &params, &fresh).await?;
            api.patch_status(node, &params, &reported).await.map(drop)
        }
        outcome => outcome.map(drop),
    }
}

/// Passes on each config with the hold of the Node, again when the hold changes.
pub(super) async fn with_hold(
    mut configs: mpsc::Receiver<Assigned>,
    mut holds: watch::Receiver<Hold>,
    assigned: mpsc::Sender<Assigned>,
) {
    // Without an answer about the Node in time, the node counts as not held: an agent that may not read Nodes works, too.
    let known = time::timeout(REQUEST_PATIENCE, holds.wait_for(Option::is_some));
    let is_known = matches!(known.await, Ok(Ok(_)));
    if !is_known {
        tracing::warn!("cannot read the Node; its hold annotation is not used");
    }
    let mut latest: Option<Assigned> = None;
    loop {
        tokio::select! {
            config = configs.recv() => match config {
                Some(config) => latest = Some(config),
                None => return,
            },
            Ok(()) = holds.changed() => {}
        }
        let Some(mut config) = latest.clone() else {
            continue;
        };
        let of_node = holds.borrow_and_update().clone().flatten();
        config.hold = config.hold.or(of_node);
        if assigned.send(config).await.is_err() {
            return;
        }
    }
}
