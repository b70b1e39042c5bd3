//! Kernel settings of the router's namespace and of its gateways.
//!
//! The host's settings are not ours to touch: there is no list for them.

use std::fmt;

use crate::object::Domain;

/// A setting: a path below `/proc/sys`, in a namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SysctlId {
    /// In which namespace.
    pub domain: Domain,
    /// The link it belongs to; it comes and goes with that link.
    pub link: Option<String>,
    /// Path below `/proc/sys`, with slashes, because device names contain dots.
    pub path: String,
}

impl fmt::Display for SysctlId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.path, self.domain)
    }
}

/// Settings of the whole namespace, and why.
///
/// A new namespace inherits its IPv4 settings from the host, so what matters is said even where the kernel's own
/// default is the same.
const ROUTER: &[(&str, &str)] = &[
    // It is a router.
    ("net/ipv4/conf/all/forwarding", "1"),
    ("net/ipv4/conf/default/forwarding", "1"),
    ("net/ipv6/conf/all/forwarding", "1"),
    ("net/ipv6/conf/default/forwarding", "1"),
    // Packets of one flow may come back through another uplink or VRF.
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
    // Equal paths are chosen by flow (ports included), not by address pair alone.
    ("net/ipv4/fib_multipath_hash_policy", "1"),
    ("net/ipv6/fib_multipath_hash_policy", "1"),
    // A listener outside a VRF does not receive what arrives in it.
    ("net/ipv4/tcp_l3mdev_accept", "0"),
    ("net/ipv4/udp_l3mdev_accept", "0"),
    ("net/ipv4/raw_l3mdev_accept", "0"),
    // Hosts that announce themselves become neighbors at once, so that EVPN can announce them.
    ("net/ipv4/conf/all/arp_accept", "1"),
    ("net/ipv4/conf/default/arp_accept", "1"),
    // The same for IPv6; kernels before 5.18 do not have it.
    ("net/ipv6/conf/all/accept_untracked_na", "1"),
    ("net/ipv6/conf/default/accept_untracked_na", "1"),
];

/// Settings of a bridge that carries an anycast gateway: path with `{}` for the link, value.
const GATEWAY: &[(&str, &str)] = &[
    ("net/ipv4/conf/{}/arp_accept", "1"),
    ("net/ipv6/conf/{}/accept_untracked_na", "2"),
    // Every node of the segment has this address: detection would find a duplicate, and be right.
    ("net/ipv6/conf/{}/accept_dad", "0"),
];

/// The settings of the router's namespace.
pub fn router() -> impl Iterator<Item = (SysctlId, String)> {
    ROUTER.iter().map(|(path, value)| {
        let id = SysctlId {
            domain: Domain::Router,
            link: None,
            path: (*path).to_owned(),
        };
        (id, (*value).to_owned())
    })
}

/// The settings of a bridge with a gateway.
pub fn gateway(link: &str) -> impl Iterator<Item = (SysctlId, String)> {
    GATEWAY.iter().map(move |(path, value)| {
        let id = SysctlId {
            domain: Domain::Router,
            link: Some(link.to_owned()),
            path: path.replace("{}", link),
        };
        (id, (*value).to_owned())
    })
}
