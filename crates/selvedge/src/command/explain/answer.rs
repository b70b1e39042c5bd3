//! Answers for several nodes: what they have in common is said once.

use std::collections::{BTreeMap, BTreeSet};

use compiler::ObjectRef;
use explain::{element::Element, provenance::Claim};
use serde_json::Value;

use super::Asked;
use crate::command::groups::in_common;

/// What nodes have of what a question is about.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) nodes: Vec<String>,
    pub(crate) parts: Vec<Part>,
}

/// An element as several nodes have it, with what one of them has.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// The element without what each node has for itself.
    pub(crate) element: Element,
    /// The same of its value.
    pub(crate) common: Value,
    /// The elements of one node, each with its value.
    pub(crate) exact: Vec<(Element, Value)>,
    /// The claims for it.
    pub(crate) claims: Vec<Claim>,
    /// The objects that request it on some of the nodes only, with the number of nodes.
    pub(crate) nodes: BTreeMap<ObjectRef, usize>,
}

impl Part {
    /// The fields of which each node has its own value.
    pub(crate) fn own_fields(&self) -> Vec<&'static str> {
        let fields = self.element.own_fields().iter().copied();
        let is_there = |field: &&str| self.exact.iter().any(|(_, value)| !value[*field].is_null());
        fields.filter(is_there).collect()
    }

    fn is_like(&self, other: &Self) -> bool {
        self.element == other.element && self.common == other.common && self.claims == other.claims
    }
}

/// Adds the answer for nodes of which one was asked: to the same answer, where there is one.
pub(crate) fn add(answers: &mut Vec<Answer>, nodes: Vec<String>, asked: &Asked) {
    let mut parts: Vec<Part> = Vec::new();
    for (element, claims) in &asked.found {
        let value = asked.elements.get(element).cloned().unwrap_or_default();
        let general = element.of_any_node();
        if let Some(known) = parts.iter_mut().find(|known| known.element == general) {
            known.exact.push((element.clone(), value));
            continue;
        }
        parts.push(Part {
            common: in_common(element, &value),
            element: general,
            exact: vec![(element.clone(), value)],
            claims: claims.clone(),
            nodes: BTreeMap::new(),
        });
    }
    if parts.is_empty() {
        return;
    }
    let is_same = |known: &&mut Answer| {
        let mut pairs = known.parts.iter().zip(&parts);
        known.parts.len() == parts.len() && pairs.all(|(one, other)| one.is_like(other))
    };
    match answers.iter_mut().find(is_same) {
        Some(known) => known.nodes.extend(nodes),
        None => answers.push(Answer { nodes, parts }),
    }
}

/// What is the same on some nodes once, with these nodes: what the most of them have comes first. Where the requesters of an element are
/// not the same on all of them, it has all.
pub(crate) fn sections(answers: &[Answer]) -> Vec<(Vec<String>, Vec<Part>)> {
    let mut merged: BTreeMap<(&Element, String), (Vec<&String>, Part)> = BTreeMap::new();
    for Answer { nodes, parts } in answers {
        for part in parts {
            let key = (&part.element, part.common.to_string());
            let (on, known) = merged.entry(key).or_insert_with(|| {
                let part = Part {
                    claims: Vec::new(),
                    ..part.clone()
                };
                (Vec::new(), part)
            });
            on.extend(nodes);
            known.claims.extend(part.claims.iter().cloned());
            let requesters: BTreeSet<&ObjectRef> =
                part.claims.iter().map(|claim| &claim.by).collect();
            for requester in requesters {
                *known.nodes.entry(requester.clone()).or_default() += nodes.len();
            }
        }
    }
    let mut sections: BTreeMap<Vec<&String>, Vec<Part>> = BTreeMap::new();
    for (mut on, mut part) in merged.into_values() {
        on.sort();
        part.claims.sort();
        part.claims.dedup();
        // Those that request it on every node need no number.
        part.nodes.retain(|_, number| *number < on.len());
        sections.entry(on).or_default().push(part);
    }
    let sections = sections.into_iter();
    let mut sections: Vec<(Vec<String>, Vec<Part>)> = sections
        .map(|(nodes, parts)| (nodes.into_iter().cloned().collect(), parts))
        .collect();
    sections.sort_by_key(|(nodes, _)| std::cmp::Reverse(nodes.len()));
    sections
}
