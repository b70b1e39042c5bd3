//! The words that desired and fact share: domains, links, routes, rules.

use std::{fmt, net::IpAddr};

use ipnet::IpNet;

/// The kernel's table of local addresses.
pub const TABLE_LOCAL: u32 = 255;
/// The kernel's main table.
pub const TABLE_MAIN: u32 = 254;

/// One of the two routing domains of a node; each is a network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Domain {
    /// The namespace the agent itself runs in.
    Host,
    /// The named, persistent namespace of the router.
    Router,
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "host",
            Self::Router => "router",
        })
    }
}

/// A link: its domain and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId {
    /// Where the link is.
    pub domain: Domain,
    /// What it is called. Text, because a foreign link may bear a name that we would never give.
    pub name: String,
}

impl LinkId {
    /// A link of the host's namespace.
    pub fn host(name: impl AsRef<str>) -> Self {
        Self {
            domain: Domain::Host,
            name: name.as_ref().to_owned(),
        }
    }

    /// A link of the router's namespace.
    pub fn router(name: impl AsRef<str>) -> Self {
        Self {
            domain: Domain::Router,
            name: name.as_ref().to_owned(),
        }
    }

    /// A link of the same namespace.
    pub fn sibling(&self, name: impl AsRef<str>) -> Self {
        Self {
            domain: self.domain,
            name: name.as_ref().to_owned(),
        }
    }
}

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.domain, self.name)
    }
}

/// What a link is, with everything that cannot be changed while it exists.
///
/// Two links of one name and different kinds are never turned into each other: the old one goes, the new one is made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The loopback that every namespace has from the start.
    Loopback,
    /// A VRF device.
    Vrf {
        /// Its routing table.
        table: u32,
    },
    /// A bridge.
    Bridge,
    /// A VXLAN tunnel without a fixed far end.
    Vxlan {
        /// Network identifier.
        vni: u32,
        /// UDP port.
        port: u16,
        /// Near end.
        local: Option<IpAddr>,
        /// Whether it learns addresses from the packets it sees.
        learning: bool,
    },
    /// A VLAN on another link of the same namespace.
    Vlan {
        /// The link below; unknown when it is in another namespace.
        parent: Option<String>,
        /// VLAN id.
        id: u16,
    },
    /// One end of a veth pair.
    Veth {
        /// The other end; unknown when it is in neither domain.
        peer: Option<LinkId>,
    },
    /// A dummy, which carries addresses and nothing else.
    Dummy,
    /// A GRE tunnel.
    Gre(Gre),
    /// Whatever else: physical devices, bonds, tuns, … by the kernel's word for it.
    Other(String),
}

/// A GRE tunnel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gre {
    /// What it carries.
    pub payload: Payload,
    /// Near end.
    pub local: IpAddr,
    /// Far end.
    pub remote: IpAddr,
    /// Key in both directions.
    pub key: Option<u32>,
    /// The link whose routing table the outer packets follow.
    pub device: Option<String>,
}

/// What a tunnel carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Payload {
    /// Ethernet frames.
    Frames,
    /// IP packets.
    Packets,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loopback => f.write_str("loopback"),
            Self::Vrf { table } => write!(f, "vrf table {table}"),
            Self::Bridge => f.write_str("bridge"),
            Self::Vxlan {
                vni, port, local, ..
            } => {
                write!(f, "vxlan id {vni} dstport {port}")?;
                local.map_or(Ok(()), |local| write!(f, " local {local}"))
            }
            Self::Vlan { parent, id } => {
                write!(f, "vlan {id} on {}", parent.as_deref().unwrap_or("?"))
            }
            Self::Veth { peer: Some(peer) } => write!(f, "veth to {peer}"),
            Self::Veth { peer: None } => f.write_str("veth"),
            Self::Dummy => f.write_str("dummy"),
            Self::Gre(gre) => {
                let word = match gre.payload {
                    Payload::Frames => "gretap",
                    Payload::Packets => "gre",
                };
                write!(f, "{word} from {} to {}", gre.local, gre.remote)?;
                gre.key.map_or(Ok(()), |key| write!(f, " key {key}"))
            }
            Self::Other(word) => f.write_str(word),
        }
    }
}

/// How a link gets its IPv6 link-local address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddrGen {
    /// It gets none. For links that only carry frames: an address there would be one more host in the segment.
    None,
    /// The kernel makes one.
    Kernel,
}

/// What a bridge does on one of its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BridgePort {
    /// Answer neighbor requests for hosts behind this port from what EVPN knows, instead of flooding them.
    pub neigh_suppress: bool,
    /// Learn addresses from the frames it sees. Off towards the fabric: there BGP teaches, and learning would fight it.
    pub learning: bool,
    /// Send a frame back out of the port it came in on.
    ///
    /// Never wanted here: routed packets do not need it, and with it a VNI that FRR does not know yet is a storm.
    pub hairpin: bool,
}

impl BridgePort {
    /// Settings of a new port.
    pub const DEFAULT: Self = Self {
        neigh_suppress: false,
        learning: true,
        hairpin: false,
    };
}

/// The key of a route: the kernel holds one of ours for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RouteId {
    /// In which namespace.
    pub domain: Domain,
    /// In which table.
    pub table: u32,
    /// Where to.
    pub prefix: IpNet,
    /// Preference: the lowest wins.
    pub metric: u32,
}

/// What a route does with a packet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Route {
    /// Reject with ICMP unreachable, without a lookup in further tables.
    Unreachable,
    /// Drop it.
    Blackhole,
    /// Send it on.
    Via {
        /// Next hop.
        gateway: IpAddr,
        /// Through which link.
        device: String,
    },
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable => f.write_str("unreachable"),
            Self::Blackhole => f.write_str("blackhole"),
            Self::Via { gateway, device } => write!(f, "via {gateway} dev {device}"),
        }
    }
}

impl fmt::Display for RouteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            domain,
            table,
            prefix,
            metric,
        } = self;
        write!(f, "{prefix} table {table} metric {metric} in {domain}")
    }
}

/// Address family of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::V4, Self::V6];

    /// The family of an address.
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() {
            Self::V4
        } else {
            Self::V6
        }
    }
}

/// A policy rule: packets like these look into that table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// In which namespace.
    pub domain: Domain,
    /// For which family.
    pub family: Family,
    /// Order: the lowest is asked first.
    pub priority: u32,
    /// The table.
    pub table: u32,
    /// Link the packet came in through.
    pub iif: Option<String>,
    /// Where it comes from.
    pub src: Option<IpNet>,
    /// Where it goes.
    pub dst: Option<IpNet>,
    /// Its IP protocol.
    pub protocol: Option<u8>,
    /// Its source port.
    pub src_port: Option<u16>,
    /// Its destination port.
    pub dst_port: Option<u16>,
}

impl Rule {
    /// A rule that sends every packet to a table.
    pub fn all(domain: Domain, family: Family, priority: u32, table: u32) -> Self {
        Self {
            domain,
            family,
            priority,
            table,
            iif: None,
            src: None,
            dst: None,
            protocol: None,
            src_port: None,
            dst_port: None,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = match self.family {
            Family::V4 => "ipv4",
            Family::V6 => "ipv6",
        };
        write!(f, "{family} {}:", self.priority)?;
        match self.src {
            Some(src) => write!(f, " from {src}")?,
            None => f.write_str(" from all")?,
        }
        if let Some(dst) = self.dst {
            write!(f, " to {dst}")?;
        }
        if let Some(iif) = &self.iif {
            write!(f, " iif {iif}")?;
        }
        if let Some(protocol) = self.protocol {
            write!(f, " ipproto {protocol}")?;
        }
        if let Some(port) = self.src_port {
            write!(f, " sport {port}")?;
        }
        if let Some(port) = self.dst_port {
            write!(f, " dport {port}")?;
        }
        write!(f, " lookup {} in {}", self.table, self.domain)
    }
}
