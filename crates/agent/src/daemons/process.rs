//! Processes as the kernel knows them.

use std::{fs, io, os::fd::OwnedFd, os::unix::fs::MetadataExt as _, path::Path};

use rustix::process::{Pid, PidfdFlags, Signal};
use tokio::io::unix::AsyncFd;

/// A running daemon of FRR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Daemon {
    /// Its program's name.
    pub(crate) name: String,
    /// Its process id.
    pub(crate) pid: i32,
    /// Inode of the network namespace it is in.
    pub(crate) namespace: u64,
    /// When it started, in ticks after boot: a process id may be used again.
    started: String,
}

impl Daemon {
    /// Whether this very process still runs. One that has ended and waits for its parent does not.
    pub(crate) fn is_alive(&self) -> bool {
        stat(self.pid).is_some_and(|(state, started)| state != "Z" && started == self.started)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.pid).filter(|_| self.is_alive()) {
            // One that has ended needs no signal.
            rustix::process::kill_process(pid, signal).unwrap_or_default();
        }
    }
}

/// The processes of an instance, in whatever network namespace: started from the directory of the daemons, with its name.
pub(super) fn find(directory: &Path, names: &[&str], instance: &str) -> Vec<Daemon> {
    all(names, |program, words| {
        program.parent() == Some(directory) && is_of(words, instance)
    })
}

/// The processes with the names of daemons that are not of this instance, wherever they come from.
pub(super) fn others(names: &[&str], instance: &str) -> Vec<Daemon> {
    all(names, |_, words| !is_of(words, instance))
}

/// Whether a command line starts a daemon of this instance.
fn is_of(words: &[&str], instance: &str) -> bool {
    words.windows(2).any(|pair| pair == ["-N", instance])
}

fn all(names: &[&str], accepts: impl Fn(&Path, &[&str]) -> bool) -> Vec<Daemon> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut found: Vec<Daemon> = pids
        .filter_map(|pid| daemon(pid, names, &accepts))
        .collect();
    found.sort_by_key(|daemon| daemon.pid);
    found
}

/// The daemon with this process id, if its program has one of the names and its command line is accepted.
fn daemon(pid: i32, names: &[&str], accepts: impl Fn(&Path, &[&str]) -> bool) -> Option<Daemon> {
    let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<&str> = command
        .split(|byte| *byte == 0)
        .filter_map(|word| std::str::from_utf8(word).ok())
        .collect();
    let program = Path::new(words.first()?);
    let name = program.file_name()?.to_str()?;
    if !names.contains(&name) || !accepts(program, &words) {
        return None;
    }
    let (state, started) = stat(pid)?;
    let namespace = fs::metadata(format!("/proc/{pid}/ns/net")).ok()?.ino();
    (state != "Z").then(|| Daemon {
        name: name.to_owned(),
        pid,
        namespace,
        started,
    })
}

/// State and start time of a process.
fn stat(pid: i32) -> Option<(String, String)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold spaces.
    let (_, rest) = text.rsplit_once(')')?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    Some((words.first()?.to_string(), words.get(19)?.to_string()))
}

/// User and group id of a user of this machine.
pub(super) fn user(name: &str) -> Option<(u32, u32)> {
    let text = fs::read_to_string("/etc/passwd").ok()?;
    text.lines().find_map(|line| {
        let words: Vec<&str> = line.split(':').collect();
        match words.as_slice() {
            [user, _, uid, gid, ..] if *user == name => {
                Some((uid.parse().ok()?, gid.parse().ok()?))
            }
            _ => None,
        }
    })
}

/// Waits until one of these processes ends.
pub(crate) async fn exits(daemons: &[Daemon]) -> io::Result<()> {
    let ends = daemons.iter().map(|daemon| {
        Box::pin(async move {
            let watched = Pid::from_raw(daemon.pid).map(watch);
            match watched {
                // It has ended already.
                None | Some(Err(_)) => Ok(()),
                Some(Ok(fd)) => fd.readable().await.map(drop),
            }
        })
    });
    let ends: Vec<_> = ends.collect();
    if ends.is_empty() {
        return std::future::pending().await;
    }
    futures::future::select_all(ends).await.0
}

fn watch(pid: Pid) -> io::Result<AsyncFd<OwnedFd>> {
    let fd = rustix::process::pidfd_open(pid, PidfdFlags::NONBLOCK)?;
    // The descriptor is owned and never replaced while it is registered.
    #[expect(
        deprecated,
        reason = "its successor is unsafe for the sake of descriptors that others may close"
    )]
    AsyncFd::new(fd)
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::process::CommandExt as _,
        process::{Command, Stdio},
    };

    use super::*;

    #[test]
    fn the_user_of_this_process_is_found() {
        assert_eq!(user("root"), Some((0, 0)));
        assert_eq!(user("no such user"), None);
    }

    #[tokio::test]
    async fn a_daemon_is_known_by_program_and_instance_and_followed_to_its_end() {
        let directory = tempfile::TempDir::new().unwrap();
        let start = |instance: &str| {
            Command::new("/bin/sh")
                .arg0(directory.path().join("bgpd"))
                .args(["-c", "read line", "-N", instance])
                .stdin(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let (mut ours, mut other) = (start("router"), start("host"));
        let found = loop {
            let found = find(directory.path(), &["zebra", "bgpd"], "router");
            if !found.is_empty() {
                break found;
            }
            tokio::task::yield_now().await;
        };
        let own = fs::metadata("/proc/self/ns/net").unwrap().ino();
        let [daemon] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(
            (daemon.pid.unsigned_abs(), daemon.namespace),
            (ours.id(), own)
        );
        assert!(daemon.is_alive());
        // The other process may not be what it becomes yet.
        let others = loop {
            let others = others(&["zebra", "bgpd"], "router");
            if !others.is_empty() {
                break others;
            }
            tokio::task::yield_now().await;
        };
        let is_other = |it: &Daemon| it.pid.unsigned_abs() == other.id();
        assert!(others.iter().any(is_other), "{others:?}");
        assert!(!others.contains(daemon));
        let earlier = Daemon {
            started: "1".to_owned(),
            ..daemon.clone()
        };
        assert!(!earlier.is_alive(), "another process had this id before");
        daemon.signal(Signal::TERM);
        exits(&found).await.unwrap();
        assert!(!daemon.is_alive());
        for child in [&mut ours, &mut other] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
