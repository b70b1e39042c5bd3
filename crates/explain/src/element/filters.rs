//! The rules of the filters of a VRF as elements.

use api::tcaas::node_network_config::{Action, ActionType, Filter, FilterItem, Vrf};
use serde_json::Value;

use super::{Element, json};

/// What a VRF announces and takes over, rule by rule, each filter in its order.
pub(crate) fn filtered(vrf: &Vrf) -> Vec<(Element, Value)> {
    let name = vrf.devices.vrf.to_string();
    let mut rules = Vec::new();
    for item in items(vrf.evpn_export_filter.as_ref()) {
        let (vrf, prefix) = (name.clone(), prefix(item));
        let element = if item.action.kind == ActionType::Reject {
            Element::DeniedExport { vrf, prefix }
        } else {
            Element::Export { vrf, prefix }
        };
        rules.push((element, json(&item.action)));
    }
    for import in &vrf.vrf_imports {
        let element = |prefix, action: &Action| {
            let (vrf, from) = (name.clone(), import.from_vrf.clone());
            if action.kind == ActionType::Reject {
                Element::DeniedImport { vrf, from, prefix }
            } else {
                Element::Import { vrf, from, prefix }
            }
        };
        for item in items(Some(&import.filter)) {
            let element = element(prefix(item), &item.action);
            rules.push((element, json(&item.action)));
        }
        let rest = &import.filter.default_action;
        if rest.kind == ActionType::Accept {
            rules.push((element(EVERYTHING.to_owned(), rest), json(rest)));
        }
    }
    rules
}

/// The routes that a rule without a prefix matches.
pub(crate) const EVERYTHING: &str = "everything";

fn items(filter: Option<&Filter>) -> impl Iterator<Item = &FilterItem> {
    filter.into_iter().flat_map(|filter| &filter.items)
}

fn prefix(item: &FilterItem) -> String {
    let Some(matcher) = &item.matcher.prefix else {
        return EVERYTHING.to_owned();
    };
    range(&matcher.prefix, matcher.ge, matcher.le)
}

/// A prefix, and the lengths below it where there are some.
pub(crate) fn range(prefix: &impl ToString, ge: Option<u8>, le: Option<u8>) -> String {
    let bound = |word: &str, length: Option<u8>| {
        let text = length.map(|length| format!(" {word} {length}"));
        text.unwrap_or_default()
    };
    format!(
        "{}{}{}",
        prefix.to_string(),
        bound("ge", ge),
        bound("le", le)
    )
}
