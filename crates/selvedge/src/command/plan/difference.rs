//! What of an element is different, part by part.

use std::collections::{BTreeMap, BTreeSet};

use api::value::HostCidr;
use explain::{element::Element, plan::Change};
use serde_json::Value;

use super::story::{and_more, listed};
use crate::output::counted;

/// How many parts of one element are shown before the rest is only counted.
const PARTS: usize = 3;
/// How many nodes are shown as examples of what each node has for itself.
const EXAMPLES: usize = 2;
/// How many characters of a list or structure are shown.
const VALUE: usize = 48;
/// The parts that are shown before all others, since the most depends on them.
const FIRST: [&str; 4] = ["vtep", "asn", "routerId", "nics"];

/// Parts with names that only programs know, in words.
const WORDS: [(&str, &str); 5] = [
    ("remoteAs asn", "remote AS"),
    ("remoteAs type", "remote AS"),
    ("remoteAs", "remote AS"),
    ("remoteAsn", "remote AS"),
    ("localAs", "local AS"),
];

/// A part of an element, and how it changes.
struct Part {
    path: String,
    change: String,
}

/// A change in words.
pub(super) fn of_one(change: &Change) -> String {
    let parts = parts(change).into_iter().map(Part::text);
    with_parts(&change.text, parts.collect())
}

/// A change that each node has for itself, in words: what is the same on all of them once, the rest by example.
pub(super) fn of_each_node(change: &Change, nodes: &[(&str, &Change)]) -> String {
    let text = of_one(change);
    if nodes.iter().all(|(_, other)| of_one(other) == text) {
        return text;
    }
    let mut by_path: BTreeMap<(usize, String), Vec<(&str, String)>> = BTreeMap::new();
    for (node, change) in nodes {
        for part in parts(change) {
            let of_path = by_path.entry((part.rank(), part.path)).or_default();
            of_path.push((node, part.change));
        }
    }
    if by_path.is_empty() {
        let text = match &change.element {
            Element::HostAddress { device, .. } => {
                let network = change.element.of_any_node();
                let addresses = nodes.iter().map(|(_, change)| &change.element);
                let addresses: BTreeSet<HostCidr> = addresses.filter_map(address).collect();
                match (addresses.first(), addresses.last(), network) {
                    (Some(first), Some(last), Element::HostAddress { address, .. }) => format!(
                        "{device} addresses {}–{} of {address}",
                        first.addr(),
                        last.addr()
                    ),
                    _ => change.text.clone(),
                }
            }
            _ => change.text.clone(),
        };
        return format!("{text}, one per node");
    }
    let parts = by_path.into_iter().map(|((_, path), changes)| {
        let change = of_nodes(&changes, nodes.len());
        Part { path, change }.text()
    });
    with_parts(&change.text, parts.collect())
}

/// The address that an element is about.
fn address(element: &Element) -> Option<HostCidr> {
    match element {
        Element::HostAddress { address, .. } => address.parse().ok(),
        _ => None,
    }
}

/// One field of an object that the user has changed, in words.
pub(super) fn of_field(path: &str, was: &Value, becomes: &Value) -> String {
    let path = path.strip_prefix("spec.").unwrap_or(path);
    let change = match (was, becomes) {
        (Value::Array(one), Value::Array(other)) => of_lists(one, other),
        _ => format!("{} → {}", short(was), short(becomes)),
    };
    format!("{path}: {change}")
}

/// How one part changes on nodes.
fn of_nodes(changes: &[(&str, String)], all: usize) -> String {
    let first = changes.first().map(|(_, change)| change.as_str());
    let is_same =
        changes.len() == all && changes.iter().all(|(_, one)| Some(one.as_str()) == first);
    if is_same {
        return first.unwrap_or_default().to_owned();
    }
    let shown = changes.iter().take(EXAMPLES);
    let shown: Vec<String> = shown
        .map(|(node, change)| format!("{change} on {node}"))
        .collect();
    let more = match changes.len().saturating_sub(EXAMPLES) {
        0 => String::new(),
        more => format!(" and {}", counted(more, "more node")),
    };
    format!("{}{more}", shown.join(", "))
}

fn with_parts(text: &str, mut parts: Vec<String>) -> String {
    if parts.is_empty() {
        return text.to_owned();
    }
    let more = and_more(parts.len().saturating_sub(PARTS));
    parts.truncate(PARTS);
    format!("{text}: {}{more}", parts.join(", "))
}

impl Part {
    fn rank(&self) -> usize {
        let place = FIRST.iter().position(|first| *first == self.path);
        place.unwrap_or(FIRST.len())
    }

    fn text(self) -> String {
        let known = WORDS.iter().find(|(path, _)| *path == self.path);
        let path = known.map_or(self.path.as_str(), |(_, words)| words);
        format!("{path} {}", self.change).trim_start().to_owned()
    }
}

/// What of an element is different, the parts first on which the most depends.
fn parts(change: &Change) -> Vec<Part> {
    let mut parts = Vec::new();
    if let (Some(was), Some(becomes)) = (&change.was, &change.becomes) {
        differences("", was, becomes, &mut parts);
    }
    parts.sort_by_key(Part::rank);
    parts
}

fn differences(path: &str, was: &Value, becomes: &Value, parts: &mut Vec<Part>) {
    if was == becomes {
        return;
    }
    if let (Value::Object(one), Value::Object(other)) = (was, becomes) {
        let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
        for name in names {
            let path = format!("{path} {name}");
            let of = |fields: &serde_json::Map<String, Value>| {
                fields.get(name).cloned().unwrap_or_default()
            };
            differences(&path, &of(one), &of(other), parts);
        }
        return;
    }
    let change = match (was, becomes) {
        (Value::Array(one), Value::Array(other)) => of_lists(one, other),
        _ => format!("{} → {}", short(was), short(becomes)),
    };
    parts.push(Part {
        path: path.trim_start().to_owned(),
        change,
    });
}

/// What one list has and the other has not.
fn of_lists(was: &[Value], becomes: &[Value]) -> String {
    let missing = |list: &[Value], from: &[Value]| {
        let missing = list.iter().filter(|item| !from.contains(item));
        missing.map(short).collect::<Vec<String>>()
    };
    let gone = missing(was, becomes).into_iter();
    let new = missing(becomes, was).into_iter();
    let gone = gone.map(|item| format!("-{item}"));
    let changes: Vec<String> = gone.chain(new.map(|item| format!("+{item}"))).collect();
    if changes.is_empty() {
        return "in another order".to_owned();
    }
    listed(changes.into_iter(), PARTS)
}

/// A value in a few words.
fn short(value: &Value) -> String {
    let text = match value {
        Value::Null => return "none".to_owned(),
        Value::String(text) => return text.clone(),
        Value::Bool(_) | Value::Number(_) => return value.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(short).collect();
            items.join(", ")
        }
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields: Vec<String> = fields
                .map(|(name, value)| format!("{name} {}", short(value)).trim_end().to_owned())
                .collect();
            fields.join(", ")
        }
    };
    match text.char_indices().nth(VALUE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
