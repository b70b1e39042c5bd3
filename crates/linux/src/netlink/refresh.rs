//! Asks neighbors that have been silent whether they are still there.
//!
//! A workload that sends nothing is forgotten by the bridge after five minutes, and FRR withdraws its route of type 2 with it. The kernel asks
//! such a neighbor itself once the entry is set to a state that needs confirmation; the answer is traffic that the bridge learns from.

use std::collections::{BTreeMap, BTreeSet};

use netlink_packet_route::{
    AddressFamily, RouteNetlinkMessage,
    neighbour::{
        NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
    },
};
use rtnetlink::packet_core::NLM_F_REPLACE;

use super::{Connection, Error, Kernel, RequestError, namespace::Namespace, read};
use crate::Domain;

/// Neighbors of the router.
#[derive(Debug)]
pub struct Neighbors {
    connection: Connection,
}

impl Kernel {
    /// The neighbors in the router's namespace, if it exists now.
    pub async fn neighbors(&self) -> Result<Option<Neighbors>, Error> {
        let failed = |source| Error::OpenNamespace {
            name: self.name.clone(),
            source,
        };
        let Some(namespace) = Namespace::named(&self.name).map_err(failed)? else {
            return Ok(None);
        };
        let connection = namespace.connect(Domain::Router).await.map_err(failed)?;
        Ok(Some(Neighbors { connection }))
    }
}

impl Neighbors {
    /// Lets the kernel ask for every neighbor behind one of these devices that it has not heard of for a while. Returns for how many.
    pub async fn ask_silent(&self, devices: &BTreeSet<String>) -> Result<usize, RequestError> {
        let links = read::links(&self.connection).await?;
        let links = links
            .into_iter()
            .filter(|link| devices.contains(&link.name));
        let links: BTreeMap<u32, String> = links.map(|link| (link.index, link.name)).collect();
        let mut asked = 0;
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut request = NeighbourMessage::default();
            request.header.family = family;
            let request = RouteNetlinkMessage::GetNeighbour(request);
            for object in self.connection.dump(request).await? {
                let RouteNetlinkMessage::NewNeighbour(neighbor) = object else {
                    continue;
                };
                if !links.contains_key(&neighbor.header.ifindex) {
                    continue;
                }
                let Some(question) = question(&neighbor) else {
                    continue;
                };
                let question = RouteNetlinkMessage::NewNeighbour(question);
                match self.connection.change(question, NLM_F_REPLACE).await {
                    Ok(()) => asked += 1,
                    // It is gone, or its device is.
                    Err(error) if matches!(error.errno(), Some(2 | 6 | 19)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(asked)
    }
}

/// The entry of a silent neighbor as one that is in doubt; nothing for others, those that zebra knows from other nodes among them.
fn question(neighbor: &NeighbourMessage) -> Option<NeighbourMessage> {
    let header = &neighbor.header;
    let is_silent = header.state == NeighbourState::Stale;
    let is_local = !header.flags.contains(NeighbourFlags::ExtLearned);
    let of_mac = |one: &&NeighbourAttribute| matches!(one, NeighbourAttribute::LinkLayerAddress(mac) if mac.len() == 6);
    let of_address = |one: &&NeighbourAttribute| match one {
        NeighbourAttribute::Destination(NeighbourAddress::Inet(_)) => true,
        NeighbourAttribute::Destination(NeighbourAddress::Inet6(address)) => {
            !address.is_unicast_link_local()
        }
        _ => false,
    };
    let mac = neighbor.attributes.iter().find(of_mac)?;
    let address = neighbor.attributes.iter().find(of_address)?;
    if !is_silent || !is_local {
        return None;
    }
    let mut question = NeighbourMessage::default();
    question.header.family = header.family;
    question.header.ifindex = header.ifindex;
    question.header.state = NeighbourState::Probe;
    question.attributes = vec![address.clone(), mac.clone()];
    Some(question)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn neighbor(state: NeighbourState, flags: NeighbourFlags, address: &str) -> NeighbourMessage {
        let mut message = NeighbourMessage::default();
        message.header.ifindex = 7;
        message.header.state = state;
        message.header.flags = flags;
        let address: std::net::IpAddr = address.parse().expect("an address");
        message.attributes = vec![
            NeighbourAttribute::Destination(address.into()),
            NeighbourAttribute::LinkLayerAddress(vec![2, 0, 0, 0, 0, 1]),
        ];
        message
    }

    #[test]
    fn only_silent_neighbors_of_this_node_are_asked() {
        let none = NeighbourFlags::empty();
        let (stale, reachable) = (NeighbourState::Stale, NeighbourState::Reachable);
        let silent = question(&neighbor(stale, none, "10.0.0.9")).expect("it is asked");
        assert_eq!(silent.header.state, NeighbourState::Probe);
        assert_eq!(silent.attributes.len(), 2);
        assert!(question(&neighbor(stale, none, "fd00::9")).is_some());
        assert!(question(&neighbor(stale, none, "fe80::9")).is_none());
        assert!(question(&neighbor(reachable, none, "10.0.0.9")).is_none());
        let of_zebra = NeighbourFlags::ExtLearned;
        assert!(question(&neighbor(stale, of_zebra, "10.0.0.9")).is_none());
    }
}
