//! From a plan to a running fabric.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ipnet::IpNet;

use super::sites::Sites;
use super::{Error, Fabric};
use crate::Progress;
use crate::host;
use crate::namespace::Namespace;
use crate::parts::Tree;
use crate::scratch;
use crate::space::Space;
use crate::topology::{
    CONTROL_PLANE, End, LINK_MTU, LeafVrf, Link, MANAGEMENT_INTERFACE, MANAGEMENT_LENGTH, Node,
    Topology, transfer,
};

/// The plan of a fabric; see [`Fabric::builder`].
#[derive(Debug, Default)]
pub struct Builder {
    topology: Topology,
    guest_per_node: bool,
}

impl Builder {
    /// Adds a leaf. Without spines, leaves are wired to each other.
    pub fn leaf(mut self, name: &str, asn: u32) -> Self {
        self.topology.add_leaf(name, asn);
        self
    }

    /// Adds a spine, wired to every leaf.
    pub fn spine(mut self, name: &str, asn: u32) -> Self {
        self.topology.add_spine(name, asn);
        self
    }

    /// Adds a node with an interface to each of its leaves: `eth1`, `eth2`, …
    pub fn node(self, name: &str, leaves: &[&str]) -> Self {
        let named: Vec<_> = (1..)
            .zip(leaves)
            .map(|(number, leaf)| (format!("eth{number}"), *leaf))
            .collect();
        let uplinks: Vec<_> = named
            .iter()
            .map(|(interface, leaf)| (interface.as_str(), *leaf))
            .collect();
        self.node_with(name, &uplinks)
    }

    /// Adds a node whose interfaces to its leaves have the given names: pairs of interface and leaf.
    pub fn node_with(mut self, name: &str, uplinks: &[(&str, &str)]) -> Self {
        let owned = uplinks
            .iter()
            .map(|&(interface, leaf)| (interface.to_owned(), leaf.to_owned()));
        self.topology.add_node(name, owned.collect());
        self
    }

    /// Gives a leaf a VRF with a host behind it.
    pub fn vrf(mut self, leaf: &str, vrf: LeafVrf) -> Self {
        self.topology.add_vrf(leaf, vrf);
        self
    }

    /// Gives each node a kernel of its own, where guests are used.
    pub fn guest_per_node(mut self) -> Self {
        self.guest_per_node = true;
        self
    }

    /// The plan itself.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Starts everything: after this every router runs, and nodes are plugged in with addresses on their links.
    pub fn start(self, tree: &Tree, progress: Progress<'_>) -> Result<Fabric, Error> {
        let start = Instant::now();
        let topology = self.topology;
        topology.check()?;
        let folder =
            scratch::folder("namespace").map_err(|source| Error::CreateFolder { source })?;
        let namespace = Arc::new(Namespace::new(folder.path())?);
        namespace.bridge("mgmt", Some((CONTROL_PLANE.into(), MANAGEMENT_LENGTH)))?;
        let sites = Sites::open(tree, &namespace, &topology, self.guest_per_node)?;
        progress(&format!("fabric on {}", sites.choice()));
        let spaces = make_spaces(&sites, &topology)?;
        let mut fabric = Fabric {
            spaces,
            sites,
            namespace,
            topology,
            up_after: start.elapsed(),
        };
        fabric.plug()?;
        fabric.start_routers()?;
        fabric.up_after = start.elapsed();
        progress(&format!(
            "fabric up after {:.1} s",
            fabric.up_after.as_secs_f64()
        ));
        Ok(fabric)
    }
}

/// Makes all machines, side by side.
fn make_spaces(sites: &Sites, topology: &Topology) -> Result<BTreeMap<String, Space>, Error> {
    let routers = topology.routers();
    let hosts = routers
        .iter()
        .flat_map(|router| &router.vrfs)
        .map(|vrf| vrf.name.clone());
    let nodes = topology.nodes().into_iter().map(|node| node.name);
    let names: Vec<String> = routers
        .iter()
        .map(|router| router.name.clone())
        .chain(nodes)
        .chain(hosts)
        .collect();
    each(&names, |name| {
        let space = Space::new(&sites.of(name), name).map_err(|source| Error::Machine {
            what: "make",
            machine: name.clone(),
            source,
        })?;
        Ok((name.clone(), space))
    })
    .map(|spaces| spaces.into_iter().collect())
}

/// Does something with each of several things, side by side: most of the time is waiting.
fn each<T: Sync, R: Send>(
    things: &[T],
    act: impl Fn(&T) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    thread::scope(|scope| {
        let acting: Vec<_> = things
            .iter()
            .map(|thing| scope.spawn(|| act(thing)))
            .collect();
        acting
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    })
}

impl Fabric {
    /// Plugs in every wire and gives its ends their addresses.
    fn plug(&self) -> Result<(), Error> {
        let nodes = self.topology.nodes();
        for (index, link) in self.topology.links().iter().enumerate() {
            if nodes.iter().all(|node| node.name != link.far.machine) {
                self.plug_veth(link)?;
            } else if let Some((nic, _)) = self.sites.trunk(index) {
                self.plug_nic(&link.near, nic)?;
            }
        }
        nodes.iter().try_for_each(|node| self.plug_node(node))
    }

    /// Plugs in the wires of a node: those to its leaves, and the one to the management network.
    pub(super) fn plug_node(&self, node: &Node) -> Result<(), Error> {
        let Node { name, management } = node;
        for (index, link) in self.topology.links().iter().enumerate() {
            if link.far.machine == *name {
                match self.sites.trunk(index) {
                    None => self.plug_veth(link)?,
                    Some((_, nic)) => self.plug_nic(&link.far, nic)?,
                }
            }
        }
        self.wire(name, |pid| {
            format!("link add name {name} master mgmt up type veth peer name {MANAGEMENT_INTERFACE} netns {pid}")
        })?;
        let address = IpNet::new_assert((*management).into(), MANAGEMENT_LENGTH);
        self.address(name, MANAGEMENT_INTERFACE, &[address])
    }

    /// A wire between two machines on one kernel.
    fn plug_veth(&self, link: &Link) -> Result<(), Error> {
        let (near, far) = (&link.near.interface, &link.far.interface);
        let far_pid = self.at(&link.far.machine)?.pid();
        self.wire(&link.near.machine, |pid| {
            format!(
                "link add name {near} netns {pid} mtu {LINK_MTU} type veth peer name {far} netns {far_pid} mtu {LINK_MTU}"
            )
        })?;
        for end in [&link.near, &link.far] {
            self.address(
                &end.machine,
                &end.interface,
                &[end.ipv4.into(), end.ipv6.into()],
            )?;
        }
        Ok(())
    }

    /// One end of a wire between two kernels: a NIC of the guest.
    fn plug_nic(&self, end: &End, nic: &str) -> Result<(), Error> {
        let interface = &end.interface;
        self.wire(&end.machine, |pid| {
            format!("link set dev {nic} netns {pid} name {interface}")
        })?;
        self.address(&end.machine, interface, &[end.ipv4.into(), end.ipv6.into()])
    }

    /// Adds a wire to the kernel of a machine; `command` gets the process ID of the machine.
    ///
    /// The wires of a machine that was killed disappear a moment after it, and until then hold their names.
    fn wire(&self, machine: &str, command: impl Fn(u32) -> String) -> Result<(), Error> {
        let space = self.at(machine)?;
        let command = command(space.pid());
        let plug = || space.host().run(&["ip", "-batch", "-"], &command);
        let free = Self::eventually(Duration::from_secs(10), || match plug() {
            Ok(output) if output.stderr.contains("File exists") => None,
            outcome => Some(outcome),
        });
        let done = free.unwrap_or_else(plug).and_then(host::Output::ok);
        done.map(drop).map_err(|source| Error::Machine {
            what: "plug in",
            machine: machine.to_owned(),
            source,
        })
    }

    fn address(&self, machine: &str, interface: &str, addresses: &[IpNet]) -> Result<(), Error> {
        self.at(machine)?
            .up(interface, addresses)
            .map_err(|source| Error::Machine {
                what: "give addresses to",
                machine: machine.to_owned(),
                source,
            })
    }

    fn start_routers(&self) -> Result<(), Error> {
        each(&self.topology.routers(), |router| {
            let space = self.at(&router.name)?;
            let failed = |what| {
                let machine = router.name.clone();
                move |source| Error::Machine {
                    what,
                    machine,
                    source,
                }
            };
            space
                .script(&router.script())
                .map_err(failed("set up the kernel of"))?;
            for (index, vrf) in (0..).zip(&router.vrfs) {
                self.plug_host(space, index, vrf)
                    .map_err(failed("plug in a host behind"))?;
            }
            space
                .start_frr(&self.topology.frr_conf(router))
                .map_err(failed("start FRR on"))
        })?;
        Ok(())
    }

    /// Puts the host behind a VRF of a leaf: it answers for every address of the VRF's prefixes.
    fn plug_host(&self, leaf: &Space, index: u8, vrf: &LeafVrf) -> Result<(), host::Error> {
        let Some(host) = self.spaces.get(&vrf.name) else {
            return Ok(());
        };
        let [leaf_ends, host_ends] = transfer(index);
        let wire = format!("host{index}");
        let (leaf_pid, host_pid) = (leaf.pid(), host.pid());
        let veth = format!(
            "link add name {wire} netns {leaf_pid} type veth peer name eth0 netns {host_pid}\n"
        );
        leaf.host().run(&["ip", "-batch", "-"], &veth)?.ok()?;
        leaf.run(&["ip", "link", "set", &wire, "master", &vrf.name])?;
        leaf.up(&wire, &[leaf_ends.0.into(), leaf_ends.1.into()])?;
        host.up("eth0", &[host_ends.0.into(), host_ends.1.into()])?;
        host.script(&vrf.host_script([leaf_ends.0.addr().into(), leaf_ends.1.addr().into()]))?;
        Ok(())
    }
}
