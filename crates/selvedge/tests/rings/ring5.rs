//! Ring 5
