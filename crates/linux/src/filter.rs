//! Filters: what is copied on its way through a link, and into which tunnel.
//!
//! Every filter copies and lets the packet go on to the next one, so that several rules copy the same packet and their order means
//! nothing. A priority is therefore only a place: a filter keeps the one it has, and a new one takes the first that is free.

use std::fmt;

use ipnet::IpNet;

use crate::object::{Family, LinkId};

/// Where in a link's traffic a filter looks, as the link itself sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hook {
    /// What the link receives.
    Ingress,
    /// What the link sends.
    Egress,
}

impl Hook {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Ingress, Self::Egress];
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        })
    }
}

/// Packets that are copied into a tunnel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Filter {
    /// The link they pass.
    pub link: LinkId,
    /// In which direction.
    pub hook: Hook,
    /// Their family.
    pub family: Family,
    /// Where they come from.
    pub src: Option<IpNet>,
    /// Where they go.
    pub dst: Option<IpNet>,
    /// Their IP protocol.
    pub protocol: Option<u8>,
    /// Their source port.
    pub src_port: Option<u16>,
    /// Their destination port.
    pub dst_port: Option<u16>,
    /// The tunnel, a link of the same namespace.
    pub to: String,
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = match self.family {
            Family::V4 => "ipv4",
            Family::V6 => "ipv6",
        };
        write!(f, "{} {} {family}", self.link, self.hook)?;
        if let Some(src) = self.src {
            write!(f, " from {src}")?;
        }
        if let Some(dst) = self.dst {
            write!(f, " to {dst}")?;
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
        write!(f, " into {}", self.to)
    }
}

/// The place of a filter: the kernel asks the lowest priority first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilterId {
    /// On which link.
    pub link: LinkId,
    /// In which direction.
    pub hook: Hook,
    /// Its priority.
    pub priority: u16,
}

impl fmt::Display for FilterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} priority {}", self.link, self.hook, self.priority)
    }
}

/// What stands at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObservedFilter {
    /// Ours.
    Ours {
        /// Its family, which is needed to delete it.
        family: Family,
        /// What it copies; `None` if its tunnel is gone, or another program has changed the filter.
        copies: Option<Filter>,
    },
    /// Created by another program.
    Foreign,
}
