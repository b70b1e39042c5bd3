//! One file for each command.

mod agent;
mod compile;
mod crds;
mod demo;
mod elements;
mod explain;
#[cfg(test)]
mod fuzz;
mod groups;
mod ipam;
mod manual;
mod node;
mod operator;
mod plan;
mod problems;
mod raw;
mod reach;
mod render;
mod rollout;
mod status;
mod validate;
mod version;
mod watch;
mod where_is;
mod why_not;

use std::{io::ErrorKind, path::Path, sync::Arc};

use anyhow::{Context, anyhow};
use compiler::Prepared;
use kube::{
    Client, Config,
    config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError},
};

use serde_json::Value;

use crate::{
    args::{Args, Cluster, Command, Crds, Input, Render, Screen},
    input::{self, Stored, World, nothing_in},
    output::{self, Verdict},
};

/// Runs a command.
pub(crate) fn run(args: Args) -> anyhow::Result<Verdict> {
    if let Some(screen) = args.command.screen() {
        output::on_screen(screen);
    }
    match args.command {
        Command::Demo => demo::run(),
        Command::Crds(_) => crds::run(),
        Command::Validate(args) => validate::run(&args),
        Command::Compile(args) => compile::run(&args),
        Command::Render(args) => render::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::WhyNot(args) => why_not::run(&args),
        Command::Reach(args) => reach::run(&args),
        Command::Where(args) => where_is::run(&args),
        Command::Ipam(args) => ipam::run(&args),
        Command::Completions(args) => manual::completions(&args),
        Command::Man(args) => manual::pages(&args),
        Command::Status(args) => status::run(&args),
        Command::Rollout(args) => rollout::run(args),
        Command::Node(args) => node::run(&args),
        Command::Operator(args) => operator::run(&args),
        Command::Agent(args) => agent::run(&args),
        Command::Version => Ok(version::run()),
    }
}

impl Command {
    /// How much is shown, for commands whose output may be long.
    fn screen(&self) -> Option<Screen> {
        let screen = match self {
            Self::Validate(args) => Some(&args.screen),
            Self::Compile(args) => Some(&args.screen),
            Self::Plan(args) => Some(&args.screen),
            Self::Explain(args) | Self::WhyNot(args) => Some(&args.screen),
            Self::Reach(args) => Some(&args.screen),
            Self::Where(args) => Some(&args.screen),
            Self::Ipam(args) => Some(&args.screen),
            Self::Crds(Crds { paging }) | Self::Render(Render { paging, .. }) => {
                return Some(Screen {
                    paging: paging.clone(),
                    ..Screen::default()
                });
            }
            _ => None,
        };
        screen.cloned()
    }
}

/// Reads what was named: files, a cluster, or files that are applied to a cluster.
fn world(input: &Input) -> anyhow::Result<World> {
    let world = input::read_over(&input.paths, stored(input)?)?;
    anyhow::ensure!(!world.is_empty(), "{}", nothing_in(&input.paths));
    Ok(world)
}

/// The objects of the cluster that was named; none where files alone were.
fn stored(input: &Input) -> anyhow::Result<Stored> {
    let Input {
        paths: _,
        context,
        kubeconfig,
    } = input;
    if context.is_none() && kubeconfig.is_none() {
        return Ok(Stored::default());
    }
    let cluster = Cluster {
        kubeconfig: kubeconfig.clone(),
        context: context.clone(),
    };
    let documents = runtime()?.block_on(async {
        let client = client(&cluster).await?;
        ::operator::objects(&client, ::operator::watched())
            .await
            .map_err(anyhow::Error::from)
    })?;
    let named = |document: Value| {
        let subject = Prepared::read(&document).ok()?.subject().clone();
        Some((subject, document))
    };
    Ok(Arc::new(documents.into_iter().filter_map(named).collect()))
}

/// A client of the cluster that was named, or of the one we run in.
async fn client(cluster: &Cluster) -> anyhow::Result<Client> {
    Client::try_from(configuration(cluster).await?).context("failed to make a client")
}

/// How the cluster that was named, or the one we run in, is reached.
async fn configuration(cluster: &Cluster) -> anyhow::Result<Config> {
    let options = KubeConfigOptions {
        context: cluster.context.clone(),
        ..KubeConfigOptions::default()
    };
    Ok(match &cluster.kubeconfig {
        Some(path) => {
            let file = Kubeconfig::read_from(path).map_err(|error| unread(path, &error))?;
            Config::from_custom_kubeconfig(file, &options)
                .await
                .context("failed to use the kubeconfig")?
        }
        None if cluster.context.is_some() => Config::from_kubeconfig(&options)
            .await
            .context("failed to use the kubeconfig")?,
        None => Config::infer().await.map_err(|error| no_cluster(&error))?,
    })
}

/// Why a kubeconfig cannot be read. An error of the library repeats its sources.
fn unread(path: &Path, error: &KubeconfigError) -> anyhow::Error {
    let path = path.display();
    match error {
        KubeconfigError::ReadConfig(error, _) => anyhow!("failed to read {path}: {error}"),
        other => anyhow!("{path} is not a kubeconfig: {other}"),
    }
}

/// Why there is no cluster where none was named.
fn no_cluster(error: &InferConfigError) -> anyhow::Error {
    let source = std::error::Error::source(error);
    let source = source.and_then(|source| source.downcast_ref::<KubeconfigError>());
    let why = match source {
        Some(KubeconfigError::ReadConfig(error, path)) if error.kind() == ErrorKind::NotFound => {
            format!("{} does not exist, and this is not a pod", path.display())
        }
        Some(other) => other.to_string(),
        None => error.to_string(),
    };
    anyhow!("found no cluster: {why}; name one with --kubeconfig")
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("failed to start")
}

/// Done when the process is asked to end.
fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    // From now on, also while nothing waits for them yet.
    let listen = |kind| signal(kind).context("failed to listen for signals");
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut hangup = listen(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}
