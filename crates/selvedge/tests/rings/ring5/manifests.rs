//! The manifests of `deploy/` on a real API server.

use std::os::unix::fs::PermissionsExt as _;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::{
    cluster::{BILLING, object, with_cluster, without_operator},
    server::{Mode, Server, eventually, with_server},
};
use crate::support::{AGENT, OWN_NAMESPACE, kubeconfig_with_token, token, without_workloads};

const OPERATOR: &str = include_str!("../../../../../deploy/operator.yaml");
pub(super) const ADMISSION: &str = include_str!("../../../../../deploy/admission.yaml");

#[test]
fn the_manifests_are_accepted_as_they_are_without_unknown_fields() -> anyhow::Result<()> {
    with_server(|server| {
        for manifests in [OPERATOR, AGENT, ADMISSION] {
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

/// Whether one with this token may do this, and what it is told if not.
pub(super) fn may(server: &Server, token: &str, arguments: &[&str]) -> Result<(), String> {
    let token = format!("--token={}", token.trim());
    let arguments = [arguments, &[token.as_str()]].concat();
    let done = server.plane.kubectl(&arguments, "");
    done.map(drop).map_err(|error| {
        let source = std::error::Error::source(&error).map(ToString::to_string);
        format!("{error}: {}", source.unwrap_or_default())
    })
}

const PASSWORDS: &str = "
apiVersion: v1
kind: Secret
metadata: {name: leaf, namespace: selvedge-system}
stringData: {password: one}
---
apiVersion: v1
kind: Secret
metadata: {name: other, namespace: selvedge-system}
stringData: {password: two}
";

#[test]
fn an_agent_may_read_and_write_what_is_of_its_own_node_and_nothing_else() -> anyhow::Result<()> {
    with_cluster(|cluster| {
        let server = cluster.server;
        server.apply(PASSWORDS)?;
        cluster.until_configured(&["n1"])?;
        // The machine n3 was taken from the cluster and still has its config, with a password.
        let mut config = object("NodeNetworkConfig", "n3");
        config["spec"] = cluster.get("NodeNetworkConfig", "n1")?["spec"].take();
        config["spec"]["underlay"]["neighbors"][0]["passwordSecret"] = json!({"name": "leaf"});
        let created = server.create(&config, Mode::Real)?;
        created.map_err(|refusal| anyhow::anyhow!("{}", refusal.message))?;
        let own = |node: &str| {
            let account = format!("selvedge-agent-{node}");
            eventually("the operator has made accounts", || {
                Ok(token(&server.plane, &account, &[]).ok())
            })
        };
        let (n1, n3) = (own("n1")?, own("n3")?);
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
        let spec = r#"{"spec":{"revision":"bb"}}"#;
        let hold = r#"{"metadata":{"annotations":{"selvedge.dev/hold":"repair"}}}"#;
        let get = |kind, name| vec!["get", kind, name, "-n", OWN_NAMESPACE];
        let allowed = [
            (&n1, get("nodenetworkconfig", "n1")),
            (&n1, of_status("n1")),
            (&n1, patch("node", "n1", hold)),
            (&n3, get("secret", "leaf")),
        ];
        // Roles count as soon as every part of the API server has seen them.
        let mut last = Ok(());
        eventually("agents may do what they need", || {
            let mut allowed = allowed.iter();
            last = allowed.try_for_each(|(token, arguments)| may(server, token, arguments));
            Ok(last.is_ok().then_some(()))
        })
        .with_context(|| format!("one is told {last:?}"))?;
        let refused = [
            get("nodenetworkconfig", "n3"),
            vec!["get", "nodenetworkconfigs"],
            of_status("n3"),
            patch("nodenetworkconfig", "n1", spec),
            vec!["delete", "nodenetworkconfig", "n1"],
            get("node", "n2"),
            patch("node", "n2", hold),
            get("secret", "leaf"),
            vec!["get", "secrets", "-n", OWN_NAMESPACE],
            get("lease", "n3"),
        ];
        let others = refused.into_iter().map(|arguments| (&n1, arguments));
        for (token, arguments) in others.chain([(&n3, get("secret", "other"))]) {
            let answer = may(server, token, &arguments);
            let text = answer.expect_err(&format!("{arguments:?} is refused"));
            assert!(text.contains("orbidden"), "{arguments:?}: {text}");
        }
        let secrets = ["delete", "secret", "leaf", "other", "-n", OWN_NAMESPACE];
        server.plane.kubectl(&secrets, "")?;
        Ok(())
    })
}

#[test]
fn an_agent_holds_its_node_and_takes_away_taints_and_changes_nothing_else_of_it()
-> anyhow::Result<()> {
    with_cluster(|cluster| {
        let server = cluster.server;
        server.plane.kubectl(
            &["apply", "--server-side", "-f", "-"],
            &without_workloads(AGENT),
        )?;
        let agent = eventually("the operator has made accounts", || {
            Ok(token(&server.plane, "selvedge-agent-n1", &[]).ok())
        })?;
        let taints = [
            "taint",
            "node",
            "n1",
            "start=up:NoSchedule",
            "other=one:NoSchedule",
        ];
        server.plane.kubectl(&taints, "")?;
        server
            .plane
            .kubectl(&["label", "node", "n1", "rack=a"], "")?;
        server
            .plane
            .kubectl(&["annotate", "node", "n1", "theirs=1"], "")?;
        let patch = |body: &str| {
            let patch = ["patch", "node", "n1", "--type=merge", "-p", body];
            may(server, &agent, &patch)
        };
        // The policy counts as soon as every part of the API server has seen it.
        let mut last = Ok(());
        eventually("the agent is kept from the labels of its node", || {
            last = patch(r#"{"metadata":{"labels":{"rack":"b"}}}"#);
            let is_meant = |text: &&String| text.contains("may not change the labels");
            Ok(last.as_ref().err().filter(is_meant).map(drop))
        })
        .with_context(|| format!("it is told {last:?}"))?;
        for refused in [
            r#"{"metadata":{"labels":{"rack":null}}}"#,
            r#"{"metadata":{"labels":null}}"#,
            r#"{"metadata":{"annotations":{"theirs":"2"}}}"#,
            r#"{"metadata":{"annotations":{"theirs":null}}}"#,
            r#"{"metadata":{"annotations":{"mine":"1"}}}"#,
            r#"{"metadata":{"finalizers":["example.com/mine"]}}"#,
            r#"{"spec":{"unschedulable":true}}"#,
            r#"{"spec":{"providerID":"lab://n2"}}"#,
            r#"{"spec":{"taints":[{"key":"more","effect":"NoSchedule"}]}}"#,
        ] {
            let answer = patch(refused).expect_err(refused);
            assert!(answer.contains("an agent may"), "{refused}: {answer}");
        }
        for allowed in [
            r#"{"metadata":{"annotations":{"selvedge.dev/hold":"repair"}}}"#,
            r#"{"metadata":{"annotations":{"selvedge.dev/hold":null}}}"#,
            r#"{"spec":{"taints":[{"key":"other","value":"one","effect":"NoSchedule"}]}}"#,
            r#"{"spec":{"taints":null}}"#,
        ] {
            assert_eq!(patch(allowed), Ok(()), "{allowed}");
        }
        let gone = ["label", "node", "n1", "rack-"];
        server.plane.kubectl(&gone, "")?;
        Ok(())
    })
}

#[test]
fn the_account_of_all_agents_gets_a_token_of_its_own_node_and_nothing_else() -> anyhow::Result<()> {
    with_cluster(|cluster| {
        let server = cluster.server;
        server.plane.kubectl(
            &["apply", "--server-side", "-f", "-"],
            &without_workloads(AGENT),
        )?;
        for node in ["n1", "n2"] {
            let account = format!("selvedge-agent-{node}");
            eventually("the operator has made accounts", || {
                Ok(token(&server.plane, &account, &[]).ok())
            })?;
        }
        let bound = ["--bound-object-kind=Node", "--bound-object-name=n1"];
        let shared = token(&server.plane, "selvedge-agent", &bound)?;
        let ask = |node: &str| {
            let account = format!("selvedge-agent-{node}");
            let ask = ["create", "token", &account, "-n", OWN_NAMESPACE];
            may(server, &shared, &ask)
        };
        // The policy counts as soon as every part of the API server has seen it.
        let mut last = Ok(());
        eventually("the agent is kept from another node's account", || {
            last = ask("n2");
            let is_meant = |text: &&String| text.contains("its own node alone, which is n1");
            Ok(last.as_ref().err().filter(is_meant).map(drop))
        })
        .with_context(|| format!("it is told {last:?}"))?;
        assert!(may(server, &shared, &["get", "nodenetworkconfig", "n1"]).is_err());

        let directory = tempfile::tempdir()?;
        let file = directory.path().join("token");
        let kubeconfig = kubeconfig_with_token(&server.plane, &shared)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let options = kube::config::KubeConfigOptions::default();
            let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
            let own = agent::own_account(config.clone(), "n1", &file).await;
            let own = kube::Client::try_from(own.map_err(anyhow::Error::msg)?)?;
            let node: kube::Api<k8s_openapi::api::core::v1::Node> = kube::Api::all(own);
            node.get("n1").await?;
            assert!(node.get("n2").await.is_err());
            let other = agent::own_account(config, "n2", &file).await;
            let refusal = other.expect_err("it is another node's");
            assert!(refusal.contains("selvedge-agent-n2"), "{refusal}");
            anyhow::Ok(())
        })?;
        let mode = std::fs::metadata(&file)?.permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "only root reads the token");
        Ok(())
    })
}

#[test]
fn a_node_that_is_forgotten_loses_its_account() -> anyhow::Result<()> {
    with_cluster(|cluster| {
        let server = cluster.server;
        eventually("the operator has made an account", || {
            Ok(token(&server.plane, "selvedge-agent-n2", &[]).ok())
        })?;
        server.plane.kubectl(&["delete", "node", "n2"], "")?;
        eventually("the account is gone", || {
            Ok(token(&server.plane, "selvedge-agent-n2", &[])
                .err()
                .map(drop))
        })?;
        token(&server.plane, "selvedge-agent-n1", &[])?;
        let roles = [
            "get",
            "clusterrole,role,rolebinding,clusterrolebinding",
            "-A",
            "-o",
            "name",
        ];
        let left = server.plane.kubectl(&roles, "")?;
        assert!(!left.contains("selvedge-agent-n2"), "{left}");
        assert!(left.contains("selvedge-agent-n1"), "{left}");
        Ok(())
    })
}

#[test]
fn the_operator_may_write_no_role_but_those_of_agents() -> anyhow::Result<()> {
    without_operator(|cluster| {
        let server = cluster.server;
        let token = token(&server.plane, "selvedge-operator", &[])?;
        let create = |name| {
            let verbs = ["--verb=get", "--resource=nodes", "--resource-name=n1"];
            let create = ["create", "clusterrole", name];
            may(server, &token, &[&create[..], &verbs].concat())
        };
        let refusal = create("mine").expect_err("it is no agent's");
        assert!(refusal.contains("begin with selvedge-agent-"), "{refusal}");
        assert_eq!(create("selvedge-agent-x"), Ok(()));
        let label = ["label", "node", "n1", "a=b"];
        assert!(
            may(server, &token, &label).is_err(),
            "a Node is not its own"
        );
        server
            .plane
            .kubectl(&["delete", "clusterrole", "selvedge-agent-x"], "")?;
        Ok(())
    })
}

/// The segment of the attachment of the world, and its VRF, as a user would write them.
const IN_AN_INTENTS_SCOPE: [&str; 3] = [
    "{kind: Layer2NetworkConfiguration, spec: {id: 234, vni: 7, mtu: 1500}}",
    "{kind: Layer2NetworkConfiguration, spec: {id: 7, vni: 10234, mtu: 1500}}",
    "{kind: VRFRouteConfiguration, spec: {vrf: m2m, vni: 10100, routeTarget: '64500:10100', seq: 1, import: [], export: []}}",
];

const BESIDE_AN_INTENT: [&str; 2] = [
    "{kind: Layer2NetworkConfiguration, spec: {id: 7, vni: 7, mtu: 1500}}",
    // Whether a node has both is for the compiler to see.
    "{kind: Layer2NetworkConfiguration, spec: {id: 234, vni: 10234, mtu: 1500, nodeSelector: {matchLabels: {rack: b}}}}",
];

#[test]
fn a_hand_written_object_in_the_scope_of_an_intent_is_refused_at_admission() -> anyhow::Result<()> {
    with_cluster(|cluster| {
        let server = cluster.server;
        let racks = json!({"spec": {"nodeSelector": {"matchLabels": {"rack": "a"}}}});
        server.edit(&object("Layer2Attachment", "billing"), &racks)?;
        cluster.until_generated(&BILLING)?;
        let apply = ["apply", "--server-side", "-f", "-"];
        let hand_written = |text: &str| -> anyhow::Result<Value> {
            let mut written: Value = serde_saphyr::from_str(text)?;
            let kind = written["kind"].as_str().unwrap_or_default().to_owned();
            let mut object = object(&kind, "by-hand");
            object["spec"] = written["spec"].take();
            Ok(object)
        };
        let [in_scope, ..] = IN_AN_INTENTS_SCOPE;
        let mut earlier = hand_written(in_scope)?;
        earlier["metadata"]["name"] = json!("earlier");
        let created = server.create(&earlier, Mode::Real)?;
        created.map_err(|refusal| anyhow::anyhow!("{}", refusal.message))?;
        server.plane.kubectl(&apply, ADMISSION)?;
        for text in IN_AN_INTENTS_SCOPE {
            let object = hand_written(text)?;
            // A policy counts as soon as every part of the API server has seen it.
            let refusal = eventually("it is refused", || {
                Ok(server.create(&object, Mode::Dry)?.err())
            })?;
            let message = &refusal.message;
            assert!(
                message.contains("made from Layer2Attachment billing"),
                "{message}"
            );
        }
        for text in BESIDE_AN_INTENT {
            let object = hand_written(text)?;
            let created = server.create(&object, Mode::Dry)?;
            created.map_err(|refusal| anyhow::anyhow!("{text}: {}", refusal.message))?;
        }
        server
            .edit(&earlier, &json!({"spec": {"mtu": 1400}}))
            .context("what was there before the policy can be edited")?;
        let into_scope = json!({"spec": {"vni": 10234}});
        assert!(server.edit(&earlier, &into_scope).is_err());
        // Other tests share the API server.
        server.plane.kubectl(&["delete", "-f", "-"], ADMISSION)?;
        Ok(())
    })
}
