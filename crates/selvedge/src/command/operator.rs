//! `selvedge operator`

use crate::{args::Cluster, output::Verdict};

pub(super) fn run(cluster: &Cluster) -> anyhow::Result<Verdict> {
    super::daemon(async || {
        let client = super::client(cluster).await?;
        tracing::info!(version = env!("CARGO_PKG_VERSION"), "operator starts");
        operator::run(client).await.map_err(anyhow::Error::from)
    })?;
    Ok(Verdict::Fine)
}
