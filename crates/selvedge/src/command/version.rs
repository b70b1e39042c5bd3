//! `selvedge version`

use crate::output::{self, Verdict};

pub(super) fn run() -> Verdict {
    let frr: Vec<String> = frr::FrrVersion::SUPPORTED
        .iter()
        .map(ToString::to_string)
        .collect();
    output::text(&format!(
        "selvedge {}\nnode contract {}\nFRR {}\n",
        env!("CARGO_PKG_VERSION"),
        api::tcaas::node_network_config::CONTRACT_VERSION,
        frr.join(", "),
    ));
    Verdict::Fine
}
