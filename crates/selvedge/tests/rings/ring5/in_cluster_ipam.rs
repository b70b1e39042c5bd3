//! Addresses of pools on a real API server, where the operator gives them itself.

use lab::parts::ClusterApiVersion;
use serde_json::{Value, json};

use super::{
    cluster::{Cluster, for_a_while, object, start_operator},
    programs::{Program, Programs},
    server::{Mode, Server, eventually, with_server},
};
use crate::{
    data,
    support::{IN_CLUSTER_IPAM, OWN_NAMESPACE, repository},
};

/// One address is the gateway, one is excluded, and one is free.
const POOL: &str = "
apiVersion: ipam.cluster.x-k8s.io/v1alpha2
kind: InClusterIPPool
metadata: {name: mirror-source-ips, namespace: selvedge-system}
spec: {addresses: [10.99.0.1-10.99.0.3], prefix: 24, gateway: 10.99.0.1, excludedAddresses: [10.99.0.2]}
";

fn of_ipam(version: ClusterApiVersion, kind: &str, name: &str) -> Value {
    let version = match version {
        ClusterApiVersion::V1Beta1 => "v1beta1",
        ClusterApiVersion::V1Beta2 => "v1beta2",
    };
    json!({
        "apiVersion": format!("ipam.cluster.x-k8s.io/{version}"), "kind": kind,
        "metadata": {"name": name, "namespace": OWN_NAMESPACE},
    })
}

fn pool_ref() -> Value {
    json!({"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "mirror-source-ips"})
}

fn create(server: &Server, object: &Value) -> anyhow::Result<()> {
    let created = server.create(object, Mode::Real)?;
    created.map_err(|refusal| anyhow::anyhow!("{object}: {}", refusal.message))?;
    Ok(())
}

/// A mirror waits for its address, gets the only free one, and gives it back; then another claim gets it.
fn fulfilled(cluster: &Cluster<'_>, version: ClusterApiVersion) -> anyhow::Result<()> {
    let server = cluster.server;
    let selectors = ["mirror-vlan100-ingress", "mirror-ext-egress"];
    let is_ready = |name: &str| -> anyhow::Result<bool> {
        let selector = cluster.get("MirrorSelector", name)?;
        let conditions = selector["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        Ok(conditions.any(|one| one["type"] == "Ready" && one["status"] == "True"))
    };
    let address = of_ipam(version, "IPAddress", "mirror-source-ips-0a630003");
    let given = eventually("the claim gets its address", || {
        cluster.answer_all()?;
        server.get(&address)
    })?;
    let expected = json!({
        "address": "10.99.0.3", "prefix": 24, "gateway": "10.99.0.1",
        "claimRef": {"name": "mirror-lo.mir-node-01"}, "poolRef": pool_ref(),
    });
    assert_eq!(given["spec"], expected);
    for selector in selectors {
        eventually("the mirror is ready", || {
            cluster.answer_all()?;
            Ok(is_ready(selector)?.then_some(()))
        })?;
    }
    let claim = of_ipam(version, "IPAddressClaim", "mirror-lo.mir-node-01");
    let held = server.get(&claim)?.unwrap_or_default();
    assert_eq!(
        held["status"]["addressRef"]["name"],
        "mirror-source-ips-0a630003"
    );

    // The pool has no other: a second claim waits until the first is released.
    let mut second = of_ipam(version, "IPAddressClaim", "second");
    second["spec"] = json!({"poolRef": pool_ref()});
    create(server, &second)?;
    server.delete(&address)?;
    for_a_while("the address stays while its claim does", || {
        let stored = server.get(&address)?.unwrap_or_default();
        Ok(stored["spec"]["claimRef"]["name"] == "mirror-lo.mir-node-01")
    })?;
    for selector in selectors {
        server.delete(&object("MirrorSelector", selector))?;
    }
    // A loopback is on every node that has its VRF.
    server.delete(&object("MirrorTarget", "collector-prod"))?;
    server.delete(&object("VRFRouteConfiguration", "mirror-vrf-export"))?;
    eventually("the second claim gets the address", || {
        cluster.answer_all()?;
        let stored = server.get(&address)?.unwrap_or_default();
        let is_given = stored["spec"]["claimRef"]["name"] == "second";
        Ok((is_given && server.get(&claim)?.is_none()).then_some(()))
    })?;
    server.delete(&second)?;
    eventually("all is released", || {
        let is_gone = server.get(&second)?.is_none() && server.get(&address)?.is_none();
        Ok(is_gone.then_some(()))
    })
}

#[test]
fn claims_get_addresses_from_the_operator_and_give_them_back() -> anyhow::Result<()> {
    for version in [ClusterApiVersion::V1Beta2, ClusterApiVersion::V1Beta1] {
        with_server(|server| {
            let cluster = Cluster { server };
            let programs = Programs::new(server)?;
            programs.install(Program::Ipam(version))?;
            programs.install(Program::InClusterIpam)?;
            let apply = ["apply", "--server-side", "-f", "-"];
            server.plane.kubectl(&apply, IN_CLUSTER_IPAM)?;
            server.apply(POOL)?;
            let story = repository("tests/cases/mirror-waits-for-its-claim/input.yaml");
            for object in data::objects(&story)? {
                create(server, &object)?;
            }
            let flags = ["--in-cluster-ipam"];
            let _operator = start_operator(server.operator_kubeconfig(), &flags)?;
            fulfilled(&cluster, version).expect("claims are fulfilled");
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn claims_get_nothing_from_an_operator_that_was_not_asked_to() -> anyhow::Result<()> {
    with_server(|server| {
        let programs = Programs::new(server)?;
        let version = ClusterApiVersion::V1Beta2;
        programs.install(Program::Ipam(version))?;
        programs.install(Program::InClusterIpam)?;
        server.apply(POOL)?;
        let mut claim = of_ipam(version, "IPAddressClaim", "one");
        claim["spec"] = json!({"poolRef": pool_ref()});
        create(server, &claim)?;
        let _operator = start_operator(server.operator_kubeconfig(), &[])?;
        for_a_while("nothing is done about it", || {
            let stored = server.get(&claim)?.unwrap_or_default();
            Ok(stored["status"].is_null() && stored["metadata"]["finalizers"].is_null())
        })
    })
}
