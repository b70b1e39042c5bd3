//! Parts of messages that depend on optional values.

use super::OlderFrr;
use crate::snapshot::ObjectRef;

/// That none of so many nodes has something.
pub(super) fn none_has(nodes: usize) -> String {
    match nodes {
        1 => "the selected node does not have".to_owned(),
        nodes => format!("none of the {nodes} selected nodes has"),
    }
}

pub(super) fn free_addresses(free: u32) -> String {
    match free {
        0 => "no free address".to_owned(),
        1 => "1 free address".to_owned(),
        free => format!("{free} free addresses"),
    }
}

pub(super) fn and_others(others: usize) -> String {
    match others {
        0 => String::new(),
        others => format!(" (nor have {others} more)"),
    }
}

pub(super) fn after_vxlan(device_mtu: u32, most: u32) -> String {
    match device_mtu.saturating_sub(most) {
        0 => String::new(),
        added => format!(" and carries {most}: VXLAN adds {added} bytes"),
    }
}

pub(super) fn and_more(others: usize) -> String {
    match others {
        0 => String::new(),
        others => format!(" and {others} more"),
    }
}

pub(super) fn that_can_be_used(left_out: Option<&ObjectRef>) -> String {
    left_out
        .map(|left_out| format!(" that can be used: {left_out} cannot"))
        .unwrap_or_default()
}

pub(super) fn table(vrf: Option<&String>) -> String {
    vrf.map_or_else(|| "the host".to_owned(), |vrf| format!("VRF {vrf:?}"))
}

pub(super) fn on(node: Option<&String>) -> String {
    node.map(|node| format!(" on node {node:?}"))
        .unwrap_or_default()
}

/// Which FRR does not support a value.
pub(super) fn unsupported(older: Option<&OlderFrr>) -> String {
    older.map_or_else(
        || "no version of FRR supports it".to_owned(),
        |older| {
            let OlderFrr { node, version, .. } = older;
            format!("node {node:?} runs FRR {version}, which does not support it")
        },
    )
}

pub(super) fn inside(is_inside: bool) -> &'static str {
    if is_inside { "is in" } else { "overlaps" }
}
