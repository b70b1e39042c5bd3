//! `selvedge agent`

mod manifests;

use std::{path::Path, sync::Arc};

use agent::{Connect, Done, Options, Paths, Source, machine::Assigned};
use anyhow::Context;
use api::tcaas::{NodeNetworkConfig, NodeNetworkConfigSpec};
use compiler::names::ROUTER_NAMESPACE;
use kube::Client;
use tokio::sync::mpsc;

use self::manifests::Manifests;
use crate::{
    args::{Agent, AgentCommand, Cleanup, Places},
    output::{self, Verdict},
};

pub(super) fn run(args: &Agent) -> anyhow::Result<Verdict> {
    if let Some(AgentCommand::Cleanup(args)) = &args.command {
        return cleanup(args);
    }
    if let Some(file) = &args.config {
        return once(&read(file)?, args);
    }
    let node = args.node.as_deref().context("--node is needed")?;
    crate::telemetry::init();
    super::runtime()?.block_on(async {
        let source = if args.manifests.is_empty() {
            Source::Cluster(connect(args))
        } else {
            Source::Files(manifests(args, node))
        };
        let options = Options {
            node: node.to_owned(),
            paths: paths(&args.places),
            namespace: ROUTER_NAMESPACE.to_owned(),
            secrets_namespace: args.secrets_namespace.clone(),
            own_account: args.account.own_account,
            report_only: args.report_unmanaged_lines,
            startup_taints: args.startup_taints.clone(),
            listen: args.listen.0,
        };
        tracing::info!(version = env!("CARGO_PKG_VERSION"), node, "agent starts");
        agent::run(source, options, super::stop_signal()?)
            .await
            .map_err(anyhow::Error::from)
    })?;
    Ok(Verdict::Fine)
}

/// Gives the node back, then reports it to the cluster: a node that was not cleaned up keeps its addresses.
fn cleanup(args: &Cleanup) -> anyhow::Result<Verdict> {
    let runtime = super::runtime()?;
    let done = runtime.block_on(agent::cleanup(paths(&args.places), ROUTER_NAMESPACE));
    let is_done = done.is_ok();
    // What could not be given back is remembered, so that the same command attempts it again.
    let is_whole = done.as_ref().is_ok_and(|done| done.notes.is_empty());
    let verdict = match told(done.map_err(Into::into)) {
        Verdict::Fine if !is_whole => Verdict::Problems,
        verdict => verdict,
    };
    if let Some(node) = args.node.as_ref().filter(|_| is_done) {
        let reported = async { super::node::removed(own_client(args, node).await?, node).await };
        runtime.block_on(reported)?;
    }
    Ok(verdict)
}

/// A client with the account that a cleanup works with.
async fn own_client(args: &Cleanup, node: &str) -> anyhow::Result<Client> {
    let mut config = super::configuration(&args.cluster).await?;
    if args.account.own_account {
        let token = paths(&args.places).token();
        let own = agent::own_account(config, node, &token).await;
        config = own.map_err(anyhow::Error::msg)?;
    }
    Client::try_from(config).context("failed to make a client")
}

fn connect(args: &Agent) -> Connect {
    let cluster = args.cluster.clone();
    Arc::new(move || {
        let cluster = cluster.clone();
        Box::pin(async move {
            let config = super::configuration(&cluster).await;
            config.map_err(|error| format!("{error:#}"))
        })
    })
}

/// Starts to watch files; their configs come out of the channel.
fn manifests(args: &Agent, node: &str) -> mpsc::Receiver<Assigned> {
    let state = args.places.state_directory.clone();
    let manifests = Manifests::new(&args.manifests, node, &args.secrets_namespace, state);
    let (sender, assigned) = mpsc::channel(1);
    tokio::spawn(manifests.watch(sender));
    assigned
}

fn paths(places: &Places) -> Paths {
    Paths {
        daemons: places.frr_daemons.clone(),
        state: places.state_directory.clone(),
        ..Paths::default()
    }
}

fn read(file: &Path) -> anyhow::Result<NodeNetworkConfigSpec> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("failed to read {}", file.display()))?;
    let config: NodeNetworkConfig = serde_saphyr::from_str(&text)
        .with_context(|| format!("failed to read {}", file.display()))?;
    Ok(config.spec)
}

/// Applies one config, or says what applying it would do.
fn once(spec: &NodeNetworkConfigSpec, args: &Agent) -> anyhow::Result<Verdict> {
    let runtime = super::runtime()?;
    let (spec, paths) = (spec.clone(), paths(&args.places));
    if args.dry_run {
        let preview = runtime.block_on(agent::preview(spec, paths, ROUTER_NAMESPACE));
        return Ok(said(preview.map_err(Into::into)));
    }
    let done = runtime.block_on(async {
        let stop = super::stop_signal()?;
        let done = agent::apply(spec, paths, ROUTER_NAMESPACE, stop).await;
        done.map_err(anyhow::Error::from)
    });
    Ok(told(done))
}

/// Prints what was done with its notes, or why nothing was.
fn told(done: anyhow::Result<Done>) -> Verdict {
    for note in done.iter().flat_map(|done| &done.notes) {
        output::note(&format!("note: {note}"));
    }
    said(done.map(|done| done.changes))
}

/// Prints what was done, or why nothing was.
fn said(outcome: anyhow::Result<String>) -> Verdict {
    match outcome {
        Ok(text) => {
            output::text(&format!("{text}\n"));
            Verdict::Fine
        }
        Err(error) => {
            output::note(&format!("error: {error:#}"));
            Verdict::Problems
        }
    }
}
