//! The operator against a real API server. No agent runs: the test answers for the nodes.

use std::{cell::Cell, thread, time::Duration};

use anyhow::Context as _;
use serde_json::{Value, json};

use super::{
    cluster::{BILLING, SENSORS, SENSORS_NET, for_a_while, object, with_cluster},
    server::eventually,
};
use crate::data::text;

#[test]
fn nodes_are_told_one_after_another_and_an_old_answer_does_not_count() -> anyhow::Result<()> {
    with_cluster(|cluster| {
        cluster.until_configured(&["n1"])?;
        let one_only = || Ok(cluster.names("NodeNetworkConfig")? == ["n1"]);
        for_a_while("only n1 is told", one_only)?;

        let first = cluster.revision("n1")?;
        let revisions = cluster.all("NetworkConfigRevision")?;
        let known: Vec<&str> = revisions
            .iter()
            .map(|revision| text(revision, "/spec/revision"))
            .collect();
        assert!(known.contains(&first.as_str()), "{first} is in {known:?}");

        cluster.answer("n1", "0000000000000000")?;
        for_a_while("an answer to another revision does not count", one_only)?;
        cluster.answer("n1", &first)?;
        cluster.until_configured(&["n1", "n2"])?;
        assert_eq!(cluster.revision("n2")?, first);
        cluster.until_condition(("Layer2Attachment", "billing"), ["Ready", "False", ""])?;
        cluster.answer("n2", &first)?;
        cluster.until_condition(("Layer2Attachment", "billing"), ["Ready", "True", ""])?;

        // Another revision: both nodes still hold their answers to the first one.
        let mtu = json!({"spec": {"mtu": 1400}});
        cluster
            .server
            .edit(&object("Layer2Attachment", "billing"), &mtu)?;
        let second = eventually("n1 is told another revision", || {
            Ok(Some(cluster.revision("n1")?).filter(|revision| *revision != first))
        })?;
        for_a_while("n2 waits for n1's new answer", || {
            Ok(cluster.revision("n2")? == first)
        })?;
        cluster.answer("n1", &second)?;
        eventually("n2 is told as well", || {
            Ok((cluster.revision("n2")? == second).then_some(()))
        })
    })
}

#[test]
fn what_an_intent_becomes_is_its_own_and_goes_with_it() -> anyhow::Result<()> {
    with_cluster(|cluster| {
        cluster.until_generated(&BILLING)?;
        let uid = cluster.get("Layer2Attachment", "billing")?["metadata"]["uid"].clone();
        for name in BILLING {
            let (kind, name) = name.split_once('/').context("kind and name")?;
            let owners = &cluster.get(kind, name)?["metadata"]["ownerReferences"];
            assert_eq!(owners.as_array().map(Vec::len), Some(1), "{name}: {owners}");
            let owner = &owners[0];
            assert_eq!(
                (
                    &owner["kind"],
                    &owner["name"],
                    &owner["uid"],
                    &owner["controller"]
                ),
                (
                    &json!("Layer2Attachment"),
                    &json!("billing"),
                    &uid,
                    &json!(true)
                ),
                "{name}"
            );
        }
        cluster.roll_out(&["n1", "n2"])?;
        cluster.until_condition(("Layer2Attachment", "billing"), ["Ready", "True", ""])?;
        eventually("the revision counts both nodes", || {
            let revisions = cluster.all("NetworkConfigRevision")?;
            let counts = revisions.iter().map(|revision| &revision["status"]);
            let is_done = |status: &Value| {
                status["ready"] == 2 && status["total"] == 2 && status["isInvalid"] == false
            };
            Ok(counts.into_iter().any(is_done).then_some(()))
        })?;
        let before = cluster.versions()?;
        for_a_while("who has nothing to say writes nothing", || {
            Ok(cluster.versions()? == before)
        })?;

        // Somebody edits what was generated.
        let (kind, name) = BILLING[0].split_once('/').context("kind and name")?;
        let before = cluster.get(kind, name)?["spec"].clone();
        cluster.server.edit(
            &object(kind, name),
            &json!({"spec": {"mtu": 1300, "vni": 77}}),
        )?;
        eventually("the edit is undone", || {
            Ok((cluster.get(kind, name)?["spec"] == before).then_some(()))
        })?;
        // Somebody deletes what was generated.
        cluster.server.delete(&object(kind, name))?;
        cluster.until_generated(&BILLING)?;

        // What a person wrote is left alone, also when the intent goes.
        cluster.server.apply(
            "{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Layer2NetworkConfiguration, \
             metadata: {name: by-hand}, spec: {id: 500, mtu: 1500, vni: 10500}}",
        )?;
        cluster
            .server
            .delete(&object("Layer2Attachment", "billing"))?;
        cluster.until_generated(&["Layer2NetworkConfiguration/by-hand"])?;
        for_a_while("nothing comes back, and nothing else goes", || {
            Ok(cluster.generated()? == ["Layer2NetworkConfiguration/by-hand"])
        })
    })
}

#[test]
fn a_problem_stays_with_its_object_and_what_worked_keeps_working() -> anyhow::Result<()> {
    const BOTH: [&str; 4] = [
        BILLING[0],
        "Layer2NetworkConfiguration/layer2attachment-sensors-235",
        BILLING[1],
        "VRFRouteConfiguration/layer2attachment-sensors-m2m",
    ];
    with_cluster(|cluster| {
        let (billing, sensors) = (
            ("Layer2Attachment", "billing"),
            ("Layer2Attachment", "sensors"),
        );
        cluster.until_generated(&BILLING)?;
        cluster.server.apply(SENSORS)?;
        cluster.until_condition(sensors, ["Resolved", "False", "MissingReference"])?;
        cluster.until_condition(billing, ["Resolved", "True", ""])?;
        assert_eq!(cluster.generated()?, BILLING);

        // What was missing comes.
        cluster.server.apply(SENSORS_NET)?;
        cluster.until_condition(sensors, ["Resolved", "True", ""])?;
        cluster.until_generated(&BOTH)?;

        // And goes again: the problem is told, and what was generated stays.
        let specs = || -> anyhow::Result<Vec<Value>> {
            let mut all = cluster.all("Layer2NetworkConfiguration")?;
            all.extend(cluster.all("VRFRouteConfiguration")?);
            Ok(all.iter().map(|object| object["spec"].clone()).collect())
        };
        let before = specs()?;
        cluster.server.delete(&object("Network", "sensors-net"))?;
        cluster.until_condition(sensors, ["Resolved", "False", "MissingReference"])?;
        for_a_while("what was generated stays", || {
            Ok(cluster.generated()? == BOTH && specs()? == before)
        })?;
        cluster.until_condition(billing, ["Resolved", "True", ""])
    })
}

#[test]
fn a_node_that_is_not_ready_gets_its_config_and_its_heartbeats_cause_no_write() -> anyhow::Result<()>
{
    with_cluster(|cluster| {
        cluster.until_configured(&["n1"])?;
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2"}});
        let beat = |time: &str| -> anyhow::Result<()> {
            let mut node = cluster.server.get(&node)?.context("the node")?;
            node["status"]["conditions"] = json!([{
                "type": "Ready", "status": "False", "reason": "KubeletNotReady",
                "message": "the network is not ready", "lastHeartbeatTime": time, "lastTransitionTime": time,
            }]);
            let answer = cluster.server.replace_status(&node)?;
            answer.map_err(|refusal| anyhow::anyhow!("{}", refusal.message))?;
            Ok(())
        };
        beat("2026-01-01T00:00:00Z")?;
        cluster.roll_out(&["n1", "n2"])?;
        cluster.until_condition(("Layer2Attachment", "billing"), ["Ready", "True", ""])?;
        // Counts in statuses follow within seconds.
        eventually("all is written", || {
            let before = cluster.versions()?;
            thread::sleep(Duration::from_secs(4));
            Ok((cluster.versions()? == before).then_some(()))
        })?;
        let before = cluster.versions()?;
        let minutes = Cell::new(0);
        for_a_while("heartbeats cause no write", || {
            minutes.set(minutes.get() + 1);
            beat(&format!("2026-01-01T00:{:02}:00Z", minutes.get() % 60))?;
            Ok(cluster.versions()? == before)
        })
    })
}
