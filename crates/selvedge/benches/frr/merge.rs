//! The merge of many `FRRConfiguration`s on one node, and one of them changed in a running compiler.

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use api::{frrk8s::FrrConfigurationSpec, selvedge::SettingsSpec};
use compiler::{Compiler, Kind, ObjectRef, Snapshot, host_router, snapshot::Key};
use serde_json::{Value, json};

/// How many objects select the node. The budget is for the third.
const SIZES: [u32; 4] = [100, 300, FULL, 3_000];
const FULL: u32 = 1_000;
/// Most time for the merge at full size.
const BUDGET: Duration = Duration::from_millis(20);
/// Greatest exponent with which the time may grow from the smallest to the largest size.
const EXPONENT: f64 = 1.1;
const RUNS: u32 = 9;

/// Five prefixes that are advertised to two neighbors, as a load balancer writes them.
fn spec(number: u32, community: u32) -> Value {
    let prefixes: Vec<String> = (0..5)
        .map(|place| {
            let address = number * 5 + place;
            format!(
                "198.{}.{}.{}/32",
                18 + address / 65_536,
                address / 256 % 256,
                address % 256
            )
        })
        .collect();
    let neighbor = |address: &str| {
        let marked = json!([{"community": format!("64512:{community}"), "prefixes": prefixes}]);
        json!({
            "address": address, "asn": 64500, "holdTime": "90s", "keepaliveTime": "30s",
            "toAdvertise": {"allowed": {"prefixes": prefixes}, "withCommunity": marked},
        })
    };
    let neighbors = [neighbor("192.0.2.1"), neighbor("192.0.2.2")];
    json!({"bgp": {"routers": [{"asn": 64512, "neighbors": neighbors, "prefixes": prefixes}]}})
}

fn document(number: u32, community: u32) -> Value {
    let name = format!("service-{number}");
    json!({
        "apiVersion": "frrk8s.metallb.io/v1beta1", "kind": "FRRConfiguration",
        "metadata": {"name": name, "namespace": "selvedge-system", "generation": community},
        "spec": spec(number, community),
    })
}

/// Measures, prints a table, and says whether the budgets are kept.
pub(crate) fn run() -> bool {
    println!(
        "{:<46} {:>9} {:>9} {:>9} {:>9} {:>9}  budget",
        "FRRConfigurations on one node", SIZES[0], SIZES[1], SIZES[2], SIZES[3], "exponent"
    );
    let merge = measure("merge of all", Some(BUDGET), merge);
    let change = measure(
        "one of them changed, running: config of the node",
        None,
        change,
    );
    merge && change
}

fn measure(what: &str, budget: Option<Duration>, time: fn(u32) -> Duration) -> bool {
    let times = SIZES.map(|size| time(size).as_secs_f64());
    let [small, _, full, large] = times;
    let growth = f64::from(SIZES[3]) / f64::from(SIZES[0]);
    // The budget has one place after the point, and two runs differ in the second.
    let exponent = ((large / small).ln() / growth.ln() * 10.0).round() / 10.0;
    let is_in_time = budget.is_none_or(|budget| full <= budget.as_secs_f64());
    let is_kept = is_in_time && exponent <= EXPONENT;
    let budget = budget.map(|budget| format!("{} ms, ", budget.as_millis()));
    let verdict = if is_kept { "kept" } else { "MISSED" };
    let [a, b, c, d] = times.map(|one| format!("{:.2} ms", one * 1e3));
    let budget = budget.unwrap_or_default();
    println!(
        "{what:<46} {a:>9} {b:>9} {c:>9} {d:>9} {exponent:>9.1}  {budget}exponent {EXPONENT}: {verdict}"
    );
    is_kept
}

fn best(mut run: impl FnMut() -> Duration) -> Duration {
    (0..RUNS).map(|_| run()).min().unwrap_or_default()
}

/// Objects to the router of the host.
fn merge(size: u32) -> Duration {
    let objects: Vec<(ObjectRef, Arc<FrrConfigurationSpec>)> = (0..size)
        .map(|number| {
            let subject = ObjectRef {
                kind: Kind::FrrConfiguration,
                key: Key {
                    namespace: Some("selvedge-system".into()),
                    name: format!("service-{number}").into(),
                },
            };
            let spec = serde_json::from_value(spec(number, 1)).expect("a spec");
            (subject, Arc::new(spec))
        })
        .collect();
    let settings = SettingsSpec::default();
    best(|| {
        let start = Instant::now();
        let (router, problems) = host_router::merge_all(&objects, &settings);
        let time = start.elapsed();
        assert_eq!(problems, []);
        assert_eq!(router.configurations.len(), size as usize);
        black_box(router);
        time
    })
}

/// One object changed in a running compiler, until the config of the node is there.
fn change(size: u32) -> Duration {
    let mut snapshot = Snapshot::default();
    snapshot.insert(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}));
    for number in 0..size {
        snapshot.insert(&document(number, 1));
    }
    let mut compiler = Compiler::new(snapshot);
    compiler.compile();
    let mut community = 1;
    best(|| {
        community += 1;
        let document = document(size / 2, community);
        let start = Instant::now();
        compiler.insert(&document);
        let (_, compilation) = compiler.compile();
        let time = start.elapsed();
        let config = compilation.nodes["n1"].host_router.as_ref();
        let configurations = &config.expect("a router").router.configurations;
        assert!(
            configurations
                .iter()
                .any(|one| one.generation == i64::from(community))
        );
        time
    })
}
