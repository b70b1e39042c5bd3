//! Nodes that are deleted: their machines hold their addresses until they are known to have released them. No agent runs: the test answers for the
//! nodes.

use serde_json::{Value, json};

use super::{
    cluster::{Cluster, object, with_cluster},
    commands::run,
    server::eventually,
};

fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
}

fn vtep(cluster: &Cluster<'_>, node: &str) -> anyhow::Result<Option<String>> {
    let config = cluster.server.get(&object("NodeNetworkConfig", node))?;
    let vtep =
        config.and_then(|config| Some(config["spec"]["underlay"]["vtep"].as_str()?.to_owned()));
    Ok(vtep)
}

fn until_configured(cluster: &Cluster<'_>, node: &str) -> anyhow::Result<String> {
    eventually("the node has a config", || vtep(cluster, node))
}

#[test]
fn a_deleted_node_holds_its_addresses_until_it_is_cleaned_up_or_forgotten() -> anyhow::Result<()> {
    with_cluster(|cluster| {
        cluster.roll_out(&["n1", "n2"])?;
        let of_n2 = until_configured(cluster, "n2")?;
        let (code, text) = run(cluster, &["node", "forget", "n2"], "")?;
        assert_eq!(code, 2, "{text}");
        assert!(text.contains("delete the Node first"), "{text}");

        cluster.server.delete(&node("n2"))?;
        cluster
            .server
            .apply("apiVersion: v1\nkind: Node\nmetadata: {name: n3}\n")?;
        let of_n3 = until_configured(cluster, "n3")?;
        assert_ne!(of_n3, of_n2, "the machine may still announce it");
        assert_eq!(vtep(cluster, "n2")?, Some(of_n2.clone()));
        let (_, text) = run(cluster, &["status"], "")?;
        assert!(text.contains("still holding their addresses: n2"), "{text}");

        // It is forgotten, and its address is free.
        let (code, text) = run(cluster, &["node", "forget", "n2"], "")?;
        assert_eq!(code, 0, "{text}");
        let (code, text) = run(cluster, &["node", "forget", "n2"], "")?;
        assert_eq!(code, 1, "{text}");
        assert!(text.contains("it holds nothing"), "{text}");
        cluster
            .server
            .apply("apiVersion: v1\nkind: Node\nmetadata: {name: n4}\n")?;
        assert_eq!(until_configured(cluster, "n4")?, of_n2);

        // It says itself that it was cleaned up.
        cluster.server.delete(&node("n3"))?;
        let mut config = cluster.get("NodeNetworkConfig", "n3")?;
        config["status"] = json!({"configStatus": "removed"});
        let answer = cluster.server.replace_status(&config)?;
        answer.map_err(|refusal| anyhow::anyhow!("{}", refusal.message))?;
        eventually("its config goes", || {
            Ok(vtep(cluster, "n3")?.is_none().then_some(()))
        })?;
        Ok(())
    })
}
