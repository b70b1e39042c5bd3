//! The kernels that the machines of a fabric run on, and the wires between those kernels.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::thread;

use super::Error;
use crate::guest::{Config, Guest};
use crate::host::{Host, LocalHost};
use crate::namespace::Namespace;
use crate::parts::Tree;
use crate::scratch;
use crate::topology::Topology;

/// Memory of a guest in MiB: little where it is one node, more where it is the whole fabric.
const NODE_MEMORY: u32 = 1024;
const FABRIC_MEMORY: u32 = 2048;
/// The guest of everything that has none of its own.
const FABRIC: &str = "fabric";

/// The kernels of a fabric.
#[derive(Debug)]
pub(super) struct Sites {
    choice: String,
    fabric: Arc<dyn Host>,
    guests: BTreeMap<String, Arc<Guest>>,
    /// Wires between kernels: index of the link, and the NIC on the fabric's and on the node's side.
    trunks: BTreeMap<usize, (String, String)>,
}

impl Sites {
    /// Takes this machine's kernel if it can do everything, else boots guests: one, or one more for each node.
    pub(super) fn open(
        tree: &Tree,
        namespace: &Arc<Namespace>,
        topology: &Topology,
        guest_per_node: bool,
    ) -> Result<Self, Error> {
        let Some(lack) = LocalHost::lacks().map_err(|source| Error::Probe { source })? else {
            let share =
                scratch::folder("share").map_err(|source| Error::CreateFolder { source })?;
            return Ok(Self {
                choice: "this machine's kernel has all that a fabric needs".to_owned(),
                fabric: Arc::new(LocalHost::new(Arc::clone(namespace), tree.root(), share)),
                guests: BTreeMap::new(),
                trunks: BTreeMap::new(),
            });
        };
        let mut wanted = vec![(FABRIC.to_owned(), Vec::new(), FABRIC_MEMORY)];
        let mut trunks = BTreeMap::new();
        if guest_per_node {
            for node in topology.nodes() {
                let links = topology.links();
                let uplinks = links
                    .iter()
                    .enumerate()
                    .filter(|(_, link)| link.far.machine == node.name);
                let mut bridges = Vec::new();
                for (index, _) in uplinks {
                    let bridge = format!("link{index}");
                    namespace.bridge(&bridge, None)?;
                    bridges.push(bridge.clone());
                    if let Some((_, fabric_bridges, _)) = wanted.first_mut() {
                        fabric_bridges.push(bridge);
                        trunks.insert(
                            index,
                            (
                                format!("vec{}", fabric_bridges.len()),
                                format!("vec{}", bridges.len()),
                            ),
                        );
                    }
                }
                wanted.push((node.name, bridges, NODE_MEMORY));
            }
        }
        let guests = boot(tree, namespace, &wanted)?;
        let fabric = guests.get(FABRIC).ok_or_else(|| Error::Unknown {
            name: FABRIC.to_owned(),
        })?;
        let choice = format!("{} user-mode-Linux guest(s), because {lack}", guests.len());
        Ok(Self {
            choice,
            fabric: Arc::clone(fabric) as Arc<dyn Host>,
            guests,
            trunks,
        })
    }

    pub(super) fn choice(&self) -> &str {
        &self.choice
    }

    /// Every kernel.
    pub(super) fn hosts(&self) -> Vec<Arc<dyn Host>> {
        let guests = self
            .guests
            .values()
            .map(|guest| Arc::clone(guest) as Arc<dyn Host>);
        if self.guests.is_empty() {
            vec![Arc::clone(&self.fabric)]
        } else {
            guests.collect()
        }
    }

    /// The kernel that a machine is on.
    pub(super) fn of(&self, machine: &str) -> Arc<dyn Host> {
        self.guests.get(machine).map_or_else(
            || Arc::clone(&self.fabric),
            |guest| Arc::clone(guest) as Arc<dyn Host>,
        )
    }

    /// The NICs that stand for a link between two kernels: the router's, then the node's.
    pub(super) fn trunk(&self, index: usize) -> Option<&(String, String)> {
        self.trunks.get(&index)
    }

    /// Powers the guest on again that a machine has for itself, if it has one.
    pub(super) fn reboot(&self, machine: &str) -> Result<(), Error> {
        self.guests
            .get(machine)
            .map_or(Ok(()), |guest| guest.reboot().map_err(Error::Boot))
    }

    /// Cuts the power of the guest that a machine has for itself, if it has one.
    pub(super) fn kill(&self, machine: &str) {
        if let Some(guest) = self.guests.get(machine) {
            guest.kill();
        }
    }
}

type Wanted = (String, Vec<String>, u32);

/// Boots guests side by side.
fn boot(
    tree: &Tree,
    namespace: &Arc<Namespace>,
    wanted: &[Wanted],
) -> Result<BTreeMap<String, Arc<Guest>>, Error> {
    thread::scope(|scope| {
        let booting: Vec<_> = wanted
            .iter()
            .zip(2..)
            .map(|((name, bridges, memory), number)| {
                let address = Ipv4Addr::new(198, 18, 1, number);
                scope.spawn(move || {
                    let config = Config {
                        name,
                        address,
                        bridges,
                        memory: *memory,
                    };
                    Guest::boot(tree, namespace, &config)
                        .map(|guest| (name.clone(), Arc::new(guest)))
                })
            })
            .collect();
        booting
            .into_iter()
            .map(|guest| {
                guest
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                    .map_err(Error::Boot)
            })
            .collect()
    })
}
