//! What is held while bgpd is away: decisions without clock and IO; [`keeper`] does what they say.
//!
//! zebra deletes what it has from bgpd when bgpd ends, and some of it once more when bgpd is back and has not received
//! everything yet. If bgpd was not ended on purpose, this is put back at once; when bgpd has received End-of-RIB from all its
//! neighbors, what zebra has not made anew goes.

mod keeper;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use linux::learned::{Entry, Origin};
use serde_json::Value;

pub(crate) use self::keeper::{Expected, Keeper};
use crate::config::Time;

/// A deletion this long before bgpd's death is known may be its consequence.
const RECENT: Duration = Duration::from_secs(1);

/// A change of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// An entry is made as it was.
    PutBack(Entry),
    /// An entry that was put back is removed.
    Remove(Entry),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Something may be there that was put back: the agent has started, and knows nothing of an earlier one.
    Starting { until: Time },
    /// bgpd runs and knows everything: what zebra deletes is meant.
    Following,
    /// bgpd has died: what zebra deletes is put back.
    Holding { until: Time },
}

/// What zebra has from bgpd, and what of it is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    /// Entries of zebra by their ids.
    known: BTreeMap<Entry, Entry>,
    recent: VecDeque<(Time, Entry)>,
    put_back: BTreeSet<Entry>,
    phase: Phase,
}

impl Hold {
    /// A hold that looks for what an earlier agent has put back, at the latest at this time.
    pub(crate) fn new(until: Time) -> Self {
        Self {
            known: BTreeMap::new(),
            recent: VecDeque::new(),
            put_back: BTreeSet::new(),
            phase: Phase::Starting { until },
        }
    }

    /// An entry was made or changed.
    pub(crate) fn made(&mut self, entry: Entry, origin: Origin) {
        match (origin, entry) {
            (Origin::Zebra, _) => {
                self.known.insert(entry.id(), entry);
            }
            // The kernel announces a neighbor that is about to be deleted as one without a MAC.
            (Origin::Held, _) | (Origin::Other, Entry::Neighbor { mac: None, .. }) => {}
            (Origin::Other, _) => {
                self.known.remove(&entry.id());
            }
        }
    }

    /// An entry was deleted.
    pub(crate) fn gone(&mut self, id: Entry, now: Time) -> Option<Act> {
        let entry = *self.known.get(&id)?;
        if let Phase::Holding { .. } = self.phase {
            self.put_back.insert(entry);
            return Some(Act::PutBack(entry));
        }
        self.known.remove(&id);
        self.recent.retain(|(at, _)| *at + RECENT > now);
        self.recent.push_back((now, entry));
        None
    }

    /// All entries, after announcements were missed.
    pub(crate) fn found(&mut self, found: &[(Entry, Origin)], now: Time) -> Vec<Act> {
        let there: BTreeSet<Entry> = found.iter().map(|(entry, _)| entry.id()).collect();
        let missing: Vec<Entry> = self.known.keys().copied().collect();
        let missing = missing.into_iter().filter(|id| !there.contains(id));
        let acts = missing.filter_map(|id| self.gone(id, now)).collect();
        for (entry, origin) in found {
            self.made(*entry, *origin);
        }
        acts
    }

    /// A device is down or gone: nothing on it is held.
    pub(crate) fn down(&mut self, device: u32) -> Vec<Act> {
        self.known.retain(|_, entry| entry.device() != device);
        self.recent.retain(|(_, entry)| entry.device() != device);
        let (gone, kept) = std::mem::take(&mut self.put_back)
            .into_iter()
            .partition::<BTreeSet<_>, _>(|entry| entry.device() == device);
        self.put_back = kept;
        gone.into_iter().map(Act::Remove).collect()
    }

    /// bgpd has exited unexpectedly. After repeated exits routes are not held for longer than after one.
    pub(crate) fn died(&mut self, now: Time, limit: Duration) -> Vec<Act> {
        let until = match self.phase {
            Phase::Holding { until } => until,
            Phase::Starting { .. } | Phase::Following => now + limit,
        };
        self.phase = Phase::Holding { until };
        let recent = std::mem::take(&mut self.recent);
        let recent = recent.into_iter().filter(|(at, _)| *at + RECENT > now);
        let mut acts = Vec::new();
        for (_, entry) in recent {
            // What was made anew since then is there.
            if self.known.insert(entry.id(), entry).is_none() {
                self.put_back.insert(entry);
                acts.push(Act::PutBack(entry));
            }
        }
        acts
    }

    /// What was put back is to go.
    pub(crate) fn end(&mut self) {
        self.phase = Phase::Following;
        self.put_back.clear();
    }

    /// What was put back could not be settled; it is tried again later.
    pub(crate) fn settle_later(&mut self, until: Time) {
        self.phase = Phase::Starting { until };
    }

    /// Whether bgpd has died and not yet received everything again.
    pub(crate) fn is_holding(&self) -> bool {
        matches!(self.phase, Phase::Holding { .. })
    }

    /// How many entries were put back.
    pub(crate) fn n_put_back(&self) -> usize {
        self.put_back.len()
    }

    /// When the hold ends at the latest; `None` if nothing is held.
    pub(crate) fn until(&self) -> Option<Time> {
        match self.phase {
            Phase::Following => None,
            Phase::Starting { until } | Phase::Holding { until } => Some(until),
        }
    }
}

/// Whether bgpd has received End-of-RIB from all its neighbors of the fabric, for every family, by its answer to `show bgp neighbors json`.
fn has_end_of_rib(answer: &str) -> bool {
    let Ok(Value::Object(neighbors)) = serde_json::from_str(answer) else {
        return false;
    };
    let has_all_of = |neighbor: &Value| {
        let families = neighbor["addressFamilyInfo"].as_object();
        let ends = neighbor.pointer("/gracefulRestartInfo/endOfRibRecv");
        let has_ended =
            |family: &String| ends.and_then(|it| it.get(family)) == Some(&Value::Bool(true));
        neighbor["bgpState"] == "Established"
            && families.is_some_and(|them| them.keys().all(has_ended))
    };
    // A speaker on the host may be away for good.
    let of_fabric = |it: &&Value| {
        let description = it["nbrDesc"].as_str().unwrap_or_default();
        it.is_object() && description.split(' ').next() != Some(frr::names::PASSTHROUGH)
    };
    let mut neighbors = neighbors.values().filter(of_fabric).peekable();
    neighbors.peek().is_some() && neighbors.all(has_all_of)
}

#[cfg(test)]
mod tests;
