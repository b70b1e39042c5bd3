//! `cargo xtask bench overlay`: what many L3VNIs and L2VNIs cost, and how that grows: to be checked on many nodes, and to become the
//! FRR configuration and the kernel objects of one.
#![expect(
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark prints a table, and fails where it finds nothing"
)]

use std::{
    env,
    hint::black_box,
    process::ExitCode,
    time::{Duration, Instant},
};

use compiler::{Change, Compiler, Prepared, Snapshot, compile};
use frr::FrrVersion;
use serde_json::Value;
use worlds::benchmark::overlay;

/// The allocator of the `selvedge` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The size that budgets are for; a half and twice as many are measured as well.
const FULL_SIZE: u32 = 500;
const SIZES: [u32; 3] = [FULL_SIZE / 2, FULL_SIZE, FULL_SIZE * 2];
/// Nodes on which host sessions are checked.
const NODES: u32 = 1000;
const RUNS: u32 = 7;
/// Greatest exponent with which a time may grow from the smallest to the largest size.
const EXPONENT: f64 = 1.1;

/// What is measured: its budget at full size, and the time it takes for a number of objects.
struct Measure {
    what: &'static str,
    budget: Option<Duration>,
    time: fn(u32) -> Duration,
}

const MEASURES: [Measure; 4] = [
    Measure {
        what: "check of host sessions on 1,000 nodes",
        budget: Some(Duration::from_millis(100)),
        time: |size| best(|| check(size)),
    },
    Measure {
        what: "review of one more among them",
        budget: Some(Duration::from_millis(100)),
        time: one_more_is_reviewed,
    },
    Measure {
        what: "… with the configs of all nodes",
        budget: None,
        time: |size| best(|| everything(size)),
    },
    Measure {
        what: "one node, as many L2VNIs: to FRR and kernel",
        budget: Some(Duration::from_millis(10)),
        time: |size| best(|| node(size)),
    },
];

fn main() -> ExitCode {
    println!(
        "{:<46} {:>9} {:>9} {:>9} {:>9}  budget",
        "what", SIZES[0], SIZES[1], SIZES[2], "exponent"
    );
    let mut are_kept = true;
    // Words of the command line choose measurements by their names.
    let words: Vec<String> = env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let is_chosen = |measure: &&Measure| {
        words.is_empty() || words.iter().any(|word| measure.what.contains(word))
    };
    for Measure { what, budget, time } in MEASURES.iter().filter(is_chosen) {
        let [small, full, large] = SIZES.map(|size| time(size).as_secs_f64());
        let growth = f64::from(SIZES[2]) / f64::from(SIZES[0]);
        // The budget has one place after the point, and two runs differ in the second.
        let exponent = ((large / small).ln() / growth.ln() * 10.0).round() / 10.0;
        let is_in_time = budget.is_none_or(|budget| full <= budget.as_secs_f64());
        let is_kept = is_in_time && exponent <= EXPONENT;
        are_kept &= is_kept;
        let budget = match budget {
            Some(budget) if is_kept => format!("{budget:?}, {EXPONENT}: kept"),
            Some(budget) => format!("{budget:?}, {EXPONENT}: MISSED"),
            None if is_kept => format!("{EXPONENT}: kept"),
            None => format!("{EXPONENT}: MISSED"),
        };
        let [small, full, large] = [small, full, large].map(|one| format!("{:.1} ms", one * 1e3));
        println!("{what:<46} {small:>9} {full:>9} {large:>9} {exponent:>9.1}  {budget}");
    }
    if are_kept {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn best(mut run: impl FnMut() -> Duration) -> Duration {
    (0..RUNS).map(|_| run()).min().unwrap_or_default()
}

fn snapshot(world: &[Value]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for document in world {
        snapshot.insert(document);
    }
    snapshot
}

/// A new compiler, until it says what is wrong.
fn check(size: u32) -> Duration {
    let snapshot = snapshot(&overlay::sessions(NODES, size));
    let start = Instant::now();
    let mut compiler = Compiler::new(snapshot);
    let problems = compiler.problems();
    let time = start.elapsed();
    assert!(problems.is_empty(), "{problems:?}");
    time
}

fn everything(size: u32) -> Duration {
    let snapshot = snapshot(&overlay::sessions(NODES, size));
    let start = Instant::now();
    let compilation = compile(&snapshot);
    let time = start.elapsed();
    assert_eq!(compilation.nodes.len(), NODES as usize);
    time
}

/// One more object in a running compiler: one that is well and one whose VNI is taken.
fn one_more_is_reviewed(size: u32) -> Duration {
    let mut compiler = Compiler::new(snapshot(&overlay::sessions(NODES, size)));
    compiler.compile();
    let mut times = Vec::new();
    for run in 0..RUNS {
        for (vni, is_well) in [(size + 1 + run, true), (1, false)] {
            let document = overlay::l3vni(&format!("new-{run}"), vni);
            let prepared = Prepared::read(&document).expect("an object of ours");
            let start = Instant::now();
            let review = compiler.review(Change::Put(Box::new(prepared)));
            times.push(start.elapsed());
            assert_eq!(review.own.is_empty(), is_well, "{:?}", review.own);
            assert_eq!(review.others, []);
        }
    }
    // The worst of both kinds, each at its best.
    let of = |is_well: bool| {
        let times = times.iter().enumerate();
        let times = times.filter(|(place, _)| (place % 2 == 0) == is_well);
        times.map(|(_, time)| *time).min().unwrap_or_default()
    };
    of(true).max(of(false))
}

/// Objects of one node to the text of its FRR and the objects of its kernel.
fn node(size: u32) -> Duration {
    let snapshot = snapshot(&overlay::node(size));
    let start = Instant::now();
    let compilation = compile(&snapshot);
    let config = &compilation.nodes["node-0"];
    let spec = config.spec(&compilation.revision.fingerprint);
    let version = FrrVersion::NEWEST;
    let frr = frr::desired(&spec, &frr::hidden(&spec), version).expect("nothing is refused");
    let text = frr::print(&frr, version, &spec.revision);
    let kernel = linux::desired(&spec).expect("nothing is refused");
    let time = start.elapsed();
    assert!(
        compilation.problems.is_empty(),
        "{:?}",
        compilation.problems
    );
    assert_eq!(spec.fabric_vrfs.len(), size as usize);
    assert_eq!(spec.layer2s.len(), size as usize);
    black_box((text, kernel));
    time
}
