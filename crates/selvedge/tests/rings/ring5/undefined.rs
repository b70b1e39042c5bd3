//! Kinds whose definition is missing when the operator starts.

use anyhow::Context as _;
use serde_json::{Value, json};

use super::{
    cluster::{BILLING, Cluster, for_a_while, object, start_operator, without_operator},
    server::eventually,
};

const NEVER_USED: &str = "l3passthroughs.openpe.openperouter.github.io";
const USED: &str = "destinations.network.t-caas.telekom.com";

fn definition(name: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
    })
}

/// Deletes a definition; what makes it again.
fn remove(cluster: &Cluster<'_>, name: &str) -> anyhow::Result<Value> {
    let stored = cluster.server.get(&definition(name))?;
    let stored = stored.context("the definition")?;
    cluster.server.delete(&definition(name))?;
    eventually("the definition is gone", || {
        let found = cluster.server.get(&definition(name))?;
        Ok(found.is_none().then_some(()))
    })?;
    let mut anew = definition(name);
    anew["spec"] = stored["spec"].clone();
    Ok(anew)
}

/// Makes a definition again.
fn restore(cluster: &Cluster<'_>, definition: &Value) -> anyhow::Result<()> {
    let kubectl = |arguments: &[&str], stdin: &str| cluster.server.plane.kubectl(arguments, stdin);
    kubectl(&["create", "-f", "-"], &definition.to_string())?;
    let name = definition["metadata"]["name"].as_str().context("a name")?;
    kubectl(&["wait", "--for=condition=Established", "crd", name], "")?;
    Ok(())
}

fn specs(cluster: &Cluster<'_>) -> anyhow::Result<Vec<Value>> {
    let configs = cluster.all("NodeNetworkConfig")?;
    Ok(configs
        .iter()
        .map(|config| config["spec"].clone())
        .collect())
}

#[test]
fn a_kind_that_was_never_defined_holds_up_no_other_kind() -> anyhow::Result<()> {
    without_operator(|cluster| {
        let removed = remove(cluster, NEVER_USED)?;
        let operator = start_operator(cluster.server.operator_kubeconfig(), &[])?;
        let check = || -> anyhow::Result<()> {
            cluster.until_generated(&BILLING)?;
            cluster.roll_out(&["n1", "n2"])?;
            let log = operator.log()?;
            anyhow::ensure!(log.contains(NEVER_USED), "the log names it");
            Ok(())
        };
        let checked = check();
        restore(cluster, &removed)?;
        checked.expect("all else is served");
        // It is taken up when it appears.
        let before = cluster.revision("n1")?;
        let passthrough = json!({
            "apiVersion": "openpe.openperouter.github.io/v1alpha1", "kind": "L3Passthrough",
            "metadata": {"name": "host", "namespace": "default"},
            "spec": {"hostsession": {"asn": 64514, "hostasn": 64515, "localcidr": {"ipv4": "192.169.10.0/24"}}},
        });
        let answer = cluster
            .server
            .create(&passthrough, super::server::Mode::Real)?;
        answer.map_err(|refusal| anyhow::anyhow!("{}", refusal.message))?;
        super::server::within(
            std::time::Duration::from_mins(1),
            "it reaches a node",
            || {
                cluster.answer_all()?;
                Ok((cluster.revision("n1")? != before).then_some(()))
            },
        )
        .expect("the kind is served now");
        Ok(())
    })
}

#[test]
fn a_kind_whose_definition_went_while_no_operator_ran_changes_no_node() -> anyhow::Result<()> {
    without_operator(|cluster| {
        let kubeconfig = cluster.server.operator_kubeconfig();
        let first = start_operator(kubeconfig, &[])?;
        cluster
            .roll_out(&["n1", "n2"])
            .expect("both nodes have a config");
        let (before, meters) = (specs(cluster)?, cluster.get("Destination", "meters")?);
        drop(first);
        let removed = remove(cluster, USED)?;
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "selvedge-operator", "namespace": crate::support::OWN_NAMESPACE},
        });
        cluster.server.delete(&lease)?;
        let operator = start_operator(kubeconfig, &[])?;
        let check = || -> anyhow::Result<()> {
            eventually("the operator says what is missing", || {
                let log = operator.log()?;
                let says =
                    |line: &str| line.contains("nothing is published") && line.contains(USED);
                Ok(log.lines().any(says).then_some(()))
            })?;
            for_a_while("nothing is written", || {
                Ok(specs(cluster)? == before && cluster.generated()? == BILLING)
            })
        };
        let checked = check();
        restore(cluster, &removed)?;
        checked.expect("what nodes have stays");
        let mut again = object("Destination", "meters");
        again["metadata"]["labels"] = meters["metadata"]["labels"].clone();
        again["spec"] = meters["spec"].clone();
        eventually("the object is stored again", || {
            let answer = cluster.server.create(&again, super::server::Mode::Real)?;
            Ok(answer.is_ok().then_some(()))
        })?;
        let billing = object("Layer2Attachment", "billing");
        let change = json!({"spec": {"mtu": 1400}});
        cluster.server.edit(&billing, &change)?;
        super::server::within(
            std::time::Duration::from_mins(1),
            "the operator goes on",
            || {
                cluster.answer_all()?;
                Ok((specs(cluster)? != before).then_some(()))
            },
        )
        .expect("the kind is served again");
        Ok(())
    })
}
