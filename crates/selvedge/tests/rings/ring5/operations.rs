//! What the operator shows to those who run it.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
};

use anyhow::Context as _;
use serde_json::{Value, json};

use super::{
    cluster::{Cluster, start_operator, without_operator},
    server::eventually,
};
use crate::{data::text, support::selvedge};

const READER: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: metrics-reader}
rules: [{nonResourceURLs: [/metrics], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: metrics-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: metrics-reader}
subjects: [{kind: ServiceAccount, name: prometheus, namespace: default}]
";

/// Status and body of an answer.
pub(super) fn get(
    address: SocketAddr,
    path: &str,
    token: Option<&str>,
) -> anyhow::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address)?;
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
    let token = token.unwrap_or_default();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n{token}\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer")?;
    let status = head.split(' ').nth(1).context("a status")?.parse()?;
    Ok((status, body.to_owned()))
}

fn token(cluster: &Cluster<'_>) -> anyhow::Result<String> {
    let kubectl = |arguments: &[&str], stdin: &str| cluster.server.plane.kubectl(arguments, stdin);
    kubectl(&["create", "serviceaccount", "prometheus"], "")?;
    Ok(kubectl(&["create", "token", "prometheus"], "")?
        .trim()
        .to_owned())
}

#[test]
fn health_is_shown_to_all_and_metrics_to_those_who_may_and_a_snapshot_compiles_into_the_same()
-> anyhow::Result<()> {
    without_operator(|cluster| {
        // Both are bound until both are known, so that they differ.
        let free = || TcpListener::bind(("127.0.0.1", 0));
        let (one, other) = (free()?, free()?);
        let (address, of_metrics) = (one.local_addr()?, other.local_addr()?);
        drop((one, other));
        let kubeconfig = cluster.server.operator_kubeconfig();
        let (listen, metrics_listen) = (address.to_string(), of_metrics.to_string());
        let flags = ["--listen", &listen, "--metrics-listen", &metrics_listen];
        let _operator = start_operator(kubeconfig, &flags)?;
        eventually("the operator is ready", || {
            let ready = get(address, "/readyz", None);
            Ok(ready.is_ok_and(|(status, _)| status == 200).then_some(()))
        })
        .expect("it compiles");
        cluster
            .roll_out(&["n1", "n2"])
            .expect("both nodes have a config");
        assert_eq!(get(address, "/healthz", None)?, (200, "ok\n".to_owned()));

        // Metrics need a token that the API server knows, and the right to read them.
        let status = |path: &str, token| get(address, path, token).map(|(status, _)| status);
        let reader = token(cluster)?;
        assert_eq!(status("/metrics", None)?, 401);
        assert_eq!(status("/metrics", Some("made-up"))?, 401);
        assert_eq!(status("/metrics", Some(&reader))?, 403);
        cluster
            .server
            .plane
            .kubectl(&["apply", "-f", "-"], READER)?;
        let metrics = eventually("the role is in force", || {
            let (status, text) = get(address, "/metrics", Some(&reader))?;
            Ok((status == 200).then_some(text))
        })
        .expect("who may read gets metrics");
        for line in [
            "selvedge_operator_leader 1",
            "selvedge_operator_rollout_phase{phase=\"Failed\"} 0",
            "selvedge_operator_writes_total{kind=\"NodeNetworkConfig\"} 2",
        ] {
            assert!(
                metrics.lines().any(|other| other == line),
                "{line}: {metrics}"
            );
        }
        let elsewhere = |path: &str, token| get(of_metrics, path, token).map(|(status, _)| status);
        assert_eq!(elsewhere("/metrics", None)?, 401);
        assert_eq!(elsewhere("/metrics", Some(&reader))?, 200);
        assert_eq!(elsewhere("/debug/snapshot", Some("lab-admin"))?, 404);
        assert_eq!(elsewhere("/healthz", None)?, 404);
        assert_eq!(status("/debug/snapshot", Some(&reader))?, 403);
        assert_eq!(status("/metrics/../debug/snapshot", Some(&reader))?, 404);

        // The objects that the compiler has compile into what nodes have.
        let (status, snapshot) = get(address, "/debug/snapshot", Some("lab-admin"))?;
        assert_eq!(status, 200, "{snapshot}");
        assert!(!snapshot.contains("\"kind\":\"Secret\""));
        let arguments = ["compile", "-f", "-", "--what", "nodes", "-o", "json"];
        let output = selvedge(&arguments, &snapshot)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let compiled: Value = serde_json::from_slice(&output.stdout).context(said)?;
        for node in ["n1", "n2"] {
            let stored = cluster.get("NodeNetworkConfig", node)?;
            let spec = &stored["spec"];
            let found = found(&compiled, node).with_context(|| format!("{node}: {compiled}"))?;
            assert_eq!(found, spec, "{node} {}", text(&stored, "/metadata/name"));
        }
        cluster
            .server
            .plane
            .kubectl(&["delete", "serviceaccount", "prometheus"], "")?;
        Ok(())
    })
}

#[test]
fn a_rollout_that_starts_and_fails_is_reported_as_events() -> anyhow::Result<()> {
    without_operator(|cluster| {
        let kubeconfig = cluster.server.operator_kubeconfig();
        let _operator = start_operator(kubeconfig, &[])?;
        cluster
            .until_configured(&["n1"])
            .expect("the canary has a config");
        let mut config = cluster.get("NodeNetworkConfig", "n1")?;
        let revision = text(&config, "/spec/revision").to_owned();
        config["status"] = json!({
            "configStatus": "invalid", "observedRevision": revision,
            "observedGeneration": config["metadata"]["generation"], "errorMessage": "bgpd is down",
        });
        let answer = cluster.server.replace_status(&config)?;
        answer.map_err(|refusal| anyhow::anyhow!("{}", refusal.message))?;
        let revisions = cluster.names("NetworkConfigRevision")?;
        let events = |kind: &str, name: &str| -> anyhow::Result<Vec<(String, String)>> {
            let events = cluster.server.list("events.k8s.io/v1", "Event")?;
            let events = events.iter().filter(|event| {
                event["regarding"]["kind"] == kind && event["regarding"]["name"] == name
            });
            let of = |event: &Value| {
                (
                    text(event, "/reason").to_owned(),
                    text(event, "/note").to_owned(),
                )
            };
            Ok(events.map(of).collect())
        };
        let failure = ("RolloutFailed".to_owned(), "n1: bgpd is down".to_owned());
        let seen = eventually("the failure is reported", || {
            let seen = events("NetworkConfigRevision", &revisions[0])?;
            Ok(seen.contains(&failure).then_some(seen))
        })
        .expect("events on the revision");
        assert!(
            seen.iter().any(|(reason, _)| reason == "RolloutStarted"),
            "{seen:?}"
        );
        eventually("the node has the event", || {
            Ok(events("Node", "n1")?.contains(&failure).then_some(()))
        })
        .expect("an event on the node");
        cluster
            .until_condition(
                ("Layer2Attachment", "billing"),
                ["Ready", "False", "NodeFailed"],
            )
            .expect("the intent says so");
        Ok(())
    })
}

/// The spec of a node's config in what `selvedge compile` prints.
fn found<'a>(compiled: &'a Value, node: &str) -> Option<&'a Value> {
    let named = json!(node);
    match compiled {
        Value::Object(fields) => {
            if compiled["metadata"]["name"] == named && compiled["kind"] == "NodeNetworkConfig" {
                return fields.get("spec");
            }
            fields.values().find_map(|value| found(value, node))
        }
        Value::Array(items) => items.iter().find_map(|value| found(value, node)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}
