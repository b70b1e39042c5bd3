//! The snapshot step: from the stores' JSON to what the compiler reads.

use compiler::{Insertion, Snapshot};

use crate::watch::{Incomplete, Stores};

/// Takes a snapshot of everything, or says why there is none.
pub(crate) fn take(stores: &Stores) -> Result<Snapshot, Incomplete> {
    let mut snapshot = Snapshot::default();
    for (kind, object) in stores.complete()? {
        if let Insertion::Unknown(message) | Insertion::Foreign(message) = snapshot.insert(&object)
        {
            tracing::warn!(%kind, message, "the API server sent an object that cannot be told");
        }
    }
    Ok(snapshot)
}
