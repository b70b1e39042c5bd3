//! FRR's daemons in the router's namespace: started when they are missing, never stopped.

use std::{
    io,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use frr::FrrVersion;
use tokio::{fs, net::UnixStream, process::Command, time};

/// Name of the FRR instance that routes for the router domain.
pub(crate) const INSTANCE: &str = "router";

/// How long a daemon may take until it listens.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// How long zebra keeps routes of an earlier life until their owners have claimed them again.
const KEEP_ROUTES: &str = "120";

/// Where FRR lives on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// Directory of the daemons.
    pub daemons: PathBuf,
    /// Directory of their sockets and process ids.
    pub run: PathBuf,
    /// Directory of their configuration.
    pub etc: PathBuf,
}

impl Default for Paths {
    fn default() -> Self {
        Self {
            daemons: "/usr/lib/frr".into(),
            run: "/run/frr".into(),
            etc: "/etc/frr".into(),
        }
    }
}

/// Why FRR could not be brought up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A directory could not be made.
    #[error("failed to make {path}")]
    MakeDirectory {
        /// Which.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
    /// A program could not be run.
    #[error("failed to run {program}")]
    Run {
        /// Which.
        program: String,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
    /// A program ended with an error.
    #[error("{program} failed: {message}")]
    Refused {
        /// Which.
        program: String,
        /// What it said.
        message: String,
    },
    /// A daemon does not listen.
    #[error("{daemon} does not listen on {socket} after {START_PATIENCE:?}")]
    Silent {
        /// Which.
        daemon: String,
        /// Where.
        socket: PathBuf,
    },
    /// A daemon does not end.
    #[error("{daemon} does not end {START_PATIENCE:?} after it was told to")]
    Stays {
        /// Which.
        daemon: String,
    },
    /// The version cannot be told, or is none that we speak.
    #[error("failed to tell the version of FRR")]
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

/// The version of FRR that is installed.
pub(crate) async fn version(paths: &Paths) -> Result<FrrVersion, Error> {
    let text = output(Command::new(paths.daemons.join("zebra")).arg("-v")).await?;
    text.parse().map_err(Error::Version)
}

/// Starts whatever daemon is not running in the namespace, and waits until all of them listen.
pub(crate) async fn ensure(paths: &Paths, namespace: &str) -> Result<Vec<&'static str>, Error> {
    let run = paths.run.join(INSTANCE);
    let etc = paths.etc.join(INSTANCE);
    for directory in [&run, &etc] {
        fs::create_dir_all(directory)
            .await
            .map_err(|source| Error::MakeDirectory {
                path: directory.clone(),
                source,
            })?;
        output(Command::new("chown").arg("frr:frr").arg(directory)).await?;
    }
    let conf = etc.join("vtysh.conf");
    fs::write(&conf, "")
        .await
        .map_err(|source| Error::MakeDirectory { path: conf, source })?;
    let mut started = Vec::new();
    for (daemon, arguments) in DAEMONS {
        let program = paths.daemons.join(daemon);
        // Versions before 10 have no mgmtd.
        if !fs::try_exists(&program).await.unwrap_or(false) || is_running(&run, daemon).await {
            continue;
        }
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/run/netns/{namespace}"))
            .arg("--")
            .arg(&program);
        command
            .args(["-d", "-N", INSTANCE, "-i"])
            .arg(run.join(format!("{daemon}.pid")))
            .args(arguments);
        start(&mut command, daemon, &run).await?;
        listening(&run, daemon).await?;
        started.push(daemon);
    }
    Ok(started)
}

/// Stops all daemons of our instance; the kernel keeps what they have put into it.
pub(crate) async fn stop(paths: &Paths) -> Result<(), Error> {
    let run = paths.run.join(INSTANCE);
    // The ones that talk to others go first.
    for (daemon, _) in DAEMONS.iter().rev() {
        if !is_running(&run, daemon).await {
            continue;
        }
        let file = run.join(format!("{daemon}.pid"));
        let text = fs::read_to_string(&file).await.unwrap_or_default();
        output(Command::new("kill").arg(text.trim())).await?;
        let gone = async {
            while is_running(&run, daemon).await {
                time::sleep(Duration::from_millis(20)).await;
            }
        };
        let stays = |_elapsed| Error::Stays {
            daemon: (*daemon).to_owned(),
        };
        time::timeout(START_PATIENCE, gone).await.map_err(stays)?;
    }
    Ok(())
}

/// Whether the daemon of this name answers on its socket. A process id alone could be somebody else's by now.
async fn is_running(run: &Path, daemon: &str) -> bool {
    UnixStream::connect(socket(run, daemon)).await.is_ok()
}

fn socket(run: &Path, daemon: &str) -> PathBuf {
    run.join(format!("{daemon}.vty"))
}

async fn listening(run: &Path, daemon: &str) -> Result<(), Error> {
    let silent = || Error::Silent {
        daemon: daemon.to_owned(),
        socket: socket(run, daemon),
    };
    time::timeout(START_PATIENCE, async {
        while !is_running(run, daemon).await {
            time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .map_err(|_elapsed| silent())
}

/// Starts a daemon, which leaves its parent. What it prints goes into a file: a pipe would stay open as long as it lives.
async fn start(command: &mut Command, daemon: &str, run: &Path) -> Result<(), Error> {
    let log = run.join(format!("{daemon}.log"));
    let failed = |source| Error::Run {
        program: daemon.to_owned(),
        source,
    };
    let file = std::fs::File::create(&log).map_err(failed)?;
    let copy = file.try_clone().map_err(failed)?;
    let status = command
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(copy)
        .status()
        .await
        .map_err(failed)?;
    if status.success() {
        return Ok(());
    }
    let message = fs::read_to_string(&log)
        .await
        .unwrap_or_default()
        .trim()
        .to_owned();
    Err(Error::Refused {
        program: daemon.to_owned(),
        message,
    })
}

/// What a program prints, if it ends well.
async fn output(command: &mut Command) -> Result<String, Error> {
    let program = command
        .as_std()
        .get_program()
        .to_string_lossy()
        .into_owned();
    let output = command.output().await.map_err(|source| Error::Run {
        program: program.clone(),
        source,
    })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    Err(Error::Refused {
        program,
        message: format!("{} {}", text(&output.stdout), text(&output.stderr)),
    })
}
