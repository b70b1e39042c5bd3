//! `cargo xtask bench compile`: how long a compile takes, how much memory it needs, and how both grow.
//!
//! Each world runs in a process of its own, so that its peak of memory is its own.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark has a clock, reads how much memory it uses, writes documents, and prints a table"
)]

#[path = "world/objects.rs"]
mod world;

use std::{
    cmp::Ordering,
    env,
    hint::black_box,
    process::{Command, ExitCode, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use selvedge_compiler::{Compilation, Compiler, NodeConfig, Snapshot, compile};
use serde_json::{Value, json};

use self::world::{
    FULL_SIZE, NODES_PER_GROUP, Running, SEGMENTS_PER_VRF, VRFS_PER_GROUP, intents, memory, nodes,
    object, selector, services, subnet,
};

/// The allocator of the `selvedge` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Budget of a world: seconds and mebibytes.
#[derive(Clone, Copy)]
struct Budget {
    seconds: f64,
    mebibytes: f64,
}

/// A world: how it is made for a number of node groups, and its budget at full size.
struct World {
    name: &'static str,
    make: fn(u32) -> Vec<Value>,
    budget: Budget,
    /// How many nodes have a segment of their own.
    single_nodes: u32,
}

const INTENTS: Budget = Budget {
    seconds: 0.15,
    mebibytes: 256.0,
};

const SERVICES: Budget = Budget {
    seconds: 0.3,
    mebibytes: 512.0,
};

/// Greatest exponent with which the time may grow from the smallest to the largest size.
const EXPONENT: f64 = 1.1;

const WORLDS: [World; 6] = [
    World {
        name: "intents",
        make: intents,
        budget: INTENTS,
        single_nodes: 0,
    },
    World {
        name: "intents, single nodes",
        make: |groups| single_nodes(groups, intents(groups)),
        budget: INTENTS,
        single_nodes: SINGLE_NODES,
    },
    World {
        name: "intents by hand",
        make: |groups| by_hand(groups, &intents(groups)),
        budget: INTENTS,
        single_nodes: 0,
    },
    World {
        name: "services",
        make: services,
        budget: SERVICES,
        single_nodes: 0,
    },
    World {
        name: "services, single nodes",
        make: |groups| single_nodes(groups, services(groups)),
        budget: SERVICES,
        single_nodes: SINGLE_NODES,
    },
    World {
        name: "services by hand",
        make: |groups| by_hand(groups, &services(groups)),
        budget: SERVICES,
        single_nodes: 0,
    },
];

/// Groups of nodes at three sizes; budgets are those of the full size.
///
/// The smallest does not fit into the processor's caches. A smaller one does, and the exponent would measure the caches.
const SIZES: [u32; 3] = [FULL_SIZE / 2, FULL_SIZE, FULL_SIZE * 2];
/// A size is measured in several processes, since each has its memory laid out differently.
const PROCESSES: usize = 3;
const RUNS: usize = 6;

/// Bytes that are written between two runs: more than fits into the caches.
const OTHER_MEMORY: usize = 128 << 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().collect();
    if let [_, flag, what, groups, ..] = arguments.as_slice() {
        let groups = groups.parse().expect("a number of groups");
        match flag.as_str() {
            "--world" => {
                measure(what, groups);
                return ExitCode::SUCCESS;
            }
            "--change" => {
                change(what, groups);
                return ExitCode::SUCCESS;
            }
            _ => {}
        }
    }
    let are_kept = [worlds(), one_changed()];
    if are_kept.iter().all(|is_kept| *is_kept) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Prints the table of full compiles; false if a budget is missed.
fn worlds() -> bool {
    println!(
        "{:<22} {:>7} {:>9} {:>11} {:>11} {:>9} {:>10} {:>9} {:>11}",
        "world", "nodes", "objects", "first", "best", "memory", "exponent", "budget", "statuses"
    );
    let mut all_kept = true;
    for world in &WORLDS {
        let mut first: Option<(u32, f64)> = None;
        for groups in SIZES {
            let processes = (0..PROCESSES).map(|_| spawn("--world", world.name, groups));
            let best = processes.min_by(|a, b| a.seconds.total_cmp(&b.seconds));
            let one = best.expect("at least one process");
            let (first_groups, first_seconds) = *first.get_or_insert((groups, one.seconds));
            let growth = f64::from(groups) / f64::from(first_groups);
            let exponent = (one.seconds / first_seconds).ln() / growth.ln();
            // The budget has one place after the point, and two runs differ in the second.
            let exponent = (exponent * 10.0).round() / 10.0;
            let size = Size::of(groups);
            let is_kept = match size {
                Size::Small => true,
                Size::Full => {
                    one.seconds <= world.budget.seconds && one.mebibytes <= world.budget.mebibytes
                }
                Size::Large => exponent <= EXPONENT,
            };
            all_kept &= is_kept;
            let exponent = match size {
                Size::Large => format!("{exponent:.1}"),
                Size::Small | Size::Full => String::new(),
            };
            println!(
                "{:<22} {:>7} {:>9} {:>8.0} ms {:>8.0} ms {:>5.0} MiB {exponent:>10} {:>9} {:>8.0} ms",
                world.name,
                groups * NODES_PER_GROUP,
                one.count,
                one.first * 1000.0,
                one.seconds * 1000.0,
                one.mebibytes,
                verdict(size, is_kept),
                one.statuses * 1000.0,
            );
        }
    }
    println!();
    all_kept
}

/// Prints the table of compiles after one change; false if a budget is missed.
fn one_changed() -> bool {
    println!(
        "{:<22} {:>7} {:>9} {:>11} {:>9}",
        "one changed", "nodes", "touched", "compile", "budget"
    );
    let mut all_kept = true;
    for (kind, _) in CHANGES {
        for groups in SIZES {
            let one = spawn("--change", kind, groups);
            let size = Size::of(groups);
            let is_kept = size != Size::Full || one.seconds <= CHANGE_SECONDS;
            all_kept &= is_kept;
            println!(
                "{kind:<22} {:>7} {:>9} {:>8.1} ms {:>9}",
                groups * NODES_PER_GROUP,
                one.count,
                one.seconds * 1000.0,
                verdict(size, is_kept),
            );
        }
    }
    all_kept
}

/// What a size is measured for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    /// Where the exponent starts.
    Small,
    /// The budgets of time and memory.
    Full,
    /// Where the exponent ends.
    Large,
}

impl Size {
    fn of(groups: u32) -> Self {
        match groups.cmp(&FULL_SIZE) {
            Ordering::Less => Self::Small,
            Ordering::Equal => Self::Full,
            Ordering::Greater => Self::Large,
        }
    }
}

fn verdict(size: Size, is_kept: bool) -> &'static str {
    match (size, is_kept) {
        (_, false) => "MISSED",
        (Size::Small, true) => "",
        (Size::Full | Size::Large, true) => "kept",
    }
}

/// How often an intent is changed.
const CHANGE_RUNS: usize = 20;

/// What one changed intent may cost in the world with services.
const CHANGE_SECONDS: f64 = 0.03;

/// A kind, and what is put in the place of one intent of it, for each run another.
type Change = (&'static str, fn(usize) -> Value);

/// Changes of one intent.
const CHANGES: [Change; 3] = [
    ("Inbound", |run| {
        object(
            "Inbound",
            "n0",
            json!({
                "networkRef": "n0", "count": 5 + run, "nodeSelector": selector(0),
                "destinations": {"matchLabels": {"zone": "v0"}},
            }),
        )
    }),
    ("Layer2Attachment", |run| {
        object(
            "Layer2Attachment",
            "n0",
            json!({
                "networkRef": "n0", "interfaceName": "n1", "nodeSelector": selector(0), "mtu": 1400 + run,
                "destinations": {"matchLabels": {"zone": "v0"}},
            }),
        )
    }),
    ("Destination", |run| {
        object(
            "Destination",
            "v0",
            json!({"vrfRef": "v0", "prefixes": [format!("203.0.{run}.0/24")]}),
        )
    }),
];

/// Changes one intent of the running world with services several times, and prints how many nodes that touches and the best time.
fn change(kind: &str, groups: u32) {
    let mut compiler = Running::new(services(groups)).compiler;
    let mut changes = CHANGES.iter();
    let (_, make) = changes
        .find(|(one, _)| *one == kind)
        .expect("a change of the table");
    let mut before = compiler.compile().1.nodes.clone();
    let mut best = Duration::MAX;
    let mut touched = 0;
    for run in 0..CHANGE_RUNS {
        let document = make(run);
        let start = Instant::now();
        compiler.insert(&document);
        let (_, after) = compiler.compile();
        best = best.min(start.elapsed());
        let after = &after.nodes;
        let has_changed = |(node, config): &(&String, &Arc<NodeConfig>)| {
            let before = before.get(*node).map(|config| config.fingerprint());
            before != Some(config.fingerprint())
        };
        touched = after.iter().filter(has_changed).count();
        assert_eq!(
            touched, NODES_PER_GROUP as usize,
            "only the nodes of one group"
        );
        before = after.clone();
    }
    let best = best.as_secs_f64();
    println!("{touched} {best} {best} {} 0", memory("VmHWM"));
}

/// What a process of its own measured.
struct Measurement {
    /// Objects of a world, or nodes that a change touches.
    count: u64,
    /// Seconds of the first compile.
    first: f64,
    /// Seconds of the best compile.
    seconds: f64,
    /// Peak of memory.
    mebibytes: f64,
    /// Seconds of all statuses.
    statuses: f64,
}

/// Measures in a process of its own.
fn spawn(flag: &str, what: &str, groups: u32) -> Measurement {
    let output = Command::new(env::current_exe().expect("this program"))
        .args([flag, what, &groups.to_string()])
        .stderr(Stdio::inherit())
        .output()
        .expect("this program runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<&str> = text.split_whitespace().collect();
    let [count, first, seconds, mebibytes, statuses] = numbers.as_slice() else {
        unreachable!("{flag} {what} {groups} printed {text:?}");
    };
    let number = |text: &str| text.parse().expect("a number");
    Measurement {
        count: count.parse().expect("a count"),
        first: number(first),
        seconds: number(seconds),
        mebibytes: number(mebibytes),
        statuses: number(statuses),
    }
}

/// Compiles a world several times and prints objects, the first and the best time, the peak of memory and the time of all statuses.
fn measure(name: &str, groups: u32) {
    let mut worlds = WORLDS.iter();
    let world = worlds
        .find(|world| world.name == name)
        .expect("a world of the table");
    let documents = (world.make)(groups);
    let snapshot = snapshot(&documents);
    let objects = documents.len();
    drop(documents);
    let (mut first, mut best, mut peak) = (None, Duration::MAX, 0.0);
    let mut other = Vec::new();
    for _ in 0..RUNS {
        let start = Instant::now();
        let compilation = compile(&snapshot);
        for config in compilation.nodes.values() {
            black_box(config.fingerprint());
        }
        let took = start.elapsed();
        if first.is_none() {
            first = Some(took);
            peak = memory("VmHWM");
        }
        best = best.min(took);
        check(&compilation, groups, world.single_nodes);
        // The operator waits between compiles: nothing of the world is in the processor's caches any more.
        other.resize(OTHER_MEMORY, 0_u8);
        for byte in &mut other {
            *byte = u8::wrapping_add(*byte, 1);
        }
        black_box(&other);
    }
    let first = first.unwrap_or_default();
    let statuses = statuses(snapshot);
    println!(
        "{objects} {} {} {peak} {}",
        first.as_secs_f64(),
        best.as_secs_f64(),
        statuses.as_secs_f64()
    );
}

/// How long all statuses take after a compile.
fn statuses(snapshot: Snapshot) -> Duration {
    let mut compiler = Compiler::new(snapshot);
    compiler.compile();
    let start = Instant::now();
    let is_empty = compiler.statuses().is_empty();
    let took = start.elapsed();
    assert!(!is_empty, "objects have statuses");
    took
}

fn check(compilation: &Compilation, groups: u32, single_nodes: u32) {
    assert!(
        compilation.problems.is_empty(),
        "{:?}",
        compilation.problems.first()
    );
    assert_eq!(compilation.nodes.len(), (groups * NODES_PER_GROUP) as usize);
    let mut with_own = 0;
    for config in compilation.nodes.values() {
        assert_eq!(config.shared.fabric_vrfs.len(), VRFS_PER_GROUP as usize);
        let own = config.shared.layer2s.len() - (VRFS_PER_GROUP * SEGMENTS_PER_VRF) as usize;
        assert!(own <= 1, "{own} segments of its own");
        with_own += own;
    }
    assert_eq!(with_own, single_nodes as usize);
}

/// Objects for single nodes.
const SINGLE_NODES: u32 = 100;

/// A world with a segment of its own for each of some nodes.
fn single_nodes(groups: u32, mut world: Vec<Value>) -> Vec<Value> {
    for number in 0..SINGLE_NODES {
        let (group, node) = (number % groups, number / groups);
        let name = format!("single-{number}");
        let vlan = 3000 + number;
        world.push(object(
            "Network",
            &name,
            json!({"ipv4": {"cidr": subnet(60_000 + number)}, "vlan": vlan, "vni": 20_000 + number}),
        ));
        world.push(object("Layer2Attachment", &name, json!({
            "networkRef": name, "interfaceName": format!("n{vlan}"),
            "nodeSelector": {"matchLabels": {"kubernetes.io/hostname": format!("node-{group}-{node}")}},
            "destinations": {"matchLabels": {"zone": format!("v{}", group * VRFS_PER_GROUP)}},
        })));
    }
    world
}

/// A world without intents: the low-level objects that its intents become, as if they were written by hand.
fn by_hand(groups: u32, intents: &[Value]) -> Vec<Value> {
    let compilation = compile(&snapshot(intents));
    let mut world = nodes(groups);
    let objects = compilation.objects.iter();
    world.extend(objects.map(|one| object(&one.kind().to_string(), one.name(), one.spec())));
    world
}

fn snapshot(documents: &[Value]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for document in documents {
        snapshot.insert(document);
    }
    snapshot
}
