//! The manifests of `deploy/` on a real API server.

use anyhow::Context as _;
use serde_json::json;

use super::{
    cluster::{TCAAS, object, without_operator},
    server::{Mode, Server, eventually, with_server},
};
use crate::support::OWN_NAMESPACE;

const OPERATOR: &str = include_str!("../../../../../deploy/operator.yaml");
const AGENT: &str = include_str!("../../../../../deploy/agent.yaml");

#[test]
fn the_manifests_are_accepted_as_they_are_without_unknown_fields() -> anyhow::Result<()> {
    with_server(|server| {
        for manifests in [OPERATOR, AGENT] {
            let flags = [
                "--dry-run=server",
                "--validate=strict",
                "--warnings-as-errors",
            ];
            let arguments = [&["apply", "--server-side"][..], &flags, &["-f", "-"]].concat();
            server.plane.kubectl(&arguments, manifests)?;
        }
        Ok(())
    })
}

/// The parts of the manifests of the agents that say what they may do.
fn roles() -> String {
    let documents = AGENT.split("\n---\n");
    let roles = documents.filter(|document| !document.contains("kind: DaemonSet"));
    roles.collect::<Vec<_>>().join("\n---\n")
}

/// Whether one with this token may do this, and what it is told if not.
fn may(server: &Server, token: &str, arguments: &[&str]) -> Result<(), String> {
    let token = format!("--token={}", token.trim());
    let arguments = [arguments, &[token.as_str()]].concat();
    let done = server.plane.kubectl(&arguments, "");
    done.map(drop).map_err(|error| {
        let source = std::error::Error::source(&error).map(ToString::to_string);
        format!("{error}: {}", source.unwrap_or_default())
    })
}

#[test]
fn an_agent_may_write_about_its_own_node_and_nothing_else() -> anyhow::Result<()> {
    without_operator(|cluster| {
        let server = cluster.server;
        server
            .plane
            .kubectl(&["apply", "--server-side", "-f", "-"], &roles())?;
        for node in ["n1", "n2"] {
            let mut config = object("NodeNetworkConfig", node);
            config["spec"] = json!({"revision": "aa"});
            let created = server.create(&config, Mode::Real)?;
            created.map_err(|refusal| anyhow::anyhow!("{}", refusal.message))?;
        }
        let bound = ["--bound-object-kind=Node", "--bound-object-name=n1"];
        let token = ["create", "token", "selvedge-agent", "-n", OWN_NAMESPACE];
        let token = server.plane.kubectl(&[&token[..], &bound].concat(), "")?;
        let status = r#"{"status":{"configStatus":"provisioned","observedRevision":"aa"}}"#;
        let patch = |kind: &'static str, name: &'static str, body: &'static str| {
            vec!["patch", kind, name, "--type=merge", "-p", body]
        };
        let of_status = |name| {
            [
                patch("nodenetworkconfig", name, status),
                vec!["--subresource=status"],
            ]
            .concat()
        };
        // The policy counts as soon as every part of the API server has seen it.
        let mut last = Ok(());
        eventually("the agent is kept from another node's status", || {
            last = may(server, &token, &of_status("n2"));
            let refused = last.as_ref().err();
            let is_meant = |text: &&String| text.contains("its own node alone, which is n1");
            Ok(refused.filter(is_meant).map(drop))
        })
        .with_context(|| format!("it is told {last:?}"))?;
        let own = may(server, &token, &of_status("n1"));
        assert_eq!(own, Ok(()));
        let spec = r#"{"spec":{"revision":"bb"}}"#;
        let refused = may(server, &token, &patch("nodenetworkconfig", "n1", spec));
        assert!(refused.is_err(), "the spec is the operator's");
        let label = r#"{"metadata":{"labels":{"a":"b"}}}"#;
        assert!(may(server, &token, &patch("node", "n2", label)).is_err());
        assert_eq!(may(server, &token, &patch("node", "n1", label)), Ok(()));
        assert!(may(server, &token, &["delete", "nodenetworkconfig", "n1"]).is_err());
        assert!(may(server, &token, &["get", "secrets", "-n", "kube-system"]).is_err());
        assert_eq!(server.list(TCAAS, "NodeNetworkConfig")?.len(), 2);
        Ok(())
    })
}
