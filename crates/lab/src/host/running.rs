//! A command that has been started, wherever it runs.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::Error;
use crate::process::tail;
use crate::report;

/// What a command printed, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The command line, for messages.
    pub command: String,
    /// The exit status; 128 and more for a signal.
    pub status: i32,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Output {
    /// The standard output of a command that was content.
    pub fn ok(self) -> Result<String, Error> {
        if self.status == 0 {
            return Ok(self.stdout);
        }
        let output = tail(&format!("{}{}", self.stdout, self.stderr), 30);
        Err(Error::End {
            command: self.command,
            status: self.status,
            output,
        })
    }
}

#[derive(Debug, Default)]
struct State {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    end: Option<End>,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Status(i32),
    CutOff,
}

/// Where the threads that watch a command write down what they see.
#[derive(Debug, Default, Clone)]
pub(crate) struct Record(Arc<(Mutex<State>, Condvar)>);

impl Record {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stdout(&self, bytes: &[u8]) {
        self.state().stdout.extend_from_slice(bytes);
        self.0.1.notify_all();
    }

    pub(crate) fn stderr(&self, bytes: &[u8]) {
        self.state().stderr.extend_from_slice(bytes);
        self.0.1.notify_all();
    }

    /// The command has ended; `None` says that it is not known how, because its host is gone.
    pub(crate) fn end(&self, status: Option<i32>) {
        self.state().end = Some(status.map_or(End::CutOff, End::Status));
        self.0.1.notify_all();
    }
}

/// A command that runs; dropping it kills it and what it started in its process group.
pub struct Running {
    command: String,
    pid: u32,
    record: Record,
    send_signal: Box<dyn Fn(Signal) + Send + Sync>,
    spoken_of: bool,
}

impl Running {
    pub(crate) fn new(
        argv: &[&str],
        pid: u32,
        record: Record,
        send_signal: Box<dyn Fn(Signal) + Send + Sync>,
    ) -> Self {
        Self {
            command: argv.join(" "),
            pid,
            record,
            send_signal,
            spoken_of: false,
        }
    }

    /// Gives it the name under which people know it; a failing test then also shows what it printed.
    pub(crate) fn named(mut self, command: String) -> Self {
        self.command = command;
        self.spoken_of = true;
        self
    }

    /// The process id on its host.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it has ended.
    pub fn ended(&self) -> bool {
        self.record.state().end.is_some()
    }

    /// What it has printed on standard output so far.
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.record.state().stdout).into_owned()
    }

    /// What it has printed on standard error so far.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.record.state().stderr).into_owned()
    }

    /// Sends a signal to it and to what it started in its process group.
    pub fn signal(&self, signal: Signal) {
        (self.send_signal)(signal);
    }

    /// Waits until it has printed `text`, on either output.
    pub fn wait_for(&self, text: &str, patience: Duration) -> Result<(), Error> {
        let contains = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(text);
        let seen = |state: &State| contains(&state.stdout) || contains(&state.stderr);
        let state = self.watch(patience, |state| seen(state) || state.end.is_some());
        if seen(&state) {
            return Ok(());
        }
        drop(state);
        self.output(patience)?
            .ok()
            .and_then(|_| Err(self.timeout(patience)))
    }

    /// Waits for its end.
    pub fn wait(&self, patience: Duration) -> Result<Output, Error> {
        drop(self.watch(patience, |state| state.end.is_some()));
        self.output(patience)
    }

    fn watch(&self, patience: Duration, enough: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let deadline = Instant::now() + patience;
        let mut state = self.record.state();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if enough(&state) || left.is_zero() {
                return state;
            }
            state = self
                .record
                .0
                .1
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn output(&self, patience: Duration) -> Result<Output, Error> {
        let state = self.record.state();
        match state.end {
            None => Err(self.timeout(patience)),
            Some(End::CutOff) => Err(Error::CutOff {
                command: self.command.clone(),
            }),
            Some(End::Status(status)) => Ok(Output {
                command: self.command.clone(),
                status,
                stdout: String::from_utf8_lossy(&state.stdout).into_owned(),
                stderr: String::from_utf8_lossy(&state.stderr).into_owned(),
            }),
        }
    }

    fn timeout(&self, patience: Duration) -> Error {
        Error::Timeout {
            command: self.command.clone(),
            patience,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended() {
            if self.spoken_of {
                report::text_if_panicking(&self.command, &(self.stdout() + &self.stderr()));
            }
            self.signal(Signal::KILL);
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("command", &self.command)
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}
