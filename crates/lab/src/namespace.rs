//! A network namespace of this machine that holds a control plane and the wires between guests.
//!
//! It has no name: a process holds it, and the kernel removes both when the lab ends, however the lab ends. There is
//! nothing to be left over.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fd::AsFd as _;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::process::{self, Daemon, run, tethered};

/// What can go wrong with a namespace.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be made.
    #[error("failed to make a network namespace; are we root?")]
    Make {
        /// What the program said.
        #[source]
        source: process::Error,
    },
    /// The process that holds it did not come up.
    #[error("the process that holds a network namespace did not come up: {output}")]
    NotHeld {
        /// What it said.
        output: String,
    },
    /// Something in it could not be set up.
    #[error("failed to set up a network namespace")]
    SetUp {
        /// What the program said.
        #[source]
        source: process::Error,
    },
    /// No connection from inside.
    #[error("failed to connect to {address} from inside the namespace")]
    Connect {
        /// The peer.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// A network namespace that lives as long as this value.
#[derive(Debug)]
pub struct Namespace {
    holder: Daemon,
}

impl Namespace {
    /// Makes one with its loopback up; `folder` is for the log of the process that holds it.
    pub fn new(folder: &Path) -> Result<Self, Error> {
        let own = std::fs::read_link("/proc/self/ns/net").ok();
        let argv = ["unshare", "--net", "--", "sleep", "infinity"];
        let mut holder = Daemon::start(&argv, &folder.join("namespace.log"), Duration::ZERO)
            .map_err(|source| Error::Make { source })?;
        let link = format!("/proc/{}/ns/net", holder.pid());
        let deadline = Instant::now() + Duration::from_secs(5);
        while std::fs::read_link(&link)
            .ok()
            .is_none_or(|now| Some(now) == own)
        {
            if holder.ended() || Instant::now() > deadline {
                return Err(Error::NotHeld {
                    output: holder.output(),
                });
            }
            thread::sleep(Duration::from_millis(2));
        }
        let namespace = Self { holder };
        namespace.run(&["ip", "link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// The words before a command that make it run in here.
    pub fn prefix(&self) -> [String; 2] {
        [
            "nsenter".to_owned(),
            format!("--net=/proc/{}/ns/net", self.holder.pid()),
        ]
    }

    /// Runs a command in here to its end.
    pub fn run(&self, argv: &[&str]) -> Result<String, Error> {
        let prefix = self.prefix();
        let mut command = tethered(&[]);
        command.args(prefix).args(argv);
        run(&mut command).map_err(|source| Error::SetUp { source })
    }

    /// A bridge with an address on it, up.
    pub fn bridge(&self, name: &str, address: Option<(IpAddr, u8)>) -> Result<(), Error> {
        self.run(&[
            "ip",
            "link",
            "add",
            "name",
            name,
            "type",
            "bridge",
            "mcast_snooping",
            "0",
        ])?;
        if let Some((address, length)) = address {
            let text = format!("{address}/{length}");
            self.run(&["ip", "address", "add", &text, "dev", name])?;
        }
        self.run(&["ip", "link", "set", name, "mtu", "9000", "up"])?;
        Ok(())
    }

    /// A tap on a bridge, with every offload off: a guest's vector driver stalls on large frames.
    pub fn tap(&self, name: &str, bridge: &str) -> Result<(), Error> {
        self.run(&["ip", "tuntap", "add", "dev", name, "mode", "tap"])?;
        let off = "tso off gso off gro off tx off sg off";
        let mut offloads = vec!["ethtool", "-K", name];
        offloads.extend(off.split(' '));
        self.run(&offloads)?;
        self.run(&[
            "ip", "link", "set", name, "master", bridge, "mtu", "9000", "up",
        ])?;
        Ok(())
    }

    /// Adds a permanent neighbor entry, so that no packet waits for ARP.
    pub fn neighbor(&self, address: Ipv4Addr, mac: &str, bridge: &str) -> Result<(), Error> {
        let address = address.to_string();
        self.run(&[
            "ip",
            "neighbor",
            "replace",
            &address,
            "lladdr",
            mac,
            "dev",
            bridge,
            "nud",
            "permanent",
        ])?;
        Ok(())
    }

    /// Connects from inside; the connection can then be used from anywhere.
    pub fn connect(&self, address: SocketAddr, timeout: Duration) -> Result<TcpStream, Error> {
        let path = format!("/proc/{}/ns/net", self.holder.pid());
        let connected = thread::scope(|scope| {
            let inside = scope.spawn(|| {
                let namespace = File::open(path)?;
                move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
                TcpStream::connect_timeout(&address, timeout)
            });
            inside
                .join()
                .unwrap_or_else(|_panic| Err(io::Error::other("the connecting thread panicked")))
        });
        connected.map_err(|source| Error::Connect { address, source })
    }
}
