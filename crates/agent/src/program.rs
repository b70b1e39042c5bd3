//! Programs of the host, each with a deadline.

use std::{io, process::Stdio, time::Duration};

use tokio::{process::Command, time};

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
