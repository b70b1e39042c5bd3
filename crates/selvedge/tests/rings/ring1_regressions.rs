//! Ring 1: `docs/regressions.md`, `docs/regressions-openperouter.md`, `docs/regressions-frr.md` and `docs/decisions.md` are complete, and what they name is there.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::Value;

use crate::support::repository;

/// All known regressions.
const NUMBERS: std::ops::RangeInclusive<u32> = 1..=87;

/// Those that nothing keeps yet.
const OPEN: &[u32] = &[];

/// The known regressions of Underlays, L3VNIs, L2VNIs and L3Passthroughs.
const OF_THE_FABRIC: std::ops::RangeInclusive<u32> = 1..=83;

/// Those of them that nothing keeps yet.
const OPEN_OF_THE_FABRIC: &[u32] = &[];

/// The known regressions of FRRConfigurations.
const OF_THE_HOST: std::ops::RangeInclusive<u32> = 1..=72;

/// Those of them that nothing keeps yet.
const OPEN_OF_THE_HOST: &[u32] = &[];

/// The decisions of the intents' document.
const DECISIONS: std::ops::RangeInclusive<u32> = 1..=41;

/// Those about how work is divided.
const OF_NO_EFFECT: &[u32] = &[4, 8, 10];

#[test]
fn every_decision_is_shown_by_something_that_is_there() -> anyhow::Result<()> {
    let rows = rows("docs/decisions.md", 'D')?;
    let numbers: BTreeSet<u32> = rows.keys().copied().collect();
    assert_eq!(numbers, DECISIONS.collect(), "each number has a row");
    let unseen = rows.iter().filter(|(_, names)| names.is_empty());
    let unseen: Vec<u32> = unseen.map(|(number, _)| *number).collect();
    assert_eq!(unseen, OF_NO_EFFECT, "a row without a test");
    are_there(&rows, 'D')
}

#[test]
fn every_known_regression_of_the_fabrics_kinds_is_kept_by_something_that_is_there()
-> anyhow::Result<()> {
    let rows = rows("docs/regressions-openperouter.md", 'R')?;
    let numbers: BTreeSet<u32> = rows.keys().copied().collect();
    assert_eq!(numbers, OF_THE_FABRIC.collect(), "each number has a row");
    let open = rows.iter().filter(|(_, names)| names.is_empty());
    let open: Vec<u32> = open.map(|(number, _)| *number).collect();
    assert_eq!(open, OPEN_OF_THE_FABRIC, "a row without a test");
    are_there(&rows, 'R')
}

#[test]
fn every_known_regression_of_configurations_of_the_host_is_kept_by_something_that_is_there()
-> anyhow::Result<()> {
    let rows = rows("docs/regressions-frr.md", 'R')?;
    let numbers: BTreeSet<u32> = rows.keys().copied().collect();
    assert_eq!(numbers, OF_THE_HOST.collect(), "each number has a row");
    let open = rows.iter().filter(|(_, names)| names.is_empty());
    let open: Vec<u32> = open.map(|(number, _)| *number).collect();
    assert_eq!(open, OPEN_OF_THE_HOST, "a row without a test");
    are_there(&rows, 'R')
}

/// Lines that end a daemon of some version, or that FRR takes for a change of a session although they say what it does anyway.
const NEVER: [&str; 4] = [
    "advertise-svi-ip",
    "disable-connected-check",
    "timers bgp 60 180",
    "advertisement-interval 0",
];

#[test]
fn what_crashes_or_resets_frr_is_in_no_configuration() -> anyhow::Result<()> {
    let mut files = 0;
    for story in fs::read_dir(repository("tests/cases"))? {
        let Ok(nodes) = fs::read_dir(story?.path().join("nodes")) else {
            continue;
        };
        for file in nodes {
            let path = file?.path();
            if path.to_string_lossy().ends_with(".frr.conf") {
                files += 1;
                let text = fs::read_to_string(&path)?;
                for line in NEVER {
                    assert!(!text.contains(line), "{} has {line}", path.display());
                }
            }
        }
    }
    assert!(files > 100, "{files} configurations");
    Ok(())
}

/// A webhook or an aggregated API would stand between a user and the API server, and would be behind the network that is to be mended. What
/// makes that network runs without it.
#[test]
fn changes_of_objects_need_no_network_of_pods() -> anyhow::Result<()> {
    let mut workloads = 0;
    for folder in ["deploy", "deploy/crds"] {
        for file in fs::read_dir(repository(folder))? {
            let path = file?.path();
            if path.extension().is_none_or(|extension| extension != "yaml") {
                continue;
            }
            let name = path.display();
            let objects: Vec<Value> = serde_saphyr::from_multiple(&fs::read_to_string(&path)?)?;
            for object in objects {
                let kind = object["kind"].as_str().unwrap_or_default();
                let is_between = kind.ends_with("WebhookConfiguration") || kind == "APIService";
                assert!(!is_between, "{name}: {kind}");
                let conversion = &object["spec"]["conversion"]["strategy"];
                assert_ne!(conversion, "Webhook", "{name}");
                if matches!(kind, "Deployment" | "DaemonSet") && folder == "deploy" {
                    workloads += 1;
                    let pod = &object["spec"]["template"]["spec"];
                    let is_ours = object["metadata"]["name"].as_str();
                    let is_ours = is_ours.is_some_and(|name| name.starts_with("selvedge"));
                    assert!(!is_ours || pod["hostNetwork"] == true, "{name}: {kind}");
                }
            }
        }
    }
    assert!(workloads >= 2, "{workloads}");
    Ok(())
}

/// Whether every story and every function that rows name is there.
fn are_there(rows: &BTreeMap<u32, Vec<String>>, letter: char) -> anyhow::Result<()> {
    let tests = tests()?;
    for (number, names) in rows {
        for name in names {
            let is_there = if name.contains('-') {
                repository("tests/cases").join(name).is_dir()
            } else {
                tests.contains(name)
            };
            assert!(is_there, "{letter}{number}: {name} is no test");
        }
    }
    Ok(())
}

#[test]
fn every_known_regression_is_kept_by_something_that_is_there() -> anyhow::Result<()> {
    let rows = rows("docs/regressions.md", 'R')?;
    let numbers: BTreeSet<u32> = rows.keys().copied().collect();
    assert_eq!(numbers, NUMBERS.collect(), "each number has a row");
    let open = rows.iter().filter(|(_, names)| names.is_empty());
    let open: Vec<u32> = open.map(|(number, _)| *number).collect();
    assert_eq!(open, OPEN, "a row without a test");
    let tests = tests()?;
    for (number, names) in &rows {
        for name in names {
            let story = repository("tests/cases").join(name).join("README.md");
            if name.contains('-') {
                let told = fs::read_to_string(&story)?;
                let own = format!("R{number}");
                let words = told.split(|letter: char| !letter.is_alphanumeric());
                assert!(
                    words.into_iter().any(|word| word == own),
                    "{name} does not say that it keeps {own}"
                );
            } else {
                assert!(tests.contains(name), "R{number}: {name} is no test");
            }
        }
    }
    Ok(())
}

/// The names in each row, by its number.
fn rows(file: &str, letter: char) -> anyhow::Result<BTreeMap<u32, Vec<String>>> {
    let text = fs::read_to_string(repository(file))?;
    let mut rows = BTreeMap::new();
    let start = format!("| {letter}");
    for line in text.lines().filter(|line| line.starts_with(&start)) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let number: u32 = cells[1].trim_start_matches(letter).parse()?;
        let names = cells[3].split('`').skip(1).step_by(2).map(str::to_owned);
        let claim = cells[2];
        anyhow::ensure!(!claim.is_empty(), "{letter}{number} says nothing");
        let before = rows.insert(number, names.collect());
        anyhow::ensure!(before.is_none(), "{letter}{number} has two rows");
    }
    Ok(rows)
}

/// The names of all functions that are tests: helpers and benchmarks of the same name prove nothing.
fn tests() -> anyhow::Result<BTreeSet<String>> {
    let mut sources = String::new();
    read_sources(&repository("crates"), &mut sources)?;
    Ok(tests_in(&sources))
}

fn tests_in(sources: &str) -> BTreeSet<String> {
    let mut tests = BTreeSet::new();
    let mut is_test = false;
    for line in sources.lines().map(str::trim) {
        let declaration = line.strip_prefix("async ").unwrap_or(line);
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some(name) = declaration.strip_prefix("fn ") {
            if is_test {
                let end = name.find(['(', '<']).unwrap_or(name.len());
                tests.insert(name[..end].to_owned());
            }
            is_test = false;
        }
    }
    tests
}

#[test]
fn only_a_function_with_the_attribute_is_a_test() {
    let sources = "
        #[test]
        #[expect(clippy::indexing_slicing, reason = \"a test\")]
        fn a_claim() {}
        fn a_helper() {}
        #[tokio::test(flavor = \"current_thread\")]
        async fn another_claim() {}
        fn one_more_is_reviewed(size: u32) {}
    ";
    let tests = tests_in(sources);
    let tests: Vec<&str> = tests.iter().map(String::as_str).collect();
    assert_eq!(tests, ["a_claim", "another_claim"]);
}

fn read_sources(folder: &Path, sources: &mut String) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read_sources(&path, sources)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push_str(&fs::read_to_string(&path)?);
        }
    }
    Ok(())
}
