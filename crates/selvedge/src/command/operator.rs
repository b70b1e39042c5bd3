//! `selvedge operator`

use std::{fs, time::Duration};

use anyhow::Context;
use api::value::Seconds;
use kube::Client;
use operator::{Election, Options};

use crate::{args::Operator, output::Verdict};

pub(super) fn run(args: &Operator) -> anyhow::Result<Verdict> {
    let duration = |time: Seconds| Duration::from_secs(time.get().into());
    let election = Election {
        identity: identity()?,
        lease_duration: duration(args.lease_duration),
        renew_deadline: duration(args.renew_deadline),
        retry_period: duration(args.retry_period),
    };
    election.check()?;
    crate::telemetry::init();
    // The loop of the operator may be busy for a while with a large cluster. The Lease is renewed and probes are answered meanwhile.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("failed to start")?;
    runtime.block_on(async {
        let mut config = super::configuration(&args.cluster).await?;
        // Every request is sent only while this operator leads; the operator repeats what failed itself.
        config.default_retry = false;
        let client = Client::try_from(config).context("failed to make a client")?;
        tracing::info!(version = env!("CARGO_PKG_VERSION"), "operator starts");
        let options = Options {
            election,
            listen: args.listen.0,
            metrics_listen: args.metrics_listen.0,
            in_cluster_ipam: args.in_cluster_ipam,
        };
        operator::run(client, options, super::stop_signal()?)
            .await
            .map_err(anyhow::Error::from)
    })?;
    Ok(Verdict::Fine)
}

/// A name for this process that no other one has, also after a restart on the same host.
fn identity() -> anyhow::Result<String> {
    let read = |path| fs::read_to_string(path).with_context(|| format!("failed to read {path}"));
    let (host, unique) = (
        read("/proc/sys/kernel/hostname")?,
        read("/proc/sys/kernel/random/uuid")?,
    );
    Ok(format!("{}_{}", host.trim(), unique.trim()))
}
