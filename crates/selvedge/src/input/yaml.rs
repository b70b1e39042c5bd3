//! From a text to its YAML or JSON documents, within limits that are named when a text exceeds them.
//!
//! The reader's own defaults are for configuration files of one program; an export of a large cluster exceeds them.
//! The text is in memory already, so its own size needs no tight limit. What can grow beyond it is what aliases expand to.

#[cfg(test)]
mod tests;

use serde_json::Value;
use serde_saphyr::{Error, Options, alias_limits, budget, budget::BudgetBreach, options};

/// How much one file may hold.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Documents between `---` lines.
    documents: usize,
    /// Maps, lists and single values. An object of a cluster has 50 to 300.
    values: usize,
    /// Maps and lists inside each other. Objects of Kubernetes have fewer than 50; each level needs stack.
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
    depth: 64,
    bytes: 4 << 30,
    aliases: 1_000_000,
    expanded: 1_000_000,
};

/// The documents of a YAML or JSON text; empty ones are left out.
pub(super) fn documents(text: &str) -> Result<Vec<Value>, String> {
    documents_within(text, LIMITS)
}

fn documents_within(text: &str, limits: Limits) -> Result<Vec<Value>, String> {
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, limits.options())
        .map_err(|error| {
            let own = limits.exceeded(&error).or_else(|| doubled(&error));
            own.unwrap_or_else(|| error.to_string())
        })?;
    Ok(documents
        .into_iter()
        .filter(|document| !document.is_null())
        .collect())
}

/// The error without what the reader puts around it.
fn innermost(error: &Error) -> &Error {
    let mut inner = error;
    while let Error::AliasError { error, .. } | Error::WithSnippet { error, .. } = inner {
        inner = error;
    }
    inner
}

/// `line N: `, where the line is known.
fn place(error: &Error) -> String {
    let line = error.location().map(|location| location.line());
    line.map(|line| format!("line {line}: "))
        .unwrap_or_default()
}

/// A field that is there twice, if that is why a text was refused.
fn doubled(error: &Error) -> Option<String> {
    let Error::DuplicateMappingKey { key, .. } = innermost(error) else {
        return None;
    };
    let key = key.as_deref().unwrap_or("a field");
    let place = place(error);
    Some(format!(
        "{place}{key} is there twice in one map; keep one of them"
    ))
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
    fn exceeded(self, error: &Error) -> Option<String> {
        let (limit, what) = match innermost(error) {
            Error::Budget { breach, .. } => match breach {
                BudgetBreach::Documents { .. } => (self.documents, "documents"),
                BudgetBreach::Nodes { .. } => (self.values, "values"),
                BudgetBreach::Depth { .. } => (self.depth, "levels of nested maps and lists"),
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
        let remedy = match what {
            "levels of nested maps and lists" => "no object of Kubernetes is that deep",
            _ => "split it into several files",
        };
        let place = place(error);
        Some(format!(
            "{place}exceeds the limit of {limit} {what} in one file; {remedy}"
        ))
    }
}
