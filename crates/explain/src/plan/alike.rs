//! Groups of nodes that differ only in the objects behind their changes: to a reader they are one.

use std::collections::BTreeMap;

use super::{Cause, Change, Group};

/// The groups, with those together on which the same changes. Each change then names the objects behind it on any of the nodes.
pub(super) fn merged(groups: impl Iterator<Item = Group>) -> Vec<Group> {
    let mut merged: BTreeMap<String, Group> = BTreeMap::new();
    for group in groups {
        match merged.entry(key(&group)) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(group);
            }
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut().join(group),
        }
    }
    merged.into_values().collect()
}

/// What changes on each of the nodes of a group, without what is behind it.
fn key(group: &Group) -> String {
    let own = group.own.values().next().into_iter().flatten();
    let own = own.map(Change::of_any_node);
    let shared = group.changes.iter().map(Change::of_any_node);
    let changes = shared.chain(own).map(|change| Change {
        behind: Vec::new(),
        ..change
    });
    let changes: Vec<Change> = changes.collect();
    serde_json::to_string(&changes)
        .unwrap_or_else(|error| unreachable!("a change is JSON: {error}"))
}

impl Group {
    fn join(&mut self, other: Self) {
        for (change, same) in self.changes.iter_mut().zip(other.changes) {
            for cause in same.behind {
                add(&mut change.behind, cause);
            }
        }
        self.nodes.extend(other.nodes);
        self.nodes.sort();
        self.own.extend(other.own);
    }
}

/// Adds an object that is behind a change; what is known of it already stays.
pub(super) fn add(behind: &mut Vec<Cause>, cause: Cause) {
    match behind.iter_mut().find(|known| known.by == cause.by) {
        Some(known) => known.fields.extend(cause.fields),
        None => behind.push(cause),
    }
}
