//! Rollouts over a simulated fleet, with nodes that do not behave.

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    cluster::{Cluster, object, start_operator},
    fleet::{Behaviour, Fleet, LIE, REASON},
    proxy::Proxy,
    server::{Server, with_server, within},
};
use crate::data::text;

const NODES: usize = 60;
/// A tenth of all nodes.
const MAX_UNAVAILABLE: usize = 6;
const DEADLINE: Duration = Duration::from_secs(10);
/// Of so many writes of the operator, two are refused.
const FALTERING: usize = 15;
/// Between two edits of configs by others.
const EDITS: Duration = Duration::from_millis(50);
/// How long a rollout over the whole fleet may take.
const PATIENCE: Duration = Duration::from_mins(3);

/// Settings of rollouts that tests need not wait for.
pub(super) fn settings(deadline: Duration) -> String {
    format!(
        "
apiVersion: selvedge.dev/v1alpha1
kind: Settings
metadata: {{name: default}}
spec:
  rollout:
    maxUnavailable: 10%
    soakTime: 1s
    progressDeadline: {}s
    maxRemoval: 100%
",
        deadline.as_secs()
    )
}

pub(super) fn name(index: usize) -> String {
    format!("f{index:05}")
}

/// Nodes in three failure domains.
pub(super) fn nodes(count: usize) -> String {
    let mut manifests = String::new();
    for index in 0..count {
        let (name, zone) = (name(index), index % 3);
        writeln!(
            manifests,
            "---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{topology.kubernetes.io/zone: z{zone}}}}}"
        )
        .expect("a text takes more text");
    }
    manifests
}

/// What a fabric and one tenant need.
pub(super) const FABRIC: &str = "
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: Underlay
metadata: {name: all, namespace: default}
spec:
  asn: 64514
  nics: [eth1]
  evpn: {vtepcidr: 100.64.0.0/16}
  neighbors: [{asn: 64512, address: 192.168.11.2}]
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: VRF
metadata: {name: m2m}
spec: {vrf: m2m, vni: 10100, routeTarget: '64500:10100'}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Destination
metadata: {name: meters, labels: {zone: secure}}
spec: {vrfRef: m2m, prefixes: [192.0.2.0/24]}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: billing-net}
spec: {ipv4: {cidr: 198.51.100.128/25}, vlan: 234, vni: 10234}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2Attachment
metadata: {name: billing}
spec: {networkRef: billing-net, interfaceName: billing, destinations: {matchLabels: {zone: secure}}}
";

/// The newest revision.
pub(super) fn newest(cluster: &Cluster<'_>) -> anyhow::Result<Value> {
    let revisions = cluster.all("NetworkConfigRevision")?;
    let sequence = |one: &Value| one["status"]["sequence"].as_u64();
    Ok(revisions
        .into_iter()
        .max_by_key(sequence)
        .unwrap_or_default())
}

/// Changes something on every node.
pub(super) fn change(server: &Server, mtu: u32) -> anyhow::Result<()> {
    let billing = object("Layer2Attachment", "billing");
    server.edit(&billing, &json!({"spec": {"mtu": mtu}}))
}

/// Waits until the newest revision is another than `before` and its rollout has come to this phase.
pub(super) fn until_phase(
    cluster: &Cluster<'_>,
    patience: Duration,
    before: &str,
    phase: &str,
) -> anyhow::Result<Value> {
    let mut last = Value::Null;
    let found = within(patience, &format!("a new revision is {phase}"), || {
        last = newest(cluster)?;
        let is_new = text(&last, "/metadata/name") != before;
        Ok((is_new && last["status"]["phase"] == phase).then(|| last.clone()))
    });
    found.map_err(|error| error.context(format!("it is {}", last["status"])))
}

/// How many nodes have each revision.
fn revisions(cluster: &Cluster<'_>) -> anyhow::Result<Vec<(String, String)>> {
    let configs = cluster.all("NodeNetworkConfig")?;
    let of = |config: &Value| {
        let name = text(config, "/metadata/name").to_owned();
        (name, text(config, "/spec/revision").to_owned())
    };
    Ok(configs.iter().map(of).collect())
}

/// Changes that nodes can take: all but the silent node confirm, and it holds up nobody past its deadline. The last revision.
fn clean_rollouts(cluster: &Cluster<'_>, fleet: &Fleet) -> anyhow::Result<Value> {
    let start = Instant::now();
    let first = until_phase(cluster, PATIENCE, "", "Complete")?;
    eprintln!(
        "{NODES} nodes have their first config after {:?}",
        start.elapsed()
    );
    assert_eq!(first["status"]["ready"], NODES - 1, "{}", first["status"]);
    assert_eq!(first["status"]["ongoing"], 1, "{}", first["status"]);
    let most = fleet.seen().most_in_flight;
    assert!((2..=MAX_UNAVAILABLE).contains(&most), "{most} in flight");

    // The same for a change of all nodes.
    let start = Instant::now();
    change(cluster.server, 1400)?;
    let second = until_phase(
        cluster,
        PATIENCE,
        text(&first, "/metadata/name"),
        "Complete",
    )?;
    eprintln!("{NODES} nodes have changed after {:?}", start.elapsed());
    assert_eq!(second["status"]["ready"], NODES - 1, "{}", second["status"]);
    let most = fleet.seen().most_in_flight;
    assert!((2..=MAX_UNAVAILABLE).contains(&most), "{most} in flight");
    Ok(second)
}

/// A change that no node can take; the revision that failed.
fn bad_rollout(cluster: &Cluster<'_>, fleet: &Fleet, second: &Value) -> anyhow::Result<Value> {
    let good = text(second, "/spec/revision").to_owned();
    assert!(revisions(cluster)?.iter().all(|(_, one)| *one == good));
    // Bad: the first node refuses it, no other gets it, and all have what they had.
    let canary = name(0);
    fleet.set(&canary, Behaviour::Failing);
    let start = Instant::now();
    change(cluster.server, 1410)?;
    let bad = until_phase(cluster, PATIENCE, text(second, "/metadata/name"), "Failed")?;
    assert_eq!(
        text(&bad, "/status/failedNode"),
        canary,
        "{}",
        bad["status"]
    );
    assert_eq!(text(&bad, "/status/failedMessage"), REASON);
    within(PATIENCE, "all nodes have what they had", || {
        let is_back = revisions(cluster)?.iter().all(|(_, one)| *one == good);
        Ok(is_back.then_some(()))
    })?;
    eprintln!("a bad change is taken back after {:?}", start.elapsed());
    let told = fleet.seen().told.get(text(&bad, "/spec/revision")).cloned();
    assert_eq!(
        told,
        Some([canary.clone()].into()),
        "only the canary got it"
    );
    fleet.set(&canary, Behaviour::Healthy);
    Ok(bad)
}

/// A change that a node says it has taken, and has not.
fn rollout_to_a_liar(cluster: &Cluster<'_>, fleet: &Fleet, bad: &Value) -> anyhow::Result<()> {
    // A node that confirms what it was not given has confirmed nothing.
    let lying = name(1);
    fleet.set(&lying, Behaviour::Lying);
    change(cluster.server, 1420)?;
    let bad = until_phase(cluster, PATIENCE, text(bad, "/metadata/name"), "Failed")?;
    assert_eq!(text(&bad, "/status/failedNode"), lying, "{}", bad["status"]);
    let message = text(&bad, "/status/failedMessage");
    assert!(message.contains("progressDeadline"), "{message}");
    let of_lying = cluster.get("NodeNetworkConfig", &lying)?;
    assert_eq!(text(&of_lying, "/status/observedRevision"), LIE);
    fleet.set(&lying, Behaviour::Healthy);
    Ok(())
}

#[test]
fn a_fleet_changes_in_waves_and_nodes_that_do_not_behave_harm_no_other() -> anyhow::Result<()> {
    with_server(|server| {
        server.apply(&settings(DEADLINE))?;
        server.apply(FABRIC)?;
        server.apply(&nodes(NODES))?;
        let cluster = &Cluster { server };
        let behaviour = |index: usize| match index {
            7 | 20 => Behaviour::Slow(Duration::from_secs(2)),
            30 | 44 => Behaviour::Flapping,
            index if index == NODES - 1 => Behaviour::Silent,
            _ => Behaviour::Healthy,
        };
        let fleet = (0..NODES).map(|index| (name(index), behaviour(index)));
        let fleet = Fleet::start(server, fleet)?;
        // The API server falters, and somebody edits the configs of nodes all the time.
        let proxy = Proxy::start(server)?;
        proxy.falter(FALTERING);
        let _operator = start_operator(proxy.kubeconfig(), &[])?;
        let is_over = AtomicBool::new(false);
        let edits = thread::scope(|scope| {
            let editor = scope.spawn(|| edit_configs(server, &is_over));
            let until_end = Over(&is_over);
            let tested = clean_rollouts(cluster, &fleet)
                .and_then(|second| bad_rollout(cluster, &fleet, &second))
                .and_then(|bad| rollout_to_a_liar(cluster, &fleet, &bad));
            tested.expect("the fleet is served");
            drop(until_end);
            editor.join()
        });
        let edits = edits.expect("an editor that comes to its end");
        let code = |code| proxy.writes().iter().filter(|one| one.code == code).count();
        let (refused, conflicts) = (code(503) + code(429), code(409));
        eprintln!("{edits} edits, {conflicts} conflicts, {refused} writes refused");
        // Whether an edit falls between the read and the write of a config is chance; `faults` has a test where it does.
        assert!(edits > 50 && refused > 10);
        Ok(())
    })
}

/// Ends what goes on beside a test, also when the test panics.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Edits annotations of configs until it is over; how often.
fn edit_configs(server: &Server, is_over: &AtomicBool) -> usize {
    let mut edits = 0;
    while !is_over.load(Ordering::Relaxed) {
        let config = object("NodeNetworkConfig", &name(edits % NODES));
        let change = json!({"metadata": {"annotations": {"example.com/edits": edits.to_string()}}});
        // One that is not there yet is not edited.
        let _edited = server.edit(&config, &change);
        edits += 1;
        thread::sleep(EDITS);
    }
    edits
}
