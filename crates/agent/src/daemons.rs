//! FRR's daemons in the router's namespace: started, found again, watched and stopped.
//!
//! They live in a control group of their own, so that what ends the agent's does not end them. They are found among the
//! processes of the machine by program, instance and network namespace: a process id in a file, or a socket that answers,
//! may belong to a daemon in a namespace that no longer has a name. Directories of FRR's user are only ever touched by
//! programs that run as that user: root would follow a symbolic link that a compromised daemon has put there.

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

pub(crate) use self::process::{Daemon, exits, namespace_inode};
use crate::{file, patience::Patience, program, vtysh};

/// Name of the FRR instance that routes for the router domain.
pub(crate) const INSTANCE: &str = "router";

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
    /// The control group of the daemons. Where there is no such hierarchy, they stay in the agent's.
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
    /// The configuration that a fresh FRR is given: the confirmed one.
    pub(crate) fn frr_conf(&self) -> PathBuf {
        self.state.join("frr.conf")
    }

    /// The token of the node's own account.
    pub fn token(&self) -> PathBuf {
        self.runtime.join("token")
    }

    /// The file that every vtysh of the instance reads when it starts.
    pub(crate) fn shells(&self) -> PathBuf {
        self.etc.join(INSTANCE).join("vtysh.conf")
    }

    /// The commands that staticd was given: they show when a user configures FRR by hand.
    pub(crate) fn command_log(&self) -> PathBuf {
        self.runtime.join("frr-commands.log")
    }
}

/// Why FRR could not be brought up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory could not be used.
    #[error(transparent)]
    File(#[from] file::Error),
    /// The router's namespace has gone.
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

/// The zebra of our instance, wherever it is.
pub(crate) fn zebra(paths: &Paths) -> Option<Daemon> {
    process::find(&paths.daemons, &["zebra"]).pop()
}

/// The version of the running daemons, if they tell it.
pub(crate) async fn running_version(paths: &Paths, patience: Duration) -> Option<FrrVersion> {
    let text = vtysh::daemon_version(&paths.run, "zebra", patience)
        .await
        .ok()?;
    text.parse().ok()
}

/// The version of FRR: of the running daemons, or of those that would be started.
pub(crate) async fn version(paths: &Paths, patience: Duration) -> Result<FrrVersion, Error> {
    match running_version(paths, patience).await {
        Some(version) => Ok(version),
        None => installed_version(paths).await,
    }
}

/// The version of the daemons that would be started.
pub(crate) async fn installed_version(paths: &Paths) -> Result<FrrVersion, Error> {
    let mut zebra = Command::new(paths.daemons.join("zebra"));
    let text = program::output(zebra.arg("-v"), PROGRAM_PATIENCE).await?;
    text.parse().map_err(Error::Version)
}

/// The daemons of our instance that run in this namespace.
pub(crate) fn running(paths: &Paths, namespace: &str) -> Vec<Daemon> {
    let Some(inode) = namespace_inode(namespace) else {
        return Vec::new();
    };
    let all = process::find(&paths.daemons, &names());
    all.into_iter().filter(|it| it.namespace == inode).collect()
}

/// Whether any daemon of our instance runs, wherever.
pub(crate) fn any(paths: &Paths) -> bool {
    !process::find(&paths.daemons, &names()).is_empty()
}

/// The daemons that are installed and do not run in this namespace.
pub(crate) fn missing(paths: &Paths, namespace: &str) -> Vec<&'static str> {
    let here = running(paths, namespace);
    let installed = names()
        .into_iter()
        .filter(|name| paths.daemons.join(name).exists());
    installed
        .filter(|name| !here.iter().any(|it| it.name == *name))
        .collect()
}

pub(crate) fn names() -> Vec<&'static str> {
    DAEMONS.iter().map(|(name, _)| *name).collect()
}

/// Starts whatever daemon is not running in the namespace, and waits until all of them listen. Daemons of our instance in
/// another namespace are ended first: they would hold the sockets.
pub(crate) async fn ensure(
    paths: &Paths,
    namespace: &str,
    patience: Patience,
) -> Result<Vec<&'static str>, Error> {
    let Some(inode) = namespace_inode(namespace) else {
        return Err(Error::NoNamespace {
            name: namespace.to_owned(),
        });
    };
    let found = process::find(&paths.daemons, &names());
    let elsewhere: Vec<_> = found
        .into_iter()
        .filter(|it| it.namespace != inode)
        .collect();
    if !elsewhere.is_empty() {
        tracing::warn!(daemons = ?elsewhere, "FRR daemons in another network namespace are stopped");
        end(&elsewhere, patience).await?;
    }
    let missing = missing(paths, namespace);
    if missing.is_empty() {
        return Ok(missing);
    }
    prepare(paths, patience).await?;
    for (name, arguments) in DAEMONS {
        if missing.contains(&name) {
            start(paths, namespace, name, arguments, patience).await?;
        }
    }
    own_cgroup(paths, &running(paths, namespace));
    Ok(missing)
}

/// The directories that daemons need. Those of FRR's user are made by a program that runs as that user.
async fn prepare(paths: &Paths, patience: Patience) -> Result<(), Error> {
    let (uid, gid) = process::user(USER).ok_or(Error::NoUser)?;
    for directory in [&paths.run, &paths.etc] {
        let directory = directory.join(INSTANCE);
        let mut make = Command::new("mkdir");
        make.arg("-p").arg(&directory).uid(uid).gid(gid);
        program::output(&mut make, patience.at_most(PROGRAM_PATIENCE)).await?;
    }
    let mut touch = Command::new("touch");
    touch.arg(paths.shells());
    let patience = patience.at_most(PROGRAM_PATIENCE);
    program::output(touch.uid(uid).gid(gid), patience).await?;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o711)
        .create(&paths.runtime)
        .map_err(file::failed("make", &paths.runtime))?;
    let log = paths.command_log();
    // A file of root's, in a directory of root's, that FRR's group may write.
    let file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o620)
        .open(&log)
        .map_err(file::failed("make", &log))?;
    std::os::unix::fs::fchown(&file, None, Some(gid))
        .and_then(|()| file.set_permissions(std::fs::Permissions::from_mode(0o620)))
        .map_err(file::failed("set the permissions of", &log))?;
    Ok(())
}

/// Starts a daemon, which leaves its parent. What it prints goes into a file: a pipe would stay open as long as it runs.
async fn start(
    paths: &Paths,
    namespace: &str,
    name: &str,
    arguments: &[&str],
    patience: Patience,
) -> Result<(), Error> {
    let run = paths.run.join(INSTANCE);
    let log = paths.runtime.join(format!("{name}.log"));
    let file = std::fs::File::create(&log).map_err(file::failed("create", &log))?;
    let copy = file.try_clone().map_err(file::failed("open", &log))?;
    let mut command = Command::new("nsenter");
    command
        .arg(format!("--net=/run/netns/{namespace}"))
        .arg("--")
        .arg(paths.daemons.join(name));
    // No TCP port for its command line: the Unix socket is enough.
    command
        .args(["-d", "-N", INSTANCE, "-P", "0", "-i"])
        .arg(run.join(format!("{name}.pid")));
    if name == "staticd" {
        let log = paths.command_log();
        let log = format!("file:{}", log.display());
        command.args(["--command-log-always", "--log", &log]);
    }
    command
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

/// Puts the daemons into a control group of their own. Where that cannot be made, they share the agent's fate, and the log
/// says so.
fn own_cgroup(paths: &Paths, daemons: &[Daemon]) {
    let moved = std::fs::create_dir_all(&paths.cgroup).and_then(|()| {
        daemons.iter().try_for_each(|daemon| {
            std::fs::write(paths.cgroup.join("cgroup.procs"), daemon.pid.to_string())
        })
    });
    if let Err(error) = moved {
        let cgroup = paths.cgroup.display();
        tracing::warn!(%cgroup, %error, "FRR stays in the agent's control group and stops with the agent");
    }
}

/// Stops all daemons of our instance, wherever they are; the kernel keeps what they have put into it.
pub(crate) async fn stop(paths: &Paths, patience: Patience) -> Result<(), Error> {
    end(&process::find(&paths.daemons, &names()), patience).await
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
