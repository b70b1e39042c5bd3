//! What two fields of one object can get wrong together.

/// Fields of one object that cannot stand together, or not alone.
///
/// The API server refuses these too; whoever reads an object from a file, or does not trust admission, finds them here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Contradiction {
    /// Two fields that say the same thing, or opposite things.
    #[error("{0} and {1} exclude each other: give one of them")]
    Both(&'static str, &'static str),
    /// Neither of two fields, one of which is needed.
    #[error("neither {0} nor {1} is given: give one of them")]
    Neither(&'static str, &'static str),
    /// A field that means nothing without the other.
    #[error("{0} needs {1}")]
    Needs(&'static str, &'static str),
}
