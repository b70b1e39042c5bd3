//! Typed configuration → statements and blocks, in the order in which FRR prints them.

mod bfd;
mod bgp;
mod filter;
mod log;
mod vrf;

pub(crate) use self::{
    bfd::bfd,
    bgp::{ALLOWAS_IN_DEFAULT, declared_first, enter_instance, instance},
    filter::{List, community_lists, prefix_lists, route_map_entries},
    log::log,
    vrf::vrf,
};
use crate::{config::FrrConfig, text::Statement, version::Features};

/// Next-hop tracking: a line only where the version's own default differs.
pub(crate) fn next_hop_tracking(config: &FrrConfig, features: Features) -> Vec<Statement> {
    if config.resolve_via_default == features.resolves_via_default {
        return Vec::new();
    }
    ["ip", "ipv6"]
        .into_iter()
        .map(|ip| {
            let line = format!("{ip} nht resolve-via-default");
            if config.resolve_via_default {
                Statement::new(line)
            } else {
                Statement::new(format!("no {line}")).undo(line)
            }
        })
        .collect()
}
