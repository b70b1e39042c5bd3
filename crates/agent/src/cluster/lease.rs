//! The agent's Lease: while it is renewed, the operator waits for the node's answers.

use std::time::Duration;

use api::selvedge::AGENT_LEASES;
use k8s_openapi::{api::coordination::v1::Lease, jiff::Timestamp};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::json;
use tokio::time;

use super::{Cluster, REQUEST_PATIENCE};
use crate::report::{FIELD_MANAGER, chain};

/// Between two renewals: three of them fit into the time for which the Lease counts.
const RENEWAL: Duration = Duration::from_secs(20);

/// For how long a renewal counts.
const DURATION_SECONDS: u32 = 60;

impl Cluster {
    /// Renews the Lease for as long as the agent lives.
    pub(super) async fn renew_lease(&self, client: Client) {
        let api: Api<Lease> = Api::namespaced(client, AGENT_LEASES);
        let mut is_known_to_fail = false;
        loop {
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": self.node, "namespace": AGENT_LEASES},
                "spec": {
                    "holderIdentity": self.node,
                    "leaseDurationSeconds": DURATION_SECONDS,
                    "renewTime": Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
                },
            });
            let params = PatchParams::apply(FIELD_MANAGER).force();
            let patch = Patch::Apply(&lease);
            let renewal = time::timeout(REQUEST_PATIENCE, api.patch(&self.node, &params, &patch));
            let failure = match renewal.await {
                Ok(Ok(_)) => None,
                Ok(Err(error)) => {
                    if matches!(&error, kube::Error::Api(answer) if answer.code == 401) {
                        self.refused.notify_one();
                    }
                    Some(chain(&error))
                }
                Err(_elapsed) => Some("no answer".to_owned()),
            };
            // Said once: it comes back every few seconds, and reports say when the API server is away.
            if let Some(error) = failure.as_ref().filter(|_| !is_known_to_fail) {
                tracing::warn!(error, "the Lease of the agent is not renewed");
            }
            is_known_to_fail = failure.is_some();
            time::sleep(RENEWAL).await;
        }
    }
}
