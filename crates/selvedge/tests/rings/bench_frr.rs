//! `cargo xtask bench frr`, live: a writer that changes the host's router many times a minute, and how soon a peer has each change.

use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::Context as _;
use lab::{
    fabric::Fabric,
    parts::{Kubernetes, Release},
};
use serde_json::{Value, json};

use crate::{
    ring4::Node,
    ring4_host_router::{
        HOST, PEER, count_withdrawals, peer, prefix, prefixes_arrive, start_peer, with_networks,
        withdrawals,
    },
    ring4_safety::NODE,
    ring6_cut_off::World,
    support::{program, progress, start_agent},
};

/// Changes of the stream, and the time in which they are written.
const CHANGES: usize = 1000;
const MINUTE: Duration = Duration::from_mins(1);
/// Prefixes before the first change.
const BASE: usize = 100;
/// Changes that are given to the peer's own program as well.
const COMPARED: usize = 20;
/// After so many changes, the prefix of the one three before is rolled back.
const TAKEN: usize = 4;
const DAY: u64 = 86_400_000_000;

/// A way to the API server that needs no process for a request.
struct Api {
    proxy: Child,
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

impl Api {
    fn new(world: &World) -> anyhow::Result<Self> {
        let kubectl = Kubernetes::prepare(&progress)?.program("kubectl");
        let folder = tempfile::tempdir()?;
        let socket = folder.path().join("api");
        let [nsenter, net] = world.fabric.namespace().prefix();
        let proxy = Command::new(nsenter)
            .args([net.as_str(), "--"])
            .arg(kubectl)
            .arg("--kubeconfig")
            .arg(world.plane.kubeconfig("admin")?)
            .args(["proxy", "--unix-socket"])
            .arg(&socket)
            .stdout(Stdio::null())
            .spawn()?;
        let api = Self {
            proxy,
            socket,
            _folder: folder,
        };
        let up = Fabric::eventually(MINUTE, || UnixStream::connect(&api.socket).ok());
        up.context("the proxy is not up")?;
        Ok(api)
    }

    /// Replaces the router of the host in the node's config.
    fn write(&self, config: &Value) -> anyhow::Result<()> {
        let body = json!({"spec": {"hostRouter": config["spec"]["hostRouter"]}}).to_string();
        let path = format!("/apis/network.t-caas.telekom.com/v1alpha1/nodenetworkconfigs/{NODE}");
        let mut stream = UnixStream::connect(&self.socket)?;
        write!(
            stream,
            "PATCH {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Type: application/merge-patch+json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        anyhow::ensure!(answer.starts_with("HTTP/1.1 200"), "{answer:.300}");
        Ok(())
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        let _ended = self.proxy.kill().and_then(|()| self.proxy.wait());
    }
}

/// The prefixes after so many changes.
fn after(changes: usize) -> Vec<String> {
    let taken = |number: &usize| {
        let change = number.checked_sub(BASE);
        change.is_some_and(|it| it % TAKEN == 0 && it + TAKEN - 1 < changes)
    };
    let all = (0..BASE + changes).filter(|number| !taken(number));
    all.map(prefix).collect()
}

/// How many prefixes the first changes take back.
fn taken_by(changes: usize) -> u64 {
    (changes / TAKEN) as u64
}

/// Microseconds of the day.
fn now() -> anyhow::Result<u64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(u64::try_from(since.as_micros())? % DAY)
}

/// When the peer was told of each prefix first, in microseconds of the day, by the clock of this machine.
fn arrivals(fabric: &Fabric) -> anyhow::Result<BTreeMap<String, u64>> {
    let node = fabric.at(NODE)?;
    let before = now()?;
    let there = node.script("date +%s%6N")?.trim().parse::<u64>()? % DAY;
    let ahead = there + DAY - u64::midpoint(before, now()?);
    let mut seen = BTreeMap::new();
    for line in node.script("grep -i rcvd /run/updates.log")?.lines() {
        let mut words = line.split_whitespace();
        let time = words.nth(1).context("a time")?;
        let prefix = words.find(|word| word.ends_with("/32"));
        let Some(prefix) = prefix.filter(|_| !line.contains("withdrawn")) else {
            continue;
        };
        let parts: Vec<&str> = time.split([':', '.']).collect();
        let [hours, minutes, seconds, micros] = parts.as_slice() else {
            anyhow::bail!("no time in {line}");
        };
        let number = |text: &str| text.parse::<u64>().context("a number");
        let whole = (number(hours)? * 60 + number(minutes)?) * 60 + number(seconds)?;
        let at = whole * 1_000_000 + number(micros)? + DAY - ahead % DAY;
        seen.entry(prefix.to_owned()).or_insert(at % DAY);
    }
    Ok(seen)
}

/// The times of changes, in seconds, in order.
fn sorted(written: &[(String, u64)], seen: &BTreeMap<String, u64>) -> anyhow::Result<Vec<f64>> {
    let mut times = Vec::new();
    for (prefix, at) in written {
        let seen = seen
            .get(prefix)
            .with_context(|| format!("{prefix} never arrived"))?;
        let micros = (seen + DAY - at) % DAY;
        // The clocks may differ by less than that.
        let micros = if micros > DAY / 2 { 0 } else { micros };
        times.push(Duration::from_micros(micros).as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

fn at(times: &[f64], percent: usize) -> f64 {
    let index = (times.len() * percent / 100).min(times.len() - 1);
    times[index]
}

fn two(prefixes: &[String]) -> Value {
    let mut config = with_networks(prefixes);
    let neighbors = &mut config["spec"]["hostRouter"]["routers"]["default"]["neighbors"];
    let mut other = neighbors[0].clone();
    other["address"] = "198.19.0.3".into();
    neighbors.as_array_mut().expect("a list").push(other);
    config
}

/// Writes the changes at an even pace; returns what each adds, and when it was written.
fn stream(api: &Api) -> anyhow::Result<Vec<(String, u64)>> {
    let start = Instant::now();
    let mut written = Vec::new();
    for change in 1..=CHANGES {
        let config = two(&after(change));
        let due = MINUTE * u32::try_from(change)? / u32::try_from(CHANGES)?;
        std::thread::sleep(due.saturating_sub(start.elapsed()));
        written.push((prefix(BASE + change - 1), now()?));
        api.write(&config)?;
    }
    let took = start.elapsed().as_secs_f64();
    eprintln!("{CHANGES} changes were written in {took:.1} s");
    Ok(written)
}

fn ours() -> anyhow::Result<Vec<f64>> {
    let world = World::start()?;
    start_peer(&world.fabric, None)?;
    let mut first = two(&after(0));
    first["spec"]["health"] = json!({"gateways": false, "sessions": false});
    world.fabric.hand_in(&program())?;
    world.tell(&first)?;
    let agent = start_agent(&world.fabric, &world.plane, NODE, "agent")?;
    prefixes_arrive(&world.fabric, BASE as u64).with_context(|| agent.stderr())?;
    count_withdrawals(&world.fabric)?;
    let api = Api::new(&world)?;
    let written = stream(&api)?;
    let left = BASE as u64 + CHANGES as u64 - taken_by(CHANGES);
    prefixes_arrive(&world.fabric, left).with_context(|| agent.stderr())?;
    let seen = arrivals(&world.fabric)?;
    // What is rolled back before the agent has come to it is never announced.
    let stays: Vec<(String, u64)> = written
        .iter()
        .enumerate()
        .filter(|(index, _)| index % TAKEN != 0)
        .map(|(_, one)| one.clone())
        .collect();
    let times = sorted(&stays, &seen)?;
    let withdrawn = withdrawals(&world.fabric)?;
    let resets = peer(&world.fabric)?["connectionsEstablished"]
        .as_u64()
        .unwrap_or_default()
        - 1;
    eprintln!(
        "| a stream of {CHANGES} changes in a minute | p50 {:.2} s, p99 {:.2} s | {withdrawn} withdrawals of {} asked for, {resets} resets |",
        at(&times, 50),
        at(&times, 99),
        taken_by(CHANGES)
    );
    anyhow::ensure!(
        withdrawn <= taken_by(CHANGES),
        "spurious withdrawals: {withdrawn}"
    );
    anyhow::ensure!(resets == 0, "{resets} sessions were reset");
    let lines = agent.stderr();
    let applies = lines
        .lines()
        .filter(|line| line.contains("host's router: applied"));
    eprintln!("the agent applied them in {} steps", applies.count());
    Ok(times)
}

/// A configuration in the form of the peer project, with numbers that follow one another.
fn upstream(prefixes: &[String]) -> String {
    let mut sorted = prefixes.to_vec();
    sorted.sort();
    let peers = [PEER, "198.19.0.3"];
    let mut lines = vec![String::from("frr defaults traditional")];
    for address in peers {
        lines.extend(sorted.iter().zip(1..).map(|(prefix, number)| {
            format!("ip prefix-list {address}-allowed-ipv4 seq {number} permit {prefix}")
        }));
        lines.push(format!(
            "route-map {address}-out permit 1\n match ip address prefix-list {address}-allowed-ipv4\nexit\nroute-map {address}-in permit 3\nexit"
        ));
    }
    lines.push(format!(
        "router bgp 64600\n no bgp ebgp-requires-policy\n no bgp network import-check\n no bgp default ipv4-unicast\n bgp router-id {HOST}"
    ));
    lines.extend(peers.map(|address| {
        format!(" neighbor {address} remote-as 64601\n neighbor {address} timers 1 3\n neighbor {address} timers connect 1")
    }));
    lines.push(String::from(" address-family ipv4 unicast"));
    lines.extend(sorted.iter().map(|prefix| format!("  network {prefix}")));
    lines.extend(peers.map(|address| {
        format!("  neighbor {address} activate\n  neighbor {address} route-map {address}-in in\n  neighbor {address} route-map {address}-out out")
    }));
    lines.push(String::from(" exit-address-family\nexit\n"));
    lines.join("\n")
}

/// The same changes with `frr-reload.py` of FRR 8.4.
fn theirs() -> anyhow::Result<Vec<f64>> {
    let node = Node::start_on(Release::Bookworm)?;
    let fabric = &node.fabric;
    start_peer(fabric, None)?;
    let space = fabric.at(NODE)?;
    space.script(
        "install -d -o frr -g frr /run/frr/reload /etc/frr/reload; touch /etc/frr/reload/vtysh.conf
for daemon in zebra bgpd; do /usr/lib/frr/$daemon -d -N reload -P 0 -i /run/frr/reload/$daemon.pid > /run/reload.log 2>&1; done",
    )?;
    let reload = |prefixes: &[String]| {
        space.write("/etc/frr/reload/frr.conf", &upstream(prefixes))?;
        let start = now()?;
        space.script(
            "/usr/lib/frr/frr-reload.py -N reload --reload --overwrite --stdout /etc/frr/reload/frr.conf > /run/reload.out 2>&1",
        )?;
        anyhow::Ok(start)
    };
    reload(&after(0))?;
    prefixes_arrive(fabric, BASE as u64)?;
    count_withdrawals(fabric)?;
    let mut written = Vec::new();
    for change in 1..=COMPARED {
        let start = reload(&after(change))?;
        written.push((prefix(BASE + change - 1), start));
    }
    let left = BASE as u64 + COMPARED as u64 - taken_by(COMPARED);
    prefixes_arrive(fabric, left)?;
    let times = sorted(&written, &arrivals(fabric)?)?;
    eprintln!(
        "| frr-reload.py 8.4.4, {COMPARED} changes one after the other | p50 {:.2} s, p99 {:.2} s | {} withdrawals of {} asked for |",
        at(&times, 50),
        at(&times, 99),
        withdrawals(fabric)?,
        taken_by(COMPARED)
    );
    Ok(times)
}

/// One prefix more for two neighbors that get five hundred.
fn one_more() -> anyhow::Result<()> {
    let node = Node::start()?;
    node.fabric.hand_in(&program())?;
    start_peer(&node.fabric, None)?;
    let prefixes: Vec<String> = (0..500).map(prefix).collect();
    node.becomes(&two(&prefixes))?;
    prefixes_arrive(&node.fabric, 500)?;
    count_withdrawals(&node.fabric)?;
    let more: Vec<String> = (0..501).map(prefix).collect();
    let space = node.fabric.at(NODE)?;
    space.write("/run/config.json", &two(&more).to_string())?;
    let said = space.script(
        "start=$(date +%s%N); /share/selvedge agent --config /run/config.json
echo took $(( ($(date +%s%N) - start) / 1000000 )) ms",
    )?;
    prefixes_arrive(&node.fabric, 501)?;
    std::thread::sleep(Duration::from_secs(6));
    let withdrawn = withdrawals(&node.fabric)?;
    eprintln!(
        "| one prefix more, 500 there, 2 neighbors | {} | {withdrawn} withdrawals |",
        said.trim().replace('\n', ", ")
    );
    anyhow::ensure!(withdrawn == 0, "{withdrawn} withdrawals");
    Ok(())
}

#[test]
fn bench_frr_live() -> anyhow::Result<()> {
    one_more()?;
    let ours = ours()?;
    let theirs = theirs()?;
    let (mine, other) = (at(&ours, 50), at(&theirs, 50));
    eprintln!("write to peer at the median: {mine:.2} s, frr-reload.py {other:.2} s");
    anyhow::ensure!(
        mine < other,
        "slower than frr-reload.py: {mine} s, {other} s"
    );
    Ok(())
}
