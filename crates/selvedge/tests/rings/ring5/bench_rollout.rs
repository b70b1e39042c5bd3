//! `cargo xtask bench rollout`: rollouts over simulated nodes on a real API server, beside the budgets.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{SocketAddr, TcpListener},
    thread,
    time::{Duration, Instant},
};

use api::tcaas::NodeNetworkConfig;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};
use worlds::benchmark;

use super::{
    cluster::{Cluster, start_operator},
    fleet::{Behaviour, Fleet},
    fleet_rollout::{FABRIC, change, name, newest, nodes, settings},
    operations::get,
    server::{Server, with_quiet_server, within},
};
use crate::data::text;

/// Nodes, unless `SELVEDGE_BENCH_NODES` says how many.
const NODES: u32 = 1_000;
/// How long a node takes to apply a config and to confirm it.
const APPLY: Duration = Duration::from_secs(2);
/// The budget of a clean rollout is ten minutes over 10,000 nodes.
const CLEAN: f64 = 600.0;
const CLEAN_NODES: f64 = 10_000.0;
/// How long a confirmed wave is watched before the next: the default, scaled as the budget is.
const SOAK: f64 = 1.0;
/// The canary's wave, and one for each failure domain.
const WAVES: f64 = 4.0;
const IDLE: Duration = Duration::from_mins(1);
const PATIENCE: Duration = Duration::from_mins(15);

/// A line of the table: what, how much, and the most that it may be.
struct Line(&'static str, f64, &'static str, Option<f64>);

fn print(lines: &[Line]) -> anyhow::Result<()> {
    eprintln!("| what | seen | budget |\n|---|--:|---|");
    let mut missed = Vec::new();
    for Line(what, seen, unit, budget) in lines {
        let verdict = match budget {
            Some(budget) if seen > budget => {
                missed.push(*what);
                format!("{budget} {unit}: MISSED")
            }
            Some(budget) => format!("{budget} {unit}: kept"),
            None => "–".to_owned(),
        };
        eprintln!("| {what} | {seen:.1} {unit} | {verdict} |");
    }
    anyhow::ensure!(missed.is_empty(), "missed: {}", missed.join(", "));
    Ok(())
}

/// What the operator has counted: passes, and writes that were done or failed, by kind.
#[derive(Debug, PartialEq)]
struct Counts {
    passes: f64,
    writes: BTreeMap<String, f64>,
}

impl Counts {
    fn read(address: SocketAddr) -> anyhow::Result<Self> {
        let (_, text) = get(address, "/metrics", Some("lab-admin"))?;
        let mut counts = Self {
            passes: 0.0,
            writes: BTreeMap::new(),
        };
        for line in text.lines() {
            let Some((name, value)) = line.rsplit_once(' ') else {
                continue;
            };
            let is_write = ["writes_total{", "write_errors_total{"];
            let name = name.trim_start_matches("selvedge_operator_");
            if name == "passes_total" {
                counts.passes = value.parse()?;
            } else if is_write.iter().any(|start| name.starts_with(start)) {
                counts.writes.insert(name.to_owned(), value.parse()?);
            }
        }
        Ok(counts)
    }

    fn writes(&self) -> f64 {
        self.writes.values().sum()
    }
}

/// Requests that the API server has answered, by verb: without those of Leases, which come at any time, and those that come of this
/// program reading the operator's metrics.
fn requests(server: &Server) -> anyhow::Result<BTreeMap<String, f64>> {
    let metrics = server.plane.kubectl(&["get", "--raw", "/metrics"], "")?;
    let mut requests = BTreeMap::new();
    for line in metrics.lines() {
        let Some((labels, count)) = line
            .strip_prefix("apiserver_request_total{")
            .and_then(|rest| rest.split_once("} "))
        else {
            continue;
        };
        let label = |name: &str| {
            let start = format!("{name}=\"");
            let mut labels = labels.split(',').filter_map(|one| one.strip_prefix(&start));
            labels
                .next()
                .unwrap_or_default()
                .trim_end_matches('"')
                .to_owned()
        };
        let (verb, resource) = (label("verb"), label("resource"));
        let is_own = ["tokenreviews", "subjectaccessreviews"].contains(&&*resource);
        if !is_own && !["leases", ""].contains(&&*resource) {
            *requests.entry(verb).or_default() += count.parse::<f64>()?;
        }
    }
    anyhow::ensure!(!requests.is_empty(), "the API server counts nothing");
    Ok(requests)
}

/// How many nodes are simulated.
fn size() -> anyhow::Result<u32> {
    let nodes = std::env::var("SELVEDGE_BENCH_NODES").ok();
    Ok(nodes.map_or(Ok(NODES), |text| text.parse())?)
}

/// Seconds of processor time that this program and those that it started have used, by program.
fn processor_time() -> anyhow::Result<BTreeMap<String, f64>> {
    let mut parents: BTreeMap<u32, (u32, String, f64)> = BTreeMap::new();
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(process) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        // A process may end at any time.
        let Ok(text) = std::fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        let Some((name, rest)) = text
            .split_once('(')
            .and_then(|(_, rest)| rest.rsplit_once(')'))
        else {
            continue;
        };
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u32>().ok());
        let used = number(11).unwrap_or(0) + number(12).unwrap_or(0);
        // The kernel counts in hundredths of a second.
        let used = f64::from(used) / 100.0;
        parents.insert(process, (number(1).unwrap_or(0), name.to_owned(), used));
    }
    let own = std::process::id();
    let is_ours = |mut process: u32| {
        while process != own {
            match parents.get(&process) {
                Some((parent, ..)) if *parent != 0 => process = *parent,
                Some(_) | None => return false,
            }
        }
        true
    };
    let mut used: BTreeMap<String, f64> = BTreeMap::new();
    for (_, (_, name, seconds)) in parents.iter().filter(|(process, _)| is_ours(**process)) {
        *used.entry(name.clone()).or_default() += seconds;
    }
    Ok(used)
}

/// How many writes a second the API server does when nothing else runs: the same that a rollout makes, for each node a config and two reports.
fn writes_alone(server: &Server) -> anyhow::Result<f64> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let config = server.config()?;
    let cluster = Cluster { server };
    let configs = cluster.all("NodeNetworkConfig")?;
    runtime.block_on(async {
        let client = Client::try_from(config)?;
        let resource = ApiResource::erase::<NodeNetworkConfig>(&());
        let api: Api<DynamicObject> = Api::all_with(client, &resource);
        let start = Instant::now();
        let writes = configs.iter().map(|config| {
            let api = &api;
            async move {
                let name = text(config, "/metadata/name");
                let document = |part: &str, value: &Value| {
                    json!({
                        "apiVersion": config["apiVersion"], "kind": config["kind"],
                        "metadata": {"name": name}, part: value,
                    })
                };
                let mut spec = config["spec"].clone();
                spec["revision"] = json!("0000000000");
                let params = PatchParams::apply("selvedge").force();
                let spec = Patch::Apply(document("spec", &spec));
                api.patch(name, &params, &spec).await?;
                let params = PatchParams::apply("selvedge-agent").force();
                for state in ["provisioning", "provisioned"] {
                    let mut status = config["status"].clone();
                    status["configStatus"] = json!(state);
                    status["observedRevision"] = json!("0000000000");
                    let status = Patch::Apply(document("status", &status));
                    api.patch_status(name, &params, &status).await?;
                }
                anyhow::Ok(())
            }
        });
        let writes = stream::iter(writes).buffer_unordered(32);
        writes.try_collect::<()>().await?;
        let count = u32::try_from(configs.len() * 3)?;
        anyhow::Ok(f64::from(count) / seconds(start))
    })
}

fn seconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64()
}

/// Waits until all rollouts have come to an end, as the operator's metrics say: lists of all configs every moment would be most of what the
/// API server does.
fn until_metrics(address: SocketAddr, lines: &[String]) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (_, text) = get(address, "/metrics", Some("lab-admin"))?;
        let has = |wanted: &String| text.lines().any(|line| line == wanted);
        if lines.iter().all(has) {
            return Ok(());
        }
        anyhow::ensure!(Instant::now() < deadline, "not in {PATIENCE:?}: {lines:?}");
        thread::sleep(Duration::from_millis(500));
    }
}

/// The lines of the metrics of a revision in this phase.
fn in_phase(revision: &str, phase: &str) -> Vec<String> {
    vec![
        format!("selvedge_operator_revision_info{{revision=\"{revision}\"}} 1"),
        format!("selvedge_operator_rollout_phase{{phase=\"{phase}\"}} 1"),
    ]
}

/// The newest revision, as soon as it is another than `before`.
fn another(cluster: &Cluster<'_>, before: &str) -> anyhow::Result<String> {
    within(PATIENCE, "there is a new revision", || {
        let newest = newest(cluster)?;
        let revision = text(&newest, "/spec/revision");
        Ok((!revision.is_empty() && revision != before).then(|| revision.to_owned()))
    })
}

/// Waits until every node's agent has an account of its own; the operator makes them beside the first configs.
fn until_accounts(server: &Server, count: usize) -> anyhow::Result<()> {
    within(PATIENCE, "every agent has an account", || {
        let bindings = server.list("rbac.authorization.k8s.io/v1", "ClusterRoleBinding")?;
        let is_agents =
            |binding: &&Value| text(binding, "/metadata/name").starts_with("selvedge-agent-");
        let accounts = bindings.iter().filter(is_agents).count();
        if accounts < count {
            thread::sleep(Duration::from_secs(2));
        }
        Ok((accounts >= count).then_some(()))
    })
}

/// A rollout of a change that no node can take: how many nodes got it, and the seconds until they have what they had.
fn bad_rollout(
    cluster: &Cluster<'_>,
    fleet: &Fleet,
    address: SocketAddr,
    good: &str,
) -> anyhow::Result<(usize, f64)> {
    // A bad change fails on every node that gets it.
    for index in 0..usize::try_from(size()?)? {
        fleet.set(&name(index), Behaviour::Failing);
    }
    let start = Instant::now();
    change(cluster.server, 1410)?;
    let bad = another(cluster, good)?;
    until_metrics(address, &in_phase(&bad, "Failed"))?;
    let told = fleet.seen().told.get(&bad).cloned().unwrap_or_default();
    within(PATIENCE, "the nodes that got it have what they had", || {
        for node in &told {
            if cluster.revision(node)? != good {
                return Ok(None);
            }
        }
        Ok(Some(()))
    })?;
    let taken_back = seconds(start);
    let told = fleet.seen().told.get(&bad).map_or(0, BTreeSet::len);
    Ok((told, taken_back))
}

fn print_processor_time(before: &BTreeMap<String, f64>) -> anyhow::Result<()> {
    for (program, used) in processor_time()? {
        let used = used - before.get(&program).unwrap_or(&0.0);
        eprintln!("{program}: {used:.1} s of processor time in the clean rollout");
    }
    Ok(())
}

/// Nodes that change at the same time take `APPLY`, and each wave is watched before the next: a rollout over an API server that answers at
/// once would take so many seconds.
fn least(nodes: u32) -> f64 {
    let in_flight = f64::from(nodes / 10);
    let batches = (f64::from(nodes) / 3.0 / in_flight).ceil() * 3.0 + 1.0;
    batches * APPLY.as_secs_f64() + (WAVES - 1.0) * SOAK
}

/// The first configs of all nodes; the seconds until all have them, and until every agent has its account.
fn first_rollout(
    cluster: &Cluster<'_>,
    address: SocketAddr,
    count: usize,
) -> anyhow::Result<(String, [f64; 2])> {
    let start = Instant::now();
    let first = another(cluster, "")?;
    until_metrics(address, &in_phase(&first, "Complete"))?;
    let joined = seconds(start);
    until_accounts(cluster.server, count)?;
    Ok((first, [joined, seconds(start)]))
}

/// A clean rollout, an idle minute, and a bad rollout.
fn measure(cluster: &Cluster<'_>, fleet: &Fleet, address: SocketAddr) -> anyhow::Result<Vec<Line>> {
    let (server, nodes) = (cluster.server, size()?);
    let count = usize::try_from(nodes)?;
    let (first, [joined, accounts]) = first_rollout(cluster, address, count)?;
    let before = Counts::read(address)?;
    let asked_before = requests(server)?;
    let used_before = processor_time()?;
    let start = Instant::now();
    change(server, 1400)?;
    let good = another(cluster, &first)?;
    until_metrics(address, &in_phase(&good, "Complete"))?;
    let clean = seconds(start);
    print_processor_time(&used_before)?;
    let rolled_out = Counts::read(address)?;
    let passes = rolled_out.passes - before.passes;
    eprintln!("{passes} passes in the clean rollout");
    let ready = newest(cluster)?["status"]["ready"].clone();
    assert_eq!(ready, nodes, "nodes that are ready");
    let most = fleet.seen().most_in_flight;
    assert!(most <= count / 10, "{most} nodes changed at the same time");

    // Statuses that only count nodes are written a little later, and belong to the change.
    thread::sleep(Duration::from_secs(10));
    let idle = Counts::read(address)?;
    let mut asked = requests(server)?;
    for (verb, count) in &mut asked {
        let before = asked_before.get(verb).unwrap_or(&0.0);
        *count = (*count - before) / f64::from(nodes);
    }
    eprintln!("requests of all for each changed node: {asked:?}");
    let per_node = (idle.writes() - before.writes()) / f64::from(nodes);
    eprintln!("writes from {before:?} to {idle:?}");
    thread::sleep(IDLE);
    let after = Counts::read(address)?;
    eprintln!("an idle minute later: {after:?}");

    let budget = CLEAN * f64::from(nodes) / CLEAN_NODES;
    let asked = asked.values().sum();
    let mut lines = vec![
        Line("first configs of all nodes", joined, "s", None),
        Line("accounts of all agents", accounts, "s", None),
        Line("clean rollout", clean, "s", Some(budget)),
        Line("of it applying and soaking", least(nodes), "s", None),
        Line("writes of the operator per node", per_node, "", Some(2.0)),
        Line("requests of all per node", asked, "", None),
    ];
    let passes = after.passes - idle.passes;
    lines.push(Line("passes in an idle minute", passes, "", Some(0.0)));
    let writes = after.writes() - idle.writes();
    lines.push(Line("writes in an idle minute", writes, "", Some(0.0)));
    let (told, taken_back) = bad_rollout(cluster, fleet, address, &good)?;
    let told = f64::from(u32::try_from(told)?);
    lines.push(Line("nodes that got a bad change", told, "", Some(1.0)));
    lines.push(Line("until it is taken back", taken_back, "s", None));
    let late = f64::from(u32::try_from(fleet.seen().late_leases)?);
    lines.push(Line("Leases renewed too late", late, "", None));
    Ok(lines)
}

#[test]
fn bench_rollout_of_simulated_nodes() -> anyhow::Result<()> {
    with_quiet_server(|server| {
        let count = usize::try_from(size()?)?;
        server.apply(&settings(Duration::from_mins(5)))?;
        server.apply(FABRIC)?;
        let objects: Vec<Value> = serde_saphyr::from_multiple(&nodes(count))?;
        server.create_all(&objects)?;
        let cluster = &Cluster { server };
        let fleet = (0..count).map(|index| (name(index), Behaviour::Slow(APPLY)));
        let fleet = Fleet::start(server, fleet)?;
        let address = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
        let flags = ["--listen", &address.to_string()];
        let operator = start_operator(server.operator_kubeconfig(), &flags)?;
        let mut lines = measure(cluster, &fleet, address).expect("rollouts come to their end");
        drop(operator);
        drop(fleet);
        let alone = writes_alone(server)?;
        lines.push(Line("writes of the API server alone", alone, "/s", None));
        print(&lines)
    })
}

const SETTINGS: &str = "
apiVersion: selvedge.dev/v1alpha1
kind: Settings
metadata: {name: default}
spec: {rollout: {maxUnavailable: 100%, soakTime: 0s}}
";

/// The world that `bench compile` compiles, with 10,000 nodes unless a number of groups is given.
#[test]
fn bench_rollout_stores_the_benchmark_world() -> anyhow::Result<()> {
    let groups = std::env::var("SELVEDGE_BENCH_GROUPS").ok();
    let groups = groups.map_or(Ok(benchmark::FULL_SIZE), |text| text.parse())?;
    let count = groups * benchmark::NODES_PER_GROUP;
    with_quiet_server(|server| {
        server.apply(SETTINGS)?;
        let objects = benchmark::intents(groups);
        let start = Instant::now();
        server.create_all(&objects)?;
        eprintln!(
            "{} objects are created after {:.1} s",
            objects.len(),
            seconds(start)
        );
        let cluster = &Cluster { server };
        let nodes = objects.iter().filter(|object| object["kind"] == "Node");
        // The Leases of 10,000 agents are more than two processors can renew. Nodes whose agents are silent get their configs all the same.
        let silent =
            std::iter::once(Behaviour::Healthy).chain(std::iter::repeat(Behaviour::Silent));
        let nodes = nodes.map(|node| text(node, "/metadata/name").to_owned());
        let nodes = nodes.zip(silent);
        let fleet = Fleet::start(server, nodes)?;
        let operator = start_operator(server.operator_kubeconfig(), &[])?;
        let measure = || -> anyhow::Result<Vec<Line>> {
            let start = Instant::now();
            let revision = within(PATIENCE, "the revision is stored", || {
                let newest = newest(cluster)?;
                Ok((!newest["spec"].is_null()).then_some(newest))
            })?;
            let stored = seconds(start);
            let parts = cluster.all("NetworkConfigRevisionPart")?;
            let size = |part: &Value| text(part, "/spec/data").len();
            let largest = parts.iter().map(size).max().unwrap_or(0);
            let total: usize = parts.iter().map(size).sum();
            let revision = text(&revision, "/spec/revision").to_owned();
            within(PATIENCE, "every node has its config", || {
                let seen = fleet.seen();
                let told = seen.told.get(&revision).map_or(0, BTreeSet::len);
                Ok((told == usize::try_from(count)?).then_some(()))
            })?;
            let told = seconds(start);
            let number = |bytes: usize| u32::try_from(bytes / 1024).map(f64::from);
            Ok(vec![
                Line("nodes", f64::from(count), "", None),
                Line("operator started → revision stored", stored, "s", None),
                Line(
                    "parts of the revision",
                    number(parts.len() * 1024)?,
                    "",
                    None,
                ),
                Line("largest part", number(largest)?, "KiB", Some(512.0)),
                Line("all parts", number(total)?, "KiB", None),
                Line("… → every node has its config", told, "s", None),
                Line(
                    "operator, resident",
                    f64::from(u32::try_from(operator.resident()?)?),
                    "MiB",
                    Some(1536.0),
                ),
            ])
        };
        let lines = measure().expect("the world is stored");
        print(&lines)
    })
}
