//! What several rings need: the program under test, and a control plane with our kinds in it.

use std::{
    path::Path,
    process::{Command, Output, Stdio},
};

use kube::config::{AuthInfo, Kubeconfig};
use lab::{control_plane::ControlPlane, fabric::Fabric, host::Running, namespace::Namespace};

/// The namespace that Selvedge runs in.
pub(crate) const OWN_NAMESPACE: &str = compiler::names::OWN_NAMESPACE;

/// The program under test.
pub(crate) const SELVEDGE: &str = env!("CARGO_BIN_EXE_selvedge");

/// The program that nodes run: the one under test, or another build of it, for measurements.
pub(crate) fn program() -> std::path::PathBuf {
    std::env::var_os("SELVEDGE_PROGRAM").map_or_else(|| SELVEDGE.into(), Into::into)
}

/// Progress of the parts, shown with `--nocapture` and with failures.
pub(crate) fn progress(line: &str) {
    eprintln!("{line}");
}

/// Runs the program to its end.
pub(crate) fn selvedge(arguments: &[&str], stdin: &str) -> anyhow::Result<Output> {
    use std::io::Write as _;
    let mut child = Command::new(SELVEDGE)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut pipe) = child.stdin.take() {
        pipe.write_all(stdin.as_bytes())?;
    }
    Ok(child.wait_with_output()?)
}

/// Installs our kinds and our namespace, and waits until the kinds are served.
pub(crate) fn install_crds(plane: &ControlPlane) -> anyhow::Result<()> {
    plane.kubectl(&["create", "namespace", OWN_NAMESPACE], "")?;
    let crds = String::from_utf8(selvedge(&["crds"], "")?.stdout)?;
    plane.kubectl(
        &["apply", "--server-side", "--warnings-as-errors", "-f", "-"],
        &crds,
    )?;
    plane.kubectl(
        &[
            "wait",
            "--for=condition=Established",
            "crd",
            "--all",
            "--timeout=30s",
        ],
        "",
    )?;
    Ok(())
}

/// What agents are deployed with, and what the operator needs to give addresses.
pub(crate) const AGENT: &str = include_str!("../../../../deploy/agent.yaml");
pub(crate) const IN_CLUSTER_IPAM: &str = include_str!("../../../../deploy/in-cluster-ipam.yaml");

/// Makes the accounts and roles that operators are deployed with.
pub(crate) fn apply_roles(plane: &ControlPlane) -> anyhow::Result<()> {
    const RBAC: &str = include_str!("../../../../deploy/rbac.yaml");
    plane.kubectl(&["apply", "--server-side", "-f", "-"], RBAC)?;
    Ok(())
}

/// Manifests without the DaemonSet: what agents are and may do.
pub(crate) fn without_workloads(manifests: &str) -> String {
    let documents = manifests.split("\n---\n");
    let roles = documents.filter(|document| !document.contains("kind: DaemonSet"));
    roles.collect::<Vec<_>>().join("\n---\n")
}

/// A token of a ServiceAccount in our namespace.
pub(crate) fn token(plane: &ControlPlane, account: &str, more: &[&str]) -> anyhow::Result<String> {
    let token = ["create", "token", account, "-n", OWN_NAMESPACE];
    Ok(plane.kubectl(&[&token[..], more].concat(), "")?)
}

/// A kubeconfig that has nothing but a token.
pub(crate) fn kubeconfig_with_token(
    plane: &ControlPlane,
    token: &str,
) -> anyhow::Result<Kubeconfig> {
    let mut config = Kubeconfig::read_from(plane.kubeconfig("admin")?)?;
    for user in &mut config.auth_infos {
        user.auth_info = Some(AuthInfo {
            token: Some(token.trim().to_owned().into()),
            ..AuthInfo::default()
        });
    }
    Ok(config)
}

/// A kubeconfig with a token of a ServiceAccount in our namespace that counts for a day.
pub(crate) fn account_kubeconfig(
    plane: &ControlPlane,
    account: &str,
    more: &[&str],
) -> anyhow::Result<tempfile::NamedTempFile> {
    let token = token(plane, account, &[&["--duration=24h"], more].concat())?;
    let file = tempfile::NamedTempFile::new()?;
    serde_json::to_writer(file.as_file(), &kubeconfig_with_token(plane, &token)?)?;
    Ok(file)
}

/// What the agent of a node may do, and no more: its own objects, and Secrets of these names in the namespace default.
pub(crate) fn agent_role(node: &str, user: &str, secrets: &[&str]) -> String {
    let secrets = secrets.join(", ");
    format!(
        "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: agent-{node}}}
rules:
- apiGroups: [network.t-caas.telekom.com]
  resources: [nodenetworkconfigs]
  resourceNames: [{node}]
  verbs: [get, list, watch]
- apiGroups: [network.t-caas.telekom.com]
  resources: [nodenetworkconfigs/status]
  resourceNames: [{node}]
  verbs: [get, patch]
- apiGroups: [network.t-caas.telekom.com]
  resources: [nodenetworkstatuses, nodenetworkstatuses/status]
  resourceNames: [{node}]
  verbs: [get, create, patch]
- apiGroups: [frrk8s.metallb.io]
  resources: [frrnodestates, frrnodestates/status]
  resourceNames: [{node}]
  verbs: [get, create, patch, delete]
- apiGroups: [frrk8s.metallb.io]
  resources: [bgpsessionstates, bgpsessionstates/status]
  verbs: [create, patch, delete]
- apiGroups: ['']
  resources: [nodes]
  resourceNames: [{node}]
  verbs: [get, list, watch, patch]
- apiGroups: ['']
  resources: [secrets]
  resourceNames: [{secrets}]
  verbs: [get]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: agent-{node}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: agent-{node}}}
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {user}}}]
"
    )
}

/// Starts the agent of a node with the kubeconfig of a user.
pub(crate) fn start_agent(
    fabric: &Fabric,
    plane: &ControlPlane,
    node: &str,
    user: &str,
) -> anyhow::Result<Running> {
    let kubeconfig = fabric.hand_in(&plane.kubeconfig(user)?)?;
    let agent = [
        "/share/selvedge",
        "agent",
        "--node",
        node,
        "--kubeconfig",
        &kubeconfig,
    ];
    Ok(fabric.at(node)?.start(&agent)?)
}

/// What an apply of a config would do on a node.
pub(crate) fn preview(fabric: &Fabric, node: &str, config: &str) -> anyhow::Result<String> {
    let space = fabric.at(node)?;
    space.write("/run/preview.json", config)?;
    let preview = "/share/selvedge agent --config /run/preview.json --dry-run";
    Ok(space.script(preview)?.trim().to_owned())
}

/// A program of ours that runs beside the control plane; dropping it ends it, and a failing test shows its log.
pub(crate) struct Daemon {
    child: std::process::Child,
    name: String,
    log: tempfile::NamedTempFile,
}

impl Daemon {
    /// Starts the program in a network namespace.
    pub(crate) fn start(namespace: &Namespace, arguments: &[&str]) -> anyhow::Result<Self> {
        let [nsenter, net] = namespace.prefix();
        Self::spawn(&[&nsenter, &net, "--", SELVEDGE], arguments)
    }

    /// Starts the program where the test runs.
    pub(crate) fn start_here(arguments: &[&str]) -> anyhow::Result<Self> {
        Self::spawn(&[&program().display().to_string()], arguments)
    }

    fn spawn(program: &[&str], arguments: &[&str]) -> anyhow::Result<Self> {
        let log = tempfile::NamedTempFile::new()?;
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .args(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.reopen()?)
            .spawn()?;
        Ok(Self {
            child,
            name: arguments.first().copied().unwrap_or_default().to_owned(),
            log,
        })
    }
}

impl Daemon {
    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) -> anyhow::Result<()> {
        let pid = rustix::process::Pid::from_child(&self.child);
        Ok(rustix::process::kill_process(pid, signal)?)
    }

    /// Waits until it has ended by itself; how.
    pub(crate) fn wait(&mut self) -> anyhow::Result<std::process::ExitStatus> {
        Ok(self.child.wait()?)
    }

    /// Its resident memory in mebibytes.
    #[cfg(feature = "bench-rollout")]
    pub(crate) fn resident(&self) -> anyhow::Result<u64> {
        use anyhow::Context as _;
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let mut lines = status.lines();
        let line = lines.find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes = line.and_then(|line| line.split_whitespace().next());
        Ok(kibibytes.context("a line of memory")?.parse::<u64>()? / 1024)
    }

    /// What it has logged.
    pub(crate) fn log(&self) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(self.log.path())?)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ended = self.child.kill().and_then(|()| self.child.wait());
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.log.path()).unwrap_or_default();
            eprintln!("=== {} ===\n{log}", self.name);
        }
    }
}

/// A file of this repository.
pub(crate) fn repository(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}
