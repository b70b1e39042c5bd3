//! A real control plane: etcd, kube-apiserver, kube-controller-manager, and kube-scheduler where it is asked for.

mod etcd;
mod kubeconfig;

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub use etcd::Etcd;
pub use kubeconfig::User;

use crate::namespace::Namespace;
use crate::parts::Kubernetes;
use crate::process::{self, Daemon, run, tail};
use crate::report;
use crate::scratch;

/// How long a server has to end by itself. An API server whose etcd is gone would take forever.
const GRACE: Duration = Duration::from_secs(2);
const READY_WITHIN: Duration = Duration::from_secs(90);

/// What can go wrong with a control plane.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be touched.
    #[error("failed to {what} {}", path.display())]
    File {
        /// The operation.
        what: &'static str,
        /// Its object.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// No free port on loopback.
    #[error("failed to find a free port")]
    FindPort {
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A program could not be started, or a step of the set-up failed.
    #[error("failed to {step}")]
    Step {
        /// The step.
        step: &'static str,
        /// What went wrong.
        #[source]
        source: process::Error,
    },
    /// The API server did not get ready.
    #[error("the API server was not ready after {seconds} s; its last words:\n{log}")]
    NotReady {
        /// How long we waited.
        seconds: u64,
        /// The end of its log.
        log: String,
    },
    /// A user was asked for that the control plane was not started with.
    #[error("the control plane knows no user {name}")]
    UnknownUser {
        /// The name.
        name: String,
    },
}

/// What a control plane is started with; see [`ControlPlane::builder`].
#[derive(Debug)]
pub struct Builder<'a> {
    kubernetes: &'a Kubernetes,
    users: Vec<User>,
    site: Option<(&'a Namespace, IpAddr)>,
    etcd: Option<(Arc<Etcd>, String)>,
    scheduler: bool,
}

/// A running control plane; dropping it stops and removes all of it.
#[derive(Debug)]
pub struct ControlPlane {
    // The order matters: controllers, then the API server, then etcd, then the files.
    servers: Vec<Daemon>,
    etcd: Arc<Etcd>,
    folder: TempDir,
    kubectl: PathBuf,
    prefix: Vec<String>,
    url: String,
    users: Vec<User>,
    ready_after: Duration,
}

impl<'a> Builder<'a> {
    /// Adds somebody with a token; what they may do is up to RBAC.
    pub fn user(mut self, user: User) -> Self {
        self.users.push(user);
        self
    }

    /// Puts everything into a namespace, with the API server at `address` and port 6443.
    pub fn inside(mut self, namespace: &'a Namespace, address: IpAddr) -> Self {
        self.site = Some((namespace, address));
        self
    }

    /// Shares an etcd with other control planes, each under a prefix of its own.
    pub fn etcd(mut self, etcd: &Arc<Etcd>, prefix: &str) -> Self {
        self.etcd = Some((Arc::clone(etcd), prefix.to_owned()));
        self
    }

    /// Adds a scheduler.
    pub fn scheduler(mut self) -> Self {
        self.scheduler = true;
        self
    }

    /// Starts everything and waits until the API server is ready.
    pub fn start(self) -> Result<ControlPlane, Error> {
        let start = Instant::now();
        let folder = scratch::folder("control-plane").map_err(|source| Error::File {
            what: "create a folder in",
            path: std::env::temp_dir(),
            source,
        })?;
        let prefix: Vec<String> = self
            .site
            .map(|(ns, _)| ns.prefix().into())
            .unwrap_or_default();
        let (etcd, etcd_prefix) = match self.etcd {
            Some(shared) => shared,
            None => (
                Arc::new(Etcd::start(self.kubernetes, self.site.map(|(ns, _)| ns))?),
                "/registry".to_owned(),
            ),
        };
        let address = match self.site {
            Some((_, address)) => SocketAddr::new(address, 6443),
            None => free_address()?,
        };
        let mut plane = ControlPlane {
            servers: Vec::new(),
            etcd,
            folder,
            kubectl: self.kubernetes.program("kubectl"),
            prefix,
            url: format!("https://{address}"),
            users: self.users,
            ready_after: Duration::ZERO,
        };
        plane.start_api_server(self.kubernetes, address, &etcd_prefix)?;
        plane.wait_until_ready()?;
        plane.write_kubeconfigs()?;
        plane.start_controllers(self.kubernetes, self.scheduler)?;
        plane.ready_after = start.elapsed();
        Ok(plane)
    }
}

impl ControlPlane {
    /// A control plane on loopback with an etcd of its own and one user, the administrator.
    pub fn builder(kubernetes: &Kubernetes) -> Builder<'_> {
        let users = vec![User::new("admin", &["system:masters"])];
        Builder {
            kubernetes,
            users,
            site: None,
            etcd: None,
            scheduler: false,
        }
    }

    /// Where the API server is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// How long the start took.
    pub fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// The kubeconfig file of a user; it holds everything needed and may be copied elsewhere.
    pub fn kubeconfig(&self, user: &str) -> Result<PathBuf, Error> {
        let known = self.users.iter().find(|known| known.name == user);
        let known = known.ok_or_else(|| Error::UnknownUser {
            name: user.to_owned(),
        })?;
        Ok(self.folder.path().join(known.file_name()))
    }

    /// Runs kubectl as the administrator.
    pub fn kubectl(&self, arguments: &[&str], stdin: &str) -> Result<String, Error> {
        self.kubectl_as("admin", arguments, stdin)
    }

    /// Runs kubectl as one of the users.
    pub fn kubectl_as(&self, user: &str, arguments: &[&str], stdin: &str) -> Result<String, Error> {
        let mut command = self.kubectl_command();
        command
            .arg("--kubeconfig")
            .arg(self.kubeconfig(user)?)
            .args(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let step = |source| Error::Step {
            step: "run kubectl",
            source,
        };
        let failed = |command: &Command, source| {
            step(process::Error::Start {
                command: process::line(command),
                source,
            })
        };
        let mut child = command.spawn().map_err(|source| failed(&command, source))?;
        if let Some(mut pipe) = child.stdin.take() {
            // A kubectl that does not read its input says what it has to say on its output.
            drop(pipe.write_all(stdin.as_bytes()));
        }
        let output = child
            .wait_with_output()
            .map_err(|source| failed(&command, source))?;
        process::checked(&command, &output).map_err(step)
    }

    /// The process ids of everything that belongs to it.
    pub fn pids(&self) -> Vec<u32> {
        self.servers
            .iter()
            .map(Daemon::pid)
            .chain([self.etcd.pid()])
            .collect()
    }

    fn kubectl_command(&self) -> Command {
        let mut command = self.inside(&self.kubectl);
        command
            .arg("--cache-dir")
            .arg(self.folder.path().join("cache"));
        command
    }

    fn inside(&self, program: &Path) -> Command {
        let mut words = self.prefix.iter();
        match words.next() {
            None => Command::new(program),
            Some(first) => {
                let mut command = Command::new(first);
                command.args(words).arg(program);
                command
            }
        }
    }

    fn certificate(&self) -> PathBuf {
        self.folder.path().join("apiserver.crt")
    }

    fn start_server(&mut self, program: &Path, arguments: &[String]) -> Result<(), Error> {
        let name = program
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let program = program.display().to_string();
        let mut argv: Vec<&str> = self.prefix.iter().map(String::as_str).collect();
        argv.push(&program);
        argv.extend(arguments.iter().map(String::as_str));
        let log = self.folder.path().join(format!("{name}.log"));
        let server = Daemon::start(&argv, &log, GRACE).map_err(|source| Error::Step {
            step: "start a server",
            source,
        })?;
        self.servers.insert(0, server);
        Ok(())
    }

    fn start_api_server(
        &mut self,
        kubernetes: &Kubernetes,
        address: SocketAddr,
        etcd_prefix: &str,
    ) -> Result<(), Error> {
        let folder = self.folder.path();
        let key = folder.join("service-accounts.key");
        run(Command::new("openssl")
            .args([
                "ecparam",
                "-name",
                "prime256v1",
                "-genkey",
                "-noout",
                "-out",
            ])
            .arg(&key))
        .map_err(|source| Error::Step {
            step: "make the key of the service accounts",
            source,
        })?;
        let tokens = folder.join("tokens.csv");
        let lines: String = self.users.iter().map(User::token_line).collect();
        fs::write(&tokens, lines).map_err(|source| Error::File {
            what: "write",
            path: tokens.clone(),
            source,
        })?;
        let ip = address.ip();
        let arguments = [
            format!("--etcd-servers={}", self.etcd.url()),
            format!("--etcd-prefix={etcd_prefix}"),
            format!("--secure-port={}", address.port()),
            format!("--bind-address={ip}"),
            format!("--advertise-address={ip}"),
            // Here it makes its own certificate, followed by the authority that signed it.
            format!("--cert-dir={}", folder.display()),
            format!("--service-account-key-file={}", key.display()),
            format!("--service-account-signing-key-file={}", key.display()),
            "--service-account-issuer=https://selvedge.test".to_owned(),
            format!("--token-auth-file={}", tokens.display()),
            "--authorization-mode=RBAC".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
        ];
        self.start_server(&kubernetes.program("kube-apiserver"), &arguments)
    }

    fn start_controllers(&mut self, kubernetes: &Kubernetes, scheduler: bool) -> Result<(), Error> {
        let folder = self.folder.path();
        let mut arguments = vec![
            format!("--kubeconfig={}", self.kubeconfig("admin")?.display()),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
        ];
        let key = folder.join("service-accounts.key");
        let certificate = self.certificate();
        if scheduler {
            self.start_server(&kubernetes.program("kube-scheduler"), &arguments)?;
        }
        arguments.push(format!(
            "--service-account-private-key-file={}",
            key.display()
        ));
        arguments.push(format!("--root-ca-file={}", certificate.display()));
        self.start_server(&kubernetes.program("kube-controller-manager"), &arguments)
    }

    /// Waits for `/readyz` and for the namespace `default`, which a fresh server makes a moment later.
    fn wait_until_ready(&mut self) -> Result<(), Error> {
        let deadline = Instant::now() + READY_WITHIN;
        while !(self.certificate().exists()
            && self.answers("/readyz")
            && self.answers("/api/v1/namespaces/default"))
        {
            let ended = self.servers.iter_mut().any(Daemon::ended);
            if ended || Instant::now() > deadline {
                let log = self.servers.first().map(Daemon::output).unwrap_or_default();
                let seconds = READY_WITHIN.as_secs();
                return Err(Error::NotReady {
                    seconds,
                    log: tail(&log, 20),
                });
            }
            thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    fn answers(&self, path: &str) -> bool {
        let token = self
            .users
            .first()
            .map(|admin| admin.token.clone())
            .unwrap_or_default();
        let mut command = self.kubectl_command();
        command
            .args([
                "--kubeconfig=/dev/null",
                "--request-timeout=2s",
                "--server",
                &self.url,
            ])
            .args(["--token", &token, "--certificate-authority"])
            .arg(self.certificate())
            .args(["get", "--raw", path]);
        run(&mut command).is_ok()
    }

    fn write_kubeconfigs(&self) -> Result<(), Error> {
        let authority = run(Command::new("base64")
            .arg("--wrap=0")
            .arg(self.certificate()))
        .map_err(|source| Error::Step {
            step: "encode the certificate",
            source,
        })?;
        for user in &self.users {
            let path = self.folder.path().join(user.file_name());
            fs::write(&path, user.kubeconfig(&self.url, &authority)).map_err(|source| {
                Error::File {
                    what: "write",
                    path,
                    source,
                }
            })?;
        }
        Ok(())
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        report::if_panicking(self.folder.path());
    }
}

/// A loopback address that is free now, and that we have given to nobody else.
fn free_address() -> Result<SocketAddr, Error> {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .and_then(|listener| listener.local_addr())
            .map_err(|source| Error::FindPort { source })?;
        if given.insert(address.port()) {
            return Ok(address);
        }
    }
}
