//! Starting a control plane, server by server.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::{ControlPlane, Error, Etcd, User};
use crate::namespace::Namespace;
use crate::parts::Kubernetes;
use crate::process::{Daemon, run, tail};
use crate::scratch;

/// How long a server has to end by itself. An API server whose etcd is gone would take forever.
const GRACE: Duration = Duration::from_secs(2);
const READY_WITHIN: Duration = Duration::from_secs(90);

/// What a control plane is started with; see [`ControlPlane::builder`].
#[derive(Debug)]
pub struct Builder<'a> {
    kubernetes: &'a Kubernetes,
    users: Vec<User>,
    site: Option<(&'a Namespace, IpAddr)>,
    etcd: Option<(Arc<Etcd>, String)>,
    scheduler: bool,
    absent: Vec<&'static str>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(kubernetes: &'a Kubernetes) -> Self {
        let users = vec![User::new("admin", &["system:masters"])];
        Self {
            kubernetes,
            users,
            site: None,
            etcd: None,
            scheduler: false,
            absent: Vec::new(),
        }
    }

    /// Adds a user with a token; RBAC defines its permissions.
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

    /// Leaves out some controllers of the controller manager, such as those that write to Nodes without a kubelet.
    pub fn without_controllers(mut self, names: &[&'static str]) -> Self {
        self.absent.extend(names);
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
        plane.start_controllers(self.kubernetes, self.scheduler, &self.absent)?;
        plane.ready_after = start.elapsed();
        Ok(plane)
    }
}

impl ControlPlane {
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
            // As every distribution has it: agents of networks are privileged.
            "--allow-privileged=true".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
        ];
        self.start_server(&kubernetes.program("kube-apiserver"), &arguments)
    }

    fn start_controllers(
        &mut self,
        kubernetes: &Kubernetes,
        scheduler: bool,
        absent: &[&str],
    ) -> Result<(), Error> {
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
        let mut controllers = "*".to_owned();
        for name in absent {
            controllers.push_str(",-");
            controllers.push_str(name);
        }
        arguments.push(format!("--controllers={controllers}"));
        self.start_server(&kubernetes.program("kube-controller-manager"), &arguments)
    }

    /// Waits for `/readyz` and for the namespace `default`, which a fresh server makes a moment later.
    pub(super) fn wait_until_ready(&mut self) -> Result<(), Error> {
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

/// A loopback address that is free and was not handed out before.
pub(super) fn free_address() -> Result<SocketAddr, Error> {
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
