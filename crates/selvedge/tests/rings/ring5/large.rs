//! A revision that is too large for one object: it is stored in parts, and an operator that starts anew returns nodes to it.

use serde_json::{Value, json};

use super::{
    cluster::{BILLING, Cluster, TCAAS, WORLD, object, start_operator},
    fleet_rollout::newest,
    server::{Mode, Server, eventually, with_server},
};
use crate::data::text;

const SETTINGS: &str = "
apiVersion: selvedge.dev/v1alpha1
kind: Settings
metadata: {name: default}
spec: {rollout: {soakTime: 0s, maxRemoval: 100%, historyLimit: 2}}
";

/// Routes that take nearly a megabyte, for a node that is not there.
fn routes() -> Vec<Value> {
    let line = |table: u32, place: u32| {
        let cidr = format!("10.{table}.{}.{}/30", place / 64, place % 64 * 4);
        json!({"action": "permit", "cidr": cidr})
    };
    let table = |table: u32| {
        let lines: Vec<Value> = (0..1000).map(|place| line(table, place)).collect();
        json!({
            "apiVersion": TCAAS, "kind": "VRFRouteConfiguration",
            "metadata": {"name": format!("large-{table:02}")},
            "spec": {
                "vrf": "large", "vni": 10_999, "routeTarget": "64500:10999", "seq": 1 + table,
                "import": lines, "nodeSelector": {"matchLabels": {"example.com/rack": "none"}},
            },
        })
    };
    (0..20).map(table).collect()
}

fn create(server: &Server, objects: &[Value]) -> anyhow::Result<()> {
    for object in objects {
        let answer = server.create(object, Mode::Real)?;
        answer.map_err(|refusal| anyhow::anyhow!("{}", refusal.message))?;
    }
    Ok(())
}

/// The parts that the newest revision names.
fn parts(revision: &Value) -> Vec<&str> {
    let parts = revision["spec"]["parts"].as_array();
    let parts = parts.into_iter().flatten();
    parts.filter_map(Value::as_str).collect()
}

/// Changes something on both nodes; waits until the first one is told.
fn change(cluster: &Cluster<'_>, mtu: u32) -> anyhow::Result<()> {
    let before = cluster.revision("n1")?;
    let billing = object("Layer2Attachment", "billing");
    cluster
        .server
        .edit(&billing, &json!({"spec": {"mtu": mtu}}))?;
    eventually("n1 is told", || {
        Ok((cluster.revision("n1")? != before).then_some(()))
    })
}

/// Answers for both nodes until the newest revision is complete.
fn complete(cluster: &Cluster<'_>) -> anyhow::Result<Value> {
    eventually("the newest revision is complete", || {
        for node in cluster.names("NodeNetworkConfig")? {
            cluster.answer(&node, &cluster.revision(&node)?)?;
        }
        let newest = newest(cluster)?;
        Ok((newest["status"]["phase"] == "Complete").then_some(newest))
    })
}

#[test]
fn a_revision_of_a_megabyte_is_stored_in_parts_and_nodes_are_returned_to_it() -> anyhow::Result<()>
{
    with_server(|server| {
        server.apply(SETTINGS)?;
        server.apply(WORLD)?;
        create(server, &routes())?;
        let cluster = &Cluster { server };
        let operator = start_operator(server.operator_kubeconfig(), &[])?;
        let first = complete(cluster).expect("both nodes have a config");
        assert!(parts(&first).len() >= 2, "{}", first["spec"]["parts"]);
        assert!(first["spec"]["vrf"].is_null(), "it is in the parts");
        let mut stored = cluster.names("NetworkConfigRevisionPart")?;
        let mut named = parts(&first);
        stored.sort();
        named.sort_unstable();
        assert_eq!(stored, named);
        let before = cluster.get("NodeNetworkConfig", "n1")?["spec"].clone();

        // Another operator takes a bad change back: what nodes had is in the parts.
        change(cluster, 1400).expect("the change is published");
        let second = newest(cluster)?;
        let shared = parts(&second)
            .into_iter()
            .filter(|part| named.contains(part));
        assert!(shared.count() + 2 >= named.len(), "{second}");
        drop(operator);
        let quick = [
            "--lease-duration",
            "3s",
            "--renew-deadline",
            "2s",
            "--retry-period",
            "1s",
        ];
        let _operator = start_operator(server.operator_kubeconfig(), &quick)?;
        let mut config = cluster.get("NodeNetworkConfig", "n1")?;
        config["status"] = json!({
            "configStatus": "invalid", "observedRevision": config["spec"]["revision"],
            "observedGeneration": config["metadata"]["generation"], "errorMessage": "no",
        });
        let answer = server.replace_status(&config)?;
        answer.map_err(|refusal| anyhow::anyhow!("{}", refusal.message))?;
        let wait = || {
            eventually("n1 has what it had", || {
                let now = cluster.get("NodeNetworkConfig", "n1")?["spec"].clone();
                Ok((now == before).then_some(()))
            })
        };
        // The Lease of the one that was killed has to be over first.
        wait().or_else(|_| wait()).expect("it is taken back");

        // What no revision has any more is deleted.
        for table in routes() {
            server.delete(&table)?;
        }
        for mtu in [1410, 1420, 1430] {
            change(cluster, mtu).expect("the change is published");
            let newest = complete(cluster).expect("it is rolled out");
            assert!(
                parts(&newest).is_empty(),
                "{}",
                text(&newest, "/metadata/name")
            );
        }
        eventually("no part is left", || {
            let left = cluster.names("NetworkConfigRevisionPart")?;
            Ok(left.is_empty().then_some(()))
        })
        .expect("parts go with their revisions");
        cluster
            .until_generated(&BILLING)
            .expect("all else is there");
        Ok(())
    })
}
