//! An element asked for in the words in which answers name it.

use compiler::Compilation;
use explain::{element::elements, provenance::Trace, query::Query};

use super::Asked;
use crate::input::World;

/// Answers a question that is the text of an element; `None` where the node has no such element.
pub(super) fn asked(
    question: &str,
    node: &str,
    world: &World,
    compilation: &Compilation,
) -> anyhow::Result<Option<Asked>> {
    let config = super::known(node, compilation)?;
    let elements = elements(&config.content());
    let trace = Trace::new(&world.snapshot, compilation);
    let words = |text: &str| -> Vec<String> {
        let words = text.split_whitespace();
        words.map(str::to_ascii_lowercase).collect()
    };
    let wanted = words(question);
    let is_meant = |text: &str| words(text) == wanted;
    let named = elements.keys().filter(|one| is_meant(&one.to_string()));
    let found: Vec<_> = named
        .map(|one| (one.clone(), trace.claims(node, one)))
        .collect();
    Ok((!found.is_empty()).then(|| Asked {
        thing: Query::Name(question.to_owned()),
        question: question.to_owned(),
        elements,
        found,
    }))
}
