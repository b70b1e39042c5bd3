//! What is known about each watched kind. Nothing is published while the objects of a kind are not known completely.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

use compiler::{Compiler, Kind, ObjectRef, Prepared};

use crate::watch::Change;

/// The watched kinds.
#[derive(Debug)]
pub(crate) struct Kinds(BTreeMap<Kind, Known>);

/// What is known about one kind.
#[derive(Debug, Default)]
struct Known {
    /// Whether a list has been completed.
    is_listed: bool,
    /// Why the watch does not work at the moment.
    failing: Option<String>,
    /// Whether the API server does not serve the kind, and has not served it before.
    is_absent: bool,
    /// The objects that the compiler has.
    objects: BTreeSet<ObjectRef>,
    /// The objects of the list that has begun and is not complete.
    listing: BTreeSet<ObjectRef>,
}

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
            Change::Listed(prepared) => {
                known.listing.insert(prepared.subject().clone());
                known.put(*prepared, compiler);
            }
            Change::ListCompleted => {
                let listed = mem::take(&mut known.listing);
                for gone in known.objects.difference(&listed) {
                    compiler.remove(gone);
                }
                known.objects = listed;
                known.is_listed = true;
                known.is_absent = false;
                known.failing = None;
            }
            Change::Applied(prepared) => {
                known.put(*prepared, compiler);
                known.failing = None;
            }
            Change::Deleted(subject) => {
                compiler.remove(&subject);
                known.objects.remove(&subject);
                known.failing = None;
            }
            Change::Failed(reason) => known.failing = Some(reason),
            Change::NotServed(reason) => known.not_served(kind, reason),
        }
    }

    /// Gives the compiler an object as the API server stored it, before the watch reports it.
    pub(crate) fn put(&mut self, prepared: Prepared, compiler: &mut Compiler) {
        let known = self.0.entry(prepared.subject().kind).or_default();
        known.put(prepared, compiler);
    }

    /// Whether all objects are known, or why not.
    pub(crate) fn complete(&self) -> Result<(), Incomplete> {
        for (&kind, known) in &self.0 {
            if let Some(reason) = known.failing.clone() {
                return Err(Incomplete::Failing { kind, reason });
            }
            if !known.is_listed {
                return Err(Incomplete::NotListed { kind });
            }
        }
        Ok(())
    }
}

impl Known {
    fn put(&mut self, prepared: Prepared, compiler: &mut Compiler) {
        self.objects.insert(prepared.subject().clone());
        compiler.put(prepared);
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
    use serde_json::json;

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

    fn object(kind: Kind, name: &str) -> Box<Prepared> {
        let document = json!({
            "apiVersion": kind.api_version(), "kind": kind.to_string(), "metadata": {"name": name},
        });
        Box::new(Prepared::read(&document).expect("an object"))
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
            Change::Deleted(ObjectRef::named(Kind::Node, "c")),
        );
        assert!(cluster.nodes().is_empty());
    }

    #[test]
    fn an_object_that_was_stored_and_is_not_listed_is_removed() {
        let mut cluster = Cluster::of(&[Kind::Node]);
        cluster.list(Kind::Node, &["a"]);
        let stored = *object(Kind::Node, "b");
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
        assert!(matches!(
            cluster.kinds.complete(),
            Err(Incomplete::Failing { .. })
        ));
    }

    #[test]
    fn nothing_is_complete_before_every_kind_is_listed_and_while_one_fails() {
        let mut cluster = Cluster::of(&[Kind::Node, Kind::Vrf]);
        cluster.list(Kind::Node, &[]);
        let not_listed = Err(Incomplete::NotListed { kind: Kind::Vrf });
        assert_eq!(cluster.kinds.complete(), not_listed);
        cluster.list(Kind::Vrf, &[]);
        assert_eq!(cluster.kinds.complete(), Ok(()));
        let fail = |cluster: &mut Cluster| {
            cluster.apply(Kind::Node, Change::Failed("gone".to_owned()));
            let failing = Incomplete::Failing {
                kind: Kind::Node,
                reason: "gone".to_owned(),
            };
            assert_eq!(cluster.kinds.complete(), Err(failing));
        };
        // A list that begins is no answer of the API server; one that is complete is, even without objects.
        fail(&mut cluster);
        cluster.apply(Kind::Node, Change::ListStarted);
        assert!(cluster.kinds.complete().is_err());
        cluster.apply(Kind::Node, Change::ListCompleted);
        assert_eq!(cluster.kinds.complete(), Ok(()));
        // So is every event of the watch.
        fail(&mut cluster);
        cluster.apply(Kind::Node, Change::Applied(object(Kind::Node, "a")));
        assert_eq!(cluster.kinds.complete(), Ok(()));
        fail(&mut cluster);
        let deleted = Change::Deleted(ObjectRef::named(Kind::Node, "a"));
        cluster.apply(Kind::Node, deleted);
        assert_eq!(cluster.kinds.complete(), Ok(()));
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
}
