//! Sequence numbers of entries whose order is of no account: an entry that runs keeps its number, whatever comes and goes beside it.
//!
//! [`crate::desired`] makes a number from the content of its entry. Two entries that meet on one number cannot both have it, and which
//! of them moves depends on the others; only what runs says which one is there already.

use std::{borrow::Cow, collections::BTreeMap};

use api::value::IfName;

use crate::{
    config::{FrrConfig, Name, RouteMapAction, RouteMapEntry},
    host::names,
};

/// The desired configuration with the sequence numbers of the running one, for entries that may stand in any order.
///
/// # Guarantees
/// It decides about every route as `desired` does.
pub fn with_numbers_of<'a>(running: &FrrConfig, desired: &'a FrrConfig) -> Cow<'a, FrrConfig> {
    let mut kept = Cow::Borrowed(desired);
    for (key, list) in &desired.prefix_lists {
        let old = running.prefix_lists.get(key);
        let list = old.and_then(|old| renumbered(old, list, |_, rule| Some((rule.action, *rule))));
        if let Some(list) = list {
            kept.to_mut().prefix_lists.insert(key.clone(), list);
        }
    }
    for (name, list) in &desired.community_lists {
        let old = running.community_lists.get(name);
        let list = old.and_then(|old| renumbered(old, list, |_, one| Some(((), *one))));
        if let Some(list) = list {
            kept.to_mut().community_lists.insert(name.clone(), list);
        }
    }
    for (name, list) in &desired.large_community_lists {
        let old = running.large_community_lists.get(name);
        let list = old.and_then(|old| renumbered(old, list, |_, one| Some(((), *one))));
        if let Some(list) = list {
            let lists = &mut kept.to_mut().large_community_lists;
            lists.insert(name.clone(), list);
        }
    }
    for (name, map) in &desired.route_maps {
        let old = running.route_maps.get(name);
        let map = old.and_then(|old| renumbered(old, map, kind));
        if let Some(map) = map {
            kept.to_mut().route_maps.insert(name.clone(), map);
        }
    }
    kept
}

/// What makes an entry of a route map independent of its neighbors.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// It is for routes of one VRF, and no other entry is.
    Source(IfName),
    /// It gives routes one preference or community, and the next entry is asked after it.
    Property(Name),
}

fn kind(number: u16, entry: &RouteMapEntry) -> Option<(u8, Kind)> {
    if entry.action != RouteMapAction::Permit {
        return None;
    }
    if let Some(source) = &entry.match_source_vrf {
        return (!entry.on_match_next).then(|| (0, Kind::Source(source.clone())));
    }
    let (_, list) = entry.match_prefix_list.as_ref()?;
    let is_property = entry.on_match_next && names::is_property(number, list);
    is_property.then(|| (1, Kind::Property(list.clone())))
}

/// The new entries under the numbers of the old ones, where these differ. `kind` says with which others an entry may change places, and
/// what it is.
fn renumbered<N, T, C, K>(
    old: &BTreeMap<N, T>,
    new: &BTreeMap<N, T>,
    kind: impl Fn(N, &T) -> Option<(C, K)>,
) -> Option<BTreeMap<N, T>>
where
    N: Copy + Ord + TryFrom<u32>,
    u32: From<N>,
    T: Clone + PartialEq,
    C: PartialEq,
    K: Ord,
{
    if old == new {
        return None;
    }
    let identity = |(number, entry): (&N, &T)| Some((kind(*number, entry)?.1, *number));
    let known: BTreeMap<K, N> = old.iter().filter_map(identity).collect();
    let moves = |(number, entry): (&N, &T)| {
        let identity = kind(*number, entry).map(|(_, identity)| identity);
        let there = identity.and_then(|one| known.get(&one));
        there.is_some_and(|there| there != number)
    };
    if !new.iter().any(moves) {
        return None;
    }
    let mut entries = new.iter().peekable();
    let mut numbered = BTreeMap::new();
    let mut before = 0;
    while let Some((number, entry)) = entries.next() {
        let Some((class, identity)) = kind(*number, entry) else {
            numbered.insert(*number, entry.clone());
            before = u32::from(*number);
            continue;
        };
        let mut run = vec![(*number, identity, entry)];
        while let Some((number, entry)) = entries.peek() {
            let Some((_, identity)) = kind(**number, entry).filter(|(own, _)| *own == class) else {
                break;
            };
            run.push((**number, identity, *entry));
            entries.next();
        }
        // What follows keeps its number.
        let end = match entries.peek() {
            Some((number, _)) => u32::from(**number) - 1,
            None => u32::MAX,
        };
        numbered.extend(within(before, end, run, &known)?);
        before = end;
    }
    Some(numbered)
}

/// The numbers of entries that may change places, above `before` and not above `end`.
fn within<N, T, K>(
    before: u32,
    end: u32,
    run: Vec<(N, K, &T)>,
    known: &BTreeMap<K, N>,
) -> Option<BTreeMap<N, T>>
where
    N: Copy + Ord + TryFrom<u32>,
    u32: From<N>,
    T: Clone,
    K: Ord,
{
    let mut numbered: BTreeMap<u32, T> = BTreeMap::new();
    let mut rest = Vec::new();
    for (number, identity, entry) in run {
        let there = known.get(&identity).map(|there| u32::from(*there));
        let there = there.filter(|there| *there > before && *there <= end);
        match there.filter(|there| !numbered.contains_key(there)) {
            Some(there) => {
                numbered.insert(there, entry.clone());
            }
            None => rest.push((u32::from(number), entry)),
        }
    }
    for (wanted, entry) in rest {
        let mut free = (wanted..=end).chain((before + 1..wanted).rev());
        let number = free.find(|number| !numbered.contains_key(number))?;
        numbered.insert(number, entry.clone());
    }
    let numbered = numbered.into_iter();
    numbered
        .map(|(number, entry)| Some((N::try_from(number).ok()?, entry)))
        .collect()
}
