//! From a plan to a running fabric.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

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
    CONTROL_PLANE, End, LINK_MTU, LeafVrf, MANAGEMENT_INTERFACE, MANAGEMENT_LENGTH, Router,
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
        let mut batches: BTreeMap<String, (&Space, String)> = BTreeMap::new();
        for (index, link) in self.topology.links().iter().enumerate() {
            let (near, far) = (self.at(&link.near.machine)?, self.at(&link.far.machine)?);
            let (near_nic, far_nic) = (&link.near.interface, &link.far.interface);
            match self.sites.trunk(index) {
                None => {
                    let veth = format!(
                        "link add name {near_nic} netns {} mtu {LINK_MTU} type veth peer name {far_nic} netns {} mtu {LINK_MTU}\n",
                        near.pid(),
                        far.pid()
                    );
                    batches
                        .entry(near.name().to_owned())
                        .or_insert((near, String::new()))
                        .1
                        .push_str(&veth);
                }
                Some((near_vec, far_vec)) => {
                    for (space, nic, vec) in [(near, near_nic, near_vec), (far, far_nic, far_vec)] {
                        let moved = format!("link set {vec} netns {} name {nic}\n", space.pid());
                        batches
                            .entry(space.name().to_owned())
                            .or_insert((space, String::new()))
                            .1
                            .push_str(&moved);
                    }
                }
            }
        }
        for node in self.topology.nodes() {
            let space = self.at(&node.name)?;
            let (name, pid) = (&node.name, space.pid());
            let wire = format!(
                "link add name {name} master mgmt up type veth peer name {MANAGEMENT_INTERFACE} netns {pid}\n"
            );
            batches
                .entry(name.clone())
                .or_insert((space, String::new()))
                .1
                .push_str(&wire);
        }
        for (machine, (space, batch)) in batches {
            let done = space
                .host()
                .run(&["ip", "-batch", "-"], &batch)
                .and_then(host::Output::ok);
            done.map_err(|source| Error::Machine {
                what: "plug in",
                machine,
                source,
            })?;
        }
        self.address()
    }

    fn address(&self) -> Result<(), Error> {
        let links = self.topology.links();
        let ends: Vec<&End> = links
            .iter()
            .flat_map(|link| [&link.near, &link.far])
            .collect();
        each(&ends, |end| {
            let addresses = [IpNet::V4(end.ipv4), IpNet::V6(end.ipv6)];
            self.at(&end.machine)?
                .up(&end.interface, &addresses)
                .map_err(|source| Error::Machine {
                    what: "give addresses to",
                    machine: end.machine.clone(),
                    source,
                })
        })?;
        each(&self.topology.nodes(), |node| {
            let address = IpNet::new_assert(node.management.into(), MANAGEMENT_LENGTH);
            self.at(&node.name)?
                .up(MANAGEMENT_INTERFACE, &[address])
                .map_err(|source| Error::Machine {
                    what: "give an address to",
                    machine: node.name.clone(),
                    source,
                })
        })?;
        Ok(())
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
                .script(&router_script(router))
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
        host.script(&host_script(
            vrf,
            leaf_ends.0.addr().into(),
            leaf_ends.1.addr().into(),
        ))?;
        Ok(())
    }
}

/// The host behind a VRF: it takes every address of the prefixes for its own, and speaks from the first.
fn host_script(vrf: &LeafVrf, gateway4: IpAddr, gateway6: IpAddr) -> String {
    let mut script = String::new();
    for gateway in [gateway4, gateway6] {
        let prefixes = vrf.prefixes.iter().filter(|prefix| prefix.prefix_len() > 0);
        let mut prefixes = prefixes
            .filter(|prefix| prefix.addr().is_ipv4() == gateway.is_ipv4())
            .peekable();
        let first = |prefix: &IpNet| prefix.hosts().next().unwrap_or_else(|| prefix.addr());
        let source = prefixes
            .peek()
            .map(|prefix| format!(" src {}", first(prefix)))
            .unwrap_or_default();
        for prefix in prefixes {
            let address = IpNet::from(first(prefix));
            script.push_str(&format!(
                "ip route add local {prefix} dev lo\nip address add {address} dev lo nodad\n"
            ));
        }
        script.push_str(&format!("ip route add default via {gateway}{source}\n"));
    }
    script
}

/// The kernel of a router: forwarding, loopback, and bridge and VXLAN of each VRF.
fn router_script(router: &Router) -> String {
    let mut script = format!(
        "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1\nip address add {}/32 dev lo\n",
        router.loopback
    );
    for (index, LeafVrf { name, vni, .. }) in router.vrfs.iter().enumerate() {
        let (table, loopback) = (1000 + index, router.loopback);
        script.push_str(&format!(
            "ip link add {name} up type vrf table {table}
             ip link add br{vni} type bridge
             ip link set br{vni} master {name} addrgenmode none
             ip link set br{vni} up
             ip link add vx{vni} type vxlan id {vni} dstport 4789 local {loopback} nolearning
             ip link set vx{vni} master br{vni} addrgenmode none
             ip link set vx{vni} up\n"
        ));
    }
    script
}
