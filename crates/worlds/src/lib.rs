//! Random worlds for laws under proptest: sets of Kubernetes objects as JSON documents, as users, controllers and nodes write them.
//!
//! For tests only. It knows none of the other crates, so that tests of each of them can use it.
#![expect(
    clippy::indexing_slicing,
    reason = "documents are built here: a missing field is a mistake of the test, which then panics"
)]

pub mod benchmark;
mod edit;
mod everything;
mod hand_written;
pub mod mirrors;
mod overlay;
pub mod racks;
mod tenant;

use proptest::prelude::*;
use serde_json::{Value, json};

pub use self::{
    edit::{Edit, edit, edited},
    everything::{everything, varied},
    hand_written::with_hand_written,
    overlay::{odd_overlays, overlays},
    tenant::{Tenant, objects, tenant, world},
};

/// A document of this kind.
#[expect(
    clippy::needless_pass_by_value,
    reason = "values are made for the call"
)]
pub fn object(api: &str, kind: &str, metadata: Value, spec: Value) -> Value {
    json!({"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec})
}

/// API group and version of intents and low-level objects.
pub const TCAAS: &str = "network.t-caas.telekom.com/v1alpha1";

/// The proptest configuration of a law: the number of cases it is tried on, unless `PROPTEST_CASES` gives another number.
pub fn laws(cases: u32) -> ProptestConfig {
    let mut config = ProptestConfig::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    config.failure_persistence = None;
    // Worlds that say nothing about a law are left out, however many are tried.
    config.max_global_rejects = config.cases.max(config.max_global_rejects);
    config
}
