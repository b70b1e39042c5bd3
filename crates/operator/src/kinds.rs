//! What is known about each watched kind. Nothing is published before the objects of every kind were known completely, and no object of a
//! kind is written while that kind cannot be watched.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, mem,
    time::{Duration, Instant},
};

use compiler::{Compiler, Kind, ObjectRef, Prepared, Snapshot, rollout::stored};

use crate::{rollout::Revision, watch::Change};

/// The version of an object, as the API server counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version(Box<str>);

impl Version {
    pub(crate) fn new(version: String) -> Self {
        Self(version.into())
    }

    /// Whether this is an older version than another.
    pub(crate) fn is_before(&self, other: &Self) -> bool {
        let number = |version: &Self| version.0.parse::<u64>().ok();
        // A version that is no number can only be compared for equality.
        number(self)
            .zip(number(other))
            .is_some_and(|(this, other)| this < other)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An object as the API server has it.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) prepared: Box<Prepared>,
    pub(crate) version: Version,
}

/// The watched kinds.
#[derive(Debug)]
pub(crate) struct Kinds(BTreeMap<Kind, Known>);

/// What is known about one kind.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own: lists, definitions and watches come and go apart"
)]
struct Known {
    /// Whether a list has been completed.
    is_listed: bool,
    /// Why the watch does not work at the moment.
    failing: Option<String>,
    /// Whether the API server does not serve the kind, and has not served it before.
    is_absent: bool,
    /// Whether a kind that every cluster should have is not defined.
    is_undefined: bool,
    /// The objects that the compiler has.
    objects: BTreeMap<ObjectRef, Version>,
    /// The objects of the list that has begun and is not complete.
    listing: BTreeMap<ObjectRef, Version>,
    /// Whether the definition of the kind was deleted since the last list.
    has_vanished: bool,
    /// Objects that were deleted with the definition of their kind, and until when they stay in effect.
    lost: BTreeMap<ObjectRef, Instant>,
    /// The same of a kind that this operator alone writes: they are written again as they were.
    unwritten: BTreeSet<ObjectRef>,
}

/// How long objects stay in effect after the definition of their kind, which was deleted, is back.
const RETURN: Duration = Duration::from_mins(10);

/// Why nothing can be published now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Incomplete {
    /// A kind has not been listed yet.
    #[error("{kind} has not been listed yet")]
    NotListed { kind: Kind },
    /// A kind cannot be watched at the moment.
    #[error("{kind} cannot be watched: {reason}")]
    Failing { kind: Kind, reason: String },
}

impl Kinds {
    /// These kinds, none of which has been listed.
    pub(crate) fn new(kinds: impl Iterator<Item = Kind>) -> Self {
        Self(kinds.map(|kind| (kind, Known::default())).collect())
    }

    /// Applies a change of a kind to the compiler. An object that a new list lacks is removed when the list is complete.
    pub(crate) fn apply(&mut self, kind: Kind, change: Change, compiler: &mut Compiler) {
        let known = self.0.entry(kind).or_default();
        match change {
            Change::ListStarted => known.listing.clear(),
            Change::Listed(seen) => {
                let subject = seen.prepared.subject().clone();
                known.listing.insert(subject, seen.version.clone());
                known.put(seen, compiler);
            }
            Change::ListCompleted => {
                let listed = mem::take(&mut known.listing);
                for gone in known.objects.keys().filter(|one| !listed.contains_key(one)) {
                    if known.has_vanished && is_result(kind) {
                        known.unwritten.insert(gone.clone());
                    } else if known.has_vanished {
                        known.lost.insert(gone.clone(), Instant::now() + RETURN);
                    } else {
                        compiler.remove(gone);
                    }
                }
                if mem::take(&mut known.has_vanished) && !known.lost.is_empty() {
                    let (lost, stay) = (known.lost.len(), RETURN);
                    tracing::warn!(%kind, lost, ?stay, "the definition of this kind was deleted with its objects: they stay in effect for a while");
                }
                if !known.unwritten.is_empty() {
                    let lost = known.unwritten.len();
                    tracing::warn!(%kind, lost, "the definition of this kind was deleted with its objects: they are written again as they were");
                }
                known.objects = listed;
                known.is_listed = true;
                known.is_absent = false;
                known.is_undefined = false;
                known.failing = None;
            }
            Change::Applied(seen) => {
                if !known.has_newer(seen.prepared.subject(), &seen.version) {
                    known.put(seen, compiler);
                }
                known.failing = None;
            }
            Change::Deleted(subject, version) => {
                if !known.has_newer(&subject, &version) {
                    compiler.remove(&subject);
                    known.objects.remove(&subject);
                }
                known.failing = None;
            }
            Change::Failed(reason) => known.failing = Some(reason),
            Change::Vanished(reason) => {
                known.failing = Some(reason);
                known.has_vanished = true;
            }
            Change::NotServed(reason) => known.not_served(kind, reason),
            Change::NotDefined(reason) => {
                known.is_undefined = true;
                known.has_vanished |= known.is_listed && !known.is_absent;
                known.failing = Some(reason);
            }
            Change::Outdated => known.is_listed = false,
        }
    }

    /// Takes kinds that are not defined as kinds without objects, if no revision was made while they were served: what nodes have came
    /// about without them. Else their objects were deleted with their definition, and nodes may run what was made from them.
    pub(crate) fn accept_undefined(&mut self, snapshot: &Snapshot) {
        let is_known = |kind| self.0.get(&kind).is_some_and(|known| known.is_listed);
        if !is_known(Kind::NetworkConfigRevision) {
            return;
        }
        let revisions = snapshot.network_config_revisions.values();
        // A revision that does not say what was served may have been made with all kinds.
        let served = |revision: &Revision, kind: Kind| {
            let served = revision.meta.annotations.get(stored::SERVED);
            served.is_none_or(|served| served.split(',').any(|one| one == qualified(kind)))
        };
        for (&kind, known) in &mut self.0 {
            if known.is_listed || !known.is_undefined {
                continue;
            }
            let mut revisions = revisions.clone();
            if revisions.any(|one| served(one, kind)) {
                continue;
            }
            let reason = known.failing.as_deref().unwrap_or_default();
            tracing::warn!(%kind, reason, "the kind has no objects until it is defined: install the definitions of this version");
            known.is_absent = true;
            known.is_listed = true;
        }
    }

    /// The kinds that every cluster should have and that are served, or were when this operator started.
    pub(crate) fn served(&self) -> String {
        let served = self
            .0
            .iter()
            .filter(|(kind, known)| !kind.is_optional() && known.is_listed && !known.is_absent);
        let names: Vec<String> = served.map(|(kind, _)| qualified(*kind)).collect();
        names.join(",")
    }

    /// Gives the compiler an object as the API server stored it, before the watch reports it.
    pub(crate) fn put(&mut self, seen: Seen, compiler: &mut Compiler) {
        let known = self.0.entry(seen.prepared.subject().kind).or_default();
        known.put(seen, compiler);
    }

    /// Gives up objects that were deleted with the definition of their kind and did not come back in time.
    pub(crate) fn give_up(&mut self, now: Instant, compiler: &mut Compiler) {
        for known in self.0.values_mut() {
            known.lost.retain(|subject, until| {
                let stays = now < *until;
                if !stays {
                    compiler.remove(subject);
                }
                stays
            });
        }
    }

    /// When the next object is given up.
    pub(crate) fn next_given_up(&self) -> Option<Instant> {
        let lost = self.0.values().flat_map(|known| known.lost.values());
        lost.min().copied()
    }

    /// The version of an object, if it is there.
    pub(crate) fn version(&self, subject: &ObjectRef) -> Option<&Version> {
        self.0.get(&subject.kind)?.objects.get(subject)
    }

    /// Objects that this operator alone writes, and that were deleted with the definition of their kind: they are as they were before, and are
    /// to be written again.
    pub(crate) fn unwritten(&self, kind: Kind) -> impl Iterator<Item = &ObjectRef> {
        let known = self.0.get(&kind);
        known.into_iter().flat_map(|known| &known.unwritten)
    }

    /// Whether all objects are known, or why not.
    ///
    /// A kind that was listed and cannot be watched at the moment is known as it was: its objects stay what they were, and none is written.
    pub(crate) fn complete(&self) -> Result<(), Incomplete> {
        for (&kind, known) in &self.0 {
            if known.is_listed {
                continue;
            }
            return Err(match known.failing.clone() {
                Some(reason) => Incomplete::Failing { kind, reason },
                None => Incomplete::NotListed { kind },
            });
        }
        Ok(())
    }

    /// The kinds whose objects are not known as they are now, or are kept though they are not there.
    pub(crate) fn frozen(&self) -> BTreeSet<Kind> {
        let is_frozen = |known: &Known| known.failing.is_some() || !known.lost.is_empty();
        let frozen = self.0.iter().filter(|(_, known)| is_frozen(known));
        frozen.map(|(&kind, _)| kind).collect()
    }
}

/// Whether objects of a kind are written by operators alone: what nodes must have, and how that came about.
fn is_result(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::NodeNetworkConfig | Kind::NetworkConfigRevision | Kind::NetworkConfigRevisionPart
    )
}

/// A kind with its group: kinds of two groups may have one name.
fn qualified(kind: Kind) -> String {
    let (group, _) = kind.group_version();
    format!("{kind}.{group}")
}

impl Known {
    fn put(&mut self, seen: Seen, compiler: &mut Compiler) {
        let subject = seen.prepared.subject().clone();
        self.lost.remove(&subject);
        self.unwritten.remove(&subject);
        self.objects.insert(subject, seen.version);
        compiler.put(*seen.prepared);
    }

    /// Whether a newer version of an object is known: the answer to a write comes before the event of the watch about an earlier one.
    fn has_newer(&self, subject: &ObjectRef, version: &Version) -> bool {
        let known = self.objects.get(subject);
        known.is_some_and(|known| version.is_before(known))
    }

    /// A kind that is not served has no objects, unless it was served before.
    fn not_served(&mut self, kind: Kind, reason: String) {
        if self.is_listed && !self.is_absent {
            tracing::warn!(%kind, reason, "the API server no longer serves this kind");
            self.failing = Some(reason);
            return;
        }
        if !self.is_absent {
            tracing::info!(%kind, "the API server does not serve this optional kind");
        }
        self.is_absent = true;
        self.is_listed = true;
        self.failing = None;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    struct Cluster {
        kinds: Kinds,
        compiler: Compiler,
    }

    impl Cluster {
        fn of(kinds: &[Kind]) -> Self {
            Self {
                kinds: Kinds::new(kinds.iter().copied()),
                compiler: Compiler::default(),
            }
        }

        fn apply(&mut self, kind: Kind, change: Change) {
            self.kinds.apply(kind, change, &mut self.compiler);
        }

        fn list(&mut self, kind: Kind, names: &[&str]) {
            self.apply(kind, Change::ListStarted);
            for name in names {
                self.apply(kind, Change::Listed(object(kind, name)));
            }
            self.apply(kind, Change::ListCompleted);
        }

        fn nodes(&self) -> Vec<&str> {
            let nodes = self.compiler.snapshot().nodes.keys();
            nodes.map(|key| &*key.name).collect()
        }
    }

    fn version(number: u64) -> Version {
        Version::new(number.to_string())
    }

    fn object(kind: Kind, name: &str) -> Seen {
        object_at(kind, name, 7)
    }

    fn object_at(kind: Kind, name: &str, number: u64) -> Seen {
        let document = json!({
            "apiVersion": kind.api_version(), "kind": kind.to_string(), "metadata": {"name": name},
            "spec": {"revision": "r"},
        });
        Seen {
            prepared: Box::new(Prepared::read(&document).expect("an object")),
            version: version(number),
        }
    }

    #[test]
    fn a_list_that_is_not_complete_counts_as_none() {
        let mut cluster = Cluster::of(&[Kind::Node]);
        let not_listed = Err(Incomplete::NotListed { kind: Kind::Node });
        cluster.apply(Kind::Node, Change::ListStarted);
        let listed = Change::Listed(object(Kind::Node, "a"));
        cluster.apply(Kind::Node, listed);
        assert_eq!(cluster.kinds.complete(), not_listed);
        cluster.apply(Kind::Node, Change::ListCompleted);
        assert_eq!(cluster.kinds.complete(), Ok(()));
        assert_eq!(cluster.nodes(), ["a"]);
    }

    #[test]
    fn an_object_that_a_new_list_lacks_is_removed_when_the_list_is_complete() {
        let mut cluster = Cluster::of(&[Kind::Node]);
        cluster.list(Kind::Node, &["a"]);
        cluster.apply(Kind::Node, Change::ListStarted);
        cluster.apply(Kind::Node, Change::Listed(object(Kind::Node, "b")));
        assert_eq!(cluster.nodes(), ["a", "b"]);
        // The list breaks off; the next one is complete.
        cluster.apply(Kind::Node, Change::ListStarted);
        cluster.apply(Kind::Node, Change::Listed(object(Kind::Node, "c")));
        cluster.apply(Kind::Node, Change::ListCompleted);
        assert_eq!(cluster.nodes(), ["c"]);
        cluster.apply(
            Kind::Node,
            Change::Deleted(ObjectRef::named(Kind::Node, "c"), version(8)),
        );
        assert!(cluster.nodes().is_empty());
    }

    #[test]
    fn an_object_that_was_stored_and_is_not_listed_is_removed() {
        let mut cluster = Cluster::of(&[Kind::Node]);
        cluster.list(Kind::Node, &["a"]);
        let stored = object(Kind::Node, "b");
        cluster.kinds.put(stored, &mut cluster.compiler);
        cluster.list(Kind::Node, &["a"]);
        assert_eq!(cluster.nodes(), ["a"]);
    }

    #[test]
    fn a_kind_that_is_not_served_has_no_objects_unless_it_was_served_before() {
        let not_served = || Change::NotServed("not found".to_owned());
        let mut cluster = Cluster::of(&[Kind::Node]);
        cluster.apply(Kind::Node, not_served());
        assert_eq!(cluster.kinds.complete(), Ok(()));
        cluster.list(Kind::Node, &["a"]);
        cluster.apply(Kind::Node, not_served());
        assert_eq!(cluster.nodes(), ["a"]);
        assert_eq!(cluster.kinds.frozen(), [Kind::Node].into());
    }

    #[test]
    fn configs_that_went_with_their_definition_stay_until_they_are_written_again() {
        let kind = Kind::NodeNetworkConfig;
        let mut cluster = Cluster::of(&[kind]);
        cluster.list(kind, &["a", "b"]);
        cluster.apply(kind, Change::Vanished("it is being deleted".to_owned()));
        assert_eq!(cluster.kinds.frozen(), [kind].into());
        cluster.list(kind, &[]);
        let later = Instant::now() + RETURN * 2;
        cluster.kinds.give_up(later, &mut cluster.compiler);
        let configs = &cluster.compiler.snapshot().node_network_configs;
        assert_eq!(configs.len(), 2, "they are not given up");
        let all = ["a", "b"].map(|name| ObjectRef::named(kind, name));
        assert!(cluster.kinds.unwritten(kind).eq(&all));
        assert!(cluster.kinds.frozen().is_empty(), "they can be written");
        assert_eq!(cluster.kinds.next_given_up(), None);
        let written = object(kind, "a");
        cluster.kinds.put(written, &mut cluster.compiler);
        assert!(cluster.kinds.unwritten(kind).eq(&all[1..]));
    }

    #[test]
    fn nothing_is_complete_before_every_kind_was_listed() {
        let mut cluster = Cluster::of(&[Kind::Node, Kind::Vrf]);
        cluster.list(Kind::Node, &[]);
        let not_listed = Err(Incomplete::NotListed { kind: Kind::Vrf });
        assert_eq!(cluster.kinds.complete(), not_listed);
        let reason = "gone".to_owned();
        cluster.apply(Kind::Vrf, Change::Failed(reason.clone()));
        let kind = Kind::Vrf;
        let failing = Err(Incomplete::Failing { kind, reason });
        assert_eq!(cluster.kinds.complete(), failing);
        cluster.list(Kind::Vrf, &[]);
        assert_eq!(cluster.kinds.complete(), Ok(()));
        // A store that has gone back makes what is known worth nothing.
        cluster.apply(Kind::Vrf, Change::Outdated);
        assert_eq!(cluster.kinds.complete(), not_listed);
    }

    #[test]
    fn a_kind_that_was_never_defined_has_no_objects_unless_nodes_may_run_what_was_made_from_them() {
        let not_defined = || Change::NotDefined("there is no definition".to_owned());
        let revision = |served: Option<&str>| {
            let kind = Kind::NetworkConfigRevision;
            let annotations = served.map(|served| json!({stored::SERVED: served}));
            let document = json!({
                "apiVersion": kind.api_version(), "kind": kind.to_string(),
                "metadata": {"name": "r", "annotations": annotations}, "spec": {"revision": "r"},
            });
            Seen {
                prepared: Box::new(Prepared::read(&document).expect("an object")),
                version: version(7),
            }
        };
        let start = |stored: Option<Seen>| {
            let mut cluster = Cluster::of(&[Kind::NetworkConfigRevision, Kind::L3Vni]);
            cluster.apply(Kind::L3Vni, not_defined());
            cluster.kinds.accept_undefined(cluster.compiler.snapshot());
            assert!(cluster.kinds.complete().is_err(), "revisions may name it");
            cluster.apply(Kind::NetworkConfigRevision, Change::ListStarted);
            if let Some(stored) = stored {
                cluster.apply(Kind::NetworkConfigRevision, Change::Listed(stored));
            }
            cluster.apply(Kind::NetworkConfigRevision, Change::ListCompleted);
            cluster.kinds.accept_undefined(cluster.compiler.snapshot());
            cluster
        };
        for without in [None, Some(revision(Some(&qualified(Kind::Vrf))))] {
            let mut cluster = start(without);
            assert_eq!(cluster.kinds.complete(), Ok(()));
            assert_eq!(cluster.kinds.frozen(), [Kind::L3Vni].into());
            let revisions = qualified(Kind::NetworkConfigRevision);
            assert_eq!(cluster.kinds.served(), revisions);
            cluster.list(Kind::L3Vni, &[]);
            assert!(cluster.kinds.frozen().is_empty(), "it is defined now");
            assert!(cluster.kinds.served().contains(&qualified(Kind::L3Vni)));
        }
        for with in [revision(Some(&qualified(Kind::L3Vni))), revision(None)] {
            assert!(start(Some(with)).kinds.complete().is_err());
        }
        // One that was there and is gone keeps its objects.
        let mut cluster = Cluster::of(&[Kind::Node]);
        cluster.list(Kind::Node, &["a"]);
        cluster.apply(Kind::Node, not_defined());
        assert_eq!(cluster.kinds.frozen(), [Kind::Node].into());
        cluster.list(Kind::Node, &[]);
        assert_eq!(cluster.nodes(), ["a"]);
    }

    #[test]
    fn a_kind_whose_watch_fails_is_frozen_until_the_api_server_answers_again() {
        let mut cluster = Cluster::of(&[Kind::Node, Kind::Vrf]);
        cluster.list(Kind::Node, &["a"]);
        cluster.list(Kind::Vrf, &[]);
        let fail = |cluster: &mut Cluster| {
            cluster.apply(Kind::Node, Change::Failed("gone".to_owned()));
            assert_eq!(cluster.kinds.frozen(), [Kind::Node].into());
            assert_eq!(cluster.kinds.complete(), Ok(()));
            assert_eq!(cluster.nodes(), ["a"], "its objects stay");
        };
        // A list that begins is no answer of the API server; one that is complete is.
        fail(&mut cluster);
        cluster.apply(Kind::Node, Change::ListStarted);
        assert!(!cluster.kinds.frozen().is_empty());
        cluster.list(Kind::Node, &["a"]);
        assert!(cluster.kinds.frozen().is_empty());
        // So is every event of the watch.
        fail(&mut cluster);
        cluster.apply(Kind::Node, Change::Applied(object(Kind::Node, "a")));
        assert!(cluster.kinds.frozen().is_empty());
        fail(&mut cluster);
        let deleted = Change::Deleted(ObjectRef::named(Kind::Node, "a"), version(8));
        cluster.apply(Kind::Node, deleted);
        assert!(cluster.kinds.frozen().is_empty());
    }

    #[test]
    fn objects_that_went_with_their_definition_stay_until_they_are_back_or_time_is_over() {
        let mut cluster = Cluster::of(&[Kind::Node]);
        cluster.list(Kind::Node, &["a", "b", "c"]);
        cluster.apply(Kind::Node, Change::Vanished("deleted".to_owned()));
        assert_eq!(cluster.nodes(), ["a", "b", "c"]);
        cluster.list(Kind::Node, &["a"]);
        assert_eq!(cluster.nodes(), ["a", "b", "c"], "the definition is back");
        assert_eq!(cluster.kinds.frozen(), [Kind::Node].into());
        cluster.apply(Kind::Node, Change::Applied(object(Kind::Node, "b")));
        let over = cluster.kinds.next_given_up().expect("c is not back");
        cluster.kinds.give_up(over, &mut cluster.compiler);
        assert_eq!(cluster.nodes(), ["a", "b"]);
        assert!(cluster.kinds.frozen().is_empty());
        // An object that is deleted now is gone at once.
        cluster.list(Kind::Node, &["a"]);
        assert_eq!(cluster.nodes(), ["a"]);
    }

    #[test]
    fn an_event_about_an_older_version_than_is_known_is_ignored() {
        let mut cluster = Cluster::of(&[Kind::Node]);
        cluster.list(Kind::Node, &["a"]);
        let node = ObjectRef::named(Kind::Node, "a");
        let stored = object_at(Kind::Node, "a", 10);
        cluster.kinds.put(stored, &mut cluster.compiler);
        // It was deleted and created anew: the deletion is reported after the answer to the creation.
        cluster.apply(Kind::Node, Change::Deleted(node.clone(), version(9)));
        assert_eq!(cluster.nodes(), ["a"]);
        cluster.apply(Kind::Node, Change::Applied(object_at(Kind::Node, "a", 8)));
        assert_eq!(cluster.kinds.version(&node), Some(&version(10)));
        // Versions are numbers: 9 is older than 10.
        cluster.apply(Kind::Node, Change::Deleted(node, version(11)));
        assert!(cluster.nodes().is_empty());
    }

    #[test]
    fn an_event_without_a_difference_is_no_change() {
        let mut cluster = Cluster::of(&[Kind::Node]);
        cluster.list(Kind::Node, &["a"]);
        assert!(cluster.compiler.has_changed());
        cluster.compiler.compile();
        cluster.apply(Kind::Node, Change::Applied(object(Kind::Node, "a")));
        cluster.list(Kind::Node, &["a"]);
        assert!(!cluster.compiler.has_changed());
    }

    #[test]
    fn a_report_of_a_node_that_is_written_once_more_is_no_change() {
        let reports = [
            (Kind::NodeNetworkStatus, "lastUpdated"),
            (Kind::NodeNetworkConfig, "lastUpdate"),
        ];
        for (kind, field) in reports {
            let mut cluster = Cluster::of(&[kind]);
            let mut seen = |second: u32, more: Value| {
                let mut status = json!({field: format!("2026-01-01T00:00:0{second}Z")});
                status["conditions"] = more;
                let document = json!({
                    "apiVersion": kind.api_version(), "kind": kind.to_string(),
                    "metadata": {"name": "n1"}, "spec": {"revision": "r"}, "status": status,
                });
                let prepared = Prepared::read(&document).expect("an object");
                let seen = Seen {
                    prepared: Box::new(prepared),
                    version: version(second.into()),
                };
                cluster.apply(kind, Change::Applied(seen));
                let has_changed = cluster.compiler.has_changed();
                cluster.compiler.compile();
                has_changed
            };
            assert!(seen(1, json!([])));
            assert!(!seen(2, json!([])), "{kind}");
            let healthy = json!([{"type": "Healthy", "status": "True", "reason": "A"}]);
            assert!(seen(3, healthy), "{kind}");
        }
    }
}
