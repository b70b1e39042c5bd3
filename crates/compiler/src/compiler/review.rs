//! The effects of one change before it is made: for admission webhooks and reviews.

use std::{collections::BTreeSet, sync::Arc};

use super::{Compiler, Prepared};
use crate::{
    problem::Problem,
    snapshot::{ObjectRef, Snapshot},
};

/// A change of one object.
#[derive(Debug)]
pub enum Change {
    /// It is created, or has another content.
    Put(Box<Prepared>),
    /// It is deleted.
    Delete(ObjectRef),
}

impl Change {
    /// The object.
    pub fn subject(&self) -> &ObjectRef {
        match self {
            Self::Put(prepared) => prepared.subject(),
            Self::Delete(subject) => subject,
        }
    }
}

/// The effects of one change. A problem that exists without the change is not one of them, and is no reason to reject it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Review {
    /// What would be wrong with the object itself, also where it was so before: its author is the one who can correct it.
    pub own: Vec<Problem>,
    /// What would be wrong with others that is not now.
    pub others: Vec<Problem>,
}

impl Compiler {
    /// What a change would bring. The objects are the same afterwards, and so is everything that they compile into.
    pub fn review(&mut self, change: Change) -> Review {
        // One review after the other: what is wrong without the change is known.
        let before = self.reviewed.take();
        let before = before.unwrap_or_else(|| self.worlds.problems(&self.snapshot));
        let subject = change.subject().clone();
        let stored = Prepared {
            new: self.snapshot.only(&subject),
            subject: subject.clone(),
        };
        match change {
            Change::Put(prepared) => self.put(*prepared),
            Change::Delete(subject) => self.remove(&subject),
        }
        let after = self.worlds.problems(&self.snapshot);
        if stored.new == Snapshot::default() {
            self.remove(&subject);
        } else {
            self.put(stored);
        }
        self.reviewed = Some(Arc::clone(&before));
        if Arc::ptr_eq(&before, &after) {
            // Nothing has changed but, perhaps, what is not wrong.
            let own = before.iter().filter(|problem| problem.subject == subject);
            return Review {
                own: own.cloned().collect(),
                others: Vec::new(),
            };
        }
        let known: BTreeSet<&Problem> = before.iter().collect();
        let (own, others): (Vec<&Problem>, Vec<&Problem>) =
            after.iter().partition(|problem| problem.subject == subject);
        let others = others
            .into_iter()
            .filter(|problem| !known.contains(problem));
        Review {
            own: own.into_iter().cloned().collect(),
            others: others.cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use worlds::benchmark::overlay;

    use super::*;
    use crate::node::{ConfigOf, ForwardingOf};

    /// R22 of OpenPERouter's kinds: no config of a node, which has an address of each session, is made to know what is wrong.
    #[test]
    fn a_review_computes_nothing_for_each_node_and_session() {
        let mut snapshot = Snapshot::default();
        for document in overlay::sessions(300, 10) {
            snapshot.insert(&document);
        }
        let mut compiler = Compiler::new(snapshot);
        assert_eq!(*compiler.problems(), []);
        let new = Prepared::read(&overlay::l3vni("new", 11)).expect("an object of ours");
        let review = compiler.review(Change::Put(Box::new(new)));
        assert_eq!(review, Review::default());
        let taken = Prepared::read(&overlay::l3vni("taken", 1)).expect("an object of ours");
        let review = compiler.review(Change::Put(Box::new(taken)));
        assert!(!review.own.is_empty());
        let memo = &compiler.worlds.current().memo;
        assert_eq!(memo.count::<ForwardingOf>() + memo.count::<ConfigOf>(), 0);
    }
}
