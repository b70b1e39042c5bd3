//! What must be written so that the cluster is as it was compiled: only what differs from what is stored.

use std::sync::Arc;

use crate::{
    lower::{
        LowLevelObject,
        low_level::{self, StoredByOwner},
        merge,
    },
    memo::Query,
    snapshot::ObjectRef,
    status::{Status, StatusOf},
    view::View,
};

/// The generated objects of an intent that are not stored as they must be.
pub(crate) struct UnstoredOf;
impl Query for UnstoredOf {
    type Key = ObjectRef;
    type Value = Arc<Vec<LowLevelObject>>;
    fn compute(view: &View<'_>, subject: &ObjectRef) -> Arc<Vec<LowLevelObject>> {
        let merged = view.get::<merge::Merged>(subject);
        let unstored = merged.objects.iter().filter(|object| {
            let stored = ObjectRef::named(object.kind(), object.name());
            let owner = view.meta_of(&stored).map(|meta| meta.owner.clone());
            // What a person wrote over one that runs is not overwritten.
            let is_written = owner == Some(None);
            let is_own = owner.flatten().as_ref() == Some(subject);
            !is_written && (!is_own || !low_level::is_stored(view, object))
        });
        Arc::new(unstored.cloned().collect())
    }
}

/// The stored objects that were generated from an intent, and that no intent generates any more.
pub(crate) struct StaleOf;
impl Query for StaleOf {
    type Key = Option<ObjectRef>;
    type Value = Arc<Vec<ObjectRef>>;
    fn compute(view: &View<'_>, owner: &Option<ObjectRef>) -> Arc<Vec<ObjectRef>> {
        if owner.is_none() {
            return Arc::default();
        }
        let stored = view.who::<StoredByOwner>(owner);
        let stale = stored.iter().filter(|stored| {
            let generated = merge::generated(view, stored.kind, &stored.key.name);
            generated.is_none()
        });
        Arc::new(stale.cloned().collect())
    }
}

/// The status that an object must have, where it has another.
pub(crate) struct StatusToWrite;
impl Query for StatusToWrite {
    type Key = ObjectRef;
    type Value = Option<Arc<Status>>;
    fn compute(view: &View<'_>, subject: &ObjectRef) -> Option<Arc<Status>> {
        let status = view.get::<StatusOf>(subject)?;
        (!status.is_stored(view, &subject.key)).then_some(status)
    }
}
