//! Which sets of prefixes overlap, found in one sweep over all of them.

use std::collections::{BTreeMap, BTreeSet};

use api::value::Prefix;
use ipnet::IpNet;

/// Two prefixes of different sets that share addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap<K> {
    /// A prefix of the set itself.
    pub prefix: Prefix,
    /// The other set.
    pub other: K,
    /// A prefix of the other set, equal to it, around it or inside it.
    pub other_prefix: Prefix,
}

/// A prefix that encloses those to come.
struct Enclosing<K> {
    prefix: Prefix,
    /// Two of its sets, where it has as many: one of them is not the one that asks.
    some: Vec<K>,
    /// Its sets that have met no other yet.
    lonely: Vec<K>,
}

/// Every set that overlaps with another, with one example for each.
///
/// Prefixes are walked in the order of a trie's nodes: an enclosing one comes before those inside it, so that a stack of at most
/// as many entries as an address has bits is all there is to compare with.
pub fn overlaps<K: Ord + Copy>(
    members: impl IntoIterator<Item = (Prefix, K)>,
) -> BTreeMap<K, Overlap<K>> {
    let mut sets: BTreeMap<Prefix, BTreeSet<K>> = BTreeMap::new();
    for (prefix, set) in members {
        sets.entry(prefix).or_default().insert(set);
    }
    let mut found: BTreeMap<K, Overlap<K>> = BTreeMap::new();
    let mut stack: Vec<Enclosing<K>> = Vec::new();
    for (prefix, keys) in sets {
        while stack
            .last()
            .is_some_and(|top| !top.prefix.net().contains(&prefix.net()))
        {
            stack.pop();
        }
        stack.push(Enclosing {
            prefix,
            some: keys.iter().take(2).copied().collect(),
            lonely: Vec::new(),
        });
        let mut lonely = Vec::new();
        for key in &keys {
            if found.contains_key(key) {
                continue;
            }
            let meets = |entry: &Enclosing<K>| {
                let other = entry.some.iter().find(|other| *other != key)?;
                Some((*other, entry.prefix))
            };
            match stack.iter().rev().find_map(meets) {
                Some((other, other_prefix)) => {
                    let overlap = Overlap {
                        prefix,
                        other,
                        other_prefix,
                    };
                    found.insert(*key, overlap);
                }
                None => lonely.push(*key),
            }
        }
        for entry in &mut stack {
            entry.lonely.retain(|key| {
                let Some(other) = keys.iter().take(2).find(|other| *other != key) else {
                    return true;
                };
                found.entry(*key).or_insert(Overlap {
                    prefix: entry.prefix,
                    other: *other,
                    other_prefix: prefix,
                });
                false
            });
        }
        if let Some(top) = stack.last_mut() {
            top.lonely = lonely;
        }
    }
    found
}

/// Values by prefix, of which one may be inside another.
#[derive(Clone, Debug)]
pub struct PrefixMap<V> {
    values: BTreeMap<Prefix, V>,
    /// The lengths that its prefixes have, of each family.
    lengths: BTreeSet<(bool, u8)>,
}

impl<V> Default for PrefixMap<V> {
    fn default() -> Self {
        Self {
            values: BTreeMap::new(),
            lengths: BTreeSet::new(),
        }
    }
}

impl<V> PrefixMap<V> {
    /// Adds a value, unless the prefix has one.
    pub fn insert(&mut self, prefix: Prefix, value: V) {
        self.lengths
            .insert((prefix.is_ipv4(), prefix.net().prefix_len()));
        self.values.entry(prefix).or_insert(value);
    }

    /// A prefix with addresses of this one: the longest that is around it or equal to it, else the first inside it.
    pub fn overlap(&self, wanted: Prefix) -> Option<(Prefix, &V)> {
        let net = wanted.net();
        let lengths = (wanted.is_ipv4(), 0)..=(wanted.is_ipv4(), net.prefix_len());
        let around = self.lengths.range(lengths).rev().find_map(|(_, length)| {
            let around = Prefix::of(IpNet::new(net.addr(), *length).ok()?);
            self.values.get_key_value(&around)
        });
        // What is inside a prefix comes directly behind it.
        let inside = || {
            let next = self.values.range(wanted..).next();
            next.filter(|(one, _)| net.contains(&one.net()))
        };
        around
            .or_else(inside)
            .map(|(prefix, value)| (*prefix, value))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_map_finds_an_overlap_where_there_is_one(
            prefixes in prop::collection::vec((0_u8..8, 0_u8..=5), 0..12), wanted in (0_u8..8, 0_u8..=5)
        ) {
            let prefix = |(bits, length): (u8, u8)| {
                let address = std::net::Ipv4Addr::from(u32::from(bits) << 29);
                Prefix::of(IpNet::new(address.into(), length).expect("a length"))
            };
            let wanted = prefix(wanted);
            let mut map = PrefixMap::default();
            for one in &prefixes {
                map.insert(prefix(*one), ());
            }
            let meets = |one: Prefix| one.net().contains(&wanted.net()) || wanted.net().contains(&one.net());
            let expected = prefixes.iter().any(|one| meets(prefix(*one)));
            let found = map.overlap(wanted);
            prop_assert_eq!(found.is_some(), expected);
            prop_assert!(found.is_none_or(|(one, ())| meets(one)));
        }
    }

    fn found(members: &[(&str, u8)]) -> Vec<u8> {
        let members = members
            .iter()
            .map(|(prefix, set)| (prefix.parse().expect("a prefix"), *set));
        overlaps(members).into_keys().collect()
    }

    #[test]
    fn equal_enclosing_and_enclosed_prefixes_overlap() {
        assert_eq!(found(&[("10.0.0.0/8", 1), ("10.0.0.0/8", 2)]), [1, 2]);
        assert_eq!(found(&[("0.0.0.0/0", 1), ("10.0.0.0/8", 2)]), [1, 2]);
        assert_eq!(found(&[("10.0.0.0/9", 1), ("10.128.0.0/9", 2)]), [0_u8; 0]);
        assert_eq!(found(&[("10.0.0.0/8", 1), ("10.1.0.0/16", 1)]), [0_u8; 0]);
        assert_eq!(
            found(&[("0.0.0.0/0", 1), ("::/0", 2)]),
            [0_u8; 0],
            "two families"
        );
        assert_eq!(found(&[("::/0", 1), ("2001:db8::/32", 2)]), [1, 2]);
    }

    proptest! {
        #[test]
        fn the_sweep_finds_what_comparing_all_with_all_finds(
            members in prop::collection::vec((0_u8..4, 0_u8..=4, 0_u8..5), 0..20)
        ) {
            let members: Vec<(Prefix, u8)> = members.into_iter().map(|(bits, length, set)| {
                let address = std::net::Ipv4Addr::from(u32::from(bits) << 30);
                let net = IpNet::new(address.into(), length).expect("a length");
                (Prefix::of(net), set)
            }).collect();
            let meet = |a: Prefix, b: Prefix| a.net().contains(&b.net()) || b.net().contains(&a.net());
            let expected: BTreeSet<u8> = members.iter()
                .filter(|(a, one)| members.iter().any(|(b, other)| one != other && meet(*a, *b)))
                .map(|(_, set)| *set).collect();
            let found = overlaps(members.iter().copied());
            prop_assert_eq!(found.keys().copied().collect::<BTreeSet<u8>>(), expected);
            for (set, overlap) in found {
                prop_assert!(members.contains(&(overlap.prefix, set)));
                prop_assert!(members.contains(&(overlap.other_prefix, overlap.other)));
                prop_assert!(set != overlap.other && meet(overlap.prefix, overlap.other_prefix));
            }
        }
    }
}
