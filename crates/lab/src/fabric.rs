//! A running fabric: leaves and spines with FRR, nodes for Selvedge to configure, hosts behind leaves, workloads.

mod build;
mod sites;

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ipnet::IpNet;

pub use build::Builder;

use crate::host;
use crate::namespace::{self, Namespace};
use crate::ping::Ping;
use crate::space::Space;
use crate::topology::{self, CONTROL_PLANE, Link, Topology};
use crate::{guest, process};
use sites::Sites;

/// What can go wrong with a fabric.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plan is wrong.
    #[error("the fabric's plan is wrong")]
    Plan(#[from] topology::Error),
    /// A folder could not be made.
    #[error("failed to create a folder for the lab")]
    CreateFolder {
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// This machine's kernel could not be asked.
    #[error("failed to ask this machine's kernel what it can do")]
    Probe {
        /// What the program said.
        #[source]
        source: process::Error,
    },
    /// The lab's namespace could not be made.
    #[error("failed to make the lab's namespace")]
    Namespace(#[from] namespace::Error),
    /// A guest did not come up.
    #[error("failed to boot a guest")]
    Boot(#[from] guest::Error),
    /// A command on one of the machines failed.
    #[error("failed to {what} {machine}")]
    Machine {
        /// The operation.
        what: &'static str,
        /// The machine.
        machine: String,
        /// What the command said.
        #[source]
        source: host::Error,
    },
    /// A file could not be copied to where the machines see it.
    #[error("failed to hand in {}", file.display())]
    HandIn {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A name that the fabric does not know.
    #[error("the fabric has no {name}")]
    Unknown {
        /// The name, or the two ends of a link.
        name: String,
    },
}

/// A fabric that runs; dropping it ends all of it.
#[derive(Debug)]
pub struct Fabric {
    // The machines go before what they stand on.
    spaces: BTreeMap<String, Space>,
    sites: Sites,
    namespace: Arc<Namespace>,
    topology: Topology,
    up_after: Duration,
}

impl Fabric {
    /// Starts the plan of a fabric.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Which kernel the machines run on, and why.
    pub fn choice(&self) -> &str {
        self.sites.choice()
    }

    /// How long the start took: kernels, machines and routing daemons.
    pub fn up_after(&self) -> Duration {
        self.up_after
    }

    /// The namespace of the management network, for a control plane and its clients.
    pub fn namespace(&self) -> &Arc<Namespace> {
        &self.namespace
    }

    /// The address on the management network that is for the control plane.
    pub fn control_plane_address(&self) -> IpAddr {
        CONTROL_PLANE.into()
    }

    /// A machine by its name: leaf, spine, node, workload, or the host behind a leaf's VRF.
    pub fn at(&self, name: &str) -> Result<&Space, Error> {
        self.spaces.get(name).ok_or_else(|| unknown(name))
    }

    /// A node's address on the management network.
    pub fn management_address(&self, node: &str) -> Result<Ipv4Addr, Error> {
        let nodes = self.topology.nodes();
        let found = nodes.iter().find(|known| known.name == node);
        found
            .map(|node| node.management)
            .ok_or_else(|| unknown(node))
    }

    /// The wire between two machines.
    pub fn link(&self, one: &str, other: &str) -> Result<Link, Error> {
        let links = self.topology.links();
        let found = links
            .into_iter()
            .find(|link| link.seen_from(one).is_some() && link.seen_from(other).is_some());
        found.ok_or_else(|| unknown(&format!("link between {one} and {other}")))
    }

    /// Cuts the wire between two machines.
    pub fn cut(&self, one: &str, other: &str) -> Result<(), Error> {
        self.set_link(one, other, "down")
    }

    /// Mends the wire between two machines.
    pub fn mend(&self, one: &str, other: &str) -> Result<(), Error> {
        self.set_link(one, other, "up")
    }

    /// The router's end is the one to pull: the node's may be in a namespace that an agent made.
    fn set_link(&self, one: &str, other: &str, state: &'static str) -> Result<(), Error> {
        let end = self.link(one, other)?.near;
        let router = self.at(&end.machine)?;
        let mut batch = vec![format!("link set dev {} {state}", end.interface)];
        if state == "up" {
            // The kernel takes IPv6 addresses away from what goes down.
            batch.push(format!(
                "address replace {} dev {} nodad",
                end.ipv6, end.interface
            ));
        }
        let done = router
            .output(&["ip", "-batch", "-"], &batch.join("\n"))
            .and_then(host::Output::ok);
        done.map(drop).map_err(|source| Error::Machine {
            what: "set a link of",
            machine: end.machine,
            source,
        })
    }

    /// Cuts the power of a machine, and of its guest where it has one of its own. It does not come back.
    pub fn kill(&mut self, name: &str) -> Result<(), Error> {
        self.at(name)?.kill();
        self.sites.kill(name);
        self.spaces.remove(name);
        Ok(())
    }

    /// Cuts the power of a node and lets it come up again, plugged in as at the start. Only what it kept in
    /// `/var/lib/selvedge` is still there; its workloads are to be plugged in anew.
    pub fn reboot(&mut self, name: &str) -> Result<(), Error> {
        let nodes = self.topology.nodes();
        let node = nodes
            .iter()
            .find(|node| node.name == name)
            .ok_or_else(|| unknown(name))?;
        self.kill(name)?;
        self.sites.reboot(name)?;
        let space = Space::new(&self.sites.of(name), name).map_err(|source| Error::Machine {
            what: "make",
            machine: name.to_owned(),
            source,
        })?;
        self.spaces.insert(name.to_owned(), space);
        self.plug_node(node)
    }

    /// Pings from a machine.
    pub fn ping(&self, from: &str, target: &str, count: u32) -> Result<Ping, Error> {
        let ping = self.at(from)?.ping(target, count);
        ping.map_err(|source| Error::Machine {
            what: "ping from",
            machine: from.to_owned(),
            source,
        })
    }

    /// Asks the FRR of a machine, in JSON.
    pub fn frr_json(&self, at: &str, command: &str) -> Result<serde_json::Value, Error> {
        let answer = self.at(at)?.frr_json(command);
        answer.map_err(|source| Error::Machine {
            what: "ask FRR on",
            machine: at.to_owned(),
            source,
        })
    }

    /// Plugs a workload into a link of a node: a machine of its own, with a macvlan `eth0` on that link.
    pub fn workload(
        &mut self,
        name: &str,
        node: &str,
        parent: &str,
        addresses: &[IpNet],
        gateways: &[IpAddr],
    ) -> Result<(), Error> {
        let failed = |what| {
            move |source| Error::Machine {
                what,
                machine: name.to_owned(),
                source,
            }
        };
        let node = self.at(node)?.clone();
        let space = Space::new(node.host(), name).map_err(failed("make the workload"))?;
        let (node_pid, pid) = (node.pid().to_string(), space.pid().to_string());
        // Kernels before 6.13 want the name to be free where the link below is, too.
        let name_there = format!("wl{pid}");
        let macvlan = [
            "link",
            "add",
            "link",
            parent,
            "name",
            &name_there,
            "netns",
            &pid,
            "type",
            "macvlan",
            "mode",
            "bridge",
        ];
        let argv = [
            &["nsenter", "--net", "--target", &node_pid, "ip"],
            &macvlan[..],
        ]
        .concat();
        node.host()
            .run(&argv, "")
            .and_then(host::Output::ok)
            .map_err(failed("plug in the workload"))?;
        space
            .run(&["ip", "link", "set", &name_there, "name", "eth0"])
            .map_err(failed("name the link of the workload"))?;
        space
            .up("eth0", addresses)
            .map_err(failed("give addresses to the workload"))?;
        for gateway in gateways {
            space
                .run(&["ip", "route", "add", "default", "via", &gateway.to_string()])
                .map_err(failed("give a gateway to the workload"))?;
        }
        self.spaces.insert(name.to_owned(), space);
        Ok(())
    }

    /// Copies a program or file to every machine of the fabric; returns its path there.
    pub fn hand_in(&self, file: &Path) -> Result<String, Error> {
        let name = file.file_name().unwrap_or_default();
        for host in self.sites.hosts() {
            fs::copy(file, host.share().join(name)).map_err(|source| Error::HandIn {
                file: file.to_owned(),
                source,
            })?;
        }
        Ok(format!("/share/{}", name.to_string_lossy()))
    }

    /// Retries an operation until it succeeds, or the time is over.
    pub fn eventually<T>(patience: Duration, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + patience;
        loop {
            let outcome = attempt();
            if outcome.is_some() || Instant::now() > deadline {
                return outcome;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn unknown(name: &str) -> Error {
    Error::Unknown {
        name: name.to_owned(),
    }
}
