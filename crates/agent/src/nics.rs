//! What NICs had in the host's namespace before they were moved, on disk: it must survive a reboot between the move and
//! the return.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

use linux::{
    HostAddress, HostRoute, LinkId, NicMemory, Observed, Step, owned::Owner, plan::LinkChange,
};
use serde::{Deserialize, Serialize};

use crate::file;

/// By name of the NIC.
pub(crate) type Memories = BTreeMap<String, NicMemory>;

/// What the host knows of NICs that are about to be moved.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub(crate) routes: Vec<HostRoute>,
    /// By name of the link.
    pub(crate) addresses: BTreeMap<String, Vec<HostAddress>>,
    /// By name of the link, and then by path.
    pub(crate) settings: BTreeMap<String, BTreeMap<String, String>>,
}

/// A memory as it is on disk.
#[derive(Serialize, Deserialize)]
struct Stored {
    /// When, in seconds since 1970: addresses that end have become older since.
    #[serde(default)]
    at: u64,
    #[serde(flatten)]
    memory: NicMemory,
}

fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

/// The place of the memories on disk.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    path: PathBuf,
}

impl Store {
    pub(crate) fn new(state: &std::path::Path) -> Self {
        Self {
            path: state.join("nics"),
        }
    }

    /// The memories. A file that cannot be decoded is set aside: it costs routes, and must not cost the node.
    pub(crate) fn load(&self) -> Result<Memories, file::Error> {
        let bytes = file::read(&self.path)?.unwrap_or_default();
        if bytes.is_empty() {
            return Ok(Memories::new());
        }
        let stored = serde_json::from_slice::<BTreeMap<String, Stored>>(&bytes);
        let memories = stored.map(|stored| {
            let recall = |(name, stored): (String, Stored)| (name, stored.now());
            stored.into_iter().map(recall).collect()
        });
        memories.or_else(|error| {
            let aside = self.path.with_extension("damaged");
            tracing::error!(%error, "{} cannot be decoded and is set aside", self.path.display());
            if let Err(error) = std::fs::rename(&self.path, aside) {
                tracing::warn!(%error, "failed to move {}", self.path.display());
            }
            Ok(Memories::new())
        })
    }

    /// Replaces the memories; without any, there is no file.
    pub(crate) fn save(&self, memories: &Memories) -> Result<(), file::Error> {
        if memories.is_empty() {
            return file::remove(&self.path);
        }
        let at = now();
        let stored = memories.iter().map(|(name, memory)| {
            let memory = memory.clone();
            (name, Stored { at, memory })
        });
        let stored: BTreeMap<_, _> = stored.collect();
        // Keys are text, so this cannot fail.
        let bytes = serde_json::to_vec(&stored).unwrap_or_default();
        file::replace(&self.path, &bytes)
    }
}

impl Stored {
    /// The memory as it is by now.
    fn now(self) -> NicMemory {
        let passed = now().saturating_sub(self.at);
        let passed = u32::try_from(passed).unwrap_or(u32::MAX);
        let addresses = self.memory.addresses.into_iter();
        NicMemory {
            addresses: addresses.map(|address| address.later(passed)).collect(),
            ..self.memory
        }
    }
}

/// The memories after NICs are taken from the host. One that was moved before has lost what it had: its memory stays.
pub(crate) fn before_move<'a>(
    memories: &Memories,
    taken: impl Iterator<Item = &'a str>,
    observed: &Observed,
    known: &Known,
) -> Memories {
    let mut memories = memories.clone();
    for name in taken {
        let nic = observed.links.get(&LinkId::host(name));
        let Some(nic) = nic.filter(|nic| nic.owner == Owner::Foreign) else {
            continue;
        };
        let own = |route: &&HostRoute| {
            route.devices().any(|device| device == name) && !route.is_automatic()
        };
        let memory = NicMemory {
            alias: nic.alias.clone(),
            mtu: Some(nic.mtu),
            addresses: known.addresses.get(name).cloned().unwrap_or_default(),
            settings: known.settings.get(name).cloned().unwrap_or_default(),
            routes: known.routes.iter().filter(own).cloned().collect(),
        };
        memories.insert(name.to_owned(), memory);
    }
    memories
}

/// The memories after NICs were given back: of those that are still moved, of those that are not there, and of the others what could
/// not be given back.
pub(crate) fn after_return(memories: &Memories, observed: &Observed, failed: &[&Step]) -> Memories {
    let is_back = |name: &String| {
        let nic = observed.links.get(&LinkId::host(name));
        nic.is_some_and(|nic| nic.owner == Owner::Foreign)
    };
    let left = memories.iter().map(|(name, memory)| {
        let left = if is_back(name) {
            not_given_back(name, memory, failed)
        } else {
            memory.clone()
        };
        (name.clone(), left)
    });
    left.filter(|(_, memory)| !memory.is_empty()).collect()
}

/// What the failed steps would have given a NIC.
fn not_given_back(nic: &str, memory: &NicMemory, failed: &[&Step]) -> NicMemory {
    let mut left = NicMemory::default();
    for step in failed {
        match step {
            Step::SetLink { id, change } if *id == LinkId::host(nic) => match change {
                LinkChange::Alias(alias) => left.alias = Some(alias.clone()),
                LinkChange::Mtu(mtu) => left.mtu = Some(*mtu),
                _ => {}
            },
            Step::SetSysctl { id, value } if id.link.as_deref() == Some(nic) => {
                left.settings.insert(id.path.clone(), value.clone());
            }
            Step::RestoreAddress { nic: of, address } if of == nic => {
                left.addresses.push(address.clone());
            }
            Step::RestoreRoute(route) if memory.routes.contains(route) => {
                left.routes.push(route.clone());
            }
            _ => {}
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use linux::{HostHop, Kind, ObservedLink};

    use super::*;

    fn observed(owner: Owner) -> Observed {
        let mut observed = Observed::default();
        let mut nic = ObservedLink::fresh(owner, Kind::Other("ether".to_owned()));
        nic.alias = Some("uplink".to_owned());
        nic.mtu = 9000;
        observed.links.insert(LinkId::host("eth1"), nic);
        observed
    }

    fn route(device: &str, protocol: u8) -> HostRoute {
        HostRoute {
            gateway: None,
            destination: "192.0.2.0/24".parse().unwrap(),
            device: device.to_owned(),
            table: 254,
            metric: 0,
            protocol,
            source: None,
            on_link: false,
            mtu: None,
            weight: 0,
            more: Vec::new(),
        }
    }

    fn known(routes: &[HostRoute]) -> Known {
        Known {
            routes: routes.to_vec(),
            ..Known::default()
        }
    }

    #[test]
    fn an_address_that_ends_has_become_older_and_is_never_given_back_without_time_to_renew_it() {
        let address = |valid, preferred| HostAddress {
            address: "192.0.2.1/24".parse().unwrap(),
            peer: None,
            label: None,
            no_prefix_route: false,
            no_dad: false,
            valid,
            preferred,
        };
        let stored = |seconds| Stored {
            at: now() - seconds,
            memory: NicMemory {
                addresses: vec![address(Some(1000), Some(500)), address(None, None)],
                ..NicMemory::default()
            },
        };
        let [ends, stays] = stored(300).now().addresses.try_into().unwrap();
        assert!(ends.valid.is_some_and(|valid| (600..=700).contains(&valid)));
        assert!(
            ends.preferred
                .is_some_and(|time| (100..=200).contains(&time))
        );
        assert_eq!(stays, address(None, None));
        let late = stored(100_000).now().addresses.swap_remove(0);
        assert_eq!((late.valid, late.preferred), (Some(60), Some(0)));
    }

    #[test]
    fn routes_of_the_nic_are_remembered_and_those_that_the_kernel_makes_are_not() {
        let both = HostRoute {
            more: vec![HostHop {
                gateway: None,
                device: "eth1".to_owned(),
                on_link: false,
                weight: 0,
            }],
            ..route("eth2", 4)
        };
        let routes = [
            route("eth1", 2),
            route("eth1", 4),
            route("eth2", 4),
            both.clone(),
        ];
        let known = known(&routes);
        let foreign = observed(Owner::Foreign);
        let memories = before_move(&Memories::new(), ["eth1"].into_iter(), &foreign, &known);
        let memory = &memories["eth1"];
        assert_eq!(memory.routes, [route("eth1", 4), both]);
        assert_eq!(
            (memory.alias.as_deref(), memory.mtu),
            (Some("uplink"), Some(9000))
        );
        // A NIC that is moved again after a crash has nothing left to remember.
        let again = before_move(
            &memories,
            ["eth1"].into_iter(),
            &observed(Owner::Moved),
            &Known::default(),
        );
        assert_eq!(again, memories);
        assert_eq!(
            after_return(&memories, &observed(Owner::Moved), &[]),
            memories
        );
        assert!(after_return(&memories, &foreign, &[]).is_empty());
    }

    #[test]
    fn what_could_not_be_given_back_is_remembered_and_nothing_else() {
        let foreign = observed(Owner::Foreign);
        let routes = known(&[route("eth1", 4), route("eth1", 3)]);
        let memories = before_move(&Memories::new(), ["eth1"].into_iter(), &foreign, &routes);
        let id = LinkId::host("eth1");
        let change = LinkChange::Mtu(9000);
        let failed = [
            Step::SetLink { id, change },
            Step::RestoreRoute(route("eth1", 3)),
            Step::RestoreRoute(route("eth2", 3)),
        ];
        let left = after_return(&memories, &foreign, &failed.each_ref());
        let expected = NicMemory {
            mtu: Some(9000),
            routes: vec![route("eth1", 3)],
            ..NicMemory::default()
        };
        assert_eq!(left, Memories::from([("eth1".to_owned(), expected)]));
        // What is given back at the next attempt is forgotten.
        assert!(after_return(&left, &foreign, &[]).is_empty());
    }

    #[test]
    fn memories_survive_on_disk_and_a_damaged_file_costs_nothing_else() {
        let directory = tempfile::TempDir::new().unwrap();
        let store = Store::new(directory.path());
        assert!(store.load().unwrap().is_empty());
        let routes = [route("eth1", 4)];
        let foreign = observed(Owner::Foreign);
        let memories = before_move(
            &Memories::new(),
            ["eth1"].into_iter(),
            &foreign,
            &known(&routes),
        );
        store.save(&memories).unwrap();
        assert_eq!(store.load().unwrap(), memories);
        std::fs::write(directory.path().join("nics"), "{").unwrap();
        assert!(store.load().unwrap().is_empty());
        assert!(directory.path().join("nics.damaged").exists());
    }
}
