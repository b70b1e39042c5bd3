//! Entries that zebra creates in the namespace of the router from routes of bgpd, and those that the agent has restored.
//!
//! When bgpd exits, zebra deletes them, and the way into VXLAN with them. What the agent puts back must look like zebra's to
//! the data plane and to zebra, and yet be distinguishable, also by an agent that was started later. The marks:
//!
//! | entry | zebra's | put back |
//! |---|---|---|
//! | neighbor | learned externally, `noarp`, protocol zebra | the same, `permanent` |
//! | MAC behind a port of a bridge | learned externally | dynamic; on a VXLAN device of ours nothing is learned otherwise |
//! | MAC behind a tunnel endpoint | the kernel keeps no mark | known by its entry in the bridge |
//! | endpoint that is flooded to | the kernel keeps no mark | – |
//! | route | protocol bgp | a copy with protocol [`PROTOCOL`], of the least preference |
//!
//! When zebra makes an entry anew, it overwrites the mark. Newer versions of zebra do not: they adopt what they find. So zebra
//! is asked in the end what it knows ([`settle`]).

use std::{collections::BTreeSet, net::IpAddr};

use api::value::MacAddress;

/// Protocol of copies of bgpd's routes: EIGRP, which no node runs. zebra takes routes of protocols that FRR does not have
/// for the kernel's, and when one of them goes, it deletes the neighbor and the MAC of a tunnel endpoint that it
/// shares with a route of bgpd. Routes of FRR's protocols it passes over, and one that starts anew sweeps them away.
pub const PROTOCOL: u8 = 192;
/// Added to the metric of a copy, so that it is the last that the kernel chooses.
pub const METRIC: u32 = 0xff00_0000;
/// More routes than this are not copied: the agent is small.
pub const MOST_ROUTES: usize = 10_000;

/// An entry, by the index of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entry {
    /// A MAC address is behind a tunnel endpoint. Packets to unknown MACs go to all endpoints of the MAC of zeros.
    Endpoint {
        /// The VXLAN device.
        device: u32,
        /// The MAC.
        mac: MacAddress,
        /// The endpoint.
        endpoint: IpAddr,
    },
    /// A bridge reaches a MAC address through its port, a VXLAN device.
    Port {
        /// The VXLAN device.
        device: u32,
        /// The MAC.
        mac: MacAddress,
        /// The VLAN, if the entry is of one.
        vlan: Option<u16>,
    },
    /// An address has a MAC address.
    Neighbor {
        /// The device.
        device: u32,
        /// The address.
        address: IpAddr,
        /// MAC address; the kernel does not report it for a deleted entry.
        mac: Option<MacAddress>,
    },
}

/// Who made an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// zebra.
    Zebra,
    /// The agent, in zebra's place.
    Held,
    /// The kernel or another program.
    Other,
}

impl Entry {
    /// The device.
    pub fn device(&self) -> u32 {
        match self {
            Self::Endpoint { device, .. }
            | Self::Port { device, .. }
            | Self::Neighbor { device, .. } => *device,
        }
    }

    /// Key of the entry: the entry without what the kernel does not report when it is deleted.
    pub fn id(self) -> Self {
        match self {
            Self::Neighbor {
                device, address, ..
            } => Self::Neighbor {
                device,
                address,
                mac: None,
            },
            Self::Endpoint { .. } | Self::Port { .. } => self,
        }
    }

    /// Whether packets to unknown MACs go there.
    pub fn is_flooded(&self) -> bool {
        matches!(self, Self::Endpoint { mac, .. } if mac.bytes() == [0; 6])
    }
}

/// What zebra knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// MACs, of hosts and of routers.
    pub macs: BTreeSet<MacAddress>,
    /// Addresses that have one.
    pub addresses: BTreeSet<IpAddr>,
    /// The endpoints that each VXLAN device floods to.
    pub flooded: BTreeSet<(u32, IpAddr)>,
    /// The gateways of bgpd's routes that are in the kernel, by device. zebra keeps such routes for longer than the MACs on their way.
    pub gateways: BTreeSet<(u32, IpAddr)>,
}

/// What becomes of entries when nothing is held any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Entries that neither zebra nor bgpd has: they are deleted.
    pub leftovers: Vec<Entry>,
    /// zebra has adopted them: they become like zebra's own.
    pub adopted: Vec<Entry>,
    /// zebra does not know them, and a route of bgpd needs them: they stay until it goes.
    pub needed: Vec<Entry>,
}

/// Decides about what was put back, among all entries.
pub fn settle(found: &[(Entry, Origin)], known: &Known) -> Settled {
    let of_zebra = found.iter().filter_map(|(entry, origin)| match entry {
        Entry::Port { device, mac, .. } if *origin == Origin::Zebra => Some((*device, *mac)),
        Entry::Port { .. } | Entry::Endpoint { .. } | Entry::Neighbor { .. } => None,
    });
    let of_zebra: BTreeSet<(u32, MacAddress)> = of_zebra.collect();
    let gateways = found.iter().filter_map(|(entry, _)| match entry {
        Entry::Neighbor {
            device,
            address,
            mac,
        } if known.gateways.contains(&(*device, *address)) => *mac,
        Entry::Neighbor { .. } | Entry::Endpoint { .. } | Entry::Port { .. } => None,
    });
    let gateways: BTreeSet<MacAddress> = gateways.collect();
    let mut settled = Settled::default();
    for (entry, origin) in found {
        let is_needed = match entry {
            Entry::Endpoint { mac, .. } | Entry::Port { mac, .. } => gateways.contains(mac),
            Entry::Neighbor {
                device, address, ..
            } => known.gateways.contains(&(*device, *address)),
        };
        let is_held = *origin == Origin::Held;
        let (is_held, is_known) = match entry {
            Entry::Endpoint {
                device, endpoint, ..
            } if entry.is_flooded() => (false, known.flooded.contains(&(*device, *endpoint))),
            // zebra makes it together with the bridge's; a MAC that has moved to another port leaves it behind.
            Entry::Endpoint { device, mac, .. } => {
                let is_of_zebra = of_zebra.contains(&(*device, *mac));
                (false, is_of_zebra || known.macs.contains(mac))
            }
            Entry::Port { mac, .. } => (is_held, !is_held || known.macs.contains(mac)),
            Entry::Neighbor { address, .. } => {
                (is_held, !is_held || known.addresses.contains(address))
            }
        };
        match (is_held, is_known) {
            (_, false) if is_needed => settled.needed.push(*entry),
            (_, false) => settled.leftovers.push(*entry),
            (true, true) => settled.adopted.push(*entry),
            (false, true) => {}
        }
    }
    settled
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAF: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 254, 0, 1));

    fn mac(last: u8) -> MacAddress {
        MacAddress::new([2, 0, 0, 0, 0, last])
    }

    fn endpoint(last: u8) -> Entry {
        Entry::Endpoint {
            device: 7,
            mac: mac(last),
            endpoint: LEAF,
        }
    }

    fn port(last: u8) -> Entry {
        Entry::Port {
            device: 7,
            mac: mac(last),
            vlan: None,
        }
    }

    #[test]
    fn what_zebra_made_anew_stays_what_it_adopted_becomes_its_own_and_the_rest_goes() {
        let neighbor = |device| Entry::Neighbor {
            device,
            address: LEAF,
            mac: Some(mac(1)),
        };
        let found = [
            (port(1), Origin::Zebra),
            (endpoint(1), Origin::Zebra),
            (port(2), Origin::Held),
            (endpoint(2), Origin::Zebra),
            (endpoint(3), Origin::Zebra),
            (port(4), Origin::Held),
            (endpoint(4), Origin::Zebra),
            (port(5), Origin::Other),
            (neighbor(1), Origin::Zebra),
            (neighbor(2), Origin::Held),
            (neighbor(3), Origin::Other),
        ];
        let mut known = Known::default();
        known.macs.insert(mac(4));
        let settled = settle(&found, &known);
        assert_eq!(
            settled.leftovers,
            [port(2), endpoint(2), endpoint(3), neighbor(2)]
        );
        assert_eq!(settled.adopted, [port(4)]);
        known.addresses.insert(LEAF);
        let settled = settle(&found, &known);
        assert_eq!(settled.adopted, [port(4), neighbor(2)]);
    }

    #[test]
    fn what_a_route_of_bgpd_has_for_its_gateway_stays_until_the_route_goes() {
        let gateway = Entry::Neighbor {
            device: 9,
            address: LEAF,
            mac: Some(mac(1)),
        };
        let found = [
            (gateway, Origin::Held),
            (port(1), Origin::Held),
            (endpoint(1), Origin::Zebra),
            (port(2), Origin::Held),
            (endpoint(2), Origin::Zebra),
        ];
        let mut known = Known::default();
        known.gateways.insert((9, LEAF));
        let settled = settle(&found, &known);
        assert_eq!(settled.needed, [gateway, port(1), endpoint(1)]);
        assert_eq!(settled.leftovers, [port(2), endpoint(2)]);
        // The same address on another device is another gateway.
        known.gateways = BTreeSet::from([(8, LEAF)]);
        let settled = settle(&found, &known);
        assert_eq!(settled.needed, []);
        assert_eq!(settled.leftovers.len(), found.len());
    }

    #[test]
    fn zebra_is_believed_which_endpoints_are_flooded_to() {
        let flooded = Entry::Endpoint {
            device: 7,
            mac: MacAddress::new([0; 6]),
            endpoint: LEAF,
        };
        let found = [(flooded, Origin::Zebra)];
        let mut known = Known::default();
        known.flooded.insert((8, LEAF));
        assert_eq!(settle(&found, &known).leftovers, [flooded]);
        known.flooded.insert((7, LEAF));
        assert_eq!(settle(&found, &known), Settled::default());
    }
}
