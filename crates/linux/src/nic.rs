//! What a NIC has in the host's namespace and loses when it is moved.
//!
//! Its addresses are remembered on the NIC itself ([`owned::remember`](crate::owned::remember)), because the router uses
//! them. What else an address has, routes, settings, alias and MTU concern the host alone: the agent stores them before the move and
//! gives them to [`diff`](crate::diff) as a part of [`Observed`](crate::Observed).

use std::{collections::BTreeMap, fmt, net::IpAddr};

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
    /// The largest packet that it takes, if that is less than its link takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// Its weight beside the other ways, less one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub weight: u8,
    /// The other ways that it takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<HostHop>,
}

/// One more way that a route takes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostHop {
    /// The router; absent where the destination is on the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
    /// The link through which it leaves.
    pub device: String,
    /// Whether the gateway need not be in a network of the link.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_link: bool,
    /// Its weight beside the other ways, less one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub weight: u8,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_zero(weight: &u8) -> bool {
    *weight == 0
}

/// Protocols of routes that the kernel makes again by itself: redirects, addresses, router advertisements.
const AUTOMATIC: [u8; 3] = [1, 2, 9];

impl HostRoute {
    /// Whether the kernel makes it by itself.
    pub fn is_automatic(&self) -> bool {
        AUTOMATIC.contains(&self.protocol)
    }

    /// The links through which it leaves.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        let more = self.more.iter().map(|hop| hop.device.as_str());
        std::iter::once(self.device.as_str()).chain(more)
    }

    /// The same as routes that take one way each.
    pub fn apart(&self) -> impl Iterator<Item = Self> {
        let alone = Self {
            more: Vec::new(),
            ..self.clone()
        };
        let more = self.more.iter().map(|hop| Self {
            gateway: hop.gateway,
            device: hop.device.clone(),
            on_link: hop.on_link,
            weight: hop.weight,
            more: Vec::new(),
            ..self.clone()
        });
        let more: Vec<Self> = more.collect();
        std::iter::once(alone).chain(more)
    }
}

impl fmt::Display for HostRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.destination)?;
        if let Some(gateway) = self.gateway {
            write!(f, " via {gateway}")?;
        }
        write!(f, " dev {}", self.device)?;
        for hop in &self.more {
            f.write_str(" and")?;
            if let Some(gateway) = hop.gateway {
                write!(f, " via {gateway}")?;
            }
            write!(f, " dev {}", hop.device)?;
        }
        write!(f, " table {}", self.table)
    }
}

/// An address with what the alias of a moved NIC does not say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostAddress {
    /// The address; of one with a peer, the length is that of the peer's network.
    pub address: IpNet,
    /// The other end, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<IpAddr>,
    /// Its label, if that is not the name of its link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Whether the kernel makes no route to its network.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_prefix_route: bool,
    /// Whether it is used without a check for duplicates.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_dad: bool,
    /// For how many seconds it is valid; without end if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<u32>,
    /// For how many seconds it is used for new connections; without end if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred: Option<u32>,
}

impl HostAddress {
    /// Whether there is more to it than the address.
    pub fn is_special(&self) -> bool {
        let plain = Self {
            address: self.address,
            peer: None,
            label: None,
            no_prefix_route: false,
            no_dad: false,
            valid: None,
            preferred: None,
        };
        *self != plain
    }

    /// The same so many seconds later. One whose time is over gets a minute more, in which the program that renews it can do so.
    #[must_use]
    pub fn later(self, seconds: u32) -> Self {
        const LEAST: u32 = 60;
        Self {
            valid: self
                .valid
                .map(|valid| valid.saturating_sub(seconds).max(LEAST)),
            preferred: self
                .preferred
                .map(|preferred| preferred.saturating_sub(seconds)),
            ..self
        }
    }
}

impl fmt::Display for HostAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.address)?;
        if let Some(peer) = self.peer {
            write!(f, " peer {peer}")?;
        }
        if let Some(label) = &self.label {
            write!(f, " label {label}")?;
        }
        if self.no_prefix_route {
            f.write_str(" noprefixroute")?;
        }
        if self.no_dad {
            f.write_str(" nodad")?;
        }
        match self.valid {
            Some(valid) => write!(f, " for {valid} s"),
            None => Ok(()),
        }
    }
}

/// What a NIC gets back in the host's namespace, besides its plain addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NicMemory {
    /// Its alias, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// Its MTU; absent when it has it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// Its addresses that have more than an address and a length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<HostAddress>,
    /// Its settings that are not those of a new link, by their paths below `/proc/sys`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// The routes through it that the kernel does not make by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<HostRoute>,
}

impl NicMemory {
    /// Whether nothing is left to be given back.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
