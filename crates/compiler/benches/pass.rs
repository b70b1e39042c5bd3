//! `cargo xtask bench pass`: how long the operator needs from a watch event to the list of writes, in a running cluster.
//!
//! Each cluster runs in a process of its own, so that its memory is its own. An argument sets the number of node groups.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "a benchmark has a clock, reads how much memory it uses, writes documents, and prints a table"
)]

#[path = "world/objects.rs"]
mod world;

use std::{
    env, mem,
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use selvedge_compiler::{
    Compiler, Kind, ObjectRef, Prepared, Writes,
    rollout::{
        stored,
        waves::{self, Agent, State},
    },
    snapshot::Key,
};
use serde_json::{Value, json};

use self::world::{
    FULL_SIZE, NODES_PER_GROUP, Running, memory, object, running, selector, services,
};

/// The allocator of the `selvedge` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Budget of one pass.
const BUDGET: Duration = Duration::from_millis(60);

/// Budget of resident memory, in mebibytes.
const MEMORY_BUDGET: f64 = 1536.0;

/// Measured passes for each kind of change.
const RUNS: usize = 12;

/// The clusters.
const CLUSTERS: [&str; 2] = ["sound", "one broken object"];

fn main() -> ExitCode {
    let arguments = env::args().skip(1).filter(|one| one != "--bench");
    let arguments: Vec<String> = arguments.collect();
    let groups = |text: &String| text.parse().expect("a number of groups");
    if let [flag, cluster, size] = arguments.as_slice()
        && flag == "--cluster"
    {
        return measure(cluster, groups(size));
    }
    let groups = arguments.first().map_or(FULL_SIZE, groups);
    let mut is_kept = true;
    for cluster in CLUSTERS {
        let status = Command::new(env::current_exe().expect("this program"))
            .args(["--cluster", cluster, &groups.to_string()])
            .status()
            .expect("this program runs");
        is_kept &= status.success();
    }
    if is_kept {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// A kind of change.
struct Change {
    name: &'static str,
    /// The object as it is.
    before: Value,
    /// The object as it becomes, for each run another way.
    after: fn(&Value, usize) -> Value,
}

fn changes(running: &Running) -> Vec<Change> {
    let stored = |kind, name: &str| running.document(&ObjectRef::named(kind, name));
    vec![
        Change {
            name: "Inbound",
            before: stored(Kind::Inbound, "n0"),
            after: |before, run| with(before, "/spec/count", json!(5 + run)),
        },
        Change {
            name: "Layer2Attachment",
            before: stored(Kind::Layer2Attachment, "n0"),
            after: |before, run| with(before, "/spec/mtu", json!(1400 + run)),
        },
        Change {
            name: "Destination",
            before: stored(Kind::Destination, "v0"),
            after: |before, run| {
                let prefixes = json!([format!("203.0.{run}.0/24")]);
                with(before, "/spec/prefixes", prefixes)
            },
        },
        Change {
            name: "Node label",
            before: stored(Kind::Node, "node-0-0"),
            after: |before, run| {
                let group = (1 + run % 3).to_string();
                with(before, "/metadata/labels/group", json!(group))
            },
        },
        Change {
            name: "hand-written",
            before: stored(Kind::VrfRouteConfiguration, "hand"),
            after: |before, run| {
                let import = json!([{"cidr": format!("203.0.{run}.0/24"), "action": "permit"}]);
                with(before, "/spec/import", import)
            },
        },
        Change {
            name: "node report",
            before: reported(running, "node-0-1"),
            after: |before, run| {
                let report = with(before, "/status/configStatus", json!("invalid"));
                let message = json!(format!("attempt {run} failed"));
                with(&report, "/status/errorMessage", message)
            },
        },
        Change {
            name: "Node heartbeat",
            before: stored(Kind::Node, "node-0-2"),
            // Only the metadata of Nodes is watched.
            after: |before, run| with(before, "/metadata/resourceVersion", json!(run.to_string())),
        },
    ]
}

/// The stored config of a node.
fn reported(running: &Running, node: &str) -> Value {
    let configs = &running.compiler.snapshot().node_network_configs;
    let config = configs.get(&Key::named(node)).expect("it is published");
    running::node_config(node, &json!(*config.spec), "provisioned")
}

/// A document with a field set; the parent of the field exists.
fn with(document: &Value, field: &str, value: Value) -> Value {
    let (parent, name) = field.rsplit_once('/').expect("a path");
    let mut document = document.clone();
    let parent = document.pointer_mut(parent).expect("the parent exists");
    parent[name] = value;
    document
}

/// A hand-written object of a VRF of its own for one group.
fn hand_written(name: &str, group: u32, node_selector: &Value) -> Value {
    object(
        "VRFRouteConfiguration",
        name,
        json!({
            "vrf": name, "vni": 2_000_000 + group, "routeTarget": format!("64501:{group}"), "seq": 10,
            "import": [{"cidr": "203.0.113.0/24", "action": "permit"}],
            "export": [{"cidr": "198.51.100.0/24", "action": "permit"}],
            "nodeSelector": node_selector,
        }),
    )
}

fn start(cluster: &str, groups: u32) -> Running {
    let mut documents = services(groups);
    documents.push(hand_written("hand", 1, &selector(1)));
    documents.push(hand_written("broken", 2, &selector(2)));
    let mut running = Running::new(documents);
    if cluster == "one broken object" {
        let before = running.compiler.compile().1.nodes.clone();
        let nothing =
            json!({"matchExpressions": [{"key": "group", "operator": "In", "values": []}]});
        let sound = running.document(&ObjectRef::named(Kind::VrfRouteConfiguration, "broken"));
        running.put(with(&sound, "/spec/nodeSelector", nothing));
        running.publish();
        let (_, compilation) = running.compiler.compile();
        assert!(compilation.has_errors(), "an object is broken");
        assert!(
            compilation.nodes == before,
            "nodes keep its last good state"
        );
    }
    running
}

/// One pass: from the JSON of an event to the list of writes, which is empty without a change.
fn pass<'a>(compiler: &'a mut Compiler, event: &Value) -> Option<&'a Writes> {
    let prepared = Prepared::read(event).expect("an object of ours");
    compiler.put(prepared);
    if !compiler.has_changed() {
        return None;
    }
    compiler.writes();
    let progress = compiler.progress().clone();
    let (snapshot, compilation) = compiler.compile();
    let (settings, state) = (snapshot.settings().rollout, State::default());
    let revision = (compilation.revision.fingerprint.as_str(), &state);
    let members = stored::members(snapshot, &settings, &progress, revision, |_| Agent::ALIVE);
    let decision = waves::decide(&settings, &members, &state, 0, false);
    assert!(decision.publish.len() <= 1, "the canary is one node");
    Some(compiler.writes())
}

fn counts(writes: &Writes) -> (usize, usize, usize) {
    let objects = writes.objects.values().map(|objects| objects.len());
    let stale = writes.stale.values().map(|stale| stale.len());
    (
        writes.nodes.len(),
        writes.statuses.len(),
        objects.chain(stale).sum(),
    )
}

/// Measures all kinds of change in a cluster.
fn measure(cluster: &str, groups: u32) -> ExitCode {
    let mut running = start(cluster, groups);
    let changes = changes(&running);
    // The operator keeps no documents.
    let mut compiler = mem::take(&mut running.compiler);
    drop(running);
    let is_empty = |compiler: &mut Compiler| *compiler.writes() == Writes::default();
    assert!(is_empty(&mut compiler), "everything is published");
    println!("{cluster}, {} nodes", groups * NODES_PER_GROUP);
    println!(
        "{:<17} {:>9} {:>9} {:>7} {:>9} {:>9} {:>9}",
        "changed", "best", "median", "nodes", "statuses", "objects", "budget"
    );
    let mut is_kept = true;
    for change in &changes {
        let (mut times, mut written) = (Vec::new(), (0, 0, 0));
        for run in 0..RUNS {
            let event = (change.after)(&change.before, run);
            let start = Instant::now();
            let writes = pass(&mut compiler, &event);
            times.push(start.elapsed());
            let is_heartbeat = change.name == "Node heartbeat";
            assert_eq!(writes.is_none(), is_heartbeat, "a pass of {}", change.name);
            written = writes.map(counts).unwrap_or_default();
            compiler.put(Prepared::read(&change.before).expect("an object of ours"));
            assert!(is_empty(&mut compiler), "{} is taken back", change.name);
        }
        times.sort();
        let (best, median) = (times[0], times[RUNS / 2]);
        is_kept &= median <= BUDGET;
        let (nodes, statuses, objects) = written;
        println!(
            "{:<17} {:>6.2} ms {:>6.2} ms {nodes:>7} {statuses:>9} {objects:>9} {:>9}",
            change.name,
            best.as_secs_f64() * 1000.0,
            median.as_secs_f64() * 1000.0,
            verdict(median <= BUDGET),
        );
    }
    let (resident, peak) = (memory("VmRSS"), memory("VmHWM"));
    is_kept &= resident <= MEMORY_BUDGET;
    println!(
        "resident memory {resident:.0} MiB, peak {peak:.0} MiB {:>9}",
        verdict(resident <= MEMORY_BUDGET)
    );
    for change in &changes {
        let event = (change.after)(&change.before, 0);
        compiler.put(Prepared::read(&event).expect("an object of ours"));
        let mut fresh = Compiler::new(compiler.snapshot().clone());
        assert!(
            compiler.writes() == fresh.writes(),
            "the writes after a change of {} are those of a full compile",
            change.name
        );
        compiler.put(Prepared::read(&change.before).expect("an object of ours"));
    }
    println!("writes are those of a full compile");
    println!();
    if is_kept {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn verdict(is_kept: bool) -> &'static str {
    if is_kept { "kept" } else { "MISSED" }
}
