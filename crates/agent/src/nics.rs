//! What NICs had in the host's namespace before they were moved, on disk: it must survive a reboot between the move and
//! the return.

use std::{collections::BTreeMap, path::PathBuf};

use linux::{HostRoute, LinkId, NicMemory, Observed, owned::Owner};

use crate::file;

/// By name of the NIC.
pub(crate) type Memories = BTreeMap<String, NicMemory>;

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
        serde_json::from_slice(&bytes).or_else(|error| {
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
        // Keys are text, so this cannot fail.
        let bytes = serde_json::to_vec(memories).unwrap_or_default();
        file::replace(&self.path, &bytes)
    }
}

/// The memories after NICs are taken from the host. One that was moved before has lost what it had: its memory stays.
pub(crate) fn before_move<'a>(
    memories: &Memories,
    taken: impl Iterator<Item = &'a str>,
    observed: &Observed,
    routes: &[HostRoute],
) -> Memories {
    let mut memories = memories.clone();
    for name in taken {
        let nic = observed.links.get(&LinkId::host(name));
        let Some(nic) = nic.filter(|nic| nic.owner == Owner::Foreign) else {
            continue;
        };
        let own = |route: &&HostRoute| route.device == name && !route.is_automatic();
        let memory = NicMemory {
            alias: nic.alias.clone(),
            mtu: nic.mtu,
            routes: routes.iter().filter(own).cloned().collect(),
        };
        memories.insert(name.to_owned(), memory);
    }
    memories
}

/// The memories after NICs were given back: of those that are still moved, and of those that are not there.
pub(crate) fn after_return(memories: &Memories, observed: &Observed) -> Memories {
    let is_back = |name: &String| {
        let nic = observed.links.get(&LinkId::host(name));
        nic.is_some_and(|nic| nic.owner == Owner::Foreign)
    };
    let kept = memories.iter().filter(|(name, _)| !is_back(name));
    kept.map(|(name, memory)| (name.clone(), memory.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use linux::{Kind, ObservedLink};

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
        }
    }

    #[test]
    fn routes_of_the_nic_are_remembered_and_those_that_the_kernel_makes_are_not() {
        let routes = [route("eth1", 2), route("eth1", 4), route("eth2", 4)];
        let foreign = observed(Owner::Foreign);
        let memories = before_move(&Memories::new(), ["eth1"].into_iter(), &foreign, &routes);
        let memory = &memories["eth1"];
        assert_eq!(memory.routes, [route("eth1", 4)]);
        assert_eq!(
            (memory.alias.as_deref(), memory.mtu),
            (Some("uplink"), 9000)
        );
        // A NIC that is moved again after a crash has nothing left to remember.
        let again = before_move(
            &memories,
            ["eth1"].into_iter(),
            &observed(Owner::Moved),
            &[],
        );
        assert_eq!(again, memories);
        assert_eq!(after_return(&memories, &observed(Owner::Moved)), memories);
        assert!(after_return(&memories, &foreign).is_empty());
    }

    #[test]
    fn memories_survive_on_disk_and_a_damaged_file_costs_nothing_else() {
        let directory = tempfile::TempDir::new().unwrap();
        let store = Store::new(directory.path());
        assert!(store.load().unwrap().is_empty());
        let routes = [route("eth1", 4)];
        let foreign = observed(Owner::Foreign);
        let memories = before_move(&Memories::new(), ["eth1"].into_iter(), &foreign, &routes);
        store.save(&memories).unwrap();
        assert_eq!(store.load().unwrap(), memories);
        std::fs::write(directory.path().join("nics"), "{").unwrap();
        assert!(store.load().unwrap().is_empty());
        assert!(directory.path().join("nics.damaged").exists());
    }
}
