//! Programs of the host, each with a deadline.

use std::{collections::BTreeMap, fs, io, process::Stdio, time::Duration};

use rustix::process::{Pid, Signal};
use tokio::{process::Command, time};

/// Between two looks whether a program works.
const LOOK: Duration = Duration::from_millis(500);

/// Why a program did not do what it was started for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be started.
    #[error("failed to run {program}")]
    Run {
        /// The program.
        program: String,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// It ended with an error.
    #[error("{program} failed: {message}")]
    Failed {
        /// The program.
        program: String,
        /// What it printed.
        message: String,
    },
    /// It did not end in time and was killed.
    #[error("{program} did not answer within {patience:?}")]
    Deadline {
        /// The program.
        program: String,
        /// How long it had.
        patience: Duration,
    },
}

/// Runs a program to its end and returns what it printed on standard output.
pub(crate) async fn output(command: &mut Command, patience: Duration) -> Result<String, Error> {
    let program = || {
        let program = command.as_std().get_program();
        program.to_string_lossy().into_owned()
    };
    let program = program();
    let failed = |source| Error::Run {
        program: program.clone(),
        source,
    };
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    let output = match time::timeout(patience, child.wait_with_output()).await {
        Ok(output) => output.map_err(failed)?,
        Err(_elapsed) => return Err(Error::Deadline { program, patience }),
    };
    said(program, &output)
}

/// The same for a program whose work may take long: it is killed, with its children, when all of them have done nothing for as long as
/// `silence`, and after the time `most` in any case.
pub(crate) async fn output_of_work(
    command: &mut Command,
    silence: Duration,
    most: Duration,
) -> Result<String, Error> {
    let program = command.as_std().get_program();
    let program = program.to_string_lossy().into_owned();
    let failed = |source| Error::Run {
        program: program.clone(),
        source,
    };
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    let group = child.id().and_then(|id| i32::try_from(id).ok());
    let mut output = std::pin::pin!(child.wait_with_output());
    let started = time::Instant::now();
    let (mut work, mut since) = (Work::default(), started);
    loop {
        if let Ok(output) = time::timeout(LOOK.min(silence), &mut output).await {
            return said(program.clone(), &output.map_err(failed)?);
        }
        let now = group.map(work_of).unwrap_or_default();
        if now != work {
            (work, since) = (now, time::Instant::now());
        }
        if since.elapsed() >= silence || started.elapsed() >= most {
            if let Some(group) = group.and_then(Pid::from_raw) {
                // A process that has ended needs no signal.
                rustix::process::kill_process_group(group, Signal::KILL).unwrap_or_default();
            }
            let patience = since.elapsed().max(silence);
            return Err(Error::Deadline { program, patience });
        }
    }
}

/// What processes have done so far, by process id: how often each has waited for something, and its time on a processor.
type Work = BTreeMap<i32, (String, [String; 2])>;

/// The work of a process group. One that waits for an answer, and one that is stopped, adds nothing to it.
fn work_of(group: i32) -> Work {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Work::new();
    };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let work = pids.filter_map(|pid: i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, may hold spaces.
        let (_, rest) = stat.rsplit_once(')')?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        if words.get(2)?.parse() != Ok(group) {
            return None;
        }
        let times = [words.get(11)?.to_string(), words.get(12)?.to_string()];
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let waits = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        Some((pid, (waits.trim().to_owned(), times)))
    });
    work.collect()
}

/// What a program printed, or why it failed.
fn said(program: String, output: &std::process::Output) -> Result<String, Error> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let message = format!(
        "{} {}",
        text(&output.stdout).trim(),
        text(&output.stderr).trim()
    );
    Err(Error::Failed {
        program,
        message: message.trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(200);

    #[tokio::test]
    async fn a_program_that_hangs_is_killed_at_its_deadline() {
        let started = time::Instant::now();
        let error = output(Command::new("sleep").arg("60"), SHORT)
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Deadline { .. }), "{error}");
        assert!(started.elapsed() < Duration::from_secs(10));
    }

    #[tokio::test]
    async fn a_program_may_work_longer_than_it_may_do_nothing_and_its_children_are_killed_with_it()
    {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let silence = Duration::from_secs(1);
        let long = Duration::from_mins(1);
        let mut works = shell("for i in 1 2 3 4 5 6 7 8; do sleep 0.3; done; echo done");
        let said = output_of_work(&mut works, silence, long).await;
        assert_eq!(said.unwrap().trim(), "done");

        for hangs in ["sleep 61.5; true", "kill -STOP $$"] {
            let started = time::Instant::now();
            let error = output_of_work(&mut shell(hangs), silence, long).await;
            assert!(matches!(error, Err(Error::Deadline { .. })), "{hangs}");
            assert!(started.elapsed() < Duration::from_secs(10), "{hangs}");
        }
        let left = shell("pgrep -f '^sleep 61[.]5'").output().await.unwrap();
        assert_eq!(String::from_utf8_lossy(&left.stdout), "");

        // However busy it is, it has an end.
        let mut busy = shell("while :; do :; done");
        let error = output_of_work(&mut busy, silence, 2 * silence).await;
        assert!(matches!(error, Err(Error::Deadline { .. })));
    }

    #[tokio::test]
    async fn a_failing_program_is_an_error_with_its_words() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2; exit 3"]);
        let error = output(&mut command, Duration::from_secs(10))
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "sh failed: out err");
        let missing = output(&mut Command::new("/does/not/exist"), SHORT).await;
        assert!(matches!(missing, Err(Error::Run { .. })));
    }
}
