//! Keeps the routes of silent workloads: every half a minute it makes the kernel ask for neighbors behind the gateways of segments that it has
//! not heard of for a while. A task of its own, so that its clock does not begin anew with each config.

use std::{collections::BTreeSet, time::Duration};

use api::tcaas::NodeNetworkConfigSpec;
use linux::netlink::Kernel;
use tokio::{sync::watch, time};

use crate::report;

/// Between two rounds. A bridge forgets a silent workload after five minutes.
const PERIOD: Duration = Duration::from_secs(30);
/// How long a round may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The bridges with the gateways of a config's segments.
pub(crate) fn gateways(config: &NodeNetworkConfigSpec) -> BTreeSet<String> {
    let segments = config.layer2s.values();
    let routed = segments.filter(|segment| segment.irb.is_some());
    routed
        .map(|segment| segment.devices.bridge.to_string())
        .collect()
}

/// Asks for silent neighbors until the agent ends.
pub(crate) async fn refresh(namespace: String, gateways: watch::Receiver<BTreeSet<String>>) {
    let mut rounds = time::interval(PERIOD);
    rounds.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
    loop {
        rounds.tick().await;
        let bridges = gateways.borrow().clone();
        if bridges.is_empty() {
            continue;
        }
        match time::timeout(PATIENCE, ask(&namespace, &bridges)).await {
            Ok(Ok(asked)) => tracing::debug!(asked, "asked for silent neighbors"),
            Ok(Err(why)) => tracing::warn!(why, "silent neighbors are not asked for"),
            Err(_elapsed) => tracing::warn!("the kernel is slow to ask for silent neighbors"),
        }
    }
}

async fn ask(namespace: &str, bridges: &BTreeSet<String>) -> Result<usize, String> {
    let kernel = Kernel::open(namespace).map_err(|error| report::chain(&error))?;
    let neighbors = kernel.neighbors().await;
    match neighbors.map_err(|error| report::chain(&error))? {
        Some(neighbors) => {
            let asked = neighbors.ask_silent(bridges).await;
            asked.map_err(|error| report::chain(&error))
        }
        None => Ok(0),
    }
}
