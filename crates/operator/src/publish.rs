//! The publish step: writes what differs, in an order in which nothing is used before it is stored.
//!
//! Allocations are in statuses and come first; then generated objects; the revision; the configs of nodes; all other statuses. A write that
//! fails is tried again later on its own, and only what depends on it waits.

pub(crate) mod allocations;

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    time::{Duration, Instant},
};

use api::tcaas::NetworkConfigRevisionStatus;
use compiler::{Compilation, Kind, ObjectRef, Snapshot, revision, snapshot::Key};
use futures::{StreamExt, stream};
use kube::api::DynamicObject;
use serde_json::Value;

use crate::{
    backoff::{self, ObjectBackoffs, Part},
    kinds::{Kinds, Seen, Version},
    pass::Pass,
    request::{CONCURRENCY, Failure, Operation, Sender},
    rollout::{Publication, Revision},
    status, watch,
    write::{Write, Writes, json},
};

/// Statuses in which no condition changes are written together, this often: while a change is rolled out, the counts of nodes in them change
/// with every node.
const COALESCE: Duration = Duration::from_secs(3);

/// The same for the counts of nodes in the status of a revision, by which people follow a rollout.
const PROGRESS: Duration = Duration::from_secs(1);

/// What is remembered about writes from pass to pass.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) backoffs: ObjectBackoffs,
    /// Statuses in which no condition changes.
    counts: Paced,
    /// The status of a revision in which only counts change.
    progress: Paced,
    pub(crate) totals: Totals,
}

/// Writes that need not be done at once, and are done together.
#[derive(Debug, Default)]
struct Paced {
    /// When they may be done again.
    at: Option<Instant>,
    /// Whether there are some.
    is_waiting: bool,
}

impl Paced {
    /// Whether they are done now. If not, they wait.
    fn is_due(&mut self, now: Instant, period: Duration) -> bool {
        let is_due = self.at.is_none_or(|at| at <= now);
        self.is_waiting = !is_due;
        if is_due {
            self.at = Some(now + period);
        }
        is_due
    }

    /// Notes how long they took: they use no more than a tenth of the time, so that what is more urgent is done between them.
    fn took(&mut self, start: Instant, end: Instant) {
        let rest = end.saturating_duration_since(start) * 9;
        self.at = self.at.max(Some(end + rest));
    }

    fn next(&self) -> Option<Instant> {
        self.at.filter(|_| self.is_waiting)
    }
}

/// What was written since the start, by kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) written: BTreeMap<Kind, u64>,
    pub(crate) failed: BTreeMap<Kind, u64>,
    /// Fields that answers of the API server lacked.
    pub(crate) dropped: BTreeSet<(Kind, String)>,
}

impl Memory {
    /// When something is to be written that waits now.
    pub(crate) fn next(&self, frozen: &BTreeSet<Kind>) -> Option<Instant> {
        let paced = self.counts.next().into_iter().chain(self.progress.next());
        self.backoffs.next(frozen).into_iter().chain(paced).min()
    }
}

/// Writes objects, and counts what it wrote.
pub(crate) struct Writer<'a> {
    pub(crate) sender: &'a Sender,
    pub(crate) memory: &'a mut Memory,
    /// Kinds whose objects are not known as they are now: none of them is written.
    pub(crate) frozen: &'a BTreeSet<Kind>,
    pub(crate) written: Written,
    /// Writes that got no answer before. They wait until all others are done: each takes as long as the API server may take.
    pub(crate) slow: Vec<Write>,
}

/// What was written in a pass.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// The objects that were written, as the API server stored them.
    pub(crate) stored: Vec<Seen>,
    /// How many objects were written.
    pub(crate) objects: usize,
    /// The objects whose status was written.
    pub(crate) reported: BTreeSet<ObjectRef>,
    /// How many objects were deleted.
    pub(crate) deleted: usize,
    /// How many writes failed or wait.
    pub(crate) failed: usize,
    /// The nodes whose config was written.
    pub(crate) nodes: Vec<String>,
    /// Whether this operator stopped leading, or ends, or the API server asked it to wait.
    pub(crate) is_cut_short: bool,
    /// Everything that was wanted.
    wanted: BTreeSet<(ObjectRef, Part)>,
    /// The versions that objects got in this pass.
    versions: BTreeMap<ObjectRef, Version>,
}

impl Written {
    /// Whether the status of an object was written.
    pub(crate) fn has_status_of(&self, subject: &ObjectRef) -> bool {
        self.reported.contains(subject)
    }
}

/// Objects that are not as they are wanted after a step.
type Unwritten = BTreeSet<ObjectRef>;

impl Writer<'_> {
    /// Writes everything that a pass found.
    pub(crate) async fn publish(
        &mut self,
        snapshot: &Snapshot,
        kinds: &Kinds,
        compilation: &Compilation,
        pass: &Pass,
        now: &str,
    ) {
        let writes = Writes {
            snapshot,
            kinds,
            now,
        };
        // Authors of what the router of the host does expect it at once. It depends on nothing that is written below.
        let (host_routers, nodes): (Vec<&Publication>, Vec<&Publication>) =
            pass.step.publish.iter().partition(|one| one.lane.is_none());
        let host_routers = host_routers.into_iter();
        self.step(
            host_routers
                .map(|one| writes.node(one, &pass.step))
                .collect(),
        )
        .await;
        let Statuses {
            allocations,
            addressed,
            others,
            counts,
        } = statuses(&writes, pass);
        let unallocated = self.step(allocations).await;
        let is_held_up = |subject: &&ObjectRef| {
            unallocated.contains(subject) && !self.memory.backoffs.is_status_refused(subject)
        };
        let held_up = addressed.iter().filter(is_held_up).cloned().collect();
        let objects = pass.writes.objects.iter();
        let objects = objects.filter(|(intent, _)| !unallocated.contains(*intent));
        let objects = objects.flat_map(|(_, objects)| &**objects);
        self.step(objects.map(|object| writes.generated(object)).collect())
            .await;
        let stale = pass.writes.stale.iter();
        let stale = stale.filter(|(intent, _)| !unallocated.contains(*intent));
        let stale = stale.flat_map(|(_, stale)| &**stale);
        self.step(stale.map(|one| writes.deletion(one)).collect())
            .await;
        let is_stored =
            self.revisions_again(&writes).await && self.revision(&writes, compilation, pass).await;
        // A node never has a config whose revision is nowhere, nor addresses that no status holds.
        let newest = &compilation.revision.fingerprint;
        let users = allocations::users(compilation, &held_up);
        let is_possible = |one: &&Publication| {
            let is_newest = one.spec.revision == *newest;
            !is_newest || (is_stored && !users.contains(one.node.as_str()))
        };
        let nodes = nodes.into_iter().filter(is_possible);
        let nodes = nodes.map(|one| writes.node(one, &pass.step)).collect();
        self.step(nodes).await;
        self.step(others).await;
        self.counts(counts).await;
        let outdated = pass.step.outdated.iter().chain(&pass.step.removed);
        self.step(outdated.map(|one| writes.deletion(one)).collect())
            .await;
        let slow = mem::take(&mut self.slow);
        self.send(slow).await;
        if !self.written.is_cut_short {
            let wanted = &self.written.wanted;
            self.memory.backoffs.retain(|write| wanted.contains(write));
        }
    }

    /// Stores revisions again that were deleted with their definition; whether all are stored.
    async fn revisions_again(&mut self, writes: &Writes<'_>) -> bool {
        let (revisions, statuses) = writes.revisions_again();
        for step in [writes.parts_again(), revisions, statuses] {
            if !self.step(step).await.is_empty() {
                return false;
            }
        }
        true
    }

    /// Stores the newest revision with its status; whether it is stored.
    async fn revision(
        &mut self,
        writes: &Writes<'_>,
        compilation: &Compilation,
        pass: &Pass,
    ) -> bool {
        let name = revision::object_name(&compilation.revision.fingerprint);
        let subject = ObjectRef::named(Kind::NetworkConfigRevision, name);
        let before = writes.snapshot.network_config_revisions.get(&subject.key);
        let status = before.and_then(|before| before.status.as_deref());
        let mut unwritten = Unwritten::new();
        let parts = &writes.snapshot.network_config_revision_parts;
        let has_parts = |one: &Revision| {
            let mut wanted = one.spec.parts.iter();
            wanted.all(|part| parts.contains_key(&Key::named(part)))
        };
        if before.is_none_or(|before| !has_parts(before)) {
            let (parts, revision) = writes.revision(compilation);
            // A revision is never there without its parts.
            unwritten = self.step(parts).await;
            if unwritten.is_empty() && before.is_none() {
                unwritten = self.step(vec![revision]).await;
            }
        } else {
            self.step(writes.unneeded_parts()).await;
        }
        let wanted = &pass.step.status;
        let differs_in_counts = status.is_some_and(|status| with_counts(status, wanted) == *wanted);
        self.memory.progress.is_waiting = false;
        if unwritten.is_empty() && status != Some(wanted) {
            let content = json(wanted);
            let write = writes.untimed_status(&subject, content.clone(), &content);
            let (now, progress) = (Instant::now(), &mut self.memory.progress);
            if progress.is_due(now, PROGRESS) || !differs_in_counts {
                progress.is_waiting = false;
                unwritten = self.step(vec![write]).await;
            } else {
                self.written.wanted.insert(write.key());
            }
        }
        unwritten.is_empty()
    }

    /// Writes statuses in which no condition changes, unless that was done a moment ago.
    async fn counts(&mut self, counts: Vec<Write>) {
        if counts.is_empty() {
            self.memory.counts.is_waiting = false;
        } else if self.memory.counts.is_due(Instant::now(), COALESCE) {
            let start = Instant::now();
            self.step(counts).await;
            self.memory.counts.took(start, Instant::now());
        } else {
            self.written.wanted.extend(counts.iter().map(Write::key));
        }
    }

    /// Does writes that do not depend on each other, and says which objects are not as they are wanted.
    async fn step(&mut self, writes: Vec<Write>) -> Unwritten {
        let now = Instant::now();
        let mut unwritten = Unwritten::new();
        let mut due = Vec::new();
        for write in writes {
            let key = write.key();
            let backoffs = &self.memory.backoffs;
            let is_waiting = backoffs.waiting(&key, &write.content, now).is_some()
                || self.is_frozen(&write)
                || self.written.is_cut_short;
            let failure = backoffs.failure(&key).map(|unwritten| &unwritten.failure);
            let is_slow = matches!(failure, Some(Failure::NoAnswer(_)));
            self.written.wanted.insert(key);
            if is_waiting {
                self.written.failed += 1;
                unwritten.insert(write.subject);
            } else if is_slow {
                unwritten.insert(write.subject.clone());
                self.slow.push(write);
            } else {
                due.push(write);
            }
        }
        unwritten.extend(self.send(due).await);
        unwritten
    }

    /// Sends writes, and says which objects are not as they are wanted.
    async fn send(&mut self, mut writes: Vec<Write>) -> Unwritten {
        if self.written.is_cut_short {
            return writes.into_iter().map(|write| write.subject).collect();
        }
        for write in &mut writes {
            if let Some(version) = self.written.versions.get(&write.subject) {
                write.operation.replace_version(version);
            }
        }
        let mut unwritten = Unwritten::new();
        let sender = self.sender;
        let sent = writes.into_iter().map(|write| async move {
            let Write {
                subject, operation, ..
            } = &write;
            let answer = sender.send(subject.kind, &subject.key, operation).await;
            (write, answer)
        });
        let mut sent = stream::iter(sent).buffer_unordered(CONCURRENCY);
        while let Some((write, answer)) = sent.next().await {
            let subject = write.subject.clone();
            if !self.note(write, answer) {
                unwritten.insert(subject);
            }
        }
        unwritten
    }

    /// Whether an object, or what it was made from, is not known as it is now.
    fn is_frozen(&self, write: &Write) -> bool {
        let kinds = [Some(&write.subject), write.source.as_ref()];
        let mut kinds = kinds.into_iter().flatten().map(|object| object.kind);
        kinds.any(|kind| self.frozen.contains(&kind))
    }

    /// Takes in the answer to a write; whether the object is as it was wanted.
    fn note(&mut self, write: Write, answer: Result<Option<DynamicObject>, Failure>) -> bool {
        let kind = write.subject.kind;
        let stored = match answer {
            Ok(stored) => stored,
            // What is to be deleted is not there, or what a status is for: its watch reports that.
            Err(Failure::NotFound) if write.may_be_gone() => {
                self.memory.backoffs.succeeded(&write.key());
                return matches!(write.operation, Operation::Delete(_));
            }
            Err(failure) => {
                self.failed(write, failure);
                return false;
            }
        };
        self.memory.backoffs.succeeded(&write.key());
        *self.memory.totals.written.entry(kind).or_default() += 1;
        match (&write.operation, write.part) {
            (Operation::Delete(_), _) => self.written.deleted += 1,
            (_, Part::Status) => {
                self.written.reported.insert(write.subject.clone());
            }
            (_, Part::Object) => {
                self.written.objects += 1;
                if kind == Kind::NodeNetworkConfig {
                    self.written.nodes.push(write.subject.key.name.to_string());
                }
            }
        }
        let Some(stored) = stored else {
            return true;
        };
        let dropped = write.dropped(&stored);
        let seen = watch::prepare(kind, stored);
        if let Some(seen) = seen {
            let subject = write.subject.clone();
            self.written.versions.insert(subject, seen.version.clone());
            self.written.stored.push(seen);
        }
        if dropped.is_empty() {
            return true;
        }
        let known = &mut self.memory.totals.dropped;
        known.extend(dropped.iter().map(|field| (kind, field.clone())));
        self.failed(write, Failure::UnknownFields(dropped));
        false
    }

    fn failed(&mut self, write: Write, failure: Failure) {
        self.written.failed += 1;
        if failure.ends_pass() {
            self.written.is_cut_short = true;
            return;
        }
        let subject = write.subject.clone();
        *self.memory.totals.failed.entry(subject.kind).or_default() += 1;
        let (is_conflict, error) = (matches!(failure, Failure::Conflict(_)), failure.to_string());
        let (key, now) = (write.key(), Instant::now());
        let backoffs = &mut self.memory.backoffs;
        let retry_after = failure.retry_after();
        let unwritten = backoff::Unwritten {
            source: write.source,
            failure,
        };
        let retry_in = backoffs.failed(key, write.content, unwritten, retry_after, now);
        if is_conflict {
            tracing::debug!(%subject, error, ?retry_in, "write refused: the object has changed");
        } else {
            tracing::warn!(%subject, error, ?retry_in, "write failed");
        }
    }
}

/// The status of a revision with the counts of nodes of another.
fn with_counts(
    status: &NetworkConfigRevisionStatus,
    of: &NetworkConfigRevisionStatus,
) -> NetworkConfigRevisionStatus {
    NetworkConfigRevisionStatus {
        ready: of.ready,
        ongoing: of.ongoing,
        queued: of.queued,
        failed: of.failed,
        unapproved: of.unapproved,
        total: of.total,
        waves: of.waves.clone(),
        ..status.clone()
    }
}

impl Write {
    /// Whether the absence of the object is no error. Nodes need their revision.
    fn may_be_gone(&self) -> bool {
        match self.operation {
            Operation::Delete(_) => true,
            Operation::ApplyStatus(_) => self.subject.kind != Kind::NetworkConfigRevision,
            Operation::Apply(_) => false,
        }
    }

    /// The fields that the API server has dropped: they are in what was sent and not in what was stored.
    fn dropped(&self, stored: &DynamicObject) -> Vec<String> {
        let (document, part) = match &self.operation {
            Operation::Apply(document) => (document, "spec"),
            Operation::ApplyStatus(document) => (document, "status"),
            Operation::Delete(_) => return Vec::new(),
        };
        let mut dropped = Vec::new();
        let null = Value::Null;
        let wanted = document.get(part).unwrap_or(&null);
        let stored = stored.data.get(part).unwrap_or(&null);
        missing(part, wanted, stored, &mut dropped);
        dropped.sort();
        dropped.dedup();
        dropped
    }
}

/// Collects the fields that something stored lacks. Values that differ are none: another writer may have changed them since.
fn missing(path: &str, wanted: &Value, stored: &Value, dropped: &mut Vec<String>) {
    match (wanted, stored) {
        (Value::Object(wanted), Value::Object(stored)) => {
            for (name, wanted) in wanted {
                let path = format!("{path}.{name}");
                match stored.get(name) {
                    Some(stored) => missing(&path, wanted, stored, dropped),
                    None if is_nothing(wanted) => {}
                    None => dropped.push(path),
                }
            }
        }
        (Value::Array(wanted), Value::Array(stored)) if wanted.len() == stored.len() => {
            let path = format!("{path}[]");
            for (wanted, stored) in wanted.iter().zip(stored) {
                missing(&path, wanted, stored, dropped);
            }
        }
        (Value::Object(wanted), Value::Null) if !wanted.is_empty() => {
            dropped.push(path.to_owned());
        }
        _ => {}
    }
}

/// Whether a field that is not stored is as good as one with this value.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The statuses that are written.
#[derive(Default)]
struct Statuses {
    /// Those with allocations, which come first.
    allocations: Vec<Write>,
    /// The objects whose addresses are among those.
    addressed: Unwritten,
    /// Those in which a condition changes.
    others: Vec<Write>,
    /// The rest.
    counts: Vec<Write>,
}

fn statuses(writes: &Writes<'_>, pass: &Pass) -> Statuses {
    let mut all = Statuses::default();
    for (subject, status) in &pass.writes.statuses {
        let stored = writes.snapshot.stored_status(subject);
        let before = stored.map(|(_, status)| status).unwrap_or_default();
        let mut status = status.to_value();
        if let Some(message) = pass.unwritten.get(subject) {
            status::not_written(&mut status, message);
        }
        let place = match status::difference(&status, &before) {
            status::Difference::None => continue,
            status::Difference::Allocations => {
                if allocations::differ(&status, &before) {
                    all.addressed.insert(subject.clone());
                }
                &mut all.allocations
            }
            status::Difference::Conditions => &mut all.others,
            status::Difference::Counts => &mut all.counts,
        };
        place.push(writes.status(subject, status));
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn writes_that_are_paced_are_done_together_and_none_is_forgotten() {
        let (mut paced, start) = (Paced::default(), Instant::now());
        assert!(paced.is_due(start, PROGRESS), "the first is done at once");
        assert_eq!(paced.next(), None);
        assert!(!paced.is_due(start + PROGRESS / 2, PROGRESS));
        assert_eq!(paced.next(), Some(start + PROGRESS));
        assert!(paced.is_due(start + PROGRESS, PROGRESS));
        assert_eq!(paced.next(), None);
    }

    #[test]
    fn writes_that_take_long_are_done_less_often() {
        let (mut paced, start) = (Paced::default(), Instant::now());
        assert!(paced.is_due(start, COALESCE));
        paced.took(start, start + COALESCE / 30);
        assert!(paced.is_due(start + COALESCE, COALESCE), "they are quick");
        paced.took(start + COALESCE, start + COALESCE * 3);
        assert!(!paced.is_due(start + COALESCE * 20, COALESCE));
        assert!(paced.is_due(start + COALESCE * 21, COALESCE));
    }

    #[test]
    fn a_field_that_the_api_server_dropped_is_named_and_a_value_that_differs_is_not() {
        let wanted = json!({
            "vrf": "a", "kept": {"x": 1}, "gone": {"y": 2}, "empty": [], "null": null,
            "list": [{"a": 1, "b": 2}, {"a": 1, "b": 3}],
        });
        let stored = json!({
            "vrf": "b", "kept": {"x": 1, "default": true}, "list": [{"a": 1}, {"a": 1}],
        });
        let mut dropped = Vec::new();
        missing("spec", &wanted, &stored, &mut dropped);
        dropped.dedup();
        assert_eq!(dropped, ["spec.gone", "spec.list[].b"]);
        let mut dropped = Vec::new();
        missing("spec", &stored, &stored, &mut dropped);
        assert!(dropped.is_empty());
    }
}
