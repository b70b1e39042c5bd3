//! `selvedge agent`

use std::path::Path;

use agent::{Paths, Reconciler};
use anyhow::Context;
use api::tcaas::NodeNetworkConfig;
use compiler::names::ROUTER_NAMESPACE;

use crate::{
    args::Agent,
    output::{self, Verdict},
};

pub(super) fn run(args: &Agent) -> anyhow::Result<Verdict> {
    let paths = Paths {
        daemons: args.frr_daemons.clone(),
        ..Paths::default()
    };
    if let Some(file) = &args.config {
        return once(file, paths);
    }
    let node = args.node.as_deref().context("--node is needed")?;
    super::daemon(async || {
        let client = super::client(&args.cluster).await?;
        tracing::info!(version = env!("CARGO_PKG_VERSION"), node, "agent starts");
        agent::run(client, node, paths, ROUTER_NAMESPACE)
            .await
            .map_err(anyhow::Error::from)
    })?;
    Ok(Verdict::Fine)
}

/// Applies one config from a file and says what was done.
fn once(file: &Path, paths: Paths) -> anyhow::Result<Verdict> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("failed to read {}", file.display()))?;
    let config: NodeNetworkConfig = serde_saphyr::from_str(&text)
        .with_context(|| format!("failed to read {}", file.display()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("failed to start")?;
    let outcome = runtime.block_on(async {
        Reconciler::open(paths, ROUTER_NAMESPACE)
            .await?
            .reconcile(&config.spec)
            .await
    });
    match outcome {
        Ok(applied) => {
            output::text(&format!("{applied}\n"));
            for note in &applied.notes {
                output::note(&format!("note: {note}"));
            }
            Ok(Verdict::Fine)
        }
        Err(failure) => {
            output::note(&format!("error: {:#}", anyhow::Error::from(failure)));
            Ok(Verdict::Problems)
        }
    }
}
