//! Writes that failed: each waits on its own before it is tried again, whatever else happens.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use compiler::{Kind, ObjectRef};
use serde_json::Value;

use crate::request::Failure;

/// Time before a failed write is tried again; it doubles each time.
const FIRST_RETRY: Duration = Duration::from_millis(200);
const LAST_RETRY: Duration = Duration::from_secs(30);

/// What of an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Object,
    Status,
}

/// A failed write.
#[derive(Debug)]
struct Failed {
    /// What was to be written.
    content: Value,
    /// The intent that it was made from.
    source: Option<ObjectRef>,
    failure: Failure,
    attempts: u32,
    until: Instant,
}

/// All failed writes.
#[derive(Debug, Default)]
pub(crate) struct Backoffs(BTreeMap<(ObjectRef, Part), Failed>);

impl Backoffs {
    /// Whether a write waits. One with another content than the one that failed is tried at once.
    pub(crate) fn is_waiting(
        &self,
        write: &(ObjectRef, Part),
        content: &Value,
        now: Instant,
    ) -> bool {
        let failed = self.0.get(write);
        failed.is_some_and(|failed| failed.content == *content && now < failed.until)
    }

    /// Notes that a write failed. How long it waits depends on how often it has failed, not on what it writes.
    pub(crate) fn failed(
        &mut self,
        write: (ObjectRef, Part),
        content: Value,
        source: Option<ObjectRef>,
        failure: Failure,
        now: Instant,
    ) -> Duration {
        let attempts = self.0.get(&write).map_or(0, |failed| failed.attempts);
        let factor = 2_u32.saturating_pow(attempts.min(16));
        let mut delay = FIRST_RETRY.saturating_mul(factor).min(LAST_RETRY);
        if let Failure::Refused {
            retry_after: Some(wanted),
            ..
        } = &failure
        {
            delay = delay.max(*wanted);
        }
        let failed = Failed {
            content,
            source,
            failure,
            attempts: attempts + 1,
            until: now + delay,
        };
        self.0.insert(write, failed);
        delay
    }

    /// Notes that a write was done.
    pub(crate) fn succeeded(&mut self, write: &(ObjectRef, Part)) {
        self.0.remove(write);
    }

    /// Forgets writes that are wanted no longer.
    pub(crate) fn retain(&mut self, is_wanted: impl Fn(&(ObjectRef, Part)) -> bool) {
        self.0.retain(|write, _| is_wanted(write));
    }

    /// When the next write is due. What is frozen is due when it is frozen no longer.
    pub(crate) fn next(&self, frozen: &BTreeSet<Kind>) -> Option<Instant> {
        let is_frozen = |object: &ObjectRef| frozen.contains(&object.kind);
        let due = self.0.iter().filter(|((subject, _), failed)| {
            !is_frozen(subject) && !failed.source.as_ref().is_some_and(is_frozen)
        });
        due.map(|(_, failed)| failed.until).min()
    }

    /// How many writes of each kind have failed and were not done since.
    pub(crate) fn by_kind(&self) -> BTreeMap<Kind, usize> {
        let mut counts = BTreeMap::new();
        for (subject, _) in self.0.keys() {
            *counts.entry(subject.kind).or_default() += 1;
        }
        counts
    }

    /// The fields that definitions in the cluster lack, by kind.
    pub(crate) fn unknown_fields(&self) -> impl Iterator<Item = (Kind, &String)> {
        self.0.iter().flat_map(|((subject, _), failed)| {
            let fields = match &failed.failure {
                Failure::UnknownFields(fields) => fields.as_slice(),
                Failure::NotLeading
                | Failure::Ending
                | Failure::Conflict(_)
                | Failure::NotFound
                | Failure::Refused { .. }
                | Failure::NoAnswer(_) => &[],
            };
            fields.iter().map(|field| (subject.kind, field))
        })
    }

    /// Intents that have something that could not be written, each with what and why. A conflict is none: the next attempt settles it.
    pub(crate) fn by_source(&self) -> BTreeMap<ObjectRef, String> {
        let mut failures = BTreeMap::new();
        for ((subject, _), failed) in &self.0 {
            if let Some(source) = &failed.source
                && !matches!(failed.failure, Failure::Conflict(_))
            {
                let message = format!("{subject} could not be written: {}", failed.failure);
                failures.entry(source.clone()).or_insert(message);
            }
        }
        failures
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_write_waits_longer_each_time_and_nothing_else_makes_it_shorter() {
        let mut backoffs = Backoffs::default();
        let write = (ObjectRef::named(Kind::Vrf, "a"), Part::Status);
        let other = (ObjectRef::named(Kind::Vrf, "b"), Part::Status);
        let (start, content) = (Instant::now(), json!({"vni": 7}));
        let fail = |backoffs: &mut Backoffs, content: &Value| {
            let failure = Failure::NotFound;
            backoffs.failed(write.clone(), content.clone(), None, failure, start)
        };
        assert_eq!(fail(&mut backoffs, &content), FIRST_RETRY);
        assert!(backoffs.is_waiting(&write, &content, start));
        assert!(!backoffs.is_waiting(&other, &content, start));
        backoffs.succeeded(&other);
        assert_eq!(fail(&mut backoffs, &content), FIRST_RETRY * 2);
        // What is to be written has changed: it is tried at once, and waits longer still if that fails.
        let changed = json!({"vni": 8});
        assert!(!backoffs.is_waiting(&write, &changed, start));
        assert_eq!(fail(&mut backoffs, &changed), FIRST_RETRY * 4);
        let free = BTreeSet::new();
        assert_eq!(backoffs.next(&free), Some(start + FIRST_RETRY * 4));
        assert_eq!(backoffs.next(&[Kind::Vrf].into()), None, "it is frozen");
        for _ in 0..40 {
            assert!(fail(&mut backoffs, &changed) <= LAST_RETRY);
        }
        backoffs.succeeded(&write);
        assert!(!backoffs.is_waiting(&write, &changed, start));
        assert_eq!(backoffs.next(&free), None);
    }

    #[test]
    fn the_api_servers_wish_is_followed() {
        let mut backoffs = Backoffs::default();
        let write = (ObjectRef::named(Kind::Vrf, "a"), Part::Object);
        let failure = Failure::Refused {
            code: 429,
            message: String::new(),
            retry_after: Some(Duration::from_secs(7)),
        };
        let delay = backoffs.failed(write, Value::Null, None, failure, Instant::now());
        assert_eq!(delay, Duration::from_secs(7));
    }
}
