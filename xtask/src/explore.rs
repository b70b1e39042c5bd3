//! `cargo xtask explore --minutes N`: all laws, again and again on new random inputs.

mod source;

use std::{
    collections::BTreeSet,
    hash::{BuildHasher as _, Hasher as _, RandomState},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context as _;

use self::source::Package;
use crate::output::line;

const USAGE: &str = "cargo xtask explore --minutes N";

/// How long one run of the laws of a package should take: short enough to end near the deadline, long enough to be worth its start.
const RUN: Duration = Duration::from_secs(20);
/// The number of cases of the first run, before it is known how long one takes.
const FIRST_CASES: u32 = 500;
const MOST_CASES: u32 = 100_000;
/// proptest shrinks four times as often as there are cases by default, which takes longer than to find the failure.
const SHRINK_ITERATIONS: u32 = 2_000;

/// What was tried, and what failed.
#[derive(Default)]
struct Tally {
    runs: u32,
    inputs: u64,
    failures: Vec<String>,
}

/// A package whose laws are explored.
struct Explored {
    package: Package,
    cases: u32,
    /// Laws that have failed; they are not tried again.
    failed: BTreeSet<String>,
}

/// Runs all laws until the time is over.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let time = time(arguments)?;
    let packages = source::packages()?;
    build(&packages)?;
    let mut explored: Vec<Explored> = packages.into_iter().map(Explored::new).collect();
    let laws: usize = explored.iter().map(|one| one.package.laws.len()).sum();
    line(&format!("{laws} laws of {} packages", explored.len()));
    let start = Instant::now();
    let mut tally = Tally::default();
    'time: loop {
        let runs = tally.runs;
        for one in &mut explored {
            let Some(left) = time.checked_sub(start.elapsed()) else {
                break 'time;
            };
            one.run(left, &mut tally)?;
        }
        // Every law has failed.
        if runs == tally.runs {
            break;
        }
    }
    let failed = tally.failures.len();
    line(&format!(
        "{} runs, {} random inputs, {failed} laws failed, {:.1} min",
        tally.runs,
        tally.inputs,
        start.elapsed().as_secs_f64() / 60.0
    ));
    for command in &tally.failures {
        line(&format!("  {command}"));
    }
    anyhow::ensure!(failed == 0, "{failed} laws failed");
    Ok(())
}

fn time(arguments: &[String]) -> anyhow::Result<Duration> {
    let [name, minutes] = arguments else {
        anyhow::bail!("{USAGE}");
    };
    anyhow::ensure!(name == "--minutes", "unknown option {name}; {USAGE}");
    let minutes: u64 = minutes
        .parse()
        .with_context(|| format!("invalid number of minutes {minutes:?}"))?;
    Ok(Duration::from_mins(minutes))
}

/// Builds all tests first, so that the time is spent on running them.
fn build(packages: &[Package]) -> anyhow::Result<()> {
    for package in packages {
        let status = Command::new(env!("CARGO"))
            .args(["test", "--release", "--no-run", "--package", &package.name])
            .args(&package.targets)
            .status()
            .context("failed to run cargo")?;
        anyhow::ensure!(
            status.success(),
            "the tests of {} do not build",
            package.name
        );
    }
    Ok(())
}

impl Explored {
    fn new(package: Package) -> Self {
        Self {
            package,
            cases: FIRST_CASES,
            failed: BTreeSet::new(),
        }
    }

    /// Tries all laws of the package that have not failed yet with one new seed.
    fn run(&mut self, left: Duration, tally: &mut Tally) -> anyhow::Result<()> {
        let is_open = |law: &&String| !self.failed.contains(*law);
        let laws: Vec<&String> = self.package.laws.iter().filter(is_open).collect();
        if laws.is_empty() {
            return Ok(());
        }
        let (seed, cases) = (seed(), self.cases);
        let start = Instant::now();
        let output = Command::new(env!("CARGO"))
            .args(["test", "--release", "--package", &self.package.name])
            .args(&self.package.targets)
            .args(["--no-fail-fast", "--"])
            .args(laws)
            .env("PROPTEST_RNG_SEED", seed.to_string())
            .env("PROPTEST_CASES", cases.to_string())
            .env("PROPTEST_MAX_SHRINK_ITERS", SHRINK_ITERATIONS.to_string())
            .stdin(Stdio::null())
            .output()
            .context("failed to run cargo")?;
        let took = start.elapsed();
        let text = String::from_utf8_lossy(&output.stdout);
        let outcome = Outcome::read(&text);
        anyhow::ensure!(
            output.status.success() || !outcome.failed.is_empty(),
            "the tests of {} did not run:\n{text}{}",
            self.package.name,
            String::from_utf8_lossy(&output.stderr)
        );
        anyhow::ensure!(
            outcome.passed + outcome.failed.len() > 0,
            "no test of {} was run",
            self.package.name
        );
        tally.runs += 1;
        tally.inputs += u64::from(cases) * u64::try_from(outcome.passed)?;
        line(&format!(
            "{:<18} seed {seed:<20} cases {cases:<6} {} passed, {} failed, {:.0} s",
            self.package.name,
            outcome.passed,
            outcome.failed.len(),
            took.as_secs_f64()
        ));
        for test in outcome.failed {
            let law = test.rsplit("::").next().unwrap_or(test);
            self.failed.insert(law.to_owned());
            let command = repeat(&self.package, test, seed, cases);
            line(&format!("FAILED {test}; to repeat it:\n  {command}"));
            tally.failures.push(command);
        }
        self.cases = next(cases, took, left.saturating_sub(took));
        Ok(())
    }
}

/// The number of cases of the next run, by how long this one took.
fn next(cases: u32, took: Duration, left: Duration) -> u32 {
    let wanted = RUN.min(left.max(Duration::from_secs(1))).as_millis();
    let took = took.as_millis().max(1);
    // One quick run says little: the number grows slowly.
    let most = u128::from(cases) * 4;
    let next = (u128::from(cases) * wanted / took).clamp(1, most);
    u32::try_from(next).unwrap_or(MOST_CASES).min(MOST_CASES)
}

/// A command line that repeats a failure.
fn repeat(package: &Package, test: &str, seed: u64, cases: u32) -> String {
    let targets: Vec<&str> = package.targets.iter().map(String::as_str).collect();
    let (name, targets) = (&package.name, targets.join(" "));
    let command = format!("cargo test --release --package {name} {targets} -- --exact {test}");
    format!("PROPTEST_RNG_SEED={seed} PROPTEST_CASES={cases} {command}")
}

/// A random number; the standard library draws one for each hasher.
fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// How the tests of a package went.
struct Outcome<'a> {
    passed: usize,
    failed: Vec<&'a str>,
}

impl<'a> Outcome<'a> {
    /// Reads the lines `test a::b ... ok`.
    fn read(text: &'a str) -> Self {
        let tests = || {
            let lines = text.lines().filter_map(|line| line.strip_prefix("test "));
            lines.filter_map(|line| line.split_once(" ... "))
        };
        let passed = tests().filter(|(_, how)| *how == "ok").count();
        let failed = tests().filter(|(_, how)| *how == "FAILED");
        Self {
            passed,
            failed: failed.map(|(test, _)| test).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tests_print_is_read() {
        let text = "running 2 tests\ntest a::b ... ok\ntest a::c ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed\n";
        let outcome = Outcome::read(text);
        assert_eq!((outcome.passed, outcome.failed), (1, vec!["a::c"]));
    }

    #[test]
    fn a_run_takes_about_as_long_as_it_should() {
        let left = Duration::from_mins(10);
        assert_eq!(next(1000, RUN, left), 1000);
        assert_eq!(next(1000, RUN * 2, left), 500);
        assert_eq!(next(1000, Duration::from_millis(1), left), 4000);
        assert_eq!(next(1000, RUN, RUN / 4), 250);
        assert_eq!(next(MOST_CASES, RUN / 2, left), MOST_CASES);
    }

    #[test]
    fn minutes_are_a_whole_number() {
        let time = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|&one| one.to_owned()).collect();
            time(&arguments).ok()
        };
        assert_eq!(time(&["--minutes", "2"]), Some(Duration::from_mins(2)));
        assert_eq!(time(&["--minutes", "many"]), None);
        assert_eq!(time(&["2"]), None);
    }
}
