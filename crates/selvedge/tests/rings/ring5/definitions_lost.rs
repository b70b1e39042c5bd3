//! All definitions deleted with all objects, and installed again: what nodes have stays.

use serde_json::{Value, json};

use super::{
    cluster::{BILLING, Cluster, WORLD, object, start_operator, without_operator},
    server::{Mode, eventually},
};
use crate::{
    data::{self, text},
    support::{OWN_NAMESPACE, repository, selvedge},
};

/// The spec of each node's config, by name.
fn configs(cluster: &Cluster<'_>) -> anyhow::Result<Vec<(String, Value)>> {
    let configs = cluster.all("NodeNetworkConfig")?;
    Ok(configs
        .iter()
        .map(|config| (data::name(config), config["spec"].clone()))
        .collect())
}

/// Deletes all our definitions; their names.
fn delete_all(cluster: &Cluster<'_>) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for path in data::listed(&repository("deploy/crds"))? {
        let definitions = data::objects(&path)?;
        names.extend(
            definitions
                .iter()
                .map(|one| text(one, "/metadata/name").to_owned()),
        );
    }
    let delete = ["delete", "crd", "--ignore-not-found", "--timeout=2m"];
    let arguments = delete.into_iter().chain(names.iter().map(String::as_str));
    let arguments: Vec<&str> = arguments.collect();
    cluster.server.plane.kubectl(&arguments, "")?;
    Ok(names)
}

/// Installs them again.
fn install_all(cluster: &Cluster<'_>, names: &[String]) -> anyhow::Result<()> {
    let definitions = String::from_utf8(selvedge(&["crds"], "")?.stdout)?;
    let kubectl = |arguments: &[&str], stdin: &str| cluster.server.plane.kubectl(arguments, stdin);
    kubectl(&["apply", "--server-side", "-f", "-"], &definitions)?;
    let wait = ["wait", "--for=condition=Established", "--timeout=2m", "crd"];
    let arguments = wait.into_iter().chain(names.iter().map(String::as_str));
    let arguments: Vec<&str> = arguments.collect();
    kubectl(&arguments, "")?;
    Ok(())
}

/// Stores again what people had written. Nodes were never gone.
fn declare_again(cluster: &Cluster<'_>) -> anyhow::Result<()> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(WORLD)?;
    for object in objects.iter().filter(|object| object["kind"] != "Node") {
        eventually("it is stored again", || {
            Ok(cluster.server.create(object, Mode::Real)?.ok())
        })?;
    }
    Ok(())
}

/// Waits until nodes have the configs that they had; in the meantime none gets another one.
fn until_as_before(cluster: &Cluster<'_>, before: &[(String, Value)]) -> anyhow::Result<()> {
    eventually("nodes have the configs that they had", || {
        // A definition takes a moment to be served again.
        let Ok(now) = configs(cluster) else {
            return Ok(None);
        };
        for config in &now {
            anyhow::ensure!(before.contains(config), "another config: {config:?}");
        }
        cluster.answer_all()?;
        Ok((now == before).then_some(()))
    })
}

#[test]
fn all_definitions_deleted_and_installed_under_a_running_operator_change_no_node()
-> anyhow::Result<()> {
    without_operator(|cluster| {
        let operator = start_operator(cluster.server.operator_kubeconfig(), &[])?;
        cluster
            .roll_out(&["n1", "n2"])
            .expect("both nodes have a config");
        cluster
            .until_condition(("Layer2Attachment", "billing"), ["Ready", "True", ""])
            .expect("both have confirmed it");
        let before = configs(cluster)?;
        let names = delete_all(cluster)?;
        let noticed = eventually("the operator notices", || {
            let log = operator.log()?;
            Ok(log
                .contains("the objects of this kind stay in effect")
                .then_some(()))
        });
        install_all(cluster, &names)?;
        noticed.expect("it watches");
        // Nothing is declared yet, and nodes get what they had.
        until_as_before(cluster, &before).expect("configs are published again");
        declare_again(cluster)?;
        cluster
            .until_condition(("Layer2Attachment", "billing"), ["Resolved", "True", ""])
            .expect("it is served again");
        until_as_before(cluster, &before).expect("the same is declared");
        // It goes on from there.
        let mtu = json!({"spec": {"mtu": 1400}});
        cluster
            .server
            .edit(&object("Layer2Attachment", "billing"), &mtu)?;
        eventually("a change reaches a node", || {
            cluster.answer_all()?;
            Ok((configs(cluster)? != before).then_some(()))
        })
        .expect("rollouts go on");
        Ok(())
    })
}

#[test]
fn all_definitions_deleted_and_installed_while_no_operator_runs_give_nodes_the_same()
-> anyhow::Result<()> {
    without_operator(|cluster| {
        let kubeconfig = cluster.server.operator_kubeconfig();
        let operator = start_operator(kubeconfig, &[])?;
        cluster
            .roll_out(&["n1", "n2"])
            .expect("both nodes have a config");
        let before = configs(cluster)?;
        drop(operator);
        let names = delete_all(cluster)?;
        install_all(cluster, &names)?;
        declare_again(cluster)?;
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "selvedge-operator", "namespace": OWN_NAMESPACE},
        });
        cluster.server.delete(&lease)?;
        let _operator = start_operator(kubeconfig, &[])?;
        until_as_before(cluster, &before).expect("the same objects compile into the same configs");
        cluster
            .until_generated(&BILLING)
            .expect("all else is there");
        Ok(())
    })
}
