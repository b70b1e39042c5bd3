//! `cargo xtask bench compile`: how long a compile takes, how much memory it needs, and how both grow.
//!
//! Each world runs in a process of its own, so that its peak of memory is its own.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "a benchmark has a clock, reads how much memory it uses, writes documents, and prints a table"
)]

use std::{
    collections::BTreeMap,
    env, fs,
    process::Command,
    time::{Duration, Instant},
};

use selvedge_compiler::{
    Compilation, Compiler, Insertion, NodeConfig, Snapshot, compile, lower::LowLevel, status,
};
use serde::Serialize;
use serde_json::{Value, json};

/// What the program has as well.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Budget of a world: seconds and mebibytes.
struct Budget {
    seconds: f64,
    mebibytes: f64,
}

/// A world: how it is made for a number of node groups, and what it may cost at full size.
struct World {
    name: &'static str,
    make: fn(u32) -> Vec<Value>,
    budget: Budget,
}

const WORLDS: [World; 4] = [
    World {
        name: "intents",
        make: intents,
        budget: Budget {
            seconds: 0.4,
            mebibytes: 512.0,
        },
    },
    World {
        name: "intents by hand",
        make: |groups| by_hand(groups, &intents(groups)),
        budget: Budget {
            seconds: 0.8,
            mebibytes: 1024.0,
        },
    },
    World {
        name: "services",
        make: services,
        budget: Budget {
            seconds: 1.5,
            mebibytes: 1024.0,
        },
    },
    World {
        name: "services by hand",
        make: |groups| by_hand(groups, &services(groups)),
        budget: Budget {
            seconds: 3.0,
            mebibytes: 2048.0,
        },
    },
];

/// Groups of nodes at three sizes; the last is the world of the budget: 10,000 nodes, 1,000 VRFs, 5,000 attachments.
const SIZES: [u32; 3] = [50, 100, 200];
const NODES_PER_GROUP: u32 = 50;
const VRFS_PER_GROUP: u32 = 5;
const SEGMENTS_PER_VRF: u32 = 5;
const RUNS: usize = 12;

fn main() {
    let arguments: Vec<String> = env::args().collect();
    if let [_, flag, what, groups, ..] = arguments.as_slice() {
        let groups = groups.parse().expect("a number of groups");
        match flag.as_str() {
            "--world" => return measure(what, groups),
            "--change" => return change(what, groups),
            _ => {}
        }
    }
    println!(
        "{:<17} {:>7} {:>9} {:>11} {:>9} {:>10} {:>9} {:>11}",
        "world", "nodes", "objects", "compile", "memory", "exponent", "budget", "statuses"
    );
    for world in &WORLDS {
        let mut last: Option<(u32, f64)> = None;
        for groups in SIZES {
            let (objects, seconds, mebibytes, statuses) = spawn("--world", world.name, groups);
            let exponent =
                last.map(|(before, took)| (seconds / took).ln() / f64::from(groups / before).ln());
            let exponent = exponent.map_or_else(String::new, |exponent| format!("{exponent:.2}"));
            let is_full = SIZES.last() == Some(&groups);
            let verdict = match (
                is_full,
                seconds <= world.budget.seconds && mebibytes <= world.budget.mebibytes,
            ) {
                (false, _) => "",
                (true, true) => "kept",
                (true, false) => "MISSED",
            };
            println!(
                "{:<17} {:>7} {objects:>9} {:>8.0} ms {mebibytes:>5.0} MiB {exponent:>10} {verdict:>9} {:>8.0} ms",
                world.name,
                groups * NODES_PER_GROUP,
                seconds * 1000.0,
                statuses * 1000.0,
            );
            last = Some((groups, seconds));
        }
    }
    println!();
    println!(
        "{:<17} {:>7} {:>9} {:>11} {:>9}",
        "one changed", "nodes", "touched", "compile", "budget"
    );
    for (kind, _) in CHANGES {
        for groups in SIZES {
            let (touched, seconds, ..) = spawn("--change", kind, groups);
            let is_full = SIZES.last() == Some(&groups);
            let verdict = match (is_full, seconds <= CHANGE_SECONDS) {
                (false, _) => "",
                (true, true) => "kept",
                (true, false) => "MISSED",
            };
            println!(
                "{kind:<17} {:>7} {touched:>9} {:>8.1} ms {verdict:>9}",
                groups * NODES_PER_GROUP,
                seconds * 1000.0,
            );
        }
    }
}

/// How often an intent is changed.
const CHANGE_RUNS: usize = 20;

/// What one changed intent may cost in the world with services.
const CHANGE_SECONDS: f64 = 0.05;

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

/// The world with services as it is in a running cluster: with the objects that were generated, the config of every node and all statuses.
fn running(groups: u32) -> Compiler {
    let mut compiler = Compiler::default();
    let intents = services(groups);
    for document in &intents {
        compiler.insert(document);
    }
    let compilation = compiler.compile().1.clone();
    let statuses = status::fold(compiler.snapshot(), &compilation, &BTreeMap::new());
    let lowered = &compilation.lowered;
    let layer2 = lowered.layer2.iter();
    let layer2 = layer2.map(|(name, one)| generated(name, "Layer2NetworkConfiguration", one));
    let vrf = lowered.vrf.iter();
    let vrf = vrf.map(|(name, one)| generated(name, "VRFRouteConfiguration", one));
    for document in layer2.chain(vrf) {
        compiler.insert(&document);
    }
    for (node, config) in &compilation.nodes {
        let spec = json!(config.spec(&compilation.revision.fingerprint));
        compiler.insert(&object("NodeNetworkConfig", node, spec));
    }
    for mut document in intents {
        let Insertion::Object(subject) = Snapshot::default().insert(&document) else {
            continue;
        };
        if let Some(status) = statuses.0.get(&subject) {
            document["status"] = status.clone();
            compiler.insert(&document);
        }
    }
    compiler.compile();
    compiler
}

fn generated<S: Serialize>(name: &str, kind: &str, made: &LowLevel<S>) -> Value {
    let mut document = object(kind, name, json!(made.spec));
    let source = &made.source;
    document["metadata"]["ownerReferences"] = json!([{
        "apiVersion": source.kind.api_version(), "kind": source.kind.to_string(), "name": source.key.name,
        "uid": "", "controller": true,
    }]);
    document
}

/// Changes one intent of the running world with services again and again, and prints how many nodes that touches and the best time.
fn change(kind: &str, groups: u32) {
    let mut compiler = running(groups);
    let (_, make) = CHANGES
        .iter()
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
        let has_changed =
            |(node, config): &(&String, &NodeConfig)| before.get(*node) != Some(config);
        touched = after.nodes.iter().filter(has_changed).count();
        assert_eq!(
            touched, NODES_PER_GROUP as usize,
            "only the nodes of one group"
        );
        before = after.nodes.clone();
    }
    println!("{touched} {} {} 0", best.as_secs_f64(), peak() / 1024.0);
}

/// Runs one world in a process of its own: objects, seconds, mebibytes, seconds for statuses.
fn spawn(flag: &str, what: &str, groups: u32) -> (u64, f64, f64, f64) {
    let output = Command::new(env::current_exe().expect("this program"))
        .args([flag, what, &groups.to_string()])
        .output()
        .expect("this program runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut words = text.split_whitespace();
    let mut number = || {
        words
            .next()
            .and_then(|word| word.parse::<f64>().ok())
            .expect("four numbers")
    };
    let (objects, seconds, mebibytes, statuses) = (number(), number(), number(), number());
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count"
    )]
    (objects as u64, seconds, mebibytes, statuses)
}

/// Compiles a world several times and prints objects, the best time and the peak of memory.
fn measure(name: &str, groups: u32) {
    let world = WORLDS
        .iter()
        .find(|world| world.name == name)
        .expect("a world of the table");
    let documents = (world.make)(groups);
    let snapshot = snapshot(&documents);
    let objects = documents.len();
    drop(documents);
    let mut best = Duration::MAX;
    for _ in 0..RUNS {
        let start = Instant::now();
        let compilation = compile(&snapshot);
        best = best.min(start.elapsed());
        check(&compilation, groups);
    }
    let compilation = compile(&snapshot);
    let start = Instant::now();
    let statuses = status::fold(&snapshot, &compilation, &BTreeMap::new());
    let folded = start.elapsed();
    assert!(!statuses.0.is_empty(), "somebody has a status");
    println!(
        "{objects} {} {} {}",
        best.as_secs_f64(),
        peak() / 1024.0,
        folded.as_secs_f64()
    );
}

fn snapshot(documents: &[Value]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for document in documents {
        snapshot.insert(document);
    }
    snapshot
}

fn check(compilation: &Compilation, groups: u32) {
    assert!(
        compilation.problems.is_empty(),
        "{:?}",
        compilation.problems.first()
    );
    assert_eq!(compilation.nodes.len(), (groups * NODES_PER_GROUP) as usize);
    for config in compilation.nodes.values() {
        assert_eq!(config.shared.fabric_vrfs.len(), VRFS_PER_GROUP as usize);
        assert_eq!(
            config.shared.layer2s.len(),
            (VRFS_PER_GROUP * SEGMENTS_PER_VRF) as usize
        );
    }
}

/// The most memory that this process has had, in kibibytes.
fn peak() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let found = status.lines().find_map(|text| text.strip_prefix("VmHWM:"));
    found
        .and_then(|text| text.split_whitespace().next()?.parse().ok())
        .unwrap_or(0.0)
}

const TCAAS: &str = "network.t-caas.telekom.com/v1alpha1";

#[expect(
    clippy::needless_pass_by_value,
    reason = "values are made for the call"
)]
fn object(kind: &str, name: &str, spec: Value) -> Value {
    let metadata = json!({"name": name, "labels": {"zone": name}});
    json!({"apiVersion": TCAAS, "kind": kind, "metadata": metadata, "spec": spec})
}

/// Nodes and their Underlay.
fn nodes(groups: u32) -> Vec<Value> {
    let mut world = vec![json!({
        "apiVersion": "openpe.openperouter.github.io/v1alpha1", "kind": "Underlay",
        "metadata": {"name": "fabric", "namespace": "default"},
        "spec": {"asn": 64514, "routeridcidr": "10.0.0.0/12", "nics": ["eth1"], "evpn": {"vtepcidr": "100.64.0.0/12"},
                 "neighbors": [{"asn": 64512, "address": "192.0.2.1"}]},
    })];
    for group in 0..groups {
        for node in 0..NODES_PER_GROUP {
            let name = format!("node-{group}-{node}");
            let labels = json!({"group": group.to_string(), "kubernetes.io/hostname": name});
            world.push(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}));
        }
    }
    world
}

fn selector(group: u32) -> Value {
    json!({"matchLabels": {"group": group.to_string()}})
}

fn subnet(number: u32) -> String {
    format!("10.{}.{}.0/24", number / 256, number % 256)
}

/// What tenants declare: VRFs and destinations, networks and attachments.
fn intents(groups: u32) -> Vec<Value> {
    let mut world = nodes(groups);
    for group in 0..groups {
        for vrf in 0..VRFS_PER_GROUP {
            let number = group * VRFS_PER_GROUP + vrf;
            let name = format!("v{number}");
            let spec = json!({"vrf": name, "vni": 1_000_000 + number, "routeTarget": format!("64500:{number}")});
            world.push(object("VRF", &name, spec));
            let destination = object(
                "Destination",
                &name,
                json!({"vrfRef": name, "prefixes": [format!("172.{}.{}.0/24", number / 256, number % 256)]}),
            );
            world.push(destination);
            for segment in 0..SEGMENTS_PER_VRF {
                let number = number * SEGMENTS_PER_VRF + segment;
                let vlan = 1 + vrf * SEGMENTS_PER_VRF + segment;
                let network = format!("n{number}");
                world.push(object(
                    "Network",
                    &network,
                    json!({"ipv4": {"cidr": subnet(number)}, "vlan": vlan, "vni": 10_000 + number}),
                ));
                world.push(object("Layer2Attachment", &network, json!({
                    "networkRef": network, "interfaceName": format!("n{vlan}"), "nodeSelector": selector(group),
                    "destinations": {"matchLabels": {"zone": name}},
                })));
            }
        }
    }
    world
}

/// The same with services, and with more destinations: at full size 2,000 Inbounds, 1,000 Outbounds, 2,000 Destinations more.
fn services(groups: u32) -> Vec<Value> {
    let mut world = intents(groups);
    for group in 0..groups {
        for vrf in 0..VRFS_PER_GROUP {
            let number = group * VRFS_PER_GROUP + vrf;
            let name = format!("v{number}");
            for more in 0..2_u32 {
                let third = 100 + more;
                let prefix = format!("{third}.{}.{}.0/24", number / 256, number % 256);
                let spec = json!({"vrfRef": name, "prefixes": [prefix]});
                let metadata = json!({"name": format!("{name}-{more}"), "labels": {"zone": name}});
                world.push(json!({"apiVersion": TCAAS, "kind": "Destination", "metadata": metadata, "spec": spec}));
            }
            for service in 0..3_u32 {
                let network = format!("n{}", number * SEGMENTS_PER_VRF + service);
                let kind = if service < 2 { "Inbound" } else { "Outbound" };
                world.push(object(
                    kind,
                    &network,
                    json!({
                        "networkRef": network, "count": 4, "nodeSelector": selector(group),
                        "destinations": {"matchLabels": {"zone": name}},
                    }),
                ));
            }
        }
    }
    world
}

/// A world as people would write it without intents: the low-level objects that its intents become, as if by hand.
fn by_hand(groups: u32, intents: &[Value]) -> Vec<Value> {
    let compilation = compile(&snapshot(intents));
    let mut world = nodes(groups);
    let lowered = &compilation.lowered;
    let layer2 = lowered.layer2.iter();
    let layer2 = layer2.map(|(name, one)| (name, "Layer2NetworkConfiguration", json!(one.spec)));
    let vrf = lowered.vrf.iter();
    let vrf = vrf.map(|(name, one)| (name, "VRFRouteConfiguration", json!(one.spec)));
    world.extend(
        layer2
            .chain(vrf)
            .map(|(name, kind, spec)| object(kind, name, spec)),
    );
    world
}
