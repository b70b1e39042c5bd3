//! The node's own account. The account of all agents can do one thing: ask for a token of the account of the node that it runs on.

use std::{path::Path, time::Duration};

use api::selvedge::{AGENT_ACCOUNT, AGENT_LEASES};
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{Api, Client, Config, api::PostParams, config::AuthInfo};
use tokio::time;

use super::{CLIENT_PAUSE, Cluster, REQUEST_PATIENCE};
use crate::{file, report::chain};

/// How long a token counts, and after how long another one is asked for.
const LIFETIME_SECONDS: i64 = 3600;
const RENEWAL: Duration = Duration::from_mins(30);

/// The same way to the API server, with the node's own account. Its token is kept in a file that only root can read.
pub async fn own_account(mut config: Config, node: &str, token: &Path) -> Result<Config, String> {
    let account = format!("{AGENT_ACCOUNT}-{node}");
    let client = Client::try_from(config.clone()).map_err(|error| chain(&error))?;
    let accounts: Api<ServiceAccount> = Api::namespaced(client, AGENT_LEASES);
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            expiration_seconds: Some(LIFETIME_SECONDS),
            ..TokenRequestSpec::default()
        }),
        ..TokenRequest::default()
    };
    let params = PostParams::default();
    let request = accounts.create_token_request(&account, &params, &request);
    let answer = time::timeout(REQUEST_PATIENCE, request).await;
    let answer = answer.map_err(|_elapsed| "no answer".to_owned());
    let answer = answer.and_then(|answer| answer.map_err(|error| chain(&error)));
    let answer = answer.map_err(|error| {
        format!("cannot get a token of ServiceAccount {AGENT_LEASES}/{account}: {error}")
    })?;
    let text = answer.status.and_then(|status| status.token);
    let text = text.ok_or("the API server returned no token")?;
    file::replace(token, text.as_bytes()).map_err(|error| chain(&error))?;
    config.auth_info = AuthInfo {
        token_file: Some(token.to_string_lossy().into_owned()),
        ..AuthInfo::default()
    };
    Ok(config)
}

impl Cluster {
    /// Asks for another token before the old one counts no longer, and when it is refused, for as long as the agent runs.
    pub(super) async fn renew_token(&self) {
        let Some(token) = &self.token else {
            return;
        };
        loop {
            // Its account may have been deleted and made again, which ends its tokens.
            let _refused = time::timeout(RENEWAL, self.refused.notified()).await;
            loop {
                let renewed = async { own_account(self.config().await?, &self.node, token).await };
                let Err(error) = renewed.await else { break };
                tracing::warn!(error, "failed to renew the token of the node's account");
                time::sleep(CLIENT_PAUSE).await;
            }
        }
    }
}
