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

use super::{Cluster, REQUEST_PATIENCE, restored::Newest};
use crate::report::{FIELD_MANAGER, chain};

/// Between two renewals: three of them fit into the time for which the Lease counts.
const RENEWAL: Duration = Duration::from_secs(20);

/// Before another attempt. The account of a new node exists a moment before the API server knows what it may do.
const RETRY: Duration = Duration::from_secs(2);

/// The longest pause after failed attempts.
const LONGEST_RETRY: Duration = Duration::from_secs(16);

/// For how long a renewal counts.
const DURATION_SECONDS: u32 = 60;

impl Cluster {
    /// Renews the Lease for as long as the agent runs. By its versions the agent tells that the API server returns older versions.
    pub(super) async fn renew_lease(&self, client: Client) {
        let api: Api<Lease> = Api::namespaced(client, AGENT_LEASES);
        let mut newest = Newest::default();
        let mut failures = 0;
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
                Ok(Ok(stored)) => {
                    if newest.has_gone_back(stored.metadata.resource_version.as_deref()) {
                        tracing::warn!(
                            "the API server returned an older resource version: reading all objects again"
                        );
                        self.restores.send_modify(|count| *count += 1);
                    }
                    None
                }
                Ok(Err(error)) => {
                    if matches!(&error, kube::Error::Api(answer) if answer.code == 401) {
                        self.refused.notify_one();
                    }
                    Some(chain(&error))
                }
                Err(_elapsed) => Some("no answer".to_owned()),
            };
            // Said once: it comes back every few seconds, and reports say when the API server is away.
            if let Some(error) = failure.as_ref().filter(|_| failures == 0) {
                tracing::warn!(error, "failed to renew the Lease of the agent");
            }
            failures = if failure.is_some() { failures + 1 } else { 0 };
            time::sleep(pause(failures)).await;
        }
    }
}

/// The time until the next attempt, after so many that have failed.
fn pause(failures: u32) -> Duration {
    match failures.checked_sub(1) {
        None => RENEWAL,
        Some(before) => LONGEST_RETRY.min(RETRY * 2_u32.saturating_pow(before.min(8))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_was_refused_is_renewed_long_before_it_would_count_no_longer() {
        assert_eq!(pause(0), RENEWAL);
        assert_eq!([1, 2, 3].map(pause), [RETRY, RETRY * 2, RETRY * 4]);
        assert!((1..100).all(|failures| pause(failures) < RENEWAL));
        assert!(RENEWAL * 3 <= Duration::from_secs(DURATION_SECONDS.into()));
    }
}
