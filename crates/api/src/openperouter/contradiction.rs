//! Fields of one object that contradict each other.

/// Fields of one object that exclude or require each other.
///
/// The API server rejects these as well. The compiler checks them again, because objects can come from files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Contradiction {
    /// Two fields that exclude each other.
    #[error("{0} and {1} exclude each other: give one of them")]
    Both(&'static str, &'static str),
    /// Neither of two fields is set, one of which is required.
    #[error("neither {0} nor {1} is given: give one of them")]
    Neither(&'static str, &'static str),
    /// A field that requires the other one.
    #[error("{0} needs {1}")]
    Needs(&'static str, &'static str),
}
