//! `selvedge node`

use std::collections::BTreeSet;

use anyhow::{Context, bail, ensure};
use api::{
    selvedge::{AGENT_LEASE_LIFETIME, AGENT_LEASES},
    tcaas::{NodeNetworkConfig, NodeNetworkStatus},
};
use k8s_openapi::{
    api::{coordination::v1::Lease, core::v1::Node as Machine},
    jiff::Timestamp,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions},
};
use serde_json::json;

use crate::{
    args::{Forget, Node},
    output::{self, Verdict},
};

pub(super) fn run(args: &Node) -> anyhow::Result<Verdict> {
    match args {
        Node::Forget(args) => super::runtime()?.block_on(forget(args)),
    }
}

/// Deletes what holds the addresses of a machine whose Node is gone.
async fn forget(args: &Forget) -> anyhow::Result<Verdict> {
    let Forget {
        node,
        force,
        cluster,
    } = args;
    let client = super::client(cluster).await?;
    let configs: Api<NodeNetworkConfig> = Api::all(client.clone());
    let config = configs.get_metadata_opt(node).await;
    let config = config.context("failed to read the NodeNetworkConfig")?;
    let Some(config) = config else {
        output::text(&format!(
            "there is no NodeNetworkConfig {node}: it holds nothing\n"
        ));
        return Ok(Verdict::Problems);
    };
    let machines: Api<Machine> = Api::all(client.clone());
    let machine = machines.get_metadata_opt(node).await;
    ensure!(
        machine.context("failed to read the Node")?.is_none(),
        "Node {node} is part of the cluster: its addresses are in use; delete the Node first"
    );
    if !force && is_alive(&client, node).await? {
        bail!(
            "the agent of {node} still answers, so the machine uses its addresses; \
             run `selvedge agent cleanup` on it, or use --force"
        );
    }
    // Not another that was made meanwhile: the machine may have joined again.
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: config.uid(),
            resource_version: config.resource_version(),
        }),
        ..DeleteParams::default()
    };
    let deleted = configs.delete(node, &params).await;
    deleted.with_context(|| format!("failed to delete NodeNetworkConfig {node}"))?;
    let reports: Api<NodeNetworkStatus> = Api::all(client.clone());
    gone(
        reports
            .delete(node, &DeleteParams::default())
            .await
            .map(drop),
    )?;
    let leases: Api<Lease> = Api::namespaced(client, AGENT_LEASES);
    gone(
        leases
            .delete(node, &DeleteParams::default())
            .await
            .map(drop),
    )?;
    output::text(&format!("{node} is forgotten: its addresses are free\n"));
    Ok(Verdict::Fine)
}

/// Whether the agent of a machine has renewed its Lease lately.
async fn is_alive(client: &Client, node: &str) -> anyhow::Result<bool> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), AGENT_LEASES);
    let lease = leases.get_opt(node).await;
    let lease = lease.context("failed to read the Lease of the agent")?;
    let renewed = lease.and_then(|lease| lease.spec?.renew_time);
    let age = renewed.map(|renewed| Timestamp::now().duration_since(renewed.0).unsigned_abs());
    Ok(age.is_some_and(|age| age < AGENT_LEASE_LIFETIME))
}

/// What is not there need not be deleted.
fn gone(deleted: kube::Result<()>) -> anyhow::Result<()> {
    match deleted {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        deleted => deleted.context("failed to delete what the agent reported"),
    }
}

/// Says that a machine runs nothing of its config any more.
pub(super) async fn removed(client: Client, node: &str) -> anyhow::Result<()> {
    let configs: Api<NodeNetworkConfig> = Api::all(client);
    let status = json!({"status": {"configStatus": "removed", "observedRevision": null}});
    let written = configs
        .patch_status(node, &PatchParams::default(), &Patch::Merge(status))
        .await;
    match written {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        written => written.map(drop).with_context(|| {
            format!("cleaned up, but failed to say so in NodeNetworkConfig {node}: `selvedge node forget {node}` frees its addresses")
        }),
    }
}

/// The machines whose Node was deleted, and that still hold their addresses.
pub(super) async fn deleted(client: &Client) -> anyhow::Result<BTreeSet<String>> {
    let machines: Api<Machine> = Api::all(client.clone());
    let configs: Api<NodeNetworkConfig> = Api::all(client.clone());
    let params = ListParams::default();
    let machines = machines.list_metadata(&params).await;
    let machines = machines.context("failed to list Nodes")?;
    let configs = configs.list_metadata(&params).await;
    let configs = configs.context("failed to list NodeNetworkConfigs")?;
    let machines: BTreeSet<String> = machines.iter().map(ResourceExt::name_any).collect();
    let configs = configs.iter().map(ResourceExt::name_any);
    Ok(configs.filter(|name| !machines.contains(name)).collect())
}
