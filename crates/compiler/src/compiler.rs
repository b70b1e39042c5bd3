//! Compiling again and again: after a change only that is made anew which the change touches. The result is always that of a full
//! compile.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    Compilation,
    changes::Changes,
    last_good, node,
    problem::Problem,
    snapshot::{Insertion, Kind, ObjectRef, Snapshot},
};

/// All objects as they are now, and what they were compiled into last.
#[derive(Debug, Default)]
pub struct Compiler {
    snapshot: Snapshot,
    pub(crate) changed: BTreeSet<ObjectRef>,
    /// Whether nodes answered to their configs, which otherwise are the same.
    pub(crate) has_answers: bool,
    last: Option<Last>,
}

#[derive(Debug, Default)]
struct Last {
    compilation: Compilation,
    memo: node::Memo,
    /// The same with broken objects as they were before they broke, where there are any.
    restored: Option<Compilation>,
}

impl Compiler {
    /// All objects as they are now.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Adds a document, or puts it in the place of the same object.
    pub fn insert(&mut self, document: &Value) -> Insertion {
        let mut new = Snapshot::default();
        let insertion = new.insert(document);
        if let Insertion::Object(subject) = &insertion {
            let is_same = self.snapshot.has_same(&new, subject)
                && self.unreadable(subject).eq(new.unreadable.iter());
            if is_same {
                return insertion;
            }
            if self.is_answer(&new, subject) {
                self.has_answers = true;
            } else {
                self.remove(subject);
                self.note(subject, !new.unreadable.is_empty());
            }
            self.snapshot.absorb(new);
        }
        insertion
    }

    /// Whether a node says how far it is with its config, and nothing else changed. Every node does so after every change, and all that
    /// is made of it is made each time.
    fn is_answer(&self, new: &Snapshot, subject: &ObjectRef) -> bool {
        subject.kind == Kind::NodeNetworkConfig
            && self.snapshot.has_same_but_status(new, subject)
            && new.unreadable.is_empty()
            && self.unreadable(subject).next().is_none()
    }

    /// Takes an object out.
    pub fn remove(&mut self, subject: &ObjectRef) {
        let was_unreadable = self.unreadable(subject).next().is_some();
        if self.snapshot.remove(subject) || was_unreadable {
            self.note(subject, was_unreadable);
        }
    }

    fn unreadable(&self, subject: &ObjectRef) -> impl Iterator<Item = &Problem> {
        let unreadable = self.snapshot.unreadable.iter();
        unreadable.filter(move |problem| problem.subject == *subject)
    }

    fn note(&mut self, subject: &ObjectRef, is_unreadable: bool) {
        if subject.kind == Kind::Settings || is_unreadable {
            self.last = None;
        }
        self.changed.insert(subject.clone());
    }

    /// All objects, and what they compile into.
    pub fn compile(&mut self) -> (&Snapshot, &Compilation) {
        let last = match self.last.take() {
            Some(last) if self.changed.is_empty() && !self.has_answers => last,
            Some(last) => last.update(&self.snapshot, Changes::These(&self.changed)),
            None => Last::default().update(&self.snapshot, Changes::All),
        };
        self.changed.clear();
        self.has_answers = false;
        let Last {
            compilation,
            restored,
            ..
        } = self.last.insert(last);
        (&self.snapshot, restored.as_ref().unwrap_or(compilation))
    }
}

impl Last {
    fn update(mut self, snapshot: &Snapshot, changes: Changes<'_>) -> Self {
        self.compilation.update(snapshot, &mut self.memo, changes);
        self.restored = last_good::restore(snapshot, &self.compilation);
        self
    }
}
