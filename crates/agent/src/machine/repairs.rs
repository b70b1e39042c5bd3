//! Repairs of drift. A difference that keeps coming back is put off, longer each time; no other one waits for it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{LONGEST_PAUSE, RETRY};
use crate::config::Time;

/// How long a repair counts against the next one of the same difference.
const MEMORY: Duration = Duration::from_mins(5);
/// How often a difference is repaired within that time without a pause.
pub(super) const FREE: usize = 5;

/// The repairs of the last minutes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Repairs(Vec<Repair>);

/// One apply that removed differences.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Repair {
    at: Time,
    differences: BTreeSet<String>,
}

impl Repairs {
    /// Counts a repair, and forgets those of long ago.
    pub(super) fn add(&mut self, differences: BTreeSet<String>, now: Time) {
        self.0.retain(|repair| repair.at + MEMORY > now);
        if !differences.is_empty() {
            let at = now;
            self.0.push(Repair { at, differences });
        }
    }

    /// How many there were.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Each difference with how often it was repaired, and when the last time.
    fn by_difference(&self) -> BTreeMap<&str, (usize, Time)> {
        let mut found: BTreeMap<&str, (usize, Time)> = BTreeMap::new();
        for repair in &self.0 {
            for difference in &repair.differences {
                let (count, last) = found.entry(difference).or_default();
                *count += 1;
                *last = repair.at.max(*last);
            }
        }
        found
    }

    /// The differences that keep coming back, each with the time of its next repair.
    fn backed_off(&self) -> impl Iterator<Item = (&str, Time)> {
        let all = self.by_difference().into_iter();
        all.filter_map(|(difference, (count, last))| {
            let excess = count.checked_sub(FREE).filter(|excess| *excess > 0)?;
            let excess = u32::try_from(excess).unwrap_or(u32::MAX).min(10);
            let pause = (RETRY * 2_u32.saturating_pow(excess)).min(LONGEST_PAUSE);
            Some((difference, last + pause))
        })
    }

    /// The difference that was repaired most often, if it keeps coming back.
    pub(super) fn worst(&self) -> Option<String> {
        let all = self.by_difference().into_iter();
        let (difference, (count, _)) = all.max_by_key(|(_, (count, _))| *count)?;
        (count > FREE).then(|| difference.to_owned())
    }

    /// What is not to be repaired yet.
    pub(super) fn put_off(&self, now: Time) -> BTreeSet<String> {
        let waiting = self.backed_off().filter(|(_, due)| *due > now);
        waiting
            .map(|(difference, _)| difference.to_owned())
            .collect()
    }

    /// When the first of those is due.
    pub(super) fn next_due(&self, now: Time) -> Option<Time> {
        let waiting = self.backed_off().filter(|(_, due)| *due > now);
        waiting.map(|(_, due)| due).min()
    }
}
