//! Ownership: the only module that decides what Selvedge may change and delete.
//!
//! | object | mark | written |
//! |---|---|---|
//! | link we made | link group [`GROUP_MADE`] | in the message that makes it |
//! | NIC we moved | link group [`GROUP_MOVED`] | in the message that moves it |
//! | address | lies on a link we made, or on the loopback of a namespace we made | – |
//! | route, rule | protocol [`PROTOCOL`] | in the message that makes it |
//! | copy of a route of bgpd, entry in zebra's place | see [`learned`](crate::learned) | in the message that makes it |
//! | namespace | alias [`NAMESPACE_ALIAS`] on its loopback | before the namespace gets its name |
//! | filter | handle [`FILTER_HANDLE`] | in the message that makes it |
//! | hook for filters | none: it is never removed, and goes with its link, which we made | – |
//! | sysctl | belongs to the router's namespace, or to a link we made | – |
//!
//! The mark of a link is its group and not its alias, because the kernel takes a group together with the link and an
//! alias only afterwards: a process that exits between the two would leave a link without an owner, which is never deleted. The
//! alias (`selvedge:<what>`) is informational, with two exceptions: on a moved NIC it remembers the addresses that the move
//! flushes, so that they survive a crash between the move and their return; and on a port of a segment it remembers the
//! bridge of the host that we put the port into, so that it is taken out of that bridge and of no other.
//!
//! Two failure modes, and how they are prevented:
//!
//! - **Leaking one of ours** (a link that no later plan removes): the mark is set atomically with the object, so there is
//!   no instant at which an object of ours is unmarked. If another program changes the group of a link, the link is foreign
//!   from then on, and a conflict is reported if its name is needed.
//! - **Deleting a foreign object**: names do not decide ownership. A foreign object with a name we need is a
//!   [`Conflict`](crate::Conflict) that names it. Group and protocol numbers are large or unassigned, so that
//!   no other program uses them by chance. The executor checks the mark again immediately before it deletes a link.

use std::{collections::BTreeSet, ops::RangeInclusive};

use ipnet::IpNet;

/// Link group of what we made. Large, because other users of groups count from one.
pub const GROUP_MADE: u32 = 0x5e1d_0001;
/// Link group of a NIC that we moved into the router's namespace, or are about to return.
pub const GROUP_MOVED: u32 = 0x5e1d_0002;
/// Protocol of our routes and rules: unassigned in the kernel, in iproute2 and in FRR (which uses 11 and 186–198).
pub const PROTOCOL: u8 = 176;
/// Handle of our filters. Others let the kernel number theirs, which counts from one.
pub const FILTER_HANDLE: u32 = 0x5e1d_0001;
/// Priorities of our filters: after those that users choose, before those that the kernel chooses.
pub const FILTER_PRIORITIES: RangeInclusive<u16> = 0x8000..=0xbfff;
/// Alias of the loopback of a namespace that we made.
pub const NAMESPACE_ALIAS: &str = "selvedge:namespace";
/// How many bytes of alias the kernel keeps.
pub const MAX_ALIAS: usize = 255;

const PREFIX: &str = "selvedge:";
const PORT_OF: &str = ", port of ";
const NIC: &str = "selvedge:nic";

/// Owner of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// Created by Selvedge.
    Ours,
    /// A NIC of the host that Selvedge has moved and will return.
    Moved,
    /// Created by another program, a user or the kernel.
    Foreign,
}

impl Owner {
    /// Whose a link of this group is.
    pub fn of_group(group: u32) -> Self {
        match group {
            GROUP_MADE => Self::Ours,
            GROUP_MOVED => Self::Moved,
            _ => Self::Foreign,
        }
    }

    /// Whose a route or rule of this protocol is.
    pub fn of_protocol(protocol: u8) -> Self {
        if protocol == PROTOCOL {
            Self::Ours
        } else {
            Self::Foreign
        }
    }
}

/// The alias of a link we made, for people: `selvedge:l2 100`.
pub fn alias(what: &str) -> String {
    let mut alias = format!("{PREFIX}{what}");
    let mut end = MAX_ALIAS.min(alias.len());
    while !alias.is_char_boundary(end) {
        end -= 1;
    }
    alias.truncate(end);
    alias
}

/// The alias of a link that we put into a bridge of the host: `selvedge:l2 vni 210, port of br0`.
pub fn port_alias(what: &str, bridge: &str) -> String {
    alias(&format!("{what}{PORT_OF}{bridge}"))
}

/// What the alias of a link we made says it belongs to: `l2 vni 210`.
pub fn what(alias: &str) -> &str {
    let what = alias.strip_prefix(PREFIX).unwrap_or(alias);
    what.rsplit_once(PORT_OF).map_or(what, |(what, _)| what)
}

/// The bridge that the alias of a link says we put it into.
pub fn put_into(alias: Option<&str>) -> Option<&str> {
    let (_, bridge) = alias?.strip_prefix(PREFIX)?.rsplit_once(PORT_OF)?;
    Some(bridge)
}

/// The alias of a moved NIC, which remembers its addresses; `None` if they do not fit.
pub fn remember(addresses: &BTreeSet<IpNet>) -> Option<String> {
    let mut alias = NIC.to_owned();
    for address in addresses {
        alias.push(' ');
        alias.push_str(&address.to_string());
    }
    (alias.len() <= MAX_ALIAS).then_some(alias)
}

/// The addresses that the alias of a moved NIC remembers.
pub fn remembered(alias: Option<&str>) -> BTreeSet<IpNet> {
    alias
        .and_then(|alias| alias.strip_prefix(NIC))
        .unwrap_or_default()
        .split_ascii_whitespace()
        .filter_map(|text| text.parse().ok())
        .collect()
}

/// Whether an address is made by the kernel itself: on a link of ours it is not ours to remove.
pub fn is_automatic(address: &IpNet) -> bool {
    match address {
        IpNet::V4(net) => net.addr().is_loopback(),
        IpNet::V6(net) => net.addr().is_loopback() || net.addr().is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_nic_remembers_its_addresses() {
        let addresses: BTreeSet<IpNet> = ["192.0.2.1/24", "2001:db8::1/64"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        let alias = remember(&addresses).unwrap();
        assert_eq!(alias, "selvedge:nic 192.0.2.1/24 2001:db8::1/64");
        assert_eq!(remembered(Some(&alias)), addresses);
        assert_eq!(remembered(Some("uplink to leaf1")), BTreeSet::new());
    }

    #[test]
    fn more_addresses_than_an_alias_holds_are_refused() {
        let addresses = (0..20)
            .map(|i| format!("2001:db8:1111:2222:3333:4444:5555:{i:x}/64"))
            .map(|text| text.parse().unwrap())
            .collect();
        assert_eq!(remember(&addresses), None);
    }
}
