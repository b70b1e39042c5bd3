//! Starting programs of this machine so that none of them outlives the lab.
//!
//! Everything that keeps running is started by one thread that lives as long as the process, under `setpriv
//! --pdeathsig KILL`: the kernel sends that signal when the starting *thread* ends, and the thread of a test ends long
//! before the process does.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{LazyLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// What can go wrong when a program of this machine is run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program is not there or may not be run.
    #[error("failed to start `{command}`")]
    Start {
        /// The command line.
        command: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The program ran and was not content.
    #[error("`{command}` ended with {status}: {output}")]
    End {
        /// The command line.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// The last lines that it printed.
        output: String,
    },
    /// The file for a program's output could not be made.
    #[error("failed to create the log {}", path.display())]
    CreateLog {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Runs a command to its end and returns what it printed on standard output.
pub(crate) fn run(command: &mut Command) -> Result<String, Error> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|source| Error::Start {
            command: line(command),
            source,
        })?;
    checked(command, &output)
}

/// The standard output of a command that ended, or an error with what it said.
pub(crate) fn checked(command: &Command, output: &Output) -> Result<String, Error> {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(Error::End {
        command: line(command),
        status: output.status,
        output: tail(&format!("{stdout}{stderr}"), 20),
    })
}

/// The last lines of a text.
pub(crate) fn tail(text: &str, count: usize) -> String {
    let lines: Vec<_> = text.trim_end().lines().collect();
    lines
        .get(lines.len().saturating_sub(count)..)
        .unwrap_or_default()
        .join("\n")
}

/// The command as one would type it, for messages.
pub(crate) fn line(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(
        command
            .get_args()
            .map(|word| word.to_string_lossy().into_owned()),
    );
    words.join(" ")
}

/// A command that the kernel kills when this process ends, however it ends.
pub(crate) fn tethered(argv: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).args(argv);
    command
}

type Order = (Command, mpsc::Sender<io::Result<Child>>);

/// Starts a [`tethered`] command from the one thread that lives as long as the process.
pub(crate) fn spawn(command: Command) -> Result<Child, Error> {
    static ORDERS: LazyLock<mpsc::Sender<Order>> = LazyLock::new(|| {
        let (orders, queue) = mpsc::channel::<Order>();
        thread::spawn(move || {
            for (mut command, answer) in queue {
                drop(answer.send(command.spawn()));
            }
        });
        orders
    });
    let command_line = line(&command);
    let (answer, answered) = mpsc::channel();
    ORDERS
        .send((command, answer))
        .ok()
        .and_then(|()| answered.recv().ok())
        .unwrap_or_else(|| Err(io::Error::other("the starting thread is gone")))
        .map_err(|source| Error::Start {
            command: command_line,
            source,
        })
}

/// Sends a signal to a process, or to its whole group; one that is gone already is no matter.
pub(crate) fn signal(pid: u32, signal: Signal, whole_group: bool) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let sent = if whole_group {
            kill_process_group(pid, signal)
        } else {
            kill_process(pid, signal)
        };
        sent.unwrap_or_default();
    }
}

/// A program that runs until it is stopped, with its output in a file; dropping it stops it.
#[derive(Debug)]
pub(crate) struct Daemon {
    argv: Vec<String>,
    child: Child,
    log: PathBuf,
    grace: Duration,
}

impl Daemon {
    /// Starts `argv` with its output in `log`; on stopping it has `grace` to end by itself after SIGTERM.
    pub(crate) fn start(argv: &[&str], log: &Path, grace: Duration) -> Result<Self, Error> {
        Ok(Self {
            argv: argv.iter().map(|&word| word.to_owned()).collect(),
            child: logged(argv, log)?,
            log: log.to_owned(),
            grace,
        })
    }

    /// Starts it again as it was started, after it has ended.
    pub(crate) fn start_again(&mut self) -> Result<(), Error> {
        self.stop();
        let argv: Vec<&str> = self.argv.iter().map(String::as_str).collect();
        self.child = logged(&argv, &self.log)?;
        Ok(())
    }

    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    pub(crate) fn ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Everything it printed.
    pub(crate) fn output(&self) -> String {
        fs::read(&self.log).map_or_else(
            |error| format!("{}: {error}", self.log.display()),
            |bytes| String::from_utf8_lossy(&bytes).into_owned(),
        )
    }

    /// Ends it: SIGTERM, then SIGKILL when its grace is over.
    pub(crate) fn stop(&mut self) {
        if !self.grace.is_zero() && !self.ended() {
            signal(self.pid(), Signal::TERM, false);
            let deadline = Instant::now() + self.grace;
            while Instant::now() < deadline && !self.ended() {
                thread::sleep(Duration::from_millis(20));
            }
        }
        if !self.ended() {
            drop(self.child.kill());
        }
        drop(self.child.wait());
    }
}

/// Starts a program that adds what it prints to a log.
fn logged(argv: &[&str], log: &Path) -> Result<Child, Error> {
    let create = |source| Error::CreateLog {
        path: log.to_owned(),
        source,
    };
    let out = File::options().create(true).append(true).open(log);
    let out = out.map_err(create)?;
    let err = out.try_clone().map_err(create)?;
    let mut command = tethered(argv);
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    spawn(command)
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.stop();
    }
}
