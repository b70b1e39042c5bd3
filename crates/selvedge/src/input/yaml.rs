//! From a text to its YAML or JSON documents, within limits that are named when a text exceeds them.
//!
//! Most documents are of a plain form and read by a fast reader, or are JSON; the full YAML reader has the rest.
//! The full reader's own defaults are for configuration files of one program; an export of a large cluster exceeds them.
//! The text is in memory already, so its own size needs no tight limit. What can grow beyond it is what aliases expand to.

#[cfg(test)]
mod tests;

use std::path::Path;

use serde_json::Value;
use serde_saphyr::{Error, Options, alias_limits, budget, budget::BudgetBreach, options};

use super::{
    fault::{self, Fault},
    json,
    place::Place,
    plain,
    split::{self, Part},
};

/// What a text is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// YAML, or JSON, of which most is YAML.
    Yaml,
    /// JSON and nothing else.
    Json,
}

impl Form {
    /// The form of a file, by its name.
    pub(super) fn of(file: &str) -> Self {
        let end = Path::new(file).extension();
        if end.is_some_and(|end| end.eq_ignore_ascii_case("json")) {
            Self::Json
        } else {
            Self::Yaml
        }
    }
}

/// Maps and lists inside each other. Objects of Kubernetes have fewer than 50; each level needs stack.
pub(super) const DEPTH: usize = 64;

/// How much one file may hold.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Documents between `---` lines.
    documents: usize,
    /// Maps, lists and single values. An object of a cluster has 50 to 300.
    values: usize,
    /// Maps and lists inside each other.
    depth: usize,
    /// Bytes of all keys and single values.
    bytes: usize,
    /// Uses of anchors (`*name`), and definitions of them (`&name`).
    aliases: usize,
    /// Values from expanded aliases, counted at each use.
    expanded: usize,
}

const LIMITS: Limits = Limits {
    documents: 1_000_000,
    values: 100_000_000,
    depth: DEPTH,
    bytes: 4 << 30,
    aliases: 1_000_000,
    expanded: 1_000_000,
};

/// The documents of a YAML or JSON text, each read or with why it cannot be; empty ones are left out.
pub(super) fn read(text: &str, form: Form) -> Vec<(Part, Result<Value, Fault>)> {
    read_within(text, form, LIMITS)
}

fn read_within(text: &str, form: Form, limits: Limits) -> Vec<(Part, Result<Value, Fault>)> {
    let parts = split::parts(text);
    let mut found = Vec::with_capacity(parts.len());
    for (number, part) in parts.into_iter().enumerate() {
        if number == limits.documents {
            let place = Place {
                line: part.first_line,
                column: 1,
            };
            let fault = Limits::fault(Some(place), limits.documents, "documents");
            found.push((part, Err(fault)));
            break;
        }
        let own = text.get(part.bytes.clone()).unwrap_or_default();
        let lines_before = part.first_line - 1;
        match document(own, form, limits) {
            Ok(Value::Null) => {}
            Ok(value) => found.push((part, Ok(value))),
            Err(fault) => found.push((part, Err(fault.after_line(lines_before)))),
        }
    }
    found
}

/// One document.
fn document(text: &str, form: Form, limits: Limits) -> Result<Value, Fault> {
    if form == Form::Json {
        return json::read(text, limits.depth).map_err(|error| fault::of_json(text, &error));
    }
    // No text holds more values than bytes.
    let is_within = text.len() <= limits.values.min(limits.bytes);
    if is_within && let Some(value) = plain::read(text) {
        return Ok(value);
    }
    let as_json = json::is_likely(text).then(|| json::read(text, limits.depth));
    match as_json {
        Some(Ok(value)) if is_within => return Ok(value),
        // What is no JSON may be YAML all the same, such as `{"a": 1,}`.
        _ => {}
    }
    let read: Result<Vec<Value>, Error> =
        serde_saphyr::from_multiple_with_options(text, limits.options());
    match (read, as_json) {
        // A reader of YAML takes a comment of another language for a part of a key.
        (Ok(_), Some(Err(error))) if fault::is_comment(text, &error) => {
            Err(fault::of_json(text, &error))
        }
        (Ok(documents), _) if documents.iter().any(Value::is_string) => {
            let value = documents.into_iter().next().unwrap_or_default();
            fault::of_page(text).map_or(Ok(value), Err)
        }
        (Ok(documents), _) => Ok(documents.into_iter().next().unwrap_or_default()),
        (Err(error), _) if limits.exceeded(&error).is_some() => Err(limits
            .exceeded(&error)
            .unwrap_or_else(|| fault::of_yaml(text, None))),
        (Err(_), Some(Err(error))) => Err(fault::of_json(text, &error)),
        (Err(error), _) => Err(fault::of_yaml(text, place(&error))),
    }
}

/// The error without what the reader puts around it.
fn innermost(error: &Error) -> &Error {
    let mut inner = error;
    while let Error::AliasError { error, .. } | Error::WithSnippet { error, .. } = inner {
        inner = error;
    }
    inner
}

/// Where an error is, if it is known.
fn place(error: &Error) -> Option<Place> {
    let location = error.location()?;
    let number = |number: u64| usize::try_from(number).unwrap_or(1).max(1);
    Some(Place {
        line: number(location.line()),
        column: number(location.column()),
    })
}

impl Limits {
    fn options(self) -> Options {
        options! {
            budget: budget! {
                max_documents: self.documents,
                max_nodes: self.values,
                max_depth: self.depth,
                max_total_scalar_bytes: self.bytes,
                max_aliases: self.aliases,
                max_anchors: self.aliases,
                max_merge_keys: self.aliases,
                max_recorded_anchor_events: self.expanded,
                // Every value is at most two events, and what is bounded above needs no second bound.
                max_events: usize::MAX,
                // One anchor that a thousand objects use is no attack: what it expands to is bounded.
                enforce_alias_anchor_ratio: false,
            },
            alias_limits: alias_limits! {
                max_total_replayed_events: self.expanded,
            },
            // No comment is read, so that any number of them is allowed in any place.
            emit_comments: false,
        }
    }

    /// Which limit a text exceeds and what to do, if that is why it was refused.
    fn exceeded(self, error: &Error) -> Option<Fault> {
        let (limit, what) = match innermost(error) {
            Error::Budget {
                breach: BudgetBreach::Depth { .. },
                ..
            } => return Some(Fault::too_deep(place(error), self.depth)),
            Error::Budget { breach, .. } => match breach {
                BudgetBreach::Documents { .. } => (self.documents, "documents"),
                BudgetBreach::Nodes { .. } => (self.values, "values"),
                BudgetBreach::ScalarBytes { .. } => (self.bytes, "bytes of keys and values"),
                BudgetBreach::Aliases { .. } => (self.aliases, "aliases"),
                BudgetBreach::Anchors { .. } => (self.aliases, "anchors"),
                BudgetBreach::MergeKeys { .. } => (self.aliases, "merge keys (<<)"),
                BudgetBreach::RecordedAnchorEvents { .. } => {
                    (self.expanded, "values below anchors")
                }
                _ => return None,
            },
            Error::AliasReplayLimitExceeded { .. } => {
                (self.expanded, "values from expanded aliases")
            }
            _ => return None,
        };
        Some(Self::fault(place(error), limit, what))
    }

    fn fault(place: Option<Place>, limit: usize, what: &str) -> Fault {
        Fault {
            place,
            message: format!("exceeds the limit of {limit} {what} in one file"),
            hint: Some("split it into several files".to_owned()),
            first: None,
        }
    }
}
