//! Pools of Cluster API's in-cluster IPAM provider: which addresses they give. Pure: for clusters without the provider the operator gives them.

use std::{collections::BTreeSet, net::IpAddr};

use ipnet::IpNet;
use serde::Deserialize;

use super::{PlatformKind, ipam};

/// The pools.
pub const POOLS: PlatformKind = PlatformKind {
    api_version: "ipam.cluster.x-k8s.io/v1alpha2",
    kind: "InClusterIPPool",
    plural: "inclusterippools",
};

/// Claims of addresses.
pub const CLAIMS: PlatformKind = PlatformKind {
    api_version: ipam::API_VERSION,
    kind: "IPAddressClaim",
    plural: "ipaddressclaims",
};

/// Addresses that were given.
pub const ADDRESSES: PlatformKind = PlatformKind {
    api_version: ipam::API_VERSION,
    kind: "IPAddress",
    plural: "ipaddresses",
};

/// The addresses of a pool, as its spec says them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolSpec {
    /// What is given: addresses, networks, and ranges (`first-last`).
    pub addresses: Vec<String>,
    /// Length of the prefix that the addresses are in.
    pub prefix: u8,
    /// The gateway of that prefix. It is not given.
    #[serde(default)]
    pub gateway: String,
    /// What is not given, in the same forms.
    #[serde(default)]
    pub excluded_addresses: Vec<String>,
    /// Whether the first and, of IPv4, the last address of the prefix are given as well.
    #[serde(default, rename = "allocateReservedIPAddresses")]
    pub allocate_reserved: bool,
    /// How long a released address is given to no other claim.
    #[serde(default)]
    pub address_reuse_grace_period_seconds: u32,
}

/// Why a pool cannot give addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// A text is no address, network or range.
    #[error("{0:?} is not an address, network or address range")]
    NoAddresses(String),
    /// It has no addresses, or those of both families.
    #[error("its addresses are not of one family")]
    Families,
    /// The prefix is longer than an address.
    #[error("the prefix length {0} is too long")]
    Prefix(u8),
}

/// The addresses that a pool can give: ranges in order, none of which touches the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    is_ipv4: bool,
    ranges: Vec<(u128, u128)>,
}

impl PoolSpec {
    /// The addresses that it can give.
    pub fn addresses(&self) -> Result<Addresses, PoolError> {
        let ranges = |texts: &[String]| -> Result<Vec<(IpAddr, IpAddr)>, PoolError> {
            texts.iter().map(|text| range(text)).collect()
        };
        let given = ranges(&self.addresses)?;
        let excluded = ranges(&self.excluded_addresses)?;
        let first = given.iter().map(|(first, _)| *first).min();
        let first = first.ok_or(PoolError::Families)?;
        let is_ipv4 = first.is_ipv4();
        if given.iter().any(|(one, _)| one.is_ipv4() != is_ipv4) {
            return Err(PoolError::Families);
        }
        let mut withheld: Vec<(IpAddr, IpAddr)> = excluded;
        if !self.gateway.is_empty() {
            withheld.push(range(&self.gateway)?);
        }
        let prefix = IpNet::new(first, self.prefix).ok();
        let prefix = prefix.ok_or(PoolError::Prefix(self.prefix))?;
        if !self.allocate_reserved {
            withheld.push((prefix.network(), prefix.network()));
            if is_ipv4 {
                withheld.push((prefix.broadcast(), prefix.broadcast()));
            }
        }
        let mut addresses = Addresses {
            is_ipv4,
            ranges: joined(given.into_iter().map(numbers).collect()),
        };
        for one in withheld
            .into_iter()
            .filter(|one| one.0.is_ipv4() == is_ipv4)
        {
            addresses.remove(numbers(one));
        }
        Ok(addresses)
    }
}

impl Addresses {
    /// The lowest address that is not in use.
    pub fn lowest_free(&self, in_use: &BTreeSet<IpAddr>) -> Option<IpAddr> {
        let of_family = in_use.iter().filter(|one| one.is_ipv4() == self.is_ipv4);
        let in_use: BTreeSet<u128> = of_family.map(|one| number(*one)).collect();
        self.ranges.iter().find_map(|(first, last)| {
            let mut lowest = *first;
            // Only as many steps as there are addresses in use.
            for used in in_use.range(first..=last) {
                if *used != lowest {
                    break;
                }
                lowest = lowest.checked_add(1)?;
            }
            (lowest <= *last).then(|| self.address(lowest))
        })
    }

    /// Whether an address can be given.
    pub fn contains(&self, address: IpAddr) -> bool {
        let number = number(address);
        let mut ranges = self.ranges.iter();
        address.is_ipv4() == self.is_ipv4
            && ranges.any(|(first, last)| (first..=last).contains(&&number))
    }

    fn remove(&mut self, (from, to): (u128, u128)) {
        let ranges = self.ranges.iter().flat_map(|(first, last)| {
            let below = (*first, (*last).min(from.saturating_sub(1)));
            let above = ((*first).max(to.saturating_add(1)), *last);
            let below = Some(below).filter(|_| *first < from);
            let above = Some(above).filter(|_| to < *last);
            [below, above].into_iter().flatten()
        });
        self.ranges = joined(ranges.collect());
    }

    fn address(&self, number: u128) -> IpAddr {
        match u32::try_from(number) {
            Ok(number) if self.is_ipv4 => IpAddr::V4(number.into()),
            _ => IpAddr::V6(number.into()),
        }
    }
}

/// Ranges in order, with those that touch each other made one.
fn joined(mut ranges: Vec<(u128, u128)>) -> Vec<(u128, u128)> {
    ranges.sort_unstable();
    let mut joined: Vec<(u128, u128)> = Vec::new();
    for (first, last) in ranges {
        match joined.last_mut() {
            Some((_, before)) if first <= before.saturating_add(1) => *before = last.max(*before),
            _ => joined.push((first, last)),
        }
    }
    joined
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

fn numbers((first, last): (IpAddr, IpAddr)) -> (u128, u128) {
    (number(first), number(last))
}

/// First and last address of an address, a network or a range.
fn range(text: &str) -> Result<(IpAddr, IpAddr), PoolError> {
    let wrong = || PoolError::NoAddresses(text.to_owned());
    let address = |text: &str| text.trim().parse::<IpAddr>().ok().ok_or_else(wrong);
    let (first, last) = if let Some((first, last)) = text.split_once('-') {
        (address(first)?, address(last)?)
    } else if text.contains('/') {
        let net = text.parse::<IpNet>().ok().ok_or_else(wrong)?;
        (net.network(), net.broadcast())
    } else {
        (address(text)?, address(text)?)
    };
    let is_range = first.is_ipv4() == last.is_ipv4() && first <= last;
    is_range.then_some((first, last)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pool(addresses: &[&str], prefix: u8) -> PoolSpec {
        PoolSpec {
            addresses: addresses.iter().map(ToString::to_string).collect(),
            prefix,
            gateway: String::new(),
            excluded_addresses: Vec::new(),
            allocate_reserved: false,
            address_reuse_grace_period_seconds: 0,
        }
    }

    /// Everything that a pool gives, one after another.
    fn all(pool: &PoolSpec) -> Vec<String> {
        let addresses = pool.addresses().expect("a pool");
        let mut in_use = BTreeSet::new();
        let next = || {
            let free = addresses.lowest_free(&in_use)?;
            in_use.insert(free);
            Some(free.to_string())
        };
        std::iter::from_fn(next).take(100).collect()
    }

    #[test]
    fn gateway_excluded_and_reserved_addresses_are_not_given() {
        let mut small = pool(&["192.0.2.0/29"], 29);
        assert_eq!(all(&small).len(), 6, "network and broadcast are not given");
        small.gateway = "192.0.2.1".to_owned();
        small.excluded_addresses = vec!["192.0.2.3-192.0.2.4".to_owned()];
        assert_eq!(all(&small), ["192.0.2.2", "192.0.2.5", "192.0.2.6"]);
        small.allocate_reserved = true;
        assert_eq!(all(&small).len(), 5);
        let six = pool(&["2001:db8::/126"], 126);
        let expected = ["2001:db8::1", "2001:db8::2", "2001:db8::3"];
        assert_eq!(all(&six), expected, "the anycast address is not given");
    }

    #[test]
    fn addresses_that_overlap_are_given_once_and_in_order() {
        let texts = ["192.0.2.20", "192.0.2.10-192.0.2.12", "192.0.2.12/31"];
        let expected = [
            "192.0.2.10",
            "192.0.2.11",
            "192.0.2.12",
            "192.0.2.13",
            "192.0.2.20",
        ];
        assert_eq!(all(&pool(&texts, 24)), expected);
    }

    #[test]
    fn a_pool_that_is_no_pool_says_why() {
        let wrong = |addresses: &[&str], prefix| pool(addresses, prefix).addresses().err();
        assert_eq!(wrong(&[], 24), Some(PoolError::Families));
        assert_eq!(
            wrong(&["192.0.2.1", "2001:db8::1"], 24),
            Some(PoolError::Families)
        );
        assert_eq!(wrong(&["192.0.2.1"], 64), Some(PoolError::Prefix(64)));
        for text in [
            "",
            "x",
            "192.0.2.9-192.0.2.1",
            "192.0.2.1-2001:db8::1",
            "192.0.2.0/33",
        ] {
            let expected = PoolError::NoAddresses(text.to_owned());
            assert_eq!(wrong(&[text], 24), Some(expected));
        }
    }

    proptest! {
        #[test]
        fn what_is_given_is_in_the_pool_and_not_in_use(
            ranges in prop::collection::vec((0_u32..64, 0_u32..8), 1..5),
            excluded in prop::collection::vec(0_u32..64, 0..5),
            in_use in prop::collection::btree_set(0_u32..64, 0..40),
        ) {
            let address = |number: u32| IpAddr::V4((0xC000_0200 + number).into());
            let mut pool = pool(&[], 24);
            pool.allocate_reserved = true;
            pool.addresses = ranges.iter()
                .map(|(first, more)| format!("{}-{}", address(*first), address(first + more)))
                .collect();
            pool.excluded_addresses = excluded.iter().map(|one| address(*one).to_string()).collect();
            let in_use: BTreeSet<IpAddr> = in_use.into_iter().map(address).collect();
            let addresses = pool.addresses().expect("a pool");
            let can_be_given = |number: u32| {
                let mut ranges = ranges.iter();
                ranges.any(|(first, more)| (*first..=first + more).contains(&number))
                    && !excluded.contains(&number)
            };
            let expected = (0..80).find(|one| can_be_given(*one) && !in_use.contains(&address(*one)));
            prop_assert_eq!(addresses.lowest_free(&in_use), expected.map(address));
            for one in 0..80 {
                prop_assert_eq!(addresses.contains(address(one)), can_be_given(one));
            }
        }
    }
}
