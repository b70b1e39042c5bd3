//! What changed since the last compile.

use std::collections::BTreeSet;

use crate::snapshot::{Key, Kind, ObjectRef};

/// What is new, changed or gone.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Changes<'a> {
    /// Everything: there was no compile before.
    All,
    /// These objects. Settings, and what cannot be read, are as they were.
    These(&'a BTreeSet<ObjectRef>),
}

impl<'a> Changes<'a> {
    /// Whether everything is new.
    pub(crate) fn is_all(self) -> bool {
        matches!(self, Self::All)
    }

    /// Whether an object of this kind may have changed.
    pub(crate) fn touch(self, kind: Kind) -> bool {
        self.is_all() || self.of(kind).next().is_some()
    }

    /// Whether an object of one of these kinds may have changed.
    pub(crate) fn touch_any(self, kinds: &[Kind]) -> bool {
        kinds.iter().any(|kind| self.touch(*kind))
    }

    /// The objects of a kind that are known to have changed; none where everything is new.
    pub(crate) fn of(self, kind: Kind) -> impl Iterator<Item = &'a Key> {
        let first = ObjectRef::named(kind, String::new());
        let these = match self {
            Self::All => None,
            Self::These(these) => Some(these.range(first..)),
        };
        let of_kind = these.into_iter().flatten();
        of_kind
            .take_while(move |one| one.kind == kind)
            .map(|one| &one.key)
    }
}
