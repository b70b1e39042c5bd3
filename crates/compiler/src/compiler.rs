//! Compiling again and again: after a change only that is computed again which depends on it. The result is always that of a full
//! compile.

mod review;
mod world;
mod worlds;

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
};

use api::tcaas::NetworkConfigRevisionSpec;
use serde_json::Value;

pub use self::review::{Change, Review};
use self::worlds::Worlds;
pub(crate) use self::worlds::compile_once;
use crate::{
    Compilation,
    lower::LowLevelObject,
    platform::state::Absent,
    problem::Problem,
    revision::parts::Whole,
    rollout::Progress,
    snapshot::{Insertion, Key, ObjectRef, Snapshot, VrfPool},
    status::Status,
};

/// All objects as they are now, and what they compile into.
#[derive(Debug)]
pub struct Compiler {
    snapshot: Snapshot,
    vrfs: VrfPool,
    worlds: Worlds,
    /// What objects lack on the platform.
    absent: BTreeMap<ObjectRef, Arc<Vec<Absent>>>,
    /// What is wrong with the objects as they are, where a review has found it and nothing has changed since.
    reviewed: Option<Arc<Vec<Problem>>>,
}

/// An object that was read and is not yet among the others.
#[derive(Debug)]
pub struct Prepared {
    subject: ObjectRef,
    new: Snapshot,
}

impl Prepared {
    /// Reads a document; what it is where it is no object of ours.
    pub fn read(document: &Value) -> Result<Self, Insertion> {
        let mut new = Snapshot::default();
        match new.insert(document) {
            Insertion::Object(subject) => {
                new.forget_times_of_reports();
                Ok(Self { subject, new })
            }
            other @ (Insertion::Foreign(_)
            | Insertion::Misplaced { .. }
            | Insertion::Unknown(_)) => Err(other),
        }
    }

    /// The object that it is.
    pub fn subject(&self) -> &ObjectRef {
        &self.subject
    }
}

/// What differs from what is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    /// Generated objects that are not stored as they must be, by the intent.
    pub objects: BTreeMap<ObjectRef, Arc<Vec<LowLevelObject>>>,
    /// Generated objects that are stored and not made any more, by the intent that they were made from.
    pub stale: BTreeMap<ObjectRef, Arc<Vec<ObjectRef>>>,
    /// Nodes whose stored config is not the one that they must have, each with whether nothing but mirrors differs. A config that must be
    /// approved is not among them.
    pub nodes: BTreeMap<String, bool>,
    /// Nodes whose stored config has another router of the host than they must have. It is written at once.
    pub host_routers: BTreeSet<String>,
    /// Statuses that objects do not have yet.
    pub statuses: BTreeMap<ObjectRef, Arc<Status>>,
}

impl Default for Compiler {
    fn default() -> Self {
        Self::new(Snapshot::default())
    }
}

impl Compiler {
    /// A compiler of these objects.
    pub fn new(snapshot: Snapshot) -> Self {
        let worlds = Worlds::new(&snapshot);
        Self {
            snapshot,
            vrfs: VrfPool::default(),
            worlds,
            absent: BTreeMap::new(),
            reviewed: None,
        }
    }

    /// All objects as they are now.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Whether something has changed since the last compile.
    pub fn has_changed(&self) -> bool {
        !self.worlds.is_current
    }

    /// Adds a document, or puts it in the place of the same object.
    pub fn insert(&mut self, document: &Value) -> Insertion {
        match Prepared::read(document) {
            Ok(prepared) => {
                let subject = prepared.subject.clone();
                self.put(prepared);
                Insertion::Object(subject)
            }
            Err(insertion) => insertion,
        }
    }

    /// Adds an object, or puts it in the place of the same object.
    pub fn put(&mut self, Prepared { subject, mut new }: Prepared) {
        let is_same = self.snapshot.has_same(&new, &subject)
            && self.unreadable(&subject).eq(new.unreadable.iter());
        if !is_same {
            for config in new.node_network_configs.values_mut() {
                self.vrfs.share(&mut config.spec);
            }
            self.reviewed = None;
            self.snapshot.remove(&subject);
            self.snapshot.absorb(new);
            self.worlds.note(&self.snapshot, &subject);
        }
    }

    /// Takes an object out.
    pub fn remove(&mut self, subject: &ObjectRef) {
        if self.snapshot.remove(subject) {
            self.reviewed = None;
            self.worlds.note(&self.snapshot, subject);
        }
    }

    /// Says what objects lack on the platform: what is not named lacks nothing.
    pub fn set_absent(&mut self, absent: BTreeMap<ObjectRef, Arc<Vec<Absent>>>) {
        let before = mem::replace(&mut self.absent, absent);
        for subject in before.keys().chain(self.absent.keys()) {
            let now = self.absent.get(subject);
            if before.get(subject) != now {
                self.reviewed = None;
                self.worlds.note_absent(subject, now);
            }
        }
    }

    fn unreadable(&self, subject: &ObjectRef) -> impl Iterator<Item = &Problem> {
        let unreadable = self.snapshot.unreadable.iter();
        unreadable.filter(move |problem| problem.subject == *subject)
    }

    /// All objects, and what they compile into.
    pub fn compile(&mut self) -> (&Snapshot, &Compilation) {
        self.worlds.compile(&self.snapshot);
        (&self.snapshot, &self.worlds.current().compilation)
    }

    /// Everything that is wrong, sorted by object. Nothing else is brought up to date.
    pub fn problems(&mut self) -> Arc<Vec<Problem>> {
        self.worlds.problems(&self.snapshot)
    }

    /// The statuses that objects have now. Times are left out: the writer of a status knows when it changed.
    pub fn statuses(&mut self) -> &BTreeMap<ObjectRef, Arc<Status>> {
        self.compile();
        let world = self.worlds.current_mut();
        world.update_statuses();
        &world.statuses
    }

    /// What must be written so that the cluster is as it was compiled.
    pub fn writes(&mut self) -> &Writes {
        self.compile();
        let world = self.worlds.current_mut();
        world.update_statuses();
        world.update_progress();
        world.update_writes();
        &world.writes
    }

    /// A stored revision with the content of its parts; nothing if it cannot be read. The one that was asked for last is kept.
    pub fn revision(&mut self, key: &Key) -> Option<Arc<NetworkConfigRevisionSpec>> {
        self.compile();
        let memo = &self.worlds.current().memo;
        memo.unroot_all::<Whole>();
        memo.root::<Whole>(key)
    }

    /// How far each node is with its config.
    pub fn progress(&mut self) -> &BTreeMap<String, Progress> {
        self.compile();
        let world = self.worlds.current_mut();
        world.update_progress();
        &world.progress
    }
}
