//! What the node says: the status of its config.

use api::{
    meta::{Condition, ConditionStatus, Conditions},
    tcaas::{
        NodeNetworkConfig, NodeNetworkConfigSpec, NodeNetworkConfigStatus,
        node_network_config::{ConfigStatus, MIRRORS_APPLIED},
    },
};
use frr::FrrVersion;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{Applied, Failure};

/// Who we are to the API server: the owner of the fields that an agent writes.
const FIELD_MANAGER: &str = "selvedge-agent";

/// The status of a config after an attempt to apply it.
pub(crate) fn status(
    config: &NodeNetworkConfig,
    outcome: &Result<Applied, Failure>,
    version: FrrVersion,
) -> NodeNetworkConfigStatus {
    let revision = Some(config.spec.revision.clone());
    NodeNetworkConfigStatus {
        config_status: match outcome {
            Ok(_) => ConfigStatus::Provisioned,
            Err(_) => ConfigStatus::Invalid,
        },
        last_update: None,
        observed_revision: revision.clone(),
        observed_generation: config.metadata.generation,
        last_applied_revision: revision,
        error_message: outcome.as_ref().err().map(|failure| chain(failure)),
        as_number: config
            .spec
            .underlay
            .as_ref()
            .map(|underlay| underlay.asn.get().into()),
        frr_version: Some(version.to_string()),
        conditions: Conditions(mirrors(config, outcome).into_iter().collect()),
    }
}

/// Whether the node copies what it should, if it should copy anything.
fn mirrors(config: &NodeNetworkConfig, outcome: &Result<Applied, Failure>) -> Option<Condition> {
    let applied = outcome.as_ref().ok()?;
    if !has_mirrors(&config.spec) && applied.mirror_failures.is_empty() {
        return None;
    }
    let (status, reason) = if applied.mirror_failures.is_empty() {
        (ConditionStatus::True, "Applied")
    } else {
        (ConditionStatus::False, "Failed")
    };
    Some(Condition {
        kind: MIRRORS_APPLIED.to_owned(),
        status,
        observed_generation: config.metadata.generation,
        last_transition_time: None,
        reason: reason.to_owned(),
        message: applied.mirror_failures.join("; "),
    })
}

fn has_mirrors(config: &NodeNetworkConfigSpec) -> bool {
    let mut vrfs = config.vrfs();
    let mut layer2s = config.layer2s.values();
    vrfs.any(|vrf| !vrf.mirror_acls.is_empty() || !vrf.gres.is_empty())
        || layer2s.any(|layer2| !layer2.mirror_acls.is_empty())
}

/// Writes the status, unless the object already says the same.
pub(crate) async fn write(
    api: &Api<NodeNetworkConfig>,
    config: &NodeNetworkConfig,
    mut status: NodeNetworkConfigStatus,
) -> Result<bool, kube::Error> {
    if let Some(before) = &config.status {
        let same = NodeNetworkConfigStatus {
            last_update: before.last_update.clone(),
            ..status.clone()
        };
        if same == *before {
            return Ok(false);
        }
    }
    status.last_update = Some(
        k8s_openapi::jiff::Timestamp::now()
            .strftime("%Y-%m-%dT%H:%M:%SZ")
            .to_string(),
    );
    let patch = json!({
        "apiVersion": "network.t-caas.telekom.com/v1alpha1",
        "kind": "NodeNetworkConfig",
        "metadata": {"name": config.name_any()},
        "status": status,
    });
    let params = PatchParams::apply(FIELD_MANAGER).force();
    api.patch_status(&config.name_any(), &params, &Patch::Apply(patch))
        .await
        .map(|_| true)
}

/// An error with everything behind it, on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
