//! FRR's daemons, of the router's instance and of the host's: started, found again, watched and stopped.
//!
//! They live in a control group of their own, so that what ends the agent's does not end them. They are found among the
//! processes of the machine by program, instance and network namespace: a process id in a file, or a socket that answers,
//! may belong to a daemon in a namespace that no longer has a name. Directories of FRR's user are only ever touched by
//! programs that run as that user: root would follow a symbolic link that a compromised daemon has put there.

mod cgroup;
mod instance;
mod process;

use std::{
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use frr::FrrVersion;
use rustix::process::Signal;
use tokio::{net::UnixStream, process::Command, time};

pub(crate) use self::{
    instance::Instance,
    process::{Daemon, exits},
};
use crate::{file, patience::Patience, program, vtysh};

/// How long a daemon may take until it listens.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// How long all daemons together may take to end before they are killed, and then to be gone.
const STOP_PATIENCE: Duration = Duration::from_secs(3);
/// How long a small program may take.
const PROGRAM_PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// How long zebra keeps routes of an earlier life until their owners have claimed them again.
const KEEP_ROUTES: &str = "120";

/// FRR's user and group.
const USER: &str = "frr";

/// Where things are on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// FRR's daemons.
    pub daemons: PathBuf,
    /// Their sockets and process ids.
    pub run: PathBuf,
    /// Their configuration, which stays empty: the agent configures them.
    pub etc: PathBuf,
    /// The journal, and the confirmed `frr.conf`; root's own.
    pub state: PathBuf,
    /// The lock, and what daemons print when they start; root's own.
    pub runtime: PathBuf,
    /// The control group of the daemons. Where there is no such hierarchy, they stay in the agent's, which is reported.
    pub cgroup: PathBuf,
}

impl Default for Paths {
    fn default() -> Self {
        Self {
            daemons: "/usr/lib/frr".into(),
            run: "/run/frr".into(),
            etc: "/etc/frr".into(),
            state: "/var/lib/selvedge".into(),
            runtime: "/run/selvedge".into(),
            cgroup: "/sys/fs/cgroup/selvedge-frr".into(),
        }
    }
}

impl Paths {
    /// The token of the node's own account.
    pub fn token(&self) -> PathBuf {
        self.runtime.join("token")
    }
}

/// Why FRR could not be brought up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory could not be used.
    #[error(transparent)]
    File(#[from] file::Error),
    /// The network namespace has gone.
    #[error("there is no network namespace {name}")]
    NoNamespace {
        /// Its name.
        name: String,
    },
    /// FRR is not installed completely.
    #[error("this machine has no user {USER}; is FRR installed?")]
    NoUser,
    /// A program failed.
    #[error(transparent)]
    Program(#[from] program::Error),
    /// A daemon does not listen.
    #[error("{daemon} does not listen on {} after {patience:?}", socket.display())]
    Silent {
        /// The daemon.
        daemon: String,
        /// Its socket.
        socket: PathBuf,
        /// How long it had.
        patience: Duration,
    },
    /// A daemon does not end.
    #[error("{daemon} (process {pid}) does not exit, even after SIGKILL")]
    Stays {
        /// The daemon.
        daemon: String,
        /// Its process id.
        pid: i32,
    },
    /// Another FRR runs in the host's network namespace.
    #[error(
        "another FRR runs in the host's network namespace ({daemon}, process {pid}): both would remove each other's routes; stop it first"
    )]
    Foreign {
        /// A daemon of it.
        daemon: String,
        /// Its process id.
        pid: i32,
    },
    /// The version cannot be found out, or is not supported.
    #[error("failed to determine the version of FRR")]
    Version(#[source] frr::UnknownVersion),
}

/// A daemon: its name, and what it is started with besides the instance.
const DAEMONS: [(&str, &[&str]); 5] = [
    ("mgmtd", &[]),
    // Routes stay in the kernel when zebra ends, and a new zebra takes them over.
    ("zebra", &["-r", "-K", KEEP_ROUTES]),
    ("staticd", &[]),
    ("bfdd", &[]),
    ("bgpd", &[]),
];

/// The zebra of the instance, wherever it is.
pub(crate) fn zebra(instance: &Instance) -> Option<Daemon> {
    of_instance(instance)
        .into_iter()
        .rfind(|daemon| daemon.name == "zebra")
}

/// The version of the running daemons, if they tell it.
pub(crate) async fn running_version(instance: &Instance, patience: Duration) -> Option<FrrVersion> {
    let text = vtysh::daemon_version(instance, "zebra", patience)
        .await
        .ok()?;
    text.parse().ok()
}

/// The version of FRR: of the running daemons, or of those that would be started.
pub(crate) async fn version(instance: &Instance, patience: Duration) -> Result<FrrVersion, Error> {
    match running_version(instance, patience).await {
        Some(version) => Ok(version),
        None => installed_version(instance.paths()).await,
    }
}

/// The version of the daemons that would be started.
pub(crate) async fn installed_version(paths: &Paths) -> Result<FrrVersion, Error> {
    let mut zebra = Command::new(paths.daemons.join("zebra"));
    let text = program::output(zebra.arg("-v"), PROGRAM_PATIENCE).await?;
    text.parse().map_err(Error::Version)
}

/// The daemons of the instance. In the host's namespace only those that run there: one of the same name in a container is not ours.
fn of_instance(instance: &Instance) -> Vec<Daemon> {
    if instance.is_host() {
        return running(instance);
    }
    process::find(&instance.paths().daemons, &names(), instance.name())
}

/// The daemons of the instance that run in its namespace.
pub(crate) fn running(instance: &Instance) -> Vec<Daemon> {
    let Some(inode) = instance.inode() else {
        return Vec::new();
    };
    let all = process::find(&instance.paths().daemons, &names(), instance.name());
    all.into_iter().filter(|it| it.namespace == inode).collect()
}

/// Whether any daemon of the instance runs.
pub(crate) fn any(instance: &Instance) -> bool {
    !of_instance(instance).is_empty()
}

/// The daemons that are installed, and whether each of them runs in the instance's namespace.
pub(crate) fn states(instance: &Instance) -> Vec<(&'static str, bool)> {
    let here = running(instance);
    let installed = names()
        .into_iter()
        .filter(|name| instance.paths().daemons.join(name).exists());
    installed
        .map(|name| (name, here.iter().any(|it| it.name == name)))
        .collect()
}

/// The daemons that are installed and do not run in the instance's namespace.
pub(crate) fn missing(instance: &Instance) -> Vec<&'static str> {
    let missing = states(instance).into_iter().filter(|(_, runs)| !runs);
    missing.map(|(name, _)| name).collect()
}

pub(crate) fn names() -> Vec<&'static str> {
    DAEMONS.iter().map(|(name, _)| *name).collect()
}

/// What was done so that all daemons run.
#[derive(Debug, Default)]
pub(crate) struct Ensured {
    /// Those that were started.
    pub(crate) started: Vec<&'static str>,
    /// What users should know of the control group.
    pub(crate) note: Option<String>,
}

/// Starts whatever daemon of the instance is not running, and waits until all of them listen. Daemons of the router's instance in
/// another namespace are ended first: they would hold the sockets. All of them are in their own control group afterwards, also one that
/// an attempt left behind that came to nothing.
pub(crate) async fn ensure(instance: &Instance, patience: Patience) -> Result<Ensured, Error> {
    let outcome = start_missing(instance, patience).await;
    let note = cgroup::own(&instance.cgroup(), &running(instance));
    let started = outcome?;
    if let Some(note) = note.as_ref().filter(|_| !started.is_empty()) {
        tracing::warn!(note);
    }
    Ok(Ensured { started, note })
}

async fn start_missing(
    instance: &Instance,
    patience: Patience,
) -> Result<Vec<&'static str>, Error> {
    let Some(inode) = instance.inode() else {
        return Err(Error::NoNamespace {
            name: instance.namespace().to_owned(),
        });
    };
    let elsewhere: Vec<_> = of_instance(instance)
        .into_iter()
        .filter(|it| it.namespace != inode)
        .collect();
    if !elsewhere.is_empty() {
        tracing::warn!(daemons = ?elsewhere, "FRR daemons in another network namespace are stopped");
        end(&elsewhere, patience).await?;
    }
    let missing = missing(instance);
    if missing.is_empty() {
        return Ok(missing);
    }
    // A zebra takes routes of any other FRR in its namespace for its own of an earlier life, and removes them.
    if let Some(other) = instance.foreign().first().filter(|_| instance.is_host()) {
        return Err(Error::Foreign {
            daemon: other.name.clone(),
            pid: other.pid,
        });
    }
    prepare(instance, patience).await?;
    for (name, arguments) in DAEMONS {
        if missing.contains(&name) {
            start(instance, name, arguments, patience).await?;
        }
    }
    Ok(missing)
}

/// The directories that daemons need. Those of FRR's user are made by a program that runs as that user.
async fn prepare(instance: &Instance, patience: Patience) -> Result<(), Error> {
    let (uid, gid) = process::user(USER).ok_or(Error::NoUser)?;
    for directory in [instance.sockets(), instance.etc()] {
        let mut make = Command::new("mkdir");
        make.arg("-p").arg(&directory).uid(uid).gid(gid);
        program::output(&mut make, patience.at_most(PROGRAM_PATIENCE)).await?;
    }
    let mut touch = Command::new("touch");
    touch.arg(instance.shells());
    let patience = patience.at_most(PROGRAM_PATIENCE);
    program::output(touch.uid(uid).gid(gid), patience).await?;
    let runtime = &instance.paths().runtime;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o711)
        .create(runtime)
        .map_err(file::failed("make", runtime))?;
    log_of_daemon(&instance.command_log(), gid)?;
    if instance.is_host() {
        log_of_daemon(&instance.event_log(), gid)?;
    }
    Ok(())
}

/// A file of root's, in a directory of root's, that FRR's group may write.
fn log_of_daemon(log: &Path, group: u32) -> Result<(), Error> {
    let file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o620)
        .open(log)
        .map_err(file::failed("make", log))?;
    std::os::unix::fs::fchown(&file, None, Some(group))
        .and_then(|()| file.set_permissions(std::fs::Permissions::from_mode(0o620)))
        .map_err(file::failed("set the permissions of", log))?;
    Ok(())
}

/// What a daemon is started with besides what all have: the logs that the agent reads.
fn more_arguments(instance: &Instance, name: &str) -> Vec<String> {
    let to_file = |path: PathBuf| format!("file:{}", path.display());
    match name {
        "staticd" => vec![
            "--command-log-always".to_owned(),
            "--log".to_owned(),
            to_file(instance.command_log()),
        ],
        // The host may have a BGP speaker of its own: ours does not listen.
        "bgpd" if instance.is_host() => vec![
            "-p".to_owned(),
            "0".to_owned(),
            "--log".to_owned(),
            to_file(instance.event_log()),
            "--log-level".to_owned(),
            "debugging".to_owned(),
        ],
        _ => Vec::new(),
    }
}

/// Starts a daemon, which leaves its parent. What it prints goes into a file: a pipe would stay open as long as it runs.
async fn start(
    instance: &Instance,
    name: &str,
    arguments: &[&str],
    patience: Patience,
) -> Result<(), Error> {
    let run = instance.sockets();
    let log = instance.output(name);
    let file = std::fs::File::create(&log).map_err(file::failed("create", &log))?;
    let copy = file.try_clone().map_err(file::failed("open", &log))?;
    let program = instance.paths().daemons.join(name);
    let mut command = match instance.namespace_file() {
        Some(namespace) => {
            let mut enter = Command::new("nsenter");
            let namespace = format!("--net={}", namespace.display());
            enter.arg(namespace).arg("--").arg(program);
            enter
        }
        None => Command::new(program),
    };
    // No TCP port for its command line: the Unix socket is enough.
    command
        .args(["-d", "-N", instance.name(), "-P", "0", "-i"])
        .arg(run.join(format!("{name}.pid")))
        .args(more_arguments(instance, name))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(copy)
        .kill_on_drop(true);
    let failed = |source| program::Error::Run {
        program: name.to_owned(),
        source,
    };
    let mut child = command.spawn().map_err(failed)?;
    let starting = patience.at_most(START_PATIENCE);
    let status = match time::timeout(starting, child.wait()).await {
        Ok(status) => status.map_err(failed)?,
        Err(_elapsed) => {
            let program = name.to_owned();
            let patience = starting;
            return Err(program::Error::Deadline { program, patience }.into());
        }
    };
    if !status.success() {
        let message = std::fs::read_to_string(&log).unwrap_or_default();
        return Err(program::Error::Failed {
            program: name.to_owned(),
            message: message.trim().to_owned(),
        }
        .into());
    }
    listening(&run, name, patience.at_most(START_PATIENCE)).await
}

async fn listening(run: &Path, daemon: &str, patience: Duration) -> Result<(), Error> {
    let socket = run.join(format!("{daemon}.vty"));
    let answers = async {
        while UnixStream::connect(&socket).await.is_err() {
            time::sleep(POLL).await;
        }
    };
    let silent = |_elapsed| Error::Silent {
        daemon: daemon.to_owned(),
        socket: socket.clone(),
        patience,
    };
    time::timeout(patience, answers).await.map_err(silent)
}

/// Stops all daemons of the instance; the kernel keeps what they have put into it.
pub(crate) async fn stop(instance: &Instance, patience: Patience) -> Result<(), Error> {
    end(&of_instance(instance), patience).await
}

/// Removes the control group, the directories and the files of an instance that has ended. Those of FRR's user are removed by a program
/// that runs as that user.
pub(crate) async fn remove(instance: &Instance, patience: Patience) -> Result<(), Error> {
    if let Some((uid, gid)) = process::user(USER) {
        for directory in [instance.sockets(), instance.etc()] {
            if directory.exists() {
                let mut remove = Command::new("rm");
                remove
                    .arg("-rf")
                    .arg("--")
                    .arg(&directory)
                    .uid(uid)
                    .gid(gid);
                program::output(&mut remove, patience.at_most(PROGRAM_PATIENCE)).await?;
            }
        }
    }
    let runtime = &instance.paths().runtime;
    instance
        .remove_files()
        .map_err(file::failed("remove files of FRR in", runtime))?;
    let group = instance.cgroup();
    let removed = cgroup::remove(&group).await;
    removed.map_err(file::failed("remove", &group))?;
    Ok(())
}

/// Ends daemons, one after the other: those that talk to others first. What is left of them after that is killed.
async fn end(daemons: &[Daemon], patience: Patience) -> Result<(), Error> {
    let order = |daemon: &&Daemon| names().iter().position(|name| *name == daemon.name);
    let mut daemons: Vec<&Daemon> = daemons.iter().collect();
    daemons.sort_by_key(order);
    for signal in [Signal::TERM, Signal::KILL] {
        let ended = async {
            for daemon in daemons.iter().rev() {
                daemon.signal(signal);
                // A stopped process acts on no signal but this one and its end.
                daemon.signal(Signal::CONT);
                while daemon.is_alive() {
                    time::sleep(POLL).await;
                }
            }
        };
        let patience = patience.at_most(STOP_PATIENCE);
        if time::timeout(patience, ended).await.is_ok() {
            return Ok(());
        }
    }
    let left = daemons.iter().find(|daemon| daemon.is_alive());
    left.map_or(Ok(()), |daemon| {
        Err(Error::Stays {
            daemon: daemon.name.clone(),
            pid: daemon.pid,
        })
    })
}

/// The daemons of our instance that were started from this directory.
#[cfg(test)]
pub(crate) fn found_in(directory: &Path) -> Vec<Daemon> {
    process::find(directory, &names(), "router")
}
