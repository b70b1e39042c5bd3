//! Which machines a fabric has, how they are wired, and which addresses that gives them. Pure: no IO.
//!
//! Everything follows from the order in which machines were named, so that a test can be read without being run:
//! router *i* has the loopback `10.254.0.i`, link *k* is `10.253.x.y/31` and `fd00:253:0:k::/64`, node *i* is
//! `198.18.2.i` on the management network, whose `198.18.0.1` is for the control plane.

mod config;
mod kernel;

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// Where the control plane listens, for nodes and for programs in the lab's namespace.
pub const CONTROL_PLANE: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// The length of the management network's prefix.
pub const MANAGEMENT_LENGTH: u8 = 16;
/// A node's interface on the management network.
pub const MANAGEMENT_INTERFACE: &str = "eth0";
/// Links carry VXLAN, so they are wider than what they carry.
pub const LINK_MTU: u32 = 9000;
/// Names of machines become names of interfaces, with a suffix.
const NAME_LENGTH: usize = 12;

/// What is wrong with a topology.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Names of machines become names of interfaces.
    #[error("the name {name} is longer than {NAME_LENGTH} bytes or given twice")]
    Name {
        /// The name.
        name: String,
    },
    /// A node hangs on something that is not there.
    #[error("{node} hangs on {leaf}, which is no leaf")]
    NoLeaf {
        /// The node, or the machine behind the leaf.
        node: String,
        /// What it names.
        leaf: String,
    },
}

/// A VRF of a leaf: what nodes reach over its L3 VNI, with a host behind the leaf that answers for every prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeafVrf {
    /// Its name on the leaf; the host behind it has the same name.
    pub name: String,
    /// Its L3 VNI.
    pub vni: u32,
    /// What the leaf imports and exports.
    pub route_target: String,
    /// What the leaf announces. The host answers for every address in them, except for those of a default route.
    pub prefixes: Vec<IpNet>,
}

/// A leaf or a spine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Router {
    /// Its name.
    pub name: String,
    /// Its autonomous system.
    pub asn: u32,
    /// Its loopback: router id and VTEP.
    pub loopback: Ipv4Addr,
    /// Its VRFs, for leaves.
    pub vrfs: Vec<LeafVrf>,
}

/// A Kubernetes node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its address on the management network.
    pub management: Ipv4Addr,
}

/// One end of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// The machine.
    pub machine: String,
    /// Its interface.
    pub interface: String,
    /// The interface's IPv4 address, in a /31.
    pub ipv4: Ipv4Net,
    /// The interface's IPv6 address, in a /64.
    pub ipv6: Ipv6Net,
}

/// A wire between two machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The end that was named first: the router's, where the other is a node's.
    pub near: End,
    /// The other end.
    pub far: End,
}

impl Link {
    /// The end at a machine, and the other one.
    pub fn seen_from(&self, machine: &str) -> Option<(&End, &End)> {
        if self.near.machine == machine {
            Some((&self.near, &self.far))
        } else if self.far.machine == machine {
            Some((&self.far, &self.near))
        } else {
            None
        }
    }
}

/// The plan of a fabric.
#[derive(Debug, Clone, Default)]
pub struct Topology {
    spines: Vec<(String, u32)>,
    leaves: Vec<(String, u32)>,
    nodes: Vec<(String, Vec<(String, String)>)>,
    vrfs: Vec<(String, LeafVrf)>,
}

impl Topology {
    pub(crate) fn add_spine(&mut self, name: &str, asn: u32) {
        self.spines.push((name.to_owned(), asn));
    }

    pub(crate) fn add_leaf(&mut self, name: &str, asn: u32) {
        self.leaves.push((name.to_owned(), asn));
    }

    /// Adds a node with one interface to each leaf: pairs of interface and leaf.
    pub(crate) fn add_node(&mut self, name: &str, uplinks: Vec<(String, String)>) {
        self.nodes.push((name.to_owned(), uplinks));
    }

    pub(crate) fn add_vrf(&mut self, leaf: &str, vrf: LeafVrf) {
        self.vrfs.push((leaf.to_owned(), vrf));
    }

    /// Looks for mistakes.
    pub fn check(&self) -> Result<(), Error> {
        let mut seen = BTreeSet::new();
        let routers = self.spines.iter().chain(&self.leaves).map(|(name, _)| name);
        let hosts = self.vrfs.iter().map(|(_, vrf)| &vrf.name);
        for name in routers
            .chain(self.nodes.iter().map(|(name, _)| name))
            .chain(hosts)
        {
            if name.len() > NAME_LENGTH || !seen.insert(name) {
                return Err(Error::Name { name: name.clone() });
            }
        }
        let uplinks = self
            .nodes
            .iter()
            .flat_map(|(node, uplinks)| uplinks.iter().map(move |(_, leaf)| (node, leaf)));
        for (node, leaf) in uplinks.chain(self.vrfs.iter().map(|(leaf, vrf)| (&vrf.name, leaf))) {
            if !self.leaves.iter().any(|(name, _)| name == leaf) {
                return Err(Error::NoLeaf {
                    node: node.clone(),
                    leaf: leaf.clone(),
                });
            }
        }
        Ok(())
    }

    /// Spines and leaves.
    pub fn routers(&self) -> Vec<Router> {
        let vrfs_of = |leaf: &str| {
            self.vrfs
                .iter()
                .filter(|(name, _)| name == leaf)
                .map(|(_, vrf)| vrf.clone())
                .collect()
        };
        self.spines
            .iter()
            .chain(&self.leaves)
            .zip(1..)
            .map(|((name, asn), number)| Router {
                name: name.clone(),
                asn: *asn,
                loopback: Ipv4Addr::new(10, 254, 0, number),
                vrfs: vrfs_of(name),
            })
            .collect()
    }

    /// The nodes.
    pub fn nodes(&self) -> Vec<Node> {
        let named = self.nodes.iter().zip(1..);
        named
            .map(|((name, _), number)| Node {
                name: name.clone(),
                management: Ipv4Addr::new(198, 18, 2, number),
            })
            .collect()
    }

    /// Every wire: leaves among themselves or to every spine, then nodes to their leaves.
    pub fn links(&self) -> Vec<Link> {
        let mut pairs: Vec<[(&str, &str); 2]> = Vec::new();
        if self.spines.is_empty() {
            for (index, (first, _)) in self.leaves.iter().enumerate() {
                for (second, _) in self.leaves.iter().skip(index + 1) {
                    pairs.push([(first, second), (second, first)]);
                }
            }
        }
        for (spine, _) in &self.spines {
            for (leaf, _) in &self.leaves {
                pairs.push([(spine, leaf), (leaf, spine)]);
            }
        }
        for (node, uplinks) in &self.nodes {
            for (interface, leaf) in uplinks {
                pairs.push([(leaf, node), (node, interface)]);
            }
        }
        pairs
            .into_iter()
            .zip(0..)
            .map(|([near, far], number)| link(near, far, number))
            .collect()
    }
}

/// Link `number` between two ends, each a machine and an interface.
fn link(near: (&str, &str), far: (&str, &str), number: u16) -> Link {
    let base = u32::from(Ipv4Addr::new(10, 253, 0, 0)) + 2 * u32::from(number);
    let end = |(machine, interface): (&str, &str), side: u16| End {
        machine: machine.to_owned(),
        interface: interface.to_owned(),
        ipv4: Ipv4Net::new_assert(Ipv4Addr::from(base + u32::from(side)), 31),
        ipv6: Ipv6Net::new_assert(
            Ipv6Addr::new(0xfd00, 0x253, 0, number, 0, 0, 0, side + 1),
            64,
        ),
    };
    Link {
        near: end(near, 0),
        far: end(far, 1),
    }
}

/// The addresses between a leaf and the host behind its VRF number `index`: the leaf's, then the host's.
pub(crate) fn transfer(index: u8) -> [(Ipv4Net, Ipv6Net); 2] {
    [0, 1].map(|side: u8| {
        let ipv6 = Ipv6Addr::new(
            0xfd00,
            0x64,
            0,
            u16::from(index),
            0,
            0,
            0,
            u16::from(side) + 1,
        );
        (
            Ipv4Net::new_assert(Ipv4Addr::new(100, 64, index, side), 31),
            Ipv6Net::new_assert(ipv6, 64),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_leaves() -> Topology {
        let mut topology = Topology::default();
        topology.add_leaf("leaf1", 64512);
        topology.add_leaf("leaf2", 64513);
        topology.add_node(
            "n1",
            vec![
                ("eth1".to_owned(), "leaf1".to_owned()),
                ("eth2".to_owned(), "leaf2".to_owned()),
            ],
        );
        topology
    }

    #[test]
    fn leaves_are_meshed_without_spines_and_starred_with_them() {
        let names = |topology: &Topology| -> Vec<String> {
            topology
                .links()
                .iter()
                .map(|link| format!("{}-{}", link.near.machine, link.far.machine))
                .collect()
        };
        let mut topology = two_leaves();
        assert_eq!(names(&topology), ["leaf1-leaf2", "leaf1-n1", "leaf2-n1"]);
        topology.add_spine("spine1", 64500);
        assert_eq!(
            names(&topology),
            ["spine1-leaf1", "spine1-leaf2", "leaf1-n1", "leaf2-n1"]
        );
    }

    #[test]
    fn both_ends_of_a_link_share_its_networks() {
        for link in two_leaves().links() {
            assert_eq!(link.near.ipv4.trunc(), link.far.ipv4.trunc());
            assert_eq!(link.near.ipv6.trunc(), link.far.ipv6.trunc());
            assert_ne!(link.near.ipv4, link.far.ipv4);
        }
    }

    #[test]
    fn mistakes_are_found() {
        let mut topology = two_leaves();
        assert_eq!(topology.check(), Ok(()));
        topology.add_node("n2", vec![("eth1".to_owned(), "leaf9".to_owned())]);
        assert_eq!(
            topology.check(),
            Err(Error::NoLeaf {
                node: "n2".to_owned(),
                leaf: "leaf9".to_owned()
            })
        );
        topology.add_node("leaf1", Vec::new());
        assert_eq!(
            topology.check(),
            Err(Error::Name {
                name: "leaf1".to_owned()
            })
        );
    }
}
