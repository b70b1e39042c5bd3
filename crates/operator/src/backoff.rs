//! Writes that failed: each waits on its own before it is tried again, whatever else happens.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use compiler::{Kind, ObjectRef};
use serde_json::Value;

use crate::request::Failure;

/// Time before a failed write is tried again; it doubles each time.
pub(crate) const FIRST_RETRY: Duration = Duration::from_millis(200);
const LAST_RETRY: Duration = Duration::from_secs(30);
/// A write that has failed so often is reported: what fails once or twice settles by itself.
const LASTING: u32 = 3;

/// What of an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Object,
    Status,
}

/// Writes that failed, by what tells them apart, each with what is known of the failure.
#[derive(Debug)]
pub(crate) struct Backoffs<W, F>(BTreeMap<W, Failed<F>>);

/// A failed write.
#[derive(Debug)]
struct Failed<F> {
    /// What was to be written.
    content: Value,
    failure: F,
    attempts: u32,
    until: Instant,
}

impl<W, F> Default for Backoffs<W, F> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<W: Ord, F> Backoffs<W, F> {
    /// Why a write waits, if it does. One with another content than the one that failed is tried at once.
    pub(crate) fn waiting(&self, write: &W, content: &Value, now: Instant) -> Option<&F> {
        let failed = self.0.get(write);
        let failed = failed.filter(|failed| failed.content == *content && now < failed.until);
        failed.map(|failed| &failed.failure)
    }

    /// Why a write failed last, unless it was done since.
    pub(crate) fn failure(&self, write: &W) -> Option<&F> {
        self.0.get(write).map(|failed| &failed.failure)
    }

    /// Notes that a write failed. How long it waits depends on how often it has failed, and on how long the API server asks to wait, not on
    /// what it writes.
    pub(crate) fn failed(
        &mut self,
        write: W,
        content: Value,
        failure: F,
        retry_after: Option<Duration>,
        now: Instant,
    ) -> Duration {
        let attempts = self.0.get(&write).map_or(0, |failed| failed.attempts);
        let factor = 2_u32.saturating_pow(attempts.min(16));
        let delay = FIRST_RETRY.saturating_mul(factor).min(LAST_RETRY);
        let delay = delay.max(retry_after.unwrap_or_default());
        let failed = Failed {
            content,
            failure,
            attempts: attempts + 1,
            until: now + delay,
        };
        self.0.insert(write, failed);
        delay
    }

    /// Notes that a write was done.
    pub(crate) fn succeeded(&mut self, write: &W) {
        self.0.remove(write);
    }

    /// Forgets writes that are wanted no longer.
    pub(crate) fn retain(&mut self, is_wanted: impl Fn(&W) -> bool) {
        self.0.retain(|write, _| is_wanted(write));
    }

    /// When each write may be tried again.
    pub(crate) fn due(&self) -> impl Iterator<Item = (&W, &F, Instant)> {
        let failed = self.0.iter();
        failed.map(|(write, failed)| (write, &failed.failure, failed.until))
    }
}

/// Why an object is not as it was wanted.
#[derive(Debug)]
pub(crate) struct Unwritten {
    /// The intent that it was made from.
    pub(crate) source: Option<ObjectRef>,
    pub(crate) failure: Failure,
}

/// Failed writes of our own kinds.
pub(crate) type ObjectBackoffs = Backoffs<(ObjectRef, Part), Unwritten>;

impl ObjectBackoffs {
    /// When the next write is due. What is frozen is due when it is frozen no longer.
    pub(crate) fn next(&self, frozen: &BTreeSet<Kind>) -> Option<Instant> {
        let is_frozen = |object: &ObjectRef| frozen.contains(&object.kind);
        let due = self.due().filter(|((subject, _), unwritten, _)| {
            !is_frozen(subject) && !unwritten.source.as_ref().is_some_and(is_frozen)
        });
        due.map(|(_, _, at)| at).min()
    }

    /// Whether the API server lastingly refuses the status of an object, for what it says. Nothing but what is made of the object waits for
    /// that.
    pub(crate) fn is_status_refused(&self, subject: &ObjectRef) -> bool {
        let failed = self.0.get(&(subject.clone(), Part::Status));
        failed.is_some_and(|failed| match &failed.failure.failure {
            Failure::UnknownFields(_) => true,
            Failure::Refused { code, .. } => {
                failed.attempts >= LASTING && (400..500).contains(code) && *code != 429
            }
            Failure::NotLeading
            | Failure::Ending
            | Failure::Paused
            | Failure::Conflict(_)
            | Failure::NotFound
            | Failure::NoAnswer(_) => false,
        })
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
        self.due().flat_map(|((subject, _), unwritten, _)| {
            let fields = match &unwritten.failure {
                Failure::UnknownFields(fields) => fields.as_slice(),
                Failure::NotLeading
                | Failure::Ending
                | Failure::Paused
                | Failure::Conflict(_)
                | Failure::NotFound
                | Failure::Refused { .. }
                | Failure::NoAnswer(_) => &[],
            };
            fields.iter().map(|field| (subject.kind, field))
        })
    }

    /// Configs of nodes, revisions and their parts that could not be written for a while, each with what and why. They are made from no single
    /// intent that could say so.
    pub(crate) fn lasting(&self) -> BTreeMap<ObjectRef, String> {
        let lasting = self.0.iter().filter(|((subject, part), failed)| {
            let is_ours = matches!(
                subject.kind,
                Kind::NodeNetworkConfig
                    | Kind::NetworkConfigRevision
                    | Kind::NetworkConfigRevisionPart
            );
            let is_object = *part == Part::Object && failed.failure.source.is_none();
            let is_conflict = matches!(failed.failure.failure, Failure::Conflict(_));
            is_ours && is_object && failed.attempts >= LASTING && !is_conflict
        });
        let message = |((subject, _), failed): (&(ObjectRef, Part), &Failed<Unwritten>)| {
            let why = &failed.failure.failure;
            let message = format!("{subject} could not be written: {why}");
            (subject.clone(), message)
        };
        lasting.map(message).collect()
    }

    /// Intents that have something that could not be written, each with what and why. A conflict does not count: the next attempt resolves it.
    pub(crate) fn by_source(&self) -> BTreeMap<ObjectRef, String> {
        let mut failures = BTreeMap::new();
        for ((subject, _), unwritten, _) in self.due() {
            let Unwritten { source, failure } = unwritten;
            if let Some(source) = source
                && !matches!(failure, Failure::Conflict(_))
            {
                let message = format!("{subject} could not be written: {failure}");
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
        let mut backoffs = ObjectBackoffs::default();
        let write = (ObjectRef::named(Kind::Vrf, "a"), Part::Status);
        let other = (ObjectRef::named(Kind::Vrf, "b"), Part::Status);
        let (start, content) = (Instant::now(), json!({"vni": 7}));
        let fail = |backoffs: &mut ObjectBackoffs, content: &Value| {
            let unwritten = Unwritten {
                source: None,
                failure: Failure::NotFound,
            };
            backoffs.failed(write.clone(), content.clone(), unwritten, None, start)
        };
        assert_eq!(fail(&mut backoffs, &content), FIRST_RETRY);
        assert!(backoffs.waiting(&write, &content, start).is_some());
        assert!(backoffs.waiting(&other, &content, start).is_none());
        backoffs.succeeded(&other);
        assert_eq!(fail(&mut backoffs, &content), FIRST_RETRY * 2);
        // What is to be written has changed: it is tried at once, and waits longer still if that fails.
        let changed = json!({"vni": 8});
        assert!(backoffs.waiting(&write, &changed, start).is_none());
        assert_eq!(fail(&mut backoffs, &changed), FIRST_RETRY * 4);
        let free = BTreeSet::new();
        assert_eq!(backoffs.next(&free), Some(start + FIRST_RETRY * 4));
        assert_eq!(backoffs.next(&[Kind::Vrf].into()), None, "it is frozen");
        for _ in 0..40 {
            assert!(fail(&mut backoffs, &changed) <= LAST_RETRY);
        }
        backoffs.succeeded(&write);
        assert!(backoffs.waiting(&write, &changed, start).is_none());
        assert_eq!(backoffs.next(&free), None);
    }

    #[test]
    fn a_config_that_is_refused_again_and_again_is_reported_and_a_conflict_is_not() {
        let mut backoffs = ObjectBackoffs::default();
        let mut fail = |kind: Kind, failure: Failure| {
            let write = (ObjectRef::named(kind, "a"), Part::Object);
            let unwritten = Unwritten {
                source: None,
                failure,
            };
            backoffs.failed(write, Value::Null, unwritten, None, Instant::now());
            backoffs.lasting().into_values().collect::<Vec<_>>()
        };
        let refused = || Failure::Refused {
            code: 422,
            message: "refused by policy".to_owned(),
            retry_after: None,
        };
        assert!(fail(Kind::NodeNetworkConfig, refused()).is_empty());
        assert!(fail(Kind::NodeNetworkConfig, refused()).is_empty());
        let reported = fail(Kind::NodeNetworkConfig, refused());
        let message = "NodeNetworkConfig a could not be written: refused by policy (422)";
        assert_eq!(reported, [message]);
        for _ in 0..3 {
            fail(
                Kind::NetworkConfigRevision,
                Failure::Conflict(String::new()),
            );
            fail(Kind::Vrf, refused());
        }
        assert_eq!(fail(Kind::Vrf, refused()), [message]);
    }

    #[test]
    fn the_api_servers_wish_is_followed() {
        let mut backoffs = Backoffs::default();
        let wish = Some(Duration::from_secs(7));
        let delay = backoffs.failed("a", Value::Null, (), wish, Instant::now());
        assert_eq!(delay, Duration::from_secs(7));
    }
}
