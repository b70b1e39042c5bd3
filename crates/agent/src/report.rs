//! The report of the node: the status of its config, written concurrently, without delaying other work.

use std::time::Duration;

use api::{
    meta::{Condition, ConditionStatus, Conditions},
    tcaas::{
        NodeNetworkConfig, NodeNetworkConfigSpec, NodeNetworkConfigStatus,
        node_network_config::{
            ConfigStatus, DEGRADED, DRIFTING, HEALTHY, HELD, HOLD_ANNOTATION, MIRRORS_APPLIED,
            Timings,
        },
    },
};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;
use tokio::{sync::watch, time};

use crate::{
    host::Report,
    machine::{self, State, Status},
};

/// Who we are to the API server: the owner of the fields that an agent writes.
pub(crate) const FIELD_MANAGER: &str = "selvedge-agent";

/// How long the first report waits until it is known what the host's router runs.
const HOST_PATIENCE: Duration = Duration::from_secs(5);
/// How long one write may take.
const WRITE_PATIENCE: Duration = Duration::from_secs(10);
/// The pauses between attempts to write: the first, and the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(20);

/// The status of the assigned config.
pub(crate) fn status(status: &Status, frr_version: Option<String>) -> NodeNetworkConfigStatus {
    let assigned = status.assigned.as_deref();
    let revision = assigned.map(|assigned| assigned.spec.revision.clone());
    let config_status = config_status(status);
    let underlay = assigned.and_then(|assigned| assigned.spec.underlay.as_ref());
    let is_decided = matches!(
        config_status,
        ConfigStatus::Provisioned | ConfigStatus::Invalid
    );
    NodeNetworkConfigStatus {
        config_status,
        last_update: None,
        observed_revision: revision.clone(),
        observed_generation: assigned.map(|assigned| assigned.generation),
        last_applied_revision: revision.filter(|_| is_decided),
        running_revision: status.running.as_ref().map(|it| it.spec.revision.clone()),
        confirmed_revision: status.confirmed.as_ref().map(|it| it.spec.revision.clone()),
        error_message: status.error.clone(),
        timings: status.timings.map(timings),
        as_number: underlay.map(|underlay| underlay.asn.get().into()),
        frr_version,
        host_router: None,
        unattached: status.unattached.clone(),
        conditions: Conditions(conditions(status)),
    }
}

fn timings(timings: machine::Timings) -> Timings {
    let milliseconds = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    Timings {
        apply_milliseconds: milliseconds(timings.apply),
        confirm_milliseconds: milliseconds(timings.confirm),
    }
}

fn config_status(status: &Status) -> ConfigStatus {
    match status.state {
        State::Unassigned => ConfigStatus::Untouched,
        State::Confirmed if status.running.is_some() => ConfigStatus::Provisioned,
        State::Trying | State::Confirmed | State::Restoring | State::Held => {
            ConfigStatus::Provisioning
        }
        State::Rejected => ConfigStatus::Invalid,
    }
}

fn conditions(status: &Status) -> Vec<Condition> {
    let generation = status.assigned.as_ref().map(|assigned| assigned.generation);
    let condition = |kind: &str, holds: bool, reasons: (&str, &str), message: String| Condition {
        kind: kind.to_owned(),
        status: if holds {
            ConditionStatus::True
        } else {
            ConditionStatus::False
        },
        observed_generation: generation,
        last_transition_time: None,
        reason: if holds { reasons.0 } else { reasons.1 }.to_owned(),
        message,
    };
    let mut conditions = vec![
        condition(
            HEALTHY,
            status.unhealthy.is_empty(),
            ("ChecksPassed", "ChecksFailed"),
            status.unhealthy.join("; "),
        ),
        condition(
            DEGRADED,
            !status.notes.is_empty(),
            ("PartsMissing", "Complete"),
            status.notes.join("; "),
        ),
    ];
    if let Some(why) = &status.hold {
        let message = format!("{HOLD_ANNOTATION}: {why}; configuration unchanged");
        conditions.push(condition(HELD, true, ("Annotated", ""), message));
    }
    if let Some(drift) = &status.drift {
        let mut message = format!("repaired {} times within five minutes", drift.repairs);
        if let Some(difference) = &drift.backed_off {
            message.push_str("; keeps coming back: ");
            message.push_str(difference);
        }
        let (is_put_off, reasons) = (drift.backed_off.is_some(), ("RepairsPutOff", "Repaired"));
        conditions.push(condition(DRIFTING, is_put_off, reasons, message));
    }
    let has_mirrors = status
        .assigned
        .as_ref()
        .is_some_and(|assigned| has_mirrors(&assigned.spec));
    if has_mirrors || !status.mirror_failures.is_empty() {
        conditions.push(condition(
            MIRRORS_APPLIED,
            status.mirror_failures.is_empty(),
            ("Applied", "Failed"),
            status.mirror_failures.join("; "),
        ));
    }
    conditions
}

fn has_mirrors(config: &NodeNetworkConfigSpec) -> bool {
    let mut vrfs = config.vrfs();
    let mut layer2s = config.layer2s.values();
    vrfs.any(|vrf| !vrf.mirror_acls.is_empty() || !vrf.gres.is_empty())
        || layer2s.any(|layer2| !layer2.mirror_acls.is_empty())
}

/// Puts the part of the host's router into each status of the node's config.
pub(crate) async fn with_host(
    mut statuses: watch::Receiver<Option<NodeNetworkConfigStatus>>,
    mut host: watch::Receiver<Report>,
    whole: watch::Sender<Option<NodeNetworkConfigStatus>>,
) {
    // A report of an agent that has just started must not say that nothing runs.
    let known = host.wait_for(|report| report.status.running.is_some());
    if time::timeout(HOST_PATIENCE, known).await.is_err() {
        tracing::debug!("it is not known yet what the host's router runs");
    }
    loop {
        let mut latest = statuses.borrow_and_update().clone();
        let of_host = host.borrow_and_update().of_config();
        if let Some(status) = &mut latest {
            status.host_router = of_host;
        }
        whole.send_if_modified(|known| {
            let is_new = *known != latest;
            *known = latest;
            is_new
        });
        tokio::select! {
            Ok(()) = statuses.changed() => {}
            Ok(()) = host.changed() => {}
            else => return,
        }
    }
}

/// When the API server may have lost a status that it had taken.
pub(crate) struct Lost {
    /// The uid of the config: another object of the same name has no status.
    pub(crate) object: watch::Receiver<String>,
    /// Counts how often the API server returns older versions.
    pub(crate) restores: watch::Receiver<u64>,
}

impl Lost {
    /// Waits until that may have happened.
    async fn happens(&mut self) {
        tokio::select! {
            Ok(()) = self.object.changed() => {}
            Ok(()) = self.restores.changed() => {}
            else => std::future::pending().await,
        }
    }
}

/// Writes each new status, again and again until the API server has taken it or a newer one is there.
pub(crate) async fn write_all(
    api: Api<NodeNetworkConfig>,
    node: String,
    mut statuses: watch::Receiver<Option<NodeNetworkConfigStatus>>,
    mut lost: Lost,
) {
    let mut written: Option<NodeNetworkConfigStatus> = None;
    loop {
        tokio::select! {
            changed = statuses.changed() => if changed.is_err() {
                return;
            },
            () = lost.happens() => written = None,
        }
        let mut pause = FIRST_PAUSE;
        loop {
            let latest = statuses.borrow_and_update().clone();
            let Some(latest) = latest.filter(|latest| written.as_ref() != Some(latest)) else {
                break;
            };
            match write(&api, &node, &latest).await {
                Ok(()) => written = Some(latest),
                Err(error) => {
                    tracing::warn!(error, "failed to report; continuing without");
                    time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }
}

async fn write(
    api: &Api<NodeNetworkConfig>,
    node: &str,
    status: &NodeNetworkConfigStatus,
) -> Result<(), String> {
    let mut status = status.clone();
    status.last_update = Some(
        k8s_openapi::jiff::Timestamp::now()
            .strftime("%Y-%m-%dT%H:%M:%SZ")
            .to_string(),
    );
    let patch = json!({
        "apiVersion": "network.t-caas.telekom.com/v1alpha1",
        "kind": "NodeNetworkConfig",
        "metadata": {"name": node},
        "status": status,
    });
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let patch = Patch::Apply(patch);
    let write = api.patch_status(node, &params, &patch);
    match time::timeout(WRITE_PATIENCE, write).await {
        Ok(outcome) => outcome.map(drop).map_err(|error| chain(&error)),
        Err(_elapsed) => Err(format!("no answer within {WRITE_PATIENCE:?}")),
    }
}

/// An error with everything behind it, on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.ends_with(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = error.source();
    }
    text
}
