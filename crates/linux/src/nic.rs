//! What a NIC has in the host's namespace and loses when it is moved.
//!
//! Its addresses are remembered on the NIC itself ([`owned::remember`](crate::owned::remember)), because the router uses
//! them. Its routes, its alias and its MTU concern the host alone: the agent stores them before the move and gives them to
//! [`diff`](crate::diff) as a part of [`Observed`](crate::Observed).

use std::{fmt, net::IpAddr};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// A unicast route of the host, of any protocol. Routes on the link come before those through a gateway, which need them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostRoute {
    /// The router; absent where the destination is on the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
    /// Where it leads.
    pub destination: IpNet,
    /// The link through which it leaves.
    pub device: String,
    /// Number of its table.
    pub table: u32,
    /// Its priority.
    pub metric: u32,
    /// The protocol that made it, by the kernel's number.
    pub protocol: u8,
    /// Source address that packets get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<IpAddr>,
    /// Whether the gateway need not be in a network of the link.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_link: bool,
}

/// Protocols of routes that the kernel makes again by itself: redirects, addresses, router advertisements.
const AUTOMATIC: [u8; 3] = [1, 2, 9];

impl HostRoute {
    /// Whether the kernel makes it by itself.
    pub fn is_automatic(&self) -> bool {
        AUTOMATIC.contains(&self.protocol)
    }
}

impl fmt::Display for HostRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.destination)?;
        if let Some(gateway) = self.gateway {
            write!(f, " via {gateway}")?;
        }
        write!(f, " dev {} table {}", self.device, self.table)
    }
}

/// What a NIC gets back in the host's namespace, besides its addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NicMemory {
    /// Its alias, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// Its MTU.
    pub mtu: u32,
    /// The routes through it that the kernel does not make by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<HostRoute>,
}
