//! What changes between two compilations: element by element, with who is behind it and whom it touches.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::{
    Compilation, NodeConfig,
    element::{Element, Elements, elements, sources},
    snapshot::ObjectRef,
};

/// What changes between two compilations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// Groups of nodes on which the same changes, each with its changes.
    pub groups: Vec<Group>,
    /// How many nodes there are in the new world.
    pub nodes: usize,
    /// Everybody whose objects are behind a change.
    pub behind: BTreeSet<ObjectRef>,
}

/// Nodes on which the same changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// Their names.
    pub nodes: Vec<String>,
    /// What changes on each of them.
    pub changes: Vec<Change>,
}

/// One change of one element.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// What happens to it.
    pub kind: ChangeKind,
    /// The element, in words.
    pub element: String,
    /// Whose objects are behind it.
    pub behind: BTreeSet<ObjectRef>,
}

/// What happens to an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It comes.
    Added,
    /// It stays and is different.
    Changed,
    /// It goes.
    Removed,
}

impl Plan {
    /// Whether nothing changes on any node.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// How many nodes are touched.
    pub fn touched(&self) -> usize {
        self.groups.iter().map(|group| group.nodes.len()).sum()
    }

    /// How many changes of a kind there are, over all nodes.
    pub fn count(&self, kind: ChangeKind) -> usize {
        let of_group = |group: &Group| {
            let changes = group.changes.iter().filter(|change| change.kind == kind);
            changes.count() * group.nodes.len()
        };
        self.groups.iter().map(of_group).sum()
    }
}

/// Compares two compilations.
pub fn plan(before: &Compilation, after: &Compilation) -> Plan {
    let names: BTreeSet<&String> = before.nodes.keys().chain(after.nodes.keys()).collect();
    let mut groups: BTreeMap<Vec<Change>, Vec<String>> = BTreeMap::new();
    for name in names {
        let old = before.nodes.get(name);
        let new = after.nodes.get(name);
        if old == new {
            continue;
        }
        let changes = changes((before, old), (after, new));
        if !changes.is_empty() {
            groups.entry(changes).or_default().push(name.clone());
        }
    }
    let groups: Vec<Group> = groups
        .into_iter()
        .map(|(changes, nodes)| Group { nodes, changes })
        .collect();
    let changes = groups.iter().flat_map(|group| &group.changes);
    Plan {
        behind: changes
            .flat_map(|change| change.behind.iter().cloned())
            .collect(),
        nodes: after.nodes.len(),
        groups,
    }
}

type Side<'a> = (&'a Compilation, Option<&'a NodeConfig>);

fn changes((before, old): Side<'_>, (after, new): Side<'_>) -> Vec<Change> {
    let of = |config: Option<&NodeConfig>| config.map(elements).unwrap_or_default();
    let (was, becomes): (Elements, Elements) = (of(old), of(new));
    let all: BTreeSet<&Element> = was.keys().chain(becomes.keys()).collect();
    let mut changes = Vec::new();
    for element in all {
        let kind = match (was.get(element), becomes.get(element)) {
            (Some(one), Some(other)) if one == other => continue,
            (Some(_), Some(_)) => ChangeKind::Changed,
            (None, _) => ChangeKind::Added,
            (Some(_), None) => ChangeKind::Removed,
        };
        let mut behind = BTreeSet::new();
        for (compilation, config) in [(before, old), (after, new)] {
            if let Some(config) = config {
                behind.extend(sources(compilation, config, element));
            }
        }
        changes.push(Change {
            kind,
            element: element.to_string(),
            behind,
        });
    }
    changes
}
