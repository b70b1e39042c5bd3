//! The objects in which agents tell of the host's router, under the agents' own roles.

use std::{cell::RefCell, time::Duration};

use anyhow::Context as _;
use api::frrk8s::{BgpSessionState, FrrNodeState};
use kube::{
    Api, Client, Config,
    api::{DeleteParams, ListParams, Patch, PatchParams},
    config::KubeConfigOptions,
};
use serde_json::{Value, json};

use super::{
    cluster::with_cluster,
    server::{Server, eventually},
};
use crate::support::{AGENT, OWN_NAMESPACE, kubeconfig_with_token, token, without_workloads};

const DIGITS: &str = "0123456789abcdef";

/// What the agent of a node does with its account.
struct Agent {
    node: String,
    states: Api<FrrNodeState>,
    sessions: Api<BgpSessionState>,
}

impl Agent {
    async fn new(server: &Server, node: &str) -> anyhow::Result<Self> {
        let token = token(&server.plane, &format!("selvedge-agent-{node}"), &[])?;
        let kubeconfig = kubeconfig_with_token(&server.plane, &token)?;
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        config.read_timeout = Some(Duration::from_secs(10));
        let client = Client::try_from(config)?;
        Ok(Self {
            node: node.to_owned(),
            states: Api::all(client.clone()),
            sessions: Api::namespaced(client, OWN_NAMESPACE),
        })
    }

    /// Writes an FRRNodeState.
    async fn state(&self, name: &str) -> Result<(), kube::Error> {
        let params = PatchParams::apply("selvedge-agent").force();
        let object = object("FRRNodeState", name, &json!({"name": name}));
        self.states
            .patch(name, &params, &Patch::Apply(&object))
            .await?;
        let mut status = object;
        status["status"] = json!({"lastReloadResult": "success"});
        let status = Patch::Apply(&status);
        self.states.patch_status(name, &params, &status).await?;
        Ok(())
    }

    /// Writes the state of a session, with a node in its label and one in its status.
    async fn session(&self, name: &str, label: &str, of: &str) -> Result<(), kube::Error> {
        let params = PatchParams::apply("selvedge-agent").force();
        let metadata = json!({"name": name, "labels": {"frrk8s.metallb.io/node": label}});
        let object = object("BGPSessionState", name, &metadata);
        self.sessions
            .patch(name, &params, &Patch::Apply(&object))
            .await?;
        let mut status = object;
        status["status"] = json!({"node": of, "peer": "192.0.2.1", "bgpStatus": "Established"});
        let status = Patch::Apply(&status);
        self.sessions.patch_status(name, &params, &status).await?;
        Ok(())
    }

    fn own(&self) -> String {
        format!("{}-{DIGITS}", self.node)
    }
}

fn object(kind: &str, name: &str, metadata: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "frrk8s.metallb.io/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": {},
    });
    object["metadata"] = metadata.clone();
    object
}

fn refusal(outcome: Result<(), kube::Error>, what: &str) -> anyhow::Result<String> {
    let error = outcome
        .err()
        .with_context(|| format!("{what} is refused"))?;
    Ok(error.to_string())
}

#[test]
fn an_agent_writes_the_state_of_its_own_host_router_and_of_no_other() -> anyhow::Result<()> {
    with_cluster(|cluster| {
        let server = cluster.server;
        server.plane.kubectl(
            &["apply", "--server-side", "-f", "-"],
            &without_workloads(AGENT),
        )?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let agent = |node: &str| {
            eventually("the operator has made accounts", || {
                Ok(runtime.block_on(Agent::new(server, node)).ok())
            })
        };
        let (n1, n2) = (agent("n1")?, agent("n2")?);
        let last = RefCell::new(String::new());
        let may = |agent: &Agent| {
            eventually("an agent writes what is of its node", || {
                let written = runtime.block_on(async {
                    agent.state(&agent.node).await?;
                    agent.session(&agent.own(), &agent.node, &agent.node).await
                });
                *last.borrow_mut() = format!("{written:?}");
                Ok(written.ok())
            })
            .with_context(|| last.borrow().clone())
        };
        may(&n1)?;
        may(&n2)?;
        // The policy counts as soon as every part of the API server has seen it.
        eventually("another node's session is refused", || {
            let name = n2.own();
            let written = runtime.block_on(n1.session(&name, "n1", "n1"));
            Ok(written.err())
        })?;
        runtime.block_on(async {
            let said = refusal(n1.state("n2").await, "the state of n2")?;
            assert!(said.contains("orbidden"), "{said}");
            for (name, label, of) in [
                (n2.own(), "n2", "n2"),
                (n2.own(), "n1", "n1"),
                (n1.own(), "n2", "n1"),
                (n1.own(), "n1", "n2"),
                (format!("n1-{}", &DIGITS[1..]), "n1", "n1"),
                (format!("n1-x-{DIGITS}"), "n1", "n1"),
            ] {
                let what = format!("{name} {label} {of}");
                let said = refusal(n1.session(&name, label, of).await, &what)?;
                assert!(said.contains("n1"), "{what}: {said}");
            }
            let delete = DeleteParams::default();
            let deleted = n1.sessions.delete(&n2.own(), &delete).await.map(drop);
            refusal(deleted, "to delete the session of n2")?;
            let listed = n1.sessions.list(&ListParams::default()).await.map(drop);
            refusal(listed, "to list sessions")?;
            let read = n1.sessions.get(&n2.own()).await.map(drop);
            refusal(read, "to read the session of n2")?;
            n1.sessions.delete(&n1.own(), &delete).await?;
            n1.states.delete("n1", &delete).await?;
            n2.sessions.delete(&n2.own(), &delete).await?;
            n2.states.delete("n2", &delete).await?;
            anyhow::Ok(())
        })
    })
}
