//! Who gets which number or address. Deterministic and sticky: what was given stays until its owner goes.

pub mod share;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use api::value::{HostCidr, Prefix};
use ipnet::IpNet;
use sha2::{Digest, Sha256};

/// The addresses of one network, and which of them are taken.
#[derive(Clone, Debug)]
pub struct Pool {
    prefix: Prefix,
    taken: BTreeSet<u128>,
    /// Every address below this one is taken, and not among the others: a search need not start from the bottom each time.
    floor: u128,
}

impl Pool {
    /// A pool of which nothing is taken.
    pub fn new(prefix: Prefix) -> Self {
        let (first, _) = hosts(prefix);
        Self {
            prefix,
            taken: BTreeSet::new(),
            floor: first,
        }
    }

    /// Marks an address as taken. False if it is taken already or is not a host address of the pool.
    pub fn take(&mut self, address: IpAddr) -> bool {
        self.is_free(address) && self.taken.insert(number(address))
    }

    /// Whether this is a free host address of the pool.
    pub fn is_free(&self, address: IpAddr) -> bool {
        let number = number(address);
        self.has_host(address) && number >= self.floor && !self.taken.contains(&number)
    }

    /// Whether an address is free below the last `reserved` ones.
    pub fn has_room(&mut self, reserved: u32) -> bool {
        let (_, last) = hosts(self.prefix);
        self.raise_floor();
        last.checked_sub(u128::from(reserved))
            .is_some_and(|last| self.floor <= last)
    }

    /// Takes the lowest free host address.
    pub fn take_lowest(&mut self) -> Option<IpAddr> {
        let (_, last) = hosts(self.prefix);
        self.raise_floor();
        let lowest = self.floor;
        self.floor = lowest.checked_add(1).filter(|_| lowest <= last)?;
        Some(address(self.prefix, lowest))
    }

    /// The number of the lowest free host address, where any is free.
    pub(crate) fn lowest(&mut self) -> u128 {
        self.raise_floor();
        self.floor
    }

    fn raise_floor(&mut self) {
        while self.taken.remove(&self.floor) {
            self.floor = self.floor.saturating_add(1);
        }
    }

    /// Whether an address is one of the pool's host addresses.
    pub fn has_host(&self, address: IpAddr) -> bool {
        let (first, last) = hosts(self.prefix);
        address.is_ipv4() == self.prefix.is_ipv4() && (first..=last).contains(&number(address))
    }

    /// How many addresses are free.
    pub fn free(&self) -> u128 {
        let (_, last) = hosts(self.prefix);
        let taken = u128::try_from(self.taken.len()).unwrap_or(u128::MAX);
        let above = last.saturating_add(1).saturating_sub(self.floor);
        above.saturating_sub(taken)
    }

    /// The network whose addresses these are.
    pub fn prefix(&self) -> Prefix {
        self.prefix
    }
}

/// Whether an address is among the last host addresses of a network, as many as are reserved.
pub fn is_among_last(prefix: Prefix, address: IpAddr, reserved: u32) -> bool {
    let (_, last) = hosts(prefix);
    prefix.net().contains(&address) && number(address) > last.saturating_sub(u128::from(reserved))
}

/// The anycast gateway of a network: its first host address. `None` where the network has one address only.
pub fn gateway(prefix: Prefix) -> Option<HostCidr> {
    let net = prefix.net();
    if net.prefix_len() == net.max_prefix_len() {
        return None;
    }
    let (first, _) = hosts(prefix);
    IpNet::new(address(prefix, first), net.prefix_len())
        .ok()
        .map(HostCidr::new)
}

/// First and last host address: never the network address, never IPv4's broadcast address;
/// both addresses of a pair, the only one of a single.
fn hosts(prefix: Prefix) -> (u128, u128) {
    let net = prefix.net();
    let (first, last) = (number(net.network()), number(net.broadcast()));
    match net.max_prefix_len() - net.prefix_len() {
        0 | 1 => (first, last),
        _ if prefix.is_ipv4() => (first + 1, last - 1),
        _ => (first + 1, last),
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

/// The address of a network with this number.
pub(crate) fn address(prefix: Prefix, number: u128) -> IpAddr {
    if prefix.is_ipv4() {
        // A pool allocates only numbers between its own bounds, which fit.
        IpAddr::V4(Ipv4Addr::from(u32::try_from(number).unwrap_or(u32::MAX)))
    } else {
        IpAddr::V6(Ipv6Addr::from(number))
    }
}

/// Gives each name a number of a range.
///
/// A holder with a usable one keeps it. One whose holder is gone may still be in use, and is given to no other. A newcomer gets the
/// first free number from a place that its name decides, so that the same name gets the same number in two worlds that remember
/// nothing of each other, as far as the pool is large enough.
pub fn numbers(
    range: (u32, u32),
    names: &BTreeSet<&str>,
    previous: &BTreeMap<String, u32>,
    usable: impl Fn(&u32) -> bool,
) -> BTreeMap<String, u32> {
    let (first, last) = range;
    let size = u64::from(last.saturating_sub(first)) + 1;
    let mut given = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for (name, number) in previous {
        if names.contains(name.as_str())
            && (first..=last).contains(number)
            && usable(number)
            && taken.insert(*number)
        {
            given.insert(name.clone(), *number);
        }
    }
    taken.extend(previous.values());
    for name in names {
        if given.contains_key(*name) {
            continue;
        }
        let start = place(name) % size;
        let free = (0..size)
            .filter_map(|step| u32::try_from((start + step) % size).ok())
            .map(|offset| first + offset)
            .find(|number| !taken.contains(number) && usable(number));
        if let Some(number) = free {
            taken.insert(number);
            given.insert((*name).to_owned(), number);
        }
    }
    given
}

fn place(name: &str) -> u64 {
    Sha256::digest(name)
        .iter()
        .take(8)
        .fold(0, |place, byte| place << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pool(text: &str) -> Pool {
        Pool::new(text.parse().expect("a network"))
    }

    fn drain(mut pool: Pool) -> Vec<String> {
        std::iter::from_fn(|| pool.take_lowest())
            .take(20)
            .map(|address| address.to_string())
            .collect()
    }

    #[test]
    fn network_and_broadcast_are_never_given() {
        assert_eq!(
            drain(pool("192.0.2.0/29")),
            [
                "192.0.2.1",
                "192.0.2.2",
                "192.0.2.3",
                "192.0.2.4",
                "192.0.2.5",
                "192.0.2.6"
            ]
        );
        assert_eq!(
            drain(pool("2001:db8::/126")),
            ["2001:db8::1", "2001:db8::2", "2001:db8::3"]
        );
    }

    #[test]
    fn a_pair_has_two_addresses_and_a_single_one() {
        assert_eq!(drain(pool("192.0.2.0/31")), ["192.0.2.0", "192.0.2.1"]);
        assert_eq!(drain(pool("2001:db8::7/128")), ["2001:db8::7"]);
        assert_eq!(drain(pool("255.255.255.255/32")), ["255.255.255.255"]);
    }

    #[test]
    fn what_is_taken_is_not_given() {
        let mut pool = pool("192.0.2.0/29");
        assert!(pool.take("192.0.2.1".parse().expect("valid")));
        assert!(
            !pool.take("192.0.2.1".parse().expect("valid")),
            "taken twice"
        );
        assert!(
            !pool.take("192.0.2.0".parse().expect("valid")),
            "the network address"
        );
        assert!(!pool.take("::1".parse().expect("valid")), "another family");
        assert_eq!(
            pool.take_lowest(),
            Some("192.0.2.2".parse().expect("valid"))
        );
    }

    #[test]
    fn the_gateway_is_the_first_host_address() {
        let gateway = |text: &str| {
            gateway(text.parse().expect("a network")).map(|gateway| gateway.to_string())
        };
        assert_eq!(
            gateway("198.51.100.128/25").as_deref(),
            Some("198.51.100.129/25")
        );
        assert_eq!(
            gateway("2001:db8:100::/64").as_deref(),
            Some("2001:db8:100::1/64")
        );
        assert_eq!(gateway("192.0.2.0/31").as_deref(), Some("192.0.2.0/31"));
        assert_eq!(gateway("192.0.2.0/32"), None);
    }

    proptest! {
        #[test]
        fn numbers_are_unique_and_stay(names in prop::collection::btree_set("[a-z]{1,6}", 0..40), more in prop::collection::btree_set("[a-z]{1,6}", 0..40)) {
            let range = (10_000, 10_099);
            let before = numbers(range, &names.iter().map(String::as_str).collect(), &BTreeMap::new(), |_| true);
            let all: BTreeSet<&str> = names.iter().chain(&more).map(String::as_str).collect();
            let after = numbers(range, &all, &before, |_| true);
            prop_assert_eq!(after.values().collect::<BTreeSet<_>>().len(), all.len());
            for (name, number) in before {
                prop_assert_eq!(after.get(&name), Some(&number));
            }
        }

        #[test]
        fn numbers_of_those_who_went_are_given_to_nobody(names in prop::collection::btree_set("[a-z]{1,6}", 0..40), others in prop::collection::btree_set("[A-Z]{1,6}", 0..40)) {
            let range = (10_000, 10_099);
            let before = numbers(range, &names.iter().map(String::as_str).collect(), &BTreeMap::new(), |_| true);
            let after = numbers(range, &others.iter().map(String::as_str).collect(), &before, |_| true);
            prop_assert_eq!(after.len(), others.len());
            let had: BTreeSet<&u32> = before.values().collect();
            prop_assert!(after.values().all(|number| !had.contains(number)));
        }
    }
}
