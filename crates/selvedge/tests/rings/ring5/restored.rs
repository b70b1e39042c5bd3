//! An etcd that is restored from a backup under a running operator.

use anyhow::Context as _;
use serde_json::{Value, json};

use super::{
    cluster::{BILLING, Cluster, SENSORS, SENSORS_NET, WORLD, for_a_while, object, start_operator},
    server::{Server, eventually},
};
use crate::support::{Daemon, OWN_NAMESPACE};

/// Rollouts that nobody has to wait for or to approve.
const SETTINGS: &str = "
apiVersion: selvedge.dev/v1alpha1
kind: Settings
metadata: {name: default}
spec: {rollout: {soakTime: 0s, maxUnavailable: 100%, maxRemoval: 100%}}
";

/// The specs of all nodes' configs.
fn specs(cluster: &Cluster<'_>) -> anyhow::Result<Vec<Value>> {
    let configs = cluster.all("NodeNetworkConfig")?.into_iter();
    Ok(configs.map(|mut config| config["spec"].take()).collect())
}

/// Answers for all nodes until every one has a segment of this VLAN, or none has.
fn until_vlan(cluster: &Cluster<'_>, vlan: &str, is_there: bool) -> anyhow::Result<()> {
    eventually(&format!("VLAN {vlan} on nodes: {is_there}"), || {
        cluster.answer_all()?;
        let specs = specs(cluster)?;
        let has = |spec: &Value| !spec["layer2s"][vlan].is_null();
        let is_so = specs.iter().all(|spec| has(spec) == is_there);
        Ok((is_so && specs.len() == 2).then_some(()))
    })
}

/// Answers for all nodes until the attachment is ready.
fn until_ready(cluster: &Cluster<'_>) -> anyhow::Result<()> {
    eventually("the attachment is ready", || {
        cluster.answer_all()?;
        let attachment = cluster.get("Layer2Attachment", "billing")?;
        let conditions = attachment["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let is_ready = conditions.any(|one| one["type"] == "Ready" && one["status"] == "True");
        Ok(is_ready.then_some(()))
    })
}

/// The version of the operator's Lease.
fn lease(server: &Server) -> anyhow::Result<String> {
    let version = "jsonpath={.metadata.resourceVersion}";
    let place = ["-n", OWN_NAMESPACE, "-o", version];
    let arguments = [&["get", "lease", "selvedge-operator"][..], &place].concat();
    Ok(server.plane.kubectl(&arguments, "")?)
}

fn goes_back_and_on(server: &mut Server, operator: &Daemon) -> anyhow::Result<()> {
    let cluster = Cluster { server };
    until_vlan(&cluster, "234", true)?;
    until_ready(&cluster)?;
    let (stored, backup) = (specs(&cluster)?, server.plane.back_up()?);
    let held = lease(server)?;

    // Another tenant comes, and billing goes.
    server.apply(SENSORS_NET)?;
    server.apply(SENSORS)?;
    until_vlan(&cluster, "235", true)?;
    server.delete(&object("Layer2Attachment", "billing"))?;
    until_vlan(&cluster, "234", false)?;
    // The operator tells by the version of its Lease, which it renews every few seconds.
    eventually("the Lease is newer than the backup", || {
        Ok((lease(server)? != held).then_some(()))
    })?;
    server.plane.restore(&backup)?;

    let cluster = Cluster { server };
    eventually("the operator notices", || {
        let has_noticed = operator.log()?.contains("older resource version");
        anyhow::ensure!(specs(&cluster)? == stored, "a config was written");
        Ok(has_noticed.then_some(()))
    })?;
    for_a_while("nodes keep what the restored objects say", || {
        Ok(specs(&cluster)? == stored && cluster.generated()? == BILLING)
    })?;
    until_ready(&cluster)?;
    // It goes on from there.
    server.apply(SENSORS_NET)?;
    server.apply(SENSORS)?;
    until_vlan(&cluster, "235", true)?;
    until_vlan(&cluster, "234", true)?;
    let mtu = json!({"spec": {"mtu": 1400}});
    server.edit(&object("Layer2Attachment", "billing"), &mtu)?;
    eventually("a change of what was restored reaches nodes", || {
        cluster.answer_all()?;
        let specs = specs(&cluster)?;
        let has = |spec: &Value| spec["layer2s"]["234"]["mtu"] == 1400;
        Ok(specs.iter().all(has).then_some(()))
    })
}

#[test]
fn a_restored_store_is_noticed_and_what_it_says_is_kept_on_nodes() -> anyhow::Result<()> {
    let mut server = Server::start(&[])?;
    server.apply(SETTINGS)?;
    server.apply(WORLD)?;
    let operator = start_operator(server.operator_kubeconfig(), &[])?;
    let result = goes_back_and_on(&mut server, &operator);
    result.with_context(|| operator.log().unwrap_or_default())
}
