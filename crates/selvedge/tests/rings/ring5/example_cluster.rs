//! The example directory, applied to a real API server one document at a time, in several orders. Nodes are simulated.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use lab::parts::ClusterApiVersion;
use serde_json::{Value, json};

use super::{
    cluster::start_operator,
    fleet::{Behaviour, Fleet},
    manifests::ADMISSION,
    programs::{Program, Programs},
    server::{Mode, Server, with_server, within},
};
use crate::{
    data::{self, text},
    support::{IN_CLUSTER_IPAM, repository},
};

const PATIENCE: Duration = Duration::from_secs(90);
const IPAM: &str = "ipam.cluster.x-k8s.io/v1beta2";

/// The documents of a folder, as `kubectl apply -f` reads them: in the order of names, without folders in it.
fn documents(folder: &Path) -> anyhow::Result<Vec<Value>> {
    let mut documents = Vec::new();
    for path in data::listed(folder)? {
        if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            documents.extend(data::objects(&path)?);
        }
    }
    Ok(documents)
}

/// The same documents in another order, which the seed decides.
fn shuffled(mut documents: Vec<Value>, mut seed: u64) -> Vec<Value> {
    for last in (1..documents.len()).rev() {
        // A linear congruential generator: its high bits are good enough for an order.
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let place = usize::try_from(seed >> 33).unwrap_or_default() % (last + 1);
        documents.swap(last, place);
    }
    documents
}

fn create(server: &Server, object: &Value) -> anyhow::Result<()> {
    let created = server.create(object, Mode::Real)?;
    created.map_err(|refusal| anyhow::anyhow!("{object}: {}", refusal.message))?;
    Ok(())
}

/// Applies the documents, and waits until all that are Selvedge's say that they are ready.
fn ends_ready(server: &Server, documents: &[Value]) -> anyhow::Result<()> {
    for document in documents {
        create(server, document)?;
    }
    let ours = documents.iter();
    let ours = ours.filter(|object| {
        let group = text(object, "/apiVersion");
        // A Node without a kubelet is never ready.
        !group.contains("cluster.x-k8s.io") && group != "v1"
    });
    let mut open = Vec::new();
    within(PATIENCE, "every object is ready", || {
        open.clear();
        for object in ours.clone() {
            let stored = server.get(object)?.context("it is gone")?;
            let conditions = stored["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            let is_ready = conditions.any(|one| {
                one["type"] == "Ready"
                    && one["status"] == "True"
                    && one["observedGeneration"] == stored["metadata"]["generation"]
            });
            if !is_ready {
                open.push(format!("{}: {}", data::name(object), stored["status"]));
            }
        }
        Ok(open.is_empty().then_some(()))
    })
    .with_context(|| open.join("\n"))
}

/// Removes the addresses of pools without those who would release them.
fn drop_claims(server: &Server) -> anyhow::Result<()> {
    for kind in ["IPAddress", "IPAddressClaim"] {
        for object in server.list(IPAM, kind)? {
            server.edit(&object, &json!({"metadata": {"finalizers": null}}))?;
            server.delete(&object)?;
        }
    }
    Ok(())
}

/// The documents of an example: what people wait for between waves, tests do not.
fn example(name: &str) -> anyhow::Result<Vec<Value>> {
    let folder = repository("examples").join(name);
    let mut all = documents(&folder)?;
    if folder.join("nodes").exists() {
        all.extend(documents(&folder.join("nodes"))?);
    }
    for settings in all.iter_mut().filter(|one| one["kind"] == "Settings") {
        settings["spec"]["rollout"]["soakTime"] = json!("0s");
    }
    Ok(all)
}

/// Applies an example in this order, with an operator and agents that run before the first document comes. Leaves nothing behind, whatever the
/// end: other tests share the API server.
fn apply(server: &Server, how: &str, documents: &[Value]) -> anyhow::Result<()> {
    let nodes = documents.iter().filter(|object| object["kind"] == "Node");
    let names = nodes.map(|node| text(node, "/metadata/name").to_owned());
    let fleet = names.map(|name| (name, Behaviour::Healthy));
    let fleet = Fleet::start(server, fleet)?;
    let flags = ["--in-cluster-ipam"];
    let operator = start_operator(server.operator_kubeconfig(), &flags)?;
    let start = Instant::now();
    let result = ends_ready(server, documents).with_context(|| how.to_owned());
    eprintln!("{how}: {:.1} s", start.elapsed().as_secs_f64());
    drop((operator, fleet));
    // No definition waits for an address.
    drop_claims(server)?;
    server.clear()?;
    result
}

#[test]
fn the_example_directory_ends_ready_in_whatever_order_it_is_applied() -> anyhow::Result<()> {
    let forward = example("cluster")?;
    let reversed = forward.iter().rev().cloned().collect();
    let racks = example("racks-12")?;
    let bonds = example("vlans-on-bonds")?;
    let orders: [(&str, Vec<Value>); 6] = [
        ("as the files are", forward.clone()),
        ("reversed", reversed),
        ("shuffled with seed 1", shuffled(forward.clone(), 1)),
        ("shuffled with seed 2", shuffled(forward, 2)),
        ("twelve racks, shuffled with seed 3", shuffled(racks, 3)),
        ("VLANs on bonds, shuffled with seed 4", shuffled(bonds, 4)),
    ];
    with_server(|server| {
        let programs = Programs::new(server)?;
        for program in [
            Program::MetalLb,
            Program::Coil,
            Program::Calico,
            Program::Ipam(ClusterApiVersion::V1Beta2),
            Program::InClusterIpam,
        ] {
            programs.install(program)?;
        }
        let install = ["apply", "--server-side", "-f", "-"];
        server.plane.kubectl(&install, IN_CLUSTER_IPAM)?;
        server.plane.kubectl(&install, ADMISSION)?;
        let mut orders = orders.into_iter();
        let result = orders.try_for_each(|(how, documents)| apply(server, how, &documents));
        server.plane.kubectl(&["delete", "-f", "-"], ADMISSION)?;
        result
    })
}
