//! A user-mode-Linux guest: a whole kernel with VRFs and VLANs, as a process of this machine.
//!
//! Its root is a Debian tree, read-only; a folder of this machine is its `/share`; a tap in the lab's namespace is its
//! management network, over which a small service in the guest runs commands.

mod talk;

use std::fs;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::host::{self, Host, Record, Running};
use crate::namespace::{self, Namespace};
use crate::parts::Tree;
use crate::process::{self, Daemon, tail};
use crate::report;
use crate::scratch;

const INIT: &str = include_str!("guest/init.sh");
const SERVICE: &str = include_str!("guest/serve.pl");
const PORT: u16 = 1025;
const UP_WITHIN: Duration = Duration::from_mins(1);
/// Even a guest that is very busy has started a command by then.
const STARTED_WITHIN: Duration = Duration::from_secs(20);

/// What can go wrong with a guest.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What is handed to the guest could not be written.
    #[error("failed to write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The kernel could not be started.
    #[error("failed to start the guest {name}")]
    Start {
        /// The guest.
        name: String,
        /// What the program said.
        #[source]
        source: process::Error,
    },
    /// Its network could not be made.
    #[error("failed to plug in the guest {name}")]
    Plug {
        /// The guest.
        name: String,
        /// What the program said.
        #[source]
        source: namespace::Error,
    },
    /// It did not come up.
    #[error("the guest {name} did not come up; its console says:\n{console}")]
    NotUp {
        /// The guest.
        name: String,
        /// The end of what it printed.
        console: String,
    },
}

/// What a guest is booted with.
#[derive(Debug, Clone)]
pub struct Config<'a> {
    /// Its host name.
    pub name: &'a str,
    /// Its address on the management network, whose bridge is `mgmt`.
    pub address: Ipv4Addr,
    /// Bridges of the lab's namespace that its further NICs `vec1`, `vec2`, … are plugged into.
    pub bridges: &'a [String],
    /// Memory in MiB.
    pub memory: u32,
}

/// A guest that runs; dropping it cuts its power.
#[derive(Debug)]
pub struct Guest {
    name: String,
    command_line: Vec<String>,
    kernel: Mutex<Daemon>,
    namespace: Arc<Namespace>,
    address: SocketAddr,
    connections: Mutex<Vec<Weak<TcpStream>>>,
    up_after: Duration,
    share: PathBuf,
    // Removed last.
    folder: TempDir,
}

impl Guest {
    /// Boots a guest and waits until it takes commands.
    pub fn boot(
        tree: &Tree,
        namespace: &Arc<Namespace>,
        config: &Config<'_>,
    ) -> Result<Self, Error> {
        let start = Instant::now();
        let write = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Write { path, source }
        };
        let folder = scratch::folder(config.name).map_err(write(&std::env::temp_dir()))?;
        let share = folder.path().join("share");
        fs::create_dir(&share).map_err(write(&share))?;
        for (file, text) in [("init", INIT), ("serve.pl", SERVICE)] {
            fs::write(share.join(file), text).map_err(write(&share.join(file)))?;
        }
        let command_line = command_line(tree, namespace, config, folder.path(), &share)?;
        let kernel = power_on(config.name, &command_line, folder.path())?;
        let mut guest = Self {
            name: config.name.to_owned(),
            command_line,
            kernel: Mutex::new(kernel),
            namespace: Arc::clone(namespace),
            address: SocketAddr::new(config.address.into(), PORT),
            connections: Mutex::default(),
            up_after: Duration::ZERO,
            share,
            folder,
        };
        guest.wait_until_up(start)?;
        guest.up_after = start.elapsed();
        Ok(guest)
    }

    /// How long it took until the guest took commands.
    pub fn up_after(&self) -> Duration {
        self.up_after
    }

    /// Everything that the guest has printed on its console since it was last powered on.
    pub fn console(&self) -> String {
        lock(&self.kernel).output()
    }

    /// Cuts the power.
    pub fn kill(&self) {
        lock(&self.kernel).stop();
        for stream in lock(&self.connections)
            .drain(..)
            .filter_map(|connection| connection.upgrade())
        {
            // A dead peer does not hang up; a connection that is closed already needs no closing.
            stream.shutdown(Shutdown::Both).unwrap_or_default();
        }
    }

    /// Cuts the power, powers on again, and waits until the guest takes commands. Only its share is as it was.
    pub fn reboot(&self) -> Result<(), Error> {
        self.kill();
        let start = Instant::now();
        *lock(&self.kernel) = power_on(&self.name, &self.command_line, self.folder.path())?;
        self.wait_until_up(start)
    }

    fn wait_until_up(&self, start: Instant) -> Result<(), Error> {
        while !self.answers() {
            if lock(&self.kernel).ended() || start.elapsed() > UP_WITHIN {
                let console = tail(&self.console(), 30);
                return Err(Error::NotUp {
                    name: self.name.clone(),
                    console,
                });
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Whether the guest takes commands. Impatient: what is sent before it listens is lost, and is only sent again after
    /// a second.
    fn answers(&self) -> bool {
        let patience = Duration::from_millis(200);
        let stream = self.namespace.connect(self.address, patience);
        stream.is_ok_and(|stream| talk::ask(&stream, &["true"], "", 5 * patience).is_ok())
    }

    fn remember(&self, stream: &Arc<TcpStream>) {
        let mut connections = lock(&self.connections);
        connections.retain(|connection| connection.strong_count() > 0);
        connections.push(Arc::downgrade(stream));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn power_on(name: &str, command_line: &[String], folder: &Path) -> Result<Daemon, Error> {
    let argv: Vec<&str> = command_line.iter().map(String::as_str).collect();
    Daemon::start(&argv, &folder.join("console.log"), Duration::ZERO).map_err(|source| {
        Error::Start {
            name: name.to_owned(),
            source,
        }
    })
}

fn command_line(
    tree: &Tree,
    namespace: &Namespace,
    config: &Config<'_>,
    folder: &Path,
    share: &Path,
) -> Result<Vec<String>, Error> {
    let plug = |source| Error::Plug {
        name: config.name.to_owned(),
        source,
    };
    let mut argv: Vec<String> = namespace.prefix().into();
    // A process namespace of its own takes all processes of the guest along when it goes.
    let wrapper = [
        "unshare",
        "--pid",
        "--fork",
        "--mount-proc",
        "--kill-child=KILL",
        "--",
    ];
    argv.extend(wrapper.map(str::to_owned));
    argv.push(tree.kernel().display().to_string());
    argv.extend(
        [
            "rootfstype=hostfs".to_owned(),
            format!("rootflags={}", tree.root().display()),
            "ro".to_owned(),
            format!("mem={}M", config.memory),
            "init=/lab/init".to_owned(),
            format!("share={}", share.display()),
            format!("modules={}", tree.modules().display()),
            format!("name={}", config.name),
            format!("address={}/16", config.address),
            format!("port={PORT}"),
            "con=null con0=fd:0,fd:1 quiet seccomp=on panic=1".to_owned(),
            format!("uml_dir={}", folder.display()),
            "umid=guest".to_owned(),
        ]
        .iter()
        .flat_map(|words| words.split(' '))
        .map(str::to_owned),
    );
    for (number, bridge) in ["mgmt"]
        .into_iter()
        .chain(config.bridges.iter().map(String::as_str))
        .enumerate()
    {
        let tap = format!("{}-{number}", config.name);
        namespace.tap(&tap, bridge).map_err(plug)?;
        // Like a card, it has the same hardware address after a reboot; the neighbors still remember it.
        let [_, a, b, c] = config.address.octets();
        let mac = format!("02:00:{a:02x}:{b:02x}:{c:02x}:{number:02x}");
        if number == 0 {
            namespace
                .neighbor(config.address, &mac, bridge)
                .map_err(plug)?;
        }
        argv.push(format!(
            "vec{number}:transport=tap,ifname={tap},depth=128,mtu=9000,mac={mac}"
        ));
    }
    Ok(argv)
}

impl Drop for Guest {
    fn drop(&mut self) {
        report::logs_if_panicking(self.folder.path());
        report::logs_if_panicking(&self.share.join("logs"));
    }
}

impl Host for Guest {
    fn start(&self, argv: &[&str], stdin: &str) -> Result<Running, host::Error> {
        let command = || argv.join(" ");
        if lock(&self.kernel).ended() {
            return Err(host::Error::CutOff { command: command() });
        }
        let stream = Arc::new(self.namespace.connect(self.address, STARTED_WITHIN)?);
        self.remember(&stream);
        let (answers, pid) = talk::ask(&stream, argv, stdin, STARTED_WITHIN).map_err(|source| {
            host::Error::Speak {
                command: command(),
                source,
            }
        })?;
        let record = Record::default();
        let watch = record.clone();
        thread::spawn(move || answers.record(&watch));
        let send = move |signal: Signal| {
            // A guest that is gone needs no signal.
            drop((&*stream).write_all(format!("{}\n", signal.as_raw()).as_bytes()));
        };
        Ok(Running::new(argv, pid, record, Box::new(send)))
    }

    fn tree(&self) -> &'static str {
        "/"
    }

    fn share(&self) -> &Path {
        &self.share
    }

    fn share_seen(&self) -> &'static str {
        "/share"
    }
}
