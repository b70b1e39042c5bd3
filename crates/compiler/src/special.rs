//! Special-purpose addresses: what an address cannot be used for.
//!
//! The ranges are those of RFC 6890 that no unicast route leads to. FRR drops routes and next hops inside of most of them as martian, and the
//! kernel refuses others, so that a config with such an address is accepted and does not work.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use api::value::MacAddress;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::problem;

/// What an address is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// One end of a session or of a link, or a router id. IPv4 link-local addresses are fit for it: links of a fabric, and the link between a
    /// node and its router, may have them. An IPv6 one is not, since it means nothing without the name of its link.
    OnLink,
    /// Machines elsewhere send packets to it, so that routers must know the way. No router forwards or announces link-local addresses.
    Routed,
}

/// A range of addresses with a purpose of its own.
struct Range {
    net: IpNet,
    /// What its addresses are.
    what: &'static str,
    /// Whether they are fit for one end of a link.
    is_fit_on_link: bool,
}

const fn ipv4(address: [u8; 4], length: u8, what: &'static str) -> Range {
    let [a, b, c, d] = address;
    Range {
        net: IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)),
        what,
        is_fit_on_link: false,
    }
}

const fn ipv6(first: u16, last: [u16; 3], length: u8, what: &'static str) -> Range {
    let [f, g, h] = last;
    let address = Ipv6Addr::new(first, 0, 0, 0, 0, f, g, h);
    Range {
        net: IpNet::V6(Ipv6Net::new_assert(address, length)),
        what,
        is_fit_on_link: false,
    }
}

const UNSPECIFIED: &str = "unspecified addresses, which no packet can be sent to";
const LOOPBACK: &str = "loopback addresses, which never leave their machine";
const MULTICAST: &str = "multicast addresses, which no single machine has";
const LINK_LOCAL: &str = "link-local addresses, which no router forwards or announces";

const RANGES: [Range; 10] = [
    ipv4([0, 0, 0, 0], 8, UNSPECIFIED),
    ipv4([127, 0, 0, 0], 8, LOOPBACK),
    Range {
        is_fit_on_link: true,
        ..ipv4([169, 254, 0, 0], 16, LINK_LOCAL)
    },
    ipv4([224, 0, 0, 0], 4, MULTICAST),
    ipv4(
        [240, 0, 0, 0],
        4,
        "reserved addresses, which routers refuse",
    ),
    ipv6(0, [0, 0, 0], 128, UNSPECIFIED),
    ipv6(0, [0, 0, 1], 128, LOOPBACK),
    ipv6(
        0,
        [0xffff, 0, 0],
        96,
        "IPv4 addresses in IPv6 notation, which are in no packet",
    ),
    ipv6(0xfe80, [0, 0, 0], 10, LINK_LOCAL),
    ipv6(0xff00, [0, 0, 0], 8, MULTICAST),
];

/// Why a network cannot be used for something: it has addresses of a range with a purpose of its own.
pub(crate) fn unfit(net: IpNet, used: Use) -> Option<problem::Kind> {
    let overlaps = |range: &&Range| range.net.contains(&net) || net.contains(&range.net);
    let is_unfit = |range: &&Range| match used {
        Use::OnLink => !range.is_fit_on_link,
        Use::Routed => true,
    };
    let range = RANGES.iter().filter(overlaps).find(is_unfit)?;
    let is_address = net.prefix_len() == net.max_prefix_len();
    Some(problem::Kind::SpecialAddress {
        value: if is_address {
            net.addr().to_string()
        } else {
            net.to_string()
        },
        range: range.net.to_string(),
        what: range.what,
        is_inside: range.net.contains(&net),
    })
}

/// Why an address cannot be used for something.
pub(crate) fn unfit_address(address: IpAddr, used: Use) -> Option<problem::Kind> {
    unfit(IpNet::from(address), used)
}

/// Why no interface can have a MAC address.
pub(crate) fn unfit_mac(mac: MacAddress) -> Option<problem::Kind> {
    let bytes = mac.bytes();
    let [first, ..] = bytes;
    let what = if bytes == [0xff; 6] {
        "the broadcast address"
    } else if first & 1 == 1 {
        "a multicast address"
    } else if bytes == [0; 6] {
        "the null address"
    } else {
        return None;
    };
    Some(problem::Kind::SpecialMac { mac, what })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str, used: Use) -> bool {
        let net = text.parse().or_else(|_| text.parse().map(IpAddr::into));
        unfit(net.expect("an address or a network"), used).is_some()
    }

    #[test]
    fn addresses_that_no_route_leads_to_are_unfit_for_everything() {
        for text in [
            "0.0.0.0",
            "0.1.2.0/24",
            "127.0.0.1",
            "127.0.0.0/24",
            "224.0.0.5",
            "239.1.0.0/16",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:192.0.2.1",
            "fe80::1",
            "febf::/64",
            "ff02::1",
            "ff00::/8",
        ] {
            assert!(refused(text, Use::OnLink), "{text}");
            assert!(refused(text, Use::Routed), "{text}");
        }
    }

    #[test]
    fn a_network_that_has_such_addresses_inside_is_unfit() {
        for text in [
            "0.0.0.0/0",
            "126.0.0.0/7",
            "128.0.0.0/1",
            "::/64",
            "fe00::/7",
        ] {
            assert!(refused(text, Use::OnLink), "{text}");
        }
    }

    #[test]
    fn a_link_local_ipv4_address_is_fit_for_a_link_and_for_nothing_beyond() {
        for text in ["169.254.1.1", "169.254.128.0/24"] {
            assert!(!refused(text, Use::OnLink), "{text}");
            assert!(refused(text, Use::Routed), "{text}");
        }
    }

    #[test]
    fn unicast_addresses_are_fit_for_everything() {
        for text in [
            "1.0.0.0",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "126.255.255.255",
            "169.253.0.0/16",
            "192.0.2.1",
            "223.255.255.0/24",
            "::2",
            "64:ff9b::/96",
            "2001:db8::/32",
            "fd00::/8",
            "fec0::1",
        ] {
            assert!(!refused(text, Use::OnLink), "{text}");
            assert!(!refused(text, Use::Routed), "{text}");
        }
    }

    #[test]
    fn an_interface_has_a_unicast_mac_address() {
        let refused = |text: &str| unfit_mac(text.parse().expect("a MAC address")).is_some();
        for text in [
            "ff:ff:ff:ff:ff:ff",
            "01:00:5e:00:00:01",
            "00:00:00:00:00:00",
        ] {
            assert!(refused(text), "{text}");
        }
        for text in [
            "02:00:5e:00:01:01",
            "00:00:00:00:00:01",
            "fe:ff:ff:ff:ff:ff",
        ] {
            assert!(!refused(text), "{text}");
        }
    }
}
