//! A machine of the fabric: leaf, node, workload or host, as a set of namespaces on a [`Host`].
//!
//! Each has its own network, processes, mounts and host name: its own `/run`, `/etc/frr` and `/proc`, so that daemons
//! and agents find there what they would find on a machine of their own. One process holds it together; when that is
//! killed, the kernel ends everything in it.

use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use rustix::process::Signal;
use serde_json::Value;

use crate::host::{Error, Host, Output, PATIENCE, Running};
use crate::ping::Ping;

const INIT: &str = include_str!("space/init.sh");
const UP_WITHIN: Duration = Duration::from_secs(30);

/// The name of the FRR instance of leaves and nodes.
pub const FRR_INSTANCE: &str = "router";
/// The name of the FRR instance of a speaker on the host of a node.
pub const SPEAKER_INSTANCE: &str = "speaker";

/// A place where commands run: a machine of the fabric, or a network namespace within one.
#[derive(Debug, Clone)]
pub struct Space {
    name: String,
    host: Arc<dyn Host>,
    holder: Arc<Running>,
    prefix: Vec<String>,
}

impl Space {
    /// Makes a machine with nothing but its loopback.
    pub fn new(host: &Arc<dyn Host>, name: &str) -> Result<Self, Error> {
        let unshare =
            "unshare --mount --net --uts --pid --fork --kill-child=KILL --propagation private --";
        let mut argv: Vec<&str> = unshare.split(' ').collect();
        // A machine behind a VRF has the VRF's name, which need not be one that a host can have.
        let host_name = name.replace('_', "-");
        argv.extend([
            "sh",
            "-c",
            INIT,
            "space",
            &host_name,
            host.tree(),
            host.share_seen(),
        ]);
        let holder = host.start(&argv, "")?;
        holder.wait_for("ready", UP_WITHIN)?;
        let pid = holder.pid();
        let mut prefix: Vec<String> = ["nsenter", "--mount", "--net", "--uts", "--target"]
            .map(str::to_owned)
            .into();
        // The holder itself is outside of the process namespace that it made.
        prefix.extend([
            pid.to_string(),
            format!("--pid=/proc/{pid}/ns/pid_for_children"),
        ]);
        if host.tree() != "/" {
            prefix.extend(["chroot".to_owned(), host.tree().to_owned()]);
        }
        Ok(Self {
            name: name.to_owned(),
            host: Arc::clone(host),
            holder: Arc::new(holder),
            prefix,
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The host that it is on.
    pub fn host(&self) -> &Arc<dyn Host> {
        &self.host
    }

    /// A process in its network namespace, by the host's counting: what `ip link set … netns` wants.
    pub fn pid(&self) -> u32 {
        self.holder.pid()
    }

    /// A named network namespace within it.
    pub fn netns(&self, name: &str) -> Self {
        let mut within = self.clone();
        within
            .prefix
            .extend(["ip", "netns", "exec", name].map(str::to_owned));
        within
    }

    fn start_with(&self, argv: &[&str], stdin: &str) -> Result<Running, Error> {
        let words: Vec<&str> = self
            .prefix
            .iter()
            .map(String::as_str)
            .chain(argv.iter().copied())
            .collect();
        let running = self.host.start(&words, stdin)?;
        Ok(running.named(format!("{}: {}", self.name, argv.join(" "))))
    }

    /// Starts a command that keeps running.
    pub fn start(&self, argv: &[&str]) -> Result<Running, Error> {
        self.start_with(argv, "")
    }

    /// Runs a command to its end, whatever its status.
    pub fn output(&self, argv: &[&str], stdin: &str) -> Result<Output, Error> {
        self.start_with(argv, stdin)?.wait(PATIENCE)
    }

    /// Runs a command that must succeed, and returns its standard output.
    pub fn run(&self, argv: &[&str]) -> Result<String, Error> {
        self.output(argv, "")?.ok()
    }

    /// Runs a script that must succeed, up to its first error.
    pub fn script(&self, script: &str) -> Result<String, Error> {
        self.output(&["bash", "-euo", "pipefail", "-s"], script)?
            .ok()
    }

    /// Writes a file in it.
    pub fn write(&self, path: &str, text: &str) -> Result<(), Error> {
        self.output(
            &[
                "sh",
                "-c",
                "mkdir -p \"${1%/*}\" && cat > \"$1\"",
                "write",
                path,
            ],
            text,
        )?
        .ok()?;
        Ok(())
    }

    /// Reads a file in it.
    pub fn read(&self, path: &str) -> Result<String, Error> {
        self.run(&["cat", path])
    }

    /// Pings an address `count` times, five times a second. What cannot even be sent for want of a route is lost.
    pub fn ping(&self, target: &str, count: u32) -> Result<Ping, Error> {
        let wanted = count.to_string();
        let output = self.output(
            &[
                "ping", "-n", "-q", "-i", "0.2", "-W", "1", "-c", &wanted, target,
            ],
            "",
        )?;
        let lost = || {
            output.stderr.contains("unreachable").then_some(Ping {
                sent: count,
                received: 0,
            })
        };
        let ping = Ping::parse(&output.stdout).or_else(lost);
        ping.map_or_else(|| output.ok().map(|_| Ping::default()), Ok)
    }

    /// Starts to capture packets; each becomes a line on standard output.
    pub fn capture(&self, interface: &str, filter: &str) -> Result<Running, Error> {
        let mut argv = vec![
            "tcpdump",
            "-l",
            "-n",
            "-e",
            "--immediate-mode",
            "-i",
            interface,
        ];
        argv.extend(filter.split_whitespace());
        let capture = self.start(&argv)?;
        capture.wait_for("listening on", UP_WITHIN)?;
        Ok(capture)
    }

    /// Writes an FRR configuration and starts FRR's daemons with it, logs in `/share/logs`.
    pub fn start_frr(&self, frr_conf: &str) -> Result<(), Error> {
        self.start_frr_as(FRR_INSTANCE, &self.name, frr_conf)
    }

    /// Starts FRR on the host of a node, beside the instance that the node's agent runs: a speaker of the host itself.
    pub fn start_speaker(&self, frr_conf: &str) -> Result<(), Error> {
        self.start_frr_as(
            SPEAKER_INSTANCE,
            &format!("{}-speaker", self.name),
            frr_conf,
        )
    }

    fn start_frr_as(&self, instance: &str, log_name: &str, frr_conf: &str) -> Result<(), Error> {
        self.write(&format!("/etc/frr/{instance}/frr.conf"), frr_conf)?;
        self.run(&[
            "bash",
            "-euc",
            include_str!("space/frr.sh"),
            "frr",
            instance,
            log_name,
        ])?;
        Ok(())
    }

    /// Asks FRR, in JSON.
    pub fn frr_json(&self, command: &str) -> Result<Value, Error> {
        let text = self.run(&["vtysh", "-N", FRR_INSTANCE, "-c", command])?;
        serde_json::from_str(&text).map_err(|_not_json| Error::End {
            command: command.to_owned(),
            status: 0,
            output: text,
        })
    }

    /// Gives an interface its addresses and sets it up.
    pub fn up(&self, interface: &str, addresses: &[IpNet]) -> Result<(), Error> {
        let add = |address: &IpNet| {
            // An address that is still being checked for duplicates cannot be used yet.
            let at_once = if address.addr().is_ipv6() {
                " nodad"
            } else {
                ""
            };
            format!("address add {address} dev {interface}{at_once}")
        };
        let mut batch: Vec<String> = addresses.iter().map(add).collect();
        batch.push(format!("link set dev {interface} up"));
        self.output(&["ip", "-batch", "-"], &batch.join("\n"))?
            .ok()?;
        Ok(())
    }

    /// Cuts its power: everything in it is gone at once.
    pub fn kill(&self) {
        self.holder.signal(Signal::KILL);
    }
}
