//! The snapshot step: from the stores' JSON to what the compiler reads.

use std::{collections::BTreeMap, sync::Arc};

use compiler::{Compiler, Insertion, ObjectRef};
use serde_json::Value;

use crate::watch::{Incomplete, Stores};

/// A compiler that is kept up to date with the stores.
#[derive(Default)]
pub(crate) struct Follower {
    pub(crate) compiler: Compiler,
    /// What was read: an object that is still the same value in the store is not read again.
    seen: BTreeMap<ObjectRef, Arc<Value>>,
}

impl Follower {
    /// Reads what changed, or says why not everything is known. Nothing is taken out or put in before everything is.
    pub(crate) fn update(&mut self, stores: &Stores) -> Result<(), Incomplete> {
        let now = stores.complete()?;
        for subject in self.seen.keys().filter(|one| !now.contains_key(*one)) {
            self.compiler.remove(subject);
        }
        for (subject, object) in &now {
            let seen = self.seen.get(subject);
            if seen.is_some_and(|seen| Arc::ptr_eq(seen, object)) {
                continue;
            }
            let insertion = self.compiler.insert(object);
            if let Insertion::Unknown(message) | Insertion::Foreign(message) = insertion {
                let kind = subject.kind;
                tracing::warn!(%kind, message, "the API server sent an object that cannot be told");
            }
        }
        self.seen = now;
        Ok(())
    }
}
