//! frr
