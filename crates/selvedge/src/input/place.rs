//! Where the fields of a document are: a tree of its keys and items with their lines and columns. It is made only for documents that
//! something is said about.

use std::collections::BTreeMap;

use serde_saphyr::granit_parser::{Event, Parser, ScanError, Span};

/// A line and a column, both from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Place {
    fn of(span: &Span) -> Self {
        Self {
            line: span.start.line(),
            column: span.start.col() + 1,
        }
    }
}

/// What is in a document.
#[derive(Debug)]
pub(super) struct Tree {
    place: Place,
    children: Children,
}

#[derive(Debug)]
enum Children {
    /// A single value.
    None,
    /// Entries in the order of the text, each with the place of its key.
    Map(Vec<(String, Place, Tree)>),
    Items(Vec<Tree>),
}

/// A key that stands twice in one map: the key and both places.
pub(super) struct Twice {
    pub(super) key: String,
    pub(super) first: Place,
    pub(super) second: Place,
}

impl Tree {
    /// The tree of one document; nothing where it is no YAML.
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut events = Parser::new_from_str(text);
        let first = events.find_map(|event| {
            let (event, span) = event.ok()?;
            event.is_node().then_some((event, span))
        });
        let (event, span) = first?;
        node(&event, &span, &mut events, 0)
    }

    /// The place of a field, such as `spec.neighbors[0].asn`: its key, or its first character for an item of a list. Of a field that is
    /// not there, the nearest around it.
    pub(super) fn find(&self, path: &[Step<'_>]) -> Place {
        let (mut tree, mut place) = (self, self.place);
        for step in path {
            let found = match (&tree.children, step) {
                (Children::Map(entries), Step::Key(key)) => {
                    let mut entries = entries.iter();
                    let found = entries.find(|(known, ..)| known == key);
                    found.map(|(_, place, below)| (below, *place))
                }
                (Children::Items(items), Step::Item(number)) => {
                    items.get(*number).map(|item| (item, item.place))
                }
                _ => None,
            };
            let Some((below, at)) = found else {
                return place;
            };
            (tree, place) = (below, at);
        }
        place
    }

    /// The first key that stands twice in one map.
    pub(super) fn twice(&self) -> Option<Twice> {
        match &self.children {
            Children::None => None,
            Children::Items(items) => items.iter().find_map(Self::twice),
            Children::Map(entries) => {
                let mut known: BTreeMap<&str, Place> = BTreeMap::new();
                for (key, place, below) in entries {
                    if let Some(first) = known.insert(key, *place) {
                        return Some(Twice {
                            key: key.clone(),
                            first,
                            second: *place,
                        });
                    }
                    if let Some(found) = below.twice() {
                        return Some(found);
                    }
                }
                None
            }
        }
    }
}

/// Deeper documents are refused by the reader.
const DEPTH: usize = 100;

type Events<'a, 'e> = &'e mut dyn Iterator<Item = Result<(Event<'a>, Span), ScanError>>;

/// The next event that is more than a remark.
fn next<'a>(events: Events<'a, '_>) -> Option<(Event<'a>, Span)> {
    loop {
        match events.next()?.ok()? {
            (Event::Comment(..) | Event::Anchor(..), _) => {}
            found => return Some(found),
        }
    }
}

fn node(event: &Event<'_>, span: &Span, events: Events<'_, '_>, depth: usize) -> Option<Tree> {
    if depth > DEPTH {
        return None;
    }
    let children = match event {
        Event::MappingStart(..) => {
            let mut entries = Vec::new();
            loop {
                let (event, span) = next(events)?;
                let key = match &event {
                    Event::MappingEnd => break Children::Map(entries),
                    Event::Scalar(text, ..) => text.to_string(),
                    _ => return None,
                };
                let at = Place::of(&span);
                let (event, span) = next(events)?;
                entries.push((key, at, node(&event, &span, events, depth + 1)?));
            }
        }
        Event::SequenceStart(..) => {
            let mut items = Vec::new();
            loop {
                let (event, span) = next(events)?;
                if matches!(event, Event::SequenceEnd) {
                    break Children::Items(items);
                }
                items.push(node(&event, &span, events, depth + 1)?);
            }
        }
        _ => Children::None,
    };
    let place = Place::of(span);
    Some(Tree { place, children })
}

/// A step on the way to a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    Key(&'a str),
    Item(usize),
}

/// The steps of a path such as `spec.neighbors[0].asn` or `spec.vrfs["a.b"].vni`.
pub(super) fn steps(path: &str) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let quoted = after
                .strip_prefix('"')
                .and_then(|text| text.split_once("\"]"));
            if let Some((key, after)) = quoted {
                steps.push(Step::Key(key));
                rest = after;
                continue;
            }
            let Some((inside, after)) = after.split_once(']') else {
                break;
            };
            steps.push(
                inside
                    .parse()
                    .map_or_else(|_name| Step::Key(inside), Step::Item),
            );
            rest = after;
            continue;
        }
        let name = rest.strip_prefix('.').unwrap_or(rest);
        let end = name.find(['.', '[']).unwrap_or(name.len());
        let (key, after) = name.split_at(end);
        steps.push(Step::Key(key));
        rest = after;
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, path: &str) -> (usize, usize) {
        let tree = Tree::of(text).expect("it is YAML");
        let place = tree.find(&steps(path));
        (place.line, place.column)
    }

    #[test]
    fn a_field_is_found_by_its_path_in_blocks_braces_and_json() {
        let block = "kind: A # a remark\nspec:\n  # a remark\n  list:\n  - name: x\n    asn: 7\n  - {name: y, asn: 8}\n  vrfs: {a.b: {vni: 1}}\n";
        assert_eq!(at(block, "kind"), (1, 1));
        assert_eq!(at(block, "spec.list[0].asn"), (6, 5));
        assert_eq!(at(block, "spec.list[1].asn"), (7, 15));
        assert_eq!(at(block, "spec.list[1]"), (7, 5));
        assert_eq!(at(block, "spec.vrfs[\"a.b\"].vni"), (8, 16));
        let json = "{\"kind\": \"A\",\n \"spec\": {\"list\": [{\"asn\": 7}]}}";
        assert_eq!(at(json, "spec.list[0].asn"), (2, 21));
    }

    #[test]
    fn a_field_that_is_not_there_is_where_it_would_stand() {
        let text = "kind: A\nspec:\n  list: []\n";
        assert_eq!(at(text, "spec.vni"), (2, 1));
        assert_eq!(at(text, "metadata.name"), (1, 1));
    }
}
