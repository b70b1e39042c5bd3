//! selvedge
