//! Names of FRR's route maps, lists and groups. They are made here and nowhere else.
//!
//! # Scheme
//! * What belongs to a VRF begins with the VRF's device and a colon: `red:evpn`, `red:import:blue`.
//! * What belongs to the node as a whole has no colon: `fabric-in`, `node-only`.
//! * A list of a route map's entry is the map's name and the entry's number: `red:evpn:10`.
//! * A list of communities is named by its content, and so never changes.

use std::fmt::Display;

use api::value::{IfName, Prefix};

use crate::config::{IpFamily, Name, RedistributeSource};

/// Which way routes of a session go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the peer to the node.
    In,
    /// From the node to the peer.
    Out,
}

impl Direction {
    fn as_str(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Out => "out",
        }
    }
}

/// Route map that lets nothing through.
pub fn nothing() -> Name {
    Name::of(format_args!("nothing"))
}

/// Route map that marks what comes from the fabric.
pub fn fabric_in() -> Name {
    Name::of(format_args!("fabric-in"))
}

/// Route map of unicast routes that the fabric gets.
pub fn fabric_out() -> Name {
    Name::of(format_args!("fabric-out"))
}

/// Route map of EVPN routes that the fabric gets.
pub fn fabric_evpn_out() -> Name {
    Name::of(format_args!("fabric-evpn-out"))
}

/// First word of the description of a session with the host in the default VRF. The others there are with the fabric.
pub const PASSTHROUGH: &str = "passthrough";

/// Route map of passthroughs.
pub fn passthrough(direction: Direction) -> Name {
    Name::of(format_args!("{PASSTHROUGH}-{}", direction.as_str()))
}

/// Prefix list, of either family, of the networks between router and host of passthroughs.
pub fn passthrough_networks() -> Name {
    Name::of(format_args!("passthrough-networks"))
}

/// Prefix list, of either family, of networks that no other machine may learn.
pub fn node_only() -> Name {
    Name::of(format_args!("node-only"))
}

/// List of the communities with a meaning that all networks share, such as no-export and blackhole.
pub fn well_known_communities() -> Name {
    Name::of(format_args!("well-known"))
}

/// Route map of what a VRF announces into the fabric.
pub fn evpn_export(vrf: &IfName) -> Name {
    Name::of(format_args!("{vrf}:evpn"))
}

/// Route map of everything that a VRF takes over from other VRFs.
pub fn imports(vrf: &IfName) -> Name {
    Name::of(format_args!("{vrf}:import"))
}

/// Route map of what a VRF takes over from one other VRF.
pub fn import_from(vrf: &IfName, source: &IfName) -> Name {
    Name::of(format_args!("{vrf}:import:{source}"))
}

/// Route map of what becomes BGP routes of a VRF.
pub fn redistribution(vrf: &IfName, source: RedistributeSource) -> Name {
    Name::of(format_args!("{vrf}:{}", source.as_str()))
}

/// Route map of one family and direction of a VRF's session; `peer` is its address or listen range.
pub fn session_filter(
    vrf: &IfName,
    peer: &dyn Display,
    family: IpFamily,
    direction: Direction,
) -> Name {
    let (family, direction) = (family.afi(), direction.as_str());
    Name::of(format_args!("{vrf}:{peer}:{family}:{direction}"))
}

/// Route map of a VRF's session with the host.
pub fn host(vrf: &IfName, direction: Direction) -> Name {
    Name::of(format_args!("{vrf}:host:{}", direction.as_str()))
}

/// Prefix list, of either family, of the network between router and host in a VRF.
pub fn host_networks(vrf: &IfName) -> Name {
    Name::of(format_args!("{vrf}:host-networks"))
}

/// Prefix list, of either family, of the host's own addresses in a VRF.
pub fn host_addresses(vrf: &IfName) -> Name {
    Name::of(format_args!("{vrf}:host-addresses"))
}

/// Group of the sessions that members of a network open.
pub fn listen_group(range: Prefix) -> Name {
    Name::of(format_args!("listen:{range}"))
}

/// Prefix list of an entry of a route map.
pub fn entry_list(map: &Name, entry: u16) -> Name {
    Name::of(format_args!("{map}:{entry}"))
}

/// Whether a word names a route map, or the prefix list of one of its entries.
pub fn is_part_of(word: &str, map: &Name) -> bool {
    let Some(rest) = word.strip_prefix(map.as_str()) else {
        return false;
    };
    let number = rest.strip_prefix(':').map(str::parse::<u16>);
    rest.is_empty() || matches!(number, Some(Ok(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_part_of_its_map_and_of_no_other() {
        let (red, blue): (IfName, IfName) = ("red".parse().unwrap(), "blue".parse().unwrap());
        let map = import_from(&red, &blue);
        assert!(is_part_of(map.as_str(), &map));
        assert!(is_part_of(entry_list(&map, 15).as_str(), &map));
        assert!(!is_part_of(map.as_str(), &imports(&red)));
        assert!(!is_part_of(evpn_export(&red).as_str(), &map));
    }
}
