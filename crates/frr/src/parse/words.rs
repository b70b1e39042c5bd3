//! Small words that several parts of the grammar share.

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
};

use api::value::{Asn, Community, Vni};

/// Communities with names of their own, which FRR prints instead of the numbers.
pub(crate) const WELL_KNOWN: [(&str, u16, u16); 15] = [
    ("internet", 0, 0),
    ("graceful-shutdown", 65535, 0),
    ("accept-own", 65535, 1),
    ("route-filter-translated-v4", 65535, 2),
    ("route-filter-v4", 65535, 3),
    ("route-filter-translated-v6", 65535, 4),
    ("route-filter-v6", 65535, 5),
    ("llgr-stale", 65535, 6),
    ("no-llgr", 65535, 7),
    ("accept-own-nexthop", 65535, 8),
    ("blackhole", 65535, 666),
    ("no-export", 65535, 65281),
    ("no-advertise", 65535, 65282),
    ("local-AS", 65535, 65283),
    ("no-peer", 65535, 65284),
];

pub(super) fn community(word: &str) -> Option<Community> {
    WELL_KNOWN
        .iter()
        .find(|(name, _, _)| *name == word)
        .map(|(_, high, low)| Community::Standard(*high, *low))
        .or_else(|| word.parse().ok())
}

pub(super) fn asn(word: &str) -> Option<Asn> {
    Asn::try_from(word.parse::<i64>().ok()?).ok()
}

pub(super) fn vni(word: &str) -> Option<Vni> {
    Vni::try_from(word.parse::<i64>().ok()?).ok()
}

/// Sets a flag, or clears it when the line begins with `no`. Nothing may follow.
pub(super) fn flag(target: &mut bool, negated: bool, rest: &[&str]) -> Option<()> {
    *target = !negated;
    rest.is_empty().then_some(())
}

/// Sets a value from its word, or clears it. `no` may leave the word away.
pub(super) fn value<T: FromStr>(
    target: &mut Option<T>,
    negated: bool,
    words: &[&str],
) -> Option<()> {
    *target = match (negated, words) {
        (true, [] | [_]) => None,
        (false, [word]) => Some(word.parse().ok()?),
        _ => return None,
    };
    Some(())
}

/// Adds a member to a set, or removes it.
pub(super) fn member<T: FromStr + Ord>(
    set: &mut BTreeSet<T>,
    negated: bool,
    word: &str,
) -> Option<()> {
    let value = word.parse().ok()?;
    if negated {
        set.remove(&value);
    } else {
        set.insert(value);
    }
    Some(())
}

/// Adds an entry to a map, or removes it.
pub(super) fn entry<K: Ord, V>(map: &mut BTreeMap<K, V>, negated: bool, key: K, value: V) {
    if negated {
        map.remove(&key);
    } else {
        map.insert(key, value);
    }
}
