//! `selvedge rollout` against a real API server and the operator. No agent runs: the test answers for the nodes.

use std::{
    io::Read as _,
    process::{Command, Output, Stdio},
};

use anyhow::Context as _;
use serde_json::json;

use super::{
    cluster::{Cluster, with_cluster},
    server::eventually,
};
use crate::support;

/// What a command came to: its exit code and its output.
type Answer = (Option<i32>, String);

fn rollout(cluster: &Cluster<'_>, arguments: &[&str]) -> anyhow::Result<Answer> {
    let kubeconfig = cluster.server.plane.kubeconfig("admin")?;
    let kubeconfig = kubeconfig.display().to_string();
    let mut all = vec!["rollout"];
    all.extend(arguments);
    all.extend(["--kubeconfig", &kubeconfig]);
    let Output {
        status,
        stdout,
        stderr,
    } = support::selvedge(&all, "")?;
    let text = [stdout, stderr].concat();
    Ok((status.code(), String::from_utf8(text)?))
}

/// Waits until `rollout status` says all of this.
fn until_status(cluster: &Cluster<'_>, code: i32, wanted: &[&str]) -> anyhow::Result<String> {
    let mut last = (None, String::new());
    let found = eventually(&format!("the status says {wanted:?}"), || {
        last = rollout(cluster, &["status"])?;
        let says_all = wanted.iter().all(|text| last.1.contains(text));
        Ok((says_all && last.0 == Some(code)).then(|| last.1.clone()))
    });
    found.map_err(|error| error.context(format!("it says {last:?}")))
}

#[test]
fn people_see_pause_resume_and_approve_a_rollout_from_the_command_line() -> anyhow::Result<()> {
    with_cluster(|cluster| {
        cluster.until_configured(&["n1"])?;
        let wanted = [
            "Progressing, wave: canary",
            "0 of 2 nodes",
            "1 changing, 1 waiting",
            "not answered: n1",
        ];
        let text = until_status(cluster, 0, &wanted)?;
        assert!(
            text.contains("[------------------------------]"),
            "no colours and plain characters where no person reads: {text}"
        );

        let (code, text) = rollout(cluster, &["pause"])?;
        assert_eq!(code, Some(0), "{text}");
        cluster.answer("n1", &cluster.revision("n1")?)?;
        until_status(cluster, 0, &["Paused", "1 of 2 nodes", "rollout resume"])?;
        assert_eq!(cluster.names("NodeNetworkConfig")?, ["n1"]);
        let (code, text) = rollout(cluster, &["resume"])?;
        assert_eq!(code, Some(0), "{text}");
        cluster.until_configured(&["n1", "n2"])?;
        cluster.answer("n2", &cluster.revision("n2")?)?;
        let (code, text) = rollout(cluster, &["status", "--watch"])?;
        assert_eq!(code, Some(0), "{text}");
        assert!(
            text.contains("Complete") && text.contains("2 of 2 nodes"),
            "{text}"
        );

        for (command, answer) in [
            ("retry", "has not failed"),
            ("approve", "needs no approval"),
        ] {
            let (code, text) = rollout(cluster, &[command])?;
            assert_eq!(code, Some(1), "{text}");
            assert!(text.contains(answer), "{text}");
        }

        let underlay = json!({
            "apiVersion": "openpe.openperouter.github.io/v1alpha1", "kind": "Underlay",
            "metadata": {"name": "all", "namespace": "default"},
        });
        let before = cluster.revision("n1")?;
        cluster.server.delete(&underlay)?;
        let text = until_status(cluster, 1, &["Unapproved", "2 unapproved"])?;
        assert!(
            text.contains("the new config of node n1 would remove its Underlay"),
            "{text}"
        );
        assert_eq!(cluster.revision("n1")?, before, "nothing is published");
        let (code, text) = rollout(cluster, &["approve", "0000000000"])?;
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains("is not the newest"), "{text}");
        let (code, text) = rollout(cluster, &["approve"])?;
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains("would remove its Underlay"), "{text}");
        eventually("the first node gets it", || {
            Ok((cluster.revision("n1")? != before).then_some(()))
        })?;
        assert_eq!(cluster.revision("n2")?, before, "one after another");

        let (code, text) = rollout(cluster, &["history", "-o", "json"])?;
        assert_eq!(code, Some(0), "{text}");
        let history: Vec<serde_json::Value> = serde_json::from_str(&text)?;
        let phases: Vec<_> = history.iter().map(|one| &one["phase"]).collect();
        assert_eq!(phases.first(), Some(&&json!("Progressing")), "{text}");
        assert!(phases.contains(&&json!("Complete")), "{text}");
        Ok(())
    })
}

/// What a command that follows a rollout comes to, while something happens.
fn followed(
    cluster: &Cluster<'_>,
    command: &[&str],
    meanwhile: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<Answer> {
    let kubeconfig = cluster.server.plane.kubeconfig("admin")?;
    let mut child = Command::new(support::SELVEDGE)
        .args(command)
        .args(["--watch", "--kubeconfig"])
        .arg(kubeconfig)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let ended = meanwhile().and_then(|()| {
        eventually(
            "the command ends with the rollout",
            || Ok(child.try_wait()?),
        )
    });
    let _gone = child.kill();
    let mut text = String::new();
    let output = child.stdout.as_mut().context("its output")?;
    output.read_to_string(&mut text)?;
    child.wait()?;
    let status = ended.with_context(|| text.clone())?;
    Ok((status.code(), text))
}

#[test]
fn who_follows_a_rollout_gets_a_line_for_each_change_and_how_it_ended() -> anyhow::Result<()> {
    with_cluster(|cluster| {
        cluster.until_configured(&["n1"])?;
        let first = cluster.revision("n1")?;
        let (code, text) = followed(cluster, &["rollout", "status"], || {
            cluster.roll_out(&["n1", "n2"])
        })?;
        assert_eq!(code, Some(0), "{text}");
        let lines: Vec<&str> = text.lines().collect();
        let last = lines.last().context("a line")?;
        assert!(last.ends_with("  Complete; 2 of 2 nodes"), "{text}");
        assert!(lines.is_sorted_by(|one, next| one != next), "{text}");

        // A change that the first node does not take.
        let billing = super::cluster::object("Layer2Attachment", "billing");
        let mtu = json!({"spec": {"mtu": 1400}});
        cluster.server.edit(&billing, &mtu)?;
        eventually("n1 is told", || {
            Ok((cluster.revision("n1")? != first).then_some(()))
        })?;
        let fail = || {
            let mut config = cluster.get("NodeNetworkConfig", "n1")?;
            config["status"] = json!({
                "configStatus": "invalid", "observedRevision": config["spec"]["revision"],
                "observedGeneration": config["metadata"]["generation"], "errorMessage": "bgpd is down",
            });
            let answer = cluster.server.replace_status(&config)?;
            answer.map_err(|refusal| anyhow::anyhow!("{}", refusal.message))?;
            Ok(())
        };
        let (code, text) = followed(cluster, &["status"], fail)?;
        assert_eq!(code, Some(1), "{text}");
        let last = text.lines().last().context("a line")?;
        for part in [
            "Failed",
            "node n1 did not apply it: bgpd is down",
            "not ready",
        ] {
            assert!(last.contains(part), "{part}: {text}");
        }
        Ok(())
    })
}

#[test]
fn without_an_operator_the_command_says_so() -> anyhow::Result<()> {
    super::server::with_server(|server| {
        let kubeconfig = server.plane.kubeconfig("admin")?;
        let kubeconfig = kubeconfig.display().to_string();
        let arguments = ["rollout", "status", "--kubeconfig", &kubeconfig];
        let Output { status, stderr, .. } = support::selvedge(&arguments, "")?;
        let text = String::from_utf8(stderr)?;
        assert_eq!(status.code(), Some(2), "{text}");
        assert!(
            text.contains("has the operator run in this cluster?"),
            "{text}"
        );
        Ok(())
    })
}

#[test]
fn a_rollout_is_not_resumed_by_settings_that_replace_deleted_ones() -> anyhow::Result<()> {
    with_cluster(|cluster| {
        let settings = "
apiVersion: selvedge.dev/v1alpha1
kind: Settings
metadata: {name: default}
spec: {clusterVRF: {name: cluster2}}
";
        cluster.server.apply(settings)?;
        eventually("a revision has the settings", || {
            let revisions = cluster.all("NetworkConfigRevision")?;
            let has = |one: &serde_json::Value| {
                one["spec"]["settings"]["clusterVRF"]["name"] == "cluster2"
            };
            Ok(revisions.iter().any(has).then_some(()))
        })?;
        let object = json!({
            "apiVersion": "selvedge.dev/v1alpha1", "kind": "Settings", "metadata": {"name": "default"},
        });
        cluster.server.delete(&object)?;
        until_status(cluster, 0, &["Paused"])?;
        for command in ["pause", "resume"] {
            let (code, text) = rollout(cluster, &[command])?;
            assert_eq!(code, Some(2), "{text}");
            assert!(text.contains("create Settings default again"), "{text}");
        }
        assert!(cluster.server.get(&object)?.is_none());
        cluster.server.apply(settings)?;
        let (code, text) = rollout(cluster, &["resume"])?;
        assert_eq!(code, Some(0), "{text}");
        until_status(cluster, 0, &["Progressing"])?;
        Ok(())
    })
}
