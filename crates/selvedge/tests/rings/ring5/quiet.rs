//! What happens in every cluster all the time and means nothing: no pass comes of it, and no write.

use std::{
    net::{SocketAddr, TcpListener},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use serde_json::json;

use super::{
    cluster::{Cluster, object, start_operator},
    fleet::{Behaviour, Fleet},
    fleet_rollout::{FABRIC, name, nodes, settings, until_phase},
    operations::get,
    programs::{Program, Programs},
    server::{Mode, eventually, with_server},
};
use crate::data::text;

const NODES: usize = 3;
const PATIENCE: Duration = Duration::from_mins(1);
/// Longer than it takes to look again for kinds that are not served, and for a Lease to be renewed.
const QUIET: Duration = Duration::from_secs(25);

const INBOUND: &str = "
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: transfer}
spec: {ipv4: {cidr: 203.0.113.0/28}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Inbound
metadata: {name: web}
spec: {networkRef: transfer, count: 2, advertisement: {type: bgp}}
";

/// Passes and writes, as the operator counts them.
fn counts(address: SocketAddr) -> anyhow::Result<Vec<String>> {
    let (_, text) = get(address, "/metrics", Some("lab-admin"))?;
    let names = ["passes_total ", "writes_total{", "write_errors_total{"];
    let is_count = |line: &&str| {
        let name = line.strip_prefix("selvedge_operator_");
        name.is_some_and(|name| names.iter().any(|one| name.starts_with(one)))
    };
    Ok(text.lines().filter(is_count).map(str::to_owned).collect())
}

/// What kubelets, agents and MetalLB say again and again.
fn heartbeats(cluster: &Cluster<'_>, count: u32) -> anyhow::Result<()> {
    let at = format!("2026-01-01T00:00:{:02}Z", count % 60);
    for index in 0..NODES {
        let name = name(index);
        let ready = json!({
            "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "",
            "lastHeartbeatTime": at, "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "status": {"conditions": [ready]},
        });
        status(cluster, &node)?;
        let mut config = cluster.get("NodeNetworkConfig", &name)?;
        config["status"]["lastUpdate"] = json!(at);
        status(cluster, &config)?;
        let mut report = object("NodeNetworkStatus", &name);
        report["status"] = json!({
            "lastUpdated": at, "interfaces": [{"name": "eth1", "state": "up", "type": "physical"}],
        });
        status(cluster, &report)?;
    }
    let pool = json!({
        "apiVersion": "metallb.io/v1beta1", "kind": "IPAddressPool",
        "metadata": {"name": "web", "namespace": "metallb-system"},
    });
    let mut pool = cluster.server.get(&pool)?.context("the pool")?;
    pool["status"] = json!({
        "assignedIPv4": count, "assignedIPv6": 0, "availableIPv4": 2, "availableIPv6": 0,
    });
    status(cluster, &pool)
}

fn status(cluster: &Cluster<'_>, object: &serde_json::Value) -> anyhow::Result<()> {
    let answer = cluster.server.replace_status(object)?;
    answer.map_err(|refusal| anyhow::anyhow!("{object}: {}", refusal.message))?;
    Ok(())
}

#[test]
fn heartbeats_and_what_others_report_cause_no_pass_and_no_write() -> anyhow::Result<()> {
    with_server(|server| {
        let programs = Programs::new(server)?;
        programs.install(Program::MetalLb)?;
        server.apply(&settings(PATIENCE))?;
        server.apply(FABRIC)?;
        server.apply(INBOUND)?;
        server.apply(&nodes(NODES))?;
        let cluster = &Cluster { server };
        for index in 0..NODES {
            let mut report = object("NodeNetworkStatus", &name(index));
            report["spec"] = json!({});
            let created = server.create(&report, Mode::Real)?;
            created.map_err(|refusal| anyhow::anyhow!("{}", refusal.message))?;
        }
        let fleet = (0..NODES).map(|index| (name(index), Behaviour::Healthy));
        let _fleet = Fleet::start(server, fleet)?;
        let address = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
        let flags = ["--listen", &address.to_string()];
        let _operator = start_operator(server.operator_kubeconfig(), &flags)?;
        let check = || -> anyhow::Result<()> {
            let complete = until_phase(cluster, PATIENCE, "", "Complete")?;
            assert_eq!(complete["status"]["ready"], NODES);
            cluster.until_condition(("Inbound", "web"), ["Ready", "True", ""])?;
            // The first reports are something new. Statuses that only count nodes are written a little later.
            heartbeats(cluster, 0)?;
            let mut last = (Instant::now(), counts(address)?);
            let before = eventually("the operator has nothing to do", || {
                let now = counts(address)?;
                if now != last.1 {
                    last = (Instant::now(), now);
                }
                let is_quiet = last.0.elapsed() > Duration::from_secs(5);
                Ok(is_quiet.then(|| last.1.clone()))
            })?;
            let (start, mut count) = (Instant::now(), 0);
            while start.elapsed() < QUIET {
                count += 1;
                heartbeats(cluster, count)?;
                thread::sleep(Duration::from_millis(500));
            }
            assert_eq!(counts(address)?, before, "after {count} heartbeats of each");
            let revisions = cluster.all("NetworkConfigRevision")?;
            assert_eq!(revisions.len(), 1, "{}", text(&complete, "/metadata/name"));
            Ok(())
        };
        check().expect("nothing happens where nothing changes");
        Ok(())
    })
}
