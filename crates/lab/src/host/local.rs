//! This machine's own kernel.

use std::io::{Read, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{Error, Host, Record, Running};
use crate::namespace::Namespace;
use crate::process::{self, signal, spawn, tethered};
use crate::report;

/// What a kernel must be able to make for a fabric.
const KINDS: [&str; 3] = ["vrf table 1", "vxlan id 1 dstport 4789", "dummy"];

/// This machine: commands run in the lab's namespace, with the Debian tree for everything but the kernel.
#[derive(Debug)]
pub struct LocalHost {
    namespace: Arc<Namespace>,
    tree: String,
    share: TempDir,
    share_seen: String,
}

impl LocalHost {
    /// Uses `tree` on this machine's kernel, in `namespace`; `share` becomes `/share`.
    pub fn new(namespace: Arc<Namespace>, tree: &Path, share: TempDir) -> Self {
        let (tree, share_seen) = (
            tree.display().to_string(),
            share.path().display().to_string(),
        );
        Self {
            namespace,
            tree,
            share,
            share_seen,
        }
    }

    /// What this machine's kernel lacks for a fabric: tried out in a namespace of its own.
    pub fn lacks() -> Result<Option<String>, process::Error> {
        let mut tries: Vec<String> = KINDS
            .iter()
            .map(|kind| format!("ip link add probe0 type {kind} && ip link del probe0"))
            .collect();
        tries.push("ip link add probe1 type veth peer name probe2 && ip link add link probe1 name probe3 type vlan id 2".to_owned());
        for attempt in tries {
            let output = Command::new("unshare")
                .args(["--net", "--", "sh", "-c", &attempt])
                .output()
                .map_err(|source| process::Error::Start {
                    command: attempt.clone(),
                    source,
                })?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                return Ok(Some(format!("`{attempt}` says {said}")));
            }
        }
        Ok(None)
    }
}

impl Drop for LocalHost {
    fn drop(&mut self) {
        report::logs_if_panicking(&self.share.path().join("logs"));
    }
}

impl Host for LocalHost {
    fn start(&self, argv: &[&str], stdin: &str) -> Result<Running, Error> {
        let mut command = tethered(&[]);
        command
            .args(self.namespace.prefix())
            .args(argv)
            .env_clear()
            .envs([
                ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/frr"),
                ("HOME", "/root"),
                ("LC_ALL", "C"),
            ])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = spawn(command)?;
        let (pid, record) = (child.id(), Record::default());
        if let Some(mut pipe) = child.stdin.take() {
            let text = stdin.to_owned();
            // A command that does not read its input may end first.
            thread::spawn(move || drop(pipe.write_all(text.as_bytes())));
        }
        let watch = record.clone();
        thread::spawn(move || record_to_the_end(child, &watch));
        Ok(Running::new(
            argv,
            pid,
            record,
            Box::new(move |number| signal(pid, number, true)),
        ))
    }

    fn tree(&self) -> &str {
        &self.tree
    }

    fn share(&self) -> &Path {
        self.share.path()
    }

    fn share_seen(&self) -> &str {
        &self.share_seen
    }
}

/// Writes down what a child prints until it ends. What it left running may keep the pipes open: that is not waited for.
fn record_to_the_end(mut child: Child, record: &Record) {
    let (out, err) = (record.clone(), record.clone());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let readers = [
        thread::spawn(move || copy(stdout, |bytes| out.stdout(bytes))),
        thread::spawn(move || copy(stderr, |bytes| err.stderr(bytes))),
    ];
    let status = child.wait().ok().and_then(|status| {
        status
            .code()
            .or_else(|| status.signal().map(|number| 128 + number))
    });
    let deadline = Instant::now() + Duration::from_millis(200);
    while Instant::now() < deadline && readers.iter().any(|reader| !reader.is_finished()) {
        thread::sleep(Duration::from_millis(1));
    }
    record.end(status);
}

fn copy(pipe: Option<impl Read>, write_down: impl Fn(&[u8])) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; 65536];
    while let Ok(count) = pipe.read(&mut buffer) {
        match buffer.get(..count) {
            Some(bytes) if count > 0 => write_down(bytes),
            _ => return,
        }
    }
}
