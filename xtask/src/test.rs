//! `cargo xtask test`: everything, ring by ring, with a line for each and a total.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context as _;

use crate::{output::line, prepare};

/// A step of the whole test: a name, what it needs, and the cargo commands that are it.
struct Ring {
    name: &'static str,
    commands: &'static [&'static [&'static str]],
}

/// All commands that test name the whole workspace, so that no dependency is built a second time with other features.
const RINGS: [Ring; 7] = [
    Ring {
        name: "format and lints",
        commands: &[
            &["fmt", "--all", "--check"],
            &[
                "clippy",
                "--quiet",
                "--workspace",
                "--all-targets",
                "--all-features",
                "--",
                "-D",
                "warnings",
            ],
            &[
                "clippy",
                "--quiet",
                "--package",
                "selvedge-linux",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ],
        ],
    },
    Ring {
        name: "rings 0-2: types, stories, laws",
        commands: &[&[
            "test",
            "--no-fail-fast",
            "--workspace",
            "--exclude",
            "selvedge-lab",
            "--",
            "--skip",
            "ring3",
            "--skip",
            "ring4",
            "--skip",
            "ring5",
            "--skip",
            "ring6",
        ]],
    },
    Ring {
        name: "ring 3: FRR and mdbook accept what we write",
        commands: &[&[
            "test",
            "--workspace",
            "--test",
            "rings",
            "--",
            "ring3",
            "--nocapture",
        ]],
    },
    Ring {
        name: "ring 4: kernel and FRR of one node",
        commands: &[&[
            "test",
            "--workspace",
            "--test",
            "rings",
            "--",
            "ring4",
            "--nocapture",
        ]],
    },
    Ring {
        name: "ring 5: a real API server",
        commands: &[&[
            "test",
            "--workspace",
            "--test",
            "rings",
            "--",
            "ring5",
            "--nocapture",
        ]],
    },
    Ring {
        name: "ring 6: from YAML to a ping",
        commands: &[
            &[
                "test",
                "--workspace",
                "--test",
                "rings",
                "--",
                "ring6",
                "--skip",
                "ring6_fabric_objects",
                "--nocapture",
            ],
            // It counts every packet while sessions with short timers change, so it has the machine to itself.
            &[
                "test",
                "--workspace",
                "--test",
                "rings",
                "--",
                "ring6_fabric_objects",
                "--nocapture",
            ],
        ],
    },
    Ring {
        name: "lab: the lab itself",
        commands: &[&["test", "--workspace", "--test", "lab", "--", "--nocapture"]],
    },
];

/// How a ring went.
struct Outcome {
    name: &'static str,
    passed: u32,
    failed: u32,
    broken: bool,
    took: Duration,
}

impl Outcome {
    /// How many tests were run.
    fn ran(&self) -> u32 {
        self.passed + self.failed
    }
}

/// Prepares all parts, runs every ring, and prints how each went.
pub(crate) fn run() -> anyhow::Result<()> {
    let start = Instant::now();
    line("== prepare ==");
    prepare::run()?;
    let mut outcomes = vec![Outcome {
        name: "prepare",
        passed: 0,
        failed: 0,
        broken: false,
        took: start.elapsed(),
    }];
    for ring in RINGS {
        line(&format!("\n== {} ==", ring.name));
        outcomes.push(ring.run()?);
    }
    line("\n== summary ==");
    for outcome in &outcomes {
        let verdict = match (outcome.broken, outcome.passed) {
            (true, _) => "FAILED",
            (false, 0) => "done",
            (false, _) => "passed",
        };
        let counts = match outcome.ran() {
            0 => String::new(),
            _ => format!("{} tests", outcome.passed),
        };
        line(&format!(
            "{:<36} {verdict:<7} {counts:>10} {:>6.1} min",
            outcome.name,
            minutes(outcome.took)
        ));
    }
    let passed: u32 = outcomes.iter().map(|outcome| outcome.passed).sum();
    let failed: u32 = outcomes.iter().map(|outcome| outcome.failed).sum();
    line(&format!("total {:>60.1} min", minutes(start.elapsed())));
    line(&format!("{passed} passed, {failed} failed"));
    let broken: Vec<&str> = outcomes
        .iter()
        .filter(|outcome| outcome.broken)
        .map(|outcome| outcome.name)
        .collect();
    anyhow::ensure!(broken.is_empty(), "failed: {}", broken.join(", "));
    anyhow::ensure!(passed > 0, "no test was run");
    Ok(())
}

fn minutes(time: Duration) -> f64 {
    time.as_secs_f64() / 60.0
}

impl Ring {
    /// Runs all commands of the ring, also after a failure: more is known then.
    fn run(&self) -> anyhow::Result<Outcome> {
        let start = Instant::now();
        let mut outcome = Outcome {
            name: self.name,
            passed: 0,
            failed: 0,
            broken: false,
            took: Duration::ZERO,
        };
        for command in self.commands {
            cargo(command, &mut outcome)?;
        }
        outcome.took = start.elapsed();
        Ok(outcome)
    }
}

fn cargo(arguments: &[&str], outcome: &mut Outcome) -> anyhow::Result<()> {
    let mut child = Command::new(env!("CARGO"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("failed to run cargo")?;
    let before = outcome.ran();
    let stdout = child.stdout.take().context("cargo has no output")?;
    for text in BufReader::new(stdout).lines() {
        let text = text.context("failed to read cargo's output")?;
        if let Some((passed, failed)) = counts(&text) {
            outcome.passed += passed;
            outcome.failed += failed;
            // Most programs have no tests of a ring: their lines say nothing.
            if passed + failed == 0 {
                continue;
            }
        }
        if !text.is_empty() && text != "running 0 tests" {
            line(&text);
        }
    }
    let status = child.wait().context("failed to wait for cargo")?;
    outcome.broken |= !status.success() || ran_nothing(arguments, outcome.ran() - before);
    Ok(())
}

/// Whether a command that should have run tests ran none: a filter that matches nothing proves nothing.
fn ran_nothing(arguments: &[&str], ran: u32) -> bool {
    let is_empty = arguments.first() == Some(&"test") && ran == 0;
    if is_empty {
        line(&format!(
            "no test was run by: cargo {}",
            arguments.join(" ")
        ));
    }
    is_empty
}

/// The numbers in `test result: ok. 3 passed; 0 failed; …`.
fn counts(text: &str) -> Option<(u32, u32)> {
    let rest = text.strip_prefix("test result: ")?;
    let number = |word: &str| {
        let (before, _) = rest.split_once(word)?;
        before
            .rsplit(' ')
            .find(|part| !part.is_empty())?
            .parse()
            .ok()
    };
    Some((number(" passed")?, number(" failed")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_of_a_test_program_is_read() {
        let line = "test result: ok. 17 passed; 2 failed; 0 ignored; 0 measured; 4 filtered out; finished in 0.52s";
        assert_eq!(counts(line), Some((17, 2)));
        assert_eq!(counts("running 3 tests"), None);
    }

    #[test]
    fn a_ring_that_ran_no_test_fails() {
        assert!(ran_nothing(&["test", "--", "ring7"], 0));
        assert!(!ran_nothing(&["test", "--", "ring6"], 3));
        assert!(!ran_nothing(&["fmt", "--all"], 0));
    }
}
